"""Reads exporters one by one, many at a time. One that does not answer holds up nobody else for long.

What an exporter prints has the same form from call to call. It is learnt where it was met, so that the next text
is read as a whole; where it keeps changing, it is learnt more and more seldom, for that is not free.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from threading import Lock
from typing import Any, NotRequired

from typing_extensions import TypedDict

from controlplane.domain.common.reasons import Reason
from controlplane.domain.outbound.egress import EgressRefused
from controlplane.ports import adapter_registry
from controlplane.ports.exposition_layouts import ExpositionLayout
from controlplane.ports.expositions import MalformedExposition, exposition_reader_of_vendor
from controlplane.ports.outbound_http import OutboundFailed, OutboundHttpClient
from controlplane.ports.telemetry import (
    RejectedReading,
    TelemetryBatch,
    TelemetryError,
    TelemetryFailed,
    exporter_name,
)

MOST_TARGETS = 5_000
MAX_TEXT_SIZE = 32 * 1024 * 1024
_AT_ONCE = 64
_OK = 200
#: Characters of all texts whose forms are remembered, and texts of another form between two attempts at most.
_REMEMBERED, _MAX_BACKOFF = 64 * 1024 * 1024, 64


@dataclass(frozen=True, slots=True, kw_only=True)
class ExporterTarget:
    """One exporter."""

    url: str
    #: The node of its cards, overriding its labels; empty: the labels name it.
    node: str

    @property
    def name(self) -> str:
        return exporter_name(url=self.url, node=self.node)


@dataclass(slots=True)
class _LayoutCacheEntry:
    """What is known of one exporter's texts. Only the thread that reads this exporter touches it."""

    layout: ExpositionLayout | None = None
    #: Size of the texts that the layout covers, in characters.
    size: int = 0
    #: Texts that are read line by line before a form is learnt again, and after the next time that it was for
    #: nothing: the form did not last, there was none, or no room for it.
    wait: int = 0
    penalty: int = 1

    def back_off(self) -> None:
        self.wait, self.penalty = self.penalty, min(2 * self.penalty, _MAX_BACKOFF)


