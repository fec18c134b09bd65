"""What each fault asks for, before any guard: an action for its card or node, and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.grades import Grade, Grades
from controlplane.domain.health.signals import Origin
from controlplane.domain.health.situations import Action, FaultView, NodeView, Policy, Situation

_ACTIONS: Mapping[FaultLevel, Action] = {
    FaultLevel.NOTE: Action.NOTE,
    FaultLevel.RESTART_REQUEST: Action.RESTART_REQUEST,
    FaultLevel.RESTART_JOB: Action.RESTART_JOB,
    FaultLevel.RESET_WHEN_IDLE: Action.RESET_WHEN_IDLE,
    FaultLevel.RESET_NOW: Action.RESET_NOW,
    FaultLevel.ISOLATE: Action.ISOLATE_CARD,
}
_TAKES_NOTHING_NEW = frozenset({CardState.NO_NEW_WORK, CardState.ISOLATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Want:
    """An action that something asks for; of the whole node where ``card`` is empty."""

    node: NodeView
    card: str
    action: Action
    reason: str
    began_at: datetime
    #: Uid; empty where no fault is behind it.
    fault: str = ""

    @property
    def order(self) -> tuple[int, datetime, str, str, str]:
        """The worst first, then the oldest; the rest makes it the same each time."""
        return (-self.action.rank, self.began_at, self.fault, self.node.uid, self.card)


def fault_wants(situation: Situation, policy: Policy, at: datetime) -> Iterator[Want]:
    """What the faults ask for that is not answered yet. Silence is not among them (``silences``).

    What has become graver than its code says asks for both, should the graver answer be held back.
    """
    grades = Grades(situation.faults, situation.released, policy, at)
    for fault in situation.faults:
        node = situation.nodes.get(fault.node)
        # What ended long ago counts for what comes back, and asks for nothing itself.
        live = fault.ended_at is None or fault.ended_at >= at - policy.settle
        if node is None or not live or fault.origin == Origin.SILENCE:
            continue
        for grade in _grades(fault, grades):
            want = _want(fault, node, grade)
            if not is_answered(situation, fault.uid, want.action):
                yield want


def is_answered(situation: Situation, fault: str, action: Action) -> bool:
    """Whether that much or more was done about the fault already."""
    done = situation.decided.get(fault)
    return done is not None and action.rank <= done.rank


def is_moot(node: NodeView, card: str, action: Action) -> bool:
    """Whether there is nothing left to do: the card, or each card of the node, is out of use as far already."""
    if action is Action.NOTE:
        return False
    enough = _TAKES_NOTHING_NEW if action is Action.RESET_WHEN_IDLE else {CardState.ISOLATED}
    states = [each.state for each in node.cards if not card or each.uid == card]
    return bool(states) and all(state in enough for state in states)


def _grades(fault: FaultView, grades: Grades) -> tuple[Grade, ...]:
    if fault.origin == Origin.JOB:
        reason = (
            f"a crashed job left {fault.code} behind; crashes of several jobs make a place suspect"
        )
        return (Grade(level=FaultLevel.NOTE, reason=reason),)
    if grades.is_known(fault):
        reason = (
            f"{fault.code} began before this was given back, so it is not held against it again"
        )
        return (Grade(level=FaultLevel.NOTE, reason=reason),)
    plain, now = grades.by_code(fault), grades.of(fault)
    return (now,) if now.level == plain.level else (now, plain)


def _want(fault: FaultView, node: NodeView, grade: Grade) -> Want:
    action, card = _aimed(_ACTIONS[grade.level], fault.card, node)
    reason = grade.reason
    if is_moot(node, card, action):
        action, card = Action.NOTE, fault.card
        reason = f"{grade.reason}; it is out of use already"
    return Want(
        node=node,
        card=card,
        action=action,
        reason=reason,
        began_at=fault.began_at,
        fault=fault.uid,
    )


def _aimed(action: Action, card: str, node: NodeView) -> tuple[Action, str]:
    """At a card, or at its whole node where nobody can say which card the next work would get."""
    if action.takes_out and node.binds_by_node:
        card = ""
    if action is Action.ISOLATE_CARD and not card:
        action = Action.ISOLATE_NODE
    return action, card
