"""Addresses of the product."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from apps.monitoring.web import metrics, readiness
from controlplane.web.health import healthz

handler500 = "controlplane.web.requests.server_error"

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readiness.readyz, name="readyz"),
    path("metrics", metrics.page, name="metrics"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("config.urls_api")),
    path("internal/", include("config.urls_internal")),
    path("", include("config.urls_pages")),
]
