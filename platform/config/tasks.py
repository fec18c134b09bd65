"""Celery tasks that belong to no app: the outbox relay, its wake-up, and cleanup; and the record of all runs."""

from __future__ import annotations

import logging
import time
from typing import Any

from celery import Task, shared_task
from celery.signals import task_postrun, task_prerun, worker_init
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone
from kombu.exceptions import ChannelError, OperationalError

from apps.accounts.services import idempotency_prune
from apps.quotas.services.forecasts import what_ifs_prune
from config.wiring import send_topic
from controlplane.outbox import messages
from controlplane.persistence import reconcile_runs
from controlplane.web import logs


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


class ReconcileRunRecorder:
    """Records the start and end of tasks in the beat schedule."""

    def __init__(self) -> None:
        self._controllers = frozenset(reconcile_runs.controller_intervals())
        self._began: dict[str, float] = {}

    def connect(self) -> None:
        """Connect the signal handlers.

        Celery's own handlers close the database connection before and after each task. Connected between
        them, the recorder shares the connection of the task.
        """
        task_postrun.connect(self.ended, weak=False)
        worker_init.connect(self._connect_late, weak=False)

    def _connect_late(self, **_: Any) -> None:
        task_prerun.connect(self.started, weak=False)

    def started(self, *, task_id: str, task: Task[..., Any], **_: Any) -> None:
        logs.set_task_context(name=task.name, task_id=task_id)
        if task.name in self._controllers:
            self._began[task_id] = time.monotonic()
            reconcile_runs.run_started(task.name)

    def ended(self, *, task_id: str, task: Task[..., Any], retval: object = None, **_: Any) -> None:
        began = self._began.pop(task_id, None)
        if began is not None:
            failed = isinstance(retval, BaseException)
            reconcile_runs.run_ended(
                task.name,
                seconds=time.monotonic() - began,
                error=f"{type(retval).__name__}: {retval}" if failed else None,
                handled=retval if isinstance(retval, int) else None,
            )
        logs.clear_task_context()
