"""Errors of refused requests: status, message and code."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import openai
import pytest

from tests.integration.gateway.clients import post, user_message
from tests.integration.gateway.conftest import CREDENTIAL, SECRET
from tests.integration.gateway.control_planes import FakeControl, key_of
from tests.integration.gateway.engines import MODEL, FakeEngine
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import wait_until


def test_another_teams_route_cannot_be_told_from_a_missing_one(gateway: GatewayProcess) -> None:
    def refused(model: str) -> dict[str, Any]:
        status, _, body = post(gateway, {"model": model, "messages": user_message("hi")})
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


INVALID_BODIES = (
    (b'{"model": "parser",\n "messages": [}', None, "invalid_json"),
    (b"\xff", None, "invalid_json"),
    (b"[]", None, "invalid_json"),
    (b'{"model": NaN}', None, "invalid_json"),
    (b"[" * 100_000, None, "invalid_json"),
    (b'{"messages": []}', "model", "missing_required_parameter"),
    (b'{"model": "parser"}', "messages", "missing_required_parameter"),
    (b'{"model": "parser", "messages": ["hi"]}', "messages[0]", "invalid_type"),
    (
        b'{"model":"parser","messages":[{"role":"user","content":"x"}],"max_tokens":513}',
        "max_tokens",
        "context_length_exceeded",
    ),
)


def test_an_invalid_body_is_refused_with_its_parameter(
    gateway: GatewayProcess, subtests: pytest.Subtests
) -> None:
    for body, param, code in INVALID_BODIES:
        with subtests.test(body=body[:80]):
            status, _, content = post(gateway, body)
            assert status == 400
            assert (content["error"]["param"], content["error"]["code"]) == (param, code)
    _, _, content = post(gateway, INVALID_BODIES[0][0])
    assert "line 2, column 15" in content["error"]["message"]


def test_no_token_is_asked_for_only_with_the_prompt_echoed(gateway: GatewayProcess) -> None:
    body = {"model": "parser", "prompt": "hi", "max_tokens": 0}
    status, _, content = post(gateway, body, path="/v1/completions")
    assert (status, content["error"]["param"]) == (400, "max_tokens")
    echoed = {**body, "echo": True, "logprobs": 1}
    assert post(gateway, echoed, path="/v1/completions")[0] == 200


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
        assert post(gateway, {"model": "parser", "messages": user_message("x" * 3000)})[0] == 413
        status, headers, _ = gateway.request("GET", "/v1/chat/completions")
        assert (status, headers["allow"]) == (405, "POST")
        assert gateway.status("/v1/moderations") == 404
    finally:
        gateway.stop()


#: Status of the engine → status and code of the answer.
ENGINE_ERRORS = {
    400: (400, "too_large"),
    401: (502, "upstream_error"),
    429: (429, "engine_overloaded"),
    500: (502, "upstream_error"),
    503: (503, "engine_not_ready"),
    302: (502, "upstream_error"),
}


@pytest.mark.parametrize("stream", [False, True])
def test_an_engine_error_is_mapped_and_redacted(
    gateway: GatewayProcess, engine: FakeEngine, subtests: pytest.Subtests, stream: bool
) -> None:
    for engine_status, expected in ENGINE_ERRORS.items():
        with subtests.test(status=engine_status):
            messages = user_message(f"status {engine_status}")
            body = {"model": "parser", "messages": messages, "stream": stream}
            status, headers, content = post(gateway, body)
            assert (status, content["error"]["code"]) == expected
            assert ("retry-after" in headers) == (status in (429, 503))
            for hidden in (MODEL, str(engine.port), "127.0.0.1", CREDENTIAL):
                assert hidden not in json.dumps(content)


def test_an_answer_that_is_not_json_is_an_engine_error(gateway: GatewayProcess) -> None:
    assert post(gateway, {"model": "parser", "messages": user_message("html")})[0] == 502


def test_the_requests_of_a_key_are_limited_and_the_answer_says_so(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    version = control.publish(keys=[key_of(SECRET, requests_per_minute=4)], gateways=2)
    wait_until(lambda: f'version": {version}' in gateway.get("/healthz")[1], what="the limits")
    call = {"model": "parser", "messages": user_message("hi")}
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
        model="parser", messages=user_message("hi"), stream=True
    ) as stream:
        next(iter(stream))
        with pytest.raises(openai.RateLimitError):
            client.chat.completions.create(model="parser", messages=user_message("hi"))
        engine.open_gate()
        list(stream)
    assert client.chat.completions.create(model="parser", messages=user_message("hi")).choices


def test_keys_and_credentials_appear_in_no_log(
    gateway: GatewayProcess, control: FakeControl
) -> None:
    post(gateway, {"model": "parser", "messages": user_message("status 500")})
    gateway.request("GET", "/v1/models", headers={"Authorization": "Bearer sk-wrong"})
    gateway.stop()
    log = gateway.log.read_text()
    assert "an engine answered with an error" in log
    for secret in (SECRET, "sk-wrong", CREDENTIAL):
        assert secret not in log
