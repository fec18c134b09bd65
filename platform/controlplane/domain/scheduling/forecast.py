"""Forecasts: when a pending claim will start, and which claims have to end before.

The queues are simulated in virtual time: running claims end when they are expected to, and after each end the
real ``plan`` runs again. What starts then, and whose cards it gets, is the forecast. As ends are uncertain,
three simulations run, with ends that come early, as expected, and late; the forecast is the span of the three::

    ends early      ├── a ──┤ claim starts
    as expected     ├──── a ────┤ claim starts
    late            ├─────── a ───────┤ claim starts
                            earliest   starts_at   latest
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from controlplane.domain.common.reasons import Reason
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import (
    ClaimPlacement,
    SchedulerState,
    SchedulingPolicy,
    nodes_of_replicas,
)
from controlplane.domain.scheduling.runtime_estimates import (
    RuntimeHistory,
    expected_runtime_on_chip,
)
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator, requeued_claim
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, RunningClaim, SchedulingSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastAssumptions:
    #: Length of the forecast.
    horizon: timedelta = timedelta(days=1)
    #: Claims that will come, each at its ``created_at``.
    arrivals: tuple[ClaimSnapshot, ...] = ()
    #: Runtimes of workloads without a stated end.
    runtimes: RuntimeHistory = field(default_factory=RuntimeHistory)
    #: How far a stated end may be off, as a part of the time until then.
    uncertainty: float = 0.25
    #: From the eviction until the cards are free.
    grace: timedelta = timedelta(minutes=2)
    #: Resolution: ends that are closer together are processed together.
    resolution: timedelta = timedelta(minutes=1)
    #: Most cycles that are played, each of the three times.
    cycles: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictedStartTime:
    claim: str
    #: As expected; None if not within the horizon.
    starts_at: datetime | None
    #: If work ends early, and late; None if not even then, or not any more, within the horizon.
    earliest: datetime | None = None
    latest: datetime | None = None
    chip: str = ""
    nodes: tuple[str, ...] = ()
    #: Claims whose end frees its cards, or moves it to the front.
    blocked_by: tuple[str, ...] = ()
    #: The complete message.
    reason: str


class _EventKind(StrEnum):
    ARRIVES = "arrives"
    ENDS = "ends"
    STOPS = "stops"


class _Scenario(NamedTuple):
    """How optimistic one play is."""

    #: Of past runtimes.
    quantile: float
    #: The time until a stated end, as a part of it, in units of ``doubt``.
    late: int


_EARLY, _EXPECTED, _LATE = _Scenario(0.25, -1), _Scenario(0.5, 0), _Scenario(0.75, 1)


class _SimulatedEvent(NamedTuple):
    """What will happen to a claim, unless something else does before."""

    at: datetime
    what: _EventKind
    claim: str


class _PredictedStart(NamedTuple):
    at: datetime
    placement: ClaimPlacement
    waited_for: tuple[str, ...]


def forecast_starts(
    snapshot: SchedulingSnapshot,
    policy: SchedulingPolicy,
    *,
    at: datetime,
    assumptions: ForecastAssumptions | None = None,
) -> Mapping[str, PredictedStartTime]:
    """Return, by uid, when each pending claim, each arrival and each claim evicted for one will start."""
    assumed = assumptions or ForecastAssumptions()
    early, expected, late = (
        _QueueSimulation(snapshot, policy, at=at, assumed=assumed, scenario=scenario).run()
        for scenario in (_EARLY, _EXPECTED, _LATE)
    )
    waiting = [claim.uid for claim in (*snapshot.claims, *assumed.arrivals)]
    return {
        uid: _combine_predicted_starts(uid, early, expected, late, horizon=assumed.horizon)
        for uid in dict.fromkeys((*waiting, *expected.stopped))
    }


class _QueueSimulation:
    """One simulation of the queues in virtual time."""

    def __init__(
        self,
        snapshot: SchedulingSnapshot,
        policy: SchedulingPolicy,
        *,
        at: datetime,
        assumed: ForecastAssumptions,
        scenario: _Scenario,
    ) -> None:
        self._policy = policy
        self._now = at
        self._until = at + assumed.horizon
        self._assumed = assumed
        self._scenario = scenario
        self._timeline = SnapshotSimulator(snapshot)
        self._state = SchedulerState()
        #: What is still to come, as a heap.
        self._events: list[_SimulatedEvent] = []
        self._arrivals = {claim.uid: claim for claim in assumed.arrivals}
        self._awaited = {claim.uid for claim in (*snapshot.claims, *assumed.arrivals)}
        #: The first of each.
        self.starts: dict[str, _PredictedStart] = {}
        #: Evicted claims, in order.
        self.stopped: list[str] = []
        self.pending: dict[str, str] = {}
        #: Who held a card last, of those that ended meanwhile.
        self._left: dict[str, str] = {}
        for claim in assumed.arrivals:
            heappush(
                self._events,
                _SimulatedEvent(max(at, claim.created_at), _EventKind.ARRIVES, claim.uid),
            )
        for running in snapshot.running:
            if running.revoking:
                # Evicted for a claim it is requeued; stopped by its owner it is gone.
                what = _EventKind.STOPS if running.revoked_for else _EventKind.ENDS
                heappush(self._events, _SimulatedEvent(at + assumed.grace, what, running.uid))
            elif (ends_at := self._expected_end(running)) is not None:
                heappush(self._events, _SimulatedEvent(ends_at, _EventKind.ENDS, running.uid))

    def run(self) -> _QueueSimulation:
        """Run until every pending claim has started, the horizon, or the limit of cycles."""
        just_ended: tuple[str, ...] = ()
        for _ in range(self._assumed.cycles):
            more = self._run_cycle(just_ended)
            if not self._awaited:
                break
            if more:
                continue
            if not self._events or self._events[0].at > self._until:
                break
            just_ended = self._advance_to_next_event()
        return self

    def _run_cycle(self, just_ended: Sequence[str]) -> bool:
        """Plan once; return whether another cycle is needed, as not all claims were evaluated."""
        decided = plan_cycle(self._timeline.snapshot(), self._policy, self._now, self._state)
        self._state = decided.state
        released = [self._timeline.release_nominated(uid) for uid in decided.state.deferred]
        for placement in decided.placements:
            self._start_claim(placement, just_ended)
        for revocation in decided.revocations:
            self._timeline.revoke(revocation)
            heappush(
                self._events,
                _SimulatedEvent(
                    self._now + self._assumed.grace, _EventKind.STOPS, revocation.claim
                ),
            )
        for refusal in decided.pending:
            self.pending[refusal.claim] = refusal.reason
        return decided.unfinished or any(released)

    def _start_claim(self, placement: ClaimPlacement, just_ended: Sequence[str]) -> None:
        uid = placement.claim
        claim = self._timeline.claim(uid)
        ends_at = self._simulated_end_of_start(claim, placement)
        cards = self._timeline.start(placement, at=self._now, ends_at=ends_at)
        if ends_at is not None:
            heappush(self._events, _SimulatedEvent(ends_at, _EventKind.ENDS, uid))
        if uid in self._awaited:
            self._awaited.discard(uid)
            # Cards that were free all along were not the cause; then it was the order of its queue.
            before = sorted({self._left[card] for card in cards if card in self._left} - {uid})
            start = _PredictedStart(self._now, placement, tuple(before) or tuple(just_ended))
            self.starts.setdefault(uid, start)

    def _advance_to_next_event(self) -> tuple[str, ...]:
        """Advance to the next event and those right after it; return the uids of claims that ended."""
        last = min(self._events[0].at + self._assumed.resolution, self._until)
        ended: list[str] = []
        while self._events and self._events[0].at <= last:
            self._now, what, uid = heappop(self._events)
            if what is _EventKind.ARRIVES:
                self._timeline.submit(self._arrivals[uid])
            elif running := self._timeline.runs(uid):
                ended.append(uid)
                self._end_claim(running, stopped=what is _EventKind.STOPS)
        return tuple(sorted(ended))

    def _end_claim(self, running: RunningClaim, *, stopped: bool) -> None:
        for card in self._timeline.end(running.uid):
            self._left[card] = running.uid
        if stopped:
            # It will run once more; what was to come of this time is void.
            self._events = [each for each in self._events if each.claim != running.uid]
            heapify(self._events)
            self.stopped.append(running.uid)
            self._awaited.add(running.uid)
            self._timeline.submit(requeued_claim(running, at=self._now))

    # -- Expectations --

    def _expected_end(self, running: RunningClaim) -> datetime | None:
        """Return when a running claim will end; an overdue one is judged by past runtimes, or ends now."""
        if running.ends_at is not None and running.ends_at > self._now:
            return self._now + (running.ends_at - self._now) * self._overdue_factor()
        remaining = self._assumed.runtimes.remaining(
            queue=running.queue,
            cards=running.shape.cards,
            elapsed=self._now - running.admitted_at,
            quantile=self._scenario.quantile,
        )
        if remaining is not None:
            return self._now + remaining
        return None if running.ends_at is None else self._now

    def _simulated_end_of_start(
        self, claim: ClaimSnapshot, placement: ClaimPlacement
    ) -> datetime | None:
        runtime = expected_runtime_on_chip(claim, placement.chip)
        if runtime is not None:
            return self._now + runtime * self._overdue_factor()
        remaining = self._assumed.runtimes.remaining(
            queue=claim.queue, cards=claim.shape.cards, quantile=self._scenario.quantile
        )
        return None if remaining is None else self._now + remaining

    def _overdue_factor(self) -> float:
        return 1 + self._scenario.late * self._assumed.uncertainty


def _combine_predicted_starts(
    uid: str,
    early: _QueueSimulation,
    expected: _QueueSimulation,
    late: _QueueSimulation,
    *,
    horizon: timedelta,
) -> PredictedStartTime:
    runs = (early, expected, late)
    starts = [run_of.starts[uid].at for run_of in runs if uid in run_of.starts]
    earliest = min(starts, default=None)
    latest = max(starts) if len(starts) == len(runs) else None
    start = expected.starts.get(uid)
    if start is None:
        cause = expected.pending.get(uid, "it has not come yet")
        reason = Reason(
            "forecast.start.not_within_horizon",
            "not within {horizon}: {reason}",
            horizon=_horizon_reason(horizon),
            reason=cause,
        )
        return PredictedStartTime(
            claim=uid, starts_at=None, earliest=earliest, latest=latest, reason=reason
        )
    return PredictedStartTime(
        claim=uid,
        starts_at=start.at,
        earliest=earliest,
        latest=latest,
        chip=start.placement.chip,
        nodes=nodes_of_replicas(start.placement.replicas),
        blocked_by=start.waited_for,
        reason=_start_forecast_reason(start.waited_for),
    )


def _start_forecast_reason(waited_for: Sequence[str]) -> str:
    if not waited_for:
        return Reason("forecast.start.now", "starts now: enough capacity is free")
    if len(waited_for) == 1:
        return Reason("forecast.start.after_claim", "starts when {claim} ends", claim=waited_for[0])
    some = ", ".join(waited_for[:4])
    if len(waited_for) > 4:
        return Reason(
            "forecast.start.after_many_claims",
            "starts when {claims} and {more} more claims have ended",
            claims=some,
            more=len(waited_for) - 4,
        )
    return Reason("forecast.start.after_claims", "starts when {claims} have ended", claims=some)


def _horizon_reason(horizon: timedelta) -> str:
    hours = horizon.total_seconds() / 3600
    if hours < 48:
        return Reason("forecast.horizon.hours", "the next {hours} hours", hours=round(hours))
    return Reason("forecast.horizon.days", "the next {days} days", days=round(hours / 24))
