"""Metrics of the gateway in Prometheus's text format. Labels name routes and codes, never keys."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence

#: Upper bounds of buckets in seconds: from a cached response to the longest generation.
SECONDS = (
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1.0,
    2.5,
    5.0,
    10.0,
    30.0,
    60.0,
    120.0,
    300.0,
    600.0,
)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def _escape_label_value(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _format_labels(names: Sequence[str], values: Sequence[str]) -> str:
    pairs = ",".join(
        f'{name}="{_escape_label_value(value)}"' for name, value in zip(names, values, strict=True)
    )
    return f"{{{pairs}}}" if pairs else ""


class MetricCounter:
    """A counter, one for each set of label values."""

    def __init__(self, name: str, meaning: str, *, labels: Sequence[str] = ()) -> None:
        self._name = name
        self._meaning = meaning
        self._labels = tuple(labels)
        self._values: dict[tuple[str, ...], float] = {} if labels else {(): 0.0}

    def add(self, *values: str, amount: float = 1.0) -> None:
        self._values[values] = self._values.get(values, 0.0) + amount

    def value(self, *values: str) -> float:
        return self._values.get(values, 0.0)

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self._name} {self._meaning}"
        yield f"# TYPE {self._name} counter"
        for values, amount in sorted(self._values.items()):
            yield f"{self._name}{_format_labels(self._labels, values)} {amount:g}"


class MetricGauge:
    """A gauge that is read at each scrape; omitted while it is None."""

    def __init__(self, name: str, meaning: str, *, read: Callable[[], float | None]) -> None:
        self._name = name
        self._meaning = meaning
        self._read = read

    def lines(self) -> Iterator[str]:
        value = self._read()
        if value is None:
            return
        yield f"# HELP {self._name} {self._meaning}"
        yield f"# TYPE {self._name} gauge"
        yield f"{self._name} {value:.15g}"


class DurationHistogram:
    """A histogram of durations with the buckets :data:`SECONDS`."""

    def __init__(self, name: str, meaning: str, *, labels: Sequence[str] = ()) -> None:
        self._name = name
        self._meaning = meaning
        self._labels = tuple(labels)
        self._counts: dict[tuple[str, ...], list[int]] = {}
        self._sums: dict[tuple[str, ...], float] = {}

    def observe(self, *values: str, seconds: float) -> None:
        counts = self._counts.get(values)
        if counts is None:
            counts = self._counts[values] = [0] * (len(SECONDS) + 1)
            self._sums[values] = 0.0
        counts[bisect_left(SECONDS, seconds)] += 1
        self._sums[values] += seconds

    def lines(self) -> Iterator[str]:
        yield f"# HELP {self._name} {self._meaning}"
        yield f"# TYPE {self._name} histogram"
        for values, counts in sorted(self._counts.items()):
            total = 0
            for bound, count in zip((*map(str, SECONDS), "+Inf"), counts, strict=True):
                total += count
                labels = _format_labels((*self._labels, "le"), (*values, bound))
                yield f"{self._name}_bucket{labels} {total}"
            labels = _format_labels(self._labels, values)
            yield f"{self._name}_sum{labels} {self._sums[values]:.6f}"
            yield f"{self._name}_count{labels} {total}"


class GatewayMetrics:
    """All metrics of the gateway."""

    def __init__(self) -> None:
        self.requests = MetricCounter(
            "ninefold_gateway_requests_total",
            "Requests to routes that have ended.",
            labels=("route", "operation", "status", "outcome"),
        )
        self.errors = MetricCounter(
            "ninefold_gateway_errors_total",
            "Errors answered, those before a route was found included.",
            labels=("status",),
        )
        self.tokens = MetricCounter(
            "ninefold_gateway_tokens_total", "Tokens counted.", labels=("route", "kind")
        )
        self.duration = DurationHistogram(
            "ninefold_gateway_request_seconds", "From request to last byte.", labels=("route",)
        )
        self.first_token = DurationHistogram(
            "ninefold_gateway_first_token_seconds",
            "From request to the first part of a streamed answer.",
            labels=("route",),
        )
        self.refused_connections = MetricCounter(
            "ninefold_gateway_refused_connections_total",
            "Connections to endpoints that failed.",
            labels=("route",),
        )
        self.snapshots = MetricCounter(
            "ninefold_gateway_snapshots_total", "Snapshots received.", labels=("result",)
        )
        self.dropped_records = MetricCounter(
            "ninefold_gateway_usage_records_dropped_total",
            "Usage records that will never be posted.",
            labels=("reason",),
        )
        self.posted_records = MetricCounter(
            "ninefold_gateway_usage_records_posted_total", "Usage records acknowledged."
        )
        self._gauges: list[MetricGauge] = []

    def gauge(self, name: str, meaning: str, *, read: Callable[[], float | None]) -> None:
        self._gauges.append(MetricGauge(name, meaning, read=read))

    def text(self) -> str:
        families: list[MetricCounter | MetricGauge | DurationHistogram] = [
            self.requests,
            self.errors,
            self.tokens,
            self.duration,
            self.first_token,
            self.refused_connections,
            self.snapshots,
            self.dropped_records,
            self.posted_records,
            *self._gauges,
        ]
        return "".join(f"{line}\n" for family in families for line in family.lines())