class _LayoutCacheBudget:
    """Characters that are left for texts whose forms are remembered. All threads share it."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._lock = Lock()

    def holds(self, size: int) -> bool:
        return size <= self._left

    def take(self, size: int) -> bool:
        """False, and nothing is taken, if that much is not left."""
        with self._lock:
            enough = size <= self._left
            self._left -= size if enough else 0
        return enough

    def release(self, size: int) -> None:
        with self._lock:
            self._left += size


class ExporterTargetOptions(TypedDict):
    """An exporter; without ``node`` its own label must name the node."""

    url: str
    node: NotRequired[str]


def utc_now() -> datetime:
    return datetime.now(UTC)


class ExporterTelemetry:
    """Implements ``controlplane.ports.telemetry.Telemetry``.

    ``targets`` are ``{"url": …, "node": …}``; without ``node`` the exporter's own label must name it.
    """

    def __init__(
        self,
        *,
        outbound: OutboundHttpClient,
        vendor: str,
        targets: Sequence[ExporterTargetOptions],
        token: str = "",
        clock: Callable[[], datetime] = utc_now,
    ) -> None:
        """:raises TelemetryError: if an option cannot be used."""
        try:
            self._reader = exposition_reader_of_vendor(vendor)
        except adapter_registry.AdapterNotFound as unknown:
            raise TelemetryError(
                "telemetry_source.vendor.invalid",
                "vendor: {reason}",
                reason=str(unknown),
                option="vendor",
            ) from unknown
        self._targets = _parse_targets(targets, outbound)
        self._outbound = outbound
        self._headers = {"Accept": "text/plain; version=0.0.4"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"
        self._clock = clock
        self._layouts = {target.name: _LayoutCacheEntry() for target in self._targets}
        self._budget = _LayoutCacheBudget(_REMEMBERED)

    def read(self) -> TelemetryBatch:
        with ThreadPoolExecutor(
            max_workers=min(_AT_ONCE, len(self._targets)), thread_name_prefix="scrape"
        ) as workers:
            batches = list(workers.map(self._scrape_target, self._targets))
        unreachable = {
            name: reason for batch in batches for name, reason in batch.unreachable.items()
        }
        if len(unreachable) == len(self._targets):
            name, reason = next(iter(unreachable.items()))
            raise TelemetryFailed(
                "telemetry_source.exporters.unreachable",
                "none of the exporters ({count}) responded; the first, {target}: {reason}",
                count=len(self._targets),
                target=name,
                reason=reason,
            )
        return TelemetryBatch(
            readings=tuple(reading for batch in batches for reading in batch.readings),
            metric_batches=tuple(
                metric_batch for batch in batches for metric_batch in batch.metric_batches
            ),
            refused=tuple(one for batch in batches for one in batch.refused),
            unreachable=unreachable,
        )

    def _scrape_target(self, target: ExporterTarget) -> TelemetryBatch:
        try:
            answer = self._outbound.fetch(target.url, headers=self._headers, largest=MAX_TEXT_SIZE)
            if answer.status != _OK:
                reason = Reason(
                    "telemetry_source.response.unexpected_status",
                    "the response has status {status}",
                    status=answer.status,
                )
                return TelemetryBatch(unreachable={target.name: reason})
            batch = self._parse_metric_batch(target, answer.body.decode("utf-8"))
        except (EgressRefused, OutboundFailed, MalformedExposition) as error:
            return TelemetryBatch(unreachable={target.name: str(error)})
        except UnicodeDecodeError:
            reason = Reason("telemetry_source.response.not_utf8", "the response is not UTF-8 text")
            return TelemetryBatch(unreachable={target.name: reason})
        if not batch.readings and not batch.metric_batches and not batch.refused:
            empty = RejectedReading(
                what=target.name,
                reason=Reason(
                    "telemetry_source.response.no_cards", "the response has no cards of this vendor"
                ),
            )
            return TelemetryBatch(refused=(empty,))
        return batch

    def _parse_metric_batch(self, target: ExporterTarget, text: str) -> TelemetryBatch:
        """:raises MalformedExposition: if the text is in another format."""
        entry, at = self._layouts[target.name], self._clock()
        if entry.layout is not None:
            metric_batch = entry.layout.parse_batch(text, at=at)
            if metric_batch is not None:
                entry.penalty = max(1, entry.penalty // 2)
                return TelemetryBatch(metric_batches=(metric_batch,))
            self._budget.release(entry.size)
            entry.layout, entry.size = None, 0
            entry.back_off()
        by_label = not target.node
        batch = self._reader.read(text, at=at, node=target.node, by_label=by_label)
        entry.wait = max(0, entry.wait - 1)
        if not entry.wait and not batch.refused:
            layout = None
            if self._budget.holds(len(text)):
                layout = self._reader.layout_of(text, node=target.node, by_label=by_label)
            if layout is not None and self._budget.take(len(text)):
                entry.layout, entry.size = layout, len(text)
            else:
                entry.back_off()
        return batch


def _parse_targets(given: Any, outbound: OutboundHttpClient) -> tuple[ExporterTarget, ...]:
    """:raises TelemetryError: naming what is wrong with which."""
    if not isinstance(given, Sequence) or not 1 <= len(given) <= MOST_TARGETS:
        raise TelemetryError(
            "telemetry_source.targets.invalid_count",
            "targets: must be a list of 1 to {limit} exporters",
            limit=MOST_TARGETS,
            option="targets",
        )
    found: dict[str, ExporterTarget] = {}
    for place, one in enumerate(given, start=1):
        if not isinstance(one, Mapping) or set(one) - {"url", "node"}:
            raise TelemetryError(
                "telemetry_source.target.invalid_fields",
                "targets, number {number}: must have url and, optionally, node",
                number=place,
                option=f"targets[{place - 1}]",
            )
        url, node = one.get("url"), one.get("node", "")
        if not isinstance(url, str) or not isinstance(node, str):
            raise TelemetryError(
                "telemetry_source.target.not_strings",
                "targets, number {number}: url and node must be strings",
                number=place,
                option=f"targets[{place - 1}]",
            )
        try:
            outbound.check(url)
        except EgressRefused as refused:
            raise TelemetryError(
                "telemetry_source.target.url_not_allowed",
                "targets, number {number}: {reason}",
                number=place,
                reason=str(refused),
                option=f"targets[{place - 1}]",
            ) from refused
        target = ExporterTarget(url=url, node=node)
        if target.name in found:
            raise TelemetryError(
                "telemetry_source.target.duplicate",
                "targets, number {number}: {target} is listed twice",
                number=place,
                target=target.name,
                option=f"targets[{place - 1}]",
            )
        found[target.name] = target
    return tuple(found.values())
