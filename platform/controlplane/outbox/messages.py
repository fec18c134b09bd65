"""Publish outbox messages in the transaction of the caller; relay them to Celery afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Min
from django.db.models.functions import Now

from controlplane.outbox.models import OutboxMessage
from controlplane.persistence.reasons import with_reasons_as_json
from controlplane.persistence.transactions import commit_asynchronously, execute

DELIVERED_RETENTION = timedelta(days=1)
#: Messages that are relayed in one transaction.
RELAY_BATCH = 200

Send = Callable[[str, dict[str, Any]], None]

#: The topics with subscribers in this version; see :func:`set_subscribed_topics`.
_subscribed_topics: set[str] = set()


def set_subscribed_topics(topics: Collection[str]) -> None:
    """Replace the set of topics with subscribers."""
    _subscribed_topics.clear()
    _subscribed_topics.update(topics)


#: Callbacks that relay before the next beat; see :func:`set_after_publish_callbacks`.
_wake_callbacks: list[Callable[[], None]] = []


def set_after_publish_callbacks(*callbacks: Callable[[], None]) -> None:
    """Replace the callbacks that run after the commit of a transaction that published.

    Their exceptions are logged and have no other effect.
    """
    _wake_callbacks[:] = callbacks


def _run_after_publish_callbacks() -> None:
    for callback in _wake_callbacks:
        callback()


def _schedule_callbacks_after_commit() -> None:
    """Once for a transaction, however much it publishes."""
    if all(entry[1] is not _run_after_publish_callbacks for entry in connection.run_on_commit):
        # Robust: a failing callback must not fail the publisher, whose transaction is committed.
        transaction.on_commit(_run_after_publish_callbacks, robust=True)


def publish_message(topic: str, **payload: Any) -> None:
    """Store a message; it becomes visible if and only if the transaction of the caller commits.

    :raises RuntimeError: outside a transaction, where it could announce a change that never happened.
    """
    if not connection.in_atomic_block:
        raise RuntimeError(f"publish({topic!r}) must be called inside a transaction")
    OutboxMessage.objects.create(topic=topic, payload=with_reasons_as_json(payload))
    _schedule_callbacks_after_commit()


def publish_messages(topic: str, payloads: Iterable[Mapping[str, Any]]) -> None:
    """The same as ``publish`` for each payload, in one statement.

    :raises RuntimeError: outside a transaction, where it could announce a change that never happened.
    """
    if not connection.in_atomic_block:
        raise RuntimeError(f"publish_messages({topic!r}) must be called inside a transaction")
    documents = [with_reasons_as_json(payload) for payload in payloads]
    if not documents:
        return
    # Creating model instances would take longer than writing the rows.
    execute(
        """
        INSERT INTO outbox_message (topic, payload, created_at)
        SELECT %s, told, statement_timestamp()
          FROM json_array_elements(%s::json) WITH ORDINALITY AS each(told, place)
         ORDER BY place
        """,
        [topic, json.dumps(documents)],
    )
    _schedule_callbacks_after_commit()


def publish_once(topic: str, **payload: Any) -> None:
    """Publish unless the same message is pending already.

    :raises RuntimeError: outside a transaction, where it could announce a change that never happened.
    """
    if not connection.in_atomic_block:
        raise RuntimeError(f"publish_once({topic!r}) must be called inside a transaction")
    # Locked, it is not relayed before this transaction ends; one being relayed now may arrive too early.
    pending = OutboxMessage.objects.select_for_update(skip_locked=True).filter(
        delivered_at=None, topic=topic, payload=payload
    )
    if pending.order_by("id").first() is None:
        OutboxMessage.objects.create(topic=topic, payload=payload)
        _schedule_callbacks_after_commit()


def relay_messages(send: Send, *, limit: int = RELAY_BATCH) -> int:
    """Send undelivered messages of subscribed topics in order and mark them; return their number.

    Messages without subscribers stay, without blocking others, until a version that subscribes to them runs.
    ``send`` may get a message twice (a crash between sending and marking), but at least once.
    """
    # The most frequent case: there is none.
    if (
        not OutboxMessage.objects.filter(delivered_at=None, topic__in=_subscribed_topics)
        .order_by()
        .exists()
    ):
        return 0
    with transaction.atomic():
        commit_asynchronously()
        rows = (
            OutboxMessage.objects.select_for_update(skip_locked=True)
            .filter(delivered_at=None, topic__in=_subscribed_topics)
            .order_by("id")
        )
        messages = list(rows.values_list("pk", "topic", "payload")[:limit])
        if not messages:
            return 0
        for _, topic, payload in messages:
            send(topic, payload)
        sent = OutboxMessage.objects.filter(pk__in=[pk for pk, _, _ in messages])
        sent.update(delivered_at=Now())
    return len(messages)


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxBacklog:
    """Messages that have not been relayed yet."""

    messages: int = 0
    #: Of the oldest, by the database's clock.
    age: timedelta = timedelta()
    #: Topic → number of messages without a subscriber in this version.
    unsubscribed: Mapping[str, int] = field(default_factory=dict)


def outbox_backlog() -> OutboxBacklog:
    """Return the pending messages, in one query of a partial index."""
    topics = list(
        OutboxMessage.objects.filter(delivered_at=None)
        .values("topic")
        .annotate(messages=Count("id"), age=Now() - Min("created_at"))
        .order_by("topic")
    )
    if not topics:
        return OutboxBacklog()
    return OutboxBacklog(
        messages=sum(row["messages"] for row in topics),
        age=max(row["age"] for row in topics),
        unsubscribed={
            row["topic"]: row["messages"]
            for row in topics
            if row["topic"] not in _subscribed_topics
        },
    )


def delete_expired_messages() -> int:
    """Delete messages past their retention; return their number."""
    deleted, _ = OutboxMessage.objects.filter(delivered_at__lt=Now() - DELIVERED_RETENTION).delete()
    return deleted
