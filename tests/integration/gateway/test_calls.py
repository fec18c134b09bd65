"""What API clients see, through the official client wherever it can say it."""

from __future__ import annotations

import asyncio
import json
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessageParam

from tests.integration.gateway.conftest import CREDENTIAL, SECRET, backend_of
from tests.integration.gateway.controls import FakeControl, key_of, route_of
from tests.integration.gateway.engines import MODEL, FakeEngine
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import free_port, wait_until


def asked(words: str) -> list[ChatCompletionMessageParam]:
    return [{"role": "user", "content": words}]


def post(
    gateway: GatewayProcess,
    body: bytes | dict[str, Any],
    *,
    path: str = "/v1/chat/completions",
    **headers: str,
) -> tuple[int, dict[str, str], dict[str, Any]]:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    sent = {"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"}
    sent |= {name.replace("_", "-"): value for name, value in headers.items()}
    status, received, answer = gateway.request("POST", path, body=raw, headers=sent)
    return status, received, json.loads(answer)


def test_a_chat_answer_carries_the_public_name_and_the_engine_its_own(
    gateway: GatewayProcess, engine: FakeEngine
) -> None:
    answer = gateway.client(SECRET).chat.completions.create(
        model="parser", messages=asked("words 4"), temperature=0.5
    )
    assert answer.model == "parser"
    assert answer.choices[0].message.content == "w0 w1 w2 w3 "
    assert answer.usage is not None
    assert answer.usage.total_tokens == 11
    assert engine.bodies[0]["model"] == MODEL
    assert engine.bodies[0]["temperature"] == 0.5


def test_a_completion_is_answered(gateway: GatewayProcess) -> None:
    answer = gateway.client(SECRET).completions.create(model="parser", prompt="words 2")
    assert (answer.model, answer.choices[0].text) == ("parser", "w0 w1 ")


def test_a_stream_has_an_event_for_each_of_the_engine_and_no_usage_unless_asked(
    gateway: GatewayProcess, engine: FakeEngine
) -> None:
    chunks = list(
        gateway.client(SECRET).chat.completions.create(
            model="parser", messages=asked("words 5"), stream=True
        )
    )
    assert [chunk.choices[0].delta.content for chunk in chunks[:-1]] == [
        "w0 ", "w1 ", "w2 ", "w3 ", "w4 ",
    ]  # fmt: skip
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert {chunk.model for chunk in chunks} == {"parser"}
    assert all(chunk.usage is None for chunk in chunks)
    assert engine.bodies[0]["stream_options"] == {"include_usage": True}


