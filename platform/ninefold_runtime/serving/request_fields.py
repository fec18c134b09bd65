"""Reading the fields of a request, and the error that names the field at fault.

A field that an operation does not support is refused by name rather than ignored, unless its value asks for
nothing (``logprobs: false``): a client must never believe that it got what it did not get. ``IGNORED`` are
fields that clients send by default and on which no content of a response depends.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

#: Fields for the provider's own records, caches and tariffs.
IGNORED = frozenset(
    {
        "metadata",
        "prediction",
        "prompt_cache_key",
        "prompt_cache_options",
        "prompt_cache_retention",
        "reasoning_effort",
        "safety_identifier",
        "service_tier",
        "store",
        "user",
        "verbosity",
    }
)
LARGEST_INTEGER = 2**63 - 1


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


def parse_json(text: str) -> Any:
    """:raises ValueError: if the text is not JSON, is nested too deeply, or escapes half of a surrogate pair."""
    try:
        value = json.loads(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode()
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error
    except UnicodeEncodeError as error:
        raise ValueError("it has a surrogate without its pair") from error
    return value


def parse_object(body: bytes) -> dict[str, Any]:
    """:raises RequestRejected: if the body is not a JSON object in UTF-8."""
    try:
        fields = parse_json(body.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise RequestRejected(
            f"the body is not UTF-8: {error.reason} at byte {error.start}"
        ) from error
    except ValueError as error:
        raise RequestRejected(f"the body is not JSON: {error}") from error
    if not isinstance(fields, dict):
        raise RequestRejected("the body must be a JSON object")
    return fields


def check_fields(
    fields: Mapping[str, Any],
    *,
    supported: frozenset[str],
    neutral: Mapping[str, tuple[Any, ...]] | None = None,
) -> None:
    """Refuse fields of the operation that are not ``supported``.

    :param neutral: values of unsupported fields that ask for nothing, or for what the server does anyway.
    :raises RequestRejected: naming the first field that is not supported.
    """
    neutral = neutral or {}
    for name, value in fields.items():
        if name in supported or name in IGNORED or value is None or value in neutral.get(name, ()):
            continue
        message = f"the field {name!r} is not supported by this server"
        if name in neutral:
            accepted = " or ".join(json.dumps(each) for each in neutral[name])
            message = (
                f"{name} = {json.dumps(value)[:80]} is not supported by this server; leave it out, "
                f"or send {accepted}"
            )
        raise RequestRejected(message, param=name, code="unsupported_parameter")


def parse_text(fields: Mapping[str, Any], name: str) -> str:
    value = fields.get(name)
    if not isinstance(value, str) or not value:
        raise RequestRejected(f"{name} must be a non-empty string", param=name)
    return value


def parse_boolean(fields: Mapping[str, Any], name: str, *, default: bool = False) -> bool:
    value = fields.get(name)
    if value is None:
        return default
    if not isinstance(value, bool):
        raise RequestRejected(f"{name} must be true or false, not {value!r}", param=name)
    return value


def parse_choice(fields: Mapping[str, Any], name: str, choices: Sequence[str]) -> str:
    """One of the choices; the first is the default."""
    value = fields.get(name)
    if value is None:
        return choices[0]
    if value not in choices:
        raise RequestRejected(
            f"{name} must be one of {', '.join(choices)}, not {value!r}", param=name
        )
    return str(value)


def parse_number(
    fields: Mapping[str, Any], name: str, *, least: float, most: float
) -> float | None:
    return _parse_bounded(fields, name, least=least, most=most, types=(int, float))


def parse_integer(
    fields: Mapping[str, Any], name: str, *, least: int, most: int = LARGEST_INTEGER
) -> int | None:
    value = _parse_bounded(fields, name, least=least, most=most, types=(int,))
    return None if value is None else int(value)


def _parse_bounded(
    fields: Mapping[str, Any], name: str, *, least: float, most: float, types: tuple[type, ...]
) -> float | None:
    value: Any = fields.get(name)
    if value is None:
        return None
    right_type = isinstance(value, types) and not isinstance(value, bool)
    if not right_type or not least <= value <= most:
        kind = "a number" if float in types else "a whole number"
        bounds = f"from {least:g}" if most == LARGEST_INTEGER else f"from {least:g} to {most:g}"
        raise RequestRejected(f"{name} must be {kind} {bounds}, not {value!r}", param=name)
    return int(value) if float not in types else float(value)


def parse_texts_or_tokens(
    fields: Mapping[str, Any], name: str, *, most: int
) -> tuple[str | tuple[int, ...], ...]:
    """A text, a list of token ids, or a list of either."""
    value: Any = fields.get(name)
    several = isinstance(value, list) and not _is_token_list(value)
    found = value if several else [value]
    if not found or len(found) > most:
        raise RequestRejected(f"{name} must have from 1 to {most} {name}s", param=name)
    for each in found:
        if not (isinstance(each, str) and each) and not _is_token_list(each):
            raise RequestRejected(
                f"{name} must be a non-empty string, a list of tokens, or a list of either",
                param=name,
            )
    return tuple(each if isinstance(each, str) else tuple(each) for each in found)


def _is_token_list(value: Any) -> bool:
    """Whether the value is a non-empty list of token ids."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(token, int) and not isinstance(token, bool) for token in value)
    )


def shutting_down_error() -> RequestRejected:
    """For requests that are open when the time of the shutdown is over."""
    return RequestRejected(
        "The server is shutting down, and the request did not end in time. Send it again.",
        status=503,
        kind="server_error",
        code="server_shutting_down",
    )


def unknown_model_error(name: str, *, served: Sequence[str]) -> RequestRejected:
    return RequestRejected(
        f"The model {name!r} does not exist here; this server has {', '.join(served)}.",
        status=404,
        param="model",
        code="model_not_found",
    )
