"""Outbox topics and the tasks that subscribe to them; the relay, cleanup, and the record of reconcile runs."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from typing import Any

from celery import Task, shared_task
from celery.signals import task_postrun, task_prerun, worker_init
from django.contrib.sessions.backends.db import SessionStore
from django.utils import timezone
from kombu.exceptions import ChannelError, OperationalError

from apps.accounts.services import idempotency_prune
from apps.fleet import tasks as fleet
from apps.jobs import tasks as jobs
from apps.monitoring import tasks as monitoring
from apps.quotas import tasks as quotas
from apps.quotas.services.forecasts import what_ifs_prune
from apps.serving import tasks as serving
from apps.serving.services.weight_downloads import weight_downloads_prune
from apps.workflows import tasks as workflows
from controlplane.outbox import messages
from controlplane.outbox.resource_changes import delete_expired_changes
from controlplane.persistence import reconcile_runs
from controlplane.web import logs

TOPICS: Mapping[str, Sequence[Task[..., Any]]] = {
    "claim.requested": [quotas.schedule],
    "claim.released": [quotas.schedule],
    "claim.admitted": [jobs.on_claim_admitted, serving.on_claim_admitted],
    "claim.revoking": [jobs.on_claim_revoking, serving.on_claim_revoking],
    "attempt.changed": [jobs.on_attempt_changed],
    "cluster.changed": [fleet.on_cluster_changed, monitoring.on_cluster_changed],
    "decisions.held_back": [monitoring.on_decisions_held_back],
    "deployment.changed": [serving.on_deployment_changed],
    "deployment.degraded": [monitoring.on_deployment_degraded],
    "deployment.ready": [workflows.on_deployment_ready, monitoring.on_deployment_ready],
    "faults.changed": [monitoring.on_faults_changed],
    "isolation.begun": [monitoring.on_isolation_begun],
    "isolation.ended": [monitoring.on_isolation_ended],
    "isolation.unproved": [monitoring.on_isolation_unproved],
    "job.ended": [
        workflows.on_job_ended,
        monitoring.on_job_ended,
        monitoring.on_job_ended_note_crash,
    ],
    "launches.observed": [jobs.on_launches_changed, serving.on_launches_changed],
    "model.imported": [monitoring.on_model_imported],
    "model.refused": [monitoring.on_model_refused],
    "outbound.due": [monitoring.on_outbound_due],
    "pipeline.changed": [workflows.on_pipeline_changed],
    "pipeline.ended": [monitoring.on_pipeline_ended],
    "queues.changed": [quotas.on_queues_changed, quotas.on_queues_changed_keep_copies],
    "what_if.asked": [quotas.on_what_if_asked],
}
#: Topics of unsent messages of the last release → their present names.
RENAMED_TOPICS: Mapping[str, str] = {"deployment.troubled": "deployment.degraded"}
SUBSCRIBED_TOPICS: frozenset[str] = frozenset((*TOPICS, *RENAMED_TOPICS))


def queue_subscribed_tasks(topic: str, payload: dict[str, Any]) -> None:
    """Queue the tasks that are subscribed to the topic.

    :raises KeyError: if there are none; the relay does not send such messages.
    """
    for task in TOPICS[RENAMED_TOPICS.get(topic, topic)]:
        task.apply_async(kwargs=payload, retry=False)


@shared_task
def relay_outbox() -> int:
    """Relay pending outbox messages to Celery; return their number."""
    relayed = 0
    while handed_on := messages.relay_messages(queue_subscribed_tasks):
        relayed += handed_on
    return relayed


@shared_task
def tidy_up() -> None:
    """Delete expired rows."""
    messages.delete_expired_messages()
    delete_expired_changes()
    idempotency_prune(at=timezone.now())
    what_ifs_prune(at=timezone.now())
    weight_downloads_prune(at=timezone.now())
    # Django keeps the rows of expired sessions.
    SessionStore.clear_expired()


log = logging.getLogger(__name__)

#: Pause after a broker failure, so that publishers do not wait for it repeatedly.
_BROKER_PAUSE_SECONDS = 30.0
#: Minimum interval between relays by one process: a burst of transactions is relayed together.
_MIN_INTERVAL_SECONDS = 0.1
#: Expiry of ``relay_outbox``: the beat has relayed by then.
_EXPIRES_SECONDS = 10.0


class OutboxCommitRelay:
    """Relays outbox messages in the process that has committed them. What it leaves, the beat relays."""

    def __init__(self) -> None:
        self._not_before = 0.0

    def __call__(self) -> None:
        if time.monotonic() < self._not_before:
            return
        self._not_before = time.monotonic() + _MIN_INTERVAL_SECONDS
        try:
            if messages.relay_messages(queue_subscribed_tasks) == messages.RELAY_BATCH:
                # The publisher does not work off a backlog.
                relay_outbox.apply_async(expires=_EXPIRES_SECONDS, retry=False)
        except (OperationalError, ChannelError, OSError) as error:
            self._not_before = time.monotonic() + _BROKER_PAUSE_SECONDS
            log.warning(
                "broker unavailable: messages are left to the beat", extra={"error": str(error)}
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
        worker_init.connect(self._connect_task_prerun, weak=False)

    def _connect_task_prerun(self, **_: Any) -> None:
        task_prerun.connect(self.started, weak=False)

    def started(self, *, task_id: str, task: Task[..., Any], **_: Any) -> None:
        logs.set_task_context(name=task.name, task_id=task_id)
        if task.name in self._controllers:
            self._began[task_id] = time.monotonic()
            reconcile_runs.record_reconcile_start(task.name)

    def ended(self, *, task_id: str, task: Task[..., Any], retval: object = None, **_: Any) -> None:
        began = self._began.pop(task_id, None)
        if began is not None:
            failed = isinstance(retval, BaseException)
            reconcile_runs.record_reconcile_end(
                task.name,
                seconds=time.monotonic() - began,
                error=f"{type(retval).__name__}: {retval}" if failed else None,
                handled=retval if isinstance(retval, int) else None,
            )
        logs.clear_task_context()
