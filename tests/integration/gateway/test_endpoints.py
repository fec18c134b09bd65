"""Choice of the endpoint, failover, time-outs, and clients that disconnect."""

from __future__ import annotations

import asyncio
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from http.client import HTTPResponse
from typing import Any

import openai
import pytest

from tests.integration.gateway.clients import post, user_message
from tests.integration.gateway.conftest import CREDENTIAL, SECRET, backend_of
from tests.integration.gateway.control_planes import FakeControl, route_of
from tests.integration.gateway.engines import FakeEngine
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import free_port, wait_until


def test_request_is_retried_on_another_endpoint_if_connection_fails(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    version = control.publish(routes=[route_of("parser", backend_of(dead, engine.url))])
    wait_until(lambda: f'version": {version}' in gateway.get("/healthz")[1], what="the route")
    client = gateway.client(SECRET)
    for _ in range(20):
        assert client.chat.completions.create(model="parser", messages=user_message("hi")).choices
    # The dead endpoint was tried once and then ejected.
    assert 'refused_connections_total{route="parser"} 1' in gateway.get("/metrics")[1]


def test_a_route_without_a_ready_endpoint_is_unavailable_for_now(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    routes = [route_of("dead", backend_of(dead)), route_of("empty", backend_of())]
    version = control.publish(routes=routes)
    wait_until(lambda: f'version": {version}' in gateway.get("/healthz")[1], what="the routes")
    for name in ("dead", "empty"):
        status, headers, content = post(gateway, {"model": name, "messages": user_message("hi")})
        assert (status, content["error"]["code"]) == (503, "no_ready_endpoint")
        assert int(headers["retry-after"]) > 0


def test_open_streams_to_a_replica_that_left_the_snapshot_are_reported_until_they_end(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    engine.close_gate()
    stream = gateway.client(SECRET).chat.completions.create(
        model="parser", messages=user_message("words 5"), stream=True
    )
    chunks = [next(stream)]
    assert control.draining == {}
    control.publish(routes=[route_of("parser", backend_of())])
    wait_until(lambda: control.draining == {"backend-1-0": 1}, what="the report of the stream")
    engine.open_gate()
    chunks += stream
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "w0 w1 w2 w3 w4 "
    wait_until(lambda: control.draining == {}, what="the report of its end")


def test_a_request_is_routed_by_the_snapshot_at_the_end_of_its_upload(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    stopped = f"http://127.0.0.1:{free_port()}"
    before = control.publish(routes=[route_of("parser", backend_of(stopped))])
    wait_until(lambda: f'version": {before}' in gateway.get("/healthz")[1], what="the old route")
    body = json.dumps({"model": "parser", "messages": user_message("hi")}).encode()
    after: list[dict[str, Any]] = [
        {"routes": [route_of("parser", backend_of(engine.url))]},
        {"keys": []},
    ]
    statuses = []
    for change in after:
        with closing(socket.create_connection(("127.0.0.1", gateway.port), timeout=20)) as client:
            client.sendall(
                f"POST /v1/chat/completions HTTP/1.1\r\nHost: gateway\r\n"
                f"Authorization: Bearer {SECRET}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\nExpect: 100-continue\r\n\r\n".encode()
            )
            # The gateway waits for the body.
            assert client.recv(4096).startswith(b"HTTP/1.1 100 ")
            client.sendall(body[:10])
            version = control.publish(**change)
            wait_until(
                lambda wanted=version: f'version": {wanted}' in gateway.get("/healthz")[1],  # type: ignore[misc]
                what="the snapshot",
            )
            client.sendall(body[10:])
            response = HTTPResponse(client)
            response.begin()
            statuses.append(response.status)
    assert statuses == [200, 401]
    assert len(engine.bodies) == 1


@pytest.mark.parametrize("stream", [False, True])
def test_engine_timeout_ends_the_request(
    control: FakeControl, engine: FakeEngine, stopped_gateway: GatewayProcess, stream: bool
) -> None:
    gateway = GatewayProcess(
        home=stopped_gateway.home,
        control_url=control.url,
        NINEFOLD_GATEWAY_FIRST_BYTE_SECONDS="0.3",
        NINEFOLD_GATEWAY_TOTAL_SECONDS="0.6",
    )
    try:
        gateway.start()
        call = {"model": "parser", "messages": user_message("silent"), "stream": stream}
        status, _, content = post(gateway, call)
        assert (status, content["error"]["code"]) == (504, "upstream_timeout")
        assert ("0.3 s" if stream else "0.6 s") in content["error"]["message"]
        wait_until(lambda: engine.cancelled == 1, what="the engine to be left")
    finally:
        gateway.stop()


def test_a_stream_beyond_the_total_time_ends_with_an_error(
    control: FakeControl, engine: FakeEngine, stopped_gateway: GatewayProcess
) -> None:
    gateway = GatewayProcess(
        home=stopped_gateway.home, control_url=control.url, NINEFOLD_GATEWAY_TOTAL_SECONDS="0.5"
    )
    try:
        gateway.start()
        with pytest.raises(openai.APIError, match=r"within 0\.5 s"):
            list(
                gateway.client(SECRET).chat.completions.create(
                    model="parser", messages=user_message("endless"), stream=True
                )
            )
        wait_until(lambda: engine.cancelled == 1, what="the engine to be left")
    finally:
        gateway.stop()


def test_client_abort_during_stream_frees_the_engine_and_is_recorded(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    stream = gateway.client(SECRET).chat.completions.create(
        model="parser", messages=user_message("endless"), stream=True
    )
    events = iter(stream)
    for _ in range(3):
        next(events)
    stream.close()
    wait_until(lambda: engine.cancelled == 1, seconds=3, what="the engine to be left")
    (record,) = wait_until(lambda: control.records, what="usage")
    assert (record["outcome"], record["status"]) == ("aborted", 499)
    assert record["completion_tokens"] >= 3
    assert record["first_token_ms"] > 0


def test_client_abort_before_response_frees_the_engine(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    impatient = gateway.client(SECRET).with_options(timeout=0.3)
    with pytest.raises(openai.APITimeoutError):
        impatient.chat.completions.create(model="parser", messages=user_message("silent"))
    wait_until(lambda: engine.cancelled == 1, seconds=3, what="the engine to be left")
    (record,) = wait_until(lambda: control.records, what="usage")
    assert record["outcome"] == "aborted"


def test_64_streams_are_open_at_the_same_time(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    engine.close_gate()
    client = gateway.client(SECRET)

    def read(number: int) -> str:
        chunks = client.chat.completions.create(
            model="parser", messages=user_message(f"words {number + 1}"), stream=True
        )
        return "".join(chunk.choices[0].delta.content or "" for chunk in chunks)

    with ThreadPoolExecutor(max_workers=64) as pool:
        answers = [pool.submit(read, number) for number in range(64)]
        wait_until(lambda: engine.open_streams == 64, seconds=20, what="64 streams")
        engine.open_gate()
        for number, answer in enumerate(answers):
            expected = "".join(f"w{index} " for index in range(number + 1))
            assert answer.result(timeout=20) == expected
    wait_until(lambda: len(control.records) == 64, what="64 records")
    assert sum(record["completion_tokens"] for record in control.records) == 64 * 65 // 2


def test_weights_divide_the_requests_among_the_backends(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    shares = (("even", 50), ("odd", 50), ("off", 0))
    backends = [backend_of(engine.url, uid=uid, weight=weight) for uid, weight in shares]
    version = control.publish(routes=[route_of("parser", *backends)])
    wait_until(lambda: f'version": {version}' in gateway.get("/healthz")[1], what="the route")

    async def call_often() -> None:
        async with openai.AsyncOpenAI(base_url=f"{gateway.url}/v1", api_key=SECRET) as client:
            await asyncio.gather(
                *(client.completions.create(model="parser", prompt="hi") for _ in range(100))
            )

    asyncio.run(call_often())
    wait_until(lambda: len(control.records) == 100, what="100 records")
    counts = {uid: sum(r["backend"] == uid for r in control.records) for uid, _ in shares}
    assert counts["off"] == 0
    # Five standard deviations: a fair draw fails once in two million runs.
    assert 25 <= counts["even"] <= 75


def test_backends_of_two_deployments_share_a_route_and_fail_over(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    candidate = FakeEngine(credential=CREDENTIAL, model="candidate").start()
    try:
        backends = (
            backend_of(engine.url, uid="stable", weight=75),
            backend_of(candidate.url, uid="canary", weight=25, model="candidate"),
        )
        version = control.publish(routes=[route_of("parser", *backends)])
        wait_until(lambda: f'version": {version}' in gateway.get("/healthz")[1], what="the route")
        client = gateway.client(SECRET)
        for _ in range(100):
            assert client.completions.create(model="parser", prompt="hi").model == "parser"
        assert len(engine.bodies) + len(candidate.bodies) == 100
        # Five standard deviations: a fair draw fails once in two million runs.
        assert 4 <= len(candidate.bodies) <= 46
    finally:
        candidate.stop()
    for _ in range(20):
        assert client.completions.create(model="parser", prompt="hi").model == "parser"
    assert len(engine.bodies) + len(candidate.bodies) == 120
    wait_until(lambda: len(control.records) == 120, what="120 records")
    counts = {
        uid: sum(r["backend"] == uid for r in control.records) for uid in ("stable", "canary")
    }
    assert counts == {"stable": len(engine.bodies), "canary": len(candidate.bodies)}
    requests = 'requests_total{route="parser",operation="completions",status="200",outcome="ok"}'
    assert f"{requests} 120" in gateway.get("/metrics")[1]
