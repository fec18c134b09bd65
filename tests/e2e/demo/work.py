"""Jobs on their way, with curves, logs and reasons that look like those of real ones."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from apps.accounts.models import Team, User
from apps.jobs import services
from apps.jobs.models import Attempt, Job
from apps.models.models import DatasetVersion, ModelVersion
from apps.models.services import job_outputs
from apps.quotas.models import Claim, Queue
from apps.quotas.reconcilers import cycle_run
from apps.quotas.selectors import cluster_of_claim
from controlplane.domain.jobs.lifecycle import AttemptEvent, JobEvent, JobKind
from controlplane.domain.quotas.claims import ReleaseReason
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.ports import adapter_registry as ports
from controlplane.ports.engines import EngineTask
from tests import factories
from tests.e2e.demo import registry
from tests.e2e.demo.clock import ago, before
from tests.e2e.demo.fleet import NPU, Fleet
from tests.e2e.demo.reasons import sample_reason


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """Whose work it is, and on what."""

    actor: User
    team: Team
    queue: Queue
    model: ModelVersion
    dataset: DatasetVersion
    chip: str = "cpu"
    cards: int = 1
    priority: int = 0


def submit(
    work: Work,
    name: str,
    *,
    kind: JobKind = JobKind.FINETUNE,
    spec: Mapping[str, Any] | None = None,
    output: str = "address-parser",
) -> Job:
    """A job that waits; asked for on a chip that this installation need not have."""
    needs_model = kind is not JobKind.SCRIPT
    job = services.job_submit(
        actor=work.actor,
        team=work.team,
        request=services.JobRequest(
            kind=kind,
            name=name,
            spec=spec or ({"argv": ["python", "count.py"]} if not needs_model else {}),
            queue=work.queue,
            engine="llm_compressor" if kind is JobKind.QUANTIZE else "transformers",
            model_version=work.model if needs_model else None,
            dataset_version=work.dataset if needs_model else None,
            output_name=output if kind in (JobKind.FINETUNE, JobKind.QUANTIZE) else "",
            cards=work.cards,
        ),
    )
    asked = {"chips": [work.chip], "priority": work.priority}
    Job.objects.filter(pk=job.pk).update(**asked, **_by_another_engine(job, chip=work.chip))
    Claim.objects.filter(owner_uid=job.attempts.get().uid).update(**asked)
    job.refresh_from_db()
    return job


def _by_another_engine(job: Job, *, chip: str) -> dict[str, Any]:
    """What fine-tunes there, where the engine of this machine does not."""
    if job.kind != JobKind.FINETUNE or chip != NPU:
        return {}
    spec = ports.engine_by_name("ms_swift").normalise(EngineTask.FINETUNE, job.spec)
    return {"engine": "ms_swift", "spec": dict(spec)}


def start(
    job: Job, *, at: datetime, fleet: Fleet, until: AttemptEvent = AttemptEvent.RUN
) -> Attempt:
    """Its newest attempt, with cards, as far as ``until``."""
    cycle_run(policy=SchedulingPolicy(), at=at)
    attempt = job.attempts.latest("number")
    claim = Claim.objects.get(uid=attempt.claim_uid)
    ready = at + timedelta(seconds=95)
    steps: list[tuple[AttemptEvent, datetime, str, dict[str, Any]]] = [
        (AttemptEvent.ADMIT, at, claim.explanation, {"chip": claim.chip, "admitted_at": at}),
        (AttemptEvent.LAUNCH, at + timedelta(seconds=4), sample_reason("launch.pod.preparing"), {}),
        (AttemptEvent.RUN, ready, sample_reason("launch.state.running"), {"started_at": ready}),
    ]
    for event, when, reason, changes in steps:
        services.attempt_transition(attempt, event, at=when, reason=reason, **changes)
        if event is until:
            break
    Attempt.objects.filter(pk=attempt.pk).update(cluster=cluster_of_claim(claim))
    job.refresh_from_db()
    if until is AttemptEvent.RUN:
        services.job_transition(
            job, JobEvent.START, at=ready, reason=sample_reason("launch.state.running")
        )
    attempt.refresh_from_db()
    return attempt


def report(
    attempt: Attempt,
    *,
    steps: int,
    total: int,
    at: datetime,
    floor: float = 0.31,
    seed: int = 1,
    checkpoint_every: int = 0,
) -> None:
    """A curve that falls, with the noise of a real one, and what it has printed so far."""
    chance = random.Random(seed)
    points, lines = [], ["loading the model", "1,440 rows to train on, 160 to validate on"]
    for step in range(5, steps + 1, 5):
        loss = floor + (2.6 - floor) * math.exp(-3.2 * step / total) * chance.uniform(0.93, 1.07)
        speed = 3150 * chance.uniform(0.95, 1.03)
        point: dict[str, object] = {
            "step": step,
            "total_steps": total,
            "epoch": round(3 * step / total, 3),
            "loss": round(loss, 4),
            "learning_rate": round(2e-4 * (1 - step / total), 8),
            "grad_norm": round(chance.uniform(0.4, 1.6), 3),
            "tokens_per_second": round(speed, 1),
            "eta_seconds": round((total - step) * 1.9, 1),
        }
        if step % 50 == 0:
            point["eval_loss"] = round(loss * 1.06, 4)
        if checkpoint_every and step % checkpoint_every == 0:
            point["checkpoint"] = {"step": step}
        points.append(point)
        lines.append(f"step {step}/{total}  loss {loss:.4f}  {speed:.0f} tokens/s")
    began = attempt.started_at or at
    for part in range(3 if points else 0):
        services.attempt_progress_store(
            attempt=attempt,
            points=points[len(points) * part // 3 : len(points) * (part + 1) // 3],
            at=began + (at - began) * (part + 1) / 3,
        )
    log = factories.stored("log", "\n".join(lines).encode() + b"\n")[1]
    Attempt.objects.filter(pk=attempt.pk).update(log_digest=log)
    attempt.refresh_from_db()


def succeed(job: Job, attempt: Attempt, *, at: datetime, loss: float) -> ModelVersion | None:
    services.attempt_transition(
        attempt,
        AttemptEvent.FINISH,
        at=at,
        reason=sample_reason("attempt.state.registering_outputs"),
    )
    origin = job_outputs.OutputOrigin(
        team=job.team, actor=job.created_by, job_uid=job.uid, attempt_uid=attempt.uid
    )
    version: ModelVersion | None = None
    said = sample_reason("attempt.output.files", count=2)
    if job.kind == JobKind.FINETUNE:
        version = registry.version(
            origin=origin,
            name=job.output_name,
            base=job.model_version,
            dataset=job.dataset_version,
            loss=loss,
        )
        said = sample_reason("attempt.output.version_created", version=str(version))
    elif job.kind == JobKind.EVALUATE:
        report_file = factories.stored("report.json", f'{{"exact_match": {loss}}}'.encode())
        job_outputs.evaluation_register(
            origin=origin,
            model_version=job.model_version,
            dataset_version=job.dataset_version,
            split="test",
            files=[report_file],
            metrics={"exact_match": loss, "perplexity": round(1 / loss, 3), "rows": 160},
        )
        said = sample_reason("attempt.output.evaluation", version=str(job.model_version))
    elif job.kind == JobKind.QUANTIZE:
        assert job.model_version is not None
        version = factories.quantized_version(
            actor=job.created_by,
            team=job.team,
            base=job.model_version,
            name=job.output_name,
            lost=loss,
            attempt=attempt,
        )
        said = sample_reason("attempt.output.version_created", version=str(version))
    else:
        files = [("lines.csv", b"province,rows\nZhejiang,412\n"), ("notes/summary.txt", b"1,600\n")]
        job_outputs.script_outputs_register(
            origin=origin, files=[factories.stored(*file) for file in files]
        )
    end(attempt, AttemptEvent.COMPLETE, JobEvent.SUCCEED, at=at, reason=said, exit_code=0)
    job.refresh_from_db()
    return version


def end(
    attempt: Attempt,
    event: AttemptEvent,
    job_event: JobEvent,
    *,
    at: datetime,
    reason: str,
    release: ReleaseReason = ReleaseReason.FINISHED,
    **changes: Any,
) -> None:
    services.attempt_end(
        attempt=attempt,
        event=event,
        job_event=job_event,
        at=at,
        reason=reason,
        release=release,
        **changes,
    )


def finetune(
    work: Work,
    name: str,
    *,
    days: float,
    fleet: Fleet,
    loss: float = 0.3,
    hours: float = 2,
    **how: Any,
) -> tuple[Job, ModelVersion]:
    """One that went well, that many days ago."""
    with ago(days=days):
        job = submit(work, name, **how)
    began = before(days=days) + timedelta(minutes=3)
    attempt = start(job, at=began, fleet=fleet)
    ended = began + timedelta(hours=hours)
    with ago(days=days - (hours / 24)):
        report(attempt, steps=600, total=600, at=ended, floor=loss, seed=round(loss * 1000))
        version = succeed(job, attempt, at=ended, loss=loss)
    assert version is not None
    return job, version
