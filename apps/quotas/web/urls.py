"""Addresses of the pages about queues, claims and the ledger."""

from __future__ import annotations

from django.urls import URLPattern, path

from apps.quotas.web import claims, queues, rearrangements, reports, topology, what_if

urlpatterns: list[URLPattern] = [
    path("queues", queues.queues, name="queues"),
    path("queues/<str:uid>", queues.queue, name="queue"),
    path("queues/<str:uid>/usage", queues.queue_usage, name="queue-usage"),
    path("queues/<str:uid>/reclaim", what_if.reclaim, name="queue-reclaim"),
    path("claims/<str:uid>", claims.claim, name="claim"),
    path("claims/<str:uid>/what-if", what_if.claim_what_if, name="claim-what-if"),
    path("what-ifs/<str:uid>", what_if.what_if, name="what-if"),
    path("forecast", what_if.forecast, name="forecast"),
    path("topology", topology.topology, name="topology"),
    path("topology/cards.json", topology.topology_cards, name="topology-cards"),
    path("rearrangements", rearrangements.rearrangements, name="rearrangements"),
    path("rearrangements/new", rearrangements.rearrangement_new, name="rearrangement-new"),
    path("rearrangements/<str:uid>", rearrangements.rearrangement, name="rearrangement"),
    path(
        "rearrangements/<str:uid>/approve",
        rearrangements.rearrangement_approve,
        name="rearrangement-approve",
    ),
    path(
        "rearrangements/<str:uid>/dismiss",
        rearrangements.rearrangement_dismiss,
        name="rearrangement-dismiss",
    ),
    path("reports/usage", reports.report, name="usage-report"),
    path("reports/usage/chart", reports.chart, name="usage-chart"),
]
