"""Health of the product's controllers, from the records of their runs.

A record says when a run began, when it ended and whether it succeeded. Controllers are level-triggered, so one
run that fails or is late costs little; what counts is the time since the last successful end::

      successful end       allowed lag                     late
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
#: A busy machine may skip a few runs of a frequent controller without any effect.
SHORTEST_ALLOWED = timedelta(seconds=15)
#: Late for less than this is shown on the status page alone: a small machine is late while it is busy.
MIN_REPORTED_LAG = timedelta(minutes=2)
#: The visibility timeout of the broker: a longer task would be delivered to another worker too.
LONGEST_TURN = timedelta(seconds=300)
FAILURES_ALLOWED = 2


class ControllerHealth(StrEnum):
    ON_TIME = "on_time"
    LATE = "late"
    #: It runs, and its runs fail.
    FAILING = "failing"
    #: One run has been in progress for longer than any should be.
    STUCK = "stuck"
    #: It has never turned, as after the first start.
    UNSEEN = "unseen"


UNHEALTHY = frozenset({ControllerHealth.LATE, ControllerHealth.FAILING, ControllerHealth.STUCK})


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerRunTimes:
    """The record of one controller; None for what has not happened yet."""

    started_at: datetime | None = None
    ended_at: datetime | None = None
    #: The last end that was a good one.
    succeeded_at: datetime | None = None
    #: Bad ends since then.
    failures: int = 0

    @property
    def last_activity_at(self) -> datetime | None:
        """When a run last began or ended."""
        return max(filter(None, (self.started_at, self.ended_at)), default=None)

    @property
    def current_run_began_at(self) -> datetime | None:
        """When the run in progress began; also the run of a killed worker."""
        if self.started_at is None:
            return None
        if self.ended_at is None or self.ended_at < self.started_at:
            return self.started_at
        return None


def allowed_lag(interval: timedelta) -> timedelta:
    """Time after the last successful end within which a controller is on time."""
    return max(interval * INTERVALS_ALLOWED, SHORTEST_ALLOWED)


def controller_lag(times: ControllerRunTimes, *, at: datetime) -> timedelta | None:
    """Since the last good end, or the first start where there was none; None if it never turned."""
    since = times.succeeded_at or times.started_at
    return None if since is None else max(at - since, timedelta())


def controller_health(
    times: ControllerRunTimes, *, interval: timedelta, at: datetime
) -> ControllerHealth:
    """Health of the controller at that time."""
    behind = controller_lag(times, at=at)
    if behind is None:
        return ControllerHealth.UNSEEN
    began = times.current_run_began_at
    if began is not None and at - began > max(LONGEST_TURN, allowed_lag(interval)):
        return ControllerHealth.STUCK
    overdue = behind > allowed_lag(interval)
    if times.failures > FAILURES_ALLOWED or (overdue and times.failures):
        # Old failures do not describe a controller that has not run since.
        quiet = times.ended_at is not None and at - times.ended_at > allowed_lag(interval)
        return ControllerHealth.LATE if quiet and began is None else ControllerHealth.FAILING
    if overdue and began is None:
        return ControllerHealth.LATE
    return ControllerHealth.ON_TIME


def controller_needs_attention(health: ControllerHealth, behind: timedelta | None) -> bool:
    """Whether operators are warned on every page."""
    if health is ControllerHealth.LATE:
        return behind is not None and behind > MIN_REPORTED_LAG
    return health in UNHEALTHY


class StalledComponent(StrEnum):
    """Which part keeps the controllers from running."""

    NONE = "none"
    #: Messages are queued and no worker processes them.
    WORKER = "worker"
    #: No messages are queued: the beat does not run.
    BEAT = "beat"
    #: Some controllers run and others do not: it is not the processes.
    CONTROLLERS = "controllers"
    #: No controller has ever run, or the number of queued messages is unknown.
    UNKNOWN = "unknown"


def find_stalled_component(
    controllers: Iterable[tuple[timedelta, ControllerRunTimes]],
    *,
    waiting: int | None,
    at: datetime,
) -> StalledComponent:
    """The component that causes the state of the controllers, each given by its interval and record.

    ``waiting`` is the number of queued messages; None if the broker does not respond.
    """
    seen = [
        (interval, times) for interval, times in controllers if times.last_activity_at is not None
    ]
    # Infrequent controllers are on time long after frequent ones have stopped. A run in progress may belong to
    # a worker that has died.
    quick = [
        times.last_activity_at
        for interval, times in seen
        if times.last_activity_at is not None and allowed_lag(interval) == SHORTEST_ALLOWED
    ]
    if any(at - last_activity_at <= SHORTEST_ALLOWED for last_activity_at in quick):
        healths = {controller_health(times, interval=interval, at=at) for interval, times in seen}
        return StalledComponent.CONTROLLERS if healths & UNHEALTHY else StalledComponent.NONE
    if waiting is None:
        return StalledComponent.UNKNOWN
    if waiting:
        return StalledComponent.WORKER
    return StalledComponent.BEAT if seen else StalledComponent.UNKNOWN
