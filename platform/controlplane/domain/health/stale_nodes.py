"""Stale nodes: those without a heartbeat for longer than the timeout.

One stale node among many is that node's own problem: it is isolated. Many of one cluster at once have a common
cause: the network, an exporter's upgrade, a stalled collector. Then no node is isolated for staleness there, for
as long as it lasts, and one decision says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.domain.common.reasons import Reason
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.recommended_actions import (
    RecommendedAction,
    is_action_redundant,
    is_fault_handled,
)
from controlplane.domain.health.snapshots import (
    DecisionPolicy,
    FaultView,
    HealthAction,
    HealthDecision,
    HealthSnapshot,
    NodeView,
)

#: Why one node of a cluster is named where monitoring is at fault: it represents all of them.
TOGETHER = Reason(
    "health.node.stale_with_cluster", "no heartbeat of the node, like other nodes of the cluster"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class _StaleNode:
    node: NodeView
    fault: FaultView
    #: Time of the last heartbeat.
    since: datetime
    answered: bool


def stale_node_actions(
    snapshot: HealthSnapshot, policy: DecisionPolicy, at: datetime
) -> tuple[tuple[RecommendedAction, ...], tuple[HealthDecision, ...]]:
    """The stale nodes to isolate, and one decision for each cluster that is stale as a whole."""
    sizes: dict[str, int] = defaultdict(int)
    for node in snapshot.nodes.values():
        sizes[node.cluster] += 1
    clusters: dict[str, list[_StaleNode]] = defaultdict(list)
    for silence in _find_stale_nodes(snapshot):
        clusters[silence.node.cluster].append(silence)
    recommended: list[RecommendedAction] = []
    held: list[HealthDecision] = []
    for cluster, silences in sorted(clusters.items()):
        ripe = [
            each
            for each in silences
            if not each.answered and each.since <= at - policy.heartbeat_timeout
        ]
        # Earlier isolated nodes have their own causes, and do not count for the cluster's staleness.
        together = [
            each for each in silences if not each.answered or each.since > at - policy.window
        ]
        if not ripe:
            continue
        if _is_mass_staleness(len(together), sizes[cluster], policy):
            held.append(
                _mass_staleness_decision(
                    ripe, stale=len(together), nodes=sizes[cluster], policy=policy
                )
            )
        else:
            recommended += [_stale_node_isolation(each, at) for each in ripe]
    return tuple(recommended), tuple(held)


def _find_stale_nodes(snapshot: HealthSnapshot) -> Iterator[_StaleNode]:
    """One for each stale node, by its oldest fault."""
    seen: dict[str, _StaleNode] = {}
    for fault in snapshot.faults:
        node = snapshot.nodes.get(fault.node)
        if node is None or fault.origin != SignalOrigin.SILENCE or fault.ended_at is not None:
            continue
        if fault.level is not FaultLevel.ISOLATE:
            continue
        last_seen_at = node.last_seen_at
        if last_seen_at is not None and last_seen_at > fault.reported_at:
            continue
        back = snapshot.released.get(node.uid)
        silence = _StaleNode(
            node=node,
            fault=fault,
            since=last_seen_at or fault.began_at,
            answered=is_fault_handled(snapshot, fault.uid, HealthAction.ISOLATE_NODE)
            or is_action_redundant(node, "", HealthAction.ISOLATE_NODE)
            or (back is not None and fault.began_at <= back),
        )
        if node.uid not in seen or _stale_node_sort_key(silence) < _stale_node_sort_key(
            seen[node.uid]
        ):
            seen[node.uid] = silence
    return iter(seen.values())


def _stale_node_sort_key(silence: _StaleNode) -> tuple[datetime, str]:
    return (silence.fault.began_at, silence.fault.uid)


def _is_mass_staleness(stale: int, nodes: int, policy: DecisionPolicy) -> bool:
    """All of a cluster, or the policy's share and at least two: one node alone is its own matter."""
    return stale == nodes or (stale > 1 and stale * 1000 >= policy.stall_share * nodes)


def _stale_node_isolation(silence: _StaleNode, at: datetime) -> RecommendedAction:
    return RecommendedAction(
        node=silence.node,
        card="",
        action=HealthAction.ISOLATE_NODE,
        reason=Reason(
            "health.node.stale",
            "no heartbeat of the node for {seconds} seconds",
            seconds=f"{(at - silence.since).total_seconds():.0f}",
        ),
        began_at=silence.fault.began_at,
        fault=silence.fault.uid,
    )


def _mass_staleness_decision(
    ripe: Sequence[_StaleNode], *, stale: int, nodes: int, policy: DecisionPolicy
) -> HealthDecision:
    first = min(ripe, key=_stale_node_sort_key)
    return HealthDecision(
        node=first.node.uid,
        card="",
        fault=first.fault.uid,
        action=HealthAction.ISOLATE_NODE,
        reason=TOGETHER,
        held_back=Reason(
            "health.cluster.mass_staleness",
            "{stale} of {nodes} nodes of the cluster are stale at the same time; "
            "from {threshold} % on this counts as a monitoring failure, so no node "
            "is isolated for staleness there",
            stale=stale,
            nodes=nodes,
            threshold=f"{policy.stall_share / 10:g}",
        ),
    )
