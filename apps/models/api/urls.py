from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from apps.models.api import catalog, problem_details, sizing, storage, views

#: Imported for what it registers.
REGISTERS = (problem_details,)

router = SimpleRouter(trailing_slash=False)
router.register("datasets", views.DatasetViewSet, basename="dataset")
router.register("dataset-versions", views.DatasetVersionViewSet, basename="dataset-version")
router.register("models", views.ModelViewSet, basename="model")
router.register("model-versions", views.ModelVersionViewSet, basename="model-version")
router.register("evaluations", views.EvaluationViewSet, basename="evaluation")
router.register("artifacts", views.ArtifactViewSet, basename="artifact")
router.register("storage/runs", storage.StorageCleanupRunViewSet, basename="storage-run")
router.register("storage/artifacts", storage.StoredArtifactViewSet, basename="storage-artifact")

urlpatterns: list[URLPattern | URLResolver] = [
    path("catalog", catalog.CatalogView.as_view(), name="catalog-list"),
    path("catalog/<str:key>", catalog.CatalogEntryView.as_view(), name="catalog-entry-of"),
    path("sizing", sizing.SizingView.as_view(), name="sizing-of"),
    path("storage", storage.StorageUsageView.as_view(), name="storage-use"),
    path("storage/plan", storage.RetentionPlanView.as_view(), name="storage-plan"),
    path(
        "storage/rules",
        storage.RetentionRulesViewSet.as_view({"get": "list"}),
        name="storage-rules-list",
    ),
    path("storage/rules/<str:team>", storage.RetentionRulesView.as_view(), name="storage-rules-of"),
    path("storage/quotas/<str:team>", storage.StorageQuotaView.as_view(), name="storage-quota-of"),
    *router.urls,
]
