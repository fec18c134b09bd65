"""Metric batches: metrics of many cards at one moment, in columns.

An object for each card and a dictionary for each object would cost more than the processing of their values.
Where a source reports thousands of cards, and always the same ones, they are passed as a batch::

    whose     utilization   power   …
    n0, 0         93         512
    n0, 1         NaN        498        NaN: not measured

What does not fit into a batch, such as a number that is not finite, is passed as a ``Reading`` of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from math import isnan

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.telemetry.metrics import CardMetricsReading, Metric

Numbers = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class CardIdentity:
    """Which card a line of a sheet is about, as in a ``Reading``; the serial number is printable."""

    node: str
    index: int | None
    serial: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MetricBatch:
    """The same as a ``Reading`` of each of its cards."""

    #: In the order of the columns' numbers.
    whose: Sequence[CardIdentity]
    at: datetime
    #: Columns of finite numbers; NaN where nothing was measured, and no column where nothing at all was.
    metrics: Mapping[Metric, Numbers]
    #: Cards whose faults are reported, also if there are none.
    speaks: NDArray[np.bool_]
    #: Codes of those that have any, by the card's place in ``whose``.
    faults: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    vendor: str = ""

    def reading(self, place: int) -> CardMetricsReading:
        """The entry of one card."""
        whose = self.whose[place]
        return CardMetricsReading(
            node=whose.node,
            index=whose.index,
            at=self.at,
            metrics={
                metric: value
                for metric, column in self.metrics.items()
                if not isnan(value := float(column[place]))
            },
            serial=whose.serial,
            faults=self.faults.get(place, ()) if self.speaks[place] else None,
            vendor=self.vendor,
        )

    def readings(self) -> tuple[CardMetricsReading, ...]:
        return tuple(self.reading(place) for place in range(len(self.whose)))
