"""Jobs on their way from the queue to their end."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone

from apps.accounts.models import Team, User
from apps.fleet.models import Cluster
from apps.jobs import services as jobs
from apps.jobs.models import Attempt, Job
from apps.models.models import DatasetVersion, ModelVersion
from apps.models.services import job_outputs
from apps.quotas.models import Claim, Queue
from apps.quotas.reconcilers import cycle_run
from controlplane.domain.jobs.lifecycle import AttemptEvent, JobEvent, JobKind
from controlplane.domain.quotas.claims import ReleaseReason
from controlplane.domain.scheduling.plans import SchedulingPolicy
from tests.factories.registry import model_files, stored


def queue(**values: Any) -> Queue:
    """Open to every team."""
    return Queue.objects.create(name=values.pop("name", "default"), **values)


def job(
    *,
    actor: User,
    team: Team,
    queue: Queue,
    model: ModelVersion | None = None,
    dataset: DatasetVersion | None = None,
    name: str = "teach addresses",
    kind: JobKind = JobKind.FINETUNE,
    spec: Mapping[str, Any] | None = None,
    cards: int = 1,
) -> Job:
    """A submitted job, waiting."""
    request = jobs.JobRequest(
        kind=kind,
        name=name,
        spec=spec or ({"argv": ["python", "-V"]} if kind is JobKind.SCRIPT else {}),
        queue=queue,
        model_version=model,
        dataset_version=dataset,
        output_name="addresses" if kind is JobKind.FINETUNE else "",
        cards=cards,
    )
    return jobs.job_submit(actor=actor, team=team, request=request)


def schedule(*, at: datetime | None = None) -> None:
    """One turn of the scheduler: admits what fits and says why the rest waits."""
    cycle_run(policy=SchedulingPolicy(), at=at or timezone.now())
    for attempt in Attempt.objects.filter(state="pending"):
        claim = Claim.objects.get(uid=attempt.claim_uid)
        Attempt.objects.filter(pk=attempt.pk).update(message=claim.explanation)


def running(job: Job, *, cluster: Cluster, steps: int = 10, total: int = 40) -> Attempt:
    """The job's attempt with cards, running, having reported ``steps`` points."""
    at = timezone.now()
    schedule(at=at)
    attempt = job.attempts.latest("number")
    for event, reason, changes in (
        (AttemptEvent.ADMIT, "given a card", {"chip": "cpu", "admitted_at": at}),
        (AttemptEvent.LAUNCH, "starting", {}),
        (AttemptEvent.RUN, "running", {"started_at": at}),
    ):
        jobs.attempt_transition(attempt, event, at=at, reason=reason, **changes)
    Attempt.objects.filter(pk=attempt.pk).update(cluster=cluster)
    job.refresh_from_db()
    jobs.job_transition(job, JobEvent.START, at=at, reason="running")
    points = [
        {
            "step": step,
            "total_steps": total,
            "loss": 5.0 / (1 + step),
            "learning_rate": 0.001,
            "tokens_per_second": 1234.5,
            "eta_seconds": 90.0,
        }
        for step in range(1, steps + 1)
    ]
    jobs.attempt_progress_store(attempt=attempt, points=points, at=at)
    attempt.refresh_from_db()
    return attempt


def failed(job: Job, *, cluster: Cluster) -> Attempt:
    """The job's attempt ended badly, with the last lines of its log."""
    attempt = running(job, cluster=cluster)
    jobs.attempt_end(
        attempt=attempt,
        event=AttemptEvent.FAIL,
        job_event=JobEvent.FAIL,
        at=timezone.now(),
        reason="ended with exit code 28: the disk is full",
        release=ReleaseReason.FINISHED,
        exit_code=28,
        log_tail="step 9 of 40\nNo space left on device",
        log_digest=stored("log", b"step 9 of 40\nNo space left on device\n")[1],
    )
    job.refresh_from_db()
    return attempt


def succeeded(job: Job, *, cluster: Cluster) -> ModelVersion | None:
    """The job's attempt ended well; a fine-tune's version comes back."""
    attempt = running(job, cluster=cluster, steps=40)
    at = timezone.now()
    jobs.attempt_transition(attempt, AttemptEvent.FINISH, at=at, reason="registering the outputs")
    origin = job_outputs.OutputOrigin(
        team=job.team, actor=job.created_by, job_uid=job.uid, attempt_uid=attempt.uid
    )
    version = None
    if job.kind == JobKind.FINETUNE:
        version = job_outputs.model_version_register(
            origin=origin,
            name=job.output_name,
            files=model_files(),
            base=job.model_version,
            dataset_version=job.dataset_version,
            metrics={"loss": 0.12},
        )
    else:
        job_outputs.script_outputs_register(
            origin=origin, files=[stored("answer.txt", b"forty-two")]
        )
    jobs.attempt_end(
        attempt=attempt,
        event=AttemptEvent.COMPLETE,
        job_event=JobEvent.SUCCEED,
        at=at,
        reason=f"made {version}" if version else "output files: 1",
        release=ReleaseReason.FINISHED,
        exit_code=0,
        log_digest=stored("log", "第一行\nstep 40 of 40\n".encode())[1],
    )
    job.refresh_from_db()
    return version
