"""What a request for text asks for, taken from its JSON, or the one thing that is wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ninefold_runtime.serving import image_inputs, request_fields
from ninefold_runtime.serving.image_inputs import ImageInput
from ninefold_runtime.serving.request_fields import (
    LARGEST_INTEGER,
    RequestRejected,
    parse_boolean,
    parse_integer,
    parse_number,
    parse_text,
    parse_texts_or_tokens,
)
from ninefold_runtime.serving.structured_output import parse_format
from ninefold_runtime.serving.tool_calls import ToolUse, parse_tool_use

#: A message as chat templates read it.
Message = dict[str, Any]
Prompt = str | tuple[int, ...]

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
}
_SHARED = frozenset(
    {
        "model",
        "stream",
        "stream_options",
        "temperature",
        "top_p",
        "max_tokens",
        "stop",
        "seed",
        "n",
        "logprobs",
    }
)
_CHAT = _SHARED | {
    "messages",
    "max_completion_tokens",
    "moderation",
    "top_logprobs",
    "response_format",
    "tools",
    "tool_choice",
    "parallel_tool_calls",
}
_COMPLETION = _SHARED | {"prompt", "echo"}
#: Values of unsupported fields that ask for nothing.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "best_of": (1,),
    "suffix": ("",),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
}
#: Types of content parts of a message, and what they are.
_CHAT_PARTS: Mapping[str, str] = {"text": "text", "image_url": "image"}
#: Fields of a message that templates do not need.
_IGNORED_IN_MESSAGES = frozenset({"name", "reasoning_content", "annotations"})
_MOST_STOPS = 4
_MOST_CHOICES = 128
_MOST_PROMPTS = 2048
MOST_ALTERNATIVES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingParameters:
    """How to choose tokens. None leaves it to the model's own generation settings."""

    temperature: float | None
    top_p: float | None
    seed: int | None
    #: None means as many as the context has room for.
    max_tokens: int | None
    stops: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TextRequest:
    """A chat or completions; exactly one of ``messages`` and ``prompts`` is given."""

    model: str
    messages: tuple[Message, ...] | None
    prompts: tuple[Prompt, ...] | None
    sampling: SamplingParameters
    #: Answers to each prompt.
    choices: int
    #: The number of alternatives whose log probabilities are returned beside each token's; None without any.
    logprobs: int | None
    #: Whether the answer begins with the prompt.
    echo: bool
    tools: ToolUse | None
    #: What the answer must match, in Lark's notation; None for anything.
    grammar: str | None
    stream: bool
    include_usage: bool
    #: In the order of their parts in ``messages``.
    images: tuple[ImageInput, ...] = ()
    #: Names of the fields of the prompt and of the form of the answer, for errors.
    prompt_field: str = "messages"
    format_field: str = "response_format"


def parse_chat_request(body: bytes) -> TextRequest:
    """:raises RequestRejected: naming the field that is wrong, missing or not supported."""
    fields = request_fields.parse_object(body)
    request_fields.check_fields(fields, supported=_CHAT, neutral=_NEUTRAL)
    check_moderation(fields)
    messages, images = _parse_messages(fields)
    return chat_request(
        fields,
        messages=messages,
        images=images,
        logprobs=_parse_chat_logprobs(fields),
        tools=parse_tool_use(fields),
        grammar=parse_format(
            fields.get("response_format"), param="response_format", schema_in="json_schema"
        ),
    )


def parse_completion_request(body: bytes) -> TextRequest:
    """:raises RequestRejected: naming the field that is wrong, missing or not supported."""
    fields = request_fields.parse_object(body)
    # Clients of chats send false where completions have a number.
    if fields.get("logprobs") is False:
        fields["logprobs"] = None
    request_fields.check_fields(fields, supported=_COMPLETION, neutral=_NEUTRAL)
    return _build_request(
        fields,
        messages=None,
        prompts=parse_texts_or_tokens(fields, "prompt", most=_MOST_PROMPTS),
        # OpenAI's default for this endpoint is 16 tokens.
        default_tokens=16,
        logprobs=parse_integer(fields, "logprobs", least=0, most=MOST_ALTERNATIVES),
        tools=None,
        grammar=None,
        prompt_field="prompt",
    )


