"""What need not be planned again: nothing has moved since a plan by which nothing moved.

Claims come all the time, most of them behind others that ask for the same and wait already. Where a plan placed
nobody, stopped nobody and had the time to look at all, and neither nodes, queues, what runs nor those that waited
have changed since, the next plan would say the same of all of them again; and of those that came behind one of
their kind, what it says of that one (``cycle``).

What depends on the time alone, as when room that is kept comes free, may change by itself, and so may which shapes
are the typical ones: a plan stands for a moment only.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from controlplane.domain.scheduling.cycle import plan
from controlplane.domain.scheduling.plans import Plan, Refusals, Refused, SchedulerState
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.snapshots import Snapshot

#: How long a plan by which nothing moved stands.
STANDS = timedelta(seconds=1)


class _Standstill(NamedTuple):
    """A plan by which nothing moved, and what it was made of; the snapshot with those who have come since."""

    snapshot: Snapshot
    policy: Policy
    at: datetime
    plan: Plan


class Planner:
    """Plans one snapshot after the other."""

    def __init__(self) -> None:
        self._last: _Standstill | None = None
        #: Of the plan before.
        self.state = SchedulerState()

    def plan(self, snapshot: Snapshot, policy: Policy, at: datetime) -> Plan:
        """As ``cycle.plan`` has it; at a standstill, of those who came since the last plan only.

        :raises ValueError: if a claim accepts no chip.
        """
        last = self._last
        if last is not None and (refusals := _of_newcomers(last, snapshot, policy, at)) is not None:
            self._last = last._replace(snapshot=snapshot)
            return Plan(refusals=refusals)
        decided = plan(snapshot, policy, at, self.state)
        deferred = self.state.deferred | decided.state.deferred
        self.state = decided.state
        moved = decided.placements or decided.revocations
        still = not (moved or deferred or decided.left_out_any)
        self._last = _Standstill(snapshot, policy, at, decided) if still else None
        return decided


def _of_newcomers(
    last: _Standstill, snapshot: Snapshot, policy: Policy, at: datetime
) -> Refusals | None:
    """Why those wait that have come since; None if it takes a new plan to say what is to be done."""
    before = last.snapshot
    if policy != last.policy or not timedelta(0) <= at - last.at < STANDS:
        return None
    if (before.nodes, before.running) != (snapshot.nodes, snapshot.running):
        return None
    known = len(before.claims)
    if before.queues != snapshot.queues or before.claims != snapshot.claims[:known]:
        return None
    if len(snapshot.claims) == known:
        # Nobody came: somebody asks because time has passed.
        return None
    refused: list[Refused] = []
    for claim in snapshot.claims[known:]:
        verdict = last.plan.verdicts.get(claim.kind)
        if verdict is None or claim.place < verdict.behind:
            return None
        refused.append(Refused(verdict.reason, (claim,)))
    return Refusals(refused)
