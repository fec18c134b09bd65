"""The tables of the registry."""

from __future__ import annotations

from apps.models.models.catalog import CatalogCell, CatalogModel
from apps.models.models.hubs import HubImport
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
