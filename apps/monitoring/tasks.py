"""Celery tasks of monitoring: runs of its controllers, and subscribers of outbox messages.

A message may be delivered twice, and its subject may be deleted before that: then it is ignored.
"""

from __future__ import annotations

from datetime import datetime

from celery import shared_task
from django.utils import timezone

from apps.accounts.models import Team, User
from apps.jobs.models import Job
from apps.models.models import ModelVersion
from apps.monitoring.reconcilers import (
    alerts,
    health,
    isolations,
    maintenance_rollouts,
    metric_sources,
)
from apps.monitoring.services.alert_evaluation import alerts_prune
from apps.monitoring.services.faults import faults_prune, job_crash_record
from apps.monitoring.services.health_notifications import decisions_notify, isolation_notify
from apps.notifications import reconcilers as notification_controllers
from apps.notifications.services.notifications import (
    NotificationEvent,
    notification_events_prune,
    notification_send,
)
from apps.serving.models import Deployment
from apps.telemetry.services.metric_storage import metric_history_maintain
from controlplane.domain.alerts.notifications import NotificationKind
from controlplane.domain.common.reasons import StoredReason
from controlplane.domain.jobs.lifecycle import JobState


@shared_task
def read_sources() -> int:
    return metric_sources.metric_sources_read(at=timezone.now())


@shared_task
def detect_stale_cards() -> int:
    return metric_sources.stale_cards_reconcile(at=timezone.now())


@shared_task
def tidy_history() -> int:
    at = timezone.now()
    summed = metric_history_maintain(at=at)
    faults_prune(at=at)
    return summed


@shared_task
def diagnose_clusters() -> int:
    return health.cluster_signals_sync(at=timezone.now())


@shared_task
def decide_health() -> int:
    return health.health_reconcile(at=timezone.now())


@shared_task
def advance_isolations() -> int:
    return isolations.isolations_reconcile(at=timezone.now())


@shared_task
def evaluate_health_rules() -> int:
    return health.health_rules_reconcile(at=timezone.now())


@shared_task
def advance_rollouts() -> int:
    return maintenance_rollouts.maintenance_rollouts_reconcile(at=timezone.now())


@shared_task
def evaluate_alert_rules() -> int:
    return alerts.alerts_reconcile(at=timezone.now())


@shared_task
def send_alerts() -> int:
    return alerts.alert_deliveries_send(at=timezone.now())


@shared_task
def prune_events() -> int:
    at = timezone.now()
    return notification_events_prune(at=at) + alerts_prune(at=at)


_JOB_KINDS = {
    JobState.SUCCEEDED: NotificationKind.JOB_SUCCEEDED,
    JobState.FAILED: NotificationKind.JOB_FAILED,
    JobState.CANCELLED: NotificationKind.JOB_CANCELLED,
}


@shared_task
def on_job_ended(
    *, event_uid: str, job_uid: str, state: str, reason: StoredReason, at: str
) -> None:
    job = Job.objects.select_related("team", "created_by").filter(uid=job_uid).first()
    if job is None:
        return
    notification_send(
        NotificationEvent(
            uid=event_uid,
            kind=_JOB_KINDS[JobState(state)],
            team=job.team,
            subject_uid=job.uid,
            subject_name=job.name,
            at=datetime.fromisoformat(at),
            creator=job.created_by,
            actor_name=job.cancel_requested_by if state == JobState.CANCELLED else "",
            payload={"reason": reason, "job_kind": job.kind},
        )
    )


@shared_task
def on_job_ended_note_crash(
    *, event_uid: str, job_uid: str, state: str, reason: StoredReason, at: str
) -> None:
    del event_uid, reason
    if state == JobState.FAILED:
        job_crash_record(job_uid=job_uid, at=datetime.fromisoformat(at))


@shared_task
def on_cluster_changed(*, cluster_uid: str) -> None:
    """Conditions and labels of its nodes may have changed; other changes follow with the next run."""
    health.cluster_signals_sync(at=timezone.now(), uid=cluster_uid)


@shared_task
def on_faults_changed(*, cluster_uid: str) -> None:
    """Faults are new, more severe or ended: run now instead of with the next beat."""
    del cluster_uid  # the loop is level-triggered: it looks at everything that is wrong
    health.health_reconcile(at=timezone.now())


