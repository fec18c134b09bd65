"""What a request asks for, or which field is wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ninefold_runtime.serving import generation_requests
from ninefold_runtime.serving.generation_requests import RequestRejected

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}


def _chat(**changes: Any) -> generation_requests.TextRequest:
    return generation_requests.parse_chat_request(json.dumps(CHAT | changes).encode())


def test_a_plain_chat_leaves_everything_else_to_the_model() -> None:
    request = _chat()
    assert request.messages == ({"role": "user", "content": "hello"},)
    assert not request.stream
    assert request.sampling.temperature is None
    assert request.sampling.max_tokens is None
    assert request.sampling.stops == ()


def test_the_newer_name_of_the_token_limit_wins() -> None:
    assert _chat(max_tokens=5, max_completion_tokens=7).sampling.max_tokens == 7


def test_text_parts_are_joined_and_a_developer_is_a_system() -> None:
    request = _chat(
        messages=[
            {"role": "developer", "content": "be brief"},
            {
                "role": "user",
                "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
            },
        ]
    )
    assert request.messages == (
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "ab"},
    )


def test_values_that_ask_for_nothing_are_accepted() -> None:
    _chat(n=1, logprobs=False, tools=[], frequency_penalty=0, response_format={"type": "text"})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("n", 2),
        ("logprobs", True),
        ("tools", [{"type": "function"}]),
        ("frequency_penalty", 0.5),
        ("logit_bias", {"5": 1}),
        ("response_format", {"type": "json_object"}),
        ("best_guess", 1),
    ],
)
def test_a_field_that_is_not_supported_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        _chat(**{field: value})
    assert refused.value.status == 400
    assert refused.value.param == field
    assert refused.value.code == "unsupported_parameter"
    assert field in str(refused.value)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.5),
        ("temperature", "hot"),
        ("top_p", 1.5),
        ("max_tokens", 0),
        ("max_tokens", 1.5),
        ("max_tokens", True),
        ("seed", "x"),
        ("stop", ["a", "b", "c", "d", "e"]),
        ("stop", [""]),
        ("stream", "yes"),
        ("messages", []),
        ("messages", "hello"),
        ("model", ""),
        ("stream_options", {"include_usage": True}),
    ],
)
def test_a_wrong_value_is_refused_by_the_name_of_its_field(field: str, value: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        _chat(**{field: value})
    assert refused.value.param == field
    assert refused.value.body()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    ("message", "param"),
    [
        ({"role": "tool", "content": "x"}, "messages[0].role"),
        ({"role": "user", "content": 5}, "messages[0].content"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages[0].content[0]"),
        ({"role": "assistant", "content": "x", "tool_calls": [1]}, "messages[0].tool_calls"),
        ("hello", "messages[0]"),
    ],
)
def test_a_wrong_message_is_refused_by_its_place(message: Any, param: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        _chat(messages=[message])
    assert refused.value.param == param


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b'"x"'])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestRejected):
        generation_requests.parse_chat_request(body)


def test_a_completion_takes_one_prompt_and_sixteen_tokens() -> None:
    request = generation_requests.parse_completion_request(
        b'{"model": "m", "prompt": ["abc"], "stop": "x"}'
    )
    assert request.prompt == "abc"
    assert request.sampling.max_tokens == 16
    assert request.sampling.stops == ("x",)


@pytest.mark.parametrize("prompt", ["", [], ["a", "b"], [1, 2], None])
def test_any_other_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(RequestRejected, match="one non-empty string"):
        generation_requests.parse_completion_request(
            json.dumps({"model": "m", "prompt": prompt}).encode()
        )
