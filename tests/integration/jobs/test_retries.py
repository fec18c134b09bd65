"""A job that is run again goes on from its newest checkpoints."""

from __future__ import annotations

import pytest

from apps.jobs import services
from controlplane.domain.jobs import JobState
from controlplane.domain.machines import IllegalTransition
from tests.integration.company import Company
from tests.integration.jobs.traces import moves


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
    assert moves(job) == ["start", "fail", "retry", "start", "succeed"]


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
