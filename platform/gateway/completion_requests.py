"""OpenAI completion requests: parsing, validation, and estimates of their tokens.

Tokens are estimated where no engine has counted them: at admission, and for requests that were cut off. The
gateway has no tokenizer. An estimate is on the low side of what tokenizers of current models make of ordinary
text, so that no valid request is refused:

* ASCII: a token for 4 characters;
* other scripts: a token for 5 bytes of UTF-8, which is 1.7 Chinese or 2.5 Cyrillic characters;
* a part that is not text (an image, a sound): :data:`PART_TOKENS`, whatever its size;
* a message: :data:`MESSAGE_TOKENS` for its role;
* tokens that the client sends as numbers: their number.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import Any, NoReturn

from controlplane.domain.common.reasons import Reason
from gateway.engine_responses import compact_json
from gateway.errors import bad_request
from gateway.snapshots import RouteOperation, SnapshotRoute


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionRequest:
    operation: RouteOperation
    #: The public model name in the request.
    model: str
    stream: bool
    #: The client requests the chunk that reports usage at the end of the stream.
    include_usage: bool
    payload: dict[str, Any]

    def upstream_body(self, *, model: str) -> bytes:
        """The JSON for the engine, with the engine's name of the model.

        A stream always reports its usage to the gateway, whether or not the client requests it.
        """
        payload = {**self.payload, "model": model}
        if self.stream:
            payload["stream_options"] = {
                **(payload.get("stream_options") or {}),
                "include_usage": True,
            }
        return compact_json(payload)


#: An escape that may be half of a surrogate pair; bodies without one need no further check.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _reject_nan_and_infinity(name: str) -> NoReturn:
    raise ValueError(
        Reason("gateway.json.constant_not_allowed", "{constant} is not a JSON value", constant=name)
    )


# json.loads builds a decoder at each call that passes an option; this one is reused.
_DECODER = json.JSONDecoder(parse_constant=_reject_nan_and_infinity)


def parse_completion_request(body: bytes, *, operation: RouteOperation) -> CompletionRequest:
    """The completion request in an HTTP body.

    :raises ApiError: 400 if it is not a JSON object or lacks what the operation needs; the error
        names the position or the parameter.
    """
    payload = _parse_object(body)
    if _SURROGATE.search(body):
        _check_encodable_strings(payload)
    model = payload.get("model")
    if not isinstance(model, str) or not model:
        raise bad_request(
            Reason(
                "gateway.model.missing",
                "The body must name a model that GET /v1/models lists: {'model': '…'}.",
            ),
            param="model",
            code="missing_required_parameter" if model is None else "invalid_type",
        )
    stream = payload.get("stream")
    if not isinstance(stream, bool | None):
        raise bad_request(
            Reason(
                "gateway.stream.not_boolean",
                "'stream' must be true or false; it is {type}.",
                type=_type_name(stream),
            ),
            param="stream",
            code="invalid_type",
        )
    if operation is RouteOperation.CHAT:
        _check_messages(payload.get("messages"))
    else:
        _check_prompt(payload.get("prompt"))
    return CompletionRequest(
        operation=operation,
        model=model,
        stream=bool(stream),
        include_usage=_includes_stream_usage(payload, stream=bool(stream)),
        payload=payload,
    )


def _parse_object(body: bytes) -> dict[str, Any]:
    try:
        payload = _DECODER.decode(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise bad_request(
            Reason(
                "gateway.body.not_utf8",
                "The body is not UTF-8: byte {position} is 0x{byte}.",
                position=error.start,
                byte=f"{body[error.start]:02x}",
            ),
            code="invalid_json",
        ) from None
    except json.JSONDecodeError as error:
        raise bad_request(
            Reason(
                "gateway.body.json_syntax_error",
                "The body is not JSON: {error} at line {line}, column {column} "
                "(character {position}).",
                error=error.msg,
                line=error.lineno,
                column=error.colno,
                position=error.pos,
            ),
            code="invalid_json",
        ) from None
    except RecursionError:
        raise bad_request(
            Reason("gateway.body.nested_too_deeply", "The body is nested too deeply."),
            code="invalid_json",
        ) from None
    except ValueError as error:
        raise bad_request(
            Reason("gateway.body.not_json", "The body is not JSON: {error}.", error=str(error)),
            code="invalid_json",
        ) from None
    if not isinstance(payload, dict):
        raise bad_request(
            Reason(
                "gateway.body.not_an_object",
                "The body must be a JSON object; it is {type}.",
                type=_type_name(payload),
            ),
            code="invalid_json",
        )
    return payload


def _check_encodable_strings(payload: dict[str, Any]) -> None:
    """Refuse strings that cannot be encoded: JSON can escape half of a surrogate pair."""
    for path, text in _strings_with_paths(payload):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise bad_request(
                Reason(
                    "gateway.text.lone_surrogate",
                    "{path} has the lone surrogate \\u{code} at character {position}; a "
                    "surrogate must be one of a pair, as in \\ud83d\\ude00.",
                    path=repr(path[:200]),
                    code=f"{ord(text[error.start]):04x}",
                    position=error.start,
                ),
                param=path[:200],
                code="invalid_unicode",
            ) from None


def _strings_with_paths(payload: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every string with its path, such as ``messages[0].content``. A key has the path of its object."""
    pending: list[tuple[str, object]] = [("", payload)]
    while pending:
        path, value = pending.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, list):
            pending.extend((f"{path}[{index}]", each) for index, each in enumerate(value))
        elif isinstance(value, dict):
            for key, each in value.items():
                yield path or "the body", key
                pending.append((f"{path}.{key}" if path else key, each))


