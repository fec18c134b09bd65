"""Two people, or two workers, at the same moment: exactly one wins."""

from __future__ import annotations

from apps.accounts.models import AuditEntry
from apps.jobs import services
from apps.jobs.models import Attempt, Job
from apps.jobs.reconcilers import attempts
from apps.models.models import ModelVersion
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.jobs.lifecycle import JobState
from tests.integration.company import Company
from tests.integration.threads import at_once, raised


def test_two_concurrent_cancels_make_one_request(committed_company: Company) -> None:
    company = committed_company
    job, _ = company.running()

    def cancel() -> bool:
        return services.job_cancel(job=job, actor=company.engineer, at=company.at)

    assert sorted(at_once(cancel, cancel, cancel), key=str) == [False, False, True]
    assert AuditEntry.objects.filter(action="job.cancel").count() == 1


def test_two_concurrent_retries_make_one_attempt(committed_company: Company) -> None:
    company = committed_company
    job, attempt = company.running()
    company.cluster.finish(attempt.launch_name, exit_code=1)
    company.turn_jobs()

    def retry() -> Attempt:
        fresh = Job.objects.get(pk=job.pk)
        return services.job_retry(job=fresh, actor=company.engineer, at=company.at)

    outcomes = at_once(retry, retry, retry)

    assert raised(outcomes, IllegalTransition) == 2
    assert list(job.attempts.values_list("number", flat=True)) == [1, 2]
    assert job.transitions.filter(event="retry").count() == 1


def test_a_concurrent_cancel_and_success_end_a_job_once(committed_company: Company) -> None:
    company = committed_company
    for _ in range(5):
        job, attempt = company.running()
        company.finish(attempt)

        def cancel(job: Job = job) -> object:
            return services.job_cancel(job=job, actor=company.engineer, at=company.at)

        def turn() -> object:
            company.turn_jobs()
            return None

        at_once(cancel, turn)
        company.turn_jobs()
        company.turn_jobs()

        job.refresh_from_db()
        versions = ModelVersion.objects.filter(attempt_uid=attempt.uid).count()
        assert (job.state, versions) in ((JobState.SUCCEEDED, 1), (JobState.CANCELLED, 0))
        ends = job.transitions.filter(event__in=("succeed", "cancel", "fail"))
        assert ends.count() == 1


def test_many_workers_turn_a_job_into_one_version(committed_company: Company) -> None:
    company = committed_company
    jobs = [company.submit(f"job {number}") for number in range(2)]
    company.schedule()
    company.turn_jobs()
    for attempt in Attempt.objects.all():
        company.cluster.run(attempt.launch_name)
        company.finish(attempt)

    def turn() -> int:
        return sum(attempts.attempts_reconcile(at=company.at) for _ in range(4))

    outcomes = at_once(turn, turn, turn, turn)

    assert raised(outcomes, Exception) == 0
    for job in jobs:
        job.refresh_from_db()
        assert job.state == JobState.SUCCEEDED
        assert job.transitions.filter(event="succeed").count() == 1
    numbers = ModelVersion.objects.filter(line__name="parser").values_list("number", flat=True)
    assert sorted(numbers) == [1, 2]
