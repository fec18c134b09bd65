"""Jobs in every state, with curves, logs and reasons that look like those of real ones."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

from apps.accounts.models import Team, User
from apps.jobs import services
from apps.jobs.models import Attempt, AttemptTransition, Job
from apps.models.models import DatasetVersion, ModelVersion
from apps.models.services import outputs
from apps.quotas.models import Claim, Queue
from apps.quotas.reconcilers import cycle_run
from apps.quotas.selectors import cluster_of
from controlplane.domain.claims import ReleaseReason
from controlplane.domain.jobs import AttemptEvent, JobEvent, JobKind
from controlplane.domain.scheduling.cycle import Policy
from tests import factories
from tests.e2e.demo import registry
from tests.e2e.demo.clock import NOW, ago, before
from tests.e2e.demo.fleet import GPU, NPU, Fleet
from tests.e2e.demo.people import People
from tests.e2e.demo.registry import Registry


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    waiting: Job
    preparing: Job
    running: Job
    stopping: Job
    failed: Job
    cancelled: Job
    succeeded: Job
    #: Fine-tunes that began from the same version: worth comparing.
    siblings: tuple[Job, ...]
    evaluation: Job
    script: Job
    #: Of Search.
    theirs: Job
    tuned: ModelVersion
    theirs_tuned: ModelVersion


def submit(
    work: Work,
    name: str,
    *,
    kind: JobKind = JobKind.FINETUNE,
    spec: Mapping[str, Any] | None = None,
    output: str = "address-parser",
) -> Job:
    """A job that waits; asked for on a chip that this installation need not have."""
    wants_model = kind is not JobKind.SCRIPT
    job = services.job_submit(
        actor=work.actor,
        team=work.team,
        request=services.JobRequest(
            kind=kind,
            name=name,
            spec=spec or ({"argv": ["python", "count.py"]} if not wants_model else {}),
            queue=work.queue,
            model_version=work.model if wants_model else None,
            dataset_version=work.dataset if wants_model else None,
            output_name=output if kind is JobKind.FINETUNE else "",
            cards=work.cards,
        ),
    )
    asked = {"chips": [work.chip], "priority": work.priority}
    Job.objects.filter(pk=job.pk).update(**asked)
    Claim.objects.filter(owner_uid=job.attempts.get().uid).update(**asked)
    job.refresh_from_db()
    return job


def start(
    job: Job, *, at: datetime, fleet: Fleet, until: AttemptEvent = AttemptEvent.RUN
) -> Attempt:
    """Its newest attempt, with cards, as far as ``until``."""
    cycle_run(policy=Policy(), at=at)
    attempt = job.attempts.latest("number")
    claim = Claim.objects.get(uid=attempt.claim_uid)
    ready = at + timedelta(seconds=95)
    steps: list[tuple[AttemptEvent, datetime, str, dict[str, Any]]] = [
        (AttemptEvent.ADMIT, at, claim.explanation, {"chip": claim.chip, "admitted_at": at}),
        (AttemptEvent.LAUNCH, at + timedelta(seconds=4), "preparing the environment", {}),
        (AttemptEvent.RUN, ready, "running", {"started_at": ready}),
    ]
    for event, when, reason, changes in steps:
        services.attempt_move(attempt, event, at=when, reason=reason, **changes)
        if event is until:
            break
    Attempt.objects.filter(pk=attempt.pk).update(cluster=cluster_of(claim))
    job.refresh_from_db()
    if until is AttemptEvent.RUN:
        services.job_move(job, JobEvent.START, at=ready, reason="running")
    attempt.refresh_from_db()
    return attempt


def report(
    attempt: Attempt, *, steps: int, total: int, at: datetime, floor: float = 0.31, seed: int = 1
) -> None:
    """A curve that falls, with the noise of a real one, and what it has printed so far."""
    chance = random.Random(seed)
    points, lines = [], ["loading the model", "1,440 rows to train on, 160 to validate on"]
    for step in range(5, steps + 1, 5):
        loss = floor + (2.6 - floor) * math.exp(-3.2 * step / total) * chance.uniform(0.93, 1.07)
        speed = 3150 * chance.uniform(0.95, 1.03)
        point = {
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
        points.append(point)
        lines.append(f"step {step}/{total}  loss {loss:.4f}  {speed:.0f} tokens/s")
    if points:
        services.progress_record(attempt=attempt, points=points, at=at)
    log = factories.stored("log", "\n".join(lines).encode() + b"\n")[1]
    Attempt.objects.filter(pk=attempt.pk).update(log_digest=log)
    attempt.refresh_from_db()


def succeed(job: Job, attempt: Attempt, *, at: datetime, loss: float) -> ModelVersion | None:
    services.attempt_move(attempt, AttemptEvent.FINISH, at=at, reason="registering what it made")
    origin = outputs.Origin(
        team=job.team, actor=job.created_by, job_uid=job.uid, attempt_uid=attempt.uid
    )
    made: ModelVersion | None = None
    said = "made 2 files"
    if job.kind == JobKind.FINETUNE:
        made = registry.version(
            origin=origin,
            name=job.output_name,
            base=job.model_version,
            dataset=job.dataset_version,
            loss=loss,
        )
        said = f"made {made}"
    elif job.kind == JobKind.EVALUATE:
        report_file = factories.stored("report.json", f'{{"exact_match": {loss}}}'.encode())
        outputs.evaluation_register(
            origin=origin,
            model_version=job.model_version,
            dataset_version=job.dataset_version,
            split="test",
            files=[report_file],
            metrics={"exact_match": loss, "perplexity": round(1 / loss, 3), "rows": 160},
        )
        said = f"evaluated {job.model_version} on {job.dataset_version}"
    else:
        files = [("lines.csv", b"province,rows\nZhejiang,412\n"), ("notes/summary.txt", b"1,600\n")]
        outputs.outputs_register(origin=origin, files=[factories.stored(*file) for file in files])
    _end(attempt, AttemptEvent.COMPLETE, JobEvent.SUCCEED, at=at, reason=said, exit_code=0)
    job.refresh_from_db()
    return made


def _end(
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
        made = succeed(job, attempt, at=ended, loss=loss)
    assert made is not None
    return job, made


def jobs(people: People, fleet: Fleet, known: Registry) -> Jobs:
    work = Work(
        actor=people.ada,
        team=people.maps,
        queue=fleet.maps,
        model=known.base,
        dataset=known.addresses,
    )
    first, v1 = finetune(work, "first try", days=60, fleet=fleet, loss=0.62)
    _again, v2 = finetune(replace(work, model=v1), "more rows", days=33, fleet=fleet, loss=0.44)
    siblings = []
    tuned = v2
    for number, (rate, loss) in enumerate(((1e-4, 0.36), (2e-4, 0.29), (4e-4, 0.41))):
        job, made = finetune(
            replace(work, model=v2),
            f"learning rate {rate:g}",
            days=6 - number / 4,
            fleet=fleet,
            loss=loss,
            spec={"learning_rate": rate},
        )
        siblings.append(job)
        tuned = made if loss < 0.3 else tuned
    theirs, theirs_tuned = finetune(
        Work(
            actor=people.noor,
            team=people.search,
            queue=fleet.default,
            model=known.base,
            dataset=known.queries,
        ),
        "rewrite queries",
        days=12,
        fleet=fleet,
        output="query-rewriter",
    )
    evaluation = _evaluations(work, fleet, (v1, v2, tuned))
    script = _script(work, fleet)
    _history(work, fleet)
    failed = _failed(work, fleet)
    _others(work, people, fleet, known)
    running = _running(replace(work, model=tuned), fleet)
    return Jobs(
        preparing=_preparing(work, fleet),
        running=running,
        stopping=_stopping(work, fleet),
        failed=failed,
        cancelled=_cancelled(work),
        waiting=_pressure(work, people, fleet, known),
        succeeded=siblings[1],
        siblings=(first, *siblings),
        evaluation=evaluation,
        script=script,
        theirs=theirs,
        tuned=tuned,
        theirs_tuned=theirs_tuned,
    )


def _evaluations(work: Work, fleet: Fleet, versions: tuple[ModelVersion, ...]) -> Job:
    for number, made in enumerate(versions):
        with ago(days=5, hours=-number):
            job = submit(
                replace(work, model=made),
                f"measure {made}",
                kind=JobKind.EVALUATE,
                spec={"split": "test"},
            )
        at = before(days=5, hours=-number, minutes=-2)
        attempt = start(job, at=at, fleet=fleet)
        with ago(days=5, hours=-number, minutes=-20):
            report(attempt, steps=0, total=160, at=at)
            succeed(job, attempt, at=at + timedelta(minutes=18), loss=0.61 + number * 0.13)
    return job


def _script(work: Work, fleet: Fleet) -> Job:
    with ago(days=2):
        job = submit(work, "count rows by province", kind=JobKind.SCRIPT)
    at = before(days=2, minutes=-1)
    attempt = start(job, at=at, fleet=fleet)
    with ago(days=2, minutes=-6):
        report(attempt, steps=0, total=1, at=at)
        succeed(job, attempt, at=at + timedelta(minutes=5), loss=0)
    return job


def _failed(work: Work, fleet: Fleet) -> Job:
    """Ran out of memory, was retried, and ran out of disk."""
    with ago(hours=20):
        job = submit(
            replace(work, chip=NPU, cards=4), "longer sequences", output="address-parser-long"
        )
    for number, (hours, cause, said) in enumerate(
        (
            (20, "oom", "ended with exit code 137: it was killed for want of memory"),
            (7, "program", "ended with exit code 28: the disk is full"),
        )
    ):
        if number:
            services.job_retry(job=job, actor=work.actor, at=before(hours=hours))
        attempt = start(job, at=before(hours=hours), fleet=fleet)
        at = before(hours=hours - 3)
        report(attempt, steps=180 + number * 90, total=600, at=at, floor=0.5)
        _end(
            attempt,
            AttemptEvent.FAIL,
            JobEvent.FAIL,
            at=at,
            reason=said,
            exit_code=137 if cause == "oom" else 28,
            exit_cause=cause,
            log_tail="step 270/600  loss 0.9120\nOSError: [Errno 28] No space left on device",
        )
        job.refresh_from_db()
    return job


def _cancelled(work: Work) -> Job:
    with ago(days=1, hours=3):
        job = submit(replace(work, chip=GPU, cards=8), "wrong dataset")
        services.job_cancel(job=job, actor=work.actor, at=before(days=1, hours=2))
    attempt = job.attempts.get()
    _end(
        attempt,
        AttemptEvent.WITHDRAW,
        JobEvent.CANCEL,
        at=before(days=1, hours=2),
        reason=f"cancelled by {work.actor.username}",
        release=ReleaseReason.CANCELLED,
    )
    job.refresh_from_db()
    return job


def _running(work: Work, fleet: Fleet) -> Job:
    """The last of them is the one to look at."""
    kinds = (
        ("long context", GPU, 8, 130, 900),
        ("distil to half the size", NPU, 16, 700, 900),
        ("teach addresses", GPU, 4, 420, 600),
    )
    for number, (name, chip, cards, steps, total) in enumerate(kinds):
        hours = 3.2 - number
        with ago(hours=hours, minutes=12):
            job = submit(
                replace(work, chip=chip, cards=min(cards, 8)),
                name,
                output=f"address-parser-{chip[7:10]}",
            )
        attempt = start(job, at=before(hours=hours), fleet=fleet)
        report(
            attempt, steps=steps, total=total, at=before(seconds=4), floor=0.24, seed=number + 40
        )
    return job


def _preparing(work: Work, fleet: Fleet) -> Job:
    with ago(minutes=2):
        job = submit(replace(work, chip=GPU, cards=2), "quick check", output="scratch")
    start(job, at=before(minutes=1), fleet=fleet, until=AttemptEvent.LAUNCH)
    return job


def _stopping(work: Work, fleet: Fleet) -> Job:
    with ago(hours=1):
        job = submit(replace(work, chip=NPU, cards=2), "sweep 7 of 20", output="scratch")
    attempt = start(job, at=before(minutes=55), fleet=fleet)
    report(attempt, steps=60, total=600, at=before(minutes=2), floor=0.7, seed=77)
    services.job_cancel(job=job, actor=work.actor, at=before(seconds=20))
    attempt.refresh_from_db()
    services.attempt_move(
        attempt,
        AttemptEvent.STOP,
        at=before(seconds=15),
        reason=f"stopping: cancelled by {work.actor.username}",
        stop_reason="cancelled",
    )
    assert AttemptTransition.objects.filter(entity=attempt).exists()
    job.refresh_from_db()
    return job


def _others(work: Work, people: People, fleet: Fleet, known: Registry) -> None:
    """What another team runs: most of the sample cards."""
    voice = replace(
        work, actor=people.lin, team=people.voice, queue=fleet.default, model=known.other_base
    )
    asked = [
        ("speaker labels", GPU, 8, 9.0),
        ("noise at 0 dB", GPU, 4, 8.0),
        ("dialects", NPU, 8, 5.0),
    ]
    for name, chip, cards, hours in asked:
        with ago(hours=hours):
            job = submit(replace(voice, chip=chip, cards=cards), name, output="scratch")
        attempt = start(job, at=before(hours=hours), fleet=fleet)
        report(attempt, steps=90, total=600, at=before(seconds=9), seed=cards)


def _history(work: Work, fleet: Fleet) -> None:
    """Enough of the past to turn its pages."""
    for number in range(24):
        days = 30 - number
        with ago(days=days):
            job = submit(work, f"nightly count {number + 1}", kind=JobKind.SCRIPT)
        at = before(days=days, minutes=-2)
        attempt = start(job, at=at, fleet=fleet)
        with ago(days=days, minutes=-4):
            succeed(job, attempt, at=at + timedelta(minutes=2), loss=0)


def _pressure(work: Work, people: People, fleet: Fleet, known: Registry) -> Job:
    """More is asked for than there is, by three teams; the last is the one to look at."""
    theirs = replace(
        work, actor=people.noor, team=people.search, queue=fleet.search, dataset=known.queries
    )
    voice = replace(
        work, actor=people.lin, team=people.voice, queue=fleet.default, model=known.other_base
    )
    asked = (
        (theirs, "nightly rewrites", GPU, 8, 5.0),
        (replace(voice, priority=5), "punctuation", GPU, 8, 3.5),
        (voice, "accents of the south", NPU, 8, 2.0),
        (work, "all provinces at once", GPU, 8, 1.5),
        (work, "bigger batch", NPU, 8, 0.6),
    )
    for owner, name, chip, cards, hours in asked:
        with ago(hours=hours):
            job = submit(replace(owner, chip=chip, cards=cards), name, output="scratch")
    cycle_run(policy=Policy(), at=NOW)
    for attempt in Attempt.objects.filter(state="pending"):
        claim = Claim.objects.get(uid=attempt.claim_uid)
        Attempt.objects.filter(pk=attempt.pk).update(message=claim.explanation)
    return job
