"""Celery tasks of pipelines: runs of their controller, and subscribers of outbox messages.

Messages about jobs and deployments of no pipeline are ignored.
"""

from __future__ import annotations

from celery import shared_task
from django.utils import timezone

from apps.workflows import reconcilers
from apps.workflows.models import Pipeline
from controlplane.domain.common.reasons import StoredReason
from controlplane.domain.pipelines.lifecycle import PipelineState


@shared_task
def reconcile_pipelines() -> int:
    return reconcilers.pipelines_reconcile(at=timezone.now())


@shared_task
def on_pipeline_changed(*, pipeline_uid: str) -> None:
    reconcilers.pipelines_reconcile(at=timezone.now(), uid=pipeline_uid)


@shared_task
def on_job_ended(
    *, event_uid: str, job_uid: str, state: str, reason: StoredReason, at: str
) -> None:
    del event_uid, state, reason, at
    rows = Pipeline.objects.filter(state=PipelineState.RUNNING, steps__job__uid=job_uid)
    _reconcile_pipeline(rows.values_list("uid", flat=True).first())


@shared_task
def on_deployment_ready(
    *, event_uid: str, deployment_uid: str, recovered: bool, reason: StoredReason, at: str
) -> None:
    del event_uid, recovered, reason, at
    rows = Pipeline.objects.filter(
        state=PipelineState.RUNNING, steps__deployment__uid=deployment_uid
    )
    for uid in rows.distinct().values_list("uid", flat=True):
        _reconcile_pipeline(uid)


def _reconcile_pipeline(uid: str | None) -> None:
    if uid is not None:
        reconcilers.pipelines_reconcile(at=timezone.now(), uid=uid)
