"""Health rules: a condition on one metric that must last for a while, and the level of the fault.

::

    {"metric": "ecc_uncorrected", "how": "change", "op": ">", "value": 0, "within": "10m", "for": "0s"}

``how`` says what is compared: the ``value`` itself, its ``change`` over ``within``, or its ``rate``: that change
per minute. A counter only grows: where it falls, the card was reset, and its value is the growth since then.

Gaps are not evaluated: between measurements that are too far apart the value is unknown, so a condition begins
anew after the gap, and without a recent measurement the result is unknown.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, NamedTuple

from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.rules.conditions import (
    Comparison,
    Condition,
    ConditionStep,
    RuleFiring,
    RuleInvalid,
    RuleReader,
    condition_steps,
    dry_run,
)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricCondition(Condition):
    """The threshold is in the metric's unit (``telemetry.MEASURES``), of a rate in that per minute."""

    metric: Metric
    how: MetricTransform = MetricTransform.VALUE
    #: Time range of change and rate.
    within: timedelta = timedelta(minutes=10)
    #: Only cards of these chips, by name; empty: all.
    chips: frozenset[str] = frozenset()

    def applies(self, chip: str) -> bool:
        return not self.chips or chip in self.chips


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthRuleSpec:
    #: A slug: the code of the rule's faults.
    name: str
    title: str
    condition: MetricCondition
    level: FaultLevel
    #: Source of the threshold, for display.
    source: str = ""


class MetricSample(NamedTuple):
    at: datetime
    value: float


def evaluate_condition(
    condition: MetricCondition, series: Iterable[MetricSample], at: datetime
) -> ConditionStep | None:
    """Evaluate the condition for one card now; None: there are too few measurements.

    ``series`` are its measurements of the condition's metric, oldest first; later ones than ``at`` are ignored.
    They must reach back over ``within`` and ``lasts``: older measurements affect only the begin.
    """
    values = _compared_values(condition, (sample for sample in series if sample.at <= at))
    steps = deque(condition_steps(condition, values, gap=GAP), maxlen=1)
    known = steps and steps[0].value is not None and steps[0].at >= at - GAP
    return steps[0] if known else None


def dry_run_condition(
    condition: MetricCondition, series: Iterable[MetricSample]
) -> tuple[RuleFiring, ...]:
    """When the rule would have fired on what was measured of one card, oldest first."""
    return dry_run(condition, _compared_values(condition, series), gap=GAP)


def _compared_values(
    condition: MetricCondition, series: Iterable[MetricSample]
) -> Iterator[tuple[datetime, float | None]]:
    """What is compared at each measurement; None where there is no earlier one to compare it with."""
    if condition.how is MetricTransform.VALUE:
        yield from series
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


_FIELDS = ("metric", "how", "op", "value", "within", "for", "chips")
_MOST_CHIPS = 100


class HealthRuleInvalid(RuleInvalid):
    """The health rule is not valid."""


def parse_health_rule(document: Mapping[str, Any]) -> HealthRuleSpec:
    """The rule that a document describes: ``name``, ``level``, ``condition``, optional ``title`` and ``source``.

    :raises HealthRuleInvalid: with everything that is wrong with it.
    """
    reader = RuleReader(document=document)
    name, level = reader.name(), document.get("level")
    if level not in list(FaultLevel):
        reader.not_a_choice("level", *(f"{one.value} ({one.name.lower()})" for one in FaultLevel))
        level = FaultLevel.NOTE
    nested = RuleReader(document=document.get("condition") or {}, findings=reader.findings)
    rule = HealthRuleSpec(
        name=name,
        title=reader.title(default=name),
        level=FaultLevel(level),
        condition=_read_condition(nested),
        source=str(document.get("source", "")),
    )
    reader.check(HealthRuleInvalid)
    return rule


def parse_health_condition(document: Mapping[str, Any]) -> MetricCondition:
    """The condition that the document describes.

    :raises HealthRuleInvalid: with everything that is invalid or can never hold.
    """
    reader = RuleReader(document=document)
    condition = _read_condition(reader)
    reader.check(HealthRuleInvalid)
    return condition


def health_condition_document(condition: MetricCondition) -> dict[str, Any]:
    """The JSON document from which ``parse_health_condition`` reads an equal condition."""
    document: dict[str, Any] = {
        "metric": condition.metric.value,
        "how": condition.how.value,
        "op": "=" if condition.op is Comparison.EQUAL else condition.op.value,
        "value": condition.threshold,
        "for": f"{condition.lasts.total_seconds():g}s",
    }
    if condition.how is not MetricTransform.VALUE:
        document["within"] = f"{condition.within.total_seconds():g}s"
    if condition.chips:
        document["chips"] = sorted(condition.chips)
    return document


def _read_condition(reader: RuleReader) -> MetricCondition:
    reader.only(_FIELDS)
    condition = MetricCondition(
        metric=reader.choice("metric", Metric),
        how=reader.choice("how", MetricTransform, MetricTransform.VALUE),
        op=reader.comparison(),
        threshold=reader.number("value"),
        within=reader.duration("within", timedelta(minutes=10)),
        lasts=reader.duration("for"),
        chips=frozenset(reader.texts("chips", most=_MOST_CHIPS)),
    )
    if not reader.findings:
        _check_threshold(condition, reader)
        _check_window(condition, reader)
    return condition


