"""Alert rules as data: a measure, a condition, a duration and a severity.

A rule names one *measure*. Its samples have labels, which identify the object, and a value. The rule compares
the samples that match its matchers with its threshold.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from fnmatch import fnmatchcase
from typing import Any

from controlplane.domain.common.reasons import NONE, ReasonedValueError
from controlplane.domain.rules.conditions import Condition, RuleReader
from controlplane.domain.telemetry.metrics import MEASURES as METRIC_MEASURES
from controlplane.domain.telemetry.metrics import MetricUnit

Labels = Mapping[str, str]

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


def _measure(topic: MeasureTopic, unit: str, *labels: str) -> AlertMeasure:
    return AlertMeasure(topic=topic, unit=unit, labels=labels)


#: By name; metrics of cards have the name of the metric.
MEASURES: Mapping[str, AlertMeasure] = {
    **{
        f"cards.{metric.value}": _measure(
            MeasureTopic.CARDS, measure.unit, "cluster", "node", "card", "chip"
        )
        for metric, measure in METRIC_MEASURES.items()
    },
    # Level of an open fault, 1 to 6.
    "faults.level": _measure(
        MeasureTopic.FAULTS,
        MetricUnit.COUNT,
        *("cluster", "node", "card", "vendor", "origin", "code"),
    ),
    # Shares of a cluster's cards of one chip.
    "fleet.unknown_share": _measure(MeasureTopic.FLEET, MetricUnit.PERCENT, "cluster", "chip"),
    "fleet.isolated_share": _measure(MeasureTopic.FLEET, MetricUnit.PERCENT, "cluster", "chip"),
    # Time since the last metrics of a source.
    "sources.silence": _measure(MeasureTopic.SOURCES, SECONDS, "cluster", "source"),
    # Decisions of the last hour that the guard suppressed.
    "decisions.held_back": _measure(MeasureTopic.DECISIONS, MetricUnit.COUNT, "cluster"),
    "clusters.silence": _measure(MeasureTopic.CLUSTERS, SECONDS, "cluster"),
    # 1 while a controller is late, failing or stuck.
    "controllers.unhealthy": _measure(MeasureTopic.CONTROLLERS, MetricUnit.FLAG, "controller"),
    "controllers.lag": _measure(MeasureTopic.CONTROLLERS, SECONDS, "controller"),
    "product.disk_free": _measure(MeasureTopic.PRODUCT, MetricUnit.PERCENT, "disk"),
    "product.outbox_age": _measure(MeasureTopic.PRODUCT, SECONDS),
    # Of the claim that has waited longest.
    "queues.wait": _measure(MeasureTopic.QUEUES, SECONDS, "queue"),
    "queues.waiting": _measure(MeasureTopic.QUEUES, MetricUnit.COUNT, "queue"),
    # Of the calls of the last ten minutes those that a server's error ended.
    "deployments.failure_share": _measure(
        MeasureTopic.DEPLOYMENTS, MetricUnit.PERCENT, "deployment", "team"
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
        raise ReasonedValueError(
            "alert_rule.matcher.invalid",
            "{matcher} is not a label matcher; write cluster=west or node!=a*",
            matcher=repr(text[:80]),
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
class AlertRuleSpec(Condition):
    """When something is an alert."""

    #: For addresses: small letters, digits and dashes.
    name: str
    title: str
    measure: str
    severity: AlertSeverity
    #: Only samples that match all of these are compared.
    where: tuple[LabelMatcher, ...] = ()
    #: Alerts with equal values of these labels are notified together; empty: all of them.
    group_by: tuple[str, ...] = ()
    #: Interval of repeated notices while it fires; None: no repetition.
    repeat: timedelta | None = None
    enabled: bool = True

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


def parse_rule(document: Mapping[str, Any]) -> AlertRuleSpec:
    """The rule that a document of plain values describes.

    :raises RuleInvalid: with everything that is wrong with it.
    """
    reader = RuleReader(document=document)
    measure = str(document.get("measure"))
    if measure not in MEASURES:
        reader.not_a_choice("measure", *MEASURES)
    rule = AlertRuleSpec(
        name=reader.name(),
        title=reader.title(),
        measure=measure,
        op=reader.comparison(),
        threshold=reader.number("threshold"),
        severity=reader.choice("severity", AlertSeverity),
        where=_read_matchers(reader),
        lasts=reader.duration("lasts"),
        keeps=reader.duration("keeps"),
        group_by=reader.texts("group_by", most=MOST_MATCHERS),
        repeat=reader.duration("repeat") if document.get("repeat") else None,
        enabled=bool(document.get("enabled", True)),
    )
    if measure in MEASURES:
        _check_labels(rule, reader)
    if rule.repeat and rule.repeat < SHORTEST_REPEAT:
        reader.wrong(
            "repeat",
            "alert_rule.repeat.too_short",
            "the repeat interval of {seconds} seconds is too short; the minimum is {minimum}",
            seconds=int(rule.repeat.total_seconds()),
            minimum=int(SHORTEST_REPEAT.total_seconds()),
        )
    reader.check()
    return rule


def _read_matchers(reader: RuleReader) -> tuple[LabelMatcher, ...]:
    read = []
    for text in reader.texts("where", most=MOST_MATCHERS):
        try:
            read.append(parse_matcher(text))
        except ValueError as error:
            reader.wrong("where", str(error))
    return tuple(read)


def _check_labels(rule: AlertRuleSpec, reader: RuleReader) -> None:
    known = MEASURES[rule.measure].labels
    used = [("where", matcher.label) for matcher in rule.where]
    used += [("group_by", label) for label in rule.group_by]
    for name, label in used:
        if label not in known:
            reader.wrong(
                name,
                "alert_rule.group_by.unknown_label",
                "this metric has no label {label}; its labels: {labels}",
                label=repr(label[:40]),
                labels=", ".join(known) or NONE,
            )


#: The default rules. Users may edit or disable them; edited ones are not updated.
_DOCUMENTS: tuple[Mapping[str, Any], ...] = (
    {
        "name": "source-silent",
        "title": "Metric source is stale",
        "measure": "sources.silence",
        "op": ">",
        "threshold": 60,
        "lasts": 60,
        "severity": "critical",
        "group_by": ["cluster"],
    },
    {
        "name": "cluster-silent",
        "title": "Cluster does not respond",
        "measure": "clusters.silence",
        "op": ">",
        "threshold": 90,
        "lasts": 60,
        "severity": "critical",
    },
    {
        "name": "cards-unknown",
        "title": "Many cards are in the state unknown",
        "measure": "fleet.unknown_share",
        "op": ">=",
        "threshold": 10,
        "lasts": 60,
        "severity": "critical",
        "group_by": ["cluster"],
    },
    {
        "name": "cards-isolated",
        "title": "Many cards are isolated",
        "measure": "fleet.isolated_share",
        "op": ">=",
        "threshold": 5,
        "lasts": 300,
        "severity": "warning",
        "group_by": ["cluster"],
    },
    {
        "name": "isolation-held-back",
        "title": "Isolations suppressed by the health policy limits: action required",
        "measure": "decisions.held_back",
        "op": ">",
        "threshold": 0,
        "severity": "critical",
        "group_by": ["cluster"],
    },
    {
        "name": "severe-fault",
        "title": "Severe faults are open",
        "measure": "faults.level",
        "op": ">=",
        "threshold": 5,
        "lasts": 30,
        "severity": "warning",
        "group_by": ["cluster"],
    },
    {
        "name": "card-hot",
        "title": "Cards are too hot",
        "measure": "cards.temperature",
        "op": ">",
        "threshold": 90,
        "lasts": 120,
        "keeps": 120,
        "severity": "warning",
        "group_by": ["cluster"],
    },
    {
        "name": "controller-late",
        "title": "Controller is unhealthy",
        "measure": "controllers.unhealthy",
        "op": "==",
        "threshold": 1,
        "lasts": 60,
        "keeps": 60,
        "severity": "critical",
    },
    {
        "name": "outbox-late",
        "title": "Outbox messages are not delivered",
        "measure": "product.outbox_age",
        "op": ">",
        "threshold": 60,
        "lasts": 60,
        "severity": "critical",
    },
    {
        "name": "disk-filling",
        "title": "Disk of the Ninefold server is almost full",
        "measure": "product.disk_free",
        "op": "<",
        "threshold": 10,
        "lasts": 300,
        "severity": "critical",
    },
    {
        "name": "queue-waits",
        "title": "Resource claim pending for more than one day",
        "measure": "queues.wait",
        "op": ">",
        "threshold": 86_400,
        "lasts": 600,
        "severity": "info",
        "group_by": ["queue"],
    },
    {
        "name": "deployment-failing",
        "title": "Requests to a deployment fail",
        "measure": "deployments.failure_share",
        "op": ">",
        "threshold": 5,
        "lasts": 120,
        "keeps": 120,
        "severity": "critical",
        "group_by": ["deployment"],
    },
)

DEFAULTS: tuple[AlertRuleSpec, ...] = tuple(map(parse_rule, _DOCUMENTS))
