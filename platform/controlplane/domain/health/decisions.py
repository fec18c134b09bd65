"""Decisions about faults: a pure function of open faults, the policy and the time.

::

    faults ──▶ severity (level, duration, flapping) ──┐
    stale nodes ──▶ stall guard ──────────────────────┼─▶ strongest of each card ─▶ whole nodes ─▶ guards ─▶ done
    crashed jobs ──▶ suspicions ──────────────────────┘                                              └─▶ suppressed

A run decides one action for each card, the strongest that is recommended; other faults of that card are handled
in the next run, when the effect of the isolation is known. Nothing is handled twice: ``HealthSnapshot.decided``
says what was done about a fault, and only stronger actions are decided again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Reason
from controlplane.domain.health.guards import DecisionGuard
from controlplane.domain.health.isolations import release_blocker_reason
from controlplane.domain.health.recommended_actions import (
    FaultSeverities,
    RecommendedAction,
    fault_actions,
)
from controlplane.domain.health.snapshots import (
    AttemptRunView,
    CardView,
    CrashOrigin,
    DecisionPolicy,
    FaultView,
    HealthAction,
    HealthDecision,
    HealthSnapshot,
    IsolationView,
    NodeView,
)
from controlplane.domain.health.stale_nodes import stale_node_actions
from controlplane.domain.health.suspicions import suspicion_actions

__all__ = [
    "AttemptRunView",
    "CardView",
    "CrashOrigin",
    "DecisionPolicy",
    "FaultView",
    "HealthAction",
    "HealthDecision",
    "HealthSnapshot",
    "IsolationView",
    "NodeView",
    "decide_actions",
]


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
