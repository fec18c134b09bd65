"""What can go wrong between this client and the server. Messages give the value, the limit and the fix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import httpx


class NinefoldError(Exception):
    """Every error of this package."""


class ConfigurationError(NinefoldError):
    """The server address, the token or the configuration file is missing or invalid."""


class ConnectionFailed(NinefoldError):
    """The server could not be reached, or the connection broke."""


class ManifestError(NinefoldError):
    """A document for ``apply`` is invalid."""


class NotFound(NinefoldError):
    """No object of that name is visible to the user."""

    def __init__(self, message: str, *, name: str = "") -> None:
        super().__init__(message)
        #: The name of the missing object, without a version.
        self.name = name


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldError:
    """One invalid field of a refused request."""

    field: str
    message: str


class ApiError(NinefoldError):
    """An error response of the server (problem details, RFC 9457)."""

    def __init__(
        self,
        *,
        status: int,
        code: str,
        message: str,
        errors: Sequence[FieldError] = (),
        request_id: str = "",
    ) -> None:
        super().__init__(message)
        self.status = status
        #: Short name of the problem, for example ``spec-refused``.
        self.code = code
        self.message = message
        self.errors = tuple(errors)
        #: Identifies the request in the log of the server.
        self.request_id = request_id


def api_error_of_response(response: httpx.Response) -> ApiError:
    """Return the error of a response whose body was read."""
    try:
        body = response.json()
    except ValueError:
        body = None
    if not isinstance(body, Mapping) or "code" not in body:
        return ApiError(
            status=response.status_code,
            code="unexpected-response",
            message=f"{response.request.url} returned status {response.status_code} without a problem document; "
            "check that the address is the one of Ninefold",
        )
    return ApiError(
        status=response.status_code,
        code=str(body["code"]),
        message=str(body.get("detail") or body.get("title") or ""),
        errors=_field_errors(body.get("errors")),
        request_id=str(body.get("request_id") or ""),
    )


def _field_errors(errors: Any) -> list[FieldError]:
    if not isinstance(errors, list):
        return []
    return [
        FieldError(field=str(error.get("field") or ""), message=str(error.get("message") or ""))
        for error in errors
        if isinstance(error, Mapping)
    ]
