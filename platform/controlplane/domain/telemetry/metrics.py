"""Metrics of cards: one vocabulary for all chips, with units and possible values.

A vendor's plug-in maps the series of its exporter to metrics (``controlplane.ports.chips``); no other code needs
the vendor's names.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum


class Metric(StrEnum):
    """A metric of a card."""

    UTILIZATION = "utilization"
    MEMORY_USED = "memory_used"
    MEMORY_TOTAL = "memory_total"
    TEMPERATURE = "temperature"
    MEMORY_TEMPERATURE = "memory_temperature"
    POWER = "power"
    CLOCK = "clock"
    ECC_CORRECTED = "ecc_corrected"
    ECC_UNCORRECTED = "ecc_uncorrected"
    LINK_ERRORS = "link_errors"
    NETWORK_ERRORS = "network_errors"
    HEALTH = "health"


class MetricUnit(StrEnum):
    PERCENT = "percent"
    BYTES = "bytes"
    CELSIUS = "celsius"
    WATTS = "watts"
    HERTZ = "hertz"
    COUNT = "count"
    FLAG = "flag"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricDefinition:
    """What the values of a metric mean."""

    unit: MetricUnit
    #: Beyond these no card can be: such a value is refused, not clipped.
    lowest: float
    highest: float
    #: It only grows, until the card is reset: what matters is how fast.
    counter: bool = False


_COUNTER = MetricDefinition(unit=MetricUnit.COUNT, lowest=0, highest=1e15, counter=True)
MEASURES: Mapping[Metric, MetricDefinition] = {
    Metric.UTILIZATION: MetricDefinition(unit=MetricUnit.PERCENT, lowest=0, highest=100),
    Metric.MEMORY_USED: MetricDefinition(unit=MetricUnit.BYTES, lowest=0, highest=1e14),
    Metric.MEMORY_TOTAL: MetricDefinition(unit=MetricUnit.BYTES, lowest=0, highest=1e14),
    Metric.TEMPERATURE: MetricDefinition(unit=MetricUnit.CELSIUS, lowest=-60, highest=250),
    Metric.MEMORY_TEMPERATURE: MetricDefinition(unit=MetricUnit.CELSIUS, lowest=-60, highest=250),
    Metric.POWER: MetricDefinition(unit=MetricUnit.WATTS, lowest=0, highest=20_000),
    Metric.CLOCK: MetricDefinition(unit=MetricUnit.HERTZ, lowest=0, highest=1e11),
    Metric.ECC_CORRECTED: _COUNTER,
    Metric.ECC_UNCORRECTED: _COUNTER,
    Metric.LINK_ERRORS: _COUNTER,
    Metric.NETWORK_ERRORS: _COUNTER,
    #: 1 is healthy, 0 is not, according to the vendor's tools.
    Metric.HEALTH: MetricDefinition(unit=MetricUnit.FLAG, lowest=0, highest=1),
}


def is_metric_value_possible(metric: Metric, value: float) -> bool:
    """Whether a card can have that value: a finite number within the metric's bounds."""
    measure = MEASURES[metric]
    return math.isfinite(value) and measure.lowest <= value <= measure.highest


@dataclass(frozen=True, slots=True, kw_only=True)
class CardMetricsReading:
    """What was measured of one card at one moment."""

    #: The node's name in its cluster.
    node: str
    #: Index of the card in its node; None if it is identified by its serial number only.
    index: int | None
    at: datetime
    #: Absent is what was not measured, never 0.
    metrics: Mapping[Metric, float] = field(default_factory=dict)
    #: Serial number; empty if unknown.
    serial: str = ""
    #: Active fault codes, as in the vendor's fault map; None if the source does not report faults, which
    #: differs from no faults.
    faults: tuple[str, ...] | None = None
    #: Whose fault map the codes belong to.
    vendor: str = ""
