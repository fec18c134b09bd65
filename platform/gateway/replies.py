"""Engines' answers, made fit for clients: the route's name, token counts, scrubbed errors."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from gateway.errors import ApiError, ErrorType, bad_request, unavailable, upstream_failed

_LONGEST_MESSAGE = 1000
_RETRY_SECONDS = 2.0

_HIDDEN = re.compile(
    r"""
    [a-z][a-z0-9+.-]*://[^\s'"<>)\]]+                      # an address
    | \b(?:\d{1,3}\.){3}\d{1,3}(?::\d+)?\b                 # IPv4, perhaps with a port
    | \[[0-9a-f:]{2,}\](?::\d+)?                           # IPv6 in brackets
    | \b(?:localhost|[\w-]+(?:\.[\w-]+)*\.(?:local|internal|svc|cluster))\b(?::\d+)?
    | (?<![\w/])/(?:[\w.@+-]+/)+[\w.@+-]*                  # a path on the engine's machine
    """,
    re.IGNORECASE | re.VERBOSE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCount:
    prompt: int
    completion: int

    @property
    def total(self) -> int:
        return self.prompt + self.completion


def token_count(usage: object) -> TokenCount:
    """The counts in an OpenAI ``usage`` object; what is missing or is no count reads as 0."""
    if not isinstance(usage, dict):
        return TokenCount(prompt=0, completion=0)
    return TokenCount(
        prompt=_whole(usage.get("prompt_tokens")), completion=_whole(usage.get("completion_tokens"))
    )


def _whole(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def renamed(content: dict[str, Any], *, route: str) -> dict[str, Any]:
    """The same object under the route's name, where it names a model at all."""
    if "model" in content:
        content["model"] = route
    return content


def scrubbed(message: str, *, route: str, model: str) -> str:
    """The message without the engine's addresses, paths and model name."""
    if model:
        message = re.sub(rf"(?<!\w){re.escape(model)}(?!\w)", lambda _: route, message)
    return _HIDDEN.sub("[hidden]", message)[:_LONGEST_MESSAGE]


def _message(content: object) -> str:
    """The words in an error body of any of the shapes that engines use; empty if there are none."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "; ".join(filter(None, map(_message, content)))
    if isinstance(content, dict):
        for field in ("error", "message", "detail", "msg"):
            if found := _message(content.get(field)):
                return found
    return ""


def scrubbed_error(content: dict[str, Any], *, route: str, model: str) -> dict[str, Any]:
    """An engine's error in the middle of a stream, in OpenAI's shape."""
    message = scrubbed(_message(content), route=route, model=model)
    return upstream_failed(message or "The model's engine failed.").as_object()


def upstream_error(*, status: int, body: bytes, route: str, model: str) -> ApiError:
    """The client's error for an engine's answer with that status.

    The engine judges a request better than the gateway can, so what it says of the request is
    passed on. What it says of itself is not.
    """
    try:
        content: object = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    message = scrubbed(_message(content), route=route, model=model)
    if status in (400, 413, 422):
        error = content.get("error") if isinstance(content, dict) else None
        details = error if isinstance(error, dict) else {}
        return bad_request(
            message or "The model's engine refused the request without a reason.",
            param=_text(details.get("param")),
            code=_text(details.get("code")),
            status=413 if status == 413 else 400,
        )
    if status == 429:
        return ApiError(
            "The model's engine is full. Try again shortly.",
            status=429,
            kind=ErrorType.REQUESTS,
            code="engine_overloaded",
            retry_after_seconds=_RETRY_SECONDS,
        )
    if status == 503:
        return unavailable(
            f"The engine of {route!r} is not ready. Try again shortly.",
            code="engine_not_ready",
            retry_after_seconds=_RETRY_SECONDS,
        )
    if status in (408, 504):
        return upstream_failed(
            f"The engine of {route!r} gave up on the request.", status=504, code="upstream_timeout"
        )
    return upstream_failed(f"The engine of {route!r} failed with status {status}.")


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
