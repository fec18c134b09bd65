"""Stored responses to requests with an ``Idempotency-Key``."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import OperationalError, transaction

from apps.accounts.models import IdempotencyRecord, User
from controlplane.domain.common.reasons import ReasonedError
from controlplane.persistence.encryption import decrypt, encrypt
from controlplane.persistence.transactions import set_lock_timeout

#: An answer is repeated for this long; then its key is free again.
IDEMPOTENCY_RETENTION = timedelta(hours=24)
#: How long a repeated request waits for the first one.
_IDEMPOTENCY_WAIT = "5s"
#: PostgreSQL's code for a lock that was not had in time.
_LOCK_NOT_AVAILABLE = "55P03"


class IdempotencyMismatch(ReasonedError):
    """The key came with another request before."""


class IdempotentRequestInProgress(ReasonedError):
    """The request that carries the key is still being answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredIdempotentResponse:
    """What was answered to a request."""

    status: int
    #: As it was sent.
    body: bytes


def idempotency_begin(
    *, user: User, key: str, fingerprint: str, at: datetime
) -> tuple[IdempotencyRecord, StoredIdempotentResponse | None]:
    """Lock the key until the transaction of the caller ends, or return the stored response.

    The key, the response and the changes of the request become visible together, or not at all.

    :raises IdempotencyMismatch: if the key belongs to another request.
    :raises IdempotentRequestInProgress: if the first request is still running after a short wait.
    """
    IdempotencyRecord.objects.filter(
        user=user, key=key, created_at__lte=at - IDEMPOTENCY_RETENTION
    ).delete()
    try:
        with transaction.atomic():
            set_lock_timeout(_IDEMPOTENCY_WAIT)
            record, fresh = IdempotencyRecord.objects.get_or_create(
                user=user, key=key, defaults={"fingerprint": fingerprint}
            )
            set_lock_timeout()
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != _LOCK_NOT_AVAILABLE:
            raise
        raise IdempotentRequestInProgress(
            "idempotency.request.in_progress", "this request is still in progress; retry shortly"
        ) from None
    if fresh:
        return record, None
    if record.fingerprint != fingerprint:
        raise IdempotencyMismatch(
            "idempotency.key.reused",
            "the Idempotency-Key {key} was used with a different request; use a new one",
            key=repr(key),
        )
    if record.status is None or record.body is None:
        raise IdempotentRequestInProgress(
            "idempotency.request.not_completed",
            "this request has not been completed; retry shortly",
        )
    encrypted = str(record.body["sealed"]).encode("ascii")
    return record, StoredIdempotentResponse(status=record.status, body=decrypt(encrypted))


def idempotency_end(*, record: IdempotencyRecord, response: StoredIdempotentResponse) -> None:
    """Store the response, encrypted: it may contain a secret that is shown once."""
    record.status = response.status
    record.body = {"sealed": encrypt(response.body).decode("ascii")}
    record.save(update_fields=["status", "body"])


def idempotency_prune(*, at: datetime) -> int:
    """Delete responses past their retention; return their number."""
    stale = IdempotencyRecord.objects.filter(created_at__lte=at - IDEMPOTENCY_RETENTION)
    return stale.delete()[0]
