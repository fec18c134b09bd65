"""Publish in the caller's transaction; relay afterwards."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Min
from django.db.models.functions import Now

from controlplane.outbox.models import OutboxMessage
from controlplane.persistence.durability import commit_soon

KEPT_AFTER_DELIVERY = timedelta(days=1)

Send = Callable[[str, dict[str, Any]], None]

#: The topics that have listeners in this version; see :func:`hear`.
_heard: set[str] = set()


def hear(topics: Collection[str]) -> None:
    """Say which topics have listeners, in place of what was said before."""
    _heard.clear()
    _heard.update(topics)


#: What makes a relay look now rather than with its next beat; see :func:`wake_with`.
_wakers: list[Callable[[], None]] = []


def wake_with(*wakers: Callable[[], None]) -> None:
    """Say what is called when a transaction that published has been committed, in place of what was said before.

    It may do nothing; what it raises is logged and stops nobody.
    """
    _wakers[:] = wakers


def _woken() -> None:
    for wake in _wakers:
        wake()


def _wake_when_committed() -> None:
    """Once for a transaction, however much it publishes."""
    if all(entry[1] is not _woken for entry in connection.run_on_commit):
        # Robust: what is committed is no failure of whoever published it.
        transaction.on_commit(_woken, robust=True)


def publish(topic: str, **payload: Any) -> None:
    """Record the news; it becomes visible if and only if the caller's transaction commits.

    :raises RuntimeError: outside a transaction, where it could tell of a change that never happened.
    """
    if not connection.in_atomic_block:
        raise RuntimeError(f"publish({topic!r}) must be called inside a transaction")
    OutboxMessage.objects.create(topic=topic, payload=payload)
    _wake_when_committed()


def publish_each(topic: str, payloads: Iterable[Mapping[str, Any]]) -> None:
    """The same as ``publish`` for each payload, in one statement.

    :raises RuntimeError: outside a transaction, where it could tell of a change that never happened.
    """
    if not connection.in_atomic_block:
        raise RuntimeError(f"publish_each({topic!r}) must be called inside a transaction")
    told = [dict(payload) for payload in payloads]
    if not told:
        return
    # A row of the model for each would take longer to make than all of them take to write.
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO outbox_message (topic, payload, created_at)
            SELECT %s, told, statement_timestamp()
              FROM json_array_elements(%s::json) WITH ORDINALITY AS each(told, place)
             ORDER BY place
            """,
            [topic, json.dumps(told)],
        )
    _wake_when_committed()


def publish_once(topic: str, **payload: Any) -> None:
    """The same as ``publish``, unless the same news waits to be relayed already.

    :raises RuntimeError: outside a transaction, where it could tell of a change that never happened.
    """
    if not connection.in_atomic_block:
        raise RuntimeError(f"publish_once({topic!r}) must be called inside a transaction")
    # Locked, it is not relayed before this transaction ends; one that is on its way now may come too early.
    waiting = OutboxMessage.objects.select_for_update(skip_locked=True).filter(
        delivered_at=None, topic=topic, payload=payload
    )
    if waiting.order_by("id").first() is None:
        OutboxMessage.objects.create(topic=topic, payload=payload)
        _wake_when_committed()


def relay(send: Send, *, limit: int = 200) -> int:
    """Hand undelivered messages that somebody hears to ``send`` in order and mark them; say how many.

    News that nobody hears stays, out of the way of all other, until a version runs that hears it.
    ``send`` may see a message twice (a crash between sending and marking), never not at all.
    """
    # Asked most often when there is none.
    if not OutboxMessage.objects.filter(delivered_at=None, topic__in=_heard).order_by().exists():
        return 0
    with transaction.atomic():
        commit_soon()
        rows = (
            OutboxMessage.objects.select_for_update(skip_locked=True)
            .filter(delivered_at=None, topic__in=_heard)
            .order_by("id")
        )
        with _index_scans():
            messages = list(rows.values_list("pk", "topic", "payload")[:limit])
        if not messages:
            return 0
        for _, topic, payload in messages:
            send(topic, payload)
        sent = OutboxMessage.objects.filter(pk__in=[pk for pk, _, _ in messages])
        sent.update(delivered_at=Now())
    return len(messages)


@contextmanager
def _index_scans() -> Iterator[None]:
    """Have entries of what was delivered marked as dead by whoever comes across them.

    An index scan does so, and the next one need not look at them again. A bitmap scan, which the planner may
    prefer for few rows, reads all that have come up since the last vacuum: tens of thousands in a busy minute.
    """
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_bitmapscan = off; SET LOCAL enable_seqscan = off")
        yield
        cursor.execute(
            "SET LOCAL enable_bitmapscan TO DEFAULT; SET LOCAL enable_seqscan TO DEFAULT"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """News that has not been handed on yet."""

    messages: int = 0
    #: Of the oldest, by the database's clock.
    age: timedelta = timedelta()
    #: Topic → how many of those messages wait for a listener that this version does not have.
    unheard: Mapping[str, int] = field(default_factory=dict)


def backlog() -> Backlog:
    """What waits to be relayed, in one query of a partial index."""
    topics = list(
        OutboxMessage.objects.filter(delivered_at=None)
        .values("topic")
        .annotate(messages=Count("id"), age=Now() - Min("created_at"))
        .order_by("topic")
    )
    if not topics:
        return Backlog()
    return Backlog(
        messages=sum(row["messages"] for row in topics),
        age=max(row["age"] for row in topics),
        unheard={row["topic"]: row["messages"] for row in topics if row["topic"] not in _heard},
    )


def prune() -> int:
    """Delete what was delivered long ago; say how many."""
    deleted, _ = OutboxMessage.objects.filter(delivered_at__lt=Now() - KEPT_AFTER_DELIVERY).delete()
    return deleted
