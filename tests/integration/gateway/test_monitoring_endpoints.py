"""Access to metrics, their documentation, CORS, and the format of the log."""

from __future__ import annotations

import json
import re
from pathlib import Path

from tests.integration.gateway.conftest import SECRET
from tests.integration.gateway.control_planes import FakeControl
from tests.integration.gateway.processes import ROOT, GatewayProcess

TOKEN = "a-token-for-prometheus"


def status(gateway: GatewayProcess, headers: dict[str, str] | None = None) -> int:
    return gateway.request("GET", "/metrics", headers=headers)[0]


def test_metrics_are_served_to_loopback_but_not_through_a_proxy(
    gateway: GatewayProcess,
) -> None:
    assert status(gateway) == 200
    for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP", "Via"):
        assert status(gateway, {header: "10.0.0.7"}) == 403
    refused = json.loads(gateway.request("GET", "/metrics", headers={"Via": "1.1 proxy"})[2])
    assert refused["error"]["code"] == "metrics_refused"


def test_metrics_token_grants_access_to_metrics(control: FakeControl, tmp_path: Path) -> None:
    gateway = GatewayProcess(home=tmp_path, control_url=control.url, NINEFOLD_METRICS_TOKEN=TOKEN)
    gateway.start()
    try:
        forwarded = {"X-Forwarded-For": "10.0.0.7"}
        assert status(gateway, {**forwarded, "Authorization": f"Bearer {TOKEN}"}) == 200
        assert status(gateway, {**forwarded, "Authorization": f"Bearer {SECRET}"}) == 403
        assert status(gateway, {"Authorization": f"Bearer {SECRET}"}) == 403
        assert status(gateway, forwarded) == 403
        assert status(gateway) == 200
    finally:
        gateway.stop()


def test_jobs_of_the_local_cluster_need_the_token_of_the_home(
    control: FakeControl, tmp_path: Path
) -> None:
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "metrics_token").write_text(f"{TOKEN}\n")
    gateway = GatewayProcess(home=tmp_path, control_url=control.url, NINEFOLD_LOCAL_CLUSTER="on")
    gateway.start()
    try:
        assert status(gateway) == 403
        assert status(gateway, {"Authorization": f"Bearer {TOKEN}"}) == 200
    finally:
        gateway.stop()


def test_every_metric_is_in_the_docs_and_the_docs_name_no_other(gateway: GatewayProcess) -> None:
    exposed = set(re.findall(r"^# TYPE (\S+) ", gateway.get("/metrics")[1], re.MULTILINE))
    docs = (ROOT / "docs" / "operations.md").read_text()
    assert exposed == set(re.findall(r"^\| `(ninefold_gateway_\w+)[`{]", docs, re.MULTILINE))


def test_json_log_lines_are_objects(control: FakeControl, tmp_path: Path) -> None:
    gateway = GatewayProcess(home=tmp_path, control_url=control.url, NINEFOLD_LOG_FORMAT="json")
    gateway.start()
    gateway.stop()
    lines = [json.loads(line) for line in gateway.log.read_text().splitlines()]
    (installed,) = [line for line in lines if line["message"] == "snapshot installed"]
    assert installed.keys() == {"at", "level", "logger", "message", "version"}
    assert {line["logger"].partition(".")[0] for line in lines} >= {"gateway", "uvicorn"}


def test_pages_of_allowed_origins_may_call_and_others_may_not(
    control: FakeControl, stopped_gateway: GatewayProcess
) -> None:
    gateway = GatewayProcess(
        home=stopped_gateway.home,
        control_url=control.url,
        NINEFOLD_GATEWAY_ORIGINS="https://chat.example.com",
    )
    try:
        gateway.start()
        for origin, allowed in (
            ("https://chat.example.com", True),
            ("https://evil.example", False),
        ):
            status, headers, _ = gateway.request(
                "OPTIONS", "/v1/chat/completions", headers={"Origin": origin}
            )
            assert status == 204
            assert (headers.get("access-control-allow-origin") == origin) is allowed
    finally:
        gateway.stop()
