"""Responses of engines for clients: model name of the route, token counts, redacted errors."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from controlplane.domain.common.reasons import Reason
from gateway.errors import (
    ApiError,
    ErrorType,
    bad_request,
    unavailable_error,
    upstream_failure_error,
)

_MAX_MESSAGE_LENGTH = 1000
_RETRY_SECONDS = 2.0

_SENSITIVE = re.compile(
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
    """The counts in a ``usage`` object of any operation; 0 where a count is missing or invalid.

    Responses, messages and audio count ``input_tokens`` and ``output_tokens``; some rerankers only a total.
    """
    if not isinstance(usage, dict):
        return TokenCount(prompt=0, completion=0)
    prompt = _token_number(usage.get("prompt_tokens", usage.get("input_tokens")))
    completion = _token_number(usage.get("completion_tokens", usage.get("output_tokens")))
    return TokenCount(
        prompt=prompt or max(0, _token_number(usage.get("total_tokens")) - completion),
        completion=completion,
    )


def _token_number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def ranked_documents(answer: object) -> object:
    """The list that SGLang answers ``rerank`` with as an object of Jina's form; any other answer unchanged."""
    if not isinstance(answer, list) or not all(
        isinstance(each, dict) and {"index", "score"} <= each.keys() for each in answer
    ):
        return answer
    results, tokens = [], 0
    for each in answer:
        result = {"index": each["index"], "relevance_score": each["score"]}
        if each.get("document") is not None:
            result["document"] = {"text": each["document"]}
        results.append(result)
        details = each.get("meta_info")
        tokens += _token_number(details.get("prompt_tokens")) if isinstance(details, dict) else 0
    usage = {"usage": {"prompt_tokens": tokens, "total_tokens": tokens}} if tokens else {}
    return {"model": "", "results": results, **usage}


def with_model_name(content: dict[str, Any], *, route: str) -> dict[str, Any]:
    """The object with the route's name as its model, if it or the object in an event names a model."""
    if "model" in content:
        content["model"] = route
    for name in ("response", "message"):
        inner = content.get(name)
        if isinstance(inner, dict) and "model" in inner:
            inner["model"] = route
    return content


def redact_message(message: str, *, route: str, model: str) -> str:
    """The message without the engine's addresses, paths and model name."""
    if model:
        message = re.sub(rf"(?<!\w){re.escape(model)}(?!\w)", lambda _: route, message)
    return _SENSITIVE.sub("[hidden]", message)[:_MAX_MESSAGE_LENGTH]


def _error_message(content: object) -> str:
    """The message in an error body of any of the shapes that engines use; empty if there is none."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "; ".join(filter(None, map(_error_message, content)))
    if isinstance(content, dict):
        for field in ("error", "message", "detail", "msg"):
            if found := _error_message(content.get(field)):
                return found
    return ""


def redacted_stream_error(content: dict[str, Any], *, route: str, model: str) -> ApiError:
    """The client's error for an engine's error in the middle of a stream."""
    message = redact_message(_error_message(content), route=route, model=model)
    return upstream_failure_error(
        message or Reason("gateway.engine.failed", "The model's engine failed.")
    )


def redacted_error_object(error: dict[str, Any], *, route: str, model: str) -> dict[str, Any]:
    """The error of a failed response, which is an object of the operation's own shape."""
    return {**error, "message": redact_message(_error_message(error), route=route, model=model)}


def engine_response_error(*, status: int, body: bytes, route: str, model: str) -> ApiError:
    """The client's error for an engine's response with that status.

    Errors about the request are passed on, because the engine validates it better than the gateway can.
    Errors about the engine itself are not.
    """
    try:
        content: object = json.loads(body)
    except (ValueError, RecursionError):
        content = None
    message = redact_message(_error_message(content), route=route, model=model)
    if status in (400, 413, 422):
        error = content.get("error") if isinstance(content, dict) else None
        details = error if isinstance(error, dict) else {}
        return bad_request(
            message
            or Reason(
                "gateway.engine.request_rejected",
                "The model's engine rejected the request without a reason.",
            ),
            param=_string_or_none(details.get("param")),
            code=_string_or_none(details.get("code")),
            status=413 if status == 413 else 400,
        )
    if status == 429:
        return ApiError(
            Reason(
                "gateway.engine.overloaded", "The model's engine is overloaded. Try again shortly."
            ),
            status=429,
            kind=ErrorType.REQUESTS,
            code="engine_overloaded",
            retry_after_seconds=_RETRY_SECONDS,
        )
    if status == 503:
        return unavailable_error(
            "gateway.engine.not_ready",
            "The engine of {model} is not ready. Try again shortly.",
            model=repr(route),
            code="engine_not_ready",
            retry_after_seconds=_RETRY_SECONDS,
        )
    if status in (408, 504):
        return upstream_failure_error(
            "gateway.engine.timeout",
            "The engine of {model} timed out on the request.",
            model=repr(route),
            status=504,
            code="upstream_timeout",
        )
    return upstream_failure_error(
        Reason(
            "gateway.engine.error_status",
            "The engine of {model} failed with status {status}.",
            model=repr(route),
            status=status,
        )
    )


def _string_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


# json.dumps builds an encoder at each call that passes an option; this one is reused. What it encodes
# was decoded before and so has no cycles. ASCII escapes stay on: lone surrogates have no UTF-8.
_ENCODER = json.JSONEncoder(separators=(",", ":"), check_circular=False)


def compact_json(content: object) -> bytes:
    """The JSON of an acyclic value, in ASCII."""
    return _ENCODER.encode(content).encode("ascii")
