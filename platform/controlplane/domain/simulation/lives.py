"""What a Launch is doing at an instant, from what was asked of the cluster and what broke in it.

::

    launched ── prepares ─▶ PREPARING ─ starts ─▶ STARTING ─ up ─▶ RUNNING ── the first of these ─▶ EXITED
                                                                    │  its work is done (and handed over)
                                                                    │  it fails of its own
                                                                    │  a stop, and what it saves
                                                                    │  its time is over
                                                                    └  a card dies, a node is given up ─▶ LOST
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from controlplane.domain.simulation.courses import Course
from controlplane.domain.simulation.paces import Pace
from controlplane.domain.simulation.troubles import GIVEN_UP_AFTER, Trouble, TroubleKind, of_kind

_TERMINATED, _KILLED, _ABORTED = 143, 137, 134


class Stage(StrEnum):
    PREPARING = "preparing"
    STARTING = "starting"
    RUNNING = "running"
    EXITED = "exited"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one replica was put."""

    role: str
    index: int
    node: str
    cards: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRecord:
    """What is kept of a Launch: what was asked, and when."""

    name: str
    places: tuple[Place, ...]
    course: Course
    launched_at: datetime
    #: Seconds of the simulation in one of the clock.
    speed: float = 1.0
    #: It ends well only once somebody has taken what it made.
    reports: bool = False
    #: Its process is probed, so it starts before it runs.
    probed: bool = False
    run_within: timedelta | None = None
    #: Work that an earlier Launch had saved.
    begun: float = 0.0
    labels: Mapping[str, str]
    stop_at: datetime | None = None
    kill_at: datetime | None = None
    handed_over_at: datetime | None = None

    def after(self, seconds: float, since: datetime) -> datetime:
        """So many seconds of the simulation later."""
        return since + timedelta(seconds=seconds / self.speed)

    @property
    def ready_at(self) -> datetime:
        """Its processes start."""
        return self.after(self.course.prepares, self.launched_at)

    @property
    def up_at(self) -> datetime:
        """Its processes work."""
        return self.after(self.course.starts if self.probed else 0.0, self.ready_at)

    def pace(self, troubles: Sequence[Trouble]) -> Pace:
        slow = (one for one in of_kind(TroubleKind.CARD_SLOW, troubles) if self.holds(one))
        return Pace(since=self.up_at, begun=self.begun, speed=self.speed, slow=tuple(slow))

    def holds(self, trouble: Trouble) -> bool:
        """Whether that is about a card or node of its own."""
        return any(_hits(trouble, place) for place in self.places)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    at: datetime
    #: As ``controlplane.ports.clusters.ExitCause`` calls it.
    cause: str
    message: str
    exit_code: int | None = None
    #: What broke, where that is why; the replicas beside it are ended with it.
    trouble: Trouble | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Life:
    """A Launch at one instant."""

    record: LaunchRecord
    at: datetime
    stage: Stage
    message: str
    #: Seconds of the simulation.
    work: float = 0.0
    started_at: datetime | None = None
    ending: Ending | None = None

    @property
    def ended(self) -> bool:
        return self.ending is not None

    @property
    def finishing(self) -> bool:
        """Its work is done, and what it made has not been taken yet."""
        record = self.record
        done = record.course.runs is not None and self.work >= record.course.runs
        return done and not self.ended and record.reports and not record.course.exit_code


def life(record: LaunchRecord, troubles: Sequence[Trouble], at: datetime) -> Life:
    """What goes on in it at that instant; ``troubles`` may be the whole cluster's."""
    own = [trouble for trouble in troubles if record.holds(trouble)]
    pace = record.pace(own)
    ending = min(_endings(record, pace, own), key=lambda one: one.at, default=None)
    if ending is not None and ending.at <= at:
        lost = ending.cause == "lost"
        return Life(
            record=record,
            at=at,
            stage=Stage.LOST if lost else Stage.EXITED,
            message=ending.message,
            work=_work(record, pace, ending.at),
            started_at=record.ready_at if ending.at >= record.ready_at else None,
            ending=ending,
        )
    stage, message = _stage(record, own, at)
    return Life(
        record=record,
        at=at,
        stage=stage,
        message=message,
        work=_work(record, pace, at),
        started_at=record.ready_at if at >= record.ready_at else None,
    )