def chat_request(
    fields: Mapping[str, Any],
    *,
    messages: tuple[Message, ...],
    images: tuple[ImageInput, ...],
    logprobs: int | None,
    tools: ToolUse | None,
    grammar: str | None,
    prompt_field: str = "messages",
    format_field: str = "response_format",
) -> TextRequest:
    """The request with the fields that chats and responses share.

    :param grammar: that of the format of the answer.
    :raises RequestRejected: naming the field that is wrong, or if the answer must be in a format and call a tool.
    """
    if tools is not None:
        if grammar is not None:
            raise RequestRejected(
                f"{format_field} and tools cannot be combined; set tool_choice to none or "
                f"{format_field} to text",
                param=format_field,
            )
        grammar = tools.grammar()
    return _build_request(
        fields,
        messages=messages,
        images=images,
        prompts=None,
        default_tokens=None,
        logprobs=logprobs,
        tools=tools,
        grammar=grammar,
        prompt_field=prompt_field,
        format_field=format_field,
    )


def _build_request(
    fields: Mapping[str, Any],
    *,
    messages: tuple[Message, ...] | None,
    prompts: tuple[Prompt, ...] | None,
    default_tokens: int | None,
    logprobs: int | None,
    tools: ToolUse | None,
    grammar: str | None,
    images: tuple[ImageInput, ...] = (),
    prompt_field: str,
    format_field: str = "",
) -> TextRequest:
    stream = parse_boolean(fields, "stream")
    options = fields.get("stream_options") or {}
    if not isinstance(options, dict) or set(options) - {"include_usage", "include_obfuscation"}:
        raise RequestRejected("stream_options may hold include_usage only", param="stream_options")
    if options and not stream:
        raise RequestRejected("stream_options needs stream to be true", param="stream_options")
    echo = parse_boolean(fields, "echo")
    limits = ("max_output_tokens", "max_completion_tokens")
    chosen = next((name for name in limits if fields.get(name) is not None), "max_tokens")
    limit = parse_integer(fields, chosen, least=0 if echo else 1)
    return TextRequest(
        model=parse_text(fields, "model"),
        messages=messages,
        prompts=prompts,
        sampling=SamplingParameters(
            temperature=parse_number(fields, "temperature", least=0, most=2),
            top_p=parse_number(fields, "top_p", least=0, most=1),
            seed=parse_integer(fields, "seed", least=-LARGEST_INTEGER),
            max_tokens=default_tokens if limit is None else limit,
            stops=_parse_stop_strings(fields),
        ),
        choices=parse_integer(fields, "n", least=1, most=_MOST_CHOICES) or 1,
        logprobs=logprobs,
        echo=echo,
        tools=tools,
        grammar=grammar,
        stream=stream,
        include_usage=parse_boolean(options, "include_usage"),
        images=images,
        prompt_field=prompt_field,
        format_field=format_field,
    )


def check_moderation(fields: Mapping[str, Any]) -> None:
    """Accept moderation that only scores, whose scores are left out. One that blocks is refused."""
    moderation = fields.get("moderation")
    policy = moderation.get("policy") if isinstance(moderation, dict) else moderation
    for side in policy.values() if isinstance(policy, dict) else (policy,):
        if side is not None and not (isinstance(side, dict) and side.get("mode") == "score"):
            raise RequestRejected(
                "moderation that blocks is not supported by this server, which moderates nothing; leave it "
                "out, or set the modes of its policy to score",
                param="moderation",
                code="unsupported_parameter",
            )


def _parse_chat_logprobs(fields: Mapping[str, Any]) -> int | None:
    alternatives = parse_integer(fields, "top_logprobs", least=0, most=MOST_ALTERNATIVES)
    if parse_boolean(fields, "logprobs"):
        return alternatives or 0
    if alternatives:
        raise RequestRejected("top_logprobs needs logprobs to be true", param="top_logprobs")
    return None


def _parse_stop_strings(fields: Mapping[str, Any]) -> tuple[str, ...]:
    value = fields.get("stop")
    stops = [] if value is None else [value] if isinstance(value, str) else value
    if (
        not isinstance(stops, list)
        or len(stops) > _MOST_STOPS
        or not all(isinstance(stop, str) and stop for stop in stops)
    ):
        raise RequestRejected(
            f"stop must be a non-empty string or up to {_MOST_STOPS} of them", param="stop"
        )
    return tuple(stops)


def _parse_messages(
    fields: Mapping[str, Any],
) -> tuple[tuple[Message, ...], tuple[ImageInput, ...]]:
    value = fields.get("messages")
    if not isinstance(value, list) or not value:
        raise RequestRejected("messages must be a non-empty list", param="messages")
    images: list[ImageInput] = []
    messages = tuple(
        _parse_message(each, at=f"messages[{index}]", images=images)
        for index, each in enumerate(value)
    )
    check_image_count(images, param="messages")
    return messages, tuple(images)


def check_image_count(images: Sequence[ImageInput], *, param: str) -> None:
    """:raises RequestRejected: if a conversation has more images than are read."""
    if len(images) > image_inputs.MOST_IMAGES:
        raise RequestRejected(
            f"{param} has {len(images)} images; at most {image_inputs.MOST_IMAGES} are read",
            param=param,
        )


