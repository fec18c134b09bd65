"""The official ``anthropic`` client: messages and the count of their tokens, in an engine that has them."""

from __future__ import annotations

import anthropic
import pytest
from anthropic.types import MessageParam, ToolParam

from tests.clients.suites.gateway_connection import ANY, KEY, TEXT, URL, WITHIN

HELLO: list[MessageParam] = [{"role": "user", "content": "hi"}]


def client(key: str = KEY) -> anthropic.Anthropic:
    return anthropic.Anthropic(base_url=URL, api_key=key, timeout=WITHIN, max_retries=0)


def test_messages_and_their_stream() -> None:
    with client() as messages:
        answer = messages.messages.create(model=ANY, max_tokens=16, messages=HELLO)
        assert (answer.model, answer.stop_reason) == (ANY, "end_turn")
        assert [each.text for each in answer.content if each.type == "text"] == ["hello"]
        with messages.messages.stream(model=ANY, max_tokens=16, messages=HELLO) as stream:
            assert "".join(stream.text_stream) == "hello"
            final = stream.get_final_message()
        assert (final.model, final.usage.input_tokens, final.usage.output_tokens) == (ANY, 9, 4)


def test_count_of_tokens() -> None:
    with client() as messages:
        tool: ToolParam = {"name": "get_weather", "input_schema": {"type": "object"}}
        counted = messages.messages.count_tokens(
            model=ANY, messages=HELLO, system="brief", tools=[tool]
        )
        assert counted.input_tokens == 9
        with pytest.raises(anthropic.BadRequestError, match="does not support count_tokens"):
            messages.messages.count_tokens(model=TEXT, messages=HELLO)


def test_errors() -> None:
    with client("sk-wrong") as stranger, pytest.raises(anthropic.AuthenticationError):
        stranger.messages.create(model=ANY, max_tokens=16, messages=HELLO)
    with client() as messages:
        with pytest.raises(anthropic.NotFoundError):
            messages.messages.create(model="absent", max_tokens=16, messages=HELLO)
        with pytest.raises(anthropic.BadRequestError, match="does not support messages"):
            messages.messages.create(model=TEXT, max_tokens=16, messages=HELLO)
