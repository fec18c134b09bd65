"""Datasets, model versions, their artifacts and lineage."""
