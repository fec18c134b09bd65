from __future__ import annotations

from django.urls import path

from apps.monitoring.web import overviews

urlpatterns = [
    path("", overviews.home, name="home"),
    path("fleet", overviews.fleet_overview, name="fleet"),
]
