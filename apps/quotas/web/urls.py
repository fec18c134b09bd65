"""URLs of the pages of queues, claims, defragmentation and usage reports."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.quotas.web import claims, defragmentation, forecasts, queues, topology, usage_reports

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
    path(
        "defragmentation-plans", defragmentation.defragmentation_list, name="defragmentation-plans"
    ),
    path(
        "defragmentation-plans/new",
        defragmentation.defragmentation_new,
        name="defragmentation-plan-new",
    ),
    path(
        "defragmentation-plans/<str:uid>",
        defragmentation.defragmentation_detail,
        name="defragmentation-plan",
    ),
    path(
        "defragmentation-plans/<str:uid>/approve",
        defragmentation.defragmentation_approve,
        name="defragmentation-plan-approve",
    ),
    path(
        "defragmentation-plans/<str:uid>/dismiss",
        defragmentation.defragmentation_dismiss,
        name="defragmentation-plan-dismiss",
    ),
    path("reports/usage", usage_reports.usage_report_page, name="usage-report"),
    path("reports/usage/chart", usage_reports.usage_report_chart, name="usage-chart"),
]
