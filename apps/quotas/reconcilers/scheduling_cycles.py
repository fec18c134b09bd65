"""The scheduling cycle: load a snapshot, plan, commit what still holds.

::

    load       one short transaction
    plan       none; the same function as everywhere (``domain.scheduling``), unless nothing has moved
    release    one transaction: cards nominated for claims whose start was withdrawn ─┐
    admit      a transaction for each batch of placements                             │ each first checks that
    revoke     one transaction                                                        │ the lease is still held
    explain    one statement                                                         ─┘

A cycle that is killed anywhere leaves rows that the next one starts from: a batch is committed as a whole or not
at all, an evicted claim records its beneficiary, and pending reasons are informational. One cycle runs at a time,
by a lease with a fencing token; a cycle whose lease expired writes nothing.
"""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import monotonic, perf_counter

from django.db import IntegrityError, transaction

from apps.quotas import selectors, services
from apps.quotas.models import Claim, CyclePhase
from apps.quotas.selectors.claim_snapshots import PendingReasons
from controlplane.domain.quotas.claims import NOT_EVALUATED_REASON, ClaimState
from controlplane.domain.scheduling.cycle import plan_incrementally
from controlplane.domain.scheduling.plans import (
    ClaimPlacement,
    PendingClaim,
    PendingClaims,
    PendingReasonCode,
    SchedulerState,
    SchedulingPlan,
    SchedulingPolicy,
)
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot
from controlplane.persistence.leases import LeaderLease, hold_leader_lease
from controlplane.persistence.transactions import commit_asynchronously

log = logging.getLogger(__name__)


#: Upper bound of ``CycleBudget.factor``.
MAX_FACTOR = 10.0


@dataclass(slots=True)
class CycleBudget:
    """Adapts the size of a cycle to measured durations: how much it does, not what it decides."""

    #: Multiplier of the policy's bounds.
    factor: float = 1.0

    def scaled(self, policy: SchedulingPolicy) -> SchedulingPolicy:
        """The policy with the bounds for the next cycle."""
        if policy.cycle is None or self.factor <= 1.0:
            return policy
        return replace(
            policy,
            placements_per_cycle=round(policy.placements_per_cycle * self.factor),
            attempts_per_cycle=round(policy.attempts_per_cycle * self.factor),
        )

    def record(self, seconds: float, *, policy: SchedulingPolicy, unfinished: bool) -> None:
        """Record the duration of a cycle; scale the next one to the target if claims were left."""
        if policy.cycle is None:
            return
        if unfinished or seconds > policy.cycle.total_seconds():
            # At most doubled at once: the fixed cost of a cycle is not known.
            fits = min(2.0, policy.cycle.total_seconds() / max(seconds, 1e-3))
            self.factor = min(MAX_FACTOR, max(1.0, self.factor * fits))


# Whenever a card is allocated, the numbers in the reasons of all pending claims change. To write them all would
# take longer than planning, and the next cycle reads again what was written. So claims without a reason come
# first, and claims whose reason changed are updated round-robin.

#: First reasons per second, and the maximum burst.
MAX_NEW_PER_SECOND = 1000
#: Minimum first reasons per cycle, however fast cycles follow each other.
MIN_NEW_PER_CYCLE = 50
#: Changed reasons per second.
MAX_CHANGED_PER_SECOND = 250
#: Changed reasons per write: fewer are not worth a transaction.
MIN_CHANGED_BATCH, MAX_CHANGED_BATCH = 100, 500


class ReasonBudget:
    """A token bucket: refills at a rate, up to a maximum."""

    def __init__(self, *, per_second: float, at_once: int) -> None:
        self._per_second = per_second
        self._at_once = at_once
        self._tokens: float = at_once
        #: In seconds of a monotonic clock.
        self._counted_at = monotonic()

    def available(self) -> int:
        """Tokens that are available now."""
        now = monotonic()
        more = (now - self._counted_at) * self._per_second
        self._tokens = min(self._at_once, self._tokens + more)
        self._counted_at = now
        return round(self._tokens)

    def use(self, count: int) -> None:
        self._tokens = max(0.0, self._tokens - count)


