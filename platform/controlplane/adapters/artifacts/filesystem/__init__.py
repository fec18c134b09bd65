"""Blobs in a directory, by content.

::

    <root>/            0700   only the product looks in
      sha256/ab/cdef…  0444   a blob: never written again after it has its name
      aside/ab/cdef…   0444   what nobody seems to need any more, until it is discarded or brought back
      incoming/        0700   what is being written; a crash leaves rubbish here and nowhere else

A blob gets its name by a hard link from ``incoming``, so it is whole or absent. ``materialise`` links it
to where a job can read it: the inode belongs to the product and nobody may write it.
"""

from controlplane.adapters.artifacts.filesystem.store import FilesystemArtifacts

__all__ = ["FilesystemArtifacts"]
