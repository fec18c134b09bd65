from __future__ import annotations

from django.urls import URLPattern, URLResolver
from rest_framework.routers import SimpleRouter

from apps.models.api import problems, views

#: Imported for what it registers.
REGISTERS = (problems,)

router = SimpleRouter(trailing_slash=False)
router.register("datasets", views.DatasetViewSet, basename="dataset")
router.register("dataset-versions", views.DatasetVersionViewSet, basename="dataset-version")
router.register("models", views.ModelViewSet, basename="model")
router.register("model-versions", views.ModelVersionViewSet, basename="model-version")
router.register("evaluations", views.EvaluationViewSet, basename="evaluation")
router.register("artifacts", views.ArtifactViewSet, basename="artifact")

urlpatterns: list[URLPattern | URLResolver] = [*router.urls]
