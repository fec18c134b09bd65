"""Official clients against a real gateway in front of model servers of every kind.

Operations that the product's own server lacks are answered by an engine with fixed responses.
"""

from __future__ import annotations

import asyncio
import base64
import io
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import openai
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from PIL import Image
from pydantic import BaseModel, Field, TypeAdapter

from gateway.operations import RouteOperation
from tests.clients.environment import ClientEnvironment, installed_environment
from tests.engine.conftest import LIMIT_SECONDS
from tests.engine.servers import KEY, MODEL, running_server
from tests.integration.gateway.conftest import SECRET, backend_of
from tests.integration.gateway.control_planes import FakeControl, key_of, route_of
from tests.integration.gateway.operation_engines import SOUND, OperationsEngine
from tests.integration.gateway.processes import GatewayProcess
from tests.integration.gateway.servers import wait_until

#: Kind of model, which is the name of its route → its operations.
OPERATIONS = {
    "text": ["chat", "completions", "responses"],
    "vision": ["chat", "responses"],
    "embedding": ["embeddings"],
    "reranking": ["rerank"],
    "transcription": ["transcriptions"],
    "images": ["images"],
}


class Order(BaseModel):
    level: Literal["low", "high"]
    count: int = Field(ge=0, le=99)
    urgent: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedGateway:
    process: GatewayProcess
    control: FakeControl
    expected: Any
    tone: Path

    def client(self, key: str = SECRET) -> openai.OpenAI:
        return openai.OpenAI(
            base_url=f"{self.process.url}/v1", api_key=key, max_retries=0, timeout=LIMIT_SECONDS
        )

    def describe(self, folder: Path) -> dict[str, str]:
        """The variables of suites that run in another environment."""
        file = folder / "gateway.json"
        given = {
            "url": self.process.url,
            "key": SECRET,
            "expected": self.expected,
            "tone": str(self.tone),
            "sound": base64.b64encode(SOUND).decode(),
            "image": str(folder / "image.png"),
        }
        file.write_text(json.dumps(given), encoding="utf-8")
        return {"NINEFOLD_TEST_GATEWAY": str(file)}

    def assert_known_image(self, content: bytes) -> None:
        """That the file is the image that the pipeline makes of the known prompt with seed 5."""
        with Image.open(io.BytesIO(content)) as image:
            np.testing.assert_allclose(np.asarray(image), self.expected["images"]["pixels"], atol=1)


