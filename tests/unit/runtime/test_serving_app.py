"""The ASGI application over a generator that is told what to say."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from ninefold_runtime.serving.app import EngineApp
from ninefold_runtime.serving.generation_requests import Message
from ninefold_runtime.serving.text_generation import (
    Event,
    GenerationFailed,
    GenerationFinished,
    GenerationRequest,
    QueueFull,
    TextDelta,
)

KEY = "engine-key"
DONE = GenerationFinished(reason="stop", prompt_tokens=3, completion_tokens=2)


class ScriptedGenerator:
    """Answers each ticket with the events it was given; none means that it never answers."""

    context_length = 16

    def __init__(self, *events: Event, full: bool = False) -> None:
        self._events = events
        self._full = full
        self.tickets: list[GenerationRequest] = []
        self.submitted = asyncio.Event()

    def encode_chat(self, messages: Sequence[Message]) -> list[int]:
        return list(range(sum(len(message["content"]) for message in messages)))

    def encode_text(self, text: str) -> list[int]:
        return list(range(len(text)))

    def submit(self, ticket: GenerationRequest) -> None:
        if self._full:
            raise QueueFull("4 requests wait already")
        self.tickets.append(ticket)
        self.submitted.set()
        for event in self._events:
            ticket.on_event(event)

    def cancel(self, ticket: GenerationRequest) -> None:
        ticket.cancelled.set()

    def load(self) -> tuple[int, int]:
        return 1, 2


class Client:
    """One request, spoken in ASGI."""

    def __init__(self, generator: ScriptedGenerator) -> None:
        self.app = EngineApp(generator=generator, model_name="parser", key=KEY)
        self.leaves = asyncio.Event()
        self.sent: list[dict[str, Any]] = []

    async def call(
        self, method: str, path: str, body: object = None, *, key: str | None = KEY
    ) -> int:
        messages = [{"type": "http.request", "body": json.dumps(body).encode()}]

        async def receive() -> dict[str, Any]:
            if messages:
                return messages.pop(0)
            await self.leaves.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            self.sent.append(dict(message))

        headers = [(b"authorization", f"Bearer {key}".encode())] if key is not None else []
        scope = {"type": "http", "method": method, "path": path, "headers": headers}
        await asyncio.wait_for(self.app(scope, receive, send), timeout=5)
        return int(self.sent[0]["status"]) if self.sent else 0

    def body(self) -> bytes:
        return b"".join(message.get("body", b"") for message in self.sent)

    def json(self) -> Any:
        return json.loads(self.body())

    def events(self) -> list[Any]:
        lines = [line for line in self.body().decode().split("\n\n") if line]
        assert all(line.startswith("data: ") for line in lines)
        assert lines[-1] == "data: [DONE]"
        return [json.loads(line.removeprefix("data: ")) for line in lines[:-1]]


def chat(**changes: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "abc"}]
    return {"model": "parser", "messages": messages} | changes


def run(scenario: Callable[[], Any]) -> None:
    asyncio.run(scenario())


def test_a_whole_answer_has_openais_shape() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(TextDelta(text="he"), TextDelta(text="llo"), DONE))
        assert await client.call("POST", "/v1/chat/completions", chat()) == 200
        answer = client.json()
        assert answer["object"] == "chat.completion"
        assert answer["choices"][0]["message"] == {"role": "assistant", "content": "hello"}
        assert answer["choices"][0]["finish_reason"] == "stop"
        assert answer["usage"] == {
            "prompt_tokens": 3,
            "completion_tokens": 2,
            "total_tokens": 5,
        }

    run(scenario)


def test_a_streamed_answer_ends_with_usage_and_done() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(TextDelta(text="he"), TextDelta(text="llo"), DONE))
        body = chat(stream=True, stream_options={"include_usage": True})
        assert await client.call("POST", "/v1/chat/completions", body) == 200
        *chunks, last = client.events()
        deltas = [chunk["choices"][0]["delta"] for chunk in chunks]
        assert deltas[0] == {"role": "assistant", "content": ""}
        assert [delta.get("content") for delta in deltas[1:]] == ["he", "llo", None]
        assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
        assert last["choices"] == []
        assert last["usage"]["total_tokens"] == 5

    run(scenario)


def test_usage_is_not_streamed_unless_it_is_asked_for() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(TextDelta(text="x"), DONE))
        body = {"model": "parser", "prompt": "abc", "stream": True}
        await client.call("POST", "/v1/completions", body)
        events = client.events()
        assert all(event["object"] == "text_completion" for event in events)
        assert not any("usage" in event for event in events)

    run(scenario)


@pytest.mark.parametrize("key", [None, "", "wrong", KEY + "x"])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/chat/completions", "/metrics", "/nowhere"])
def test_nothing_but_health_answers_without_the_key(path: str, key: str | None) -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(DONE))
        assert await client.call("GET", path, key=key) == 401
        assert client.json()["error"]["code"] == "invalid_api_key"
        health = Client(ScriptedGenerator())
        assert await health.call("GET", "/health", key=None) == 200

    run(scenario)


def test_a_prompt_as_long_as_the_context_is_refused() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(DONE))
        body = chat(messages=[{"role": "user", "content": "x" * 16}])
        assert await client.call("POST", "/v1/chat/completions", body) == 400
        error = client.json()["error"]
        assert error["code"] == "context_length_exceeded"
        assert error["param"] == "messages"
        assert "16 tokens, and the prompt has 16" in error["message"]

    run(scenario)


def test_another_models_name_is_not_found() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(DONE))
        assert await client.call("POST", "/v1/chat/completions", chat(model="gpt")) == 404
        assert client.json()["error"]["code"] == "model_not_found"

    run(scenario)


def test_the_model_is_listed() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator())
        assert await client.call("GET", "/v1/models") == 200
        assert [model["id"] for model in client.json()["data"]] == ["parser"]
        one = Client(ScriptedGenerator())
        assert await one.call("GET", "/v1/models/parser") == 200
        other = Client(ScriptedGenerator())
        assert await other.call("GET", "/v1/models/other") == 404

    run(scenario)


def test_a_full_queue_says_when_to_come_back() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(full=True))
        assert await client.call("POST", "/v1/chat/completions", chat()) == 503
        assert client.json()["error"]["code"] == "engine_overloaded"
        assert (b"retry-after", b"1") in client.sent[0]["headers"]

    run(scenario)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_cancels_the_generation(stream: bool) -> None:
    async def scenario() -> None:
        generator = ScriptedGenerator(TextDelta(text="x"))
        client = Client(generator)
        call = asyncio.create_task(client.call("POST", "/v1/chat/completions", chat(stream=stream)))
        await asyncio.wait_for(generator.submitted.wait(), 5)
        assert not generator.tickets[0].cancelled.is_set()
        client.leaves.set()
        await call
        assert generator.tickets[0].cancelled.is_set()

    run(scenario)


def test_a_failure_before_the_answer_is_an_error_and_within_it_the_last_event() -> None:
    async def scenario() -> None:
        whole = Client(ScriptedGenerator(GenerationFailed(message="generation failed")))
        assert await whole.call("POST", "/v1/chat/completions", chat()) == 500
        assert whole.json()["error"]["type"] == "server_error"
        streamed = Client(
            ScriptedGenerator(TextDelta(text="x"), GenerationFailed(message="generation failed"))
        )
        await streamed.call("POST", "/v1/chat/completions", chat(stream=True))
        assert streamed.events()[-1]["error"]["message"] == "generation failed"

    run(scenario)


def test_the_wrong_method_is_refused() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator())
        assert await client.call("GET", "/v1/chat/completions") == 405

    run(scenario)


def test_metrics_count_what_was_answered() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(TextDelta(text="x"), DONE))
        await client.call("POST", "/v1/chat/completions", chat())
        client.sent.clear()
        await client.call("GET", "/metrics")
        text = client.body().decode()
        assert 'requests_total{operation="chat/completions",status="200"} 1' in text
        assert "ninefold_engine_completion_tokens_total 2" in text
        assert "ninefold_engine_requests_waiting 2" in text

    run(scenario)