def test_a_client_that_asks_for_usage_gets_the_chunk_that_reports_it(
    gateway: GatewayProcess,
) -> None:
    chunks = list(
        gateway.client(SECRET).chat.completions.create(
            model="parser",
            messages=asked("words 5"),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 5


@pytest.mark.parametrize("words", ["words 2", "words 2 unfinished", "fail", "break", "truncated"])
def test_a_stream_always_ends_with_done_and_once(gateway: GatewayProcess, words: str) -> None:
    body = json.dumps({"model": "parser", "messages": asked(words), "stream": True}).encode()
    _, headers, answer = gateway.request(
        "POST",
        "/v1/chat/completions",
        body=body,
        headers={"Authorization": f"Bearer {SECRET}", "Content-Type": "application/json"},
    )
    assert headers["content-type"].startswith("text/event-stream")
    assert answer.endswith(b"data: [DONE]\n\n")
    assert answer.count(b"[DONE]") == 1
    assert MODEL.encode() not in answer


@pytest.mark.parametrize("words", ["fail", "break", "truncated"])
def test_an_engine_that_fails_in_mid_stream_is_an_error_without_its_address(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine, words: str
) -> None:
    stream = gateway.client(SECRET).chat.completions.create(
        model="parser", messages=asked(words), stream=True
    )
    seen: list[str | None] = []
    with pytest.raises(openai.APIError) as raised:
        seen.extend(chunk.choices[0].delta.content for chunk in stream)
    assert seen == ["w0 "]
    assert str(engine.port) not in str(raised.value)
    (record,) = wait_until(lambda: control.records, what="usage")
    assert (record["outcome"], record["completion_tokens"]) == ("error", 1)


def test_the_models_are_those_that_the_key_may_use(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    client = gateway.client(SECRET)
    assert [model.id for model in client.models.list()] == ["parser"]
    assert client.models.retrieve("parser").id == "parser"
    with pytest.raises(openai.NotFoundError):
        client.models.retrieve("secret")
    control.publish(keys=[key_of(SECRET, routes=[])])
    wait_until(lambda: not list(client.models.list()), what="the narrowed key")


def test_another_teams_route_cannot_be_told_from_a_missing_one(gateway: GatewayProcess) -> None:
    def refused(model: str) -> dict[str, Any]:
        status, _, body = post(gateway, {"model": model, "messages": asked("hi")})
        assert status == 404
        error: dict[str, Any] = body["error"]
        return error

    other, missing = refused("secret"), refused("absent")
    assert other["code"] == missing["code"] == "model_not_found"
    assert other["message"].replace("secret", "X") == missing["message"].replace("absent", "X")


def test_an_unknown_a_missing_and_an_expired_key_are_refused(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    with pytest.raises(openai.AuthenticationError) as raised:
        gateway.client("sk-wrong").models.list()
    assert raised.value.code == "invalid_api_key"
    status, headers, _ = gateway.request("GET", "/v1/models")
    assert (status, headers["www-authenticate"]) == (401, "Bearer")
    past = (datetime.now(UTC) - timedelta(seconds=1)).isoformat()
    control.publish(keys=[key_of(SECRET, expires_at=past)])
    wait_until(
        lambda: (
            gateway.request("GET", "/v1/models", headers={"Authorization": f"Bearer {SECRET}"})[0]
            == 401
        ),
        what="the expiry",
    )


def test_a_revoked_key_stops_working_when_the_next_snapshot_arrives(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    client = gateway.client(SECRET)
    client.models.list()
    control.publish(keys=[])

    def refused() -> bool:
        try:
            client.models.list()
        except openai.AuthenticationError:
            return True
        return False

    wait_until(refused, seconds=3, what="the revocation")


@pytest.mark.parametrize(
    ("body", "status", "param", "code"),
    [
        (b'{"model": "parser",\n "messages": [}', 400, None, "invalid_json"),
        (b"\xff", 400, None, "invalid_json"),
        (b"[]", 400, None, "invalid_json"),
        (b'{"model": NaN}', 400, None, "invalid_json"),
        (b"[" * 100_000, 400, None, "invalid_json"),
        (b'{"messages": []}', 400, "model", "missing_required_parameter"),
        (b'{"model": "parser"}', 400, "messages", "missing_required_parameter"),
        (b'{"model": "parser", "messages": ["hi"]}', 400, "messages[0]", "invalid_type"),
        (
            b'{"model":"parser","messages":[{"role":"user","content":"x"}],"max_tokens":513}',
            400,
            "max_tokens",
            "context_length_exceeded",
        ),
    ],
)
def test_a_bad_body_is_refused_by_name(
    gateway: GatewayProcess, body: bytes, status: int, param: str | None, code: str
) -> None:
    answered, _, content = post(gateway, body)
    assert answered == status
    assert (content["error"]["param"], content["error"]["code"]) == (param, code)


def test_broken_json_is_refused_with_its_position(gateway: GatewayProcess) -> None:
    _, _, content = post(gateway, b'{"model": "parser",\n "messages": [}')
    assert "line 2, column 15" in content["error"]["message"]


def test_another_content_type_a_body_too_large_a_wrong_method_and_an_unknown_path_are_refused(
    control: FakeControl, stopped_gateway: GatewayProcess
) -> None:
    gateway = GatewayProcess(
        home=stopped_gateway.home,
        control_url=control.url,
        NINEFOLD_GATEWAY_MAX_BODY_BYTES="2000",
    )
    try:
        gateway.start()
        assert post(gateway, b"model=parser", Content_Type="text/plain")[0] == 415
        assert post(gateway, {"model": "parser", "messages": asked("x" * 3000)})[0] == 413
        status, headers, _ = gateway.request("GET", "/v1/chat/completions")
        assert (status, headers["allow"]) == (405, "POST")
        assert gateway.status("/v1/embeddings") == 404
    finally:
        gateway.stop()


@pytest.mark.parametrize(
    ("engine_status", "status", "code"),
    [(400, 400, "too_large"), (401, 502, "upstream_error"), (429, 429, "engine_overloaded"),
     (500, 502, "upstream_error"), (503, 503, "engine_not_ready"), (302, 502, "upstream_error")],
)  # fmt: skip
@pytest.mark.parametrize("stream", [False, True])
def test_an_engines_error_is_mapped_and_tells_nothing_of_the_engine(
    gateway: GatewayProcess,
    engine: FakeEngine,
    engine_status: int,
    status: int,
    code: str,
    stream: bool,
) -> None:
    answered, headers, content = post(
        gateway, {"model": "parser", "messages": asked(f"status {engine_status}"), "stream": stream}
    )
    assert (answered, content["error"]["code"]) == (status, code)
    assert ("retry-after" in headers) == (status in (429, 503))
    for hidden in (MODEL, str(engine.port), "127.0.0.1", CREDENTIAL):
        assert hidden not in json.dumps(content)


def test_an_answer_that_is_not_json_is_an_engine_error(gateway: GatewayProcess) -> None:
    assert post(gateway, {"model": "parser", "messages": asked("html")})[0] == 502


def test_no_header_of_the_client_reaches_the_engine(
    gateway: GatewayProcess, engine: FakeEngine
) -> None:
    post(
        gateway,
        {"model": "parser", "messages": asked("hi")},
        X_Forwarded_For="10.1.2.3",
        Cookie="session=1",
        Connection="keep-alive, X-Secret",
        X_Secret="1",
    )
    (headers,) = engine.headers
    assert headers["authorization"] == f"Bearer {CREDENTIAL}"
    assert not {"cookie", "x-forwarded-for", "x-secret", "connection"} & headers.keys()


def test_the_requests_of_a_key_are_limited_and_the_answer_says_so(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    version = control.publish(keys=[key_of(SECRET, requests_per_minute=4)], gateways=2)
    wait_until(lambda: f'version": {version}' in gateway.get("/healthz")[1], what="the limits")
    call = {"model": "parser", "messages": asked("hi")}
    first, second, third = (post(gateway, call) for _ in range(3))
    assert (first[0], second[0], third[0]) == (200, 200, 429)
    assert first[1]["x-ratelimit-limit-requests"] == "2"
    assert second[1]["x-ratelimit-remaining-requests"] == "0"
    assert 25 <= int(third[1]["retry-after"]) <= 30
    assert third[2]["error"]["code"] == "rate_limit_exceeded"
    rejected = wait_until(
        lambda: [record for record in control.records if record["outcome"] == "rejected"],
        what="the rejected request's record",
    )
    assert (rejected[0]["status"], rejected[0]["backend"]) == (429, None)


def test_the_requests_open_at_a_time_are_limited(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    version = control.publish(keys=[key_of(SECRET, concurrency=1)])
    wait_until(lambda: f'version": {version}' in gateway.get("/healthz")[1], what="the limits")
    engine.close_gate()
    client = gateway.client(SECRET)
    with client.chat.completions.create(
        model="parser", messages=asked("hi"), stream=True
    ) as stream:
        next(iter(stream))
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="parser", messages=asked("hi"))
        engine.open_gate()
        list(stream)
    assert client.chat.completions.create(model="parser", messages=asked("hi")).choices


def test_a_request_moves_to_another_endpoint_if_the_first_takes_no_connection(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    version = control.publish(routes=[route_of("parser", backend_of(dead, engine.url))])
    wait_until(lambda: f'version": {version}' in gateway.get("/healthz")[1], what="the route")
    client = gateway.client(SECRET)
    for _ in range(20):
        assert client.chat.completions.create(model="parser", messages=asked("hi")).choices
    # The dead endpoint was tried once and then set aside.
    assert 'refused_connections_total{route="parser"} 1' in gateway.get("/metrics")[1]


def test_a_route_without_a_ready_endpoint_is_unavailable_for_now(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    dead = f"http://127.0.0.1:{free_port()}"
    routes = [route_of("dead", backend_of(dead)), route_of("empty", backend_of())]
    version = control.publish(routes=routes)
    wait_until(lambda: f'version": {version}' in gateway.get("/healthz")[1], what="the routes")
    for name in ("dead", "empty"):
        status, headers, content = post(gateway, {"model": name, "messages": asked("hi")})
        assert (status, content["error"]["code"]) == (503, "no_ready_endpoint")
        assert int(headers["retry-after"]) > 0


@pytest.mark.parametrize("stream", [False, True])
def test_an_engine_that_does_not_answer_in_time_is_left(
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
        call = {"model": "parser", "messages": asked("silent"), "stream": stream}
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
                    model="parser", messages=asked("endless"), stream=True
                )
            )
        wait_until(lambda: engine.cancelled == 1, what="the engine to be left")
    finally:
        gateway.stop()


def test_a_client_that_leaves_in_mid_stream_frees_the_engine_and_is_counted(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    stream = gateway.client(SECRET).chat.completions.create(
        model="parser", messages=asked("endless"), stream=True
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


def test_a_client_that_leaves_before_its_answer_frees_the_engine(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine
) -> None:
    impatient = gateway.client(SECRET).with_options(timeout=0.3)
    with pytest.raises(openai.APITimeoutError):
        impatient.chat.completions.create(model="parser", messages=asked("silent"))
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
            model="parser", messages=asked(f"words {number + 1}"), stream=True
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


def test_keys_and_credentials_appear_in_no_log(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    post(gateway, {"model": "parser", "messages": asked("status 500")})
    gateway.request("GET", "/v1/models", headers={"Authorization": "Bearer sk-wrong"})
    gateway.stop()
    log = gateway.log.read_text()
    assert "an engine answered with an error" in log
    for secret in (SECRET, "sk-wrong", CREDENTIAL):
        assert secret not in log
