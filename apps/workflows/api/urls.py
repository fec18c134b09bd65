from __future__ import annotations

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from apps.workflows.api import views

router = SimpleRouter(trailing_slash=False)
router.register("pipelines", views.PipelineViewSet, basename="pipeline")

urlpatterns = [path("", include(router.urls))]
