"""LangChain (``langchain-openai``): chat, tools, images, structured output, completions, embeddings, responses.

Its official packages have no call for the other operations: ``langchain-openai`` has models of chat, of
completions and of embeddings. Generated images are a tool there, which the server of ``responses`` runs itself.
"""

from __future__ import annotations

import asyncio
import math
from typing import Any, Literal

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI, OpenAI, OpenAIEmbeddings
from pydantic import BaseModel, ConfigDict, Field, SecretStr

from tests.clients.suites.gateway_connection import (
    BASE_URL,
    EMBEDDING,
    EXPECTED,
    KEY,
    ORDER_SCHEMA,
    TEXT,
    VISION,
    WITHIN,
    assert_order,
)

KNOWN = EXPECTED["text"]
QUESTION = [HumanMessage(KNOWN["messages"][0]["content"])]


class Order(BaseModel):
    """An order."""

    # Otherwise the schema of a tool allows more properties, of which a model with random weights makes use.
    model_config = ConfigDict(extra="forbid")

    level: Literal["low", "high"]
    count: int = Field(ge=0, le=99)


def chat(**fields: Any) -> ChatOpenAI:
    return ChatOpenAI(
        **{
            "model": TEXT,
            "base_url": BASE_URL,
            "api_key": SecretStr(KEY),
            "timeout": WITHIN,
            "max_retries": 0,
            **fields,
        }
    )


def test_messages_streams_and_batches() -> None:
    model = chat(temperature=0, max_tokens=8)
    whole = model.invoke("你好")
    assert whole.response_metadata["model_name"] == TEXT
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["output_tokens"] == 8
    chunks = list(chat(temperature=0, max_tokens=8, stream_usage=True).stream("你好"))
    assert "".join(str(chunk.content) for chunk in chunks) == whole.content
    counts = [chunk.usage_metadata["output_tokens"] for chunk in chunks if chunk.usage_metadata]
    assert sum(counts) == 8

    async def together() -> list[AIMessage]:
        return list(await asyncio.gather(model.ainvoke("你好"), model.ainvoke("你好")))

    assert [each.content for each in asyncio.run(together())] == [whole.content] * 2
    scored = chat(max_tokens=2, logprobs=True, top_logprobs=2).invoke("你好")
    assert len(scored.response_metadata["logprobs"]["content"]) == 2
    several = chat(max_tokens=4, n=2).generate([[HumanMessage("你好")]])
    assert len(several.generations[0]) == 2
    end = str(whole.content)[2:]
    stopped = chat(temperature=0, max_tokens=8, stop_sequences=[end]).invoke("你好")
    assert stopped.content == str(whole.content)[: str(whole.content).index(end)]


def test_a_tool_is_called_and_its_result_is_read() -> None:
    model = chat(temperature=0).bind_tools(KNOWN["tools"])
    called = model.invoke(QUESTION)
    (call,) = called.tool_calls
    assert (call["name"], call["args"]) == ("get_weather", {"city": "西宁"})
    assert called.content == KNOWN["answer"].partition("\n")[0]
    streamed: Any = None
    for chunk in model.stream(QUESTION):
        streamed = chunk if streamed is None else streamed + chunk
    assert [(each["name"], each["args"]) for each in streamed.tool_calls] == [
        (call["name"], call["args"])
    ]
    conversation = [*QUESTION, called, ToolMessage("sunny", tool_call_id=call["id"])]
    answer = chat(temperature=0, max_tokens=4).bind_tools(KNOWN["tools"]).invoke(conversation)
    assert answer.usage_metadata is not None
    assert answer.usage_metadata["input_tokens"] > 0


def test_images_are_read() -> None:
    known = EXPECTED["vision"]
    model = chat(model=VISION, temperature=0, max_tokens=8)
    for colour, url in known["images"].items():
        # As the model learnt it: first the image.
        image = {"type": "image", "base64": url.partition(",")[2], "mime_type": "image/png"}
        question = HumanMessage([image, {"type": "text", "text": known["question"]}])
        assert model.invoke([question]).content == colour


