"""Models of the registry app."""

from __future__ import annotations

from apps.models.models.catalog import CatalogCell, CatalogModel
from apps.models.models.storage import (
    RetentionRule,
    StorageMeasure,
    StorageQuota,
    StorageRun,
    StoreSize,
)
from apps.models.models.versions import (
    Artifact,
    Dataset,
    DatasetVersion,
    Evaluation,
    HubImport,
    ModelLine,
    ModelVersion,
    ModelVersionTransition,
    files_json,
)

__all__ = (
    "Artifact",
    "CatalogCell",
    "CatalogModel",
    "Dataset",
    "DatasetVersion",
    "Evaluation",
    "HubImport",
    "ModelLine",
    "ModelVersion",
    "ModelVersionTransition",
    "RetentionRule",
    "StorageMeasure",
    "StorageQuota",
    "StorageRun",
    "StoreSize",
    "files_json",
)
