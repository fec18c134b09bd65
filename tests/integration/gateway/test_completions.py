"""Responses to API clients, through the official client where possible."""

from __future__ import annotations

import json

import openai
import pytest

from tests.integration.gateway.clients import post, user_message
from tests.integration.gateway.conftest import CREDENTIAL, SECRET
from tests.integration.gateway.control_planes import FakeControl, key_of
from tests.integration.gateway.engines import MODEL, FakeEngine
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import wait_until


def test_a_chat_answer_carries_the_public_name_and_the_engine_its_own(
    gateway: GatewayProcess, engine: FakeEngine
) -> None:
    answer = gateway.client(SECRET).chat.completions.create(
        model="parser", messages=user_message("words 4"), temperature=0.5
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
            model="parser", messages=user_message("words 5"), stream=True
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
            messages=user_message("words 5"),
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    assert chunks[-1].choices == []
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.completion_tokens == 5


@pytest.mark.parametrize("prompt", ["words 2", "words 2 unfinished", "fail", "break", "truncated"])
def test_a_stream_always_ends_with_done_and_once(gateway: GatewayProcess, prompt: str) -> None:
    body = json.dumps(
        {"model": "parser", "messages": user_message(prompt), "stream": True}
    ).encode()
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


@pytest.mark.parametrize("prompt", ["fail", "break", "truncated"])
def test_an_engine_that_fails_in_mid_stream_is_an_error_without_its_address(
    gateway: GatewayProcess, control: FakeControl, engine: FakeEngine, prompt: str
) -> None:
    stream = gateway.client(SECRET).chat.completions.create(
        model="parser", messages=user_message(prompt), stream=True
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


def test_no_header_of_the_client_reaches_the_engine(
    gateway: GatewayProcess, engine: FakeEngine
) -> None:
    post(
        gateway,
        {"model": "parser", "messages": user_message("hi")},
        X_Forwarded_For="10.1.2.3",
        Cookie="session=1",
        Connection="keep-alive, X-Secret",
        X_Secret="1",
    )
    (headers,) = engine.headers
    assert headers["authorization"] == f"Bearer {CREDENTIAL}"
    assert not {"cookie", "x-forwarded-for", "x-secret", "connection"} & headers.keys()
