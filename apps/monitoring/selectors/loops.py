"""How the product's own loops do."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import Error
from django.utils import timezone

from controlplane.domain.loops import TROUBLED, LoopHealth, Turns, judge, lag, worth_telling
from controlplane.persistence import reconcile_runs as book


@dataclass(frozen=True, slots=True, kw_only=True)
class Loop:
    """One loop of the beat, and what its turns left behind."""

    #: Of its task.
    name: str
    health: LoopHealth
    interval: timedelta
    #: Since the last good end; None if it never turned.
    lag: timedelta | None
    #: When its turns began and ended.
    times: Turns
    #: Seconds of the newest turns, the newest last.
    recent: tuple[float, ...]
    turns: int
    failed_turns: int
    #: Of all turns together.
    seconds: float
    #: What the last good turn dealt with; None where its task does not say.
    handled: int | None
    #: Bad ends since the last good one.
    failures: int
    error: str
    failed_at: datetime | None

    @property
    def troubled(self) -> bool:
        return self.health in TROUBLED

    @property
    def last_seconds(self) -> float | None:
        return self.recent[-1] if self.recent else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Loops:
    at: datetime
    all: tuple[Loop, ...]

    @property
    def troubled(self) -> tuple[Loop, ...]:
        return tuple(loop for loop in self.all if loop.troubled)

    @property
    def worth_telling(self) -> tuple[Loop, ...]:
        """Those of which operators are told without having asked."""
        return tuple(loop for loop in self.all if worth_telling(loop.health, loop.lag))


def loops_now() -> Loops:
    """Each loop of the beat, in the order of the beat, in one query."""
    kept = book.read(otherwise=timezone.now())
    return Loops(
        at=kept.at,
        all=tuple(
            _loop(name, interval=interval, records=kept.records, at=kept.at)
            for name, interval in book.intervals().items()
        ),
    )


def troubled_loops() -> int:
    """How many loops are worth telling of; 0 while nobody can say, for then there is worse to tell."""
    try:
        return len(loops_now().worth_telling)
    except Error:
        return 0


def _loop(
    name: str, *, interval: timedelta, records: Mapping[str, book.ControllerRecord], at: datetime
) -> Loop:
    record = records.get(name, book.NO_RUNS)
    return Loop(
        name=name,
        health=judge(record.turns, interval=interval, at=at),
        interval=interval,
        lag=lag(record.turns, at=at),
        times=record.turns,
        recent=tuple(reversed(record.recent)),
        turns=record.ended,
        failed_turns=record.failed,
        seconds=record.seconds,
        handled=record.handled,
        failures=record.turns.failures,
        error=record.error,
        failed_at=record.failed_at,
    )
