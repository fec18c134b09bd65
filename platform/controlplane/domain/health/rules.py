"""Health rules: a condition on one metric that must last for a while, and the level of the fault.

::

    {"metric": "ecc_uncorrected", "how": "change", "op": ">", "value": 0, "within": "10m", "for": "0s"}

``how`` says what is compared: the ``value`` itself, its ``change`` over ``within``, or its ``rate``: that change
per minute. A counter only grows: where it falls, the card was reset, and its value is the growth since then.

Gaps are not evaluated: between measurements that are too far apart the value is unknown, so a condition begins
anew after the gap, and without a recent measurement the result is unknown.
"""

from __future__ import annotations

import math
import operator
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, TypeVar

from controlplane.domain.common.reasons import Reason
from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.telemetry.metrics import MEASURES, Metric, is_metric_value_possible

#: Between measurements that are further apart, the value is unknown.
GAP = timedelta(minutes=5)


class MetricTransform(StrEnum):
    """What is compared with the threshold."""

    VALUE = "value"
    #: The difference over the time; for a counter, what it grew by.
    CHANGE = "change"
    #: The change for each minute of the time.
    RATE = "rate"


class RuleOperator(StrEnum):
    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="
    IS = "="


_HOLDS: Mapping[RuleOperator, Callable[[float, float], bool]] = {
    RuleOperator.ABOVE: operator.gt,
    RuleOperator.AT_LEAST: operator.ge,
    RuleOperator.BELOW: operator.lt,
    RuleOperator.AT_MOST: operator.le,
    RuleOperator.IS: operator.eq,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRuleCondition:
    metric: Metric
    op: RuleOperator
    #: In the metric's unit (``telemetry.MEASURES``); of a rate, that a minute.
    value: float
    how: MetricTransform = MetricTransform.VALUE
    #: Time range of change and rate.
    within: timedelta = timedelta(minutes=10)
    #: It has to hold for so long.
    lasting: timedelta = timedelta(0)
    #: Only cards of these chips, by name; empty: all.
    chips: frozenset[str] = frozenset()

    def applies(self, chip: str) -> bool:
        return not self.chips or chip in self.chips


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRuleSpec:
    #: A slug: the code of the rule's faults.
    name: str
    title: str
    condition: HealthRuleCondition
    level: FaultLevel
    #: Source of the threshold, for display.
    source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSample:
    at: datetime
    value: float


class RuleVerdict(StrEnum):
    #: It holds, and has for long enough.
    FIRES = "fires"
    #: It holds, not for long enough yet.
    PENDING = "pending"
    CLEAR = "clear"
    #: Too few measurements.
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleEvaluation:
    verdict: RuleVerdict
    #: Since when it holds; None where it does not.
    since: datetime | None = None
    #: What was compared last; None where nothing could be.
    value: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRuleFiring:
    """One time that the rule would have fired."""

    #: When the condition was first met, and when it had lasted long enough.
    began_at: datetime
    fired_at: datetime
    #: None: still met at the end of the time range.
    ended_at: datetime | None
    #: The value that exceeded the threshold most.
    worst: float


def evaluate_condition(
    condition: HealthRuleCondition, series: Sequence[MetricSample], at: datetime
) -> RuleEvaluation:
    """Evaluate the condition for one card now.

    ``series`` are its measurements of the condition's metric, oldest first; later ones than ``at`` are ignored.
    They must reach back over ``within`` and ``lasting``: older measurements affect only the begin.
    """
    last: _ConditionStep | None = None
    for step in _condition_steps(condition, (sample for sample in series if sample.at <= at)):
        last = step
    if last is None or last.at < at - GAP:
        return RuleEvaluation(verdict=RuleVerdict.UNKNOWN)
    return last.finding


def simulate_condition_firings(
    condition: HealthRuleCondition, series: Iterable[MetricSample]
) -> tuple[HealthRuleFiring, ...]:
    """When the rule would have fired on what was measured of one card, oldest first."""
    firings: list[HealthRuleFiring] = []
    fired: HealthRuleFiring | None = None
    for step in _condition_steps(condition, series):
        finding = step.finding
        if fired is not None and (step.anew or finding.verdict is not RuleVerdict.FIRES):
            firings.append(_end_firing(fired, step))
            fired = None
        if finding.verdict is RuleVerdict.FIRES and finding.since and finding.value is not None:
            fired = HealthRuleFiring(
                began_at=fired.began_at if fired else finding.since,
                fired_at=fired.fired_at if fired else step.at,
                ended_at=None,
                worst=_worse_value(condition, fired, finding.value),
            )
    return (*firings, fired) if fired else tuple(firings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConditionStep:
    at: datetime
    finding: RuleEvaluation
    #: The previous measurement is too old.
    anew: bool
    before: datetime | None


def _condition_steps(
    condition: HealthRuleCondition, series: Iterable[MetricSample]
) -> Iterator[_ConditionStep]:
    """What is found at each measurement."""
    holds = _HOLDS[condition.op]
    since: datetime | None = None
    before: datetime | None = None
    for at, value in _compared_values(condition, series):
        anew = before is not None and at - before > GAP
        if anew or value is None or not holds(value, condition.value):
            since = None
        if value is not None and holds(value, condition.value):
            since = since or at
        yield _ConditionStep(
            at=at,
            finding=_build_finding(condition, at=at, since=since, value=value),
            anew=anew,
            before=before,
        )
        before = at


def _build_finding(
    condition: HealthRuleCondition, *, at: datetime, since: datetime | None, value: float | None
) -> RuleEvaluation:
    if value is None:
        return RuleEvaluation(verdict=RuleVerdict.UNKNOWN)
    if since is None:
        return RuleEvaluation(verdict=RuleVerdict.CLEAR, value=value)
    lasts = at - since >= condition.lasting
    return RuleEvaluation(
        verdict=RuleVerdict.FIRES if lasts else RuleVerdict.PENDING, since=since, value=value
    )


def _compared_values(
    condition: HealthRuleCondition, series: Iterable[MetricSample]
) -> Iterator[tuple[datetime, float | None]]:
    """What is compared at each measurement; None where there is no earlier one to compare it with."""
    if condition.how is MetricTransform.VALUE:
        yield from ((sample.at, sample.value) for sample in series)
        return
    counter = MEASURES[condition.metric].counter
    window: deque[MetricSample] = deque()
    before, passed = 0.0, 0.0
    for sample in series:
        if counter and sample.value < before:
            # The counter was reset; its earlier growth is added.
            passed += before
        before = sample.value
        window.append(MetricSample(at=sample.at, value=sample.value + passed))
        while window[0].at < sample.at - condition.within:
            window.popleft()
        elapsed = (sample.at - window[0].at).total_seconds()
        change = window[-1].value - window[0].value
        if not elapsed:
            yield sample.at, None
        else:
            yield (
                sample.at,
                change * 60 / elapsed if condition.how is MetricTransform.RATE else change,
            )


def _worse_value(
    condition: HealthRuleCondition, fired: HealthRuleFiring | None, value: float
) -> float:
    if fired is None:
        return value
    pick = min if condition.op in {RuleOperator.BELOW, RuleOperator.AT_MOST} else max
    return pick(fired.worst, value)


def _end_firing(fired: HealthRuleFiring, step: _ConditionStep) -> HealthRuleFiring:
    """Ended at the measurement that no longer meets the condition; after a gap, at the last one before it."""
    return HealthRuleFiring(
        began_at=fired.began_at,
        fired_at=fired.fired_at,
        ended_at=step.before if step.anew else step.at,
        worst=fired.worst,
    )


Choice = TypeVar("Choice", bound=StrEnum)
#: Retention of the history.
LONGEST = timedelta(days=7)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FIELDS = ("metric", "how", "op", "value", "within", "for", "chips")
_RULE_FIELDS = ("name", "title", "level", "condition", "source")
_OPERATOR_SYMBOLS = {"≥": ">=", "≤": "<=", "==": "="}
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class HealthRuleRefused(ValueError):
    """The document is no valid rule; ``field`` is the cause, the message says what is expected."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def parse_health_condition(document: object) -> HealthRuleCondition:
    """The condition that the document writes down.

    :raises HealthRuleRefused: for the first thing in it that is not understood or can never hold.
    """
    fields = _parse_table(document, "condition", _FIELDS)
    metric = _parse_choice(Metric, fields, "metric")
    how = _parse_choice(MetricTransform, fields, "how", MetricTransform.VALUE)
    condition = HealthRuleCondition(
        metric=metric,
        how=how,
        op=_parse_operator(fields),
        value=_parse_threshold(fields, metric, how),
        within=_parse_duration(fields, "within", timedelta(minutes=10)),
        lasting=_parse_duration(fields, "for", timedelta(0)),
        chips=_parse_chips(fields),
    )
    if how is MetricTransform.VALUE and "within" in fields:
        raise HealthRuleRefused(
            "within",
            Reason(
                "health_rule.within.not_allowed",
                'within is only for a change or a rate; remove it when how is "value"',
            ),
        )
    if how is not MetricTransform.VALUE and not condition.within:
        raise HealthRuleRefused(
            "within",
            Reason(
                "health_rule.within.zero",
                "within is 0; a change or a rate needs a time window greater than 0",
            ),
        )
    return condition


def health_condition_document(condition: HealthRuleCondition) -> dict[str, Any]:
    """The JSON document from which ``parse_health_condition`` reads an equal condition."""
    document: dict[str, Any] = {
        "metric": condition.metric.value,
        "how": condition.how.value,
        "op": condition.op.value,
        "value": condition.value,
        "for": f"{condition.lasting.total_seconds():g}s",
    }
    if condition.how is not MetricTransform.VALUE:
        document["within"] = f"{condition.within.total_seconds():g}s"
    if condition.chips:
        document["chips"] = sorted(condition.chips)
    return document


def parse_health_rule(document: object) -> HealthRuleSpec:
    """:raises HealthRuleRefused: if it is no rule."""
    fields = _parse_table(document, "rule", _RULE_FIELDS)
    name = fields.get("name")
    if not isinstance(name, str) or not _SLUG.fullmatch(name):
        raise HealthRuleRefused(
            "name",
            Reason(
                "health_rule.name.invalid",
                "name is {name}; it must consist of lowercase letters, digits and single hyphens",
                name=repr(name),
            ),
        )
    for field in ("title", "source"):
        if not isinstance(fields.get(field, ""), str):
            raise HealthRuleRefused(
                field,
                Reason(
                    "health_rule.field.not_text",
                    "{field} is {value}; it must be text",
                    field=field,
                    value=repr(fields[field]),
                ),
            )
    return HealthRuleSpec(
        name=name,
        title=fields.get("title", "") or name,
        level=parse_fault_level(fields.get("level")),
        condition=parse_health_condition(fields.get("condition")),
        source=fields.get("source", ""),
    )


def parse_fault_level(value: object) -> FaultLevel:
    """``4``, ``"L4"`` or ``"reset_when_idle"``.

    :raises HealthRuleRefused: if it is none of these.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value in set(FaultLevel):
        return FaultLevel(value)
    text = str(value).strip().upper()
    for level in FaultLevel:
        if text in {f"L{level.value}", level.name}:
            return level
    known = ", ".join(f"L{level.value} ({level.name.lower()})" for level in FaultLevel)
    raise HealthRuleRefused(
        "level",
        Reason(
            "health_rule.level.unknown",
            "level is {value}; it must be one of {levels}",
            value=repr(value),
            levels=known,
        ),
    )


def _parse_table(document: object, what: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise HealthRuleRefused(
            what,
            Reason(
                "health_rule.document.not_an_object",
                "{document} is {value}; it must be an object with named fields",
                document=what,
                value=repr(document),
            ),
        )
    for field in document:
        if field not in known:
            raise HealthRuleRefused(
                str(field),
                Reason(
                    "health_rule.field.unknown",
                    "{field} is not a field of a {document}; known are {fields}",
                    field=field,
                    document=what,
                    fields=", ".join(known),
                ),
            )
    return document


def _parse_choice(
    kind: type[Choice], fields: Mapping[str, Any], field: str, default: Choice | None = None
) -> Choice:
    value = fields.get(field, default)
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise HealthRuleRefused(
            field,
            Reason(
                "health_rule.field.not_a_choice",
                "{field} is {value}; it must be one of {choices}",
                field=field,
                value=repr(value),
                choices=known,
            ),
        ) from None


def _parse_operator(fields: Mapping[str, Any]) -> RuleOperator:
    value = fields.get("op")
    try:
        return RuleOperator(_OPERATOR_SYMBOLS.get(str(value), str(value)))
    except ValueError:
        known = ", ".join(op.value for op in RuleOperator)
        raise HealthRuleRefused(
            "op",
            Reason(
                "health_rule.op.unknown",
                "op is {value}; it must be one of {operators}",
                value=repr(value),
                operators=known,
            ),
        ) from None


def _parse_threshold(fields: Mapping[str, Any], metric: Metric, how: MetricTransform) -> float:
    value = _parse_finite_number(fields.get("value"))
    if value is None:
        raise HealthRuleRefused(
            "value",
            Reason(
                "health_rule.value.not_finite",
                "value is {value}; it must be a finite number",
                value=repr(fields.get("value")),
            ),
        )
    measure = MEASURES[metric]
    if how is MetricTransform.VALUE and not is_metric_value_possible(metric, value):
        raise HealthRuleRefused(
            "value",
            Reason(
                "health_rule.value.out_of_range",
                "value is {value}; {metric} must be between {minimum} and {maximum} {unit}",
                value=f"{value:g}",
                metric=metric.value,
                minimum=f"{measure.lowest:g}",
                maximum=f"{measure.highest:g}",
                unit=measure.unit.value,
            ),
        )
    if how is not MetricTransform.VALUE and measure.counter and value < 0:
        raise HealthRuleRefused(
            "value",
            Reason(
                "health_rule.value.negative",
                "value is {value}; {metric} is a counter, so it must not be negative",
                value=f"{value:g}",
                metric=metric.value,
            ),
        )
    return value


def _parse_duration(fields: Mapping[str, Any], field: str, default: timedelta) -> timedelta:
    if field not in fields:
        return default
    value = fields[field]
    seconds = _parse_seconds(value)
    if seconds is None:
        raise HealthRuleRefused(
            field,
            Reason(
                "health_rule.duration.invalid",
                '{field} is {value}; write seconds, or "90s", "5m", "2h", "1d"',
                field=field,
                value=repr(value),
            ),
        )
    if not 0 <= seconds <= LONGEST.total_seconds():
        raise HealthRuleRefused(
            field,
            Reason(
                "health_rule.duration.out_of_range",
                "{field} is {value}; it must be between 0 and {days} days",
                field=field,
                value=repr(value),
                days=LONGEST.days,
            ),
        )
    return timedelta(seconds=seconds)


def _parse_seconds(value: object) -> float | None:
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) * _SECONDS[match[2]] if match else _parse_finite_number(value)


def _parse_finite_number(value: object) -> float | None:
    """The number, if it is one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _parse_chips(fields: Mapping[str, Any]) -> frozenset[str]:
    value = fields.get("chips", ())
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(each, str) and each for each in value
    ):
        raise HealthRuleRefused(
            "chips",
            Reason(
                "health_rule.chips.invalid",
                "chips is {value}; it must be a list of chip names",
                value=repr(value),
            ),
        )
    return frozenset(value)
