"""Backup and restore: every row and every blob that a row names, as files with digests.

::

    <backup>/
      manifest.json       written last: without it, or with a wrong digest, there is no backup
      tables/<name>.gz    the rows of one table, as PostgreSQL copies them out
      blobs.gz            "<digest> <size>" of each blob, one a line
      blobs/ab/cdef…      the blobs, unless they were left out

All tables are read in one repeatable-read transaction, so that they fit each other while the product runs.
Blobs are immutable, and a lock holds off garbage collection until the last of them is copied. The schema is not
in the backup: migrations make it. Restoring migrates an empty database to where the backup's was, fills it,
and migrates on to this version, in one transaction; hence an older backup can be restored by a newer product.
"""

from controlplane.persistence.backups.manifest import BackupManifest, BackupRefused
from controlplane.persistence.backups.restorer import restore_backup
from controlplane.persistence.backups.writer import back_up
