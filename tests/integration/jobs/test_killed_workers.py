"""A worker killed between any two steps: the job still ends right, once."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

import pytest

from apps.accounts.models import AuditEntry
from apps.fleet import selectors as fleet
from apps.jobs import services
from apps.jobs.models import Attempt, Job
from apps.models import selectors as registry_selectors
from apps.models.models import Artifact, ModelVersion
from apps.quotas import services as quotas
from apps.quotas.models import Allocation
from controlplane.domain.jobs.lifecycle import ENDED_JOB_STATES, AttemptState, JobState
from controlplane.domain.quotas.claims import ReleaseReason
from controlplane.outbox.models import OutboxMessage
from controlplane.ports.clusters import ExitCause, ReplicaPhase
from tests.integration.company import Company
from tests.integration.jobs.records import claim_of, transition_events
from tests.integration.mortality import EVERY, Mortal, Worker, live

pytestmark = pytest.mark.slow

#: A life has fewer steps; more would mean that it does not end.
MAX_STEPS = 2_000


@pytest.fixture
def worker(committed_company: Company, monkeypatch: pytest.MonkeyPatch) -> Worker:
    worker = Worker()
    cluster = Mortal(committed_company.cluster, worker)
    store = Mortal(registry_selectors.artifact_store(), worker)
    monkeypatch.setattr(fleet, "cluster_adapter", lambda row: cluster)
    monkeypatch.setattr(registry_selectors, "artifact_store", lambda: store)
    return worker


def processes_act(company: Company) -> None:
    """What happens outside of the control plane: programs start, report and end."""
    for name in company.cluster.names():
        phase = company.phase_of(name)
        if phase is ReplicaPhase.PREPARING:
            company.cluster.run(name)
        elif phase is ReplicaPhase.RUNNING:
            company.cluster.write_log(name, b"done\n")
            company.finish(Attempt.objects.get(uid=name.removeprefix("attempt-")))


def forget_what_ended(company: Company) -> int:
    """Make room for the next life; say how many Launches this one made."""
    names = company.cluster.names()
    for name in names:
        company.cluster.remove(name)
    return len(names)


def deaths_of(
    company: Company,
    worker: Worker,
    *,
    begin: Callable[[], Job],
    check: Callable[[Job, str], None],
    launches: int = 1,
    ended: Callable[[Job], bool] = lambda job: job.state in ENDED_JOB_STATES,
) -> int:
    """Live the same life again and again, dying some steps later each time; say how many there were."""
    for deaths, dies_at in enumerate(range(0, MAX_STEPS, EVERY)):
        job = begin()
        worker.steps, worker.dies_at, worker.last_step = 0, dies_at, ""

        def turn(job: Job = job) -> None:
            company.schedule()
            company.turn_jobs()

        def over(job: Job = job) -> bool:
            job.refresh_from_db()
            if ended(job):
                return True
            processes_act(company)
            return False

        live(worker, turn=turn, until=over)
        check(job, worker.last_step)
        assert forget_what_ended(company) == launches, worker.last_step
        if not worker.last_step:
            return deaths
        worker.dies_at = None
    raise AssertionError(f"the life is larger than {MAX_STEPS} steps")


def assert_nothing_is_held(attempt: Attempt, died: str) -> None:
    claim = claim_of(attempt)
    releases = claim.transitions.filter(event="release").count()
    assert (claim.state, releases) == ("released", 1), died
    assert not Allocation.objects.filter(claim=claim, released_at=None).exists(), died
    for topic in ("claim.requested", "claim.released"):
        messages = OutboxMessage.objects.filter(topic=topic, payload={"claim_uid": claim.uid})
        assert messages.count() == 1, (topic, died)


def test_a_job_succeeds_once_wherever_its_worker_is_killed(
    committed_company: Company, worker: Worker
) -> None:
    company = committed_company

    def check(job: Job, died: str) -> None:
        assert job.state == JobState.SUCCEEDED, died
        assert transition_events(job) == ["start", "succeed"], died
        (attempt,) = job.attempts.all()
        # Whether "run" is seen depends on when the worker came back; the end does not.
        path = [event for event in transition_events(attempt) if event != "run"]
        assert path == ["admit", "launch", "finish", "complete"], died
        assert ModelVersion.objects.filter(attempt_uid=attempt.uid).count() == 1, died
        assert Artifact.objects.filter(created_by=f"attempt:{attempt.uid}").count() == 1, died
        assert AuditEntry.objects.filter(action="model.register", detail__job=job.uid).count() == 1
        assert attempt.log_digest, died
        assert Allocation.objects.filter(claim__uid=attempt.claim_uid).count() == 1, died
        assert_nothing_is_held(attempt, died)

    deaths = deaths_of(company, worker, begin=company.submit, check=check)

    versions = ModelVersion.objects.filter(line__name="parser").values_list("number", flat=True)
    assert sorted(versions) == list(range(1, deaths + 2))
    assert deaths * EVERY > 60


def test_a_cancelled_job_ends_once_wherever_its_worker_is_killed(
    committed_company: Company, worker: Worker
) -> None:
    company = committed_company

    def begin() -> Job:
        job, _ = company.running()
        services.job_cancel(job=job, actor=company.engineer, at=company.at)
        return job

    def check(job: Job, died: str) -> None:
        assert job.state == JobState.CANCELLED, died
        assert transition_events(job) == ["start", "cancel"], died
        (attempt,) = job.attempts.all()
        assert transition_events(attempt)[-2:] == ["stop", "confirm"], died
        assert company.phase_of(attempt.launch_name) is ReplicaPhase.EXITED
        assert_nothing_is_held(attempt, died)

    deaths = deaths_of(company, worker, begin=begin, check=check)

    assert deaths * EVERY > 20


def test_a_preempted_job_is_requeued_once_wherever_its_worker_is_killed(
    committed_company: Company, worker: Worker
) -> None:
    company = committed_company

    def begin() -> Job:
        job, attempt = company.running()
        quotas.claim_revoke(
            claim=claim_of(attempt),
            reason=ReleaseReason.PREEMPTED,
            grace=timedelta(seconds=30),
            at=company.at,
            explanation="a larger job needs the card",
        )
        return job

    def gone_on(job: Job) -> bool:
        return job.attempts.filter(number=2, state=AttemptState.LAUNCHED).exists()

    def check(job: Job, died: str) -> None:
        first, second = job.attempts.order_by("number")
        assert first.state == AttemptState.STOPPED, died
        assert first.stop_reason == ReleaseReason.PREEMPTED, died
        assert second.continues == first, died
        claim = claim_of(first)
        assert claim.release_reason == ReleaseReason.PREEMPTED, died
        assert transition_events(job) == ["start", "requeue", "start"], died
        assert_nothing_is_held(first, died)
        assert company.phase_of(second.launch_name) in (
            ReplicaPhase.PREPARING,
            ReplicaPhase.RUNNING,
        ), died
        services.job_cancel(job=job, actor=company.engineer, at=company.at)
        company.turn_jobs()
        company.turn_jobs()
        assert_nothing_is_held(second, died)

    deaths = deaths_of(company, worker, begin=begin, check=check, launches=2, ended=gone_on)

    assert deaths * EVERY > 40


def test_an_out_of_memory_job_is_retried_once_wherever_its_worker_is_killed(
    committed_company: Company, worker: Worker
) -> None:
    company = committed_company

    def begin() -> Job:
        spec = {"batch_size": 4, "gradient_accumulation": 1, "out_of_memory_retries": 1}
        job, attempt = company.running(spec=spec)
        company.cluster.finish(attempt.launch_name, exit_code=12, cause=ExitCause.OUT_OF_MEMORY)
        return job

    def check(job: Job, died: str) -> None:
        assert job.state == JobState.SUCCEEDED, died
        first, second = job.attempts.order_by("number")
        assert (first.state, first.exit_cause) == (AttemptState.FAILED, "out_of_memory"), died
        assert second.continues == first, died
        assert second.overrides == {"batch_size": 2, "gradient_accumulation": 2}, died
        assert transition_events(job) == ["start", "requeue", "start", "succeed"], died
        assert_nothing_is_held(first, died)
        assert_nothing_is_held(second, died)

    deaths = deaths_of(company, worker, begin=begin, check=check, launches=2)

    assert deaths * EVERY > 60
