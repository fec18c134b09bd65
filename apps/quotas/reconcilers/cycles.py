"""The scheduling cycle: load a snapshot, plan, commit what still holds.

::

    load       one short transaction
    plan       none; the same function as everywhere (``domain.scheduling``), unless nothing has moved
    release    one transaction: cards nominated for claims whose start was withdrawn ─┐
    admit      a transaction for each batch of placements                             │ each asks first whether
    revoke     one transaction                                                        │ the lease is still ours
    explain    one statement                                                         ─┘

A cycle that dies anywhere leaves rows that the next one starts from: a batch is written as a whole or not at all,
whoever was told to stop knows for whom, and reasons are only words. One cycle runs at a time, by a lease with a
fencing token; a cycle that slept through its lease writes nothing.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from time import perf_counter

from django.db import IntegrityError, transaction

from apps.quotas import selectors, services
from apps.quotas.models import Claim
from apps.quotas.reconcilers.paces import Pace
from apps.quotas.reconcilers.tellings import Teller
from controlplane.domain.claims import ClaimState
from controlplane.domain.scheduling.plans import Placement, Plan
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.snapshots import Snapshot
from controlplane.domain.scheduling.standstill import Planner
from controlplane.persistence.durability import commit_soon
from controlplane.persistence.leases import LoopLease, loop_lease

log = logging.getLogger(__name__)

LEASE = "quotas.cycle"
LEASE_TTL = timedelta(seconds=30)
PACE = Pace()
PLANNER = Planner()
TELLER = Teller()
#: Placements in one transaction.
BATCH = 400
#: Cycles in a row, each with a new snapshot, before the next beat has to call for more.
MOST_ROUNDS = 5
#: Seconds after which a cycle is said to be slow: the beat would call for the next.
BUDGET = 2.0


class _LeaseLost(Exception):
    """Another cycle runs by now."""


@dataclass(slots=True)
class _Round:
    """What one cycle did, and how long its phases took."""

    admitted: int = 0
    revoked: int = 0
    dropped: int = 0
    refused: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    #: Its bounds kept it from claims that may find room: the next one follows at once.
    unfinished: bool = False

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        begun = perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = perf_counter() - begun


def cycle_run(*, policy: Policy, at: datetime) -> int:
    """Run cycles until all that wait have been looked at, unless one runs already; say how many were admitted."""
    services.nominations_prune(at=at)
    if not Claim.objects.filter(state=ClaimState.PENDING).exists():
        return 0
    admitted, begun = 0, perf_counter()
    with loop_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        for number in range(MOST_ROUNDS):
            now = at + timedelta(seconds=perf_counter() - begun) if number else at
            done = _cycle(policy, lease, now)
            admitted += done.admitted
            if not done.unfinished or not lease.renew(ttl=LEASE_TTL):
                break
    return admitted


def _cycle(policy: Policy, lease: LoopLease, at: datetime) -> _Round:
    with _uncollected():
        return _turned(policy, lease, at)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Without the collector of garbage, which would go through the whole snapshot time and again.

    A cycle makes hundreds of thousands of values that nothing refers to in a circle; they go by themselves.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _turned(policy: Policy, lease: LoopLease, at: datetime) -> _Round:
    done = _Round()
    with done.timed("load"), transaction.atomic():
        snapshot, told = selectors.snapshot_and_reasons()
    with done.timed("plan"):
        decided = PLANNER.plan(snapshot, PACE.widened(policy), at)
    with done.timed("commit"):
        try:
            _commit(done, decided, snapshot, policy, lease, at)
            if news := TELLER.news(decided.refusals, told):
                with _held(lease):
                    services.claims_refused(refusals=news)
                    # Reasons are only words, and the next cycle says again what nobody was told.
                    commit_soon()
        except _LeaseLost:
            log.warning("a cycle lost its lease; another goes on", extra={"lease": LEASE})
    PACE.took(sum(done.seconds.values()), policy=policy, unfinished=done.unfinished)
    _tell(done, snapshot)
    return done


def _commit(
    done: _Round,
    decided: Plan,
    snapshot: Snapshot,
    policy: Policy,
    lease: LoopLease,
    at: datetime,
) -> None:
    """Write down what still holds of the plan.

    :raises _LeaseLost: if another cycle runs by now; what was written before stays.
    """
    released = 0
    if decided.state.deferred:
        with _held(lease):
            released = services.nominations_release(claims=decided.state.deferred)
    for first in range(0, len(decided.placements), BATCH):
        outcome = _admit(decided.placements[first : first + BATCH], lease=lease, at=at)
        done.admitted += len(outcome.admitted)
        done.dropped += len(outcome.conflicts)
    if decided.revocations:
        with _held(lease):
            told = services.claims_revoke(
                revocations=decided.revocations,
                queues=snapshot.queues,
                grace=policy.grace,
                at=at,
            )
        done.revoked = len(told)
    done.refused = len(decided.refusals)
    moved = decided.state.untried or done.admitted or done.revoked
    done.unfinished = bool(released or (decided.unfinished and moved))


@contextmanager
def _held(lease: LoopLease) -> Iterator[None]:
    """A transaction in which the lease is ours.

    :raises _LeaseLost: if it is not.
    """
    with transaction.atomic():
        if not lease.check():
            raise _LeaseLost
        yield


def _admit(
    placements: Sequence[Placement], *, lease: LoopLease, at: datetime
) -> services.Admissions:
    """Admit those that still hold. Conflicts are dropped; the next cycle plans anew.

    :raises _LeaseLost: if another cycle runs by now.
    """
    try:
        with _held(lease):
            outcome = services.claims_admit(placements=placements, at=at)
    except IntegrityError as error:
        if len(placements) > 1:
            # One of them would give a card twice; the others need not wait for the next cycle.
            alone = [_admit((each,), lease=lease, at=at) for each in placements]
            return services.Admissions(
                admitted=tuple(uid for each in alone for uid in each.admitted),
                conflicts={uid: why for each in alone for uid, why in each.conflicts.items()},
            )
        outcome = services.Admissions(conflicts={placements[0].claim: str(error)})
    for claim, conflict in outcome.conflicts.items():
        log.info("a placement was dropped", extra={"claim": claim, "conflict": conflict})
    return outcome


def _tell(done: _Round, snapshot: Snapshot) -> None:
    """Leave behind how it went: a line in the log, and the figures of ``/metrics``."""
    services.cycle_measured(seconds=done.seconds)
    total = sum(done.seconds.values())
    told = {
        "waiting": len(snapshot.claims),
        "running": len(snapshot.running),
        "admitted": done.admitted,
        "revoked": done.revoked,
        "refused": done.refused,
        "dropped": done.dropped,
        **{f"{phase}_seconds": round(spent, 4) for phase, spent in done.seconds.items()},
    }
    if total > BUDGET:
        log.warning("a scheduling cycle took longer than its budget", extra=told)
    else:
        log.info("a scheduling cycle ran", extra=told)
