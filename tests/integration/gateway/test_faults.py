"""Control plane unreachable, gateway killed, files tampered with."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import openai
import pytest

from tests.integration.gateway.conftest import SECRET
from tests.integration.gateway.control_planes import FakeControl, key_of
from tests.integration.gateway.engines import FakeEngine
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import wait_until

pytestmark = pytest.mark.slow


def complete(gateway: GatewayProcess) -> str:
    return gateway.client(SECRET).completions.create(model="parser", prompt="hi").choices[0].text


def copy_of(gateway: GatewayProcess) -> Path:
    (found,) = (gateway.home / "run" / "gateway").glob("*/snapshot")
    return found


def wait_for_copy(gateway: GatewayProcess) -> None:
    folder = gateway.home / "run" / "gateway"
    wait_until(lambda: list(folder.glob("*/snapshot")), what="the copy on disk")


def test_without_a_snapshot_nothing_is_served(
    control: FakeControl, stopped_gateway: GatewayProcess
) -> None:
    control.disconnect()
    stopped_gateway.start(until="/healthz")
    assert stopped_gateway.status("/readyz") == 503
    with pytest.raises(openai.InternalServerError) as raised:
        complete(stopped_gateway)
    assert (raised.value.status_code, raised.value.code) == (503, "no_snapshot")
    control.reconnect()
    wait_until(lambda: stopped_gateway.status("/readyz") == 200, what="readiness")
    assert complete(stopped_gateway)


def test_restarted_gateway_serves_stored_snapshot_without_control_plane(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    wait_for_copy(gateway)
    assert copy_of(gateway).stat().st_mode & 0o777 == 0o600
    control.disconnect()
    gateway.kill()
    gateway.start()
    assert complete(gateway)
    control.reconnect()
    control.publish(keys=[])

    def refused() -> bool:
        return (
            gateway.request("GET", "/v1/models", headers={"Authorization": f"Bearer {SECRET}"})[0]
            == 401
        )

    wait_until(refused, what="the revocation after the control plane came back")


def test_a_tampered_copy_is_refused(gateway: GatewayProcess, control: FakeControl) -> None:
    wait_for_copy(gateway)
    control.disconnect()
    gateway.kill()
    copy = copy_of(gateway)
    copy.write_bytes(copy.read_bytes().replace(b'"team-a"', b'"team-b"'))
    gateway.start(until="/healthz")
    assert gateway.status("/readyz") == 503
    assert "the copy of the snapshot is refused" in gateway.log.read_text()


def test_a_stale_copy_is_not_served(stopped_gateway: GatewayProcess, control: FakeControl) -> None:
    issued = datetime.now(UTC) - timedelta(seconds=50)
    control.publish(issued_at=issued.isoformat(), max_stale_seconds=40)
    stopped_gateway.start(until="/healthz")
    wait_for_copy(stopped_gateway)
    with pytest.raises(openai.InternalServerError) as raised:
        complete(stopped_gateway)
    assert raised.value.code == "stale_snapshot"


def test_a_forged_snapshot_is_refused_and_the_old_one_stays(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    control.forge = True
    control.publish(keys=[key_of("sk-forged")])
    wait_until(lambda: "a snapshot is refused" in gateway.log.read_text(), what="the refusal")
    assert complete(gateway)
    with pytest.raises(openai.AuthenticationError):
        gateway.client("sk-forged").models.list()


def test_usage_is_counted_once_through_lost_acknowledgements_and_kill_9(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    folder = gateway.home / "run" / "gateway"

    def on_disk() -> int:
        return sum(int(path.name.split(".")[1]) for path in folder.glob("*/usage/*.json"))

    control.swallow_acknowledgements = True
    for _ in range(10):
        complete(gateway)
    wait_until(lambda: on_disk() == 10, what="ten records in the journal")
    wait_until(lambda: control.records, what="a batch without acknowledgement")
    gateway.kill()
    control.swallow_acknowledgements = False
    gateway.start()
    for _ in range(5):
        complete(gateway)
    wait_until(lambda: len(control.records) == 15, what="the records after the restart")
    wait_until(lambda: not list(folder.glob("*/usage/*.json")), what="an empty journal")
    assert len(control.posts) > len(control.batches)
    assert len(control.records) == 15
    assert sum(record["completion_tokens"] for record in control.records) == 45


def test_usage_is_stored_while_control_plane_is_unreachable(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    control.disconnect()
    for _ in range(7):
        complete(gateway)
    folder = gateway.home / "run" / "gateway"
    wait_until(lambda: list(folder.glob("*/usage/*.json")), what="the journal")
    wait_until(lambda: "usage_records_waiting 7" in gateway.get("/metrics")[1], what="7 records")
    gateway.stop()
    gateway.start()
    control.reconnect()
    wait_until(lambda: len(control.records) == 7, seconds=20, what="the records")


def test_refused_batch_does_not_block_later_batches(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    control.usage_status = 422
    complete(gateway)
    folder = gateway.home / "run" / "gateway"
    wait_until(lambda: list(folder.glob("*/usage/*.refused")), what="the refused batch")
    control.usage_status = 200
    complete(gateway)
    wait_until(lambda: len(control.records) == 1, what="the batch behind it")


def test_shutdown_drains_streams_and_posts_usage(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    engine.close_gate()
    stream = gateway.client(SECRET).completions.create(
        model="parser", prompt="words 4", stream=True
    )
    events = iter(stream)
    next(events)
    gateway.terminate()
    wait_until(lambda: gateway.status("/healthz") == 0, what="the port to be closed")
    engine.open_gate()
    assert len(list(events)) == 4
    assert gateway.wait() == 0
    (record,) = control.records
    assert (record["outcome"], record["completion_tokens"]) == ("ok", 4)


def test_requests_beyond_drain_end_with_an_error_and_are_recorded(
    control: FakeControl, engine: FakeEngine, stopped_gateway: GatewayProcess
) -> None:
    gateway = GatewayProcess(
        home=stopped_gateway.home, control_url=control.url, NINEFOLD_GATEWAY_DRAIN_SECONDS="1"
    )
    try:
        gateway.start()
        stream = gateway.client(SECRET).completions.create(
            model="parser", prompt="endless", stream=True
        )
        next(iter(stream))
        with ThreadPoolExecutor() as threads:
            whole = threads.submit(
                gateway.client(SECRET).completions.create, model="parser", prompt="silent"
            )
            wait_until(lambda: len(engine.bodies) == 2, what="both requests")
            gateway.terminate()
            with pytest.raises(openai.APIError, match="is shutting down") as ended:
                list(stream)
            assert ended.value.code == "gateway_shutting_down"
            with pytest.raises(openai.InternalServerError) as refused:
                whole.result()
        assert (refused.value.status_code, refused.value.code) == (503, "gateway_shutting_down")
        assert refused.value.response.headers["retry-after"] == "1"
        gateway.wait()
        streamed, stalled = sorted(
            control.records, key=lambda record: -int(record["completion_tokens"])
        )
        assert (streamed["outcome"], streamed["status"]) == ("error", 503)
        assert streamed["completion_tokens"] >= 1
        assert (stalled["outcome"], stalled["status"]) == ("error", 503)
        wait_until(lambda: engine.cancelled == 2, what="the engine to be left")
        assert "Traceback" not in gateway.log.read_text()
    finally:
        gateway.stop()


def test_second_gateway_in_same_folder_is_refused_with_reason(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    second = GatewayProcess(home=gateway.home, control_url=control.url)
    with pytest.raises(AssertionError, match="NINEFOLD_GATEWAY_ID of its own"):
        second.start()
    own = GatewayProcess(home=gateway.home, control_url=control.url, NINEFOLD_GATEWAY_ID="second")
    own.start()
    own.stop()
