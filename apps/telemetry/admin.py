"""Metric sources, agent tokens and the newest metrics, read-only."""

from __future__ import annotations

from django.contrib import admin

from apps.telemetry.models import CardMetrics, NodeToken, Source
from controlplane.web.admin import ReadOnlyAdmin


@admin.register(Source)
class SourceAdmin(ReadOnlyAdmin[Source]):
    list_display = ("name", "cluster", "kind", "enabled", "read_at", "readings", "error")
    list_filter = ("kind", "enabled", "cluster")
    search_fields = ("name", "uid")
    list_select_related = ("cluster",)
    exclude = ("credential",)


@admin.register(NodeToken)
class NodeTokenAdmin(ReadOnlyAdmin[NodeToken]):
    list_display = ("node", "created_by_name", "created_at", "used_at", "revoked_at")
    list_filter = (("revoked_at", admin.EmptyFieldListFilter),)
    search_fields = ("node__name", "uid")
    list_select_related = ("node",)
    exclude = ("digest",)


@admin.register(CardMetrics)
class CardMetricsAdmin(ReadOnlyAdmin[CardMetrics]):
    list_display = ("card", "at", "utilization", "memory_used", "temperature", "power", "health")
    search_fields = ("card__node__name", "serial")
    list_select_related = ("card__node",)
