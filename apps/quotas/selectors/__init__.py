"""Queries about queues, claims and card usage; the scheduler's snapshot."""

from __future__ import annotations

from apps.quotas.selectors.allocations import (
    TeamUsage,
    cards_allocated,
    cards_free,
    usage_by_team,
)
from apps.quotas.selectors.claims import (
    QueuePosition,
    claim_of,
    claims_visible,
    cluster_of,
    in_line_since_each,
    launch_labels,
    placements_of,
    queue_position,
)
from apps.quotas.selectors.queues import (
    intake_refusal,
    priority_classes,
    queue_default,
    queues_for,
    queues_visible,
)
from apps.quotas.selectors.snapshots import scheduling_snapshot, snapshot_and_pending_reasons

__all__ = [
    "QueuePosition",
    "TeamUsage",
    "cards_allocated",
    "cards_free",
    "claim_of",
    "claims_visible",
    "cluster_of",
    "in_line_since_each",
    "intake_refusal",
    "launch_labels",
    "placements_of",
    "priority_classes",
    "queue_default",
    "queue_position",
    "queues_for",
    "queues_visible",
    "scheduling_snapshot",
    "snapshot_and_pending_reasons",
    "usage_by_team",
]
