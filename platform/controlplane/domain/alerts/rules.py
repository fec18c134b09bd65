"""Alert rules as data: a measure, a condition, a duration and a severity.

A rule names one *measure*. Its samples have labels, which identify the object, and a value. The rule compares
the samples that match its matchers with its threshold.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from operator import eq, ge, gt, le, lt
from typing import Any

from controlplane.domain.common.reasons import NONE, Reason
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.telemetry.metrics import MEASURES as METRIC_MEASURES
from controlplane.domain.telemetry.metrics import MetricUnit

Labels = Mapping[str, str]

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
LONGEST_DURATION = timedelta(days=7)
SHORTEST_REPEAT = timedelta(minutes=5)
MOST_MATCHERS = 10
LONGEST_VALUE = 200
SECONDS = "seconds"


class AlertSeverity(StrEnum):
    """From little to much."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        return list(AlertSeverity).index(self)


class AlertOperator(StrEnum):
    ABOVE = ">"
    AT_LEAST = ">="
    BELOW = "<"
    AT_MOST = "<="
    EQUAL = "=="

    def holds(self, value: float, threshold: float) -> bool:
        return _COMPARE[self](value, threshold)


_COMPARE: Mapping[AlertOperator, Callable[[float, float], bool]] = {
    AlertOperator.ABOVE: gt,
    AlertOperator.AT_LEAST: ge,
    AlertOperator.BELOW: lt,
    AlertOperator.AT_MOST: le,
    AlertOperator.EQUAL: eq,
}


class MeasureTopic(StrEnum):
    """What a measure is about: everything of one topic is read together."""

    CARDS = "cards"
    FAULTS = "faults"
    FLEET = "fleet"
    SOURCES = "sources"
    DECISIONS = "decisions"
    CLUSTERS = "clusters"
    CONTROLLERS = "controllers"
    PRODUCT = "product"
    QUEUES = "queues"
    DEPLOYMENTS = "deployments"


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertMeasure:
    """What can be measured, and which labels its samples have."""

    topic: MeasureTopic
    #: ``seconds``, or a unit of the metrics.
    unit: str
    labels: tuple[str, ...]


_CARD = ("cluster", "node", "card", "chip")

