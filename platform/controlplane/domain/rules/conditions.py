"""What alert rules and health rules have in common: the condition, and the document that describes a rule.

A rule compares values with a threshold, for each object separately, and fires where the comparison has held for
long enough. It is stored as a JSON document; of an invalid one, every field at fault is named with its value
and what would be valid. ``alerts`` adds measures, matchers and notifications, ``health`` adds metrics of cards,
changes and rates, and the level of the fault.

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

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum
from operator import eq, ge, gt, le, lt
from typing import Any, TypeVar

from controlplane.domain.common.reasons import Parameter, fill_message
from controlplane.domain.common.spec_fields import FieldFinding, describe_findings


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


#: Retention of the history.
LONGEST_DURATION = timedelta(days=7)
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_LONGEST_TITLE = 120
_LARGEST = 1e15
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_SYMBOLS = {"≥": Comparison.AT_LEAST, "≤": Comparison.AT_MOST, "=": Comparison.EQUAL}

Choice = TypeVar("Choice", bound=StrEnum)


class RuleInvalid(ValueError):
    """The rule is not valid; ``findings`` has an entry for each invalid field."""

    def __init__(self, *findings: FieldFinding) -> None:
        super().__init__(describe_findings(findings))
        self.findings = findings


@dataclass(kw_only=True)
class RuleReader:
    """Reads a document field by field; an invalid field becomes a finding and has a placeholder as its value."""

    document: Mapping[str, Any]
    findings: list[FieldFinding] = field(default_factory=list)

    def check(self, refusal: type[RuleInvalid] = RuleInvalid) -> None:
        """:raises RuleInvalid: with all findings, if there are any."""
        if self.findings:
            raise refusal(*self.findings)

    def wrong(self, name: str, message: str, template: str = "", /, **params: Parameter) -> None:
        text = fill_message(message, template, **params)
        self.findings.append(FieldFinding(field=name, message=text))

    def only(self, fields: Sequence[str]) -> None:
        """Other fields are findings."""
        for name in self.document:
            if name not in fields:
                self.wrong(
                    str(name),
                    "rule.field.unknown",
                    "{field} is not a field of a rule; known are {fields}",
                    field=str(name),
                    fields=", ".join(fields),
                )

    def name(self) -> str:
        value = self.document.get("name")
        if isinstance(value, str) and _NAME.fullmatch(value):
            return value
        self.wrong(
            "name",
            "rule.name.invalid",
            "{name} is not a valid name; use up to 60 lowercase letters, digits and hyphens",
            name=_shown(value),
        )
        return str(value)

    def title(self, default: str = "") -> str:
        value = self.document.get("title") or default
        title = value.strip() if isinstance(value, str) else ""
        if not title or len(title) > _LONGEST_TITLE or "\0" in title:
            self.wrong(
                "title",
                "rule.title.invalid",
                "describe the problem that the rule reports in 1 to {limit} characters",
                limit=_LONGEST_TITLE,
            )
        return title

    def choice(self, name: str, kind: type[Choice], default: Choice | None = None) -> Choice:
        value = self.document.get(name, default)
        try:
            return kind(value)
        except ValueError:
            self.not_a_choice(name, *kind)
        return next(iter(kind))

    def not_a_choice(self, name: str, *choices: str) -> None:
        self.wrong(
            name,
            "rule.field.not_a_choice",
            "{field} is {value}; it must be one of {choices}",
            field=name,
            value=_shown(self.document.get(name)),
            choices=", ".join(choices),
        )

    def comparison(self) -> Comparison:
        symbol = str(self.document.get("op"))
        return _SYMBOLS.get(symbol) or self.choice("op", Comparison)

    def number(self, name: str) -> float:
        number = _number(self.document.get(name))
        if number is not None:
            return number
        self.wrong(
            name,
            "rule.number.out_of_range",
            "{field} is {value}; it must be a number between -1e15 and 1e15",
            field=name,
            value=_shown(self.document.get(name)),
        )
        return 0.0

    def duration(self, name: str, default: timedelta = timedelta()) -> timedelta:
        """Seconds, or text with a unit."""
        if name not in self.document:
            return default
        value = self.document[name]
        seconds = _seconds(value)
        if seconds is None:
            self.wrong(
                name,
                "rule.duration.invalid",
                '{field} is {value}; write seconds, or "90s", "5m", "2h", "1d"',
                field=name,
                value=_shown(value),
            )
        elif not 0 <= seconds <= LONGEST_DURATION.total_seconds():
            self.wrong(
                name,
                "rule.duration.out_of_range",
                "{field} is {value}; it must be between 0 and {days} days",
                field=name,
                value=_shown(value),
                days=LONGEST_DURATION.days,
            )
        else:
            return timedelta(seconds=seconds)
        return default

    def texts(self, name: str, *, most: int) -> tuple[str, ...]:
        value = self.document.get(name, ())
        if (
            isinstance(value, list | tuple)
            and len(value) <= most
            and all(isinstance(text, str) and text for text in value)
        ):
            return tuple(dict.fromkeys(value))
        self.wrong(
            name,
            "rule.list.invalid",
            "{field} is {value}; it must be a list of at most {limit} strings",
            field=name,
            value=_shown(value),
            limit=most,
        )
        return ()


def _shown(value: object) -> str:
    return repr(value)[:60]


def _seconds(value: object) -> float | None:
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) * _SECONDS[match[2]] if match else _number(value)


def _number(value: object) -> float | None:
    """None for what is not a number within the limits, infinity and NaN among it."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if abs(value) <= _LARGEST else None
