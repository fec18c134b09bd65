from __future__ import annotations

from django.urls import path

from apps.models.web import datasets, models, storage

urlpatterns = [
    path("models", models.models, name="models"),
    path("models/import", models.model_import, name="model-import"),
    path("models/versions/<str:uid>", models.model_version, name="model-version"),
    path("models/versions/<str:uid>/retry", models.model_version_retry, name="model-version-retry"),
    path("models/<str:uid>", models.model, name="model"),
    path("datasets", datasets.datasets, name="datasets"),
    path("datasets/new", datasets.dataset_new, name="dataset-new"),
    path("datasets/versions/<str:uid>", datasets.dataset_version, name="dataset-version"),
    path("storage", storage.storage, name="storage"),
    path("storage/quotas/<str:uid>", storage.quota, name="storage-quota"),
    path("storage/rules/<str:uid>", storage.rules, name="storage-rules"),
    path("storage/rules/<str:uid>/forget", storage.rules_forget, name="storage-rules-forget"),
    path("storage/artifacts/<str:uid>/<str:act>", storage.artifact_act, name="storage-act"),
    path("storage/left/<str:kind>/<str:uid>", storage.item_delete, name="storage-left"),
]
