"""Turns of the loops that belong to no app."""

from __future__ import annotations

from celery import shared_task
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from apps.accounts.services import idempotency_prune
from apps.quotas.services.forecasts import what_ifs_prune
from config.wiring import send
from controlplane.outbox import messages


@shared_task
def relay_outbox() -> int:
    """Hand fresh news to Celery; say how many pieces."""
    relayed = 0
    while handed_on := messages.relay(send):
        relayed += handed_on
    return relayed


@shared_task
def tidy_up() -> None:
    """Delete what nobody will read again."""
    messages.prune()
    idempotency_prune(at=timezone.now())
    what_ifs_prune(at=timezone.now())
    # Django keeps the rows of sessions that nobody can use any more.
    SessionStore.clear_expired()
