"""Retries by hand and by policy continue from the newest checkpoint."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.models import AuditEntry
from apps.jobs import services
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors import latest_attempt
from apps.models.models import ModelVersion
from apps.quotas.models import Claim
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.jobs.lifecycle import AttemptState, JobState
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.ports.clusters import ExitCause
from tests.integration.company import Company
from tests.integration.jobs.records import claim_of, transition_events


def test_a_failed_job_resumes_from_its_checkpoints_when_it_is_retried(company: Company) -> None:
    job, first = company.running()
    company.cluster.finish(first.launch_name, exit_code=1)
    company.turn_jobs()

    second = services.job_retry(job=job, actor=company.engineer, at=company.at)
    company.schedule()
    company.turn_jobs()

    second.refresh_from_db()
    assert (second.number, second.continues) == (2, first)
    assert company.cluster.launched(second.launch_name).continues == first.launch_name
    company.cluster.run(second.launch_name)
    company.finish(second)
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert transition_events(job) == ["start", "fail", "retry", "start", "succeed"]


def test_an_attempt_that_never_ran_does_not_hide_older_checkpoints(company: Company) -> None:
    job, first = company.running()
    company.cluster.finish(first.launch_name, exit_code=1)
    company.turn_jobs()
    services.job_retry(job=job, actor=company.engineer, at=company.at)
    company.schedule()
    services.job_cancel(job=job, actor=company.engineer, at=company.at)
    company.turn_jobs()
    company.turn_jobs()

    third = services.job_retry(job=job, actor=company.engineer, at=company.at)

    assert third.number == 3
    assert third.continues == first


def test_a_job_without_a_retryable_end_cannot_be_retried(company: Company) -> None:
    job, attempt = company.running()
    with pytest.raises(IllegalTransition, match="a job that is running cannot retry"):
        services.job_retry(job=job, actor=company.engineer, at=company.at)
    company.finish(attempt)
    company.turn_jobs()
    with pytest.raises(IllegalTransition, match="a job that is succeeded cannot retry"):
        services.job_retry(job=job, actor=company.engineer, at=company.at)


def fail(company: Company, attempt: Attempt, **ending: Any) -> Attempt:
    """Let its processes end like that; return the newest attempt then."""
    company.cluster.finish(attempt.launch_name, **ending)
    company.turn_jobs()
    attempt.refresh_from_db()
    return latest_attempt(attempt.job)


def start(company: Company, attempt: Attempt) -> None:
    """Let the back-off pass, and everything run."""
    company.later(timedelta(hours=1))
    company.turn_jobs()
    company.schedule()
    company.turn_jobs()
    company.cluster.run(attempt.launch_name)
    company.turn_jobs()
    attempt.refresh_from_db()
    assert attempt.state == AttemptState.RUNNING


def test_a_killed_job_is_retried_after_its_back_off_from_its_checkpoint(company: Company) -> None:
    job, first = company.running()
    placed = claim_of(first).created_at

    second = fail(company, first, exit_code=137, message="killed by SIGKILL")

    job.refresh_from_db()
    assert (first.state, first.exit_cause) == (AttemptState.FAILED, ExitCause.KILLED)
    assert claim_of(first).release_reason == ReleaseReason.FINISHED
    assert (job.state, job.state_reason) == (
        JobState.WAITING,
        "killed by SIGKILL; retry 1 of 3 starts in 10 s",
    )
    assert (second.state, second.continues, second.retries, second.retry_cause) == (
        AttemptState.PENDING,
        first,
        1,
        "killed",
    )
    assert second.starts_after == company.at + timedelta(seconds=10)
    company.later(timedelta(seconds=9))
    company.turn_jobs()
    assert not Claim.objects.exclude(state=ClaimState.RELEASED).exists()

    company.later(timedelta(seconds=1))
    company.turn_jobs()
    second.refresh_from_db()
    job.refresh_from_db()
    assert claim_of(second).state == ClaimState.PENDING
    assert claim_of(second).in_line_since == placed
    assert job.state_reason == "waiting for cards"
    start(company, second)
    assert company.cluster.launched(second.launch_name).continues == first.launch_name
    company.finish(second)
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert transition_events(job) == ["start", "requeue", "start", "succeed"]
    assert ModelVersion.objects.filter(attempt_uid__in=(first.uid, second.uid)).count() == 1
    assert not Claim.objects.exclude(state=ClaimState.RELEASED).exists()


def test_every_retry_is_an_audit_event_of_the_system(company: Company) -> None:
    job, first = company.running()
    fail(company, first, exit_code=143)

    entry = AuditEntry.objects.get(action="job.auto_retry")
    assert (entry.actor_name, entry.object_uid, entry.team) == ("system", job.uid, job.team)
    assert entry.detail == {"attempt": 2, "retry": 1, "max_retries": 3, "cause": "killed"}


def test_exhausted_retries_fail_the_job_with_their_number_and_the_last_cause(
    company: Company,
) -> None:
    job, attempt = company.running(retry_policy={"max_retries": 2, "backoff_seconds": 5})
    for seconds in (5, 10):
        attempt = fail(company, attempt, exit_code=137, message="killed by SIGKILL")
        assert attempt.starts_after == company.at + timedelta(seconds=seconds)
        start(company, attempt)

    fail(company, attempt, exit_code=137, message="killed by SIGKILL")

    job.refresh_from_db()
    assert (job.state, job.state_reason) == (
        JobState.FAILED,
        "killed by SIGKILL; failed after 2 of 2 retries, last cause: killed",
    )
    assert job.attempts.count() == 3


@pytest.mark.parametrize(
    ("ending", "log", "cause"),
    [
        ({"cause": ExitCause.NOT_PREPARED}, b"", "environment_error"),
        ({"exit_code": 137}, b"", "killed"),
        ({"exit_code": 1}, b"Signal 9 (SIGKILL) received by PID 71\n", "killed"),
        ({"exit_code": 1}, b"ValueError: no rows\n", ""),
        ({"exit_code": 134}, b"", ""),
        ({"exit_code": 137, "cause": ExitCause.OUT_OF_MEMORY}, b"", ""),
        ({"exit_code": 28, "cause": ExitCause.DISK_FULL}, b"", ""),
        ({"exit_code": 143, "cause": ExitCause.OUT_OF_TIME}, b"", ""),
    ],
)
def test_the_default_policy_retries_infrastructure_failures_only(
    company: Company, ending: dict[str, Any], log: bytes, cause: str
) -> None:
    job, attempt = company.running()
    company.cluster.write_log(attempt.launch_name, log)

    newest = fail(company, attempt, **ending)

    job.refresh_from_db()
    assert newest.retry_cause == cause
    assert job.state == (JobState.WAITING if cause else JobState.FAILED)


def test_a_crash_of_the_hardware_is_retried_where_no_card_was_isolated_for_it(
    company: Company,
) -> None:
    _, attempt = company.running()
    company.cluster.write_log(attempt.launch_name, b"uncorrectable ECC error encountered\n")
    assert fail(company, attempt, exit_code=1) == attempt
    company.later(timedelta(minutes=1))
    company.turn_jobs()

    assert latest_attempt(attempt.job).retry_cause == "hardware_error"


def test_user_errors_are_retried_if_the_policy_allows_it(company: Company) -> None:
    _, attempt = company.running(retry_policy={"retry_on": ["user_error"], "backoff_seconds": 0})
    second = fail(company, attempt, exit_code=1)
    assert (second.number, second.retry_cause) == (2, "user_error")
    start(company, second)
    assert fail(company, second, exit_code=137) == second


def test_a_cancelled_job_does_not_wait_for_its_back_off(company: Company) -> None:
    job, first = company.running()
    second = fail(company, first, exit_code=137)

    services.job_cancel(job=job, actor=company.engineer, at=company.at)
    company.turn_jobs()

    job.refresh_from_db()
    second.refresh_from_db()
    assert (job.state, second.state) == (JobState.CANCELLED, AttemptState.STOPPED)
    company.later(timedelta(hours=1))
    company.turn_jobs()
    assert job.attempts.count() == 2
    assert not Claim.objects.exclude(state=ClaimState.RELEASED).exists()


def test_a_job_that_is_being_cancelled_is_not_retried(company: Company) -> None:
    job, attempt = company.running()
    services.job_cancel(job=job, actor=company.engineer, at=company.at)

    assert fail(company, attempt, exit_code=137) == attempt
    company.turn_jobs()

    job.refresh_from_db()
    assert job.state == JobState.CANCELLED


def test_a_lost_node_requeues_without_a_retry_and_keeps_their_number(company: Company) -> None:
    _, first = company.running()
    second = fail(company, first, exit_code=137)
    start(company, second)
    company.cluster.lose(second.launch_name)
    company.turn_jobs()

    third = latest_attempt(first.job)
    assert (third.number, third.retries, third.retry_cause) == (3, 1, "")
    assert claim_of(third).state == ClaimState.PENDING


def test_a_manual_retry_resets_the_retry_count(company: Company) -> None:
    job, attempt = company.running(retry_policy={"max_retries": 1})
    second = fail(company, attempt, exit_code=137)
    start(company, second)
    fail(company, second, exit_code=137)

    by_hand = services.job_retry(job=job, actor=company.engineer, at=company.at)

    assert (by_hand.retries, by_hand.retry_cause) == (0, "")
    assert claim_of(by_hand).state == ClaimState.PENDING


def test_a_job_of_an_older_release_has_the_default_policy(company: Company) -> None:
    _, attempt = company.running()
    Job.objects.update(retry_policy={})

    assert fail(company, attempt, exit_code=137).retries == 1
