"""Rules as people write them: read into ``rules``, or refused with field, value and what would be right."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum
from typing import Any, TypeVar

from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.rules import Condition, How, Op, Rule
from controlplane.domain.telemetry import MEASURES, Metric, is_possible

Choice = TypeVar("Choice", bound=StrEnum)
#: Figures are kept for so long.
LONGEST = timedelta(days=7)
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|d)")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_FIELDS = ("metric", "how", "op", "value", "within", "for", "chips")
_RULE_FIELDS = ("name", "title", "level", "condition", "source")
_SIGNS = {"≥": ">=", "≤": "<=", "==": "="}
_SLUG = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")


class RuleRefused(ValueError):
    """A document that is no rule; ``field`` is where, the message says what would be right."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def condition_of(document: object) -> Condition:
    """The condition that the document writes down.

    :raises RuleRefused: for the first thing in it that is not understood or can never hold.
    """
    fields = _table(document, "condition", _FIELDS)
    metric = _choice(Metric, fields, "metric")
    how = _choice(How, fields, "how", How.VALUE)
    condition = Condition(
        metric=metric,
        how=how,
        op=_op(fields),
        value=_value(fields, metric, how),
        within=_duration(fields, "within", timedelta(minutes=10)),
        lasting=_duration(fields, "for", timedelta(0)),
        chips=_chips(fields),
    )
    if how is How.VALUE and "within" in fields:
        raise RuleRefused(
            "within", 'within is for a change or a rate; leave it out with how "value"'
        )
    if how is not How.VALUE and not condition.within:
        raise RuleRefused(
            "within", "within is 0; a change or a rate needs a time to look back over"
        )
    return condition


def document_of(condition: Condition) -> dict[str, Any]:
    """What ``condition_of`` reads back into the same condition, for JSON."""
    document: dict[str, Any] = {
        "metric": condition.metric.value,
        "how": condition.how.value,
        "op": condition.op.value,
        "value": condition.value,
        "for": f"{condition.lasting.total_seconds():g}s",
    }
    if condition.how is not How.VALUE:
        document["within"] = f"{condition.within.total_seconds():g}s"
    if condition.chips:
        document["chips"] = sorted(condition.chips)
    return document


def rule_of(document: object) -> Rule:
    """:raises RuleRefused: if it is no rule."""
    fields = _table(document, "rule", _RULE_FIELDS)
    name = fields.get("name")
    if not isinstance(name, str) or not _SLUG.fullmatch(name):
        raise RuleRefused(
            "name", f"name is {name!r}; it must be small letters, digits and single hyphens"
        )
    for field in ("title", "source"):
        if not isinstance(fields.get(field, ""), str):
            raise RuleRefused(field, f"{field} is {fields[field]!r}; it must be a text")
    return Rule(
        name=name,
        title=fields.get("title", "") or name,
        level=level_of(fields.get("level")),
        condition=condition_of(fields.get("condition")),
        source=fields.get("source", ""),
    )


def level_of(value: object) -> FaultLevel:
    """``4``, ``"L4"`` or ``"reset_when_idle"``.

    :raises RuleRefused: if it is none of these.
    """
    if isinstance(value, int) and not isinstance(value, bool) and value in set(FaultLevel):
        return FaultLevel(value)
    text = str(value).strip().upper()
    for level in FaultLevel:
        if text in {f"L{level.value}", level.name}:
            return level
    known = ", ".join(f"L{level.value} ({level.name.lower()})" for level in FaultLevel)
    raise RuleRefused("level", f"level is {value!r}; it must be one of {known}")


def _table(document: object, what: str, known: tuple[str, ...]) -> Mapping[str, Any]:
    if not isinstance(document, Mapping):
        raise RuleRefused(what, f"{what} is {document!r}; it must be an object of named fields")
    for field in document:
        if field not in known:
            raise RuleRefused(
                str(field), f"{field} is no field of a {what}; known are {', '.join(known)}"
            )
    return document


def _choice(
    kind: type[Choice], fields: Mapping[str, Any], field: str, default: Choice | None = None
) -> Choice:
    value = fields.get(field, default)
    try:
        return kind(value)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise RuleRefused(field, f"{field} is {value!r}; it must be one of {known}") from None


def _op(fields: Mapping[str, Any]) -> Op:
    value = fields.get("op")
    try:
        return Op(_SIGNS.get(str(value), str(value)))
    except ValueError:
        known = ", ".join(op.value for op in Op)
        raise RuleRefused("op", f"op is {value!r}; it must be one of {known}") from None


def _value(fields: Mapping[str, Any], metric: Metric, how: How) -> float:
    value = _finite(fields.get("value"))
    if value is None:
        raise RuleRefused("value", f"value is {fields.get('value')!r}; it must be a finite number")
    measure = MEASURES[metric]
    if how is How.VALUE and not is_possible(metric, value):
        raise RuleRefused(
            "value",
            f"value is {value:g}; {metric.value} lies between {measure.lowest:g} and {measure.highest:g} "
            f"{measure.unit.value}",
        )
    if how is not How.VALUE and measure.counter and value < 0:
        raise RuleRefused(
            "value", f"value is {value:g}; {metric.value} only grows, so it cannot be negative"
        )
    return value


def _duration(fields: Mapping[str, Any], field: str, default: timedelta) -> timedelta:
    if field not in fields:
        return default
    value = fields[field]
    seconds = _seconds(value)
    if seconds is None:
        raise RuleRefused(field, f'{field} is {value!r}; write seconds, or "90s", "5m", "2h", "1d"')
    if not 0 <= seconds <= LONGEST.total_seconds():
        raise RuleRefused(
            field, f"{field} is {value!r}; it must lie between 0 and {LONGEST.days} days"
        )
    return timedelta(seconds=seconds)


def _seconds(value: object) -> float | None:
    match = _DURATION.fullmatch(value.strip()) if isinstance(value, str) else None
    return float(match[1]) * _SECONDS[match[2]] if match else _finite(value)


def _finite(value: object) -> float | None:
    """The number, if it is one."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _chips(fields: Mapping[str, Any]) -> frozenset[str]:
    value = fields.get("chips", ())
    if not isinstance(value, (list, tuple)) or not all(
        isinstance(each, str) and each for each in value
    ):
        raise RuleRefused("chips", f"chips is {value!r}; it must be a list of names of chips")
    return frozenset(value)
