"""Queries about deployments, gateways, API keys, usage and what runs on the cards."""

from apps.serving.selectors.card_workloads import (
    CardWorkload,
    card_workloads,
    workloads_using_cluster,
)
from apps.serving.selectors.deployments import (
    LIVE_REPLICAS,
    OWNER_KIND,
    WEIGHTS_OWNER_KIND,
    WORKLOAD_KIND,
    deployment_events,
    deployment_transitions,
    deployments_visible,
    failed_rollout,
    first_available_route_name,
    live_replicas,
    newest_revision,
    node_weights,
    nodes_of_deployment,
    replica_log,
    replica_nodes,
    replica_state_since,
    replicas_visible,
    revisions_of,
    rollout_replicas,
    routed_revision,
    weight_downloads_visible,
    weighted_backend_ids,
)
from apps.serving.selectors.gateways import (
    GATEWAY_HEARTBEAT_TIMEOUT,
    SnapshotPropagation,
    api_keys_visible,
    gateway_snapshot_content,
    gateway_snapshot_newer_than,
    latest_gateway_snapshot,
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