#: By name; metrics of cards have the name of the metric.
MEASURES: Mapping[str, AlertMeasure] = {
    **{
        f"cards.{metric.value}": AlertMeasure(
            topic=MeasureTopic.CARDS, unit=measure.unit, labels=_CARD
        )
        for metric, measure in METRIC_MEASURES.items()
    },
    # Level of an open fault, 1 to 6.
    "faults.level": AlertMeasure(
        topic=MeasureTopic.FAULTS,
        unit=MetricUnit.COUNT,
        labels=("cluster", "node", "card", "vendor", "origin", "code"),
    ),
    # Shares of a cluster's cards of one chip.
    "fleet.unknown_share": AlertMeasure(
        topic=MeasureTopic.FLEET, unit=MetricUnit.PERCENT, labels=("cluster", "chip")
    ),
    "fleet.isolated_share": AlertMeasure(
        topic=MeasureTopic.FLEET, unit=MetricUnit.PERCENT, labels=("cluster", "chip")
    ),
    # Time since the last metrics of a source.
    "sources.silence": AlertMeasure(
        topic=MeasureTopic.SOURCES, unit=SECONDS, labels=("cluster", "source")
    ),
    # Decisions of the last hour that the guard suppressed.
    "decisions.held_back": AlertMeasure(
        topic=MeasureTopic.DECISIONS, unit=MetricUnit.COUNT, labels=("cluster",)
    ),
    "clusters.silence": AlertMeasure(
        topic=MeasureTopic.CLUSTERS, unit=SECONDS, labels=("cluster",)
    ),
    # 1 while a controller is late, failing or stuck.
    "controllers.unhealthy": AlertMeasure(
        topic=MeasureTopic.CONTROLLERS, unit=MetricUnit.FLAG, labels=("controller",)
    ),
    "controllers.lag": AlertMeasure(
        topic=MeasureTopic.CONTROLLERS, unit=SECONDS, labels=("controller",)
    ),
    "product.disk_free": AlertMeasure(
        topic=MeasureTopic.PRODUCT, unit=MetricUnit.PERCENT, labels=("disk",)
    ),
    "product.outbox_age": AlertMeasure(topic=MeasureTopic.PRODUCT, unit=SECONDS, labels=()),
    # Of the claim that has waited longest.
    "queues.wait": AlertMeasure(topic=MeasureTopic.QUEUES, unit=SECONDS, labels=("queue",)),
    "queues.waiting": AlertMeasure(
        topic=MeasureTopic.QUEUES, unit=MetricUnit.COUNT, labels=("queue",)
    ),
    # Of the calls of the last ten minutes those that a server's error ended.
    "deployments.failure_share": AlertMeasure(
        topic=MeasureTopic.DEPLOYMENTS, unit=MetricUnit.PERCENT, labels=("deployment", "team")
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelMatcher:
    """A condition on one label; ``*`` in the value matches any text."""

    label: str
    value: str
    #: Whether it must differ instead.
    differs: bool = False

    def fits(self, labels: Labels) -> bool:
        """An absent label is an empty one."""
        return fnmatchcase(labels.get(self.label, ""), self.value) is not self.differs

    def __str__(self) -> str:
        return f"{self.label}{'!=' if self.differs else '='}{self.value}"


_MATCHER = re.compile(r"\s*([a-z_]{1,40})\s*(!=|=)\s*(.*?)\s*", re.DOTALL)


def parse_matcher(text: str) -> LabelMatcher:
    """The matcher that ``label=value`` or ``label!=value`` writes.

    :raises ValueError: saying what is wrong with it.
    """
    found = _MATCHER.fullmatch(text)
    if found is None or not found[3] or len(found[3]) > LONGEST_VALUE or "\0" in text:
        raise ValueError(
            Reason(
                "alert_rule.matcher.invalid",
                "{matcher} is not a label matcher; write cluster=west or node!=a*",
                matcher=repr(text[:80]),
            )
        )
    return LabelMatcher(label=found[1], value=found[3], differs=found[2] == "!=")


def all_matchers_match(matchers: Iterable[LabelMatcher], labels: Labels) -> bool:
    return all(matcher.fits(labels) for matcher in matchers)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertSample:
    """A value of a measure; None if the object has one that is unknown now."""

    labels: Labels
    value: float | None
    #: The page of the thing; empty where it has none.
    href: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRuleSpec:
    """When something is an alert."""

    #: For addresses: small letters, digits and dashes.
    name: str
    title: str
    measure: str
    op: AlertOperator
    threshold: float
    severity: AlertSeverity
    #: Only samples that match all of these are compared.
    where: tuple[LabelMatcher, ...] = ()
    #: It must hold for so long before it is an alert, and not hold for so long before that is over.
    lasts: timedelta = timedelta()
    keeps: timedelta = timedelta()
    #: Alerts with equal values of these labels are notified together; empty: all of them.
    group_by: tuple[str, ...] = ()
    #: Interval of repeated notices while it fires; None: no repetition.
    repeat: timedelta | None = None
    enabled: bool = True

    def holds(self, sample: AlertSample) -> bool | None:
        """None if the value is unknown."""
        return None if sample.value is None else self.op.holds(sample.value, self.threshold)

    def group_labels(self, labels: Labels) -> dict[str, str]:
        return {name: labels.get(name, "") for name in self.group_by}

    def as_json(self) -> dict[str, Any]:
        """As :func:`parse_rule` reads it."""
        return {
            "name": self.name,
            "title": self.title,
            "measure": self.measure,
            "op": self.op.value,
            "threshold": self.threshold,
            "severity": self.severity.value,
            "where": [str(matcher) for matcher in self.where],
            "lasts": int(self.lasts.total_seconds()),
            "keeps": int(self.keeps.total_seconds()),
            "group_by": list(self.group_by),
            "repeat": None if self.repeat is None else int(self.repeat.total_seconds()),
            "enabled": self.enabled,
        }


class RuleInvalid(Exception):
    """The rule is not valid; ``findings`` has an entry for each invalid field."""

    def __init__(self, findings: tuple[FieldFinding, ...]) -> None:
        super().__init__("; ".join(f"{one.field}: {one.message}" for one in findings))
        self.findings = findings


def parse_rule(document: Mapping[str, Any]) -> AlertRuleSpec:
    """The rule that a document of plain values describes.

    :raises RuleInvalid: with everything that is wrong with it.
    """
    reader = _Reader(document=document)
    measure = reader.code("measure", MEASURES)
    labels = MEASURES[measure].labels if measure in MEASURES else None
    rule = AlertRuleSpec(
        name=reader.name(),
        title=reader.title(),
        measure=measure,
        op=AlertOperator(
            reader.code("op", [one.value for one in AlertOperator]) or AlertOperator.ABOVE
        ),
        threshold=reader.number("threshold"),
        severity=AlertSeverity(
            reader.code("severity", [one.value for one in AlertSeverity]) or AlertSeverity.INFO
        ),
        where=reader.matchers(labels),
        lasts=reader.duration("lasts"),
        keeps=reader.duration("keeps"),
        group_by=reader.group_by(labels),
        repeat=reader.repeat(),
        enabled=bool(document.get("enabled", True)),
    )
    if reader.findings:
        raise RuleInvalid(tuple(reader.findings))
    return rule


@dataclass(kw_only=True)
class _Reader:
    """Reads field by field and keeps what was wrong."""

    document: Mapping[str, Any]
    findings: list[FieldFinding] = field(default_factory=list)

    def wrong(self, name: str, *, message: str) -> None:
        self.findings.append(FieldFinding(field=name, message=message))

    def name(self) -> str:
        value = str(self.document.get("name", ""))
        if NAME.fullmatch(value) is None:
            self.wrong(
                "name",
                message=Reason(
                    "alert_rule.name.invalid",
                    "{name} is not a valid name; use up to 60 lowercase letters, digits and "
                    "hyphens",
                    name=repr(value[:60]),
                ),
            )
        return value

    def title(self) -> str:
        value = str(self.document.get("title", "")).strip()
        if not value or len(value) > 120 or "\0" in value:
            self.wrong(
                "title",
                message=Reason(
                    "alert_rule.title.invalid",
                    "describe the problem that the alert reports in 1 to 120 characters",
                ),
            )
        return value

    def code(self, name: str, known: Iterable[str]) -> str:
        value, codes = self.document.get(name), list(known)
        if value not in codes:
            self.wrong(
                name,
                message=Reason(
                    "alert_rule.choice.unknown",
                    "{value} is not known; choose one of {choices}",
                    value=repr(str(value)[:60]),
                    choices=", ".join(codes),
                ),
            )
            return ""
        return str(value)

    def number(self, name: str) -> float:
        value = self.document.get(name)
        if isinstance(value, bool) or not isinstance(value, int | float) or abs(value) > 1e15:
            self.wrong(
                name,
                message=Reason(
                    "alert_rule.number.out_of_range",
                    "{value} is not a number between -1e15 and 1e15",
                    value=repr(str(value)[:60]),
                ),
            )
            return 0.0
        if not math.isfinite(value):
            self.wrong(
                name,
                message=Reason(
                    "alert_rule.number.not_finite",
                    "{value} is not a finite number",
                    value=repr(value),
                ),
            )
            return 0.0
        return float(value)

    def duration(self, name: str) -> timedelta:
        value, most = self.document.get(name, 0), int(LONGEST_DURATION.total_seconds())
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= most:
            self.wrong(
                name,
                message=Reason(
                    "alert_rule.duration.out_of_range",
                    "{value} is not a number of seconds from 0 to {limit}",
                    value=repr(str(value)[:60]),
                    limit=most,
                ),
            )
            return timedelta()
        return timedelta(seconds=value)

    def repeat(self) -> timedelta | None:
        if self.document.get("repeat") in (None, 0):
            return None
        pause = self.duration("repeat")
        if pause and pause < SHORTEST_REPEAT:
            least = int(SHORTEST_REPEAT.total_seconds())
            self.wrong(
                "repeat",
                message=Reason(
                    "alert_rule.repeat.too_short",
                    "the repeat interval of {seconds} seconds is too short; the minimum is "
                    "{minimum}",
                    seconds=int(pause.total_seconds()),
                    minimum=least,
                ),
            )
        return pause

    def matchers(self, labels: tuple[str, ...] | None) -> tuple[LabelMatcher, ...]:
        given = self.document.get("where", ())
        if not isinstance(given, list | tuple) or len(given) > MOST_MATCHERS:
            self.wrong(
                "where",
                message=Reason(
                    "alert_rule.matchers.too_many",
                    "provide a list of at most {limit} matchers",
                    limit=MOST_MATCHERS,
                ),
            )
            return ()
        read = []
        for text in given:
            try:
                matcher = parse_matcher(str(text))
            except ValueError as error:
                self.wrong("where", message=str(error))
                continue
            if labels is not None and matcher.label not in labels:
                self.wrong("where", message=_unknown_label_message(matcher.label, labels))
            read.append(matcher)
        return tuple(read)

    def group_by(self, labels: tuple[str, ...] | None) -> tuple[str, ...]:
        given = self.document.get("group_by", ())
        if not isinstance(given, list | tuple):
            self.wrong(
                "group_by",
                message=Reason("alert_rule.group_by.invalid", "provide a list of labels"),
            )
            return ()
        names = tuple(dict.fromkeys(str(name) for name in given))
        for name in names:
            if labels is not None and name not in labels:
                self.wrong("group_by", message=_unknown_label_message(name, labels))
        return names


def _unknown_label_message(name: str, labels: tuple[str, ...]) -> str:
    known = ", ".join(labels) or NONE
    return Reason(
        "alert_rule.group_by.unknown_label",
        "this metric has no label {label}; its labels: {labels}",
        label=repr(name[:40]),
        labels=known,
    )
