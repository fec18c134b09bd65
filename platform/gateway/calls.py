"""What a client asks for: a body read, checked and made ready for an engine."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NoReturn

from gateway.encodings import compact_json
from gateway.errors import bad_request
from gateway.snapshots import Operation, Route


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    operation: Operation
    #: The public name, as the client wrote it.
    model: str
    stream: bool
    #: The client wants the chunk that reports usage at the end of the stream.
    wants_usage: bool
    payload: dict[str, Any]

    def body_for(self, *, model: str) -> bytes:
        """The JSON that asks the engine for the same under its own name of the model.

        A stream always reports its usage to the gateway, whether or not the client asked.
        """
        payload = {**self.payload, "model": model}
        if self.stream:
            payload["stream_options"] = {
                **(payload.get("stream_options") or {}),
                "include_usage": True,
            }
        return compact_json(payload)


#: An escape that may be half of a surrogate pair; anything else needs no closer look.
_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON value")


# json.loads builds a decoder at each call that passes an option; this one is kept.
_DECODER = json.JSONDecoder(parse_constant=_refuse_constant)


def parse_call(body: bytes, *, operation: Operation) -> Call:
    """The call in a request's body.

    :raises ApiError: 400 if it is not a JSON object or lacks what the operation needs; the error
        names the position or the parameter.
    """
    payload = _object(body)
    if _SURROGATE.search(body):
        _check_unicode(payload)
    model = payload.get("model")
    if not isinstance(model, str) or not model:
        raise bad_request(
            "The body must name a model, as GET /v1/models lists them: {'model': '…'}.",
            param="model",
            code="missing_required_parameter" if model is None else "invalid_type",
        )
    stream = payload.get("stream")
    if not isinstance(stream, bool | None):
        raise bad_request(
            f"'stream' must be true or false; it is {_name_of(stream)}.",
            param="stream",
            code="invalid_type",
        )
    if operation is Operation.CHAT:
        _check_messages(payload.get("messages"))
    else:
        _check_prompt(payload.get("prompt"))
    return Call(
        operation=operation,
        model=model,
        stream=bool(stream),
        wants_usage=_wants_usage(payload, stream=bool(stream)),
        payload=payload,
    )


def _object(body: bytes) -> dict[str, Any]:
    try:
        payload = _DECODER.decode(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise bad_request(
            f"The body is not UTF-8: byte {error.start} is 0x{body[error.start]:02x}.",
            code="invalid_json",
        ) from None
    except json.JSONDecodeError as error:
        raise bad_request(
            f"The body is not JSON: {error.msg} at line {error.lineno}, column {error.colno} "
            f"(character {error.pos}).",
            code="invalid_json",
        ) from None
    except RecursionError:
        raise bad_request("The body is nested too deeply.", code="invalid_json") from None
    except ValueError as error:
        raise bad_request(f"The body is not JSON: {error}.", code="invalid_json") from None
    if not isinstance(payload, dict):
        raise bad_request(
            f"The body must be a JSON object; it is {_name_of(payload)}.", code="invalid_json"
        )
    return payload


def _check_unicode(payload: dict[str, Any]) -> None:
    """Refuse texts that no engine could encode: JSON can escape half of a surrogate pair."""
    for path, text in _texts(payload):
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise bad_request(
                f"{path[:200]!r} has the lone surrogate \\u{ord(text[error.start]):04x} at character "
                f"{error.start}; a surrogate must be one of a pair, as in \\ud83d\\ude00.",
                param=path[:200],
                code="invalid_unicode",
            ) from None


def _texts(payload: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Every text with where it is: ``messages[0].content``. A key is at its object."""
    waiting: list[tuple[str, object]] = [("", payload)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, str):
            yield path, value
        elif isinstance(value, list):
            waiting.extend((f"{path}[{index}]", each) for index, each in enumerate(value))
        elif isinstance(value, dict):
            for key, each in value.items():
                yield path or "the body", key
                waiting.append((f"{path}.{key}" if path else key, each))


def _check_messages(messages: object) -> None:
    if not isinstance(messages, list) or not messages:
        raise bad_request(
            "'messages' must be a list of at least one message: "
            "[{'role': 'user', 'content': '…'}].",
            param="messages",
            code="missing_required_parameter" if messages is None else "invalid_type",
        )
    for index, message in enumerate(messages):
        if not isinstance(message, dict) or not isinstance(message.get("role"), str):
            raise bad_request(
                f"'messages[{index}]' must be an object with a 'role'.",
                param=f"messages[{index}]",
                code="invalid_type",
            )


def _check_prompt(prompt: object) -> None:
    if not isinstance(prompt, str | list) or prompt == []:
        raise bad_request(
            "'prompt' must be a text, or a list of texts or tokens.",
            param="prompt",
            code="missing_required_parameter" if prompt is None else "invalid_type",
        )


def _wants_usage(payload: dict[str, Any], *, stream: bool) -> bool:
    options = payload.get("stream_options")
    if options is None:
        return False
    if not isinstance(options, dict) or not stream:
        raise bad_request(
            "'stream_options' must be an object, and needs 'stream': true.",
            param="stream_options",
            code="invalid_type",
        )
    return options.get("include_usage") is True


def check_fit(call: Call, route: Route) -> None:
    """Refuse what the route can never do.

    The length of the prompt is left to the engine, which has the tokenizer.

    :raises ApiError: 400 if the route lacks the operation or is shorter than the answer asked for.
    """
    if call.operation not in route.operations:
        offered = ", ".join(sorted(route.operations)) or "nothing"
        raise bad_request(
            f"The model {route.name!r} does not do {call.operation.value}; it does {offered}.",
            param="model",
            code="unsupported_operation",
        )
    for name in ("max_tokens", "max_completion_tokens"):
        length = call.payload.get(name)
        if length is None:
            continue
        if not isinstance(length, int) or isinstance(length, bool) or length < 1:
            raise bad_request(
                f"'{name}' must be a whole number of at least 1.", param=name, code="invalid_value"
            )
        if route.context_length is not None and length > route.context_length:
            raise bad_request(
                f"'{name}' is {length}; prompt and answer of {route.name!r} together have "
                f"{route.context_length} tokens.",
                param=name,
                code="context_length_exceeded",
            )


def _name_of(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "a truth value"}
    return "null" if value is None else names.get(type(value), "a number")
