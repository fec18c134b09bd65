"""``litellm``: every operation that it has, as the provider ``openai``, ``hosted_vllm`` or ``anthropic``.

It has no call for ``translations``, and one for ``videos`` only as jobs, which the gateway does not serve.
"""

from __future__ import annotations

import asyncio
import base64
import json
import math
import os
from typing import Any

# Otherwise it downloads a list of prices at its import.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
import pytest

from tests.clients.suites.gateway_connection import (
    ANY,
    BASE_URL,
    EMBEDDING,
    EXPECTED,
    IMAGE,
    IMAGES,
    KEY,
    ORDER_SCHEMA,
    RERANKING,
    SOUND,
    TEXT,
    TONE,
    TRANSCRIPTION,
    URL,
    VISION,
    WITHIN,
    assert_order,
)

litellm.telemetry = False
litellm.suppress_debug_info = True

KNOWN = EXPECTED["text"]
HELLO = [{"role": "user", "content": "你好"}]


def of(route: str) -> dict[str, Any]:
    return {
        "model": f"openai/{route}",
        "api_base": BASE_URL,
        "api_key": KEY,
        "timeout": WITHIN,
        "max_retries": 0,
    }


def test_completion_and_stream() -> None:
    asked: dict[str, Any] = {**of(TEXT), "messages": HELLO, "temperature": 0, "max_tokens": 8}
    whole = litellm.completion(**asked)
    assert whole.usage.completion_tokens == 8
    chunks = list(litellm.completion(**asked, stream=True, stream_options={"include_usage": True}))
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == whole.choices[0].message.content
    assert chunks[-1].usage.completion_tokens == 8
    again = asyncio.run(litellm.acompletion(**asked))
    assert again.choices[0].message.content == text


def test_images_are_read() -> None:
    known = EXPECTED["vision"]
    for colour, url in known["images"].items():
        # As the model learnt it: first the image.
        parts = [
            {"type": "image_url", "image_url": {"url": url}},
            {"type": "text", "text": known["question"]},
        ]
        answer = litellm.completion(
            **of(VISION),
            messages=[{"role": "user", "content": parts}],
            temperature=0,
            max_tokens=8,
        )
        assert answer.choices[0].message.content == colour


def test_text_completion() -> None:
    answer = litellm.text_completion(**of(TEXT), prompt=KNOWN["prompt"], max_tokens=4)
    assert answer.usage.completion_tokens == 4
    assert isinstance(answer.choices[0].text, str)


def test_choices_a_stop_probabilities_and_the_prompt() -> None:
    several = litellm.completion(
        **of(TEXT), messages=HELLO, n=2, max_tokens=4, logprobs=True, top_logprobs=3
    )
    assert [choice.index for choice in several.choices] == [0, 1]
    for choice in several.choices:
        assert all(len(token.top_logprobs) == 3 for token in choice.logprobs.content)
    asked: dict[str, Any] = {**of(TEXT), "prompt": KNOWN["prompt"], "temperature": 0}
    whole = litellm.text_completion(**asked, max_tokens=8).choices[0].text
    (stopped,) = litellm.text_completion(**asked, max_tokens=8, stop=[whole[2:]]).choices
    assert (stopped.text, stopped.finish_reason) == (whole[: whole.index(whole[2:])], "stop")
    (echoed,) = litellm.text_completion(**asked, max_tokens=2, echo=True, logprobs=1).choices
    assert echoed.text.startswith(KNOWN["prompt"])
    scored = echoed.logprobs.token_logprobs[1:]
    assert len(scored) >= len(KNOWN["logprobs"])
    for one, wanted in zip(scored, KNOWN["logprobs"], strict=False):
        assert math.isclose(one, wanted, abs_tol=1e-4)


def test_a_tool_is_called_and_its_result_is_read() -> None:
    asked: dict[str, Any] = {**of(TEXT), "tools": KNOWN["tools"], "temperature": 0}
    message = litellm.completion(**asked, messages=KNOWN["messages"]).choices[0].message
    (call,) = message.tool_calls
    assert call.function.name == "get_weather"
    assert json.loads(call.function.arguments) == {"city": "西宁"}
    assert message.content == KNOWN["answer"].partition("\n")[0]
    chunks = list(litellm.completion(**asked, messages=KNOWN["messages"], stream=True))
    rebuilt: Any = litellm.stream_chunk_builder(chunks)
    (streamed,) = rebuilt.choices[0].message.tool_calls
    assert streamed.function.arguments == call.function.arguments
    result = {"role": "tool", "tool_call_id": call.id, "content": "sunny"}
    after = litellm.completion(
        **asked, messages=[*KNOWN["messages"], message, result], max_tokens=4
    )
    assert after.usage.prompt_tokens > 0


