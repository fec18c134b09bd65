"""What is publicly known of models: facts with their confidence, and where each of them runs.

An *entry* is one published model. Its *cells* say, for one task by one engine on one vendor's chips, what
some source says of it; a cell never claims more than its source, and what no source names is unknown.

``entries`` holds the values, ``reading`` turns the data files into them or says what is wrong with which
field, ``matching`` finds the entry that a configuration belongs to.
"""

from __future__ import annotations

from controlplane.domain.catalog.entries import (
    CatalogTask,
    Caveat,
    Cell,
    Entry,
    Modality,
    Source,
    Support,
    best,
)

__all__ = ("CatalogTask", "Caveat", "Cell", "Entry", "Modality", "Source", "Support", "best")
