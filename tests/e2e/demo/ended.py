"""Jobs of the past: what they made, and what they failed of."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from apps.jobs import services
from apps.jobs.models import Job
from apps.models.models import ModelVersion
from apps.quotas.models import Allocation
from controlplane.domain.jobs.lifecycle import AttemptEvent, JobEvent, JobKind
from controlplane.domain.quotas.claims import ReleaseReason
from controlplane.ports.clusters import ExitCause
from tests import factories
from tests.e2e.demo.clock import ago, before
from tests.e2e.demo.fleet import GPU, NPU, Fleet
from tests.e2e.demo.reasons import sample_reason
from tests.e2e.demo.work import Work, end, report, start, submit, succeed


def evaluations(work: Work, fleet: Fleet, versions: tuple[ModelVersion, ...]) -> Job:
    for number, version in enumerate(versions):
        with ago(days=5, hours=-number):
            job = submit(
                replace(work, model=version),
                f"measure {version}",
                kind=JobKind.EVALUATE,
                spec={"split": "test"},
            )
        at = before(days=5, hours=-number, minutes=-2)
        attempt = start(job, at=at, fleet=fleet)
        with ago(days=5, hours=-number, minutes=-20):
            report(attempt, steps=0, total=160, at=at)
            succeed(job, attempt, at=at + timedelta(minutes=18), loss=0.61 + number * 0.13)
    return job


def quantized(work: Work, fleet: Fleet) -> tuple[ModelVersion, ModelVersion]:
    """One that kept what it knew, and one that lost too much."""
    found = []
    for hours, name, scheme, lost in (
        (30, "address-parser-w8a8", "w8a8-smoothquant", 0.4),
        (26, "address-parser-w4a16", "w4a16-awq", 6.0),
    ):
        with ago(hours=hours):
            job = submit(
                work,
                f"quantize {work.model}",
                kind=JobKind.QUANTIZE,
                spec={"scheme": scheme, "max_length": 128},
                output=name,
            )
        attempt = start(job, at=before(hours=hours, minutes=-2), fleet=fleet)
        with ago(hours=hours, minutes=-9):
            version = succeed(job, attempt, at=before(hours=hours, minutes=-8), loss=lost)
        assert version is not None
        found.append(version)
    accepted, unfit = found
    return accepted, unfit


def script(work: Work, fleet: Fleet) -> Job:
    with ago(days=2):
        job = submit(work, "count rows by province", kind=JobKind.SCRIPT)
    at = before(days=2, minutes=-1)
    attempt = start(job, at=at, fleet=fleet)
    with ago(days=2, minutes=-6):
        report(attempt, steps=0, total=1, at=at)
        succeed(job, attempt, at=at + timedelta(minutes=5), loss=0)
    return job


def failed(work: Work, fleet: Fleet) -> Job:
    """Ran out of memory beside a fault of a card, was tried again in smaller batches, and ran out of disk."""
    with ago(hours=20):
        job = submit(
            replace(work, chip=NPU, cards=4), "longer sequences", output="address-parser-long"
        )
    for number, (hours, cause, said) in enumerate(
        (
            (20, ExitCause.OUT_OF_MEMORY, "it was killed for want of memory"),
            (7, ExitCause.DISK_FULL, sample_reason("attempt.exit.disk_full")),
        )
    ):
        attempt = start(job, at=before(hours=hours), fleet=fleet)
        at = before(hours=hours - 3)
        report(attempt, steps=180 + number * 90, total=600, at=at, floor=0.5, checkpoint_every=50)
        if number == 0:
            began = before(hours=18)
            factories.fault(
                Allocation.objects.filter(claim__uid=attempt.claim_uid)[0].card,
                code="80E01801",
                vendor="ascend",
                message="HBM multi-bit ECC error",
                at=began,
                ended_at=began + timedelta(minutes=20),
            )
        answer = services.out_of_memory_retry(attempt)
        no_memory = cause is ExitCause.OUT_OF_MEMORY
        end(
            attempt,
            AttemptEvent.FAIL,
            JobEvent.REQUEUE if no_memory else JobEvent.FAIL,
            at=at,
            reason=f"{said}; {answer.reason}" if no_memory else said,
            exit_code=137 if no_memory else 28,
            exit_cause=cause,
            overrides=answer.overrides if no_memory else None,
            log_tail="step 270/600  loss 0.9120\nOSError: [Errno 28] No space left on device",
        )
        job.refresh_from_db()
    return job


def cancelled(work: Work) -> Job:
    with ago(days=1, hours=3):
        job = submit(replace(work, chip=GPU, cards=8), "wrong dataset")
        services.job_cancel(job=job, actor=work.actor, at=before(days=1, hours=2))
    attempt = job.attempts.get()
    end(
        attempt,
        AttemptEvent.WITHDRAW,
        JobEvent.CANCEL,
        at=before(days=1, hours=2),
        reason=sample_reason("transition.by_user.cancelled", user=work.actor.username),
        release=ReleaseReason.CANCELLED,
    )
    job.refresh_from_db()
    return job


def history(work: Work, fleet: Fleet) -> None:
    """Enough of the past to turn its pages."""
    for number in range(24):
        days = 30 - number
        with ago(days=days):
            job = submit(work, f"nightly count {number + 1}", kind=JobKind.SCRIPT)
        at = before(days=days, minutes=-2)
        attempt = start(job, at=at, fleet=fleet)
        with ago(days=days, minutes=-4):
            succeed(job, attempt, at=at + timedelta(minutes=2), loss=0)
