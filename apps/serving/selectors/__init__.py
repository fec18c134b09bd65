"""Queries about deployments, gateways, API keys, usage and what runs on the cards."""

from apps.serving.selectors.card_workloads import (
    CardWorkload,
    card_workloads,
    workloads_using_cluster,
)
from apps.serving.selectors.deployments import (
    LIVE_REPLICAS,
    OWNER_KIND,
    WORKLOAD_KIND,
    deployments_visible,
    first_available_route_name,
    live_replicas,
    newest_revision,
    replica_log,
    replicas_visible,
    revisions_of,
    weighted_backend_ids,
)
from apps.serving.selectors.gateways import (
    GATEWAY_HEARTBEAT_TIMEOUT,
    SnapshotPropagation,
    api_keys_visible,
    gateway_snapshot_content,
    gateway_snapshot_newer_than,
    latest_gateway_snapshot,
    live_gateway_count,
    newest_operations,
    replica_engine_token,
    revision_operations,
    snapshot_propagation,
    valid_api_keys_filter,
)
from apps.serving.selectors.lora_adapters import revision_adapters
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
    "api_keys_visible",
    "card_workloads",
    "deployments_visible",
    "first_available_route_name",
    "gateway_snapshot_content",
    "gateway_snapshot_newer_than",
    "latest_gateway_snapshot",
    "live_gateway_count",
    "live_replicas",
    "newest_operations",
    "newest_revision",
    "replica_engine_token",
    "replica_log",
    "replicas_visible",
    "revision_adapters",
    "revision_operations",
    "revisions_of",
    "snapshot_propagation",
    "usage_totals",
    "usage_visible",
    "valid_api_keys_filter",
    "weighted_backend_ids",
    "workloads_using_cluster",
]
