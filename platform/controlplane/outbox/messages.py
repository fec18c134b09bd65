"""Publish in the caller's transaction; relay afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Min
from django.db.models.functions import Now

from controlplane.outbox.models import OutboxMessage

KEPT_AFTER_DELIVERY = timedelta(days=1)

Send = Callable[[str, dict[str, Any]], None]


def publish(topic: str, **payload: Any) -> None:
    """Record the news; it becomes visible if and only if the caller's transaction commits.

    :raises RuntimeError: outside a transaction, where it could tell of a change that never happened.
    """
    if not connection.in_atomic_block:
        raise RuntimeError(f"publish({topic!r}) must be called inside a transaction")
    OutboxMessage.objects.create(topic=topic, payload=payload)


def relay(send: Send, *, limit: int = 200) -> int:
    """Hand undelivered messages to ``send`` in order and mark them; say how many.

    ``send`` may see a message twice (a crash between sending and marking), never not at all.
    """
    with transaction.atomic():
        messages = list(
            OutboxMessage.objects.select_for_update(skip_locked=True)
            .filter(delivered_at=None)
            .order_by("id")[:limit]
        )
        for message in messages:
            send(message.topic, message.payload)
        OutboxMessage.objects.filter(pk__in=[message.pk for message in messages]).update(
            delivered_at=Now()
        )
    return len(messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """News that has not been handed on yet."""

    messages: int
    #: Of the oldest, by the database's clock.
    age: timedelta


def backlog() -> Backlog:
    """What waits to be relayed, in one query of a partial index."""
    found = OutboxMessage.objects.filter(delivered_at=None).aggregate(
        messages=Count("id"), age=Now() - Min("created_at")
    )
    return Backlog(messages=found["messages"], age=found["age"] or timedelta())


def prune() -> int:
    """Delete what was delivered long ago; say how many."""
    deleted, _ = OutboxMessage.objects.filter(delivered_at__lt=Now() - KEPT_AFTER_DELIVERY).delete()
    return deleted
