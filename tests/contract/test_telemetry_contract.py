"""What every source of figures does, whether it is read from memory, from exporters or from a Prometheus."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from controlplane.adapters.fakes.in_memory import MemoryTelemetry
from controlplane.adapters.outbound_http import HttpOutbound
from controlplane.adapters.telemetry.exporter import ExporterTelemetry
from controlplane.adapters.telemetry.prometheus import PrometheusTelemetry
from controlplane.domain.outbound.egress import EgressPolicy
from controlplane.domain.telemetry.metrics import CardMetricsReading, Metric
from controlplane.ports.expositions import ExpositionReader
from controlplane.ports.telemetry import (
    RejectedReading,
    TelemetryBatch,
    TelemetryError,
    TelemetryFailed,
    TelemetrySource,
)
from tests.contract.web_servers import WebServer, web_server

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
LABELS = 'gpu="1",UUID="GPU-1b",device="nvidia1",modelName="NVIDIA H800",Hostname="n1"'
TEXT = f"""# TYPE DCGM_FI_DEV_GPU_UTIL gauge
DCGM_FI_DEV_GPU_UTIL{{{LABELS}}} 97
DCGM_FI_DEV_FB_USED{{{LABELS}}} 1000
DCGM_FI_DEV_FB_FREE{{{LABELS}}} 3096
DCGM_FI_DEV_XID_ERRORS{{{LABELS}}} 79
DCGM_FI_DEV_GPU_UTIL{{gpu="0",UUID="GPU-0a"}} 5
"""
SERIES = {
    "DCGM_FI_DEV_GPU_UTIL": "97",
    "DCGM_FI_DEV_FB_USED": "1000",
    "DCGM_FI_DEV_FB_FREE": "3096",
    "DCGM_FI_DEV_XID_ERRORS": "79",
}
CARD = {"gpu": "1", "UUID": "GPU-1b", "Hostname": "n1", "job": "dcgm"}
EXPECTED = CardMetricsReading(
    node="n1",
    index=1,
    at=AT,
    metrics={
        Metric.UTILIZATION: 97,
        Metric.MEMORY_USED: 1000 * 2**20,
        Metric.MEMORY_TOTAL: 4096 * 2**20,
    },
    serial="GPU-1b",
    faults=("79",),
    vendor="nvidia",
)
REFUSED = RejectedReading(what="GPU-0a", reason="the metrics do not name the node of the card")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    source: TelemetrySource
    #: Takes away what it reads from.
    fail: Callable[[], None]


def outbound(server: WebServer, *, seconds: float = 2.0) -> HttpOutbound:
    policy = EgressPolicy.parse(allow=["127.0.0.0/8"], schemes=["http"], ports=range(1, 65536))
    return HttpOutbound(policy=policy, seconds=seconds)


def memory(server: WebServer) -> Setting:
    source = MemoryTelemetry(batch=TelemetryBatch(readings=(EXPECTED,), refused=(REFUSED,)))

    def fail() -> None:
        source.error = "nothing is there"

    return Setting(source=source, fail=fail)


def exporter(server: WebServer) -> Setting:
    server.answers["/metrics"] = (200, {}, TEXT.encode())
    source = ExporterTelemetry(
        outbound=outbound(server),
        vendor="nvidia",
        targets=[{"url": f"http://127.0.0.1:{server.port}/metrics"}],
        clock=lambda: AT,
    )

    def fail() -> None:
        server.answers["/metrics"] = (503, {}, b"")

    return Setting(source=source, fail=fail)


def vector(*results: tuple[dict[str, str], str]) -> bytes:
    found = [
        {"metric": labels, "values": [[AT.timestamp() - 15, "1"], [AT.timestamp(), value]]}
        for labels, value in results
    ]
    return json.dumps(
        {"status": "success", "data": {"resultType": "matrix", "result": found}}
    ).encode()


class _Queries(dict[str, tuple[int, Mapping[str, str], bytes]]):
    """Answers every query alike."""

    def get(self, path: str, otherwise: Any = None) -> Any:
        return super().get(urlsplit(path).path, otherwise)


def answer_queries(server: WebServer, body: bytes, *, status: int = 200) -> None:
    server.answers = _Queries({"/api/v1/query": (status, {}, body)})


def prometheus(server: WebServer) -> Setting:
    series = [({"__name__": name, **CARD}, value) for name, value in SERIES.items()]
    stray = ({"__name__": "DCGM_FI_DEV_GPU_UTIL", "gpu": "0", "UUID": "GPU-0a"}, "5")
    answer_queries(server, vector(*series, stray))
    source = PrometheusTelemetry(
        outbound=outbound(server),
        url=f"http://127.0.0.1:{server.port}",
        vendor="nvidia",
        selector='job="dcgm"',
        token="t0ken",
    )

    def fail() -> None:
        answer_queries(server, b'{"status":"error","error":"too busy"}', status=503)

    return Setting(source=source, fail=fail)


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server() as running:
        yield running


@pytest.fixture(params=[memory, exporter, prometheus], ids=lambda make: make.__name__)
def setting(request: pytest.FixtureRequest, server: WebServer) -> Setting:
    prepared: Setting = request.param(server)
    return prepared


def test_it_tells_figures_faults_and_whose_they_are(setting: Setting) -> None:
    batch = setting.source.read()
    assert isinstance(setting.source, TelemetrySource)
    assert batch.readings == (EXPECTED,)
    assert batch.refused == (REFUSED,)
    assert not batch.unreachable


def test_it_tells_the_same_again_however_it_is_told(setting: Setting) -> None:
    setting.source.read()
    for _ in range(2):
        batch = setting.source.read()
        assert batch.all_readings() == (EXPECTED,)
        assert batch.refused == (REFUSED,)


def test_it_says_why_when_nothing_could_be_read(setting: Setting) -> None:
    setting.source.read()
    setting.fail()
    with pytest.raises(TelemetryFailed) as failed:
        setting.source.read()
    assert str(failed.value)


def test_one_exporter_that_does_not_answer_spoils_no_other(server: WebServer) -> None:
    server.answers |= {
        "/good": (200, {}, TEXT.encode()),
        "/html": (200, {}, b"<html></html>"),
        "/latin": (200, {}, b"\xff\xfe"),
        "/large": (200, {}, b"x" * (33 * 1024 * 1024)),
    }
    base = f"http://127.0.0.1:{server.port}"
    source = ExporterTelemetry(
        outbound=outbound(server),
        vendor="nvidia",
        targets=[
            {"url": f"{base}/good", "node": "a"},
            {"url": f"{base}/html", "node": "b"},
            {"url": f"{base}/latin", "node": "c"},
            {"url": "http://127.0.0.1:9/metrics", "node": "d"},
            {"url": f"{base}/large", "node": "e"},
            {"url": f"{base}/drip", "node": "f"},
        ],
        clock=lambda: AT,
    )

    batch = source.read()
    server.over.set()

    # The node that is written down for an exporter goes before its labels.
    assert {reading.node for reading in batch.readings} == {"a"}
    assert sorted(batch.unreachable) == ["b", "c", "d", "e", "f"]
    assert "Prometheus text format" in batch.unreachable["b"]
    assert "UTF-8" in batch.unreachable["c"]
    assert "cannot be reached" in batch.unreachable["d"]
    assert "larger than" in batch.unreachable["e"]
    assert "within 2 s" in batch.unreachable["f"]


def test_a_text_is_read_as_a_whole_once_its_form_is_known(server: WebServer) -> None:
    url = f"http://127.0.0.1:{server.port}/metrics"
    source = ExporterTelemetry(
        outbound=outbound(server), vendor="nvidia", targets=[{"url": url}], clock=lambda: AT
    )
    good = TEXT[: TEXT.index('DCGM_FI_DEV_GPU_UTIL{gpu="0"')]
    longer = good + good.replace("GPU-1b", "GPU-2c").replace('gpu="1"', 'gpu="2"')
    batches = []
    for text in (good, good, longer, longer, longer, good.replace("97", "x")):
        server.answers["/metrics"] = (200, {}, text.encode())
        if text.endswith("x\n") or "} x" in text:
            with pytest.raises(TelemetryFailed, match="Prometheus text format"):
                source.read()
            continue
        batch = source.read()
        assert len(batch.all_readings()) == (2 if text == longer else 1)
        assert batch.all_readings()[0] == EXPECTED
        batches.append(len(batch.metric_batches))
    assert batches == [0, 1, 0, 1, 1]


def layouts_learnt(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts whose forms are asked for from now on."""
    learnt = []
    before = ExpositionReader.layout_of

    def layout_of(self: ExpositionReader, text: str, **named: Any) -> Any:
        learnt.append(text)
        return before(self, text, **named)

    monkeypatch.setattr(ExpositionReader, "layout_of", layout_of)
    return learnt