def _check_messages(messages: object) -> None:
    if not isinstance(messages, list) or not messages:
        raise bad_request(
            Reason(
                "gateway.messages.missing",
                "'messages' must be a list of at least one message: [{'role': 'user', "
                "'content': '…'}].",
            ),
            param="messages",
            code="missing_required_parameter" if messages is None else "invalid_type",
        )
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise bad_request(
                Reason(
                    "gateway.messages.role_missing",
                    "'messages[{index}]' must be an object with a 'role'.",
                    index=index,
                ),
                param=f"messages[{index}]",
                code="invalid_type",
            )


def _check_prompt(prompt: object) -> None:
    if not isinstance(prompt, str | list) or prompt == []:
        raise bad_request(
            Reason(
                "gateway.prompt.invalid",
                "'prompt' must be a string, or a list of strings or tokens.",
            ),
            param="prompt",
            code="missing_required_parameter" if prompt is None else "invalid_type",
        )


def _includes_stream_usage(payload: dict[str, Any], *, stream: bool) -> bool:
    options = payload.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict) or not stream:
        raise bad_request(
            Reason(
                "gateway.stream_options.invalid",
                "'stream_options' must be an object, and requires 'stream': true.",
            ),
            param="stream_options",
            code="invalid_type",
        )
    return options.get("include_usage") is True


def check_supported(request: CompletionRequest, route: SnapshotRoute) -> None:
    """Refuse a request that the route does not support.

    The length of the prompt is left to the engine, which has the tokenizer.

    :raises ApiError: 400 if the route lacks the operation or its context is shorter than the requested output.
    """
    if request.operation not in route.operations:
        offered = ", ".join(sorted(route.operations)) or "nothing"
        raise bad_request(
            Reason(
                "gateway.operation.not_supported",
                "The model {model} does not support {operation}; it supports {operations}.",
                model=repr(route.name),
                operation=request.operation.value,
                operations=offered,
            ),
            param="model",
            code="unsupported_operation",
        )
    for name in ("max_tokens", "max_completion_tokens"):
        length = request.payload.get(name)
        if length is None:
            continue
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise bad_request(
                Reason(
                    "gateway.max_tokens.invalid",
                    "'{field}' must be a whole number of at least 1.",
                    field=name,
                ),
                param=name,
                code="invalid_value",
            )
        if route.context_length is not None and length > route.context_length:
            raise bad_request(
                Reason(
                    "gateway.max_tokens.context_exceeded",
                    "'{field}' is {value}; the context length of {model}, for input and "
                    "output together, is {limit} tokens.",
                    field=name,
                    value=length,
                    model=repr(route.name),
                    limit=route.context_length,
                ),
                param=name,
                code="context_length_exceeded",
            )


def _type_name(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")


#: Tokens that OpenAI charges for an image in low detail.
PART_TOKENS = 85
#: The role and its separators in the chat templates of current models.
MESSAGE_TOKENS = 3

_ASCII_BYTES_PER_TOKEN = 4
_OTHER_BYTES_PER_TOKEN = 5
#: Parts of a message that are not text.
_MEDIA = frozenset({"image_url", "input_audio", "audio_url", "video_url", "file"})


def estimate_text_tokens(text: str) -> int:
    """The estimate for a text; 0 only for an empty one."""
    if text.isascii():
        return ceil(len(text) / _ASCII_BYTES_PER_TOKEN)
    ascii_bytes = len(text.encode("ascii", "ignore"))
    others = len(text.encode("utf-8", "surrogatepass")) - ascii_bytes
    return ceil(ascii_bytes / _ASCII_BYTES_PER_TOKEN + others / _OTHER_BYTES_PER_TOKEN)


def estimate_value_tokens(value: object) -> int:
    """The estimate for all texts inside a JSON value, its media included."""
    tokens = 0
    pending = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, str):
            tokens += estimate_text_tokens(each)
        elif isinstance(each, list):
            pending.extend(each)
        elif isinstance(each, dict):
            media = _MEDIA & each.keys()
            tokens += PART_TOKENS * len(media)
            pending.extend(inner for key, inner in each.items() if key not in media)
    return tokens


def estimate_prompt_tokens(payload: dict[str, Any], *, context_length: int | None) -> int:
    """The estimate for the prompt of a validated request.

    :param context_length: the upper bound, because the engine refuses a longer prompt.
    """
    if (messages := payload.get("messages")) is not None:
        tokens = MESSAGE_TOKENS * len(messages)
        tokens += estimate_value_tokens([messages, payload.get("tools"), payload.get("functions")])
        return _limit_token_count(tokens, context_length)
    return sum(
        _limit_token_count(tokens, context_length)
        for tokens in _prompt_estimates(payload.get("prompt"))
    )


def _prompt_estimates(prompt: object) -> Iterator[int]:
    """The estimate for each prompt of a completion: a text, tokens, or a list of either."""
    if isinstance(prompt, list) and any(isinstance(each, str | list) for each in prompt):
        for each in prompt:
            yield len(each) if isinstance(each, list) else estimate_value_tokens(each)
    else:
        yield len(prompt) if isinstance(prompt, list) else estimate_value_tokens(prompt)


def _limit_token_count(tokens: int, limit: int | None) -> int:
    return tokens if limit is None else min(tokens, limit)
