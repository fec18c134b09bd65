"""The ASGI application over a generator that is told what to say."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from ninefold_runtime.serving.app import EngineApp
from ninefold_runtime.serving.generation_requests import Message
from ninefold_runtime.serving.image_inputs import ImageInput
from ninefold_runtime.serving.metrics import EngineMetrics
from ninefold_runtime.serving.operations import OperationContext, ServedModel
from ninefold_runtime.serving.request_fields import RequestRejected
from ninefold_runtime.serving.text_generation import (
    ChoiceFinished,
    Event,
    GenerationFinished,
    GenerationRequest,
    TextDelta,
    TokenLogprob,
    ToolCallDelta,
)
from ninefold_runtime.serving.text_operations import TextOperations
from ninefold_runtime.serving.tool_calls import ToolCall
from ninefold_runtime.serving.work_queue import WorkQueue

KEY = "engine-key"
STOP = ChoiceFinished(reason="stop")
DONE = GenerationFinished(prompt_tokens=3, completion_tokens=2)
FAILURE = RuntimeError("the card fell off the bus")
STREAM_EVENTS: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)


class ScriptedGenerator:
    """Emits the events it was given, or raises them; none means that it goes on until it is cancelled."""

    context_length = 16

    def __init__(self, *events: Event | Exception) -> None:
        self._events = events
        self.requests: list[GenerationRequest] = []
        self.began = threading.Event()
        self.was_cancelled = threading.Event()

    def encode_chat(
        self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]]
    ) -> list[int]:
        return list(range(sum(len(message["content"]) for message in messages)))

    def encode_images(
        self,
        messages: Sequence[Message],
        *,
        tools: Sequence[Mapping[str, Any]],
        images: Sequence[ImageInput],
    ) -> tuple[list[int], Mapping[str, Any]]:
        return [0, 1], {"pixel_values": [image.content for image in images]}

    def encode_text(self, text: str) -> list[int]:
        return list(range(len(text)))

    def check_tokens(self, tokens: Sequence[int]) -> None:
        pass

    def check_grammar(self, grammar: str, *, param: str) -> None:
        if "unsupported" in grammar:
            raise RequestRejected("the JSON schema is not supported", param=param)

    def generate(
        self,
        request: GenerationRequest,
        emit: Callable[[Event], None],
        cancelled: threading.Event,
    ) -> None:
        self.requests.append(request)
        self.began.set()
        for event in self._events:
            if isinstance(event, Exception):
                raise event
            emit(event)
        if DONE not in self._events:
            assert cancelled.wait(timeout=120)
            self.was_cancelled.set()


class UntalkativeGenerator(ScriptedGenerator):
    """A model without a chat template."""

    def encode_chat(
        self, messages: Sequence[Message], *, tools: Sequence[Mapping[str, Any]]
    ) -> list[int]:
        raise RequestRejected("no chat template", param="messages")


class Client:
    """One request, spoken in ASGI."""

    def __init__(self, generator: ScriptedGenerator, *, queue_size: int = 4) -> None:
        self.context = OperationContext(
            model_name="parser", queue=WorkQueue(size=queue_size), metrics=EngineMetrics()
        )
        operations = TextOperations(generator, context=self.context).routes()
        model = ServedModel(
            operations=operations, description="scripted", context_length=generator.context_length
        )
        self.app = EngineApp(model=model, context=self.context, key=KEY)
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
        await asyncio.wait_for(self.app(scope, receive, send), timeout=120)
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

    def response_events(self) -> list[Any]:
        """The events of a response, each as the official type of that name."""
        found = []
        for number, block in enumerate(self.body().decode().removesuffix("\n\n").split("\n\n")):
            name, data = block.split("\n")
            event = STREAM_EVENTS.validate_json(data.removeprefix("data: "))
            assert name == f"event: {event.type}"
            assert event.sequence_number == number
            found.append(event)
        return found


def chat(**changes: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": "abc"}]
    return {"model": "parser", "messages": messages} | changes


def run(scenario: Callable[[], Any]) -> None:
    asyncio.run(scenario())


def test_a_whole_answer_has_openais_shape() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(TextDelta(text="he"), TextDelta(text="llo"), STOP, DONE))
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
        client = Client(ScriptedGenerator(TextDelta(text="he"), TextDelta(text="llo"), STOP, DONE))
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
        client = Client(ScriptedGenerator(TextDelta(text="x"), STOP, DONE))
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
        client = Client(ScriptedGenerator(STOP, DONE))
        assert await client.call("GET", path, key=key) == 401
        assert client.json()["error"]["code"] == "invalid_api_key"
        health = Client(ScriptedGenerator())
        assert await health.call("GET", "/health", key=None) == 200

    run(scenario)


def test_a_prompt_as_long_as_the_context_is_refused() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(STOP, DONE))
        body = chat(messages=[{"role": "user", "content": "x" * 16}])
        assert await client.call("POST", "/v1/chat/completions", body) == 400
        error = client.json()["error"]
        assert error["code"] == "context_length_exceeded"
        assert error["param"] == "messages"
        assert "16 tokens, and the prompt has 16" in error["message"]

    run(scenario)


def test_another_models_name_is_not_found() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(STOP, DONE))
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
        generator = ScriptedGenerator()
        client = Client(generator, queue_size=0)
        call = asyncio.create_task(client.call("POST", "/v1/chat/completions", chat()))
        await asyncio.to_thread(generator.began.wait, 120)
        for stream in (False, True):
            client.sent.clear()
            body = chat(stream=stream)
            assert await client.call("POST", "/v1/chat/completions", body) == 503
            assert client.json()["error"]["code"] == "engine_overloaded"
            assert (b"retry-after", b"1") in client.sent[0]["headers"]
        client.leaves.set()
        await call

    run(scenario)


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_cancels_the_generation(stream: bool) -> None:
    async def scenario() -> None:
        generator = ScriptedGenerator(TextDelta(text="x"))
        client = Client(generator)
        call = asyncio.create_task(client.call("POST", "/v1/chat/completions", chat(stream=stream)))
        await asyncio.to_thread(generator.began.wait, 120)
        assert not generator.was_cancelled.is_set()
        client.leaves.set()
        await call
        assert await asyncio.to_thread(generator.was_cancelled.wait, 120)

    run(scenario)


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_beyond_the_shutdown_time_ends_with_an_error(stream: bool) -> None:
    """The server cancels the tasks of open requests."""

    async def scenario() -> None:
        generator = ScriptedGenerator(TextDelta(text="x"))
        client = Client(generator)
        call = asyncio.create_task(client.call("POST", "/v1/chat/completions", chat(stream=stream)))
        await asyncio.to_thread(generator.began.wait, 120)
        while stream and b'"x"' not in client.body():
            await asyncio.sleep(0.001)
        call.cancel()
        # The guard of the test against hanging is cancelled too, after the application.
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await asyncio.to_thread(generator.was_cancelled.wait, 120)
        last = client.events()[-1] if stream else client.json()
        assert last["error"]["code"] == "server_shutting_down"
        assert client.sent[0]["status"] == (200 if stream else 503)

    run(scenario)


def test_a_failure_before_the_answer_is_an_error_and_within_it_the_last_event() -> None:
    async def scenario() -> None:
        whole = Client(ScriptedGenerator(FAILURE))
        assert await whole.call("POST", "/v1/chat/completions", chat()) == 500
        assert whole.json()["error"]["type"] == "server_error"
        streamed = Client(ScriptedGenerator(TextDelta(text="x"), FAILURE))
        await streamed.call("POST", "/v1/chat/completions", chat(stream=True))
        assert streamed.events()[-1]["error"]["message"] == "inference failed: RuntimeError"

    run(scenario)


def test_the_wrong_method_is_refused() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator())
        assert await client.call("GET", "/v1/chat/completions") == 405

    run(scenario)


def test_an_operation_of_another_kind_of_model_is_not_found() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator())
        assert await client.call("POST", "/v1/embeddings", {"input": "x"}) == 404
        assert "/v1/completions" in client.json()["error"]["message"]

    run(scenario)


def test_metrics_count_what_was_answered() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(TextDelta(text="x"), STOP, DONE))
        await client.call("POST", "/v1/chat/completions", chat())
        client.sent.clear()
        await client.call("GET", "/metrics")
        text = client.body().decode()
        assert 'requests_total{operation="chat/completions",status="200"} 1' in text
        assert "ninefold_engine_completion_tokens_total 2" in text
        assert "ninefold_engine_requests_waiting 0" in text

    run(scenario)


CALL = ToolCallDelta(call=ToolCall(name="get_weather", arguments='{"city":"西宁"}'))


def test_tool_calls_and_reasoning_have_the_shapes_that_clients_read() -> None:
    async def scenario() -> None:
        events = (
            TextDelta(text="hm", is_reasoning=True),
            CALL,
            CALL,
            ChoiceFinished(reason="tool_calls"),
            DONE,
        )
        whole = Client(ScriptedGenerator(*events))
        await whole.call("POST", "/v1/chat/completions", chat())
        choice = whole.json()["choices"][0]
        assert choice["finish_reason"] == "tool_calls"
        message = choice["message"]
        assert (message["content"], message["reasoning_content"]) == (None, "hm")
        assert [call["function"]["name"] for call in message["tool_calls"]] == ["get_weather"] * 2
        assert len({call["id"] for call in message["tool_calls"]}) == 2

        streamed = Client(ScriptedGenerator(*events))
        await streamed.call("POST", "/v1/chat/completions", chat(stream=True))
        deltas = [event["choices"][0]["delta"] for event in streamed.events()]
        assert deltas[1] == {"reasoning_content": "hm"}
        calls = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
        assert [call["index"] for call in calls] == [0, 1]
        assert calls[0]["function"] == {"name": "get_weather", "arguments": '{"city":"西宁"}'}

    run(scenario)


def test_log_probabilities_have_both_shapes_of_openai() -> None:
    tokens = (
        TokenLogprob(token=b"a", logprob=None),
        TokenLogprob(token=b"\xe8", logprob=-0.5, alternatives=((b"\xe8", -0.5), (b"b", -1.0))),
        TokenLogprob(token=b"\xa5\xbf", logprob=-0.25, alternatives=()),
    )

    async def scenario() -> None:
        events = (TextDelta(text="a西", logprobs=tokens), STOP, DONE)
        completion = Client(ScriptedGenerator(*events))
        body = {"model": "parser", "prompt": "a", "logprobs": 2}
        await completion.call("POST", "/v1/completions", body)
        found = completion.json()["choices"][0]["logprobs"]
        assert found == {
            "tokens": ["a", "bytes:\\xe8", "bytes:\\xa5\\xbf"],
            "token_logprobs": [None, -0.5, -0.25],
            "top_logprobs": [None, {"bytes:\\xe8": -0.5, "b": -1.0}, {}],
            "text_offset": [0, 1, 1],
        }
        talk = Client(ScriptedGenerator(*events))
        await talk.call("POST", "/v1/chat/completions", chat(logprobs=True, top_logprobs=2))
        content = talk.json()["choices"][0]["logprobs"]["content"]
        assert content[1]["bytes"] == [0xE8]
        assert [other["token"] for other in content[1]["top_logprobs"]] == ["bytes:\\xe8", "b"]

    run(scenario)


def test_several_answers_keep_their_index() -> None:
    async def scenario() -> None:
        events: list[Event] = []
        for index in (0, 1):
            events += [
                TextDelta(text=f"answer {index}", index=index),
                ChoiceFinished(reason="stop", index=index),
            ]
        client = Client(ScriptedGenerator(*events, DONE))
        await client.call("POST", "/v1/chat/completions", chat(n=2))
        choices = client.json()["choices"]
        assert [(each["index"], each["message"]["content"]) for each in choices] == [
            (0, "answer 0"),
            (1, "answer 1"),
        ]

    run(scenario)


def test_what_a_request_asks_for_reaches_the_generator() -> None:
    async def scenario() -> None:
        generator = ScriptedGenerator(STOP, DONE)
        client = Client(generator)
        body = {"model": "parser", "prompt": ["ab", [1, 2, 3]], "echo": True, "logprobs": 1, "n": 2}
        assert await client.call("POST", "/v1/completions", body) == 200
        (asked,) = generator.requests
        assert [list(prompt) for prompt in asked.prompts] == [[0, 1], [1, 2, 3]]
        assert (asked.choices, asked.logprobs, asked.echo) == (2, 1, True)

        client.sent.clear()
        schema = {"type": "json_schema", "json_schema": {"schema": {"unsupported": 1}}}
        assert (
            await client.call("POST", "/v1/chat/completions", chat(response_format=schema)) == 400
        )
        assert client.json()["error"]["param"] == "response_format"

    run(scenario)


def responses(**changes: Any) -> dict[str, Any]:
    return {"model": "parser", "input": "abc"} | changes


#: Types of the events of one item with text.
TEXT_ITEM = (
    "response.output_item.added", "response.content_part.added", "response.output_text.delta",
    "response.output_text.done", "response.content_part.done", "response.output_item.done",
)  # fmt: skip
CALL_ITEM = (
    "response.output_item.added", "response.function_call_arguments.delta",
    "response.function_call_arguments.done", "response.output_item.done",
)  # fmt: skip


def test_a_response_has_the_official_shape_whole_and_in_events() -> None:
    async def scenario() -> None:
        events = (
            TextDelta(text="hm", is_reasoning=True),
            TextDelta(text="Look"),
            TextDelta(text="ing."),
            CALL,
            CALL,
            ChoiceFinished(reason="tool_calls"),
            DONE,
        )
        tool = {"type": "function", "name": "get_weather", "parameters": {"type": "object"}}
        body = responses(
            tools=[tool],
            metadata={"run": "7"},
            store=True,
            user="u",
            max_output_tokens=9,
            reasoning={"effort": "low"},
            text={"format": None, "verbosity": "low"},
            include=["reasoning.encrypted_content"],
        )
        whole = Client(ScriptedGenerator(*events))
        assert await whole.call("POST", "/v1/responses", body) == 200
        answer = Response.model_validate(whole.json())
        kinds = ["reasoning", "message", "function_call", "function_call"]
        assert [item.type for item in answer.output] == kinds
        assert answer.output_text == "Looking."
        assert (answer.status, answer.model, answer.max_output_tokens) == ("completed", "parser", 9)
        assert (answer.metadata, answer.user) == ({"run": "7"}, "u")
        assert whole.json()["text"] == {"format": {"type": "text"}, "verbosity": "low"}
        assert answer.usage is not None
        assert (answer.usage.input_tokens, answer.usage.output_tokens) == (3, 2)
        assert whole.json()["store"] is False
        call = whole.json()["output"][2]
        assert (call["name"], call["arguments"]) == ("get_weather", '{"city":"西宁"}')
        assert len({item["id"] for item in whole.json()["output"]}) == 4

        streamed = Client(ScriptedGenerator(*events))
        assert await streamed.call("POST", "/v1/responses", body | {"stream": True}) == 200
        found = streamed.response_events()
        reasoning = [kind.replace("output_text", "reasoning_text") for kind in TEXT_ITEM]
        text = [*TEXT_ITEM[:3], *TEXT_ITEM[2:]]
        assert [event.type for event in found] == [
            "response.created", "response.in_progress", *reasoning, *text, *CALL_ITEM, *CALL_ITEM,
            "response.completed",
        ]  # fmt: skip
        assert [event.output_index for event in found if "output_item" in event.type] == [
            0, 0, 1, 1, 2, 2, 3, 3,
        ]  # fmt: skip
        final = found[-1].response
        done = [event.item for event in found if event.type == "response.output_item.done"]
        assert final.output == done
        unlike = {"id", "call_id", "created_at"}
        assert _without(final.to_dict(), unlike) == _without(answer.to_dict(), unlike)

    run(scenario)


def _without(value: Any, names: set[str]) -> Any:
    if isinstance(value, dict):
        return {name: _without(each, names) for name, each in value.items() if name not in names}
    return [_without(each, names) for each in value] if isinstance(value, list) else value


def test_a_response_that_reaches_its_limit_is_incomplete() -> None:
    async def scenario() -> None:
        token = TokenLogprob(token=b"a", logprob=-0.5, alternatives=((b"a", -0.5), (b"b", -1.0)))
        cut = ChoiceFinished(reason="length", logprobs=(token,))
        body = responses(top_logprobs=2, include=["message.output_text.logprobs"], stream=True)
        client = Client(ScriptedGenerator(TextDelta(text="a", logprobs=(token,)), cut, DONE))
        await client.call("POST", "/v1/responses", body)
        events = client.response_events()
        assert [event.type for event in events[2:]] == [*TEXT_ITEM, "response.incomplete"]
        assert (events[3].part.logprobs, len(events[4].logprobs)) == ([], 1)
        final = events[-1].response
        assert (final.status, final.incomplete_details.reason) == (
            "incomplete",
            "max_output_tokens",
        )
        assert final.output[0].status == "incomplete"
        scored = final.output[0].content[0].logprobs
        assert [(one.token, one.logprob, len(one.top_logprobs)) for one in scored] == [
            ("a", -0.5, 2)
        ] * 2
        cut_call = ToolCall(name="get_weather", arguments='{"ci', is_complete=False)
        called = Client(ScriptedGenerator(ToolCallDelta(call=cut_call), cut, DONE))
        await called.call("POST", "/v1/responses", responses(stream=True))
        events = called.response_events()
        assert [event.type for event in events[2:]] == [*CALL_ITEM, "response.incomplete"]
        for item in (events[-2].item, events[-1].response.output[0]):
            assert (item.status, item.arguments) == ("incomplete", '{"ci')
        # Without text it has an empty message.
        empty = Client(ScriptedGenerator(STOP, DONE))
        await empty.call("POST", "/v1/responses", responses())
        answer = Response.model_validate(empty.json())
        assert (answer.output_text, len(answer.output)) == ("", 1)

    run(scenario)


def test_a_response_that_fails_in_its_stream_ends_with_the_error() -> None:
    async def scenario() -> None:
        client = Client(ScriptedGenerator(TextDelta(text="x"), FAILURE))
        await client.call("POST", "/v1/responses", responses(stream=True))
        final = client.response_events()[-1]
        assert final.type == "response.failed"
        assert (final.response.status, final.response.error.message) == (
            "failed",
            "inference failed: RuntimeError",
        )
        whole = Client(ScriptedGenerator(FAILURE))
        assert await whole.call("POST", "/v1/responses", responses()) == 500
        long = Client(ScriptedGenerator(STOP, DONE))
        assert await long.call("POST", "/v1/responses", responses(input="a" * 16)) == 400
        error = long.json()["error"]
        assert (error["param"], error["code"]) == ("input", "context_length_exceeded")
        untalkative = Client(UntalkativeGenerator(STOP, DONE))
        assert await untalkative.call("POST", "/v1/responses", responses()) == 400
        assert untalkative.json()["error"]["param"] == "input"
        for text, param in (
            ({"format": {"type": "json_schema", "schema": {"unsupported": 1}}}, "text.format"),
            ({"format": {"type": "json_schema"}}, "text.format"),
        ):
            refused = Client(ScriptedGenerator(STOP, DONE))
            assert await refused.call("POST", "/v1/responses", responses(text=text)) == 400
            assert refused.json()["error"]["param"] == param

    run(scenario)
