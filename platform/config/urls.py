"""Addresses of the product."""

from __future__ import annotations

from django.contrib import admin
from django.urls import include, path

from controlplane.web.health import healthz

urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("admin/", admin.site.urls),
    path("api/v1/", include("config.urls_api")),
    path("internal/", include("config.urls_internal")),
    path("", include("config.urls_pages")),
]
