"""Decisions about faults: a pure function of open faults, the policy and the time.

::

    faults ──▶ severity (level, duration, flapping) ──┐
    stale nodes ──▶ stall guard ──────────────────────┼─▶ strongest of each card ─▶ whole nodes ─▶ guards ─▶ done
    crashed jobs ──▶ suspicions ──────────────────────┘                                              └─▶ suppressed

A run decides one action for each card, the strongest that is recommended; other faults of that card are handled
in the next run, when the effect of the isolation is known. Nothing is handled twice: ``HealthSnapshot.decided``
says what was done about a fault, and only stronger actions are decided again.

*Guards* suppress automatic decisions: the blast radius, and the number of nodes within a time window. A wrong
rule, an exporter that prints garbage or a driver that misreads its cards can report half a fleet within a
second. Waiting for a user costs one faulty card that stays in use; not waiting may cost the fleet. So rules may
isolate a small share of each pool, on few nodes within a window, the most severe and oldest first. A pool can
be so small that no card is within its share. The first card, or the first node, is allowed anyway: a pool of
four would otherwise never isolate its faulty card. A share of 0 means none at all.

*Stale nodes* are those without a heartbeat for longer than the timeout. One among many is that node's own
problem: it is isolated. Many of one cluster at once have a common cause: the network, an exporter's upgrade, a
stalled collector. Then no node is isolated for staleness there, for as long as it lasts, and one decision says
so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Reason
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.isolations import release_blocker_reason
from controlplane.domain.health.recommended_actions import (
    FaultSeverities,
    RecommendedAction,
    fault_actions,
    is_action_redundant,
    is_fault_handled,
)
from controlplane.domain.health.snapshots import (
    CardView,
    DecisionPolicy,
    FaultView,
    HealthAction,
    HealthDecision,
    HealthSnapshot,
    NodeView,
)
from controlplane.domain.health.suspicions import suspicion_actions


def decide_actions(
    snapshot: HealthSnapshot, policy: DecisionPolicy, at: datetime
) -> tuple[HealthDecision, ...]:
    """Actions to take now, the most severe and oldest first, then suppressed ones, then releases.

    At most one action for each card and one for each node as a whole. What a guard or another system suppresses
    is returned in each run while it is suppressed; a weaker action that is allowed is returned in addition.
    """
    stale, stalls = stale_node_actions(snapshot, policy, at)
    recommended = [
        *fault_actions(snapshot, policy, at),
        *stale,
        *suspicion_actions(snapshot, policy, at),
    ]
    recommended += _escalate_to_whole_nodes(recommended, snapshot, policy, at)
    recommended.sort(key=lambda want: want.order)
    done = tuple(_apply_guard(recommended, DecisionGuard(snapshot, policy, at)))
    returned = tuple(_release_decisions(snapshot, recommended, policy, at))
    return (*done, *stalls, *returned)


def _escalate_to_whole_nodes(
    recommended: Sequence[RecommendedAction],
    snapshot: HealthSnapshot,
    policy: DecisionPolicy,
    at: datetime,
) -> Iterator[RecommendedAction]:
    """Nodes of which so many cards have to stop within the window that it is a matter of the node."""
    stopped: dict[str, set[str]] = defaultdict(set)
    for fault in snapshot.faults:
        answer = snapshot.decided.get(fault.uid, HealthAction.NOTE)
        if fault.card and answer.stops and fault.began_at > at - policy.window:
            stopped[fault.node].add(fault.card)
    asked: dict[str, list[RecommendedAction]] = defaultdict(list)
    for want in recommended:
        if want.card and want.action.stops and not want.node.keeper:
            asked[want.node.uid].append(want)
    for uid, parts in asked.items():
        node = parts[0].node
        here = {card.uid for card in node.cards if card.state is CardState.ISOLATED}
        cards = {want.card for want in parts} | (stopped[uid] & here)
        if len(cards) >= policy.cards_per_node:
            worst = min(parts, key=lambda want: want.order)
            yield RecommendedAction(
                node=node,
                card="",
                action=HealthAction.ISOLATE_NODE,
                reason=Reason(
                    "health.node.cards_isolated",
                    "{count} of the node's {cards} cards had to be isolated within {minutes} "
                    "minutes; the last reason: {reason}",
                    count=len(cards),
                    cards=len(node.cards),
                    minutes=f"{policy.window.total_seconds() / 60:g}",
                    reason=worst.reason,
                ),
                began_at=worst.began_at,
                fault=worst.fault,
            )


def _apply_guard(
    recommended: Iterable[RecommendedAction], guard: DecisionGuard
) -> Iterator[HealthDecision]:
    """The allowed and the suppressed action, at most one of each for a target."""
    done: dict[tuple[str, str], int] = {}
    suppressed: set[tuple[str, str]] = set()
    for want in recommended:
        target, whole = (want.node.uid, want.card), (want.node.uid, "")
        if target in done or want.action.rank <= done.get(whole, -1):
            continue
        followed = bool(want.node.keeper) and want.action.removes_capacity
        held = (
            _externally_managed_reason(want.node.keeper)
            if followed
            else guard.admit(want.node, want.card, want.action)
        )
        if held and target in suppressed:
            continue
        if held:
            suppressed.add(target)
        else:
            done[target] = want.action.rank
        yield HealthDecision(
            node=want.node.uid,
            card=want.card,
            fault=want.fault,
            action=want.action,
            reason=want.reason,
            held_back=held,
            followed=followed,
        )


def _externally_managed_reason(keeper: str) -> str:
    return Reason(
        "health.node.managed_externally",
        "{manager} handles the faults of this node; Ninefold does not perform this action",
        manager=keeper,
    )


def _release_decisions(
    snapshot: HealthSnapshot,
    recommended: Sequence[RecommendedAction],
    policy: DecisionPolicy,
    at: datetime,
) -> Iterator[HealthDecision]:
    """Isolations by rules that have passed a burn-in run since and have no open causes."""
    proved = [each for each in snapshot.isolations if each.proved_at and not each.by_user]
    if not proved:
        return
    severities = FaultSeverities(snapshot.faults, snapshot.released, policy, at)
    unhealthy = {want.node.uid for want in recommended if want.action.removes_capacity}
    for isolation in sorted(proved, key=lambda each: (each.node, each.card)):
        if isolation.node in unhealthy or release_blocker_reason(
            snapshot.faults, isolation=isolation, severities=severities, policy=policy, at=at
        ):
            continue
        yield HealthDecision(
            node=isolation.node,
            card=isolation.card,
            fault="",
            action=HealthAction.RELEASE,
            reason=Reason(
                "health.isolation.burn_in_passed",
                "the burn-in run passed, and no fault occurred since",
            ),
        )


_OUT = frozenset({CardState.NO_NEW_WORK, CardState.ISOLATED})


def isolation_limit(size: int, policy: DecisionPolicy) -> int:
    """Number of cards that rules may have isolated at the same time in a pool of that size."""
    return max(1, size * policy.pool_share // 1000) if policy.pool_share else 0


class DecisionGuard:
    """Admits decisions one by one and counts their effects, in addition to existing isolations."""

    def __init__(self, snapshot: HealthSnapshot, policy: DecisionPolicy, at: datetime) -> None:
        self._policy = policy
        self._touched = {node for node, then in snapshot.recent if then > at - policy.window}
        self._restarted = {node for node, then in snapshot.restarted if then > at - policy.window}
        self._sizes: dict[str, int] = defaultdict(int)
        #: Pool → node → uids of its cards that rules isolated.
        self._out: dict[str, dict[str, set[str]]] = defaultdict(dict)
        for node in snapshot.nodes.values():
            self._sizes[node.pool] += len(node.cards)
            out = {card.uid for card in node.cards if card.state in _OUT and not card.by_user}
            if out:
                self._out[node.pool][node.uid] = out

    def allowed(self, pool: str) -> int:
        """Number of the pool's cards that rules may have isolated at the same time."""
        return isolation_limit(self._sizes[pool], self._policy)

    def admit(self, node: NodeView, card: str, action: HealthAction) -> str:
        """Why it has to wait for a user, with the numbers; empty: it is admitted and counted."""
        if action is HealthAction.RESTART_JOB:
            return self._admit_restart(node)
        if not action.removes_capacity:
            return ""
        wrong = self._too_many_nodes(node) or self._too_many_cards(node, card)
        if not wrong:
            self._touched.add(node.uid)
            taken = self._out[node.pool].setdefault(node.uid, set())
            taken.update(each.uid for each in _newly_isolated_cards(node, card))
        return wrong

    def _admit_restart(self, node: NodeView) -> str:
        limit = self._policy.restarts_per_window
        if node.uid not in self._restarted and len(self._restarted) >= limit:
            return Reason(
                "health.guard.too_many_restarts",
                "the action would restart jobs on {nodes} nodes within {minutes} "
                "minutes; the policy allows {limit}",
                nodes=len(self._restarted) + 1,
                minutes=_format_minutes(self._policy),
                limit=limit,
            )
        self._restarted.add(node.uid)
        return ""

    def _too_many_nodes(self, node: NodeView) -> str:
        limit = self._policy.nodes_per_window
        if node.uid in self._touched or len(self._touched) < limit:
            return ""
        return Reason(
            "health.guard.too_many_nodes",
            "the action would affect {nodes} nodes within {minutes} minutes; the policy "
            "allows {limit}",
            nodes=len(self._touched) + 1,
            minutes=_format_minutes(self._policy),
            limit=limit,
        )

    def _too_many_cards(self, node: NodeView, card: str) -> str:
        out = self._out[node.pool]
        here = out.get(node.uid, set())
        already = sum(map(len, out.values()))
        new = sum(each.uid not in here for each in _newly_isolated_cards(node, card))
        allowed = self.allowed(node.pool)
        # The first card of a pool, or the cards of its first node, are admitted whatever the share.
        first = allowed > 0 and (already == 0 if card else already == len(here))
        if not new or first or already + new <= allowed:
            return ""
        size = self._sizes[node.pool]
        return Reason(
            "health.guard.too_many_cards",
            "the isolation would make {count} of {cards} cards of {pool} unavailable "
            "({percentage}); the policy allows {limit}",
            count=already + new,
            cards=size,
            pool=node.pool,
            percentage=f"{(already + new) / size:.1%}",
            limit=allowed,
        )


def _newly_isolated_cards(node: NodeView, card: str) -> tuple[CardView, ...]:
    """Cards that it would isolate, without those that a user isolated."""
    return tuple(
        each
        for each in node.cards
        if (not card or each.uid == card) and not (each.by_user and each.state in _OUT)
    )


def _format_minutes(policy: DecisionPolicy) -> str:
    return f"{policy.window.total_seconds() / 60:g}"


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
