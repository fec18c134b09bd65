from __future__ import annotations

from django.urls import path

from apps.telemetry.web import sources

_SOURCE = "fleet/sources/<str:uid>"

urlpatterns = [
    path("fleet/sources", sources.sources, name="sources"),
    path("fleet/sources/new", sources.source_new, name="source-new"),
    path("fleet/sources/agents", sources.agents, name="agents"),
    path("fleet/sources/tokens/new", sources.token_new, name="node-token-new"),
    path(_SOURCE, sources.source, name="source"),
    path(f"{_SOURCE}/change", sources.source_change, name="source-change"),
    path(f"{_SOURCE}/try", sources.source_try, name="source-try"),
    path(f"{_SOURCE}/pause", sources.source_pause, name="source-pause"),
    path(f"{_SOURCE}/resume", sources.source_resume, name="source-resume"),
]