def test_completions() -> None:
    model = OpenAI(
        model=TEXT,
        base_url=BASE_URL,
        api_key=SecretStr(KEY),
        timeout=WITHIN,
        max_retries=0,
        temperature=0,
        max_tokens=4,
        n=2,
        best_of=2,
        logprobs=1,
        model_kwargs={"echo": True},
    )
    prompt = KNOWN["prompt"]
    with pytest.raises(openai.BadRequestError, match="best_of"):
        model.generate([prompt])
    model.best_of = 1
    (found,) = model.generate([prompt], stop=["unused"]).generations
    assert len(found) == 2
    for each in found:
        assert each.text.startswith(prompt)
        scored = (each.generation_info or {})["logprobs"]["token_logprobs"][1:]
        for one, wanted in zip(scored, KNOWN["logprobs"], strict=False):
            assert math.isclose(one, wanted, abs_tol=1e-4)
    assert "".join(OpenAI.stream(model.model_copy(update={"n": 1}), prompt)).startswith(prompt)


@pytest.mark.parametrize("choice", ["auto", "any", "required", "get_weather", True])
def test_choices_of_a_tool(choice: str | bool) -> None:
    # A list of calls has no end with this model.
    model = chat(temperature=0).bind_tools(
        KNOWN["tools"], tool_choice=choice, parallel_tool_calls=False
    )
    (call,) = model.invoke(QUESTION).tool_calls
    assert (call["name"], call["args"].keys()) == ("get_weather", {"city"})


def test_no_tool_is_called_where_none_may_be() -> None:
    model = chat(temperature=0, max_tokens=4).bind_tools(KNOWN["tools"], tool_choice="none")
    assert model.invoke(QUESTION).tool_calls == []


def test_a_forced_tool_of_a_function() -> None:
    def place_order(level: Literal["low", "high"], urgent: bool) -> str:
        """Place an order."""
        return f"{level} {urgent}"

    order = tool(place_order)
    called = chat(seed=1).bind_tools([order], tool_choice="place_order").invoke("hello")
    (call,) = called.tool_calls
    assert order.invoke(call["args"]).split()[0] in ("low", "high")


@pytest.mark.parametrize("method", ["json_schema", "function_calling"])
def test_structured_output(method: Literal["json_schema", "function_calling"]) -> None:
    parsed = chat(temperature=1.5, seed=3).with_structured_output(Order, method=method)
    answer = parsed.invoke("an order")
    assert isinstance(answer, Order)
    of_schema = chat(temperature=1.5, seed=4).with_structured_output(
        {"title": "order", "description": "An order.", **ORDER_SCHEMA}, method=method
    )
    assert_order(of_schema.invoke("an order"))


def test_embeddings() -> None:
    model = OpenAIEmbeddings(
        model=EMBEDDING,
        base_url=BASE_URL,
        api_key=SecretStr(KEY),
        # Otherwise it sends tokens of OpenAI's tokenizers, which it downloads.
        check_embedding_ctx_length=False,
    )
    known = EXPECTED["embedding"]
    found = [*model.embed_documents(known["texts"]), model.embed_query(known["texts"][0])]
    for one, wanted in zip(found, [*known["vectors"], known["vectors"][0]], strict=True):
        assert all(map(lambda a, b: math.isclose(a, b, abs_tol=1e-5), one, wanted))


def test_responses() -> None:
    model = chat(temperature=0, use_responses_api=True)
    with_tools = model.bind_tools(KNOWN["tools"])
    called = with_tools.invoke(QUESTION)
    (call,) = called.tool_calls
    assert called.text == KNOWN["answer"].partition("\n")[0]
    assert (call["name"], call["args"]) == ("get_weather", {"city": "西宁"})
    streamed: Any = None
    for chunk in with_tools.stream(QUESTION):
        streamed = chunk if streamed is None else streamed + chunk
    assert streamed.text == called.text
    assert [each["args"] for each in streamed.tool_calls] == [call["args"]]
    assert streamed.usage_metadata == called.usage_metadata
    # The same conversation as a chat has the same answer.
    conversation = [*QUESTION, called, ToolMessage("sunny", tool_call_id=call["id"])]
    answers = [
        chat(temperature=0, max_tokens=8, use_responses_api=of_responses)
        .bind_tools(KNOWN["tools"])
        .invoke(conversation)
        for of_responses in (True, False)
    ]
    assert answers[0].text == answers[1].text
    counts = [(each.usage_metadata or {}).get("input_tokens") for each in answers]
    assert counts[0] == counts[1]
    parsed = chat(temperature=1.5, use_responses_api=True).with_structured_output(Order)
    assert isinstance(parsed.invoke("an order"), Order)


def test_errors_are_those_of_the_official_client() -> None:
    with pytest.raises(openai.NotFoundError, match="does not exist"):
        chat(model="absent").invoke("hi")
    with pytest.raises(openai.AuthenticationError):
        chat(api_key=SecretStr("sk-wrong")).invoke("hi")
