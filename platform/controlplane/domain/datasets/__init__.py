"""From an uploaded file to rows that every engine reads, or to a list of what is wrong with it.

::

    bytes ─▶ sources    size, file kind, encoding       ─▶ numbered lines of text
          ─▶ formats    JSON Lines, JSON array, CSV     ─▶ numbered records
          ─▶ schemas    instruction, chat, preference … ─▶ messages, rejected, split
          ─▶ splits     given, or by hash and seed      ─▶ train, validation, test
          ─▶ profiles   counts, lengths, duplicates     ─▶ statistics, preview
                          (all put together in ``inspections``)

A row is kept as one line ``{"messages":[{"role":…,"content":…},…]}``, with the ``rejected`` answer of a
preference behind, so a file says the same, byte
for byte, whatever it was uploaded as. Nothing is repaired or dropped: a file is taken whole, or
refused with the rows that are wrong.
"""

from controlplane.domain.datasets.conversations import Message, Role
from controlplane.domain.datasets.inspections import CanonicalFile, Inspection, inspect
from controlplane.domain.datasets.profiles import (
    HISTOGRAM_EDGES,
    Lengths,
    PreviewRow,
    Statistics,
)
from controlplane.domain.datasets.refusals import DatasetRefused, Limits, Problem
from controlplane.domain.datasets.schemas import ColumnMapping, Schema
from controlplane.domain.datasets.sources import Format
from controlplane.domain.datasets.splits import Fractions, Split

__all__ = [
    "HISTOGRAM_EDGES",
    "CanonicalFile",
    "ColumnMapping",
    "DatasetRefused",
    "Format",
    "Fractions",
    "Inspection",
    "Lengths",
    "Limits",
    "Message",
    "PreviewRow",
    "Problem",
    "Role",
    "Schema",
    "Split",
    "Statistics",
    "inspect",
]