@pytest.fixture(scope="module")
def served_gateway(
    engine_python: Path,
    served_models: Path,
    expected: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[ServedGateway]:
    folder = tmp_path_factory.mktemp("clients")
    with ExitStack() as stack:

        def serve(kind: str) -> dict[str, Any]:
            server = stack.enter_context(
                running_server(engine_python, served_models / kind, folder=folder / kind)
            )
            backend = backend_of(f"http://127.0.0.1:{server.port}", uid=kind, model=MODEL)
            for endpoint in backend["endpoints"]:
                endpoint["credential"] = KEY
            return route_of(kind, backend, operations=OPERATIONS[kind])

        with ThreadPoolExecutor() as threads:
            routes = list(threads.map(serve, OPERATIONS))
        engine = OperationsEngine().start()
        stack.callback(engine.stop)
        everything = [operation.value for operation in RouteOperation]
        routes.append(route_of("any", backend_of(engine.url), operations=everything))
        control = FakeControl().start()
        stack.callback(control.stop)
        control.publish(routes=routes, keys=[key_of(SECRET)])
        process = GatewayProcess(home=folder, control_url=control.url)
        stack.callback(process.stop)
        process.start()
        yield ServedGateway(
            process=process, control=control, expected=expected, tone=served_models / "tone.wav"
        )


@pytest.fixture(scope="module")
def clients() -> ClientEnvironment:
    return installed_environment()


def test_openai_chats_and_calls_tools(served_gateway: ServedGateway) -> None:
    known = served_gateway.expected["text"]
    asked: dict[str, Any] = {
        "model": "text", "messages": known["messages"], "tools": known["tools"], "temperature": 0,
    }  # fmt: skip
    with served_gateway.client() as client:
        assert {model.id for model in client.models.list()} == {*OPERATIONS, "any"}
        whole = client.chat.completions.create(**asked).choices[0].message
        (call,) = whole.tool_calls or []
        assert call.type == "function"
        assert json.loads(call.function.arguments) == {"city": "西宁"}
        with client.chat.completions.stream(**asked) as stream:
            (streamed,) = stream.get_final_completion().choices[0].message.tool_calls or []
        assert streamed.function.arguments == call.function.arguments
        result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
        conversation = [*known["messages"], whole.model_dump(exclude_none=True), result]
        after = client.chat.completions.create(
            **asked | {"messages": conversation, "max_tokens": 4}
        )
        assert (after.model, after.usage is not None) == ("text", True)
        parsed = client.chat.completions.parse(
            model="text",
            messages=[{"role": "user", "content": "an order"}],
            response_format=Order,
            temperature=1.5,
            seed=1,
        )
        assert isinstance(parsed.choices[0].message.parsed, Order)
        text = client.completions.create(model="text", prompt=known["prompt"], max_tokens=4)
        assert text.usage is not None
        assert text.usage.completion_tokens == 4


def test_openai_asks_for_choices_stops_probabilities_and_the_prompt(
    served_gateway: ServedGateway,
) -> None:
    known = served_gateway.expected["text"]
    asked: dict[str, Any] = {"model": "text", "prompt": known["prompt"], "temperature": 0}
    with served_gateway.client() as client:
        several = client.chat.completions.create(
            model="text",
            messages=[{"role": "user", "content": "你好"}],
            n=2,
            max_tokens=4,
            logprobs=True,
            top_logprobs=3,
        )
        assert [choice.index for choice in several.choices] == [0, 1]
        for choice in several.choices:
            assert choice.logprobs is not None
            tokens = choice.logprobs.content or []
            assert 1 <= len(tokens) <= 4
            assert all(len(token.top_logprobs) == 3 and token.logprob <= 0 for token in tokens)
        whole = client.completions.create(**asked, max_tokens=8).choices[0].text
        assert len(whole) > 2
        (stopped,) = client.completions.create(**asked, max_tokens=8, stop=[whole[2:]]).choices
        assert (stopped.text, stopped.finish_reason) == (whole[: whole.index(whole[2:])], "stop")
        echoed = client.completions.create(**asked, max_tokens=2, echo=True, logprobs=1)
        (choice,) = echoed.choices
        assert choice.text.startswith(known["prompt"])
        assert choice.logprobs is not None
        assert echoed.usage is not None
        probabilities = choice.logprobs.token_logprobs or []
        assert (len(probabilities), probabilities[0]) == (echoed.usage.total_tokens, None)


def test_openai_chooses_whether_a_tool_is_called(served_gateway: ServedGateway) -> None:
    known = served_gateway.expected["text"]
    named = {"type": "function", "function": {"name": "get_weather"}}
    with served_gateway.client() as client:
        for tool_choice, calls in (("none", 0), ("required", 1), (named, 1)):
            asked: dict[str, Any] = {
                "model": "text", "messages": [{"role": "user", "content": "hello"}],
                "tools": known["tools"], "tool_choice": tool_choice, "parallel_tool_calls": False,
                # Otherwise a city may have a name without an end.
                "temperature": 1.5, "seed": 0,
            }  # fmt: skip
            message = client.chat.completions.create(**asked).choices[0].message
            assert len(message.tool_calls or []) == calls, tool_choice


def test_openai_sends_an_image(served_gateway: ServedGateway) -> None:
    known = served_gateway.expected["vision"]
    with served_gateway.client() as client:
        for colour, url in known["images"].items():
            parts: list[Any] = [
                {"type": "text", "text": known["question"]},
                {"type": "image_url", "image_url": {"url": url}},
            ]
            stream = client.chat.completions.create(
                model="vision",
                # As the model learnt it: first the image.
                messages=[{"role": "user", "content": parts[::-1]}],
                temperature=0,
                max_tokens=8,
                stream=True,
            )
            assert "".join(each.choices[0].delta.content or "" for each in stream) == colour
        remote: list[Any] = [{"type": "image_url", "image_url": {"url": "http://10.0.0.1/a.png"}}]
        with pytest.raises(openai.BadRequestError, match="downloads nothing"):
            client.chat.completions.create(
                model="vision", messages=[{"role": "user", "content": remote}]
            )


def test_openai_creates_streams_and_parses_responses(served_gateway: ServedGateway) -> None:
    known = served_gateway.expected["text"]
    (tool,) = known["tools"]
    asked: dict[str, Any] = {
        "model": "text", "input": known["messages"], "temperature": 0,
        "tools": [{"type": "function", **tool["function"]}],
    }  # fmt: skip
    events: TypeAdapter[ResponseStreamEvent] = TypeAdapter(ResponseStreamEvent)
    with served_gateway.client() as client:
        whole = client.responses.create(**asked)
        # The client does not validate what it reads.
        Response.model_validate(whole.to_dict())
        call = whole.output[-1]
        assert call.type == "function_call"
        assert (whole.model, whole.output_text) == ("text", known["answer"].partition("\n")[0])
        assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "西宁"})

        raw = list(client.responses.create(**asked, stream=True))
        for number, event in enumerate(raw):
            assert events.validate_python(event.to_dict()).sequence_number == number
        assert (raw[0].type, raw[-1].type) == ("response.created", "response.completed")
        with client.responses.stream(**asked) as stream:
            streamed = stream.get_final_response()
        assert streamed.output_text == whole.output_text
        assert streamed.usage == whole.usage
        (arguments,) = [item.arguments for item in streamed.output if item.type == "function_call"]
        assert arguments == call.arguments

        # The same conversation as a chat has the same answer and the same tokens.
        result = {"type": "function_call_output", "call_id": call.call_id, "output": "sunny"}
        conversation = [*known["messages"], *(item.to_dict() for item in whole.output), result]
        after = client.responses.create(
            **asked | {"input": conversation, "max_output_tokens": 4}, store=True
        )
        function = {"name": call.name, "arguments": call.arguments}
        calls = [{"id": call.call_id, "type": "function", "function": function}]
        messages: list[Any] = [
            *known["messages"],
            {"role": "assistant", "content": whole.output_text, "tool_calls": calls},
            {"role": "tool", "tool_call_id": call.call_id, "content": "sunny"},
        ]
        chat = client.chat.completions.create(
            model="text", messages=messages, tools=known["tools"], temperature=0, max_tokens=4
        )
        assert after.output_text == chat.choices[0].message.content
        assert (after.usage, chat.usage) != (None, None)
        assert after.usage is not None
        assert chat.usage is not None
        assert after.usage.input_tokens == chat.usage.prompt_tokens
        assert after.usage.output_tokens == 4
        assert (after.status, after.to_dict()["store"]) == ("incomplete", False)

        parsed = client.responses.parse(
            model="text", input="an order", text_format=Order, temperature=1.5
        )
        assert isinstance(parsed.output_parsed, Order)
        with client.responses.stream(model="text", input="an order", text_format=Order) as stream:
            assert isinstance(stream.get_final_response().output_parsed, Order)
        forced = client.responses.create(
            model="text", input="hello", tools=asked["tools"], temperature=1.5,
            tool_choice={"type": "function", "name": "get_weather"},
        )  # fmt: skip
        assert [item.type for item in forced.output] == ["function_call"]

        refused: tuple[tuple[dict[str, Any], str], ...] = (
            ({"tools": [{"type": "web_search"}]}, "tools[0]"),
            ({"previous_response_id": whole.id}, "previous_response_id"),
            ({"background": True}, "background"),
        )
        for fields, param in refused:
            with pytest.raises(openai.BadRequestError) as error:
                client.responses.create(model="text", input="hello", **fields)
            assert (error.value.param, error.value.code) == (param, "unsupported_parameter")

        seen = served_gateway.expected["vision"]
        for colour, url in seen["images"].items():
            # As the model learnt it: first the image.
            parts: list[Any] = [
                {"type": "input_image", "image_url": url, "detail": "auto"},
                {"type": "input_text", "text": seen["question"]},
            ]
            answer = client.responses.create(
                model="vision",
                input=[{"role": "user", "content": parts}],
                temperature=0,
                max_output_tokens=8,
            )
            assert answer.output_text == colour


