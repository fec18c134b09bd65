"""Turns of the loops that belong to no app."""

from __future__ import annotations

from celery import shared_task
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone

from apps.accounts.services import idempotency_prune
from config.wiring import send
from controlplane.outbox import messages


@shared_task
def relay_outbox() -> None:
    """Hand fresh news to Celery."""
    while messages.relay(send) == 200:
        pass


@shared_task
def tidy_up() -> None:
    """Delete what nobody will read again."""
    messages.prune()
    idempotency_prune(at=timezone.now())
    # Django keeps the rows of sessions that nobody can use any more.
    SessionStore.clear_expired()
