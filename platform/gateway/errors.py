"""Errors in the format of the OpenAI API, and in Anthropic's for messages.

``{"error": {"message", "type", "param", "code"}}``; the HTTP status selects the client's exception
class, ``code`` is for programs. Anthropic's is ``{"type": "error", "error": {"type", "message"}}``.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from enum import StrEnum

from controlplane.domain.common.reasons import Parameter, Reason, fill_message
from http_server.connection_limits import ConnectionRefusal


class ErrorType(StrEnum):
    """The ``type`` field."""

    INVALID_REQUEST = "invalid_request_error"
    AUTHENTICATION = "authentication_error"
    PERMISSION = "permission_error"
    #: Too many requests; the name is OpenAI's.
    REQUESTS = "requests"
    #: Too many tokens; the name is OpenAI's.
    TOKENS = "tokens"
    UNAVAILABLE = "service_unavailable_error"
    UPSTREAM = "upstream_error"
    INTERNAL = "internal_error"


class ErrorFormat(StrEnum):
    """Whose format an error has."""

    OPENAI = "openai"
    ANTHROPIC = "anthropic"


#: Status → ``type`` in Anthropic's format; others are ``api_error``.
_ANTHROPIC_TYPES: Mapping[int, str] = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    405: "invalid_request_error",
    408: "invalid_request_error",
    413: "request_too_large",
    415: "invalid_request_error",
    429: "rate_limit_error",
    503: "overloaded_error",
    504: "timeout_error",
}


class ApiError(Exception):
    """An error response to the client."""

    def __init__(
        self,
        message: str,
        *,
        status: int,
        kind: ErrorType,
        code: str | None = None,
        param: str | None = None,
        headers: Mapping[str, str] | None = None,
        retry_after_seconds: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.status = status
        self.kind = kind
        self.code = code
        self.param = param
        self.headers = dict(headers or {})
        if retry_after_seconds is not None:
            # The header takes whole seconds, and 0 would invite an immediate retry.
            self.headers["retry-after"] = str(max(1, math.ceil(retry_after_seconds)))

    def as_object(self, form: ErrorFormat = ErrorFormat.OPENAI) -> dict[str, object]:
        """Return the error as official clients read it; ``reason`` is ours, for pages in other languages."""
        if form is ErrorFormat.ANTHROPIC:
            kind = _ANTHROPIC_TYPES.get(self.status, "api_error")
            return {"type": "error", "error": {"type": kind, "message": str(self.message)}}
        error: dict[str, object] = {
            "message": self.message,
            "type": self.kind.value,
            "param": self.param,
            "code": self.code,
        }
        if isinstance(self.message, Reason):
            error["reason"] = self.message.as_json()
        return {"error": error}

    def as_json(self, form: ErrorFormat = ErrorFormat.OPENAI) -> bytes:
        return json.dumps(self.as_object(form)).encode()


# Each of the functions below takes a message, or the code, the template and the parameters of a reason.


def bad_request(
    message: str,
    template: str = "",
    /,
    *,
    param: str | None = None,
    code: str | None = None,
    status: int = 400,
    **params: Parameter,
) -> ApiError:
    return ApiError(
        fill_message(message, template, **params),
        status=status,
        kind=ErrorType.INVALID_REQUEST,
        param=param,
        code=code,
    )


def invalid_api_key_error(message: str, template: str = "", /, **params: Parameter) -> ApiError:
    return ApiError(
        fill_message(message, template, **params),
        status=401,
        kind=ErrorType.AUTHENTICATION,
        code="invalid_api_key",
        headers={"www-authenticate": "Bearer"},
    )


def model_not_found_error(name: str) -> ApiError:
    """The same message for "does not exist" and "is another team's", so that neither is disclosed."""
    return bad_request(
        "gateway.model.not_found",
        "The model {model} does not exist, or this key is not allowed to use it; "
        "GET /v1/models lists the allowed models.",
        model=repr(name),
        param="model",
        code="model_not_found",
        status=404,
    )


def unavailable_error(
    message: str,
    template: str = "",
    /,
    *,
    code: str,
    retry_after_seconds: float,
    **params: Parameter,
) -> ApiError:
    return ApiError(
        fill_message(message, template, **params),
        status=503,
        kind=ErrorType.UNAVAILABLE,
        code=code,
        retry_after_seconds=retry_after_seconds,
    )


def shutting_down_error() -> ApiError:
    """For requests that are open when the time of the shutdown is over."""
    return unavailable_error(
        "gateway.shutting_down",
        "The gateway is shutting down and ended this request. Send it again.",
        code="gateway_shutting_down",
        retry_after_seconds=1.0,
    )


def upstream_failure_error(
    message: str,
    template: str = "",
    /,
    *,
    status: int = 502,
    code: str = "upstream_error",
    **params: Parameter,
) -> ApiError:
    text = fill_message(message, template, **params)
    return ApiError(text, status=status, kind=ErrorType.UPSTREAM, code=code)


def internal_error() -> ApiError:
    return ApiError(
        Reason(
            "gateway.error.internal",
            "The gateway failed to process this request; its log has the reason "
            "under the x-request-id.",
        ),
        status=500,
        kind=ErrorType.INTERNAL,
        code="internal_error",
    )


def json_refusal(refusal: ConnectionRefusal) -> tuple[str, bytes]:
    """The content type and the body of an error of the server itself, before an operation is known."""
    status = refusal.status.value
    kind = ErrorType.INVALID_REQUEST if status < 500 else ErrorType.UNAVAILABLE
    error = ApiError(refusal.message, status=status, kind=kind, code=refusal.code)
    return "application/json", error.as_json()