def test_choices_of_a_tool() -> None:
    asked: dict[str, Any] = {**of(TEXT), "messages": KNOWN["messages"], "tools": KNOWN["tools"]}
    named = {"type": "function", "function": {"name": "get_weather"}}
    for choice in ("auto", "required", named):
        # A list of calls has no end with this model.
        answer = litellm.completion(
            **asked, temperature=0, tool_choice=choice, parallel_tool_calls=False
        )
        (call,) = answer.choices[0].message.tool_calls
        assert call.function.name == "get_weather"
        assert json.loads(call.function.arguments).keys() == {"city"}
    answer = litellm.completion(**asked, temperature=0, tool_choice="none", max_tokens=4)
    assert not answer.choices[0].message.tool_calls


def test_structured_output() -> None:
    answer = litellm.completion(
        **of(TEXT),
        messages=HELLO,
        temperature=1.5,
        seed=2,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "order", "strict": True, "schema": ORDER_SCHEMA},
        },
    )
    assert_order(json.loads(answer.choices[0].message.content))


def test_embedding() -> None:
    known = EXPECTED["embedding"]
    answer = litellm.embedding(**of(EMBEDDING), input=known["texts"], encoding_format="float")
    for found, wanted in zip(answer.data, known["vectors"], strict=True):
        assert all(map(lambda a, b: math.isclose(a, b, abs_tol=1e-5), found["embedding"], wanted))


def test_rerank() -> None:
    known = EXPECTED["reranking"]
    answer = litellm.rerank(
        model=f"hosted_vllm/{RERANKING}",
        api_base=URL,
        api_key=KEY,
        query=known["query"],
        documents=known["documents"],
    )
    results: Any = answer.results
    assert [each["index"] for each in results] == known["order"]
    for each, score in zip(results, known["scores"], strict=True):
        assert math.isclose(each["relevance_score"], score, abs_tol=1e-5)


def test_image_generation() -> None:
    answer = litellm.image_generation(
        **of(IMAGES),
        prompt=EXPECTED["images"]["prompt"],
        n=2,
        size="32x48",
        extra_body={"seed": 5},
    )
    first, second = (base64.b64decode(each.b64_json) for each in answer.data)
    assert first != second
    IMAGE.write_bytes(first)


def test_transcription() -> None:
    with TONE.open("rb") as file:
        answer: Any = litellm.transcription(**of(TRANSCRIPTION), file=file, language="en")
    assert answer.text == EXPECTED["transcription"]["text"]
    with TONE.open("rb") as file:
        verbose: Any = litellm.transcription(
            **of(TRANSCRIPTION), file=file, response_format="verbose_json"
        )
    assert (verbose.text, verbose.duration) == (answer.text, 2.0)


def test_speech() -> None:
    answer: Any = litellm.speech(**of(ANY), input="hello", voice="alloy")
    assert answer.content == SOUND


def test_responses() -> None:
    (tool,) = KNOWN["tools"]
    asked: dict[str, Any] = {
        **of(TEXT),
        "input": KNOWN["messages"],
        "tools": [{"type": "function", **tool["function"]}],
        "temperature": 0,
    }
    answer: Any = litellm.responses(**asked)
    message, call = answer.output
    text = KNOWN["answer"].partition("\n")[0]
    assert message.content[0].text == text
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "西宁"})
    events = list(litellm.responses(**asked, stream=True))
    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == text
    assert events[-1].type == "response.completed"
    assert events[-1].response.usage.total_tokens == answer.usage.total_tokens


def test_messages_and_the_count_of_their_tokens() -> None:
    asked: dict[str, Any] = {
        "model": f"anthropic/{ANY}",
        "api_base": URL,
        "api_key": KEY,
        "messages": [{"role": "user", "content": "hi"}],
    }
    answer: Any = asyncio.run(litellm.anthropic.messages.acreate(**asked, max_tokens=16))
    assert [part["text"] for part in answer["content"]] == ["hello"]
    assert answer["usage"]["output_tokens"] == 4
    # Streams of the method above need the packages of litellm's proxy.
    chunks = list(litellm.completion(**asked, max_tokens=16, stream=True))
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == "hello"
    counted = asyncio.run(litellm.acount_tokens(**asked))
    # Otherwise it has estimated them itself.
    assert (counted.total_tokens, counted.tokenizer_type) == (9, "anthropic_api")


def test_errors() -> None:
    with pytest.raises(litellm.NotFoundError):
        litellm.completion(**of("absent"), messages=HELLO)
    with pytest.raises(litellm.AuthenticationError):
        litellm.completion(**of(TEXT) | {"api_key": "sk-wrong"}, messages=HELLO)
    with pytest.raises(litellm.BadRequestError):
        litellm.completion(**of(EMBEDDING), messages=HELLO)
