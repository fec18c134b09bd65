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
