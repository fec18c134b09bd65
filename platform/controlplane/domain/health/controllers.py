"""Whether the product's controllers keep up, judged from the records of their runs.

A record says when a run began, when it ended and whether it succeeded. Controllers are level-triggered, so one
run that fails or is late costs little; what counts is how long ago the last successful end was::

        good end            allowed lag                     late
    ───────┼───────────────────────────────────┼──────────────────────────▶ time
           └─ 3 intervals, at least 15 seconds ─┘

A run in progress counts as being on time until it has taken longer than any run should.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

INTERVALS_ALLOWED = 3
#: A busy machine may skip a few turns of a quick loop without anybody noticing.
SHORTEST_ALLOWED = timedelta(seconds=15)
#: Late for less than this is shown on the status page alone: a small machine is late while it is busy.
MIN_REPORTED_LAG = timedelta(minutes=2)
#: What the broker is told no task takes; longer, and another worker would be given the message too.
LONGEST_TURN = timedelta(seconds=300)
FAILURES_ALLOWED = 2


class ControllerHealth(StrEnum):
    ON_TIME = "on_time"
    LATE = "late"
    #: It turns, and its turns end badly.
    FAILING = "failing"
    #: One turn has been under way for longer than any should be.
    STUCK = "stuck"
    #: It has never turned, as after the first start.
    UNSEEN = "unseen"


UNHEALTHY = frozenset({ControllerHealth.LATE, ControllerHealth.FAILING, ControllerHealth.STUCK})


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTimes:
    """What the turns of one loop left behind; None for what has not happened yet."""

    started_at: datetime | None = None
    ended_at: datetime | None = None
    #: The last end that was a good one.
    succeeded_at: datetime | None = None
    #: Bad ends since then.
    failures: int = 0

    @property
    def moved_at(self) -> datetime | None:
        """When a turn last began or ended."""
        return max(filter(None, (self.started_at, self.ended_at)), default=None)

    @property
    def under_way_since(self) -> datetime | None:
        """When the turn that has not ended began; of a killed worker's turn, too."""
        if self.started_at is None:
            return None
        if self.ended_at is None or self.ended_at < self.started_at:
            return self.started_at
        return None


def allowed_lag(interval: timedelta) -> timedelta:
    """How long after its last good end a loop is still on time."""
    return max(interval * INTERVALS_ALLOWED, SHORTEST_ALLOWED)


def controller_lag(times: RunTimes, *, at: datetime) -> timedelta | None:
    """Since the last good end, or the first start where there was none; None if it never turned."""
    since = times.succeeded_at or times.started_at
    return None if since is None else max(at - since, timedelta())


def controller_health(times: RunTimes, *, interval: timedelta, at: datetime) -> ControllerHealth:
    """How the loop does at that time."""
    behind = controller_lag(times, at=at)
    if behind is None:
        return ControllerHealth.UNSEEN
    began = times.under_way_since
    if began is not None and at - began > max(LONGEST_TURN, allowed_lag(interval)):
        return ControllerHealth.STUCK
    overdue = behind > allowed_lag(interval)
    if times.failures > FAILURES_ALLOWED or (overdue and times.failures):
        # Old failures say nothing of a loop that has stopped turning since.
        quiet = times.ended_at is not None and at - times.ended_at > allowed_lag(interval)
        return ControllerHealth.LATE if quiet and began is None else ControllerHealth.FAILING
    if overdue and began is None:
        return ControllerHealth.LATE
    return ControllerHealth.ON_TIME


def needs_attention(health: ControllerHealth, behind: timedelta | None) -> bool:
    """Whether operators are told on every page, without having asked."""
    if health is ControllerHealth.LATE:
        return behind is not None and behind > MIN_REPORTED_LAG
    return health in UNHEALTHY


class StalledComponent(StrEnum):
    """Which part keeps the controllers from running."""

    NONE = "none"
    #: Messages wait and nobody takes them.
    WORKER = "worker"
    #: Nobody sends messages.
    BEAT = "beat"
    #: Some controllers run and others do not: it is not the processes.
    CONTROLLERS = "controllers"
    #: Nothing has ever turned, or nobody can say what waits.
    UNKNOWN = "unknown"


def find_stalled_component(
    controllers: Iterable[tuple[timedelta, RunTimes]], *, waiting: int | None, at: datetime
) -> StalledComponent:
    """Who is to blame for the state of the loops, each given by its interval and turns.

    ``waiting`` counts the messages that no worker has taken; None where the broker does not answer.
    """
    seen = [(interval, times) for interval, times in controllers if times.moved_at is not None]
    # Slow loops say nothing yet when the quick ones have long been silent. A turn that is under way
    # may be that of a worker that is no more.
    quick = [
        times.moved_at
        for interval, times in seen
        if times.moved_at is not None and allowed_lag(interval) == SHORTEST_ALLOWED
    ]
    if any(at - moved_at <= SHORTEST_ALLOWED for moved_at in quick):
        healths = {controller_health(times, interval=interval, at=at) for interval, times in seen}
        return StalledComponent.CONTROLLERS if healths & UNHEALTHY else StalledComponent.NONE
    if waiting is None:
        return StalledComponent.UNKNOWN
    if waiting:
        return StalledComponent.WORKER
    return StalledComponent.BEAT if seen else StalledComponent.UNKNOWN
