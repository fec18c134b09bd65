"""Maintenance rollouts: nodes are isolated, worked on, tested and released, one failure domain after the other.

One node::

    WAITING ─begin─▶ DRAINING ─work─▶ WORKING ─test─▶ TESTING ─finish─▶ DONE
       │                 │               │               │
      skip               └──────────── fail ─────────────┘
       ▼                                 ▼
    SKIPPED                            FAILED

Without a command it goes from DRAINING to TESTING, without a burn-in run directly to DONE. The rollout begins
nodes of one failure domain only, a few at a time, and continues with the next domain when all of it is done.
After a failure no node begins: nodes in progress are completed, the others are not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from controlplane.domain.common.reasons import Parameter, Reason
from controlplane.domain.common.state_machine import StateMachine


class RolloutState(StrEnum):
    RUNNING = "running"
    #: No node begins; nodes in progress continue.
    PAUSED = "paused"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


class RolloutEvent(StrEnum):
    PAUSE = "pause"
    RESUME = "resume"
    CANCEL = "be cancelled"
    FINISH = "finish"
    FAIL = "fail"


ROLLOUT = StateMachine(
    name="rollout",
    initial=RolloutState.RUNNING,
    transitions={
        (RolloutState.RUNNING, RolloutEvent.PAUSE): RolloutState.PAUSED,
        (RolloutState.PAUSED, RolloutEvent.RESUME): RolloutState.RUNNING,
        (RolloutState.RUNNING, RolloutEvent.CANCEL): RolloutState.CANCELLED,
        (RolloutState.PAUSED, RolloutEvent.CANCEL): RolloutState.CANCELLED,
        (RolloutState.RUNNING, RolloutEvent.FINISH): RolloutState.DONE,
        (RolloutState.PAUSED, RolloutEvent.FINISH): RolloutState.DONE,
        (RolloutState.RUNNING, RolloutEvent.FAIL): RolloutState.FAILED,
        (RolloutState.PAUSED, RolloutEvent.FAIL): RolloutState.FAILED,
    },
)


class NodeState(StrEnum):
    WAITING = "waiting"
    DRAINING = "draining"
    WORKING = "at_work"
    TESTING = "testing"
    DONE = "done"
    FAILED = "failed"
    SKIPPED = "skipped"


class NodeEvent(StrEnum):
    BEGIN = "begin"
    WORK = "work"
    TEST = "test"
    FINISH = "finish"
    FAIL = "fail"
    SKIP = "skip"


NODE = StateMachine(
    name="node of a rollout",
    initial=NodeState.WAITING,
    transitions={
        (NodeState.WAITING, NodeEvent.BEGIN): NodeState.DRAINING,
        (NodeState.WAITING, NodeEvent.SKIP): NodeState.SKIPPED,
        (NodeState.WAITING, NodeEvent.FAIL): NodeState.FAILED,
        (NodeState.DRAINING, NodeEvent.WORK): NodeState.WORKING,
        (NodeState.DRAINING, NodeEvent.TEST): NodeState.TESTING,
        (NodeState.DRAINING, NodeEvent.FINISH): NodeState.DONE,
        (NodeState.DRAINING, NodeEvent.FAIL): NodeState.FAILED,
        (NodeState.WORKING, NodeEvent.TEST): NodeState.TESTING,
        (NodeState.WORKING, NodeEvent.FINISH): NodeState.DONE,
        (NodeState.WORKING, NodeEvent.FAIL): NodeState.FAILED,
        (NodeState.TESTING, NodeEvent.FINISH): NodeState.DONE,
        (NodeState.TESTING, NodeEvent.FAIL): NodeState.FAILED,
    },
)
UNDER_WAY = frozenset({NodeState.DRAINING, NodeState.WORKING, NodeState.TESTING})


@dataclass(frozen=True, slots=True, kw_only=True)
class MaintenancePlan:
    """What is done to each node."""

    command: bool
    burn_in: bool
    #: Maximum number of nodes in progress.
    parallel: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutNodeState:
    """One node of a rollout."""

    key: int
    domain: str
    state: NodeState


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObservation:
    """The observed state of a node in progress; None: not yet, or unknown."""

    #: Nothing runs there any more.
    empty: bool = False
    #: How the command ended.
    worked: bool | None = None
    #: How the burn-in ended.
    proved: bool | None = None
    #: A user released it meanwhile, which takes precedence.
    returned: bool = False
    #: What was observed, for display.
    message: str = ""

    @classmethod
    def of(
        cls,
        code: str,
        template: str,
        /,
        *,
        worked: bool | None = None,
        proved: bool | None = None,
        returned: bool = False,
        **params: Parameter,
    ) -> Self:
        """With the ``Reason`` of that code and template as its message."""
        message = Reason(code, template, **params)
        return cls(worked=worked, proved=proved, returned=returned, message=message)


def next_maintenance_nodes(
    members: Sequence[RolloutNodeState], *, state: RolloutState, parallel: int
) -> tuple[int, ...]:
    """Keys of those that begin now: of the first domain, in their order, that is not done."""
    if state is not RolloutState.RUNNING or any(m.state is NodeState.FAILED for m in members):
        return ()
    open_ = [m for m in members if m.state in UNDER_WAY or m.state is NodeState.WAITING]
    if not open_:
        return ()
    domain = open_[0].domain
    # A domain in progress blocks the others, in any order.
    under_way = [m for m in open_ if m.state in UNDER_WAY]
    if under_way:
        domain = under_way[0].domain
    free = max(parallel - len(under_way), 0)
    waiting = [m.key for m in open_ if m.domain == domain and m.state is NodeState.WAITING]
    return tuple(waiting[:free])


def next_node_event(
    state: NodeState, seen: NodeObservation, *, plan: MaintenancePlan
) -> NodeEvent | None:
    """What happens to a node that is under way; None: it stays where it is."""
    if state not in UNDER_WAY:
        return None
    if seen.returned:
        return NodeEvent.FINISH
    if state is NodeState.DRAINING:
        return _event_after_draining(plan) if seen.empty else None
    works = state is NodeState.WORKING
    ended = seen.worked if works else seen.proved
    if ended is None:
        return None
    following = _event_after_work(plan) if works else NodeEvent.FINISH
    return following if ended else NodeEvent.FAIL


def _event_after_draining(plan: MaintenancePlan) -> NodeEvent:
    return NodeEvent.WORK if plan.command else _event_after_work(plan)


def _event_after_work(plan: MaintenancePlan) -> NodeEvent:
    return NodeEvent.TEST if plan.burn_in else NodeEvent.FINISH


def rollout_end_event(members: Sequence[RolloutNodeState]) -> RolloutEvent | None:
    """How a rollout in progress ends; None: not yet."""
    if any(member.state in UNDER_WAY for member in members):
        return None
    if any(member.state is NodeState.FAILED for member in members):
        return RolloutEvent.FAIL
    if any(member.state is NodeState.WAITING for member in members):
        return None
    return RolloutEvent.FINISH
