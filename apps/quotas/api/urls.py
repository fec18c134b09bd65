from __future__ import annotations

from django.urls import URLPattern, URLResolver, path
from rest_framework.routers import SimpleRouter

from apps.quotas.api import (
    claim_dry_runs,
    claims,
    defragmentation,
    priority_classes,
    problem_details,
    queue_trees,
    queues,
    topology,
    usage,
)

#: Imported for what they register.
REGISTERS = (problem_details,)

router = SimpleRouter(trailing_slash=False)
router.register("queues", queues.QueueViewSet, basename="queue")
router.register("queue-changes", queue_trees.QueueChangeViewSet, basename="queue-change")
router.register(
    "priority-classes", priority_classes.PriorityClassViewSet, basename="priority-class"
)
router.register("claims", claims.ClaimViewSet, basename="claim")
router.register("what-ifs", claims.WhatIfViewSet, basename="what-if")
router.register(
    "defragmentation-plans",
    defragmentation.DefragmentationPlanViewSet,
    basename="defragmentation-plan",
)
router.register("usage/records", usage.UsageRecordViewSet, basename="usage-record")
router.register("usage/days", usage.UsageDayViewSet, basename="usage-day")

urlpatterns: list[URLPattern | URLResolver] = [
    *router.urls,
    path("topology", topology.TopologyView.as_view(), name="api-topology"),
    path("queue-tree", queue_trees.QueueTreeView.as_view(), name="api-queue-tree"),
    path("claims/dry-run", claim_dry_runs.ClaimDryRunView.as_view(), name="api-claim-dry-run"),
    path("usage/months", usage.UsageMonthsView.as_view(), name="api-usage-months"),
    path("usage/rates", usage.CardRatesViewSet.as_view({"get": "list"}), name="api-usage-rates"),
    path("usage/rates/<str:chip>", usage.CardRateView.as_view(), name="api-usage-rate"),
]
