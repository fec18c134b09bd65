"""URLs of the pages of queues, claims, defragmentation and usage reports."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.quotas.web import claims, forecasts, queues, topology, usage_reports
from apps.quotas.web import defragmentation as plans

_PLAN = "defragmentation-plans/<str:uid>"

urlpatterns: list[URLPattern] = [
    path("queues", queues.queues, name="queues"),
    path("queues/<str:uid>", queues.queue, name="queue"),
    path("queues/<str:uid>/usage", queues.queue_usage, name="queue-usage"),
    path("queues/<str:uid>/reclaim", forecasts.reclaim_preview_page, name="queue-reclaim"),
    path("claims/<str:uid>", claims.claim, name="claim"),
    path("claims/<str:uid>/what-if", forecasts.claim_what_if, name="claim-what-if"),
    path("what-ifs/<str:uid>", forecasts.what_if, name="what-if"),
    path("forecast", forecasts.forecast, name="forecast"),
    path("topology", topology.topology, name="topology"),
    path("topology/cards.json", topology.topology_cards, name="topology-cards"),
    path("defragmentation-plans", plans.defragmentation_list, name="defragmentation-plans"),
    path("defragmentation-plans/new", plans.defragmentation_new, name="defragmentation-plan-new"),
    path(_PLAN, plans.defragmentation_detail, name="defragmentation-plan"),
    path(f"{_PLAN}/approve", plans.defragmentation_approve, name="defragmentation-plan-approve"),
    path(f"{_PLAN}/dismiss", plans.defragmentation_dismiss, name="defragmentation-plan-dismiss"),
    path("reports/usage", usage_reports.usage_report_page, name="usage-report"),
    path("reports/usage/chart", usage_reports.usage_report_chart, name="usage-chart"),
]
