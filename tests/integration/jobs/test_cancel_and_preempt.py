"""Cancelling at every state, and taking cards back."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from apps.accounts.models import AuditEntry
from apps.fleet.models import Cluster
from apps.jobs import selectors, services
from apps.jobs.models import Attempt, Job
from apps.jobs.reconcilers import launches
from apps.quotas import services as quotas
from apps.quotas.models import Allocation
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.jobs.lifecycle import AttemptState, JobState
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.ports.clusters import ReplicaPhase
from tests.integration.company import Company
from tests.integration.jobs.records import claim_of


def pending(company: Company) -> tuple[Job, Attempt]:
    job = company.submit()
    return job, selectors.latest_attempt(job)


def admitted_unseen(company: Company) -> tuple[Job, Attempt]:
    """The scheduler gave it cards; no turn of the job has noticed."""
    job = company.submit()
    company.schedule()
    return job, selectors.latest_attempt(job)


def admitted(company: Company) -> tuple[Job, Attempt]:
    job, attempt = admitted_unseen(company)
    company.cluster.lose_contact()
    company.turn_jobs()
    company.cluster.regain_contact()
    return job, attempt


def launched(company: Company) -> tuple[Job, Attempt]:
    return company.launched()


def running(company: Company) -> tuple[Job, Attempt]:
    return company.running()


def ended_badly_unseen(company: Company) -> tuple[Job, Attempt]:
    job, attempt = company.running()
    company.cluster.finish(attempt.launch_name, exit_code=1)
    return job, attempt


@pytest.mark.parametrize(
    ("reach", "state"),
    [
        (pending, AttemptState.PENDING),
        (admitted_unseen, AttemptState.PENDING),
        (admitted, AttemptState.ADMITTED),
        (launched, AttemptState.LAUNCHED),
        (running, AttemptState.RUNNING),
        (ended_badly_unseen, AttemptState.RUNNING),
    ],
)
def test_a_job_can_be_cancelled_at_every_state(
    company: Company, reach: Callable[[Company], tuple[Job, Attempt]], state: AttemptState
) -> None:
    job, attempt = reach(company)
    attempt.refresh_from_db()
    assert attempt.state == state

    assert services.job_cancel(job=job, actor=company.engineer, at=company.at)
    for _ in range(3):
        company.turn_jobs()

    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, job.state_reason) == (JobState.CANCELLED, "cancelled by mei")
    assert attempt.state == AttemptState.STOPPED
    claim = claim_of(attempt)
    assert (claim.state, claim.release_reason) == (ClaimState.RELEASED, ReleaseReason.CANCELLED)
    assert not Allocation.objects.filter(released_at=None).exists()
    assert company.phase_of(attempt.launch_name) in (None, ReplicaPhase.EXITED)
    assert AuditEntry.objects.filter(action="job.cancel").count() == 1


def test_a_preempted_pending_job_can_be_cancelled(company: Company) -> None:
    job, attempt = company.running()
    revoke(company, attempt)
    company.turn_jobs()
    company.turn_jobs()

    services.job_cancel(job=job, actor=company.engineer, at=company.at)
    company.turn_jobs()

    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert set(job.attempts.values_list("state", flat=True)) == {AttemptState.STOPPED}


def test_a_cancel_during_output_registration_is_too_late(company: Company) -> None:
    job, attempt = company.running()
    company.finish(attempt)
    company.turn_jobs()

    with pytest.raises(IllegalTransition, match="a job that is succeeded cannot cancel"):
        services.job_cancel(job=job, actor=company.engineer, at=company.at)


def test_a_second_cancel_changes_nothing(company: Company) -> None:
    job, _ = company.running()

    assert services.job_cancel(job=job, actor=company.engineer, at=company.at)
    assert not services.job_cancel(job=job, actor=company.engineer, at=company.at)

    assert AuditEntry.objects.filter(action="job.cancel").count() == 1


def test_cards_stay_held_until_the_processes_are_gone(company: Company) -> None:
    company.cluster.obedient = False
    job, attempt = company.running()
    services.job_cancel(job=job, actor=company.engineer, at=company.at)

    company.turn_jobs()
    company.turn_jobs()

    attempt.refresh_from_db()
    job.refresh_from_db()
    assert (attempt.state, job.state) == (AttemptState.STOPPING, JobState.RUNNING)
    assert Allocation.objects.filter(released_at=None).count() == 1
    company.cluster.finish(attempt.launch_name, exit_code=137)
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
    assert not Allocation.objects.filter(released_at=None).exists()


def revoke(company: Company, attempt: Attempt, reason: str = "a larger job needs the card") -> None:
    quotas.claim_revoke(
        claim=claim_of(attempt),
        reason=ReleaseReason.PREEMPTED,
        grace=timedelta(seconds=30),
        at=company.at,
        explanation=reason,
    )


def test_a_preempted_job_is_requeued_and_continues_from_its_checkpoints(company: Company) -> None:
    job, first = company.running()

    revoke(company, first)
    company.turn_jobs()
    first.refresh_from_db()
    assert (first.state, first.stop_reason) == (AttemptState.STOPPING, "preempted")
    company.turn_jobs()

    job.refresh_from_db()
    assert (job.state, job.state_reason) == ("waiting", "waiting for cards again (preempted)")
    assert job.ended_at is None
    second = selectors.latest_attempt(job)
    assert (second.number, second.continues, second.state) == (2, first, "pending")
    claim = claim_of(first)
    assert (claim.state, claim.release_reason) == (ClaimState.RELEASED, ReleaseReason.PREEMPTED)
    company.schedule()
    company.turn_jobs()
    assert company.cluster.launched(second.launch_name).continues == first.launch_name


@pytest.mark.parametrize("reach", [admitted_unseen, admitted, launched])
def test_a_claim_revoked_before_the_job_runs_sends_it_back_to_the_queue(
    company: Company, reach: Callable[[Company], tuple[Job, Attempt]]
) -> None:
    job, first = reach(company)

    revoke(company, first)
    for _ in range(3):
        company.turn_jobs()

    job.refresh_from_db()
    first.refresh_from_db()
    assert (job.state, first.state) == (JobState.WAITING, AttemptState.STOPPED)
    second = selectors.latest_attempt(job)
    assert (second.number, second.continues) == (2, None)
    assert claim_of(second).state == ClaimState.PENDING


def test_the_cleanup_stops_launches_of_ended_attempts(company: Company) -> None:
    """A worker so slow that it launched after its attempt had ended."""
    job, attempt = company.running()
    launch = company.cluster.launched(attempt.launch_name)
    services.job_cancel(job=job, actor=company.engineer, at=company.at)
    company.turn_jobs()
    company.turn_jobs()
    company.cluster.remove(attempt.launch_name)
    company.cluster.launch(launch)
    company.cluster.run(attempt.launch_name)

    assert launches.launches_clean_up(at=company.at) == 1

    assert company.phase_of(attempt.launch_name) is ReplicaPhase.EXITED


def test_an_uninstalled_adapter_does_not_stop_the_cleanup_of_other_clusters(
    company: Company,
) -> None:
    Cluster.objects.create(name="a-gone-plug-in", kind="no-such-kind")
    _, good = company.running()
    company.finish(good)
    company.turn_jobs()

    assert launches.launches_clean_up(at=company.at) == 1

    assert company.cluster.names() == frozenset()


def test_the_cleanup_removes_succeeded_attempts_at_once_and_failed_ones_after_a_week(
    company: Company,
) -> None:
    _, good = company.running()
    company.finish(good)
    _, bad = company.running()
    company.cluster.finish(bad.launch_name, exit_code=1)
    company.turn_jobs()

    assert launches.launches_clean_up(at=company.at) == 1
    assert company.cluster.names() == {bad.launch_name}
    assert launches.launches_clean_up(at=company.later(timedelta(days=6))) == 0
    assert launches.launches_clean_up(at=company.later(timedelta(days=2))) == 1
    assert company.cluster.names() == frozenset()
    bad.refresh_from_db()
    assert bad.removed_at is not None
    assert services.resumable_attempt(bad) is None


def test_the_cleanup_ignores_live_launches_and_those_of_other_apps(company: Company) -> None:
    _, attempt = company.running()

    assert launches.launches_clean_up(at=company.later(timedelta(days=30))) == 0

    assert company.phase_of(attempt.launch_name) is ReplicaPhase.RUNNING
