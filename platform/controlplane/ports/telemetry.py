"""The telemetry port: a source of card metrics.

A package declares an entry point in ``ninefold.telemetry``. An adapter converts what it read to the product's
own names and units; whether a value is possible, and which card it belongs to, is decided by the product for
all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from controlplane.domain.common.reasons import Parameter, ReasonedError
from controlplane.domain.outbound.egress import parse_target
from controlplane.domain.telemetry.metrics import CardMetricsReading

if TYPE_CHECKING:
    # It imports numpy, which code that only names a source does not need.
    from controlplane.domain.telemetry.metric_batches import MetricBatch


class TelemetryError(ReasonedError):
    """An adapter cannot be used with its options; the message names the option and what would be right.

    ``option`` is its path, such as ``targets[0].url``; empty if it is none in particular.
    """

    def __init__(
        self, message: str, template: str = "", /, *, option: str = "", **params: Parameter
    ) -> None:
        super().__init__(message, template, **params)
        self.option = option


class TelemetryFailed(TelemetryError):
    """Nothing could be read; the message gives the reason. It may work again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RejectedReading:
    """Something that was read and rejected."""

    #: What it was about, such as a card or a series.
    what: str
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class TelemetryBatch:
    """What one reading of a source brought."""

    readings: tuple[CardMetricsReading, ...] = ()
    #: Readings of many cards each, where they came in the usual form.
    metric_batches: tuple[MetricBatch, ...] = ()
    refused: tuple[RejectedReading, ...] = ()
    #: Parts of the source that did not answer, such as one exporter of many → why.
    unreachable: Mapping[str, str] = field(default_factory=dict)

    def all_readings(self) -> tuple[CardMetricsReading, ...]:
        """All readings, those in sheets too."""
        return (
            *self.readings,
            *(one for metric_batch in self.metric_batches for one in metric_batch.readings()),
        )


def exporter_name(*, url: str, node: str) -> str:
    """The display name of one exporter: its node, or its address where it has none.

    :raises EgressRefused: if the URL is none, where it is needed.
    """
    if node:
        return node
    parts = parse_target(url)
    return f"{parts.authority}{parts.path}"


@runtime_checkable
class TelemetrySource(Protocol):
    def read(self) -> TelemetryBatch:
        """The newest metrics of all cards of the source; sources without a response in time are ``unreachable``.

        :raises TelemetryFailed: if nothing at all could be read.
        """
