"""The states of an isolated card or node, until it has passed a burn-in run and is released.

::

    DRAINING ──emptied──▶ EMPTY ──test──▶ TESTING ──prove─▶ RETURNED
        │                  ▲ │               │
        │                  │ └──release──▶ RETURNED (by a user, with a reason)
        └──release──▶ …    └──────fail───────┘

While it drains, workloads save and stop. Nothing is placed on it before it is RETURNED. It passes by a burn-in
run after the causes have been absent for a while (``release_blocker_reason``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from enum import StrEnum

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.state_machine import StateMachine
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.recommended_actions import FaultSeverities, FaultSeverity
from controlplane.domain.health.snapshots import DecisionPolicy, FaultView, IsolationView


class IsolationState(StrEnum):
    DRAINING = "draining"
    EMPTY = "empty"
    TESTING = "testing"
    RETURNED = "returned"


class IsolationEvent(StrEnum):
    EMPTIED = "emptied"
    TEST = "test"
    PROVE = "prove"
    FAIL = "fail"
    RELEASE = "release"


ISOLATION = StateMachine(
    name="isolation",
    initial=IsolationState.DRAINING,
    transitions={
        (IsolationState.DRAINING, IsolationEvent.EMPTIED): IsolationState.EMPTY,
        (IsolationState.EMPTY, IsolationEvent.TEST): IsolationState.TESTING,
        (IsolationState.TESTING, IsolationEvent.PROVE): IsolationState.RETURNED,
        (IsolationState.TESTING, IsolationEvent.FAIL): IsolationState.EMPTY,
        (IsolationState.DRAINING, IsolationEvent.RELEASE): IsolationState.RETURNED,
        (IsolationState.EMPTY, IsolationEvent.RELEASE): IsolationState.RETURNED,
        (IsolationState.TESTING, IsolationEvent.RELEASE): IsolationState.RETURNED,
    },
)


def release_blocker_reason(
    faults: Iterable[FaultView],
    *,
    isolation: IsolationView,
    severities: FaultSeverities,
    policy: DecisionPolicy,
    at: datetime,
) -> str:
    """Why it cannot be released yet; empty if no known cause prevents it.

    Check before a burn-in run begins, and again when it has passed: new faults count too. A whole node includes
    the faults of all of its cards, a card its own and those of its node.
    """
    for fault, severity in _faults_blocking_release(
        faults, isolation=isolation, severities=severities
    ):
        if fault.ended_at is None:
            return Reason("health.fault.active", "fault {fault} is still active", fault=fault.code)
        if severity.flaps:
            return severity.reason
        if fault.ended_at > at - policy.settle:
            return Reason(
                "health.fault.recently_ended",
                "fault {fault} ended less than {minutes} minutes ago",
                fault=fault.code,
                minutes=f"{policy.settle.total_seconds() / 60:g}",
            )
        if isolation.proved_at is not None and fault.began_at > isolation.proved_at:
            return Reason(
                "health.fault.after_burn_in",
                "fault {fault} occurred after the burn-in run; another burn-in run must pass",
                fault=fault.code,
            )
    return ""


def burn_in_invalidation_reason(
    faults: Iterable[FaultView], *, isolation: IsolationView, severities: FaultSeverities
) -> str:
    """Why a passed burn-in run no longer counts; empty if it counts, or none was passed.

    A fault that began afterwards requires another run.
    """
    if isolation.proved_at is None:
        return ""
    for fault, _ in _faults_blocking_release(faults, isolation=isolation, severities=severities):
        if fault.began_at > isolation.proved_at:
            return Reason(
                "health.fault.after_burn_in",
                "fault {fault} occurred after the burn-in run; another burn-in run must pass",
                fault=fault.code,
            )
    return ""


def _faults_blocking_release(
    faults: Iterable[FaultView], *, isolation: IsolationView, severities: FaultSeverities
) -> Iterator[tuple[FaultView, FaultSeverity]]:
    """Faults that prevent its release, oldest first."""
    for fault in sorted(faults, key=lambda fault: (fault.began_at, fault.uid)):
        concerns = fault.node == isolation.node and (
            not fault.card or not isolation.card or fault.card == isolation.card
        )
        if not concerns or fault.origin == SignalOrigin.JOB or severities.was_released_since(fault):
            continue
        severity = severities.of(fault)
        if severity.level >= FaultLevel.RESET_WHEN_IDLE:
            yield fault, severity