def _work(record: LaunchRecord, pace: Pace, at: datetime) -> float:
    done = pace.done(at) if at > record.up_at else record.begun
    return done if record.course.runs is None else min(done, max(record.begun, record.course.runs))


def _stage(record: LaunchRecord, troubles: list[Trouble], at: datetime) -> tuple[Stage, str]:
    silent = [one for one in of_kind(TroubleKind.NODE_SILENT, troubles) if one.holds(at)]
    if at < record.ready_at:
        stage = Stage.PREPARING
        message = "preparing the software and the inputs (simulated)"
    elif at < record.up_at:
        stage = Stage.STARTING
        message = "loading the model (simulated)"
    else:
        stage = Stage.RUNNING
        message = "running (simulated)"
    if silent:
        message = f"{silent[0].node} does not answer"
    elif record.stop_at is not None and record.stop_at <= at:
        message = "asked to stop"
    return stage, message


def _endings(record: LaunchRecord, pace: Pace, troubles: list[Trouble]) -> list[Ending]:
    """Every way in which it may end, each with its instant; the earliest one happens."""
    found = [_by_itself(record, pace), _by_stop(record), _by_time(record)]
    found += [_by_trouble(record, trouble) for trouble in troubles]
    return [ending for ending in found if ending is not None]


def _by_itself(record: LaunchRecord, pace: Pace) -> Ending | None:
    course = record.course
    if course.runs is None:
        return None
    at = pace.reached(max(course.runs, record.begun))
    if course.exit_code:
        message = f"exited with code {course.exit_code}"
        return Ending(
            at=at,
            cause=_CAUSES.get(course.exit_code, "failed"),
            message=f"{message}: {course.error}" if course.error else message,
            exit_code=course.exit_code,
        )
    if record.reports:
        if record.handed_over_at is None:
            return None
        at = max(at, record.handed_over_at)
    return Ending(at=at, cause="finished", message="finished", exit_code=0)


#: What exit codes mean besides "failed".
_CAUSES: Mapping[int, str] = {
    12: "out_of_memory",
    28: "disk_full",
    # 128 + n: SIGHUP, SIGINT, SIGKILL and SIGTERM from outside.
    **dict.fromkeys((129, 130, 137, 143), "killed"),
}


def _by_stop(record: LaunchRecord) -> Ending | None:
    if record.stop_at is None or record.kill_at is None:
        return None
    if record.stop_at < record.ready_at:
        return Ending(at=record.stop_at, cause="stopped", message="stopped before it had started")
    saved = record.after(record.course.saves, record.stop_at)
    if record.course.obeys and saved <= record.kill_at:
        return Ending(at=saved, cause="stopped", message="stopped", exit_code=_TERMINATED)
    return Ending(
        at=record.kill_at,
        cause="stopped",
        message="killed, because it did not end in time when it was asked to",
        exit_code=_KILLED,
    )


def _by_time(record: LaunchRecord) -> Ending | None:
    if record.run_within is None:
        return None
    seconds = record.run_within.total_seconds()
    return Ending(
        at=record.after(seconds, record.ready_at),
        cause="out_of_time",
        message=f"it ran longer than its limit of {seconds:.0f} s",
        exit_code=_TERMINATED,
    )


def _by_trouble(record: LaunchRecord, trouble: Trouble) -> Ending | None:
    """A trouble that ended before it started does not concern it."""
    first = max(trouble.since, record.ready_at)
    if trouble.until is not None and trouble.until <= first:
        return None
    match trouble.kind:
        case TroubleKind.CARD_DEAD:
            return Ending(
                at=first,
                cause="failed",
                message=f"{trouble.place} failed: {trouble.words}",
                exit_code=_ABORTED,
                trouble=trouble,
            )
        case TroubleKind.NODE_SILENT:
            given_up = record.after(GIVEN_UP_AFTER.total_seconds(), trouble.since)
            if trouble.until is not None and trouble.until <= given_up:
                return None
            return Ending(
                at=max(given_up, record.launched_at),
                cause="lost",
                message=f"{trouble.node} does not answer: {trouble.words}",
                trouble=trouble,
            )
        case _:
            return None


def struck(place: Place, ending: Ending) -> bool:
    """Whether what broke is that replica's own; true for every replica where nothing broke."""
    return ending.trouble is None or _hits(ending.trouble, place)


def _hits(trouble: Trouble, place: Place) -> bool:
    return trouble.node == place.node and (trouble.card is None or trouble.card in place.cards)
