"""A form that comes twice does its work once: pressed twice, or sent again after going back.

``{% once %}`` in the form gives each rendering of it a token. What it made is kept with the token and with
what was filled in, so a form that was changed after going back is another one.
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
from apps.accounts.web.requests import SignedIn
from controlplane.web.templatetags.ninefold import ONCE_FIELD

_LONGEST_TOKEN = 64
_CREATED = 201


def done_once(request: SignedIn, act: Callable[[], str]) -> tuple[str, bool]:
    """The uid of what ``act`` made, and whether that was now.

    A form without a token is done each time. ``act`` runs in a transaction; what it raises leaves nothing.

    :raises IdempotencyBusy: if the same form is still being worked on after a short wait.
    """
    token = request.POST.get(ONCE_FIELD, "")
    if not (0 < len(token) <= _LONGEST_TOKEN and token.isalnum() and token.isascii()):
        return act(), True
    content = _fingerprint(request)
    with transaction.atomic():
        record, earlier = services.idempotency_begin(
            user=request.user,
            key=f"form {token} {content[:32]}",
            fingerprint=content,
            at=timezone.now(),
        )
        if earlier is not None:
            return earlier.body.decode(), False
        uid = act()
        answer = services.Answer(status=_CREATED, body=uid.encode())
        services.idempotency_end(record=record, answer=answer)
    return uid, True


def _fingerprint(request: SignedIn) -> str:
    """SHA-256 over the address and what was filled in; a file counts by its name and its content."""
    fields = {
        name: values for name, values in request.POST.lists() if name != "csrfmiddlewaretoken"
    }
    files = {
        name: [(file.name, _digest(file)) for file in several]
        for name, several in request.FILES.lists()
    }
    described = json.dumps([request.path, fields, files], sort_keys=True)
    return hashlib.sha256(described.encode()).hexdigest()


def _digest(file: UploadedFile[Any]) -> str:
    found = hashlib.sha256()
    for chunk in file.chunks():
        found.update(chunk)
    # Whoever takes it over reads it from its beginning.
    file.seek(0)
    return found.hexdigest()
