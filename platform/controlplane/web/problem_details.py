"""Problem details (RFC 9457): the only place where exceptions become HTTP responses.

Apps raise their own exceptions and register how each is presented from their ``api`` package. An exception
that is not registered is a server error: 500.
"""

from __future__ import annotations

import errno
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, NamedTuple

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.http import Http404, HttpRequest, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from rest_framework import exceptions
from rest_framework.views import set_rollback

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.ports.artifacts import BlobMissing, StorageFull, StorageUnavailable
from controlplane.web import logs

log = logging.getLogger(__name__)

CONTENT_TYPE = "application/problem+json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemDetails:
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
            **_reason_of_problem(self.detail),
        }
        if self.errors:
            body["errors"] = [
                {**error, **_reason_of_problem(error.get("message"))} for error in self.errors
            ]
        return body


def _reason_of_problem(message: object) -> dict[str, Any]:
    """Code and parameters of a message, for programs; nothing for text without a code."""
    return {"reason": message.as_json()} if isinstance(message, Reason) else {}


#: None: a server error.
Translator = Callable[[Any], ProblemDetails | None]
_translators: dict[type[Exception], Translator] = {}


def problem_translator(kind: type[Exception]) -> Callable[[Translator], Translator]:
    """Register the problem details of an exception and its subclasses."""

    def register(translator: Translator) -> Translator:
        _translators[kind] = translator
        return translator

    return register


def register_problem(
    *kinds: type[Exception],
    code: str,
    status: int = 422,
    headers: Mapping[str, str] = MappingProxyType({}),
    extensions: Callable[[Any], Mapping[str, Any]] = lambda _error: {},
) -> None:
    """Register exceptions whose text is the detail; their ``field`` or ``findings``, if any, are the errors.

    :param extensions: further members of the problem, from the exception.
    """

    def translator(error: Any) -> ProblemDetails:
        findings = getattr(error, "findings", ())
        errors = [{"field": one.field, "message": one.message} for one in findings]
        if getattr(error, "field", ""):
            errors.append({"field": error.field, "message": str(error)})
        return ProblemDetails(
            status=status,
            code=code,
            detail=str(error),
            errors=errors,
            headers=headers,
            extensions=extensions(error),
        )

    for kind in kinds:
        problem_translator(kind)(translator)


def problem_of_exception(error: Exception) -> ProblemDetails | None:
    """Return the problem details of an exception; None for a server error."""
    for kind in type(error).__mro__:
        if kind in _translators:
            return _translators[kind](error)
    return None


def exception_handler(error: Exception, context: Mapping[str, Any]) -> JsonResponse:
    """DRF exception handler. Server errors are logged; the response has no details."""
    set_rollback()
    problem = problem_of_exception(error)
    if problem is None:
        request = context.get("request")
        place = {"method": request.method, "path": request.path} if request is not None else {}
        log.error("a REST call failed", exc_info=error, extra=place)
        problem = ProblemDetails(
            status=500, code="internal", detail="this is a fault of ours; the server's log has it"
        )
    return problem_response(problem)


def problem_response(problem: ProblemDetails) -> JsonResponse:
    """JSON whatever the client prefers: an error in another form would hide its fields."""
    body = problem.as_json()
    if request_id := logs.current_request_id():
        body["request_id"] = request_id
    return JsonResponse(
        body,
        status=problem.status,
        headers=dict(problem.headers),
        content_type=CONTENT_TYPE,
    )


register_problem(IllegalTransition, code="illegal-transition", status=409)


@problem_translator(Http404)
def _not_found_problem(error: Http404) -> ProblemDetails:
    return ProblemDetails(
        status=404, code="not-found", detail="there is nothing at this address for you"
    )


@problem_translator(SuspiciousOperation)
def _bad_request_problem(error: SuspiciousOperation) -> ProblemDetails:
    large = isinstance(error, RequestDataTooBig)
    return ProblemDetails(
        status=413 if large else 400,
        code="too-large" if large else "bad-request",
        detail=str(error),
    )


register_problem(StorageFull, code="storage-full", status=507)
register_problem(
    StorageUnavailable, code="storage-unavailable", status=503, headers={"Retry-After": "10"}
)
register_problem(BlobMissing, code="blob-missing", status=410)


@problem_translator(OSError)
def _disk_full_problem(error: OSError) -> ProblemDetails | None:
    if error.errno not in (errno.ENOSPC, errno.EDQUOT):
        return None
    return ProblemDetails(
        status=507, code="storage-full", detail="no room is left to receive the file"
    )


