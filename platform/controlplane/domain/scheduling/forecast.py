"""When a claim that waits will start, and what it waits for.

The queue is played forward in virtual time: running work ends when it is expected to, and each end gives the real
``plan`` another go. What starts then, and whose cards it gets, is the answer. Nobody knows when work ends, so this
is played three times, with ends that come early, as expected, and late; the forecast is the span of the three::

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

from controlplane.domain.scheduling.cycle import plan
from controlplane.domain.scheduling.plans import Placement, SchedulerState
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.reservations import nodes_of
from controlplane.domain.scheduling.runtimes import RuntimeHistory, runtime_on
from controlplane.domain.scheduling.snapshots import ClaimView, RunningView, Snapshot
from controlplane.domain.scheduling.timelines import Timeline, waits_again


@dataclass(frozen=True, slots=True, kw_only=True)
class Assumptions:
    """What a forecast takes for granted."""

    #: How far it looks ahead.
    horizon: timedelta = timedelta(days=1)
    #: Claims that will come, each at its ``created_at``.
    arrivals: tuple[ClaimView, ...] = ()
    #: What is said of work whose end nobody stated.
    runtimes: RuntimeHistory = field(default_factory=RuntimeHistory)
    #: How far a stated end may be off, as a part of the time until then.
    doubt: float = 0.25
    #: From the word to stop until the cards are free.
    grace: timedelta = timedelta(minutes=2)
    #: Ends that are closer together are taken together; nothing is foretold more exactly.
    grain: timedelta = timedelta(minutes=1)
    #: Most cycles that are played, each of the three times.
    cycles: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When one claim will start."""

    claim: str
    #: As expected; None if not within the horizon.
    starts_at: datetime | None
    #: If work ends early, and late; None if not even then, or not any more, within the horizon.
    earliest: datetime | None = None
    latest: datetime | None = None
    chip: str = ""
    nodes: tuple[str, ...] = ()
    #: Claims whose end gives it its cards, or its turn.
    waits_for: tuple[str, ...] = ()
    #: All of it in words.
    reason: str


class _Happens(StrEnum):
    ARRIVES = "arrives"
    ENDS = "ends"
    STOPS = "stops"


class _Course(NamedTuple):
    """How optimistic one play is."""

    #: Of past runtimes.
    quantile: float
    #: The time until a stated end, as a part of it, in units of ``doubt``.
    late: int


_EARLY, _EXPECTED, _LATE = _Course(0.25, -1), _Course(0.5, 0), _Course(0.75, 1)


class _Event(NamedTuple):
    """What will happen to a claim, unless something else does before."""

    at: datetime
    what: _Happens
    claim: str


class _Start(NamedTuple):
    at: datetime
    placement: Placement
    waited_for: tuple[str, ...]


def forecast(
    snapshot: Snapshot, policy: Policy, *, at: datetime, assumptions: Assumptions | None = None
) -> Mapping[str, Forecast]:
    """For each claim that waits, each arrival, and what is stopped for one, when it will start; by uid."""
    assumed = assumptions or Assumptions()
    early, expected, late = (
        _Play(snapshot, policy, at=at, assumed=assumed, course=course).played()
        for course in (_EARLY, _EXPECTED, _LATE)
    )
    waiting = [claim.uid for claim in (*snapshot.claims, *assumed.arrivals)]
    return {
        uid: _told(uid, early, expected, late, horizon=assumed.horizon)
        for uid in dict.fromkeys((*waiting, *expected.stopped))
    }


