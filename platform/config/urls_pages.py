"""Addresses of the pages."""

from __future__ import annotations

from django.urls import URLPattern, URLResolver, include, path

from apps.monitoring.web.search import search
from controlplane.web.design import design, design_chart
from controlplane.web.problem_types import problem_types

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("apps.accounts.web.urls")),
    path("", include("apps.fleet.web.urls")),
    path("", include("apps.models.web.urls")),
    path("", include("apps.jobs.web.urls")),
    path("", include("apps.serving.web.urls")),
    path("", include("apps.quotas.web.urls")),
    path("", include("apps.workflows.web.urls")),
    path("", include("apps.monitoring.web.urls")),
    path("search", search, name="search"),
    path("docs/problems", problem_types, name="problem-types"),
    path("design", design, name="design"),
    path("design/chart/<str:kind>", design_chart, name="design-chart"),
]
