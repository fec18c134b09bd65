from __future__ import annotations

from django.urls import path

from apps.models.web import catalog, datasets, sizing, storage
from apps.models.web import model_version_actions as versions

_VERSION = "models/versions/<str:uid>"
_DATASET = "datasets/versions/<str:uid>"

urlpatterns = [
    path("models/import", versions.folder_import_page, name="model-import"),
    path("models/sizing", sizing.calculator, name="sizing"),
    path("models/sizing/curve.json", sizing.memory_curve_data, name="sizing-curve"),
    path("models/catalog", catalog.catalog, name="catalog"),
    path("models/catalog/compare", catalog.catalog_comparison_page, name="catalog-compare"),
    path("models/catalog/<str:key>", catalog.catalog_entry_page, name="catalog-entry"),
    path("models/fetch", versions.hub_import_page, name="model-fetch"),
    path(f"{_VERSION}/cancel", versions.model_hub_import_cancel, name="model-fetch-cancel"),
    path(f"{_VERSION}/accept", versions.model_version_accept, name="version-accept"),
    path(f"{_VERSION}/reject", versions.model_version_reject, name="version-reject"),
    path(f"{_VERSION}/retry", versions.model_version_retry, name="model-version-retry"),
    path(f"{_VERSION}/files/<path:path>", versions.model_file_download, name="model-file"),
    path("datasets", datasets.dataset_list, name="datasets"),
    path("datasets/new", datasets.dataset_new, name="dataset-new"),
    path("datasets/check", datasets.dataset_file_inspect, name="dataset-check"),
    path(_DATASET, datasets.dataset_version_detail, name="dataset-version"),
    path(f"{_DATASET}/rows", datasets.dataset_rows_page, name="dataset-rows"),
    path(f"{_DATASET}/lengths", datasets.dataset_length_histogram, name="dataset-lengths"),
    path(f"{_DATASET}/files/<str:split>", datasets.dataset_split_download, name="dataset-file"),
    path("datasets/<str:uid>", datasets.dataset_detail, name="dataset"),
    path("storage", storage.storage_page, name="storage"),
    path("storage/quotas/<str:uid>", storage.storage_quota_page, name="storage-quota"),
    path("storage/rules/<str:uid>", storage.retention_rules_page, name="storage-rules"),
    path("storage/rules/<str:uid>/forget", storage.rules_reset, name="storage-rules-forget"),
    path("storage/artifacts/<str:uid>/<str:action>", storage.artifact_action, name="storage-act"),
    path("storage/left/<str:kind>/<str:uid>", storage.attempt_item_delete, name="storage-left"),
]
