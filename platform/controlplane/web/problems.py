"""Errors become HTTP here and nowhere else: problem details, RFC 9457.

Apps raise their own exceptions; each says how it looks to a client by being registered below, from the
app's ``api`` package. What is not registered is a fault of ours and stays a 500.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from controlplane.domain.machines import IllegalTransition

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error as a client sees it."""

    status: int
    #: A short name for programs, ``spec-refused``; the last part of ``type``.
    code: str
    detail: str
    #: ``[{"field", "message"}]`` where single fields are wrong.
    errors: list[dict[str, Any]] = field(default_factory=list)
    headers: Mapping[str, str] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "type": f"/docs/problems#{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = self.errors
        return body


Translator = Callable[[Any], Problem]
_translators: dict[type[Exception], Translator] = {}


def translates(kind: type[Exception]) -> Callable[[Translator], Translator]:
    """Register how an exception and its subclasses look to a client."""

    def register(translator: Translator) -> Translator:
        _translators[kind] = translator
        return translator

    return register


def problem_of(error: Exception) -> Problem | None:
    """How the error looks to a client; None if it is a fault of ours."""
    for kind in type(error).__mro__:
        if kind in _translators:
            return _translators[kind](error)
    return None


def exception_handler(error: Exception, context: Mapping[str, Any]) -> Response | None:
    """What DRF calls for each exception of a REST view."""
    problem = problem_of(error)
    if problem is None:
        return None
    set_rollback()
    return problem_response(problem)


def problem_response(problem: Problem) -> Response:
    return Response(
        problem.as_json(),
        status=problem.status,
        headers=dict(problem.headers),
        content_type=CONTENT_TYPE,
    )


@translates(IllegalTransition)
def _illegal(error: IllegalTransition) -> Problem:
    return Problem(status=409, code="illegal-transition", detail=str(error))


@translates(Http404)
def _missing(error: Http404) -> Problem:
    return Problem(status=404, code="not-found", detail="there is nothing at this address for you")


@translates(PermissionDenied)
def _denied(error: PermissionDenied) -> Problem:
    return Problem(status=403, code="forbidden", detail=str(error) or "you may not do this")


@translates(exceptions.ValidationError)
def _invalid(error: exceptions.ValidationError) -> Problem:
    return Problem(
        status=400,
        code="invalid",
        detail="some fields are wrong; see errors",
        errors=list(_flat(error.detail)),
    )


@translates(exceptions.APIException)
def _api(error: exceptions.APIException) -> Problem:
    headers: dict[str, str] = {}
    if isinstance(error, exceptions.Throttled) and error.wait is not None:
        headers["Retry-After"] = str(int(error.wait) + 1)
    if error.status_code == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return Problem(
        status=error.status_code,
        code=str(error.default_code).replace("_", "-"),
        detail=str(error.detail),
        headers=headers,
    )


def _flat(detail: Any, path: str = "") -> list[dict[str, Any]]:
    """DRF's nested errors as a list of dotted fields and messages."""
    if isinstance(detail, Mapping):
        return [
            error
            for name, value in detail.items()
            for error in _flat(value, f"{path}.{name}" if path else str(name))
        ]
    if isinstance(detail, list):
        return [error for value in detail for error in _flat(value, path)]
    return [{"field": path.removesuffix(".non_field_errors"), "message": str(detail)}]
