"""The severity of each fault, and the action that it recommends for its card or node before any guard.

A code's level is what one occurrence is worth. A link that is down for a second is a note; down for half a
minute, nothing should be placed behind it. And what comes and goes all day is not healthy, however harmless each
occurrence is: flapping is answered by isolation, and is over only when few enough of its occurrences are recent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Reason
from controlplane.domain.health.faults import FaultLevel, RepeatRule, SignalOrigin
from controlplane.domain.health.snapshots import (
    DecisionPolicy,
    FaultView,
    HealthAction,
    HealthSnapshot,
    NodeView,
)

_ACTIONS: Mapping[FaultLevel, HealthAction] = {
    FaultLevel.NOTE: HealthAction.NOTE,
    FaultLevel.RESTART_REQUEST: HealthAction.RESTART_REQUEST,
    FaultLevel.RESTART_JOB: HealthAction.RESTART_JOB,
    FaultLevel.RESET_WHEN_IDLE: HealthAction.RESET_WHEN_IDLE,
    FaultLevel.RESET_NOW: HealthAction.RESET_NOW,
    FaultLevel.ISOLATE: HealthAction.ISOLATE_CARD,
}
_REFUSES_NEW_WORK = frozenset({CardState.NO_NEW_WORK, CardState.ISOLATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class RecommendedAction:
    """A recommended action; of the whole node where ``card`` is empty."""

    node: NodeView
    card: str
    action: HealthAction
    reason: str
    began_at: datetime
    #: Uid; empty where no fault is behind it.
    fault: str = ""

    @property
    def order(self) -> tuple[int, datetime, str, str, str]:
        """Most severe first, then oldest; the rest makes the order deterministic."""
        return (-self.action.rank, self.began_at, self.fault, self.node.uid, self.card)


def fault_actions(
    snapshot: HealthSnapshot, policy: DecisionPolicy, at: datetime
) -> Iterator[RecommendedAction]:
    """Actions for faults that are not handled yet, without stale nodes (``stale_node_actions``).

    A fault that has become more severe than its code recommends both actions, in case the stronger one is
    suppressed.
    """
    severities = FaultSeverities(snapshot.faults, snapshot.released, policy, at)
    for fault in snapshot.faults:
        node = snapshot.nodes.get(fault.node)
        # Ended faults count for repetitions, and recommend nothing themselves.
        live = fault.ended_at is None or fault.ended_at >= at - policy.settle
        if node is None or not live or fault.origin == SignalOrigin.SILENCE:
            continue
        for severity in _fault_severities(fault, severities):
            want = _recommended_action(fault, node, severity)
            if not is_fault_handled(snapshot, fault.uid, want.action):
                yield want


def is_fault_handled(snapshot: HealthSnapshot, fault: str, action: HealthAction) -> bool:
    """Whether that much or more was done about the fault already."""
    done = snapshot.decided.get(fault)
    return done is not None and action.rank <= done.rank


def is_action_redundant(node: NodeView, card: str, action: HealthAction) -> bool:
    """Whether nothing is left to do: the card, or each card of the node, is isolated as far already."""
    if action is HealthAction.NOTE:
        return False
    enough = _REFUSES_NEW_WORK if action is HealthAction.RESET_WHEN_IDLE else {CardState.ISOLATED}
    states = [each.state for each in node.cards if not card or each.uid == card]
    return bool(states) and all(state in enough for state in states)


def _fault_severities(fault: FaultView, severities: FaultSeverities) -> tuple[FaultSeverity, ...]:
    if fault.origin == SignalOrigin.JOB:
        reason = Reason(
            "health.fault.job_crash",
            "a crashed job reported {fault}; a card or node becomes suspect only "
            "after crashes of several jobs",
            fault=fault.code,
        )
        return (FaultSeverity(level=FaultLevel.NOTE, reason=reason),)
    if severities.was_released_since(fault):
        reason = Reason(
            "health.fault.before_release",
            "fault {fault} began before the return to service, so it is ignored",
            fault=fault.code,
        )
        return (FaultSeverity(level=FaultLevel.NOTE, reason=reason),)
    plain, now = severities.by_code(fault), severities.of(fault)
    return (now,) if now.level == plain.level else (now, plain)


def _recommended_action(
    fault: FaultView, node: NodeView, severity: FaultSeverity
) -> RecommendedAction:
    action, card = _action_target(_ACTIONS[severity.level], fault.card, node)
    reason = severity.reason
    if is_action_redundant(node, card, action):
        action, card = HealthAction.NOTE, fault.card
        reason = Reason(
            "health.action.already_applied",
            "{reason}; the card or node is already isolated or cordoned",
            reason=severity.reason,
        )
    return RecommendedAction(
        node=node,
        card=card,
        action=action,
        reason=reason,
        began_at=fault.began_at,
        fault=fault.uid,
    )


def _action_target(action: HealthAction, card: str, node: NodeView) -> tuple[HealthAction, str]:
    """The card, or its whole node if it is unknown which card the next workload would use."""
    if action.removes_capacity and node.binds_by_node:
        card = ""
    if action is HealthAction.ISOLATE_CARD and not card:
        action = HealthAction.ISOLATE_NODE
    return action, card


#: Staleness recurs with monitoring: it is no evidence against the node. Crashes are handled by ``suspicions``.
_NEVER_DAMPED = frozenset({SignalOrigin.SILENCE, SignalOrigin.JOB})


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSeverity:
    level: FaultLevel
    #: Why it has that severity.
    reason: str
    #: The severity results from repetitions.
    flaps: bool = False


class FaultSeverities:
    """The grades of the faults of one situation, at one moment."""

    def __init__(
        self,
        faults: Iterable[FaultView],
        released: Mapping[str, datetime],
        policy: DecisionPolicy,
        at: datetime,
    ) -> None:
        self._policy = policy
        self._released = released
        self._at = at
        self._began: dict[tuple[str, str, str, str], list[datetime]] = defaultdict(list)
        for fault in faults:
            self._began[_fault_identity(fault)].append(fault.began_at)

    def was_released_since(self, fault: FaultView) -> bool:
        """Whether its card or node was released after it began, so that it no longer counts."""
        back = self._last_released_at(fault)
        return back is not None and fault.began_at <= back

    def by_code(self, fault: FaultView) -> FaultSeverity:
        """What one short occurrence is worth."""
        return FaultSeverity(
            level=fault.level,
            reason=Reason(
                "health.fault.level",
                "fault {fault} has level L{level}",
                fault=fault.code,
                level=fault.level.value,
            ),
        )

    def of(self, fault: FaultView) -> FaultSeverity:
        """What the fault is worth now."""
        severity = self._lasting_severity(fault) or self.by_code(fault)
        return self._flapping_severity(fault, severity.level) or severity

    def _lasting_severity(self, fault: FaultView) -> FaultSeverity | None:
        lasting, stood = fault.lasting, self._at - fault.began_at
        if lasting is None or fault.ended_at is not None:
            return None
        if lasting.level <= fault.level or stood < lasting.after:
            return None
        return FaultSeverity(
            level=lasting.level,
            reason=Reason(
                "health.fault.level_raised",
                "fault {fault} has been active for {seconds} seconds; after {threshold} "
                "seconds its level is L{level}",
                fault=fault.code,
                seconds=f"{stood.total_seconds():.0f}",
                threshold=f"{lasting.after.total_seconds():.0f}",
                level=lasting.level.value,
            ),
        )

    def _flapping_severity(self, fault: FaultView, level: FaultLevel) -> FaultSeverity | None:
        began = self._began[_fault_identity(fault)]
        limit = self._repeat_limit(fault)
        if limit is None or level is FaultLevel.ISOLATE or len(began) < limit.times:
            return None
        since = self._at - limit.within
        back = self._last_released_at(fault)
        times = sum(each > since and (back is None or each > back) for each in began)
        if times < limit.times:
            return None
        return FaultSeverity(
            level=FaultLevel.ISOLATE,
            reason=Reason(
                "health.fault.flapping",
                "fault {fault} occurred {count} times within {hours} hours; the limit "
                "for isolation is {limit}",
                fault=fault.code,
                count=times,
                hours=f"{limit.within.total_seconds() / 3600:g}",
                limit=limit.times,
            ),
            flaps=True,
        )

    def _repeat_limit(self, fault: FaultView) -> RepeatRule | None:
        if fault.repeat_rule is not None:
            return fault.repeat_rule if fault.repeat_rule.times else None
        if fault.origin in _NEVER_DAMPED or fault.level is FaultLevel.NOTE:
            return None
        return RepeatRule(
            times=self._policy.min_occurrences, within=self._policy.occurrences_within
        )

    def _last_released_at(self, fault: FaultView) -> datetime | None:
        return max(
            (
                self._released[uid]
                for uid in {fault.card, fault.node}
                if uid and uid in self._released
            ),
            default=None,
        )


def _fault_identity(fault: FaultView) -> tuple[str, str, str, str]:
    return (fault.node, fault.card, fault.origin, fault.code)
