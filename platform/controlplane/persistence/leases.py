"""Leases on loops and on rows.

A *loop lease* (a ``Lease`` row) lets one process run a loop at a time and carries a fencing token.
*Row leases* hand rows out to whoever asks: a short transaction picks free ones by ``SKIP LOCKED``, so two
workers never get the same row. Both compare with the database's clock only.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from django.db import connection, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from controlplane.persistence.models import Lease, Leased

Row = TypeVar("Row", bound=Leased)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopLease:
    name: str
    token: int

    def check(self) -> bool:
        """Whether it is still ours; locks the row, so call it inside the transaction that writes."""
        return (
            Lease.objects.select_for_update()
            .filter(name=self.name, token=self.token, expires_at__gt=Now())
            .exists()
        )

    def renew(self, *, ttl: timedelta) -> bool:
        """Hold it for ``ttl`` from now; False if it has been lost meanwhile."""
        return bool(
            Lease.objects.filter(name=self.name, token=self.token, expires_at__gt=Now()).update(
                expires_at=Now() + ttl
            )
        )


def whoami() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@contextmanager
def loop_lease(name: str, *, ttl: timedelta) -> Iterator[LoopLease | None]:
    """Hold the loop's lease for the block; None if somebody else does."""
    lease = _take(name, ttl=ttl)
    try:
        yield lease
    finally:
        if lease is not None:
            Lease.objects.filter(name=name, token=lease.token).update(expires_at=Now())


def holder_of(name: str) -> str:
    """Who holds the loop's lease now, as ``host:process``; empty if nobody does."""
    held = Lease.objects.filter(name=name, expires_at__gt=Now())
    return held.values_list("holder", flat=True).first() or ""


def _take(name: str, *, ttl: timedelta) -> LoopLease | None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            INSERT INTO persistence_lease AS lease (name, holder, token, expires_at)
            VALUES (%(name)s, %(holder)s, 1, clock_timestamp() + %(ttl)s * interval '1 second')
            ON CONFLICT (name) DO UPDATE
               SET holder = EXCLUDED.holder, token = lease.token + 1, expires_at = EXCLUDED.expires_at
             WHERE lease.expires_at <= clock_timestamp()
            RETURNING token
            """,
            {"name": name, "holder": whoami(), "ttl": ttl.total_seconds()},
        )
        row = cursor.fetchone()
    return LoopLease(name=name, token=row[0]) if row else None


def lease_rows(rows: models.QuerySet[Row], *, limit: int, ttl: timedelta) -> list[Row]:
    """Take up to ``limit`` rows that nobody works on, for ``ttl``: those whose turn is longest ago first.

    Each comes with its new ``lease_token``; pass that to ``moves.move`` so that a slow worker cannot
    write over its successor.
    """
    with transaction.atomic(durable=not connection.in_atomic_block):
        free = (
            rows.filter(Q(leased_until=None) | Q(leased_until__lte=Now()))
            .order_by(F("leased_until").asc(nulls_first=True), "pk")
            .select_for_update(skip_locked=True, no_key=True, of=("self",))[:limit]
        )
        taken = list(free)
        if taken:
            rows.model._default_manager.filter(pk__in=[row.pk for row in taken]).update(
                leased_until=Now() + ttl, lease_token=F("lease_token") + 1
            )
    for row in taken:
        row.lease_token += 1
    return taken


def release_row(row: Leased) -> None:
    """Let others have it at once. Does nothing if it is no longer ours."""
    # Now rather than never: the row goes to the end of the line, so that every row gets its turn
    # however many more there are than one batch holds.
    type(row)._default_manager.filter(pk=row.pk, lease_token=row.lease_token).update(
        leased_until=Now()
    )


def release_rows(rows: Sequence[Leased]) -> None:
    """``release_row`` for many of one model, in one statement."""
    if not rows:
        return
    ours = Q(pk=None)
    for row in rows:
        ours |= Q(pk=row.pk, lease_token=row.lease_token)
    type(rows[0])._default_manager.filter(ours).update(leased_until=Now())
