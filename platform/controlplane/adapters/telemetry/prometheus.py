"""Reads what a Prometheus, or whatever answers like one, reads already.

An instant query for a series answers with its last value for five minutes after the series has ended, as if it
were new. So a short range is asked for: those are the samples themselves, each with its own time.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

from controlplane.domain.outbound.egress import EgressRefused
from controlplane.ports import adapter_registry
from controlplane.ports.expositions import ExpositionSample, exposition_reader_of_vendor
from controlplane.ports.outbound_http import OutboundFailed, OutboundHttpClient
from controlplane.ports.telemetry import TelemetryBatch, TelemetryError, TelemetryFailed

LARGEST_ANSWER = 128 * 1024 * 1024
LARGEST_WINDOW = 300
#: Names that go into one query: a URL has a longest length.
_NAMES_A_QUERY = 20
_OK, _UNAUTHORIZED = 200, (401, 403)
_SELECTOR = re.compile(r'[a-zA-Z_][a-zA-Z0-9_]*\s*(=|!=|=~|!~)\s*"(?:[^"\\\n]|\\.)*"')
_PORT = re.compile(r":[0-9]+$")
_INSTANCE = "instance"


class PrometheusTelemetry:
    """Implements ``controlplane.ports.telemetry.Telemetry`` over ``/api/v1/query``.

    ``selector`` narrows the series, such as ``job="dcgm"``. ``node_label`` is the label with the node's name, if
    it is neither the exporter's own nor ``instance``. What was measured more than ``window`` seconds ago is left
    out: let it be twice the time between two scrapes.
    """

    def __init__(
        self,
        *,
        outbound: OutboundHttpClient,
        url: str,
        vendor: str,
        selector: str = "",
        node_label: str = "",
        window: int = 60,
        token: str = "",
    ) -> None:
        """:raises TelemetryError: if an option cannot be used."""
        try:
            self._reader = exposition_reader_of_vendor(vendor)
            outbound.check(url)
        except (adapter_registry.AdapterNotFound, EgressRefused) as refused:
            option = "url" if isinstance(refused, EgressRefused) else "vendor"
            raise TelemetryError(str(refused), option=option) from refused
        if selector and not re.fullmatch(
            rf"{_SELECTOR.pattern}(?:\s*,\s*{_SELECTOR.pattern})*", selector
        ):
            raise TelemetryError(
                "telemetry_source.selector.invalid",
                'selector: must be a label matcher such as job="dcgm", got {value}',
                value=repr(selector[:80]),
                option="selector",
            )
        if isinstance(window, bool) or not 1 <= window <= LARGEST_WINDOW:
            raise TelemetryError(
                "telemetry_source.window.out_of_range",
                "window: must be 1 to {limit} seconds, got {value}",
                limit=LARGEST_WINDOW,
                value=repr(window),
                option="window",
            )
        exporter = adapter_registry.chip_plugins()[vendor].profile().exporter
        self._node_labels = [
            label
            for label in (node_label or (exporter.node_label if exporter else ""), _INSTANCE)
            if label
        ]
        self._outbound = outbound
        self._url = url.rstrip("/")
        self._narrowed = f",{selector}" if selector else ""
        self._window = window
        self._headers = {"Accept": "application/json"}
        if token:
            self._headers["Authorization"] = f"Bearer {token}"

    def read(self) -> TelemetryBatch:
        names = self._reader.names
        samples: list[ExpositionSample] = []
        for first in range(0, len(names), _NAMES_A_QUERY):
            samples += _latest_samples(self._query_metrics(names[first : first + _NAMES_A_QUERY]))
        return self._reader.gather(samples, node_of=self._node_of)

    def _query_metrics(self, names: tuple[str, ...]) -> Any:
        query = f'{{__name__=~"{"|".join(names)}"{self._narrowed}}}[{self._window}s]'
        url = f"{self._url}/api/v1/query?{urlencode({'query': query})}"
        try:
            answer = self._outbound.fetch(url, headers=self._headers, largest=LARGEST_ANSWER)
        except (EgressRefused, OutboundFailed) as error:
            raise TelemetryFailed(str(error)) from error
        if answer.status in _UNAUTHORIZED:
            raise TelemetryFailed(
                "telemetry_source.response.unauthorized",
                "the response has status {status}: the token is missing or not accepted",
                status=answer.status,
            )
        try:
            body = json.loads(answer.body)
        except (ValueError, RecursionError) as error:
            raise TelemetryFailed(
                "telemetry_source.response.not_json",
                "the response has status {status} and is not JSON; check that the URL is "
                "that of a Prometheus server",
                status=answer.status,
            ) from error
        document = body if isinstance(body, Mapping) else {}
        if answer.status != _OK or document.get("status") != "success":
            reason = str(document.get("error", "no reason given"))[:300]
            raise TelemetryFailed(
                "telemetry_source.query.failed",
                "the response has status {status}: {error}",
                status=answer.status,
                error=reason,
            )
        return document.get("data")

    def _node_of(self, labels: Mapping[str, str]) -> str:
        for label in self._node_labels:
            if found := labels.get(label):
                return _PORT.sub("", found) if label == _INSTANCE else found
        return ""


def _latest_samples(data: Any) -> Iterator[ExpositionSample]:
    """The last sample of each series.

    :raises TelemetryFailed: if the answer has another form.
    """
    try:
        for series in data["result"]:
            labels = series["metric"]
            seconds, value = series["values"][-1]
            at = float(seconds)
            if not math.isfinite(at):
                raise ValueError(seconds)
            yield ExpositionSample(
                name=str(labels["__name__"]),
                labels=labels,
                value=float(value),
                at=datetime.fromtimestamp(at, tz=UTC),
            )
    except (KeyError, TypeError, ValueError, IndexError, OverflowError, OSError) as error:
        raise TelemetryFailed(
            "telemetry_source.response.malformed",
            "the response is not in the format of the Prometheus API: {type}: {error}",
            type=type(error).__name__,
            error=str(error),
        ) from error
