from __future__ import annotations

from django.urls import path

from apps.telemetry.web import metric_sources

_SOURCE = "fleet/sources/<str:uid>"

urlpatterns = [
    path("fleet/sources", metric_sources.metric_source_list, name="sources"),
    path("fleet/sources/new", metric_sources.metric_source_new_view, name="source-new"),
    path("fleet/sources/agents", metric_sources.metric_agent_list, name="agents"),
    path("fleet/sources/tokens/new", metric_sources.node_token_new_view, name="node-token-new"),
    path(_SOURCE, metric_sources.metric_source_detail, name="source"),
    path(f"{_SOURCE}/change", metric_sources.metric_source_change_view, name="source-change"),
    path(f"{_SOURCE}/try", metric_sources.metric_source_test_view, name="source-try"),
    path(f"{_SOURCE}/pause", metric_sources.metric_source_pause_view, name="source-pause"),
    path(f"{_SOURCE}/resume", metric_sources.metric_source_resume_view, name="source-resume"),
]