class _Play:
    """The queue in virtual time, once."""

    def __init__(
        self,
        snapshot: Snapshot,
        policy: Policy,
        *,
        at: datetime,
        assumed: Assumptions,
        course: _Course,
    ) -> None:
        self._policy = policy
        self._now = at
        self._until = at + assumed.horizon
        self._assumed = assumed
        self._course = course
        self._timeline = Timeline(snapshot)
        self._state = SchedulerState()
        #: What is still to come, as a heap.
        self._events: list[_Event] = []
        self._arrivals = {claim.uid: claim for claim in assumed.arrivals}
        self._awaited = {claim.uid for claim in (*snapshot.claims, *assumed.arrivals)}
        #: The first of each.
        self.starts: dict[str, _Start] = {}
        #: What ran and had to wait again, in the order in which that happened.
        self.stopped: list[str] = []
        self.refusals: dict[str, str] = {}
        #: Who held a card last, of those that ended meanwhile.
        self._left: dict[str, str] = {}
        for claim in assumed.arrivals:
            heappush(self._events, _Event(max(at, claim.created_at), _Happens.ARRIVES, claim.uid))
        for running in snapshot.running:
            if running.revoking:
                # Stopped for somebody it waits again; stopped by its owner it is gone.
                what = _Happens.STOPS if running.revoked_for else _Happens.ENDS
                heappush(self._events, _Event(at + assumed.grace, what, running.uid))
            elif (ends_at := self._expected(running)) is not None:
                heappush(self._events, _Event(ends_at, _Happens.ENDS, running.uid))

    def played(self) -> _Play:
        """Until everybody who waits has started, the horizon, or the bound on cycles."""
        just_ended: tuple[str, ...] = ()
        for _ in range(self._assumed.cycles):
            more = self._cycle(just_ended)
            if not self._awaited:
                break
            if more:
                continue
            if not self._events or self._events[0].at > self._until:
                break
            just_ended = self._advance()
        return self

    def _cycle(self, just_ended: Sequence[str]) -> bool:
        """Plan once; whether it has to be asked again, as it did not come to everybody."""
        decided = plan(self._timeline.snapshot(), self._policy, self._now, self._state)
        self._state = decided.state
        released = [self._timeline.release_nominated(uid) for uid in decided.state.deferred]
        for placement in decided.placements:
            self._start(placement, just_ended)
        for revocation in decided.revocations:
            self._timeline.revoke(revocation)
            heappush(
                self._events,
                _Event(self._now + self._assumed.grace, _Happens.STOPS, revocation.claim),
            )
        for refusal in decided.refusals:
            self.refusals[refusal.claim] = refusal.reason
        return decided.unfinished or any(released)

    def _start(self, placement: Placement, just_ended: Sequence[str]) -> None:
        uid = placement.claim
        claim = self._timeline.claim(uid)
        ends_at = self._end_of(claim, placement)
        cards = self._timeline.start(placement, at=self._now, ends_at=ends_at)
        if ends_at is not None:
            heappush(self._events, _Event(ends_at, _Happens.ENDS, uid))
        if uid in self._awaited:
            self._awaited.discard(uid)
            # Cards that were free all along were not what it waited for; then it was its turn or its queue.
            before = sorted({self._left[card] for card in cards if card in self._left} - {uid})
            start = _Start(self._now, placement, tuple(before) or tuple(just_ended))
            self.starts.setdefault(uid, start)

    def _advance(self) -> tuple[str, ...]:
        """On to the next event, and those right after it; the names of what ended."""
        last = min(self._events[0].at + self._assumed.grain, self._until)
        ended: list[str] = []
        while self._events and self._events[0].at <= last:
            self._now, what, uid = heappop(self._events)
            if what is _Happens.ARRIVES:
                self._timeline.submit(self._arrivals[uid])
            elif running := self._timeline.runs(uid):
                ended.append(uid)
                self._end(running, stopped=what is _Happens.STOPS)
        return tuple(sorted(ended))

    def _end(self, running: RunningView, *, stopped: bool) -> None:
        for card in self._timeline.end(running.uid):
            self._left[card] = running.uid
        if stopped:
            # It will run once more; what was to come of this time is void.
            self._events = [each for each in self._events if each.claim != running.uid]
            heapify(self._events)
            self.stopped.append(running.uid)
            self._awaited.add(running.uid)
            self._timeline.submit(waits_again(running, at=self._now))

    # -- Expectations --

    def _expected(self, running: RunningView) -> datetime | None:
        """When what runs will end; what should have ended long ago is judged by the past, or ends now."""
        if running.ends_at is not None and running.ends_at > self._now:
            return self._now + (running.ends_at - self._now) * self._stretch()
        remaining = self._assumed.runtimes.remaining(
            queue=running.queue,
            cards=running.shape.cards,
            elapsed=self._now - running.admitted_at,
            quantile=self._course.quantile,
        )
        if remaining is not None:
            return self._now + remaining
        return None if running.ends_at is None else self._now

    def _end_of(self, claim: ClaimView, placement: Placement) -> datetime | None:
        runtime = runtime_on(claim, placement.chip)
        if runtime is not None:
            return self._now + runtime * self._stretch()
        remaining = self._assumed.runtimes.remaining(
            queue=claim.queue, cards=claim.shape.cards, quantile=self._course.quantile
        )
        return None if remaining is None else self._now + remaining

    def _stretch(self) -> float:
        return 1 + self._course.late * self._assumed.doubt


def _told(uid: str, early: _Play, expected: _Play, late: _Play, *, horizon: timedelta) -> Forecast:
    plays = (early, expected, late)
    starts = [play.starts[uid].at for play in plays if uid in play.starts]
    earliest = min(starts, default=None)
    latest = max(starts) if len(starts) == len(plays) else None
    start = expected.starts.get(uid)
    if start is None:
        why = expected.refusals.get(uid, "it has not come yet")
        reason = f"not within {_in_words(horizon)}: {why}"
        return Forecast(claim=uid, starts_at=None, earliest=earliest, latest=latest, reason=reason)
    return Forecast(
        claim=uid,
        starts_at=start.at,
        earliest=earliest,
        latest=latest,
        chip=start.placement.chip,
        nodes=nodes_of(start.placement.replicas),
        waits_for=start.waited_for,
        reason=_why(start.waited_for),
    )


def _why(waited_for: Sequence[str]) -> str:
    if not waited_for:
        return "starts now: there is room for it"
    if len(waited_for) == 1:
        return f"starts when {waited_for[0]} ends"
    some = ", ".join(waited_for[:4])
    if len(waited_for) > 4:
        return f"starts when {some} and {len(waited_for) - 4} more have ended"
    return f"starts when {some} have ended"


def _in_words(horizon: timedelta) -> str:
    hours = horizon.total_seconds() / 3600
    return f"the next {hours:.0f} hours" if hours < 48 else f"the next {hours / 24:.0f} days"
