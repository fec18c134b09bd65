"""Wiring: outbox topic → tasks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from celery import Task

from apps.fleet import tasks as fleet
from apps.jobs import tasks as jobs
from apps.monitoring import tasks as monitoring
from apps.quotas import tasks as quotas
from apps.serving import tasks as serving
from apps.workflows import tasks as workflows

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


def send_topic(topic: str, payload: dict[str, Any]) -> None:
    """Queue the tasks that are subscribed to the topic.

    :raises KeyError: if there are none; the relay does not send such messages.
    """
    for task in TOPICS[RENAMED_TOPICS.get(topic, topic)]:
        task.apply_async(kwargs=payload)
