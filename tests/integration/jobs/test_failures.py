"""Jobs that end badly, or of which nothing is heard."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest
from django.utils import timezone

from apps.jobs.reconcilers.attempts import attempts_reconcile
from apps.jobs.services.attempt_termination import MAX_LOST_ATTEMPTS
from apps.models.models import Artifact, ModelVersion
from apps.quotas.models import Claim
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.jobs.lifecycle import AttemptState, JobState
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.ports.clusters import ExitCause
from tests.integration.company import Company
from tests.integration.jobs.records import claim_of


def test_a_failed_job_stores_its_log_tail_and_releases_its_cards(
    company: Company,
) -> None:
    job, attempt = company.running()
    company.cluster.write_log(attempt.launch_name, b"x" * 20_000 + b"\nRuntimeError: no room\n")
    company.cluster.finish(attempt.launch_name, exit_code=1, message="ended with exit code 1")

    company.turn_jobs()

    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, job.state_reason) == (JobState.FAILED, "ended with exit code 1")
    assert (attempt.exit_code, attempt.exit_cause) == (1, ExitCause.FAILED)
    assert attempt.log_tail.endswith("RuntimeError: no room\n")
    assert len(attempt.log_tail) == 8 * 1024
    assert claim_of(attempt).state == ClaimState.RELEASED
    assert not ModelVersion.objects.filter(attempt_uid=attempt.uid).exists()


@pytest.mark.parametrize(
    ("cause", "exit_code"),
    [
        (ExitCause.OUT_OF_MEMORY, 137),
        (ExitCause.DISK_FULL, 28),
        (ExitCause.OUT_OF_TIME, None),
        (ExitCause.NOT_PREPARED, None),
        (ExitCause.KILLED, 137),
    ],
)
def test_the_exit_cause_is_stored(
    company: Company, cause: ExitCause, exit_code: int | None
) -> None:
    job, attempt = company.running(retry_policy={"max_retries": 0})
    company.cluster.finish(attempt.launch_name, exit_code=exit_code or 0, cause=cause)

    company.turn_jobs()

    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, attempt.exit_cause) == (JobState.FAILED, cause)


def test_a_successful_program_without_a_manifest_fails(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.finish(attempt.launch_name)

    company.turn_jobs()

    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "ended without sending the manifest" in job.state_reason
    assert claim_of(attempt).state == ClaimState.RELEASED


def test_outputs_that_are_not_a_model_fail_the_job_with_a_reason(company: Company) -> None:
    job, attempt = company.running()
    company.finish(attempt, {"notes.txt": b"hello"})

    company.turn_jobs()

    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "there is no config.json" in job.state_reason
    assert not Artifact.objects.filter(created_by=f"attempt:{attempt.uid}").exists()


def test_a_launch_that_is_refused_fails_the_job_with_the_reason(company: Company) -> None:
    job = company.submit()
    company.schedule()
    Claim.objects.update(placement=[{"role": "trainer", "index": 0, "node": "gone", "cards": [0]}])
    company.cluster_row.nodes.update(uid="gone", name="elsewhere")

    company.turn_jobs()

    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert job.state_reason.startswith("the workload could not be started")
    assert "elsewhere" in job.state_reason


def test_a_launch_that_the_cluster_has_lost_is_queued_again(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.lose(attempt.launch_name)

    company.turn_jobs()

    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (attempt.state, attempt.exit_cause) == (AttemptState.FAILED, ExitCause.LOST)
    assert job.state == JobState.WAITING
    assert claim_of(attempt).release_reason == ReleaseReason.FAULT
    after = job.attempts.exclude(pk=attempt.pk).get()
    assert claim_of(after).state == ClaimState.PENDING


def test_a_job_that_is_lost_repeatedly_fails(company: Company) -> None:
    job, attempt = company.running()
    for _ in range(MAX_LOST_ATTEMPTS):
        company.cluster.lose(attempt.launch_name)
        company.turn_jobs()
        company.schedule()
        company.turn_jobs()
        attempt = job.attempts.latest("pk")
        assert attempt.state == AttemptState.LAUNCHED
    company.cluster.lose(attempt.launch_name)

    company.turn_jobs()

    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert job.attempts.count() == MAX_LOST_ATTEMPTS + 1


def test_a_launch_that_has_vanished_fails_the_job(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.lose(attempt.launch_name)
    company.cluster.remove(attempt.launch_name)

    company.turn_jobs()

    job.refresh_from_db()
    assert (job.state, job.state_reason) == (
        JobState.FAILED,
        "the cluster no longer reports the workload",
    )


def test_an_unreachable_cluster_delays_the_job_only(company: Company) -> None:
    job, attempt = company.running()
    company.finish(attempt)
    company.cluster.lose_contact()

    company.turn_jobs()

    attempt.refresh_from_db()
    assert attempt.state == AttemptState.RUNNING
    assert attempt.message.startswith("the cluster does not respond")
    company.cluster.regain_contact()
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED


def test_an_unreachable_cluster_is_queried_once(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = company.running()[1], company.running()[1]
    company.cluster.lose_contact()
    asked: list[Collection[str]] = []
    observe = FakeCluster.observe

    def counted(cluster: FakeCluster, names: Collection[str]) -> Any:
        asked.append(names)
        return observe(cluster, names)

    monkeypatch.setattr(FakeCluster, "observe", counted)
    attempts_reconcile(at=timezone.now())

    assert len(asked) == 1
    for attempt in (first, second):
        attempt.refresh_from_db()
        assert attempt.message.startswith("the cluster does not respond")


def test_an_internal_error_is_shown_and_does_not_stop_other_attempts(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, broken = company.running()
    other_job, other = company.running()
    company.finish(other)
    observe = FakeCluster.observe

    def fail_for_one(cluster: FakeCluster, names: Collection[str]) -> Any:
        if broken.launch_name in names:
            raise RuntimeError("not made for this")
        return observe(cluster, names)

    with monkeypatch.context() as patch:
        patch.setattr(FakeCluster, "observe", fail_for_one)
        company.turn_jobs()
    broken.refresh_from_db()
    other_job.refresh_from_db()
    assert (broken.state, other_job.state) == (AttemptState.RUNNING, JobState.SUCCEEDED)
    assert "internal error in the controller" in broken.message
    assert "not made for this" not in broken.message