def _parse_message(value: Any, *, at: str, images: list[ImageInput]) -> Message:
    if not isinstance(value, dict):
        raise RequestRejected(f"{at} must be an object", param=at)
    role = value.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise RequestRejected(
            f"{at}.role must be one of {', '.join(_ROLES)}, not {role!r}", param=f"{at}.role"
        )
    own = {"assistant": "tool_calls", "tool": "tool_call_id"}.get(role, "")
    known = {"role", "content", own} | _IGNORED_IN_MESSAGES
    if unknown := sorted(name for name in value if name not in known and value[name]):
        raise RequestRejected(
            f"{at}.{unknown[0]} is not supported by this server",
            param=f"{at}.{unknown[0]}",
            code="unsupported_parameter",
        )
    message: Message = {"role": _ROLES[role]}
    if own == "tool_calls" and value.get(own):
        message[own] = _parse_past_calls(value[own], at=f"{at}.{own}")
    elif value.get(own):
        if not isinstance(value[own], str):
            raise RequestRejected(f"{at}.{own} must be a string", param=f"{at}.{own}")
        message[own] = value[own]
    # An assistant that only called tools has no content.
    empty = value.get("content") is None and "tool_calls" in message
    content: str | list[dict[str, str]] = ""
    if not empty:
        content = parse_content(
            value.get("content"), at=f"{at}.content", images=images if role == "user" else None
        )
    return message | {"content": content}


def _parse_past_calls(value: Any, *, at: str) -> list[dict[str, Any]]:
    if not isinstance(value, list):
        raise RequestRejected(f"{at} must be a list of tool calls", param=at)
    calls = []
    for index, call in enumerate(value):
        function, call_id = None, None
        if isinstance(call, dict):
            function, call_id = call.get("function"), call.get("id")
        calls.append(parse_past_call(function, call_id=call_id, at=f"{at}[{index}]"))
    return calls


def parse_past_call(function: Any, *, call_id: Any, at: str) -> dict[str, Any]:
    """A call of the conversation, as chat templates read it: they write the arguments as JSON themselves.

    :raises RequestRejected: if it has no name, arguments that are no JSON object, or an id that is no text.
    """
    name = function.get("name") if isinstance(function, dict) else None
    if not isinstance(name, str) or not name:
        raise RequestRejected(f"{at} must have a function with a non-empty name", param=at)
    text = function.get("arguments")
    try:
        arguments = {} if text in (None, "") else request_fields.parse_json(text)
    except (TypeError, ValueError) as error:
        raise RequestRejected(f"{at} must have arguments in JSON: {error}", param=at) from error
    if not isinstance(arguments, dict):
        raise RequestRejected(f"{at} must have a JSON object as arguments", param=at)
    if not isinstance(call_id, str | None):
        raise RequestRejected(f"the id of {at} must be a string", param=at)
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def parse_content(
    value: Any,
    *,
    at: str,
    images: list[ImageInput] | None,
    part_types: Mapping[str, str] = _CHAT_PARTS,
) -> str | list[dict[str, str]]:
    """A text; with images a list of parts, as chat templates of vision-language models read it.

    :param images: to which the images are added; None where none are read.
    :param part_types: types of parts, and whether they are ``text`` or an ``image``.
    :raises RequestRejected: naming the part that is not read.
    """
    if isinstance(value, str):
        return value
    if not isinstance(value, list) or not value:
        raise RequestRejected(f"{at} must be a string or a list of parts", param=at)
    parts = [
        _parse_content_part(part, at=f"{at}[{index}]", images=images, part_types=part_types)
        for index, part in enumerate(value)
    ]
    if any(part["type"] == "image" for part in parts):
        return parts
    return "".join(part["text"] for part in parts)


def _parse_content_part(
    part: Any, *, at: str, images: list[ImageInput] | None, part_types: Mapping[str, str]
) -> dict[str, str]:
    kind = str(part.get("type")) if isinstance(part, dict) else type(part).__name__
    content = part_types.get(kind) if isinstance(part, dict) else None
    if content == "text" and isinstance(part.get("text"), str):
        return {"type": "text", "text": part["text"]}
    if content == "image" and images is not None:
        images.append(image_inputs.parse_image_part(part, at=at))
        return {"type": "image"}
    raise RequestRejected(
        f"{at} is of type {kind!r}; this server reads text, and images of the user", param=at
    )


def context_length_exceeded_error(*, tokens: int, context: int, param: str) -> RequestRejected:
    return RequestRejected(
        f"This model's maximum context length is {context} tokens, and the prompt has {tokens}. "
        "Please shorten it so that there is room for an answer.",
        param=param,
        code="context_length_exceeded",
    )
