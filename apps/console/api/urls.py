from __future__ import annotations

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from apps.console.api import clusters, index, status

router = SimpleRouter(trailing_slash=False)
router.register("clusters", clusters.ClusterViewSet, basename="cluster")

urlpatterns = [
    path("", index.ApiIndexView.as_view(), name="api-index"),
    path("status", status.StatusView.as_view(), name="api-status"),
    path("", include(router.urls)),
]