def test_openai_asynchronously(served_gateway: ServedGateway) -> None:
    asked: dict[str, Any] = {
        "model": "text",
        "messages": [{"role": "user", "content": "你好"}],
        "temperature": 0,
        "max_tokens": 8,
    }

    async def chat() -> tuple[list[str], str]:
        async with openai.AsyncOpenAI(
            base_url=f"{served_gateway.process.url}/v1",
            api_key=SECRET,
            max_retries=0,
            timeout=LIMIT_SECONDS,
        ) as client:
            # One may wait at the server while another is computed.
            answers = await asyncio.gather(
                *(client.chat.completions.create(**asked) for _ in range(2))
            )
            stream = await client.chat.completions.create(**asked, stream=True)
            parts = [chunk.choices[0].delta.content or "" async for chunk in stream]
        return [answer.choices[0].message.content or "" for answer in answers], "".join(parts)

    whole, streamed = asyncio.run(chat())
    assert whole == [streamed, streamed]


@pytest.mark.filterwarnings("ignore:deprecated:DeprecationWarning")
def test_openai_over_the_other_operations(served_gateway: ServedGateway) -> None:
    known = served_gateway.expected
    with served_gateway.client() as client:
        vectors = client.embeddings.create(model="embedding", input=known["embedding"]["texts"])
        found = [each.embedding for each in vectors.data]
        np.testing.assert_allclose(found, known["embedding"]["vectors"], atol=1e-6)

        ranking = client.post(
            "/rerank",
            body={
                "model": "reranking",
                **{k: known["reranking"][k] for k in ("query", "documents")},
            },
            cast_to=dict[str, Any],
        )
        assert [each["index"] for each in ranking["results"]] == known["reranking"]["order"]

        pictures = client.images.generate(
            model="images", prompt=known["images"]["prompt"], size="32x48", extra_body={"seed": 5}
        )
        (picture,) = pictures.data or []
        served_gateway.assert_known_image(base64.b64decode(picture.b64_json or ""))

        tone = served_gateway.tone
        text = client.audio.transcriptions.create(model="transcription", file=tone, language="en")
        assert text.text == known["transcription"]["text"]
        verbose = client.audio.transcriptions.create(
            model="transcription", file=tone, response_format="verbose_json"
        )
        assert verbose.duration == 2.0
        assert client.audio.translations.create(model="any", file=tone).text == "hello"
        speech = client.audio.speech.create(model="any", voice="alloy", input="hello")
        assert speech.read() == SOUND
        streamed = client.audio.speech.create(
            model="any", voice="alloy", input="hello", stream_format="sse"
        )
        assert b"event: speech.audio.done" in streamed.read()
        assert client.responses.create(model="any", input="hi").output_text == "hello"
        with client.responses.stream(model="any", input="hi") as stream:
            assert stream.get_final_response().output_text == "hello"

    # Of chat and completions are other tests. This client has no messages, and videos as jobs only.
    elsewhere = {"chat", "completions", "messages", "count_tokens", "videos"}
    called = set(RouteOperation) - elsewhere
    wait_until(
        lambda: {record["operation"] for record in served_gateway.control.records} >= called,
        seconds=LIMIT_SECONDS,
        what="the usage of every operation",
    )


def test_langchain(
    served_gateway: ServedGateway, clients: ClientEnvironment, tmp_path: Path
) -> None:
    clients.run_suite("langchain_suite.py", variables=served_gateway.describe(tmp_path))


def test_litellm(served_gateway: ServedGateway, clients: ClientEnvironment, tmp_path: Path) -> None:
    clients.run_suite("litellm_suite.py", variables=served_gateway.describe(tmp_path))
    served_gateway.assert_known_image((tmp_path / "image.png").read_bytes())


def test_anthropic(
    served_gateway: ServedGateway, clients: ClientEnvironment, tmp_path: Path
) -> None:
    clients.run_suite("anthropic_suite.py", variables=served_gateway.describe(tmp_path))


def test_openai_for_node(
    served_gateway: ServedGateway, clients: ClientEnvironment, tmp_path: Path
) -> None:
    clients.run_suite("node_suite.mjs", variables=served_gateway.describe(tmp_path))
    served_gateway.assert_known_image((tmp_path / "image.png").read_bytes())