def test_an_exporter_whose_texts_keep_changing_is_learnt_seldom(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{server.port}/metrics"
    source = ExporterTelemetry(
        outbound=outbound(server), vendor="nvidia", targets=[{"url": url}], clock=lambda: AT
    )
    learnt = layouts_learnt(monkeypatch)
    for number in range(20):
        text = TEXT.replace("GPU-1b", f"GPU-{number}").replace('gpu="0"', 'gpu="0",Hostname="n1"')
        server.answers["/metrics"] = (200, {}, text.encode())
        assert len(source.read().all_readings()) == 2
    assert len(learnt) <= 6


def test_an_exporter_whose_texts_have_no_form_is_asked_for_it_seldom(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"http://127.0.0.1:{server.port}/metrics"
    source = ExporterTelemetry(
        outbound=outbound(server), vendor="nvidia", targets=[{"url": url, "node": "a"}]
    )
    learnt = layouts_learnt(monkeypatch)
    server.answers["/metrics"] = (200, {}, b"\n" + TEXT.encode())
    for _ in range(20):
        assert len(source.read().readings) == 2
    assert len(learnt) <= 6


def test_forms_have_room_until_it_is_full_and_again_when_it_is_given_back(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{ExporterTelemetry.__module__}._REMEMBERED", len(TEXT) + 10)
    monkeypatch.setattr(f"{ExporterTelemetry.__module__}._AT_ONCE", 1)
    base = f"http://127.0.0.1:{server.port}"
    source = ExporterTelemetry(
        outbound=outbound(server),
        vendor="nvidia",
        targets=[{"url": f"{base}/{name}", "node": name} for name in "ab"],
    )
    server.answers |= {"/a": (200, {}, TEXT.encode()), "/b": (200, {}, TEXT.encode())}
    learnt = layouts_learnt(monkeypatch)
    looked = []

    class Layouts(dict[str, Any]):
        def values(self) -> Any:
            looked.append(1)
            return super().values()

    monkeypatch.setattr(source, "_layouts", Layouts(source._layouts))

    def nodes_of_batches() -> list[str]:
        return [batch.whose[0].node for batch in source.read().metric_batches]

    assert [nodes_of_batches() for _ in range(8)] == [[], *[["a"]] * 7]
    # Where there is no room it is not tried, and finding that out does not go over all exporters.
    assert (len(learnt), looked) == (1, [])
    server.answers["/a"] = (200, {}, b"\n" + TEXT.encode())
    assert [nodes_of_batches() for _ in range(12)][-1] == ["b"]


def test_an_exporter_of_another_maker_is_told_from_silence(server: WebServer) -> None:
    server.answers["/metrics"] = (200, {}, b"node_load1 0.5\n")
    url = f"http://127.0.0.1:{server.port}/metrics"
    source = ExporterTelemetry(
        outbound=outbound(server), vendor="nvidia", targets=[{"url": url, "node": "a"}]
    )
    (refused,) = source.read().refused
    assert (refused.what, refused.reason) == ("a", "the response has no cards of this vendor")


def test_a_token_and_one_short_range_are_what_prometheus_is_asked_with(server: WebServer) -> None:
    prometheus(server).source.read()
    (request,) = server.requests
    (query,) = parse_qs(urlsplit(request.path).query)["query"]
    assert request.headers["authorization"] == "Bearer t0ken"
    assert query.startswith('{__name__=~"DCGM_FI_DEV_')
    assert query.endswith('",job="dcgm"}[60s]')


@pytest.mark.parametrize(
    ("status", "body", "message"),
    [
        (401, b"", "the token is missing or not accepted"),
        (200, b"<html>", "check that the URL is that of a Prometheus server"),
        (400, b'{"status":"error","error":"bad selector"}', "bad selector"),
        (
            200,
            b'{"status":"success","data":{"result":[{}]}}',
            "not in the format of the Prometheus API",
        ),
        (200, b'{"status":"success","data":null}', "not in the format of the Prometheus API"),
        (200, b"[[]]", "no reason given"),
    ],
)
def test_what_prometheus_answers_wrongly_is_said(
    server: WebServer, status: int, body: bytes, message: str
) -> None:
    source = prometheus(server).source
    answer_queries(server, body, status=status)
    with pytest.raises(TelemetryFailed, match=message):
        source.read()


def test_the_node_of_a_series_without_its_own_label_is_its_instance(server: WebServer) -> None:
    labels = {"__name__": "npu_chip_info_power", "id": "3", "vdie_id": "D3", "instance": "n7:8082"}
    answer_queries(server, vector((labels, "92.5")))
    source = PrometheusTelemetry(
        outbound=outbound(server), url=f"http://127.0.0.1:{server.port}", vendor="ascend"
    )
    (reading,) = source.read().readings
    assert (reading.node, reading.index, reading.serial) == ("n7", 3, "D3")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vendor": "acme"}, "no exporter of 'acme' is known"),
        ({"targets": []}, "1 to 5000 exporters"),
        ({"targets": "http://127.0.0.1"}, "must have url"),
        ({"targets": [{"url": 5}]}, "must be strings"),
        ({"targets": [{"url": "http://10.0.0.1:9400/metrics"}]}, "a private network"),
        ({"targets": [{"url": "ftp://127.0.0.1/"}]}, "enter the full URL"),
        ({"targets": [{"address": "http://127.0.0.1/"}]}, "must have url"),
    ],
)
def test_options_of_exporters_that_cannot_be_used_are_refused(
    server: WebServer, options: dict[str, object], message: str
) -> None:
    good = {"vendor": "nvidia", "targets": [{"url": f"http://127.0.0.1:{server.port}/m"}]}
    with pytest.raises(TelemetryError, match=message):
        ExporterTelemetry(outbound=outbound(server), **{**good, **options})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"url": "http://10.0.0.1"}, "a private network"),
        ({"selector": 'job="a"} or vector(1) or {a="b"'}, "must be a label matcher such as"),
        ({"selector": "job"}, "must be a label matcher such as"),
        ({"window": 0}, "1 to 300 seconds"),
        ({"vendor": "birentech"}, "no exporter of 'birentech' is known"),
    ],
)
def test_options_of_a_prometheus_that_cannot_be_used_are_refused(
    server: WebServer, options: dict[str, object], message: str
) -> None:
    good = {"vendor": "nvidia", "url": f"http://127.0.0.1:{server.port}"}
    with pytest.raises(TelemetryError, match=message):
        PrometheusTelemetry(outbound=outbound(server), **{**good, **options})  # type: ignore[arg-type]
