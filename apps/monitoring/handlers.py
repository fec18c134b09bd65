"""News from the other apps, for whoever wants to know. It may come twice and is told once.

What it is about may be gone by the time it comes: then there is nothing left to look at.
"""

from __future__ import annotations

from datetime import datetime

from celery import shared_task
from django.utils import timezone

from apps.accounts.models import Team, User
from apps.jobs.models import Job
from apps.models.models import ModelVersion
from apps.monitoring.reconcilers import alerts, cluster_signals, health, mails, webhooks
from apps.monitoring.services.crashes import crash_record
from apps.monitoring.services.health_news import decisions_tell, isolation_tell
from apps.monitoring.services.telling import Happening, event_tell
from apps.serving.models import Deployment
from controlplane.domain.jobs.lifecycle import JobState
from controlplane.domain.news import NewsKind

_JOB_KINDS = {
    JobState.SUCCEEDED: NewsKind.JOB_SUCCEEDED,
    JobState.FAILED: NewsKind.JOB_FAILED,
    JobState.CANCELLED: NewsKind.JOB_CANCELLED,
}


@shared_task
def on_job_ended(*, event_uid: str, job_uid: str, state: str, reason: str, at: str) -> None:
    job = Job.objects.select_related("team", "created_by").filter(uid=job_uid).first()
    if job is None:
        return
    event_tell(
        Happening(
            uid=event_uid,
            kind=_JOB_KINDS[JobState(state)],
            team=job.team,
            subject_uid=job.uid,
            subject_name=job.name,
            at=datetime.fromisoformat(at),
            maker=job.created_by,
            actor_name=job.cancel_requested_by if state == JobState.CANCELLED else "",
            payload={"reason": reason, "job_kind": job.kind},
        )
    )


@shared_task
def on_job_ended_note_crash(
    *, event_uid: str, job_uid: str, state: str, reason: str, at: str
) -> None:
    del event_uid, reason
    if state == JobState.FAILED:
        crash_record(job_uid=job_uid, at=datetime.fromisoformat(at))


@shared_task
def on_cluster_changed(*, cluster_uid: str) -> None:
    """Conditions and labels of its nodes may be others now; what else it says comes with the next turn."""
    cluster_signals.cluster_signals_sync(at=timezone.now(), uid=cluster_uid)


@shared_task
def on_faults_changed(*, cluster_uid: str) -> None:
    """Something is new, worse or over: look now rather than at the next beat."""
    del cluster_uid  # the loop is level-triggered: it looks at everything that is wrong
    health.health_turn(at=timezone.now())


@shared_task
def on_isolation_begun(*, isolation_uid: str) -> None:
    isolation_tell(uid=isolation_uid, kind=NewsKind.CARD_ISOLATED)


@shared_task
def on_isolation_ended(*, isolation_uid: str) -> None:
    isolation_tell(uid=isolation_uid, kind=NewsKind.CARD_RETURNED)


@shared_task
def on_isolation_unproved(*, isolation_uid: str) -> None:
    isolation_tell(uid=isolation_uid, kind=NewsKind.CARD_UNPROVED)


@shared_task
def on_decisions_held_back(*, decision_uids: list[str]) -> None:
    decisions_tell(uids=decision_uids)


@shared_task
def on_pipeline_ended(
    *,
    event_uid: str,
    pipeline_uid: str,
    name: str,
    team_uid: str,
    maker_uid: str,
    actor_name: str,
    state: str,
    reason: str,
    at: str,
) -> None:
    """Its publisher is a neighbour of this app and is not known here: the news says all there is to say."""
    event_tell(
        Happening(
            uid=event_uid,
            kind=NewsKind(f"pipeline.{state}"),
            team=Team.objects.filter(uid=team_uid).first(),
            subject_uid=pipeline_uid,
            subject_name=name,
            at=datetime.fromisoformat(at),
            maker=User.objects.filter(uid=maker_uid).first(),
            actor_name=actor_name,
            payload={"reason": reason},
        )
    )


@shared_task
def on_deployment_ready(
    *, event_uid: str, deployment_uid: str, recovered: bool, reason: str, at: str
) -> None:
    kind = NewsKind.DEPLOYMENT_RECOVERED if recovered else NewsKind.DEPLOYMENT_READY
    _tell_of_deployment(deployment_uid, kind, event_uid=event_uid, reason=reason, at=at)


@shared_task
def on_deployment_troubled(*, event_uid: str, deployment_uid: str, reason: str, at: str) -> None:
    kind = NewsKind.DEPLOYMENT_TROUBLED
    _tell_of_deployment(deployment_uid, kind, event_uid=event_uid, reason=reason, at=at)


def _tell_of_deployment(uid: str, kind: NewsKind, *, event_uid: str, reason: str, at: str) -> None:
    rows = Deployment.objects.select_related("team", "created_by")
    deployment = rows.filter(uid=uid).first()
    if deployment is None:
        return
    event_tell(
        Happening(
            uid=event_uid,
            kind=kind,
            team=deployment.team,
            subject_uid=deployment.uid,
            subject_name=deployment.name,
            at=datetime.fromisoformat(at),
            maker=deployment.created_by,
            payload={"reason": reason},
        )
    )


@shared_task
def on_model_imported(*, event_uid: str, version_uid: str, reason: str, at: str) -> None:
    _tell_of_model(version_uid, NewsKind.MODEL_IMPORTED, event_uid=event_uid, reason=reason, at=at)


@shared_task
def on_model_refused(*, event_uid: str, version_uid: str, reason: str, at: str) -> None:
    _tell_of_model(version_uid, NewsKind.MODEL_REFUSED, event_uid=event_uid, reason=reason, at=at)


def _tell_of_model(uid: str, kind: NewsKind, *, event_uid: str, reason: str, at: str) -> None:
    rows = ModelVersion.objects.select_related("line__team", "created_by")
    version = rows.filter(uid=uid).first()
    if version is None:
        return
    event_tell(
        Happening(
            uid=event_uid,
            kind=kind,
            team=version.line.team,
            subject_uid=version.uid,
            subject_name=str(version),
            at=datetime.fromisoformat(at),
            maker=version.created_by,
            payload={"reason": reason},
        )
    )


@shared_task
def on_outbound_due(*, event_uid: str) -> None:
    """Whatever is due leaves, not only what the event made: a turn is a turn."""
    del event_uid
    at = timezone.now()
    alerts.alerts_send(at=at)
    webhooks.webhooks_call(at=at)
    mails.mails_send(at=at)
