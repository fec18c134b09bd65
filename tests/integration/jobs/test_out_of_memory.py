"""A fine-tune that runs out of memory is tried again in smaller pieces, and no smaller than one row."""

from __future__ import annotations

import json
from typing import Any

import pytest

from apps.jobs import services
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors import latest_attempt
from apps.quotas.models import Allocation
from controlplane.domain.jobs.lifecycle import AttemptState, JobKind, JobState
from controlplane.domain.jobs.retries import OUT_OF_MEMORY_ADVICE, smaller_batch_fields
from controlplane.ports.clusters import ExitCause
from tests.integration.company import Company

SPEC = {"batch_size": 4, "gradient_accumulation": 2, "out_of_memory_retries": 1}


def run_out_of_memory(company: Company, attempt: Attempt) -> None:
    company.cluster.finish(
        attempt.launch_name, exit_code=12, cause=ExitCause.OUT_OF_MEMORY, message="no memory left"
    )
    company.turn_jobs()


def next_run(company: Company, job: Job) -> Attempt:
    company.schedule()
    company.turn_jobs()
    attempt = latest_attempt(job)
    company.cluster.run(attempt.launch_name)
    company.turn_jobs()
    attempt.refresh_from_db()
    return attempt


def rendered_spec(company: Company, attempt: Attempt) -> dict[str, Any]:
    launch = company.cluster.launched(attempt.launch_name)
    spec: dict[str, Any] = json.loads(launch.files["spec.json"])
    return spec


def test_it_runs_again_with_half_the_batch_from_its_checkpoint(company: Company) -> None:
    job, first = company.running(spec=SPEC)
    run_out_of_memory(company, first)
    job.refresh_from_db()
    first.refresh_from_db()
    assert first.state == AttemptState.FAILED
    assert first.exit_cause == ExitCause.OUT_OF_MEMORY
    assert job.state == JobState.WAITING
    assert job.state_reason == (
        "no memory left; retrying with batch_size 4 → 2 and gradient_accumulation 2 → 4"
    )
    assert not Allocation.objects.filter(claim__uid=first.claim_uid, released_at=None).exists()

    second = next_run(company, job)
    assert second.number == 2
    assert second.continues == first
    assert second.overrides == {"batch_size": 2, "gradient_accumulation": 4}
    assert company.cluster.launched(second.launch_name).continues == first.launch_name
    assert rendered_spec(company, second) == {
        **job.spec,
        "batch_size": 2,
        "gradient_accumulation": 4,
    }
    job.refresh_from_db()
    # What was asked for stays as it was asked.
    assert job.spec["batch_size"] == 4

    company.finish(second)
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED


def test_it_fails_with_advice_after_the_last_retry(company: Company) -> None:
    job, first = company.running(spec=SPEC)
    run_out_of_memory(company, first)
    run_out_of_memory(company, next_run(company, job))
    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert job.attempts.count() == 2
    assert job.state_reason == (
        "no memory left; batch_size 2 is still too large after 1 retries; run the job again with "
        "batch_size 1 and gradient_accumulation 8"
    )


def test_a_batch_of_one_example_is_not_reduced(company: Company) -> None:
    job, first = company.running(spec={**SPEC, "batch_size": 2, "out_of_memory_retries": 3})
    run_out_of_memory(company, first)
    second = next_run(company, job)
    assert rendered_spec(company, second)["batch_size"] == 1
    run_out_of_memory(company, second)
    job.refresh_from_db()
    assert (job.state, job.attempts.count()) == (JobState.FAILED, 2)
    assert job.state_reason == f"no memory left; {OUT_OF_MEMORY_ADVICE}"


def test_a_manual_retry_keeps_the_smaller_batches(company: Company) -> None:
    job, first = company.running(spec=SPEC)
    run_out_of_memory(company, first)
    run_out_of_memory(company, next_run(company, job))
    job.refresh_from_db()
    third = services.job_retry(job=job, actor=company.engineer, at=company.at)
    assert third.overrides == {"batch_size": 2, "gradient_accumulation": 4}


def test_a_spec_can_disable_out_of_memory_retries(company: Company) -> None:
    job, first = company.running(spec={**SPEC, "out_of_memory_retries": 0})
    run_out_of_memory(company, first)
    job.refresh_from_db()
    assert (job.state, job.attempts.count()) == (JobState.FAILED, 1)


def test_an_out_of_memory_evaluation_is_not_retried(company: Company) -> None:
    job, first = company.running(kind=JobKind.EVALUATE, spec=SPEC)
    run_out_of_memory(company, first)
    job.refresh_from_db()
    assert (job.state, job.attempts.count()) == (JobState.FAILED, 1)


@pytest.mark.parametrize(
    "line",
    [
        b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n",
        b"RuntimeError: NPU out of memory. Tried to allocate 96.00 MiB (NPU 0; 60.97 GiB)\n",
    ],
)
def test_out_of_memory_is_detected_in_the_logs_of_other_engines(
    company: Company, line: bytes
) -> None:
    job, first = company.running(spec=SPEC)
    company.cluster.write_log(first.launch_name, b"step 1\n" + line)
    company.cluster.finish(first.launch_name, exit_code=1)
    company.turn_jobs()
    first.refresh_from_db()
    assert first.exit_cause == ExitCause.OUT_OF_MEMORY
    assert next_run(company, job).overrides == {"batch_size": 2, "gradient_accumulation": 4}


def test_a_cancelled_job_is_not_retried_after_out_of_memory(company: Company) -> None:
    job, first = company.running(spec=SPEC)
    company.cluster.finish(first.launch_name, exit_code=12, cause=ExitCause.OUT_OF_MEMORY)
    services.job_cancel(job=job, actor=company.engineer, at=company.at)
    company.turn_jobs()
    company.turn_jobs()
    job.refresh_from_db()
    assert (job.state, job.attempts.count()) == (JobState.CANCELLED, 1)


@pytest.mark.parametrize(
    ("batch", "accumulation", "expected"),
    [
        (8, 1, (4, 2)),
        (4, 2, (2, 4)),
        (3, 1, (1, 3)),
        (7, 8, (2, 28)),
        (2, 1, (1, 2)),
        (1, 16, None),
    ],
)
def test_a_step_sees_as_many_examples_with_smaller_batches(
    batch: int, accumulation: int, expected: tuple[int, int] | None
) -> None:
    found = smaller_batch_fields({"batch_size": batch, "gradient_accumulation": accumulation})
    assert found == (
        None
        if expected is None
        else {"batch_size": expected[0], "gradient_accumulation": expected[1]}
    )
