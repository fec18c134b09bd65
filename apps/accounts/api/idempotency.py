"""Idempotent POST: a request repeated with the same ``Idempotency-Key`` gets the first response again.

The key is locked in the transaction that does the work, so a crash leaves neither, and a concurrent
repetition waits for it. Only successful responses are stored: after an error the key is free for the
corrected request.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Callable, Mapping
from typing import Any, Concatenate, ParamSpec, TypeVar

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import QueryDict
from django.utils import timezone
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.decorators import action
from rest_framework.exceptions import ValidationError
from rest_framework.fields import empty
from rest_framework.renderers import JSONRenderer
from rest_framework.request import Request
from rest_framework.response import Response

from apps.accounts import services
from apps.accounts.api.authentication import acting_user
from controlplane.web.rest import supports_dry_run

HEADER = "Idempotency-Key"
REPLAYED = "Idempotency-Replayed"
_LONGEST_KEY = 120

V = TypeVar("V")
P = ParamSpec("P")
Handler = Callable[Concatenate[V, Request, P], Response]

#: Describes the header. ``idempotent`` applies it by itself.
idempotency_key_schema = extend_schema(
    parameters=[
        OpenApiParameter(
            name=HEADER,
            type=str,
            location=OpenApiParameter.HEADER,
            description=(
                "A unique text of at most 120 characters per action. A repeated request with "
                "the same key within 24 hours returns the stored response and changes nothing."
            ),
        )
    ]
)


def idempotent(handler: Handler[V, P]) -> Handler[V, P]:
    """Make a POST handler idempotent. Apply it above ``@action``."""

    @functools.wraps(handler)
    def once(view: V, request: Request, /, *args: P.args, **kwargs: P.kwargs) -> Response:
        key = request.headers.get(HEADER)
        if key is None:
            return handler(view, request, *args, **kwargs)
        if not 1 <= len(key) <= _LONGEST_KEY or not key.isprintable() or not key.isascii():
            message = f"must be 1 to {_LONGEST_KEY} printable ASCII characters, got {len(key)}"
            raise ValidationError({HEADER: [message]})
        with transaction.atomic():
            record, earlier = services.idempotency_begin(
                user=acting_user(request),
                key=key,
                fingerprint=request_fingerprint(request),
                at=timezone.now(),
            )
            if earlier is not None:
                body = json.loads(earlier.body) if earlier.body else None
                return Response(body, status=earlier.status, headers={REPLAYED: "true"})
            response = handler(view, request, *args, **kwargs)
            body = JSONRenderer().render(response.data)
            services.idempotency_end(
                record=record,
                response=services.StoredIdempotentResponse(status=response.status_code, body=body),
            )
        return response

    return idempotency_key_schema(once)


def post_action(
    summary: str,
    description: str | None = None,
    *,
    request: Any = None,
    responses: Any = empty,
    detail: bool = True,
    dry_run: bool = False,
    **options: Any,
) -> Callable[[Handler[V, P]], Handler[V, P]]:
    """An idempotent action of a view set by POST, with its description in the API schema.

    :param request: serializer of the body; None: it has none.
    :param responses: default: the serializer of the view set.
    :param detail: whether it is an action on one row.
    :param dry_run: whether it takes ``?dry_run=true``.
    :param options: of :func:`rest_framework.decorators.action`.
    """

    def decorate(handler: Handler[V, P]) -> Handler[V, P]:
        once = idempotent(action(detail=detail, methods=["post"], **options)(handler))
        described = extend_schema(
            summary=summary, description=description, request=request, responses=responses
        )
        return described(supports_dry_run(once) if dry_run else once)

    return decorate


def request_fingerprint(request: Request) -> str:
    """Return the SHA-256 of method, URL and parsed body.

    Not of the raw bytes: a repeated multipart form has another boundary.
    """
    digest = hashlib.sha256(f"{request.method} {request.get_full_path()}\n".encode())
    data: Any = request.data
    if isinstance(data, QueryDict):
        data = {
            name: [_fingerprint_value(value) for value in values] for name, values in data.lists()
        }
    digest.update(json.dumps(data, sort_keys=True).encode())
    return digest.hexdigest()


def _fingerprint_value(value: object) -> object:
    """A file by name and content; anything else as it is."""
    if not isinstance(value, UploadedFile):
        return value
    digest = hashlib.sha256()
    for chunk in value.chunks():
        digest.update(chunk)
    value.seek(0)
    described: Mapping[str, object] = {"file": value.name, "sha256": digest.hexdigest()}
    return described
