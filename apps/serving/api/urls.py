from __future__ import annotations

from django.urls import URLPattern, URLResolver, re_path
from rest_framework.routers import SimpleRouter

from apps.serving.api import routes, views
from controlplane.web.rest import UID

router = SimpleRouter(trailing_slash=False)
router.register("deployments", views.DeploymentViewSet, basename="deployment")
router.register("routes", routes.RouteViewSet, basename="route")
router.register("weight-downloads", views.WeightDownloadViewSet, basename="weight-download")
router.register("replicas", views.ReplicaViewSet, basename="replica")
router.register("keys", views.ApiKeyViewSet, basename="key")
router.register("usage", views.GatewayUsageViewSet, basename="usage")

urlpatterns: list[URLPattern | URLResolver] = [
    re_path(
        f"^deployments/(?P<uid>{UID})/events$",
        views.DeploymentEventViewSet.as_view({"get": "list"}),
        name="deployment-events",
    ),
    *router.urls,
]