@problem_translator(PermissionDenied)
def _permission_denied_problem(error: PermissionDenied) -> ProblemDetails:
    return ProblemDetails(status=403, code="forbidden", detail=str(error) or "you may not do this")


@problem_translator(exceptions.ValidationError)
def _validation_problem(error: exceptions.ValidationError) -> ProblemDetails:
    return ProblemDetails(
        status=400,
        code="invalid",
        detail="some fields are wrong; see errors",
        errors=list(_flatten_errors(error.detail)),
    )


@problem_translator(exceptions.APIException)
def _api_problem(error: exceptions.APIException) -> ProblemDetails:
    headers: dict[str, str] = {}
    wait = getattr(error, "wait", None)
    if wait is not None:
        headers["Retry-After"] = str(int(wait) + 1)
    if error.status_code == HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return ProblemDetails(
        status=error.status_code,
        code=str(error.default_code).replace("_", "-"),
        detail=str(error.detail),
        headers=headers,
    )


def _flatten_errors(detail: Any, path: str = "") -> list[dict[str, Any]]:
    """DRF's nested errors as a list of dotted fields and messages."""
    if isinstance(detail, Mapping):
        return [
            error
            for name, value in detail.items()
            for error in _flatten_errors(value, f"{path}.{name}" if path else str(name))
        ]
    if isinstance(detail, list):
        return [error for value in detail for error in _flatten_errors(value, path)]
    # A reason travels as the code of the error: see ``controlplane.web.references.reason_error``.
    code = getattr(detail, "code", None)
    message = code if isinstance(code, Reason) else str(detail)
    return [{"field": path.removesuffix(".non_field_errors"), "message": message}]


class ProblemType(NamedTuple):
    #: HTTP status codes with which it comes.
    statuses: str
    #: What happened, and what a caller does about it.
    meaning: Promise


