"""The model catalog: published facts with their confidence, and which engines support a model on which chips."""

from __future__ import annotations

from controlplane.domain.catalog.entries import (
    CatalogEntry,
    CatalogSource,
    CatalogTask,
    CompatibilityCell,
    Modality,
    SupportCaveat,
    SupportLevel,
    strongest_support,
)
