"""Queries about deployments, gateways, API keys, usage and what runs on the cards."""

from apps.serving.selectors.deployments import (
    LIVE_REPLICAS,
    OWNER_KIND,
    WORKLOAD_KIND,
    backends_serving,
    deployments_visible,
    live_replicas,
    newest_revision,
    replica_log,
    replicas_visible,
    revisions_of,
    route_name_available,
)
from apps.serving.selectors.gateways import (
    GATEWAY_HEARTBEAT_TIMEOUT,
    SnapshotPropagation,
    engine_credential,
    keys_visible,
    latest_snapshot,
    live_gateways,
    snapshot_content,
    snapshot_newer_than,
    snapshot_propagation,
    valid_keys_filter,
)
from apps.serving.selectors.occupancy import (
    CardWorkload,
    card_workloads,
    workloads_using,
)
from apps.serving.selectors.usage import (
    usage_totals,
    usage_visible,
)

__all__ = [
    "GATEWAY_HEARTBEAT_TIMEOUT",
    "LIVE_REPLICAS",
    "OWNER_KIND",
    "WORKLOAD_KIND",
    "CardWorkload",
    "SnapshotPropagation",
    "backends_serving",
    "card_workloads",
    "deployments_visible",
    "engine_credential",
    "keys_visible",
    "latest_snapshot",
    "live_gateways",
    "live_replicas",
    "newest_revision",
    "replica_log",
    "replicas_visible",
    "revisions_of",
    "route_name_available",
    "snapshot_content",
    "snapshot_newer_than",
    "snapshot_propagation",
    "usage_totals",
    "usage_visible",
    "valid_keys_filter",
    "workloads_using",
]