#: By code, in alphabetical order.
PROBLEM_TYPES: Mapping[str, ProblemType] = {
    "acceptance-refused": ProblemType(
        "409", _("The quantized version cannot be accepted or rejected in its current state.")
    ),
    "address-refused": ProblemType(
        "422",
        _(
            "The egress policy denies the URL: the address is private, or the scheme is not "
            "allowed."
        ),
    ),
    "alert-refused": ProblemType(
        "422", _("The alert rule, route or silence is not valid; see errors.")
    ),
    "another-node": ProblemType("403", _("The agent's token belongs to another node.")),
    "another-under-way": ProblemType(
        "409", _("Another defragmentation plan is in progress; wait until it ends or dismiss it.")
    ),
    "apply-set-conflict": ProblemType(
        "409", _("The apply set has changed, or an object belongs to another one; see detail.")
    ),
    "authentication-failed": ProblemType(
        "401", _("The token or password is wrong, has expired or was revoked.")
    ),
    "bad-request": ProblemType("400", _("The request is not valid HTTP.")),
    "blob-missing": ProblemType("410", _("The file was deleted.")),
    "change-refused": ProblemType(
        "409", _("The change conflicts with another object or with the object's state; see detail.")
    ),
    "cluster-marked": ProblemType(
        "409",
        _("Nodes of the cluster are still isolated by Ninefold; return them to service first."),
    ),
    "cluster-occupied": ProblemType(
        "409", _("Workloads run on the cluster or have cards allocated; stop them first.")
    ),
    "cluster-refused": ProblemType("422", _("Fields of the cluster are not valid; see errors.")),
    "cluster-unfit": ProblemType(
        "422", _("The cluster does not meet the requirements of Ninefold; see errors.")
    ),
    "dataset-refused": ProblemType("422", _("Rows of the file are not valid; see errors.")),
    "defragmentation-plan-stale": ProblemType(
        "409", _("The fleet has changed since the plan was proposed; propose a new one.")
    ),
    "deletion-refused": ProblemType("409", _("The object is still in use; see detail.")),
    "duplicate-upload": ProblemType(
        "409", _("The same rows are a version of the dataset already.")
    ),
    "forbidden": ProblemType("403", _("Your role does not allow this.")),
    "health-policy-refused": ProblemType("422", _("The health policy is not valid; see errors.")),
    "health-rule-refused": ProblemType("422", _("The health rule is not valid; see errors.")),
    "hub-refused": ProblemType(
        "422", _("The model hub does not have the requested repository, revision or file.")
    ),
    "hub-unreachable": ProblemType("502", _("The model hub does not respond; try again later.")),
    "idempotency-busy": ProblemType(
        "409",
        _(
            "The first request with this Idempotency-Key is still running; repeat after Retry-After."
        ),
    ),
    "idempotency-mismatch": ProblemType(
        "422",
        _("The Idempotency-Key was already used with another request body; choose a new key."),
    ),
    "illegal-transition": ProblemType(
        "409", _("The action is not possible in the current state of the object.")
    ),
    "internal": ProblemType(
        "500", _("Internal server error; search the log of the server for the request_id.")
    ),
    "invalid": ProblemType("400", _("Fields or parameters are not valid; see errors.")),
    "isolation-refused": ProblemType(
        "422", _("The card or node cannot be isolated or returned to service; see detail.")
    ),
    "membership-refused": ProblemType(
        "409",
        _(
            "The change of the membership is refused, for example removing the last "
            "administrator; see detail."
        ),
    ),
    "method-not-allowed": ProblemType("405", _("The URL does not support this method.")),
    "model-refused": ProblemType("422", _("The files are not a supported model; see detail.")),
    "not-acceptable": ProblemType(
        "406", _("The URL supports none of the media types in the Accept header.")
    ),
    "not-authenticated": ProblemType("401", _("Send a token: Authorization: Bearer …")),
    "not-found": ProblemType(
        "404", _("The object does not exist or belongs to a team of which you are not a member.")
    ),
    "nothing-to-move": ProblemType(
        "422", _("No defragmentation plan frees the requested capacity.")
    ),
    "parse-error": ProblemType("400", _("The body is not valid JSON.")),
    "permission-denied": ProblemType("403", _("Your role does not allow this.")),
    "permission-refused": ProblemType(
        "403", _("Your role or the token's scope does not allow this.")
    ),
    "push-busy": ProblemType("503", _("Too many metrics are queued; retry after Retry-After.")),
    "push-outdated": ProblemType("400", _("The metrics are older than the stored ones.")),
    "push-refused": ProblemType("400", _("Lines of the pushed text are not valid; see errors.")),
    "queue-file-refused": ProblemType("422", _("The queue file is not valid; see errors.")),
    "queues-changed": ProblemType(
        "409, 412", _("The queues were changed in the meantime; read them again and retry.")
    ),
    "queues-refused": ProblemType("422", _("The resulting queue tree is not valid; see errors.")),
    "refused": ProblemType("422", _("The request is refused; see detail.")),
    "registration-refused": ProblemType("422", _("The model cannot be registered; see detail.")),
    "report-refused": ProblemType(
        "422", _("The report of the job attempt is not valid; see errors.")
    ),
    "rollout-refused": ProblemType("422", _("The maintenance rollout is not valid; see errors.")),
    "rule-invalid": ProblemType("422", _("The rule is not valid; see errors.")),
    "sizing-refused": ProblemType(
        "422", _("Memory cannot be estimated for the given values; see errors.")
    ),
    "source-refused": ProblemType("422", _("The metric source is not valid; see errors.")),
    "spec-refused": ProblemType("422", _("The spec is not valid; see errors.")),
    "storage-full": ProblemType("507", _("The server's disk is full.")),
    "storage-quota-exceeded": ProblemType(
        "409",
        _(
            "The storage quota of the team would be exceeded; delete files or request a "
            "larger quota."
        ),
    ),
    "storage-unavailable": ProblemType(
        "503", _("The artifact store does not respond; repeat after Retry-After.")
    ),
    "throttled": ProblemType("429", _("Too many requests; repeat after Retry-After.")),
    "too-large": ProblemType("413", _("The body exceeds the maximum size of the endpoint.")),
    "too-many-watches": ProblemType(
        "429", _("Too many watches are open; end one, or repeat after Retry-After.")
    ),
    "unsupported-media-type": ProblemType("415", _("Send the body as application/json.")),
    "upload-incomplete": ProblemType(
        "409", _("Bytes of the upload are missing or damaged; repeat the upload.")
    ),
    "upload-verification-busy": ProblemType(
        "503", _("Other uploads are being verified; repeat the request after Retry-After.")
    ),
    "watch-position-expired": ProblemType(
        "410",
        _("Last-Event-ID has expired; read the list again and watch without it."),
    ),
    "webhook-refused": ProblemType("422", _("The webhook is not valid; see errors.")),
}


@login_required
def problem_types(request: HttpRequest) -> HttpResponseBase:
    return render(request, "problem_types.html", {"types": PROBLEM_TYPES})
