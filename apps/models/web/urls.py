from __future__ import annotations

from django.urls import path

from apps.models.web import catalog, datasets, models, sizing, storage

urlpatterns = [
    path("models/import", models.model_import, name="model-import"),
    path("models/sizing", sizing.calculator, name="sizing"),
    path("models/sizing/curve.json", sizing.memory_curve, name="sizing-curve"),
    path("models/catalog", catalog.catalog, name="catalog"),
    path("models/catalog/compare", catalog.compare, name="catalog-compare"),
    path("models/catalog/<str:key>", catalog.entry, name="catalog-entry"),
    path("models/fetch", models.model_fetch, name="model-fetch"),
    path("models/versions/<str:uid>/cancel", models.model_fetch_cancel, name="model-fetch-cancel"),
    path("models/versions/<str:uid>/accept", models.model_version_accept, name="version-accept"),
    path("models/versions/<str:uid>/reject", models.model_version_reject, name="version-reject"),
    path("models/versions/<str:uid>/retry", models.model_version_retry, name="model-version-retry"),
    path("models/versions/<str:uid>/files/<path:path>", models.model_file, name="model-file"),
    path("datasets", datasets.datasets, name="datasets"),
    path("datasets/new", datasets.dataset_new, name="dataset-new"),
    path("datasets/check", datasets.dataset_check, name="dataset-check"),
    path("datasets/versions/<str:uid>", datasets.dataset_version, name="dataset-version"),
    path("datasets/versions/<str:uid>/rows", datasets.dataset_rows_page, name="dataset-rows"),
    path("datasets/versions/<str:uid>/lengths", datasets.dataset_lengths, name="dataset-lengths"),
    path(
        "datasets/versions/<str:uid>/files/<str:split>", datasets.dataset_file, name="dataset-file"
    ),
    path("datasets/<str:uid>", datasets.dataset, name="dataset"),
    path("storage", storage.storage, name="storage"),
    path("storage/quotas/<str:uid>", storage.quota, name="storage-quota"),
    path("storage/rules/<str:uid>", storage.rules, name="storage-rules"),
    path("storage/rules/<str:uid>/forget", storage.rules_reset, name="storage-rules-forget"),
    path("storage/artifacts/<str:uid>/<str:action>", storage.artifact_action, name="storage-act"),
    path("storage/left/<str:kind>/<str:uid>", storage.item_delete, name="storage-left"),
]