class ReasonThrottle:
    """Selects the reasons to write; has no influence on scheduling decisions."""

    def __init__(self) -> None:
        self._new = ReasonBudget(per_second=MAX_NEW_PER_SECOND, at_once=MAX_NEW_PER_SECOND)
        self._changed = ReasonBudget(per_second=MAX_CHANGED_PER_SECOND, at_once=MAX_CHANGED_BATCH)
        #: Index of the next refusal in the round-robin.
        self._next = 0

    def due(self, refusals: PendingClaims, reasons: PendingReasons) -> list[PendingClaim]:
        """Reasons that differ from the stored ones, within the rate limit."""
        return self._new_reasons(refusals, reasons) + self._changed_reasons(refusals, reasons)

    def _new_reasons(self, refusals: PendingClaims, reasons: PendingReasons) -> list[PendingClaim]:
        if not reasons.unexplained:
            return []
        # "Not considered yet" is the initial reason.
        considered = (
            group
            for group in refusals.groups
            if group.reason.code is not PendingReasonCode.NOT_EVALUATED
        )
        due = [
            group.reason.refuse(claim.uid)
            for group in considered
            for claim in group.claims
            if claim.uid in reasons.unexplained
        ][: max(MIN_NEW_PER_CYCLE, self._new.available())]
        self._new.use(len(due))
        return due

    def _changed_reasons(
        self, refusals: PendingClaims, reasons: PendingReasons
    ) -> list[PendingClaim]:
        due: list[PendingClaim] = []
        most = self._changed.available()
        # In a no-op cycle only newly pending claims are refused again.
        if most < MIN_CHANGED_BATCH or len(refusals) <= len(reasons.unexplained):
            return due
        stored = reasons.by_claim()
        for passed, (reason, claim) in enumerate(refusals.around(self._next), start=1):
            if reason.code is PendingReasonCode.NOT_EVALUATED:
                # The reason of its last search is more useful.
                continue
            if stored.get(claim.uid, reason.reason) not in (reason.reason, NOT_EVALUATED_REASON):
                due.append(reason.refuse(claim.uid))
                if len(due) == most:
                    self._next = (self._next + passed) % len(refusals)
                    break
        self._changed.use(len(due))
        return due


@dataclass(slots=True)
class SchedulerProcess:
    """What the scheduler of one process passes from cycle to cycle."""

    cycle_state: SchedulerState = field(default_factory=SchedulerState)
    budget: CycleBudget = field(default_factory=CycleBudget)
    reasons: ReasonThrottle = field(default_factory=ReasonThrottle)


LEASE = "quotas.cycle"
LEASE_TTL = timedelta(seconds=30)
SCHEDULER = SchedulerProcess()
#: Placements per transaction.
BATCH = 400
#: Consecutive cycles, each with a new snapshot, before the next scheduled run.
MAX_CYCLES_PER_RUN = 5
#: Cycles that take longer are logged as slow: the interval of scheduled runs.
SLOW_CYCLE_SECONDS = 2.0


class _CycleLeaseLost(Exception):
    """Another process holds the lease."""


@dataclass(slots=True)
class _CycleResult:
    """Result of one cycle, and the duration of its phases."""

    admitted: int = 0
    revoked: int = 0
    dropped: int = 0
    refused: int = 0
    seconds: dict[str, float] = field(default_factory=dict)
    #: Its bounds kept it from claims that may be placeable: run the next one at once.
    unfinished: bool = False

    @contextmanager
    def timed(self, phase: str) -> Iterator[None]:
        begun = perf_counter()
        try:
            yield
        finally:
            self.seconds[phase] = perf_counter() - begun


def cycle_run(*, policy: SchedulingPolicy, at: datetime) -> int:
    """Run cycles until all pending claims have been considered; return the number of admitted claims.

    Does nothing if another process holds the lease.
    """
    services.nominations_prune(at=at)
    if not Claim.objects.filter(state=ClaimState.PENDING).exists():
        return 0
    admitted, begun = 0, perf_counter()
    with hold_leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return 0
        for number in range(MAX_CYCLES_PER_RUN):
            now = at + timedelta(seconds=perf_counter() - begun) if number else at
            done = _run_cycle(policy, lease, now)
            admitted += done.admitted
            if not done.unfinished or not lease.renew(ttl=LEASE_TTL):
                break
    return admitted


def _run_cycle(policy: SchedulingPolicy, lease: LeaderLease, at: datetime) -> _CycleResult:
    with _gc_disabled():
        return _run_phases(policy, lease, at)


