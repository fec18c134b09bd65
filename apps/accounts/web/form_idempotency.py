"""Idempotency of forms: a form that is submitted twice (double click, back and resubmit) is executed once.

``{% idempotency_token %}`` in a form adds a token that is new for each rendering. The result is stored under the
token and a fingerprint of the submitted values, so a form that was edited after going back is executed again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.utils import timezone

from apps.accounts import services
from apps.accounts.web.http_requests import AuthenticatedRequest
from controlplane.web.templatetags.ninefold import IDEMPOTENCY_FIELD

_LONGEST_TOKEN = 64
_CREATED = 201


def run_once_per_form(request: AuthenticatedRequest, create: Callable[[], str]) -> tuple[str, bool]:
    """Return the uid of what ``create`` created, and whether that was now.

    A form without a token is executed each time. ``create`` runs in a transaction; an exception rolls it back.

    :raises IdempotentRequestInProgress: if the first submission is still running after a short wait.
    """
    token = request.POST.get(IDEMPOTENCY_FIELD, "")
    if not (0 < len(token) <= _LONGEST_TOKEN and token.isalnum() and token.isascii()):
        return create(), True
    content = _form_fingerprint(request)
    with transaction.atomic():
        record, earlier = services.idempotency_begin(
            user=request.user,
            key=f"form {token} {content[:32]}",
            fingerprint=content,
            at=timezone.now(),
        )
        if earlier is not None:
            return earlier.body.decode(), False
        uid = create()
        stored = services.StoredIdempotentResponse(status=_CREATED, body=uid.encode())
        services.idempotency_end(record=record, response=stored)
    return uid, True


def _form_fingerprint(request: AuthenticatedRequest) -> str:
    """Return the SHA-256 of the path and the submitted values; files by name and content."""
    fields = {
        name: values for name, values in request.POST.lists() if name != "csrfmiddlewaretoken"
    }
    files = {
        name: [(file.name, _file_digest(file)) for file in several]
        for name, several in request.FILES.lists()
    }
    described = json.dumps([request.path, fields, files], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()


def _file_digest(file: UploadedFile[Any]) -> str:
    found = hashlib.sha256()
    for chunk in file.chunks():
        found.update(chunk)
    # The next reader starts at the beginning.
    file.seek(0)
    return found.hexdigest()
