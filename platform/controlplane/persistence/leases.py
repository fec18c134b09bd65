"""Leader leases and row leases.

A *leader lease* (a ``Lease`` row) lets one process at a time run a named controller, and carries a fencing
token. *Row leases* distribute rows to workers: a short transaction picks free rows with ``SKIP LOCKED``, so
two workers never get the same row. A worker renews the leases of its rows while it works
(:func:`keep_leases_renewed`); the leases of a killed worker expire. Both use the clock of the database only.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

from django.db import DatabaseError, connection, models, transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.persistence.models import Lease, LeasedModel
from controlplane.persistence.state_transitions import LeaseLost
from controlplane.persistence.transactions import fetch_row

Row = TypeVar("Row", bound=LeasedModel)

log = logging.getLogger(__name__)

#: A lease is renewed this often within its duration.
_RENEWALS = 3
#: Message of a row whose reconciliation raised an unexpected error.
INTERNAL_ERROR = Reason(
    "controller.reconcile.internal_error",
    "internal error in the controller; it is retried, and the log of the worker has the details",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaderLease:
    name: str
    token: int

    def check(self) -> bool:
        """Return whether the lease is still valid; locks the row, so call it in the transaction that writes."""
        return (
            Lease.objects.select_for_update()
            .filter(name=self.name, token=self.token, expires_at__gt=Now())
            .exists()
        )

    def renew(self, *, ttl: timedelta) -> bool:
        """Renew the lease for ``ttl`` from now; return False if it was lost meanwhile."""
        return bool(
            Lease.objects.filter(name=self.name, token=self.token, expires_at__gt=Now()).update(
                expires_at=Now() + ttl
            )
        )


def process_identity() -> str:
    return f"{socket.gethostname()}:{os.getpid()}"


@contextmanager
def hold_leader_lease(name: str, *, ttl: timedelta) -> Iterator[LeaderLease | None]:
    """Hold the lease for the block; None if another process has it."""
    lease = _acquire_lease(name, ttl=ttl)
    try:
        yield lease
    finally:
        if lease is not None:
            Lease.objects.filter(name=name, token=lease.token).update(expires_at=Now())


def lease_holder(name: str) -> str:
    """Return the current holder as ``host:process``; empty if there is none."""
    active = Lease.objects.filter(name=name, expires_at__gt=Now())
    return active.values_list("holder", flat=True).first() or ""


def _acquire_lease(name: str, *, ttl: timedelta) -> LeaderLease | None:
    row = fetch_row(
        """
        INSERT INTO persistence_lease AS lease (name, holder, token, expires_at)
        VALUES (%(name)s, %(holder)s, 1, clock_timestamp() + %(ttl)s * interval '1 second')
        ON CONFLICT (name) DO UPDATE
           SET holder = EXCLUDED.holder, token = lease.token + 1, expires_at = EXCLUDED.expires_at
         WHERE lease.expires_at <= clock_timestamp()
        RETURNING token
        """,
        {"name": name, "holder": process_identity(), "ttl": ttl.total_seconds()},
    )
    return LeaderLease(name=name, token=row[0]) if row else None


def lease_rows(rows: models.QuerySet[Row], *, limit: int, ttl: timedelta) -> list[Row]:
    """Lease up to ``limit`` free rows for ``ttl``, least recently leased first.

    Each has its new ``lease_token``; pass that to ``apply_transition`` so that a slow worker cannot overwrite its
    successor.
    """
    with transaction.atomic(durable=not connection.in_atomic_block):
        free = (
            rows.filter(Q(leased_until=None) | Q(leased_until__lte=Now()))
            .order_by(F("leased_until").asc(nulls_first=True), "pk")
            .select_for_update(skip_locked=True, no_key=True, of=("self",))[:limit]
        )
        acquired = list(free)
        if acquired:
            rows.model._default_manager.filter(pk__in=[row.pk for row in acquired]).update(
                leased_until=Now() + ttl, lease_token=F("lease_token") + 1
            )
    for row in acquired:
        row.lease_token += 1
    return acquired


def reconcile_rows(
    rows: models.QuerySet[Row],
    reconcile: Callable[[Row], None],
    *,
    limit: int,
    ttl: timedelta,
    record_error: Callable[[Row, Reason], None] | None = None,
) -> int:
    """Lease free rows, reconcile and release each; return how many were leased.

    A row that changed meanwhile is left to the next run. An error of one row does not stop the others:
    ``record_error`` receives it as the message for users.
    """
    leased = lease_rows(rows, limit=limit, ttl=ttl)
    with keep_leases_renewed(leased, ttl=ttl):
        for row in leased:
            context = {"model": row._meta.label, "row": getattr(row, "uid", row.pk)}
            try:
                reconcile(row)
            except (IllegalTransition, LeaseLost) as conflict:
                log.info("a conflicting change won", extra={**context, "race": str(conflict)})
            except Exception:
                log.exception("a reconcile run failed", extra=context)
                if record_error is not None:
                    record_error(row, INTERNAL_ERROR)
            finally:
                release_row_lease(row)
    return len(leased)


@contextmanager
def keep_leases_renewed(rows: Sequence[LeasedModel], *, ttl: timedelta) -> Iterator[None]:
    """Renew the leases of rows of one model while the block runs, however long one step of it takes.

    A row that was released or that another worker has taken over is not renewed: the next transition of the latter
    raises ``LeaseLost``.
    """
    if not rows:
        yield
        return
    ended = threading.Event()

    def renew() -> None:
        try:
            while not ended.wait(ttl.total_seconds() / _RENEWALS):
                _renew_rows(rows, ttl=ttl)
        except DatabaseError:
            # The worker notices a lost lease by its next transition.
            log.exception("leases could not be renewed")
        finally:
            # Of this thread.
            connection.close()

    heartbeat = threading.Thread(target=renew, name="renew-leases", daemon=True)
    heartbeat.start()
    try:
        yield
    finally:
        ended.set()
        heartbeat.join()


def _renew_rows(rows: Sequence[LeasedModel], *, ttl: timedelta) -> None:
    manager = type(rows[0])._default_manager
    with transaction.atomic():
        # A row that the worker has locked is not free for others either, and is renewed the next time.
        valid = manager.filter(_rows_still_leased(rows), leased_until__gt=Now())
        locked = list(valid.select_for_update(skip_locked=True, no_key=True).values_list("pk"))
        manager.filter(pk__in=[pk for (pk,) in locked]).update(leased_until=Now() + ttl)


def _rows_still_leased(rows: Sequence[LeasedModel]) -> Q:
    """Match the rows as long as no other worker has leased them."""
    ours = Q(pk=None)
    for row in rows:
        ours |= Q(pk=row.pk, lease_token=row.lease_token)
    return ours


def release_row_lease(row: LeasedModel) -> None:
    """Release the lease at once. Does nothing if it is no longer valid."""
    # Now rather than null: the row goes to the end of the queue, so that every row is processed
    # however many more there are than one batch.
    type(row)._default_manager.filter(pk=row.pk, lease_token=row.lease_token).update(
        leased_until=Now()
    )


def release_row_leases(rows: Sequence[LeasedModel]) -> None:
    """``release_row_lease`` for many of one model, in one statement."""
    if rows:
        type(rows[0])._default_manager.filter(_rows_still_leased(rows)).update(leased_until=Now())
