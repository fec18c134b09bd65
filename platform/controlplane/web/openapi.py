"""What every operation of the schema has in common, and who may read the schema."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponseBase
from rest_framework.permissions import BasePermission
from rest_framework.request import Request

from controlplane.web.problems import CONTENT_TYPE

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
                    "row": {"type": "integer", "nullable": True},
                    "message": {"type": "string"},
                },
                "required": ["field", "message"],
            },
        },
    },
    "required": ["type", "title", "status", "code", "detail"],
}
_METHODS = frozenset({"get", "post", "put", "patch", "delete"})


def describe_problems(*, result: dict[str, Any], **context: Any) -> dict[str, Any]:
    """A post-processing hook: every operation may answer with a problem."""
    del context  # what drf-spectacular offers beside
    result["components"].setdefault("schemas", {})["Problem"] = _PROBLEM
    reference = {"$ref": "#/components/schemas/Problem"}
    for operations in result["paths"].values():
        for method in _METHODS & set(operations):
            operations[method]["responses"]["default"] = {
                "description": "A problem",
                "content": {CONTENT_TYPE: {"schema": reference}},
            }
    return result


class MayReadSchema(BasePermission):
    """Whoever is signed in or has a token; everybody where ``NINEFOLD_PUBLIC_SCHEMA`` is on."""

    def has_permission(self, request: Request, view: object) -> bool:
        return settings.NINEFOLD_PUBLIC_SCHEMA or request.user.is_authenticated


def schema_page(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Send a browser that may not read the schema to the sign-in page."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not settings.NINEFOLD_PUBLIC_SCHEMA and not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return view(request, *args, **kwargs)

    return guarded
