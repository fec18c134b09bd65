"""Celery tasks that belong to no app: the outbox relay, its wake-up, and cleanup."""

from __future__ import annotations

import logging
import time

from celery import shared_task
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone
from kombu.exceptions import ChannelError, OperationalError

from apps.accounts.services import idempotency_prune
from apps.quotas.services.forecasts import what_ifs_prune
from config.wiring import send_topic
from controlplane.outbox import messages


@shared_task
def relay_outbox() -> int:
    """Relay pending outbox messages to Celery; return their number."""
    relayed = 0
    while handed_on := messages.relay_messages(send_topic):
        relayed += handed_on
    return relayed


@shared_task
def tidy_up() -> None:
    """Delete expired rows."""
    messages.prune_messages()
    idempotency_prune(at=timezone.now())
    what_ifs_prune(at=timezone.now())
    # Django keeps the rows of expired sessions.
    SessionStore.clear_expired()


log = logging.getLogger(__name__)

#: Pause after a broker failure, so that publishers do not wait for it repeatedly.
_BROKER_PAUSE_SECONDS = 30.0
#: Minimum interval between wake-ups by one process.
_MIN_INTERVAL_SECONDS = 0.1
#: Expiry of the wake-up: the beat has relayed by then.
_EXPIRES_SECONDS = 10.0


class RelayTrigger:
    """Wakes the outbox relay up on commit. The beat runs it anyway: a failure here costs a second."""

    def __init__(self) -> None:
        self._not_before = 0.0

    def __call__(self) -> None:
        if time.monotonic() < self._not_before:
            return
        self._not_before = time.monotonic() + _MIN_INTERVAL_SECONDS
        try:
            relay_outbox.apply_async(expires=_EXPIRES_SECONDS, retry=False)
        except (OperationalError, ChannelError, OSError) as error:
            self._not_before = time.monotonic() + _BROKER_PAUSE_SECONDS
            log.warning(
                "the broker takes no message: news waits for the beat", extra={"error": str(error)}
            )
