"""Validation of uploaded dataset files and their conversion to canonical rows.

::

    bytes ─▶ file_formats  size, file kind, encoding, JSON Lines, JSON array, CSV  ─▶ numbered records
          ─▶ schemas       instruction, chat, preference …                         ─▶ messages, rejected, split
          ─▶ splits        given, or by hash and seed                              ─▶ train, validation, test
          ─▶ profiles      counts, lengths, warnings                               ─▶ statistics, preview
                             (all combined in ``inspection``)

A row is stored as one line ``{"messages":[{"role":…,"content":…},…]}``, followed by the ``rejected`` answer of a
preference, so equal rows are equal byte for byte whatever the format of the upload. Nothing is repaired or
dropped: a file is accepted as a whole, or refused with the rows that are wrong.
"""

from controlplane.domain.datasets.conversations import MessageRole
from controlplane.domain.datasets.file_formats import FileFormat
from controlplane.domain.datasets.inspection import (
    HISTOGRAM_EDGES,
    Inspection,
    LengthStatistics,
    inspect_dataset,
)
from controlplane.domain.datasets.schemas import ColumnMapping, Schema
from controlplane.domain.datasets.splits import Split, SplitFractions
from controlplane.domain.datasets.validation import DatasetRefused, FileLimits, FileProblem
