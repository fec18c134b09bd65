"""Metrics of a card formatted with their units."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.telemetry.models import CardMetrics
from apps.telemetry.selectors import FRESH
from controlplane.domain.common.resources import GIB
from controlplane.domain.telemetry.metrics import Metric

LABELS: Mapping[Metric, Promise] = {
    Metric.UTILIZATION: gettext_lazy("Utilization"),
    Metric.MEMORY_USED: gettext_lazy("Memory in use"),
    Metric.TEMPERATURE: gettext_lazy("Temperature"),
    Metric.MEMORY_TEMPERATURE: gettext_lazy("Memory temperature"),
    Metric.POWER: gettext_lazy("Power"),
    Metric.CLOCK: gettext_lazy("Clock"),
    Metric.ECC_UNCORRECTED: gettext_lazy("Uncorrectable memory errors"),
    Metric.ECC_CORRECTED: gettext_lazy("Correctable memory errors"),
    Metric.LINK_ERRORS: gettext_lazy("Link errors"),
    Metric.NETWORK_ERRORS: gettext_lazy("Network errors"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class DisplayedMetric:
    """A metric with its unit."""

    metric: Metric
    label: Promise
    value: str
    unit: str = ""
    hint: str = ""


class CardMetricSummary(NamedTuple):
    """Latest metrics of a card on one line."""

    text: str
    at: datetime
    #: They are stale.
    stale: bool


#: What is worth a line.
_BRIEF = (Metric.UTILIZATION, Metric.TEMPERATURE, Metric.POWER)


def metric_summaries(
    rows: Iterable[CardMetrics], *, at: datetime
) -> Mapping[int, CardMetricSummary]:
    """By the card's primary key."""
    return {
        one.card_id: CardMetricSummary(
            text=_summary_line(one), at=one.at, stale=at - one.at > FRESH
        )
        for one in rows
    }


def _summary_line(newest: CardMetrics) -> str:
    shown = (
        _metric_label(metric, value, newest)
        for metric in _BRIEF
        if (value := getattr(newest, metric.value)) is not None
    )
    return " · ".join(f"{one.value} {one.unit}" for one in shown)


def displayed_metrics(newest: CardMetrics | None) -> list[DisplayedMetric]:
    """What was measured; a metric that was not is left out."""
    if newest is None:
        return []
    return [
        _metric_label(metric, value, newest)
        for metric in LABELS
        if (value := getattr(newest, metric.value)) is not None
    ]


def _metric_label(metric: Metric, value: float, newest: CardMetrics) -> DisplayedMetric:
    hint = ""
    if metric is Metric.MEMORY_USED and newest.memory_total:
        hint = _("of %(total)s GiB") % {"total": f"{newest.memory_total / GIB:.0f}"}
    amount, unit, places = _WRITTEN.get(metric, (1.0, "", 0))
    written = f"{value / amount:,.{places}f}"
    return DisplayedMetric(metric=metric, label=LABELS[metric], value=written, unit=unit, hint=hint)


#: What a value is divided by, the unit that this gives, and how many decimals are worth showing.
_WRITTEN: Mapping[Metric, tuple[float, str, int]] = {
    Metric.UTILIZATION: (1.0, "%", 0),
    Metric.MEMORY_USED: (float(GIB), "GiB", 1),
    Metric.TEMPERATURE: (1.0, "°C", 0),
    Metric.MEMORY_TEMPERATURE: (1.0, "°C", 0),
    Metric.POWER: (1.0, "W", 0),
    Metric.CLOCK: (1e6, "MHz", 0),
}
