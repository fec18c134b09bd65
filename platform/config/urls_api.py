"""REST: the addresses of each app, the schema, and its page."""

from __future__ import annotations

from csp.decorators import csp_update
from django.urls import URLPattern, URLResolver, include, path, re_path
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView

from apps.monitoring.api.status import StatusView
from controlplane.web.openapi import schema_page
from controlplane.web.rest import NoSuchAddress

#: Swagger's page has one style element of its own; its script is a file of ours all the same.
_docs = schema_page(
    csp_update({"style-src": "'unsafe-inline'"})(
        SpectacularSwaggerSplitView.as_view(url_name="schema", title="Ninefold REST")
    )
)

urlpatterns: list[URLPattern | URLResolver] = [
    path("schema", SpectacularAPIView.as_view(), name="schema"),
    path("docs", _docs, name="docs"),
    path("status", StatusView.as_view(), name="api-status"),
    path("", include("apps.accounts.api.urls")),
    path("", include("apps.fleet.api.urls")),
    path("", include("apps.models.api.urls")),
    path("", include("apps.quotas.api.urls")),
    path("", include("apps.jobs.api.urls")),
    path("", include("apps.serving.api.urls")),
    path("", include("apps.workflows.api.urls")),
    path("", include("apps.monitoring.api.urls")),
    re_path("", NoSuchAddress.as_view()),
]