def _check_threshold(condition: MetricCondition, reader: RuleReader) -> None:
    measure, value = MEASURES[condition.metric], condition.threshold
    if condition.how is MetricTransform.VALUE and not is_metric_value_possible(
        condition.metric, value
    ):
        reader.wrong(
            "value",
            "health_rule.value.out_of_range",
            "value is {value}; {metric} must be between {minimum} and {maximum} {unit}",
            value=f"{value:g}",
            metric=condition.metric.value,
            minimum=f"{measure.lowest:g}",
            maximum=f"{measure.highest:g}",
            unit=measure.unit.value,
        )
    if condition.how is not MetricTransform.VALUE and measure.counter and value < 0:
        reader.wrong(
            "value",
            "health_rule.value.negative",
            "value is {value}; {metric} is a counter, so it must not be negative",
            value=f"{value:g}",
            metric=condition.metric.value,
        )


def _check_window(condition: MetricCondition, reader: RuleReader) -> None:
    if condition.how is MetricTransform.VALUE and "within" in reader.document:
        reader.wrong(
            "within",
            "health_rule.within.not_allowed",
            'within is only for a change or a rate; remove it when how is "value"',
        )
    if condition.how is not MetricTransform.VALUE and not condition.within:
        reader.wrong(
            "within",
            "health_rule.within.zero",
            "within is 0; a change or a rate needs a time window greater than 0",
        )


#: The default rules of an installation. They are cautious: a metric is a symptom, so no rule has level L6. The
#: source of a threshold is the vendor, or Ninefold if no vendor publishes one.
_DOCUMENTS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "hot-chip",
        "title": "High chip temperature",
        "level": FaultLevel.NOTE,
        "source": "Ninefold; replace it with the slowdown temperature that the vendor's tools print",
        "condition": {"metric": "temperature", "op": ">=", "value": 90, "for": "1m"},
    },
    {
        "name": "overheated-chip",
        "title": "Chip overheating",
        "level": FaultLevel.RESET_WHEN_IDLE,
        "source": "Ninefold; 10 °C above the threshold of the note",
        "condition": {"metric": "temperature", "op": ">=", "value": 100, "for": "1m"},
    },
    {
        "name": "hot-memory",
        "title": "High memory temperature",
        "level": FaultLevel.NOTE,
        "source": "Ninefold; replace it with the maximum operating temperature of the memory that the "
        "vendor's tools print",
        "condition": {"metric": "memory_temperature", "op": ">=", "value": 95, "for": "1m"},
    },
    {
        "name": "overheated-memory",
        "title": "Memory overheating",
        "level": FaultLevel.RESET_WHEN_IDLE,
        "source": "Ninefold; 10 °C above the threshold of the note",
        "condition": {"metric": "memory_temperature", "op": ">=", "value": 105, "for": "1m"},
    },
    {
        "name": "ecc-uncorrected",
        "title": "Uncorrectable ECC errors",
        "level": FaultLevel.RESET_NOW,
        "source": "NVIDIA, Xid Errors: after a Double Bit ECC Error (Xid 48), drain and reset the card",
        "condition": {"metric": "ecc_uncorrected", "how": "change", "op": ">", "value": 0},
    },
    {
        "name": "ecc-corrected",
        "title": "High rate of correctable ECC errors",
        "level": FaultLevel.NOTE,
        "source": "NVIDIA/DCGM, thresholds of its health checks: 10 single-bit errors per minute "
        "(provisional)",
        "condition": {
            "metric": "ecc_corrected",
            "how": "rate",
            "op": ">",
            "value": 10,
            "for": "5m",
        },
    },
    {
        "name": "link-errors",
        "title": "Link errors between cards",
        "level": FaultLevel.NOTE,
        "source": "NVIDIA/DCGM, thresholds of its health checks: 100 CRC errors per second",
        "condition": {
            "metric": "link_errors",
            "how": "rate",
            "op": ">=",
            "value": 6000,
            "within": "5m",
            "for": "1m",
        },
    },
    {
        "name": "network-errors",
        "title": "Network port errors",
        "level": FaultLevel.NOTE,
        "source": "Ninefold; 100 per second, as for links between cards",
        "condition": {
            "metric": "network_errors",
            "how": "rate",
            "op": ">=",
            "value": 6000,
            "within": "5m",
            "for": "1m",
        },
    },
    {
        "name": "unhealthy",
        "title": "Card unhealthy according to the vendor's tools",
        "level": FaultLevel.RESET_WHEN_IDLE,
        "source": "Ascend npu-exporter, health_status 0: without a fault code, running workloads "
        "continue and the card is tested",
        "condition": {"metric": "health", "op": "=", "value": 0, "for": "30s"},
    },
)

DEFAULT_RULES: tuple[HealthRuleSpec, ...] = tuple(map(parse_health_rule, _DOCUMENTS))
