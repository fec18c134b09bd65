"""OpenAPI schema: problem responses of every operation, strict request bodies, and access to the schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from http import HTTPStatus
from inspect import getdoc
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from django.utils import translation
from drf_spectacular.extensions import (
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import Direction
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from controlplane.web.problem_details import CONTENT_TYPE, PROBLEM_TYPES, ProblemDetails
from controlplane.web.reasons import REASON_SCHEMAS
from controlplane.web.references import reference_naming
from controlplane.web.rest import UID, StrictSerializer, VisibleUidField

_REASON = {
    "$ref": "#/components/schemas/NestedReason",
    "description": "Code and parameters of the message; absent for text without a code.",
}
_PROBLEM = {
    "type": "object",
    "description": "What went wrong, as RFC 9457 has it. Some problems have further members.",
    "properties": {
        "type": {"type": "string", "examples": ["/docs/problems#spec-refused"]},
        "title": {"type": "string", "examples": ["Unprocessable Entity"]},
        "status": {"type": "integer", "minimum": 400, "maximum": 599, "examples": [422]},
        "code": {
            "type": "string",
            "examples": ["spec-refused"],
            "description": "A short name for programs; /docs/problems has the meaning of each.",
        },
        "detail": {"type": "string", "examples": ["learning_rate: must be > 0, ≤ 1, got -1"]},
        "reason": _REASON,
        "request_id": {
            "type": "string",
            "examples": ["5f0c2a1b9d3e4f60"],
            "description": "Under which the server's log has it; also the header X-Request-ID.",
        },
        "errors": {
            "type": "array",
            "description": "Where single fields, or rows of a file, are wrong.",
            "items": {
                "type": "object",
                "properties": {
                    "field": {"type": "string"},
                    "row": {"type": ["integer", "null"]},
                    "message": {"type": "string"},
                    "reason": _REASON,
                },
                "required": ["field", "message"],
            },
        },
    },
    "required": ["type", "title", "status", "code", "detail"],
}
_METHODS = frozenset({"get", "post", "put", "patch", "delete"})


_BODIES = frozenset({"post", "put", "patch"})
#: Status → when an operation may answer with it, and the code of a typical problem.
_STATUSES: dict[int, tuple[str, str]] = {
    400: ("The request is malformed, or a field or parameter is wrong or unknown.", "invalid"),
    401: ("No credentials, or they are wrong, expired or revoked.", "not-authenticated"),
    403: ("The caller's roles or the token's scopes do not allow it.", "permission-refused"),
    404: ("There is no such object that the caller may see.", "not-found"),
    409: ("The state of the object does not allow it.", "illegal-transition"),
    410: ("Last-Event-ID has expired.", "watch-position-expired"),
    413: ("The body is larger than the endpoint accepts.", "too-large"),
    415: ("The body is of another media type than the endpoint accepts.", "unsupported-media-type"),
    422: ("The request is well-formed and cannot be carried out as it stands.", "refused"),
    429: ("Too many requests; Retry-After says when to come back.", "throttled"),
}


def _error_statuses(path: str, method: str, *, watched: bool) -> list[int]:
    """Those of ``_STATUSES`` that fit the operation."""
    writes = method != "get"
    excluded = set() if "{" in path else {404}
    excluded |= set() if writes else {409}
    excluded |= set() if watched else {410}
    excluded |= set() if method in _BODIES else {413, 415, 422}
    return [status for status in _STATUSES if status not in excluded]


def _problem_example(status: int, code: str) -> dict[str, Any]:
    """An example of the problem, in the form in which ``problem_response`` answers."""
    detail = str(PROBLEM_TYPES[code].meaning)
    errors = []
    if status == HTTPStatus.BAD_REQUEST:
        detail = "some fields are wrong; see errors"
        errors = [
            {"field": "replicas", "message": "Ensure this value is less than or equal to 64."}
        ]
    problem = ProblemDetails(status=status, code=code, detail=detail, errors=errors)
    value = {**problem.as_json(), "request_id": "5f0c2a1b9d3e4f60"}
    return {"summary": HTTPStatus(status).phrase, "value": value}


def add_problem_responses(*, result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """A post-processing hook: every operation may answer with a problem."""
    del context  # what drf-spectacular offers beside
    components = result["components"]
    components.setdefault("schemas", {}).update(REASON_SCHEMAS, Problem=_PROBLEM)
    with translation.override("en"):
        components.setdefault("examples", {}).update(
            {
                f"problem-{code}": _problem_example(status, code)
                for status, (_, code) in _STATUSES.items()
            }
        )
    schema = {"$ref": "#/components/schemas/Problem"}
    for path, operations in result["paths"].items():
        for method in _METHODS & set(operations):
            responses = operations[method]["responses"]
            content_types = responses.get("200", {}).get("content", {})
            for status in _error_statuses(
                path, method, watched="text/event-stream" in content_types
            ):
                description, code = _STATUSES[status]
                example = {code: {"$ref": f"#/components/examples/problem-{code}"}}
                content = {CONTENT_TYPE: {"schema": schema, "examples": example}}
                responses.setdefault(str(status), {"description": description, "content": content})
            content = {CONTENT_TYPE: {"schema": schema}}
            responses["default"] = {"description": "A problem", "content": content}
    return result


class StrictSchema(OpenApiSerializerExtension):
    """The body of a request has no fields but those that are described."""

    target_class = StrictSerializer
    match_subclasses = True

    def map_serializer(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        schema = auto_schema._map_serializer(self.target, direction, bypass_extensions=True)
        if schema.get("description") == getdoc(StrictSerializer):
            del schema["description"]
        if direction == "request":
            schema["additionalProperties"] = False
        return dict(schema)


class VisibleUidFieldSchema(OpenApiSerializerFieldExtension):
    """A reference is a uid, or a name where objects of the model have one."""

    target_class = VisibleUidField

    def map_serializer_field(self, auto_schema: AutoSchema, direction: Direction) -> dict[str, Any]:
        naming = reference_naming(self.target.queryset.model)
        if naming is None:
            return {"type": "string", "pattern": f"^{UID}$"}
        return {
            "type": "string",
            "minLength": 1,
            "description": f"Name, for example {naming.example}, or uid.",
            "examples": [naming.example],
        }


class OpenApiSchemaPermission(BasePermission):
    """Allows authenticated users; everyone if ``NINEFOLD_PUBLIC_SCHEMA`` is on."""

    def has_permission(self, request: Request, view: object) -> bool:
        return settings.NINEFOLD_PUBLIC_SCHEMA or request.user.is_authenticated


def require_login_for_schema(
    view: Callable[..., HttpResponseBase],
) -> Callable[..., HttpResponseBase]:
    """Send a browser that may not read the schema to the sign-in page."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.NINEFOLD_PUBLIC_SCHEMA and not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return view(request, *args, **kwargs)

    return guarded
