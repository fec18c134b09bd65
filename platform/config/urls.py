"""URL configuration: pages, REST, the internal endpoints and the probes."""

from __future__ import annotations

from csp.decorators import csp_update
from django.contrib import admin
from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from apps.console.web import prometheus_metrics
from apps.serving.api import gateway_api
from controlplane.web.design_system import design_chart, design_page
from controlplane.web.health_checks import healthz
from controlplane.web.openapi import require_login_for_schema
from controlplane.web.problem_details import problem_types
from controlplane.web.rest import UnknownApiPath

handler500 = "controlplane.web.middleware.server_error"

#: Swagger UI has one inline style element; its script is served from our static files.
_docs = require_login_for_schema(
    csp_update({"style-src": "'unsafe-inline'"})(
        SpectacularSwaggerSplitView.as_view(url_name="schema", title="Ninefold REST")
    )
)

PAGES: list[URLPattern | URLResolver] = [
    path("", include("apps.accounts.web.urls")),
    path("", include("apps.fleet.web")),
    path("", include("apps.models.web.urls")),
    path("", include("apps.jobs.web.urls")),
    path("", include("apps.serving.web.urls")),
    path("", include("apps.quotas.web.urls")),
    path("", include("apps.workflows.web.urls")),
    path("", include("apps.monitoring.web.urls")),
    path("", include("apps.telemetry.web.urls")),
    path("", include("apps.notifications.web.urls")),
    path("", include("apps.console.web.urls")),
    path("docs/problems", problem_types, name="problem-types"),
    path("design", design_page, name="design"),
    path("design/chart/<str:kind>", design_chart, name="design-chart"),
]

REST: list[URLPattern | URLResolver] = [
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", _docs, name="docs"),
    path("", include("apps.accounts.api.urls")),
    path("", include("apps.console.api")),
    path("", include("apps.fleet.api")),
    path("", include("apps.models.api.urls")),
    path("", include("apps.quotas.api.urls")),
    path("", include("apps.jobs.api.urls")),
    path("", include("apps.serving.api.urls")),
    path("", include("apps.workflows.api")),
    path("", include("apps.monitoring.api.urls")),
    path("", include("apps.notifications.api")),
    re_path("", UnknownApiPath.as_view()),
]

#: Endpoints that gateways call; other clients are refused.
INTERNAL: list[URLPattern | URLResolver] = [
    path("gateway/snapshot", gateway_api.GatewaySnapshotView.as_view(), name="gateway-snapshot"),
    path("gateway/usage", gateway_api.GatewayUsageView.as_view(), name="gateway-usage"),
]

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", prometheus_metrics.readyz, name="readyz"),
    path("metrics", prometheus_metrics.prometheus_metrics_view, name="metrics"),
    path("admin/", admin.site.urls),
    path("api/v1/", include(REST)),
    path("internal/", include(INTERNAL)),
    path("", include(PAGES)),
]
