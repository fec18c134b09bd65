"""A real Prometheus between an exporter and the product changes nothing about what is told."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from controlplane.adapters.outbound_http import HttpOutbound
from controlplane.adapters.telemetry.exporter import ExporterTelemetry
from controlplane.adapters.telemetry.prometheus import PrometheusTelemetry
from controlplane.domain.outbound.egress import EgressPolicy
from controlplane.domain.telemetry.metrics import CardMetricsReading
from tests.contract.web_servers import WebServer, web_server
from tests.prometheus_servers import PROGRAM, prometheus

pytestmark = [
    pytest.mark.skipif(
        PROGRAM is None, reason="prometheus is not installed (apt-get install prometheus)"
    ),
    pytest.mark.slow,
]
EXPOSITIONS = Path(__file__).parents[3] / "unit" / "chips" / "expositions"


@pytest.fixture
def exporter() -> Iterator[WebServer]:
    with web_server() as server:
        text = (EXPOSITIONS / "nvidia.txt").read_bytes()
        server.answers["/metrics"] = (200, {"Content-Type": "text/plain; version=0.0.4"}, text)
        yield server


def by_card(readings: tuple[CardMetricsReading, ...]) -> dict[tuple[str, int | None], object]:
    return {
        (one.node, one.index): (dict(one.metrics), one.serial, one.faults, one.vendor)
        for one in readings
    }


def test_both_ways_tell_the_same_and_what_has_ended_does_not_look_new(
    exporter: WebServer, tmp_path: Path
) -> None:
    policy = EgressPolicy.parse(allow=["127.0.0.0/8"], schemes=["http"], ports=range(1, 65536))
    outbound = HttpOutbound(policy=policy)
    address = f"127.0.0.1:{exporter.port}"
    straight = ExporterTelemetry(
        outbound=outbound, vendor="nvidia", targets=[{"url": f"http://{address}/metrics"}]
    )
    with prometheus(tmp_path, targets=[f"{address}/metrics"]) as server:
        server.await_value('up{job="cards"}', 1)
        source = PrometheusTelemetry(
            outbound=outbound, url=server.url, vendor="nvidia", selector='job="cards"', window=10
        )

        readings = source.read().readings

        assert by_card(readings) == by_card(straight.read().readings)
        assert len(readings) == 2
        for reading in readings:
            assert datetime.now(UTC) - reading.at < timedelta(seconds=10)

        ended = datetime.now(UTC)
        exporter.answers["/metrics"] = (503, {}, b"")
        server.await_value('up{job="cards"}', 0)
        for reading in source.read().readings:
            assert reading.at <= ended + timedelta(seconds=1)
