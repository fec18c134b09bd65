"""Figures of cards out of what an exporter prints: a pure function over the Prometheus text format.

Which series stands for which figure only the vendor's ``Exporter`` says, so one reader serves every vendor.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from prometheus_client.parser import text_string_to_metric_families

from controlplane.ports.chips import Exporter, Series

FAULT = "fault"
_HEXADECIMAL = 16


class MalformedExposition(ValueError):
    """What was printed is not the Prometheus text format."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CardReading:
    """What an exporter says of one card at one moment."""

    #: The value of the exporter's ``card_label``.
    card: str
    #: By the product's names (see ``Exporter``), in their units. What is not printed is absent.
    figures: Mapping[str, float] = field(default_factory=dict)
    #: Codes as the vendor's fault map writes them.
    faults: tuple[str, ...] = ()


def read(text: str, exporter: Exporter) -> tuple[CardReading, ...]:
    """One reading for each card, ordered by its label; series outside of the exporter's map are passed over.

    :raises MalformedExposition: if the text is in another format.
    """
    wanted = _by_series(exporter)
    figures: dict[str, dict[str, dict[str, float]]] = defaultdict(lambda: defaultdict(dict))
    for name, labels, value in _samples(text):
        card = labels.get(exporter.card_label, "")
        for figure, series in wanted.get(name, ()):
            if card and math.isfinite(value) and series.labels.items() <= labels.items():
                figures[card][figure][name] = value
    return tuple(_reading(card, figures[card], exporter) for card in sorted(figures))


def _by_series(exporter: Exporter) -> Mapping[str, list[tuple[str, Series]]]:
    wanted: dict[str, list[tuple[str, Series]]] = defaultdict(list)
    for figure, series in exporter.series.items():
        for name in series.names:
            wanted[name].append((figure, series))
    return wanted


def _samples(text: str) -> Iterator[tuple[str, Mapping[str, str], float]]:
    try:
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                yield sample.name, sample.labels, sample.value
    except ValueError as wrong:
        raise MalformedExposition(f"not the Prometheus text format: {wrong}") from wrong


def _reading(
    card: str, printed: Mapping[str, Mapping[str, float]], exporter: Exporter
) -> CardReading:
    figures = {
        figure: sum(values.values()) * exporter.series[figure].scale
        for figure, values in printed.items()
        # A sum of which a part is missing is no sum.
        if figure != FAULT and len(values) == len(exporter.series[figure].names)
    }
    faults = {_code(value, exporter.fault_base) for value in printed.get(FAULT, {}).values()}
    return CardReading(card=card, figures=figures, faults=tuple(sorted(faults - {""})))


def _code(value: float, base: int) -> str:
    """The number as the fault map writes it; empty for 0, which is no fault."""
    if value <= 0:
        return ""
    return f"{int(value):08X}" if base == _HEXADECIMAL else str(int(value))
