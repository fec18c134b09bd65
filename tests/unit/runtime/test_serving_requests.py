"""What a request asks for, or which field is wrong."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from openai.types import (
    completion_create_params as completion_parameters,
)
from openai.types import embedding_create_params, image_generate_params
from openai.types.audio import transcription_create_params
from openai.types.chat import completion_create_params as chat_parameters
from openai.types.responses import response_create_params as response_parameters

from ninefold_runtime.serving import (
    embeddings,
    generation_requests,
    image_inputs,
    images,
    reranking,
    responses,
    transcriptions,
)
from ninefold_runtime.serving.request_fields import RequestRejected
from ninefold_runtime.serving.tool_calls import ToolChoice

#: JSON that no parser with recursion reads.
DEEP = '{"x":' + "[" * 100_000 + "]" * 100_000 + "}"
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


def test_images_of_the_user_are_data_urls_of_bounded_size() -> None:
    def image(url: Any, **fields: Any) -> dict[str, Any]:
        return {"type": "image_url", "image_url": {"url": url, **fields}}

    def chat(*parts: Any, role: str = "user") -> generation_requests.TextRequest:
        return _chat(messages=[{"role": role, "content": list(parts)}])

    text = {"type": "text", "text": "a"}
    pixels = base64.b64encode(b"pixels").decode()
    request = chat(text, image(f"data:image/PNG;base64,{pixels}", detail="low"))
    assert request.messages == ({"role": "user", "content": [text, {"type": "image"}]},)
    (found,) = request.images
    assert (found.format, found.content) == ("png", b"pixels")
    largest = base64.b64encode(bytes(image_inputs.LARGEST_IMAGE)).decode()
    assert len(chat(image(f"data:image/webp;base64,{largest}")).images) == 1
    good = image(f"data:image/png;base64,{pixels}")
    at = "messages[0].content[0].image_url"
    wrong: dict[str, tuple[list[Any], str]] = {
        "remote": ([image("https://example.com/a.png")], f"{at}.url"),
        "svg": ([image("data:image/svg+xml;base64,AAAA")], f"{at}.url"),
        "not base64": ([image("data:image/png;base64,????")], f"{at}.url"),
        "large": ([image(f"data:image/png;base64,{largest}AAAA")], f"{at}.url"),
        "no text": ([image(None)], at),
        "text": ([{"type": "image_url", "image_url": "data:"}], at),
        "detail": ([image("data:", detail="ultra")], f"{at}.detail"),
        "many": ([good] * (image_inputs.MOST_IMAGES + 1), "messages"),
        "sound": ([{"type": "input_audio"}], "messages[0].content[0]"),
    }
    for name, (parts, param) in wrong.items():
        with pytest.raises(RequestRejected) as refused:
            chat(*parts)
        assert refused.value.param == param, name
        assert refused.value.status == (413 if name == "large" else 400)
    with pytest.raises(RequestRejected, match="images of the user"):
        chat(good, role="system")


def test_values_that_ask_for_nothing_are_accepted() -> None:
    _chat(n=1, logprobs=False, tools=[], frequency_penalty=0, response_format={"type": "text"})


def test_fields_that_official_clients_send_for_the_provider_are_ignored() -> None:
    request = _chat(
        metadata={"run": "7"},
        store=True,
        user="u",
        reasoning_effort="low",
        service_tier="flex",
        parallel_tool_calls=False,
        prompt_cache_key="k",
        prompt_cache_options={"mode": "explicit", "ttl": "30m"},
        moderation={"model": "m", "policy": {"input": {"mode": "score"}, "output": None}},
    )
    assert request == _chat()


#: Parameters of the official client that are refused whatever their value, because the response would not be what
#: they ask for.
REFUSED_PARAMETERS: Mapping[Any, tuple[Callable[[dict[str, Any]], object], set[str]]] = {
    chat_parameters.CompletionCreateParamsBase: (
        lambda fields: generation_requests.parse_chat_request(json.dumps(fields).encode()),
        {"audio", "web_search_options"},
    ),
    completion_parameters.CompletionCreateParamsBase: (
        lambda fields: generation_requests.parse_completion_request(json.dumps(fields).encode()),
        set(),
    ),
    # Those that need something stored are refused with the reason; so is a wrong value of each of the others.
    response_parameters.ResponseCreateParamsBase: (
        lambda fields: responses.parse_response_request(json.dumps(fields).encode()),
        set(),
    ),
    embedding_create_params.EmbeddingCreateParams: (
        lambda fields: embeddings.parse_embedding_request(json.dumps(fields).encode()),
        set(),
    ),
    image_generate_params.ImageGenerateParamsBase: (
        lambda fields: images.parse_image_request(json.dumps(fields).encode()),
        {"complexity", "frame_count", "frame_duration_ms", "svg"},
    ),
    transcription_create_params.TranscriptionCreateParamsBase: (
        lambda fields: transcriptions.parse_transcription_request(fields, b"RIFF"),
        {
            "include[]",
            "keywords[]",
            "known_speaker_names[]",
            "known_speaker_references[]",
            "languages[]",
        },
    ),
}


def test_every_parameter_of_the_official_client_is_supported_ignored_or_refused_on_purpose() -> (
    None
):
    """A parameter that a new version of the client brings is decided on before it is used."""
    for parameters, (parse, refused_parameters) in REFUSED_PARAMETERS.items():
        refused = set()
        for name in parameters.__annotations__:
            is_list = f"{name}[]" in refused_parameters or name == "timestamp_granularities"
            field = f"{name}[]" if is_list else name
            try:
                parse({field: "a value of no field"})
            except RequestRejected as error:
                # One that is refused for its value names the value.
                if f"the field {field!r} is not supported" in str(error):
                    refused.add(field)
        # The file of a form is not among its fields.
        assert refused - {"file"} == refused_parameters, parameters


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("frequency_penalty", 0.5),
        ("logit_bias", {"5": 1}),
        ("modalities", ["audio"]),
        ("best_guess", 1),
        ("moderation", {"model": "m", "policy": {"output": {"mode": "block"}}}),
        ("moderation", {"model": "m", "policy": "block"}),
        ("moderation", "auto"),
    ],
)
def test_a_field_that_is_not_supported_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        _chat(**{field: value})
    assert refused.value.status == 400
    assert refused.value.param == field
    assert refused.value.code == "unsupported_parameter"
    assert field in str(refused.value)


def test_a_value_that_is_not_supported_is_refused_with_those_that_are() -> None:
    with pytest.raises(RequestRejected, match='send "none" or "auto"'):
        _chat(function_call={"name": "f"})


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.5),
        ("temperature", "hot"),
        ("top_p", 1.5),
        ("max_tokens", 0),
        ("max_completion_tokens", 0),
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
        ("n", 0),
        ("top_logprobs", 3),
        ("response_format", {"type": "json_schema"}),
        ("response_format", {"type": "yaml"}),
        ("tool_choice", "required"),
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
        ({"role": "robot", "content": "x"}, "messages[0].role"),
        ({"role": "user", "content": 5}, "messages[0].content"),
        ({"role": "user", "content": [{"type": "image_url"}]}, "messages[0].content[0].image_url"),
        ({"role": "assistant", "content": "x", "tool_calls": [1]}, "messages[0].tool_calls[0]"),
        ("hello", "messages[0]"),
        *(
            ({"role": "assistant", "tool_calls": [call]}, "messages[0].tool_calls[0]")
            for call in (
                {"function": {"name": "f", "arguments": DEEP}},
                {"function": {"name": "f", "arguments": '{"x":"\\ud800"}'}},
                {"function": {"name": "f", "arguments": "[1]"}},
                {"function": {"name": "", "arguments": "{}"}},
                {"function": {"name": 5, "arguments": "{}"}},
                {"id": {}, "function": {"name": "f", "arguments": "{}"}},
            )
        ),
        ({"role": "tool", "content": "x", "tool_call_id": 5}, "messages[0].tool_call_id"),
    ],
)
def test_a_wrong_message_is_refused_by_its_place(message: Any, param: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        _chat(messages=[message])
    assert refused.value.param == param


@pytest.mark.parametrize("body", [b"{", b"[]", b"\xff", b'"x"', DEEP.encode(), b'{"x":"\\ud800"}'])
def test_a_body_that_is_no_object_is_refused(body: bytes) -> None:
    with pytest.raises(RequestRejected):
        generation_requests.parse_chat_request(body)


def test_a_completion_takes_prompts_and_sixteen_tokens() -> None:
    request = generation_requests.parse_completion_request(
        b'{"model": "m", "prompt": ["abc"], "stop": "x"}'
    )
    assert request.prompts == ("abc",)
    assert request.sampling.max_tokens == 16
    assert request.sampling.stops == ("x",)


@pytest.mark.parametrize("prompt", ["", [], [""], [1, "b"], [[]], [True], None])
def test_any_other_prompt_is_refused(prompt: Any) -> None:
    with pytest.raises(RequestRejected) as refused:
        generation_requests.parse_completion_request(
            json.dumps({"model": "m", "prompt": prompt}).encode()
        )
    assert refused.value.param == "prompt"


WEATHER = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "parameters": {
            "type": "object",
            "properties": {"city": {"$ref": "#/$defs/city"}},
            "required": ["city"],
            "$defs": {"city": {"type": "string"}},
        },
    },
}
CLOCK = {"type": "function", "function": {"name": "get_time"}}


def test_a_forced_call_is_constrained_and_read_back() -> None:
    required = _chat(tools=[WEATHER, CLOCK], tool_choice="required")
    assert required.tools is not None
    assert required.grammar is not None
    assert 'call_0: "{\\"name\\":\\"get_weather\\",' in required.grammar
    calls = required.tools.parse_forced(
        '[{"name":"get_weather","arguments":{"city":"西宁"}},{"name":"get_time","arguments":{}}]'
    )
    assert [(call.name, call.arguments) for call in calls] == [
        ("get_weather", '{"city": "西宁"}'),
        ("get_time", "{}"),
    ]
    # An answer that was cut off has no call.
    assert required.tools.parse_forced('[{"name":"get_weat') == ()

    named = _chat(
        tools=[WEATHER, CLOCK],
        tool_choice={"type": "function", "function": {"name": "get_time"}},
    )
    assert named.tools is not None
    assert named.tools.choice is ToolChoice.NAMED
    assert [tool["function"]["name"] for tool in named.tools.definitions] == ["get_time"]
    # A named call that was cut off is known as such.
    for text, is_complete in (("{}", True), ('{"ci', False), ("", False)):
        (call,) = named.tools.parse_forced(text)
        assert (call.arguments, call.is_complete) == (text, is_complete)


def test_the_model_decides_unless_a_call_is_forced_or_forbidden() -> None:
    free = _chat(tools=[WEATHER])
    assert free.tools is not None
    assert free.tools.choice is ToolChoice.AUTO
    assert free.grammar is None
    assert _chat(tools=[WEATHER], tool_choice="none").tools is None


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"tools": 0}, "tools"),
        ({"tools": False}, "tools"),
        ({"tools": {}}, "tools"),
        ({"tools": [{"type": "function"}]}, "tools[0]"),
        ({"tools": [{"type": "function", "function": {}}]}, "tools[0].function.name"),
        (
            {"tools": [WEATHER], "tool_choice": {"type": "function", "function": {"name": "x"}}},
            "tool_choice",
        ),
        ({"tools": [WEATHER], "response_format": {"type": "json_object"}}, "response_format"),
    ],
)
def test_tools_that_cannot_be_used_are_refused(changes: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        _chat(**changes)
    assert refused.value.param == param


def test_past_calls_reach_the_template_as_objects() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get_time", "arguments": "{}"}}
    request = _chat(
        messages=[
            {"role": "user", "content": "when?"},
            {"role": "assistant", "content": None, "tool_calls": [call], "refusal": None},
            {"role": "tool", "content": "noon", "tool_call_id": "c"},
        ]
    )
    assert request.messages is not None
    assert request.messages[1]["content"] == ""
    assert request.messages[1]["tool_calls"][0]["function"]["arguments"] == {}
    assert request.messages[2] == {"role": "tool", "content": "noon", "tool_call_id": "c"}


def _response(**changes: Any) -> generation_requests.TextRequest:
    body = {"model": "m", "input": "hello"} | changes
    return responses.parse_response_request(json.dumps(body).encode())[0]


def test_a_response_is_requested_as_the_same_chat() -> None:
    function: Any = WEATHER["function"]
    flat = {"type": "function", "strict": True, **function}
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    image = "data:image/png;base64," + base64.b64encode(b"pixels").decode()
    equal: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({}, {}),
        (
            {"max_output_tokens": 5, "temperature": 0.5, "top_p": 0.9, "stream": True},
            {"max_tokens": 5, "temperature": 0.5, "top_p": 0.9, "stream": True},
        ),
        ({"top_logprobs": 2}, {"logprobs": True, "top_logprobs": 2}),
        ({"include": ["message.output_text.logprobs"]}, {"logprobs": True}),
        *(
            ({"tools": [flat], "tool_choice": choice}, {"tools": [WEATHER], "tool_choice": choice})
            for choice in ("auto", "required", "none")
        ),
        (
            {"tools": [flat], "tool_choice": {"type": "function", "name": "get_weather"}},
            {
                "tools": [WEATHER],
                "tool_choice": {"type": "function", "function": {"name": "get_weather"}},
            },
        ),
        (
            {"text": {"format": {"type": "json_schema", "name": "x", "schema": schema}}},
            {"response_format": {"type": "json_schema", "json_schema": {"schema": schema}}},
        ),
        (
            {"text": {"format": {"type": "json_object"}, "verbosity": "low"}},
            {"response_format": {"type": "json_object"}},
        ),
        ({"text": {"format": {"type": "text"}}}, {}),
        (
            {"instructions": "be brief"},
            {"messages": [{"role": "system", "content": "be brief"}, *CHAT["messages"]]},
        ),
        *(
            (
                {
                    "instructions": "be brief",
                    "input": [{"role": role, "content": "in French"}, *CHAT["messages"]],
                },
                {
                    "messages": [
                        {"role": "system", "content": "be brief\n\nin French"}, *CHAT["messages"],
                    ]
                },
            )
            for role in ("system", "developer")
        ),
        # Fields of the provider and values that ask for nothing.
        (
            {
                "metadata": {"run": "7"}, "store": True, "user": "u", "background": False,
                "reasoning": {"effort": "low"}, "truncation": "disabled", "service_tier": "flex",
                "include": ["reasoning.encrypted_content"], "max_tool_calls": 3,
                "previous_response_id": None, "stream_options": None,
            },
            {},
        ),
    ]  # fmt: skip
    for given, wanted in equal:
        chat = dataclasses.replace(
            _chat(**wanted), prompt_field="input", format_field="text.format"
        )
        assert _response(**given) == chat, given
    request = _response(
        input=[
            {"role": "developer", "content": "be brief"},
            {
                "type": "message",
                "role": "user",
                "content": [
                    {"type": "input_image", "image_url": image, "detail": "auto"},
                    {"type": "input_text", "text": "where?"},
                ],
            },
            {"type": "reasoning", "id": "rs", "summary": []},
            {
                "type": "message", "role": "assistant", "id": "msg", "status": "completed",
                "content": [{"type": "output_text", "text": "Looking.", "annotations": []}],
            },
            {"type": "function_call", "call_id": "a", "name": "f", "arguments": '{"x":1}'},
            {"type": "function_call", "call_id": "b", "name": "g", "arguments": ""},
            {"type": "function_call_output", "call_id": "a", "output": "1"},
            {
                "type": "function_call_output", "call_id": "b",
                "output": [{"type": "input_text", "text": "2"}],
            },
        ]
    )  # fmt: skip
    calls = [
        {"id": "a", "type": "function", "function": {"name": "f", "arguments": {"x": 1}}},
        {"id": "b", "type": "function", "function": {"name": "g", "arguments": {}}},
    ]
    assert request.messages == (
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "where?"}]},
        {"role": "assistant", "content": "Looking.", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2"},
    )
    assert [(each.content, each.at) for each in request.images] == [
        (b"pixels", "input[1].content[0].image_url")
    ]


def test_a_wrong_request_of_a_response_is_refused_by_its_place() -> None:
    call = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{"}
    url = {"type": "input_image", "image_url": "https://example.com/a.png"}
    user = [{"role": "user", "content": [url]}]
    wrong: list[tuple[dict[str, Any], str, str]] = [
        ({"previous_response_id": "resp_1"}, "previous_response_id", "stores nothing"),
        ({"conversation": "conv_1"}, "conversation", "stores nothing"),
        ({"background": True}, "background", "stores nothing"),
        ({"prompt": {"id": "p"}}, "prompt", "stores nothing"),
        ({"tools": 0}, "tools", "must be a list"),
        ({"tools": False}, "tools", "must be a list"),
        ({"tools": [{"type": "web_search"}]}, "tools[0]", "'web_search'; this server runs no"),
        ({"tools": [{"type": "function"}]}, "tools[0].name", "non-empty"),
        (
            {"tools": [{"type": "function", "name": "f", "parameters": 5}]},
            "tools[0].parameters",
            "JSON schema",
        ),
        ({"tool_choice": {"type": "mcp", "server_label": "s"}}, "tool_choice", "to choose from"),
        ({"tool_choice": "required"}, "tool_choice", "to choose from"),
        (
            {
                "tools": [{"type": "function", "name": "f"}],
                "tool_choice": {"type": "custom", "name": "f"},
            },
            "tool_choice",
            '"name": one of the tools}',
        ),
        (
            {
                "tools": [{"type": "function", "name": "f"}],
                "text": {"format": {"type": "json_object"}},
            },
            "text.format",
            "tools cannot be combined",
        ),
        ({"text": {"format": {"type": "yaml"}}}, "text.format", "text.format.type"),
        ({"metadata": {"run": 7}}, "metadata", "object of strings"),
        ({"metadata": ["run"]}, "metadata", "object of strings"),
        ({"reasoning": "low"}, "reasoning", "an object"),
        *(
            ({name: 5}, name, "a string")
            for name in ("prompt_cache_key", "safety_identifier", "user")
        ),
        ({"max_tool_calls": "2"}, "max_tool_calls", "whole number"),
        ({"parallel_tool_calls": "no"}, "parallel_tool_calls", "true or false"),
        ({"text": "short"}, "text", "an object"),
        ({"text": {"form": {}}}, "text", "format and verbosity only"),
        ({"input": [{"type": "reasoning", "summary": []}]}, "input", "at least one message"),
        ({"input": None}, "input", "non-empty"),
        ({"input": []}, "input", "non-empty"),
        ({"input": ["hello"]}, "input[0]", "'str'"),
        ({"input": [{"role": "robot", "content": "x"}]}, "input[0].role", "'robot'"),
        ({"input": [{"role": "user"}]}, "input[0].content", "string or a list"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0]", "'item_reference'"),
        *(
            ({"input": [call | changes]}, at, message)
            for changes, at, message in (
                ({}, "input[0]", "arguments in JSON"),
                ({"status": "incomplete"}, "input[0]", "incomplete call of a function"),
                ({"arguments": DEEP}, "input[0]", "nested too deeply"),
                ({"arguments": '{"x":"\\ud800"}'}, "input[0]", "without its pair"),
                ({"arguments": "5"}, "input[0]", "JSON object as arguments"),
                ({"arguments": {}}, "input[0]", "arguments in JSON"),
                ({"arguments": "{}", "name": {}}, "input[0]", "non-empty name"),
                ({"arguments": "{}", "call_id": None}, "input[0].call_id", "non-empty string"),
            )
        ),
        (
            {"input": [{"type": "function_call_output", "call_id": 5, "output": "x"}]},
            "input[0].call_id",
            "non-empty string",
        ),
        ({"input": user}, "input[0].content[0].image_url", "downloads nothing"),
        (
            {"input": [{"role": "user", "content": [{"type": "input_file", "file_id": "f"}]}]},
            "input[0].content[0]",
            "'input_file'",
        ),
        (
            {"input": [{"type": "function_call_output", "call_id": "a", "output": [url]}]},
            "input[0].output[0]",
            "images of the user",
        ),
        ({"instructions": ["x"]}, "instructions", "a string"),
        ({"truncation": "auto"}, "truncation", 'send "disabled"'),
        ({"max_output_tokens": 0}, "max_output_tokens", "from 1"),
        ({"temperature": 3}, "temperature", "from 0 to 2"),
        ({"include": "all"}, "include", "a list"),
        ({"messages": CHAT["messages"]}, "messages", "not supported"),
    ]
    for changes, param, message in wrong:
        with pytest.raises(RequestRejected) as refused:
            _response(**changes)
        assert (refused.value.param, refused.value.status) == (param, 400), changes
        assert message in str(refused.value)


def test_an_embedding_request_takes_texts_and_tokens() -> None:
    body = {"model": "m", "encoding_format": "base64", "dimensions": 8, "user": "u"}
    for given, read in (("a", ("a",)), (["a", "b"], ("a", "b")), ([1, 2], ((1, 2),))):
        request = embeddings.parse_embedding_request(json.dumps(body | {"input": given}).encode())
        assert request.inputs == read
    assert request.is_base64
    assert request.dimensions == 8
    assert embeddings.parse_embedding_request(b'{"model":"m","input":[[1],"b"]}').inputs == (
        (1,),
        "b",
    )


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"input": []}, "input"),
        ({"input": ["a", ""]}, "input"),
        ({"input": None}, "input"),
        ({"encoding_format": "int8"}, "encoding_format"),
        ({"dimensions": 0}, "dimensions"),
        ({"truncate": True}, "truncate"),
    ],
)
def test_a_wrong_embedding_request_is_refused(changes: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestRejected) as refused:
        embeddings.parse_embedding_request(
            json.dumps({"model": "m", "input": "a"} | changes).encode()
        )
    assert refused.value.param == param


def test_a_rerank_request_takes_texts_and_objects() -> None:
    request = reranking.parse_rerank_request(
        b'{"model":"m","query":"q","documents":["a",{"text":"b"}],"top_n":1}'
    )
    assert request.documents == ("a", "b")
    assert request.top_n == 1
    assert request.return_documents
    with pytest.raises(RequestRejected) as refused:
        reranking.parse_rerank_request(b'{"model":"m","query":"q","documents":["a",{"title":"b"}]}')
    assert refused.value.param == "documents[1]"


@pytest.mark.parametrize(
    ("form", "param"),
    [
        ({"language": ""}, None),
        ({"response_format": "verbose_json", "timestamp_granularities[]": "segment"}, None),
        ({"stream": "false", "user": "u"}, None),
        ({"response_format": "vtt"}, "response_format"),
        ({"timestamp_granularities[]": "word"}, "timestamp_granularities[]"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": "nan"}, "temperature"),
        ({"stream": "true"}, "stream"),
        ({"chunking_strategy": "auto"}, None),
        ({"chunking_strategy": "server_vad"}, "chunking_strategy"),
        # As official clients send an object.
        ({"chunking_strategy[type]": "server_vad"}, "chunking_strategy[type]"),
        ({"model": ""}, "model"),
    ],
)
def test_the_fields_of_a_transcription(form: dict[str, str], param: str | None) -> None:
    fields = {"model": "m"} | form
    if param is None:
        assert transcriptions.parse_transcription_request(fields, b"RIFF").language is None
        return
    with pytest.raises(RequestRejected) as refused:
        transcriptions.parse_transcription_request(fields, b"RIFF")
    assert refused.value.param == param


def test_a_transcription_needs_a_file_of_at_most_25_mebibytes() -> None:
    for audio, status in ((b"", 400), (b"x" * (25 * 2**20 + 1), 413)):
        with pytest.raises(RequestRejected) as refused:
            transcriptions.parse_transcription_request({"model": "m"}, audio)
        assert (refused.value.status, refused.value.param) == (status, "file")


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({}, None),
        ({"n": 2, "size": "512x768", "quality": "auto", "user": "u"}, None),
        ({"size": "auto", "output_format": "png", "background": None}, None),
        ({"quality": "low", "style": "vivid", "output_compression": 100}, None),
        ({"quality": "hd"}, "quality"),
        ({"size": "512"}, "size"),
        ({"size": "4096x4096"}, "size"),
        ({"size": "100x100"}, "size"),
        ({"n": 0}, "n"),
        ({"prompt": ""}, "prompt"),
        ({"seed": -1}, "seed"),
        ({"output_format": "webp"}, "output_format"),
        ({"style": "natural"}, "style"),
    ],
)
def test_the_fields_of_an_image(changes: dict[str, Any], param: str | None) -> None:
    body = json.dumps({"model": "m", "prompt": "a cube"} | changes).encode()
    if param is None:
        assert images.parse_image_request(body).count == changes.get("n", 1)
        return
    with pytest.raises(RequestRejected) as refused:
        images.parse_image_request(body)
    assert refused.value.param == param
