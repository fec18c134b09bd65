"""What a request asks for, taken from its JSON, or the one thing that is wrong with it.

A field that this server does not support is refused by name rather than ignored, unless its value asks
for nothing (``n: 1``, ``logprobs: false``): a client must never believe that it got what it did not get.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Message = dict[str, str]

_ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
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
        "user",
    }
)
_CHAT = _SHARED | {"messages", "max_completion_tokens"}
_COMPLETION = _SHARED | {"prompt"}
#: Values of unsupported fields that ask for nothing.
_NEUTRAL: Mapping[str, tuple[Any, ...]] = {
    "n": (1,),
    "best_of": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "echo": (False,),
    "suffix": ("",),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "logit_bias": ({},),
    "tools": ([],),
    "functions": ([],),
    "tool_choice": ("none", "auto"),
    "parallel_tool_calls": (True, False),
    "response_format": ({"type": "text"},),
    "store": (False,),
    "metadata": ({},),
    "modalities": (["text"],),
    "service_tier": ("auto", "default"),
}
_MOST_STOPS = 4
_LARGEST_SEED = 2**63 - 1


class RequestRejected(Exception):
    """An answer in OpenAI's error shape."""

    def __init__(
        self,
        message: str,
        *,
        status: int = 400,
        kind: str = "invalid_request_error",
        param: str | None = None,
        code: str | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.param = param
        self.code = code

    def body(self) -> dict[str, Any]:
        return {
            "error": {
                "message": str(self),
                "type": self.kind,
                "param": self.param,
                "code": self.code,
            }
        }


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
    """A chat or a completion; exactly one of ``messages`` and ``prompt`` is given."""

    model: str
    messages: tuple[Message, ...] | None
    prompt: str | None
    sampling: SamplingParameters
    stream: bool
    include_usage: bool


def parse_chat_request(body: bytes) -> TextRequest:
    """:raises RequestRejected: naming the field that is wrong, missing or not supported."""
    fields = _supported_fields(body, supported=_CHAT)
    return _build_request(
        fields, messages=_parse_messages(fields), prompt=None, default_tokens=None
    )


def parse_completion_request(body: bytes) -> TextRequest:
    """:raises RequestRejected: naming the field that is wrong, missing or not supported."""
    fields = _supported_fields(body, supported=_COMPLETION)
    # OpenAI's default for this endpoint is 16 tokens.
    return _build_request(fields, messages=None, prompt=_parse_prompt(fields), default_tokens=16)


def _build_request(
    fields: Mapping[str, Any],
    *,
    messages: tuple[Message, ...] | None,
    prompt: str | None,
    default_tokens: int | None,
) -> TextRequest:
    stream = _parse_boolean(fields, "stream")
    options = fields.get("stream_options") or {}
    if not isinstance(options, dict) or set(options) - {"include_usage"}:
        raise RequestRejected("stream_options may hold include_usage only", param="stream_options")
    if options and not stream:
        raise RequestRejected("stream_options needs stream to be true", param="stream_options")
    chosen = "max_completion_tokens" if fields.get("max_completion_tokens") else "max_tokens"
    limit = _parse_number(fields, chosen, least=1, most=_LARGEST_SEED, whole=True)
    seed = _parse_number(fields, "seed", least=-_LARGEST_SEED, most=_LARGEST_SEED, whole=True)
    return TextRequest(
        model=_parse_text(fields, "model"),
        messages=messages,
        prompt=prompt,
        sampling=SamplingParameters(
            temperature=_parse_number(fields, "temperature", least=0, most=2),
            top_p=_parse_number(fields, "top_p", least=0, most=1),
            seed=None if seed is None else int(seed),
            max_tokens=default_tokens if limit is None else int(limit),
            stops=_parse_stop_strings(fields),
        ),
        stream=stream,
        include_usage=_parse_boolean(options, "include_usage"),
    )


def _supported_fields(body: bytes, *, supported: frozenset[str]) -> dict[str, Any]:
    try:
        fields = json.loads(body)
    except UnicodeDecodeError as error:
        raise RequestRejected(
            f"the body is not UTF-8: {error.reason} at byte {error.start}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise RequestRejected(f"the body is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RequestRejected("the body must be a JSON object")
    for name, value in fields.items():
        if name in supported or value is None or value in _NEUTRAL.get(name, ()):
            continue
        known = name in _NEUTRAL
        what = f"{name} = {json.dumps(value)[:80]}" if known else f"the field {name!r}"
        raise RequestRejected(
            f"{what} is not supported by this server", param=name, code="unsupported_parameter"
        )
    return fields


def _parse_text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise RequestRejected(f"{name} must be a non-empty string", param=name)
    return value


def _parse_boolean(fields: Mapping[str, Any], name: str) -> bool:
    value = fields.get(name)
    if value is not None and not isinstance(value, bool):
        raise RequestRejected(f"{name} must be true or false, not {value!r}", param=name)
    return bool(value)


def _parse_number(
    fields: Mapping[str, Any], name: str, *, least: float, most: float, whole: bool = False
) -> float | None:
    value = fields.get(name)
    if value is None:
        return None
    right_type = isinstance(value, int if whole else (int, float)) and not isinstance(value, bool)
    if not right_type or not least <= value <= most:
        kind = "a whole number" if whole else "a number"
        bounds = f"from {least:g}" if most == _LARGEST_SEED else f"from {least:g} to {most:g}"
        raise RequestRejected(f"{name} must be {kind} {bounds}, not {value!r}", param=name)
    return int(value) if whole else float(value)


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


def _parse_prompt(fields: Mapping[str, Any]) -> str:
    value = fields.get("prompt")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str) or not value:
        raise RequestRejected("prompt must be one non-empty string", param="prompt")
    return value


def _parse_messages(fields: Mapping[str, Any]) -> tuple[Message, ...]:
    value = fields.get("messages")
    if not isinstance(value, list) or not value:
        raise RequestRejected("messages must be a non-empty list", param="messages")
    return tuple(_parse_message(each, at=f"messages[{index}]") for index, each in enumerate(value))


def _parse_message(value: Any, *, at: str) -> Message:
    if not isinstance(value, dict):
        raise RequestRejected(f"{at} must be an object", param=at)
    role = value.get("role")
    if not isinstance(role, str) or role not in _ROLES:
        raise RequestRejected(
            f"{at}.role must be one of {', '.join(_ROLES)}, not {role!r}", param=f"{at}.role"
        )
    if unknown := sorted(
        name for name in value if name not in ("role", "content", "name") and value[name]
    ):
        raise RequestRejected(
            f"{at}.{unknown[0]} is not supported by this server",
            param=f"{at}.{unknown[0]}",
            code="unsupported_parameter",
        )
    return {
        "role": _ROLES[role],
        "content": _parse_content(value.get("content"), at=f"{at}.content"),
    }


def _parse_content(value: Any, *, at: str) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list) and value:
        return "".join(
            _parse_content_part(part, at=f"{at}[{index}]") for index, part in enumerate(value)
        )
    raise RequestRejected(f"{at} must be a string or a list of text parts", param=at)


def _parse_content_part(part: Any, *, at: str) -> str:
    if isinstance(part, dict) and part.get("type") == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    kind = part.get("type") if isinstance(part, dict) else type(part).__name__
    raise RequestRejected(f"{at} is of type {kind!r}; this server reads text only", param=at)


def context_length_exceeded_error(*, tokens: int, context: int, param: str) -> RequestRejected:
    return RequestRejected(
        f"This model's maximum context length is {context} tokens, and the prompt has {tokens}. "
        "Please shorten it so that there is room for an answer.",
        param=param,
        code="context_length_exceeded",
    )


def unknown_model_error(name: str, *, served: Sequence[str]) -> RequestRejected:
    return RequestRejected(
        f"The model {name!r} does not exist here; this server has {', '.join(served)}.",
        status=404,
        param="model",
        code="model_not_found",
    )
