"""What the scheduler would say to a claim now: one plan with it in line. Nothing is touched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from controlplane.domain.scheduling.cycle import plan
from controlplane.domain.scheduling.plans import Placement, Refusal, Revocation
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.snapshots import ClaimView, RunningView, Snapshot
from controlplane.domain.scheduling.what_if import NewClaim, applied


class Outcome(StrEnum):
    #: It would get its cards at once.
    STARTS = "starts"
    #: Others would be told to stop for it.
    RECLAIMS = "reclaims"
    WAITS = "waits"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopping:
    """A running claim that would be told to stop for it."""

    claim: RunningView
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """What would become of the claim."""

    outcome: Outcome
    #: Where it would go; None unless it starts.
    placement: Placement | None = None
    #: Why it would wait; None if it starts.
    refusal: Refusal | None = None
    stopping: tuple[Stopping, ...] = ()


def dry_run(snapshot: Snapshot, claim: ClaimView, policy: Policy, *, at: datetime) -> DryRun:
    """What would become of one more claim, those that wait already being asked as well.

    :raises UnknownSubject: if there is no such queue in the snapshot.
    :raises ValueError: if it accepts no chip.
    """
    decided = plan(applied(snapshot, [NewClaim(claim=claim)], at=at), policy, at)
    placement = next((one for one in decided.placements if one.claim == claim.uid), None)
    if placement is not None:
        return DryRun(outcome=Outcome.STARTS, placement=placement)
    stopping = _stopping(decided.revocations, snapshot, beneficiary=claim.uid)
    return DryRun(
        outcome=Outcome.RECLAIMS if stopping else Outcome.WAITS,
        refusal=next((one for one in decided.refusals if one.claim == claim.uid), None),
        stopping=stopping,
    )


def _stopping(
    revocations: tuple[Revocation, ...], snapshot: Snapshot, *, beneficiary: str
) -> tuple[Stopping, ...]:
    running = {view.uid: view for view in snapshot.running}
    return tuple(
        Stopping(claim=running[one.claim], reason=one.reason)
        for one in revocations
        if one.beneficiary == beneficiary
    )
