"""Errors become HTTP here and nowhere else: problem details, RFC 9457.

Apps raise their own exceptions; each says how it looks to a client by being registered below, from the
app's ``api`` package. What is not registered is a fault of ours: a 500.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, JsonResponse
from rest_framework import exceptions
from rest_framework.views import set_rollback

from controlplane.domain.machines import IllegalTransition
from controlplane.ports.artifacts import BlobMissing, StorageFull
from controlplane.web import logs

log = logging.getLogger(__name__)

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
    #: Members beside the standard ones, for programs.
    extensions: Mapping[str, Any] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            **self.extensions,
            "type": f"/docs/problems#{self.code}",
            "title": HTTPStatus(self.status).phrase,
            "status": self.status,
            "code": self.code,
            "detail": self.detail,
        }
        if self.errors:
            body["errors"] = self.errors
        return body


#: None leaves the error to be a fault of ours.
Translator = Callable[[Any], Problem | None]
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


def exception_handler(error: Exception, context: Mapping[str, Any]) -> JsonResponse:
    """What DRF calls for each exception of a REST view. A fault of ours is logged and says nothing."""
    set_rollback()
    problem = problem_of(error)
    if problem is None:
        request = context.get("request")
        place = {"method": request.method, "path": request.path} if request is not None else {}
        log.error("a REST call failed", exc_info=error, extra=place)
        problem = Problem(
            status=500, code="internal", detail="this is a fault of ours; the server's log has it"
        )
    return problem_response(problem)


def problem_response(problem: Problem) -> JsonResponse:
    """JSON whatever the client prefers: an error in another form would hide its fields."""
    body = problem.as_json()
    if request_id := logs.request_id():
        body["request_id"] = request_id
    return JsonResponse(
        body,
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


@translates(SuspiciousOperation)
def _suspicious(error: SuspiciousOperation) -> Problem:
    large = isinstance(error, RequestDataTooBig)
    return Problem(
        status=413 if large else 400,
        code="too-large" if large else "bad-request",
        detail=str(error),
    )


@translates(StorageFull)
def _full(error: StorageFull) -> Problem:
    return Problem(status=507, code="storage-full", detail=str(error))


@translates(BlobMissing)
def _blob_missing(error: BlobMissing) -> Problem:
    return Problem(status=410, code="blob-missing", detail=str(error))


@translates(OSError)
def _disk(error: OSError) -> Problem | None:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    return Problem(status=507, code="storage-full", detail="no room is left to receive the file")


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
    wait = getattr(error, "wait", None)
    if wait is not None:
        headers["Retry-After"] = str(int(wait) + 1)
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