@contextmanager
def _gc_disabled() -> Iterator[None]:
    """Disable garbage collection, which would traverse the whole snapshot repeatedly.

    A cycle creates hundreds of thousands of objects without reference cycles; reference counting frees them.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _run_phases(policy: SchedulingPolicy, lease: LeaderLease, at: datetime) -> _CycleResult:
    done = _CycleResult()
    with done.timed("load"), transaction.atomic():
        snapshot, reasons = selectors.snapshot_and_pending_reasons()
    with done.timed("plan"):
        decided = plan_incrementally(
            snapshot, SCHEDULER.budget.scaled(policy), SCHEDULER.cycle_state, at
        )
        SCHEDULER.cycle_state = decided.state
    with done.timed("commit"):
        try:
            _commit_plan(done, decided, snapshot, policy, lease, at)
            if due := SCHEDULER.reasons.due(decided.pending, reasons):
                with _lease_transaction(lease):
                    services.claims_reasons_update(refusals=due)
                    # Reasons are informational, and the next cycle writes what is lost.
                    commit_asynchronously()
        except _CycleLeaseLost:
            log.warning("a cycle lost its lease; another goes on", extra={"lease": LEASE})
    SCHEDULER.budget.record(sum(done.seconds.values()), policy=policy, unfinished=done.unfinished)
    _log_cycle_result(done, snapshot)
    return done


def _commit_plan(
    done: _CycleResult,
    decided: SchedulingPlan,
    snapshot: SchedulingSnapshot,
    policy: SchedulingPolicy,
    lease: LeaderLease,
    at: datetime,
) -> None:
    """Commit what is still valid of the plan.

    :raises _CycleLeaseLost: if another process holds the lease; what was committed before stays.
    """
    released = 0
    if decided.state.deferred:
        with _lease_transaction(lease):
            released = services.nominations_delete(claims=decided.state.deferred)
    for first in range(0, len(decided.placements), BATCH):
        outcome = _admit_placements(decided.placements[first : first + BATCH], lease=lease, at=at)
        done.admitted += len(outcome.admitted)
        done.dropped += len(outcome.conflicts)
    if decided.revocations:
        with _lease_transaction(lease):
            revoked = services.claims_revoke(
                revocations=decided.revocations,
                queues=snapshot.queues,
                grace=policy.grace,
                at=at,
            )
        done.revoked = len(revoked)
    done.refused = len(decided.pending)
    moved = decided.state.untried or done.admitted or done.revoked
    done.unfinished = bool(released or (decided.unfinished and moved))


@contextmanager
def _lease_transaction(lease: LeaderLease) -> Iterator[None]:
    """A transaction in which this process holds the lease.

    :raises _CycleLeaseLost: if it does not.
    """
    with transaction.atomic():
        if not lease.check():
            raise _CycleLeaseLost
        yield


def _admit_placements(
    placements: Sequence[ClaimPlacement], *, lease: LeaderLease, at: datetime
) -> services.AdmissionOutcomes:
    """Admit the placements that are still valid. Conflicting ones are dropped; the next cycle plans again.

    :raises _CycleLeaseLost: if another process holds the lease.
    """
    try:
        with _lease_transaction(lease):
            outcome = services.claims_admit(placements=placements, at=at)
    except IntegrityError as error:
        if len(placements) > 1:
            # One of them would allocate a card twice; the others need not wait for the next cycle.
            alone = [_admit_placements((each,), lease=lease, at=at) for each in placements]
            return services.AdmissionOutcomes(
                admitted=tuple(uid for each in alone for uid in each.admitted),
                conflicts={uid: reason for each in alone for uid, reason in each.conflicts.items()},
            )
        outcome = services.AdmissionOutcomes(conflicts={placements[0].claim: str(error)})
    for claim, conflict in outcome.conflicts.items():
        log.info("a placement was dropped", extra={"claim": claim, "conflict": conflict})
    return outcome


def _log_cycle_result(done: _CycleResult, snapshot: SchedulingSnapshot) -> None:
    """Log the cycle, and record its durations for ``/metrics``."""
    CyclePhase.record_cycle(seconds=done.seconds)
    total = sum(done.seconds.values())
    fields = {
        "waiting": len(snapshot.claims),
        "running": len(snapshot.running),
        "admitted": done.admitted,
        "revoked": done.revoked,
        "refused": done.refused,
        "dropped": done.dropped,
        **{f"{phase}_seconds": round(spent, 4) for phase, spent in done.seconds.items()},
    }
    if total > SLOW_CYCLE_SECONDS:
        log.warning("a scheduling cycle took longer than its budget", extra=fields)
    else:
        log.info("a scheduling cycle ran", extra=fields)
