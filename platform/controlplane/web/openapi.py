"""OpenAPI schema: problem responses of every operation, strict request bodies, and access to the schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import getdoc
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from drf_spectacular.extensions import (
    OpenApiSerializerExtension,
    OpenApiSerializerFieldExtension,
)
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import Direction
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from controlplane.web.problem_details import CONTENT_TYPE
from controlplane.web.reasons import REASON_SCHEMAS
from controlplane.web.references import reference_naming
from controlplane.web.rest import UID, StrictSerializer, VisibleUidField

_PROBLEM = {
    "type": "object",
    "description": "What went wrong, as RFC 9457 has it.",
    "properties": {
        "type": {"type": "string", "example": "/docs/problems#spec-refused"},
        "title": {"type": "string", "example": "Unprocessable Entity"},
        "status": {"type": "integer", "example": 422},
        "code": {
            "type": "string",
            "example": "spec-refused",
            "description": "A short name for programs.",
        },
        "detail": {"type": "string", "example": "learning_rate: must be > 0 and ≤ 1, got -1"},
        "request_id": {
            "type": "string",
            "example": "5f0c2a1b9d3e4f60",
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
                },
                "required": ["field", "message"],
            },
        },
    },
    "required": ["type", "title", "status", "code", "detail"],
}
_METHODS = frozenset({"get", "post", "put", "patch", "delete"})


_BODIES = frozenset({"post", "put", "patch"})
#: Status → when an operation may answer with it.
_STATUSES: dict[int, str] = {
    400: "The request is malformed, or a field or parameter is wrong or unknown.",
    401: "No credentials, or they are wrong, expired or revoked.",
    403: "The caller's roles or the token's scopes do not allow it.",
    404: "There is no such object that the caller may see.",
    409: "The state of the object does not allow it.",
    422: "The request is well-formed and cannot be carried out as it stands.",
    429: "Too many requests; Retry-After says when to come back.",
}


def _error_statuses(path: str, method: str) -> list[int]:
    """Those of ``_STATUSES`` that fit the operation."""
    writes = method != "get"
    excluded = set() if "{" in path else {404}
    excluded |= set() if writes else {409}
    excluded |= set() if method in _BODIES else {422}
    return [status for status in _STATUSES if status not in excluded]


def add_problem_responses(*, result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """A post-processing hook: every operation may answer with a problem."""
    del context  # what drf-spectacular offers beside
    result["components"].setdefault("schemas", {}).update(REASON_SCHEMAS, Problem=_PROBLEM)
    reference = {"$ref": "#/components/schemas/Problem"}
    content = {CONTENT_TYPE: {"schema": reference}}
    for path, operations in result["paths"].items():
        for method in _METHODS & set(operations):
            responses = operations[method]["responses"]
            for status in _error_statuses(path, method):
                problem = {"description": _STATUSES[status], "content": content}
                responses.setdefault(str(status), problem)
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
