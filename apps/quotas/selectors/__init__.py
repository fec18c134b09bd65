"""Queries about queues, claims and card usage; the scheduler's snapshot."""

from __future__ import annotations

from apps.quotas.selectors.allocations import (
    TeamUsage,
    count_free_cards,
    usage_by_team,
)
from apps.quotas.selectors.claims import (
    QueuePosition,
    claim_of_workload,
    claims_visible,
    cluster_of_claim,
    launch_labels,
    placements_of_claim,
    queue_position,
    queued_since_by_claim,
)
from apps.quotas.selectors.queues import (
    default_queue_of_team,
    priority_class_of_value,
    priority_classes,
    queue_closed_reason,
    queues_for_team,
    queues_visible,
)
from apps.quotas.selectors.snapshots import scheduling_snapshot, snapshot_and_pending_reasons

__all__ = [
    "QueuePosition",
    "TeamUsage",
    "claim_of_workload",
    "claims_visible",
    "cluster_of_claim",
    "count_free_cards",
    "default_queue_of_team",
    "launch_labels",
    "placements_of_claim",
    "priority_class_of_value",
    "priority_classes",
    "queue_closed_reason",
    "queue_position",
    "queued_since_by_claim",
    "queues_for_team",
    "queues_visible",
    "scheduling_snapshot",
    "snapshot_and_pending_reasons",
    "usage_by_team",
]
