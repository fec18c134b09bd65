"""The condition of a rule: a comparison with a threshold that has to hold for a while.

::

                  condition met        condition met for `lasts`
     (no state) ─────────▶ PENDING ──────────────────────▶ FIRING ◀──┐
         ▲                    │                               │      │ met again
         └────── not met ─────┘                               ▼      │
                                                         not met: quiet
                                                              │ for `keeps`
                                                              ▼
                                                          RESOLVED

A lost, repeated or late evaluation only delays a transition: each one depends on the stored state and on the
clock alone. An object whose value is unknown keeps its state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from operator import eq, ge, gt, le, lt


class Comparison(StrEnum):
    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="
    EQUAL = "=="

    def holds(self, value: float, threshold: float) -> bool:
        return _COMPARE[self](value, threshold)

    @property
    def upwards(self) -> bool:
        """Whether the condition is met above the threshold."""
        return self in (Comparison.ABOVE, Comparison.AT_LEAST)


_COMPARE: Mapping[Comparison, Callable[[float, float], bool]] = {
    Comparison.ABOVE: gt,
    Comparison.AT_LEAST: ge,
    Comparison.BELOW: lt,
    Comparison.AT_MOST: le,
    Comparison.EQUAL: eq,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    op: Comparison
    #: In the unit of what is measured.
    threshold: float
    #: It must hold for so long before the rule fires, and not hold for so long before that is over.
    lasts: timedelta = timedelta()
    keeps: timedelta = timedelta()

    def holds(self, value: float | None) -> bool | None:
        """None if the value is unknown."""
        return None if value is None else self.op.holds(value, self.threshold)


class RuleState(StrEnum):
    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleProgress:
    """The state of a rule for one object, from the first time that its condition held."""

    state: RuleState
    #: Since when it has held without a break.
    began_at: datetime
    #: When it was last seen to hold.
    held_at: datetime
    fired_at: datetime | None = None
    #: Since when it has no longer held, while the rule still fires.
    quiet_since: datetime | None = None
    resolved_at: datetime | None = None


def next_progress(
    standing: RuleProgress | None,
    *,
    holds: bool | None,
    at: datetime,
    lasts: timedelta,
    keeps: timedelta,
) -> RuleProgress | None:
    """The next state of a rule for one object; None if there is none.

    ``holds`` is None if the value is unknown. ``standing`` is a state that is not resolved.
    """
    if standing is None:
        begun = RuleProgress(state=RuleState.PENDING, began_at=at, held_at=at)
        return _pending_to_firing(begun, at=at, lasts=lasts) if holds else None
    # A sample older than the stored state is ignored.
    if holds is None or at < max(standing.held_at, standing.quiet_since or standing.held_at):
        return standing
    if holds:
        return _pending_to_firing(
            replace(standing, held_at=at, quiet_since=None), at=at, lasts=lasts
        )
    return _firing_to_resolved(standing, at=at, keeps=keeps)


def _pending_to_firing(standing: RuleProgress, *, at: datetime, lasts: timedelta) -> RuleProgress:
    if standing.state is RuleState.PENDING and at - standing.began_at >= lasts:
        return replace(standing, state=RuleState.FIRING, fired_at=at)
    return standing


def _firing_to_resolved(
    standing: RuleProgress, *, at: datetime, keeps: timedelta
) -> RuleProgress | None:
    if standing.state is RuleState.PENDING:
        return None
    quiet = replace(standing, quiet_since=standing.quiet_since or at)
    if quiet.quiet_since is not None and at - quiet.quiet_since < keeps:
        return quiet
    return replace(quiet, state=RuleState.RESOLVED, resolved_at=at)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConditionStep:
    """The result at one value of a history."""

    at: datetime
    value: float | None
    #: Pending or firing; None: the condition is not met, or the value is unknown.
    progress: RuleProgress | None
    #: Time of the previous value if a gap follows it.
    gap_after: datetime | None

    @property
    def fired_at(self) -> datetime | None:
        """Since when the rule fires; None if it does not."""
        return None if self.progress is None else self.progress.fired_at

    @property
    def pending(self) -> bool:
        return self.progress is not None and self.progress.state is RuleState.PENDING


def condition_steps(
    condition: Condition,
    values: Iterable[tuple[datetime, float | None]],
    *,
    gap: timedelta | None = None,
) -> Iterator[ConditionStep]:
    """Evaluate the condition on the history of one object, oldest value first.

    :param gap: the condition begins anew after an unknown value, and after a longer time without a value; None:
        unknown values keep the state.
    """
    progress: RuleProgress | None = None
    before: datetime | None = None
    for at, value in values:
        gap_after = before if gap and before and at - before > gap else None
        if gap_after or (gap and value is None):
            progress = None
        holds = condition.holds(value)
        progress = next_progress(
            progress, holds=holds, at=at, lasts=condition.lasts, keeps=condition.keeps
        )
        if progress is not None and progress.state is RuleState.RESOLVED:
            progress = None
        yield ConditionStep(at=at, value=value, progress=progress, gap_after=gap_after)
        before = at


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleFiring:
    """One time that a rule would have fired for an object."""

    #: When the condition was first met, and when it had lasted long enough.
    began_at: datetime
    fired_at: datetime
    #: The first value that no longer met it, or the last one before a gap; None: still firing.
    ended_at: datetime | None
    #: The value that exceeded the threshold most.
    worst: float


def dry_run(
    condition: Condition,
    values: Iterable[tuple[datetime, float | None]],
    *,
    gap: timedelta | None = None,
) -> tuple[RuleFiring, ...]:
    """Each time that the rule would have fired, as :func:`condition_steps` reads the values."""
    worst = max if condition.op.upwards else min
    ended: list[RuleFiring] = []
    firing: RuleFiring | None = None
    for step in condition_steps(condition, values, gap=gap):
        if firing is not None and (step.gap_after or step.fired_at is None):
            ended.append(replace(firing, ended_at=step.gap_after or step.at))
            firing = None
        if step.progress is None or step.fired_at is None or step.value is None:
            continue
        firing = RuleFiring(
            began_at=step.progress.began_at,
            fired_at=step.fired_at,
            ended_at=None,
            worst=step.value if firing is None else worst(firing.worst, step.value),
        )
    return (*ended, firing) if firing else tuple(ended)