@shared_task
def on_isolation_begun(*, isolation_uid: str) -> None:
    isolation_notify(uid=isolation_uid, kind=NotificationKind.CARD_ISOLATED)


@shared_task
def on_isolation_ended(*, isolation_uid: str) -> None:
    isolation_notify(uid=isolation_uid, kind=NotificationKind.CARD_RETURNED)


@shared_task
def on_isolation_unproved(*, isolation_uid: str) -> None:
    isolation_notify(uid=isolation_uid, kind=NotificationKind.CARD_UNPROVED)


@shared_task
def on_decisions_held_back(*, decision_uids: list[str]) -> None:
    decisions_notify(uids=decision_uids)


@shared_task
def on_pipeline_ended(
    *,
    event_uid: str,
    pipeline_uid: str,
    name: str,
    team_uid: str,
    actor_name: str,
    state: str,
    reason: StoredReason,
    at: str,
    creator_uid: str = "",
    **earlier: str,
) -> None:
    """The app of pipelines is not imported here: the message contains everything.

    :param earlier: ``maker_uid``, as ``creator_uid`` is called in messages of version 0.1.0.
    """
    creator_uid = creator_uid or earlier["maker_uid"]
    notification_send(
        NotificationEvent(
            uid=event_uid,
            kind=NotificationKind(f"pipeline.{state}"),
            team=Team.objects.filter(uid=team_uid).first(),
            subject_uid=pipeline_uid,
            subject_name=name,
            at=datetime.fromisoformat(at),
            creator=User.objects.filter(uid=creator_uid).first(),
            actor_name=actor_name,
            payload={"reason": reason},
        )
    )


@shared_task
def on_deployment_ready(
    *, event_uid: str, deployment_uid: str, recovered: bool, reason: StoredReason, at: str
) -> None:
    kind = NotificationKind.DEPLOYMENT_RECOVERED if recovered else NotificationKind.DEPLOYMENT_READY
    _notify_of_deployment(deployment_uid, kind, event_uid=event_uid, reason=reason, at=at)


@shared_task
def on_deployment_degraded(
    *, event_uid: str, deployment_uid: str, reason: StoredReason, at: str
) -> None:
    kind = NotificationKind.DEPLOYMENT_DEGRADED
    _notify_of_deployment(deployment_uid, kind, event_uid=event_uid, reason=reason, at=at)


def _notify_of_deployment(
    uid: str, kind: NotificationKind, *, event_uid: str, reason: StoredReason, at: str
) -> None:
    rows = Deployment.objects.select_related("team", "created_by")
    deployment = rows.filter(uid=uid).first()
    if deployment is None:
        return
    notification_send(
        NotificationEvent(
            uid=event_uid,
            kind=kind,
            team=deployment.team,
            subject_uid=deployment.uid,
            subject_name=deployment.name,
            at=datetime.fromisoformat(at),
            creator=deployment.created_by,
            payload={"reason": reason},
        )
    )


@shared_task
def on_model_imported(*, event_uid: str, version_uid: str, reason: StoredReason, at: str) -> None:
    _notify_of_model(
        version_uid, NotificationKind.MODEL_IMPORTED, event_uid=event_uid, reason=reason, at=at
    )


@shared_task
def on_model_refused(*, event_uid: str, version_uid: str, reason: StoredReason, at: str) -> None:
    _notify_of_model(
        version_uid, NotificationKind.MODEL_REFUSED, event_uid=event_uid, reason=reason, at=at
    )


def _notify_of_model(
    uid: str, kind: NotificationKind, *, event_uid: str, reason: StoredReason, at: str
) -> None:
    rows = ModelVersion.objects.select_related("line__team", "created_by")
    version = rows.filter(uid=uid).first()
    if version is None:
        return
    notification_send(
        NotificationEvent(
            uid=event_uid,
            kind=kind,
            team=version.line.team,
            subject_uid=version.uid,
            subject_name=str(version),
            at=datetime.fromisoformat(at),
            creator=version.created_by,
            payload={"reason": reason},
        )
    )


@shared_task
def on_outbound_due(*, event_uid: str) -> None:
    """Send everything that is due, not only what this event created."""
    del event_uid
    at = timezone.now()
    alerts.alert_deliveries_send(at=at)
    notification_controllers.webhooks_call(at=at)
    notification_controllers.emails_send(at=at)
