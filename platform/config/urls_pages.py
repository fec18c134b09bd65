"""Addresses of the pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

urlpatterns: list[URLPattern | URLResolver] = [
    path("i18n/", include("django.conf.urls.i18n")),
    path("", include("apps.accounts.web.urls")),
    path("", include("apps.models.web.urls")),
    path("", include("apps.jobs.web.urls")),
    path("", include("apps.serving.web.urls")),
    path("", include("apps.monitoring.web.urls")),
]
