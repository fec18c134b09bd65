"""Jobs that lose their cards together are told, and queued again, together."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext

from apps.jobs import tasks
from apps.jobs.models import Attempt, Job
from apps.jobs.reconcilers import attempt_context, attempt_termination, attempts
from apps.quotas import services as quotas
from apps.quotas.models import Claim
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.jobs.lifecycle import AttemptState, JobState
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.persistence.leases import lease_rows
from controlplane.ports.clusters import ExitCause, LogChunk, ObservedLaunch
from tests.integration.company import Company
from tests.integration.jobs.records import claim_of, transition_events


def gangs(company: Company, count: int) -> list[Attempt]:
    """As many jobs that run."""
    return [company.running(name=f"job {number}")[1] for number in range(count)]


def revoke(company: Company, those: Collection[Attempt]) -> None:
    for attempt in those:
        quotas.claim_revoke(
            claim=claim_of(attempt),
            reason=ReleaseReason.FAULT,
            grace=timedelta(),
            at=company.at,
            explanation="the card is broken",
        )


def states(those: Collection[Attempt]) -> set[str]:
    pks = [attempt.pk for attempt in those]
    return set(Attempt.objects.filter(pk__in=pks).values_list("state", flat=True))


def statements_of_a_stop(company: Company, count: int) -> int:
    revoke(company, gangs(company, count))
    with CaptureQueriesContext(connection) as captured:
        company.turn_jobs()
        company.turn_jobs()
    assert Claim.objects.filter(state=ClaimState.PENDING).count() == count
    Claim.objects.filter(state=ClaimState.PENDING).update(state=ClaimState.RELEASED)
    Attempt.objects.filter(state=AttemptState.PENDING).update(state=AttemptState.STOPPED)
    return len(captured)


def test_the_number_of_statements_is_constant_in_stopped_jobs(company: Company) -> None:
    assert statements_of_a_stop(company, 1) == statements_of_a_stop(company, 2)


def test_attempts_stopped_in_a_batch_keep_their_queue_positions(
    company: Company,
) -> None:
    before = gangs(company, 2)
    since = {one.job_id: claim_of(one).created_at for one in before}
    revoke(company, before)

    company.turn_jobs()
    assert states(before) == {AttemptState.STOPPING}
    company.turn_jobs()

    for job in Job.objects.all():
        first, second = job.attempts.order_by("number")
        assert (first.state, second.state) == (AttemptState.STOPPED, AttemptState.PENDING)
        assert transition_events(first)[-2:] == ["stop", "confirm"]
        assert transition_events(job) == ["start", "requeue"]
        assert job.state == JobState.WAITING
        assert claim_of(first).release_reason == ReleaseReason.FAULT
        assert claim_of(second).in_line_since == since[job.pk]
        assert second.number == first.number + 1


def test_an_attempt_that_cannot_end_does_not_block_others(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn, whole = gangs(company, 2)
    revoke(company, (torn, whole))
    company.turn_jobs()
    release = quotas.claims_release

    def stumbling(*, uids: Collection[str], **how: Any) -> frozenset[str]:
        if torn.claim_uid in uids:
            raise RuntimeError("a row that nobody can read")
        return release(uids=tuple(uids), **how)

    monkeypatch.setattr(quotas, "claims_release", stumbling)
    company.turn_jobs()

    assert states((whole,)) == {AttemptState.STOPPED}
    assert states((torn,)) == {AttemptState.STOPPING}


def test_launches_that_cannot_be_observed_at_once_are_observed_by_themselves(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    torn, whole = gangs(company, 2)
    observe = FakeCluster.observe

    def stumbling(self: FakeCluster, names: Collection[str]) -> Mapping[str, ObservedLaunch]:
        if torn.launch_name in names:
            raise RuntimeError("an object that nobody can read")
        return observe(self, names)

    monkeypatch.setattr(FakeCluster, "observe", stumbling)
    company.cluster.finish(whole.launch_name, exit_code=1)
    company.turn_jobs()

    assert states((whole,)) == {AttemptState.FAILED}
    assert states((torn,)) == {AttemptState.RUNNING}


def test_an_attempt_leased_by_another_worker_does_not_block_others(company: Company) -> None:
    late, ours = gangs(company, 2)
    revoke(company, (late, ours))
    lease_rows(Attempt.objects.filter(pk=late.pk), limit=1, ttl=timedelta(minutes=1))

    company.turn_jobs()

    assert states((late,)) == {AttemptState.RUNNING}
    assert states((ours,)) == {AttemptState.STOPPING}


def test_the_first_message_of_a_burst_reconciles_all_attempts(company: Company) -> None:
    those = gangs(company, 2)
    revoke(company, those)

    tasks.on_claim_revoking(claim_uid=those[0].claim_uid)

    assert states(those) == {AttemptState.STOPPING}
    assert attempts.attempts_reconcile_for_claim(claim_uid=those[1].claim_uid, at=company.at) == 0


def test_the_log_of_an_attempt_that_waits_for_hardware_signals_is_stored_once(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, attempt = company.running()
    company.cluster.write_log(
        attempt.launch_name, b"RuntimeError: NCCL error: unhandled system error\n"
    )
    company.cluster.finish(attempt.launch_name, exit_code=1, cause=ExitCause.FAILED)
    read = []
    log = FakeCluster.log

    def counted(self: FakeCluster, name: str, **where: Any) -> LogChunk:
        read.append(name)
        return log(self, name, **where)

    monkeypatch.setattr(FakeCluster, "log", counted)
    for _ in range(3):
        company.turn_jobs()

    attempt.refresh_from_db()
    assert "checking whether the cards have a fault" in attempt.message
    assert len(read) == 1
    assert "NCCL error" in attempt.log_tail


def test_an_attempt_without_a_stop_reason_does_not_block_others(company: Company) -> None:
    torn, whole = gangs(company, 2)
    revoke(company, (torn, whole))
    company.turn_jobs()
    Attempt.objects.filter(pk=torn.pk).update(stop_reason="")

    company.turn_jobs()

    assert states((torn,)) == {AttemptState.STOPPING}
    assert states((whole,)) == {AttemptState.STOPPED}
    assert not Attempt.objects.filter(leased_until__gt=Now()).exists()


def test_stops_are_requested_before_logs_of_others_are_archived(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    stopped, running = gangs(company, 2)
    revoke(company, (stopped,))
    company.turn_jobs()
    revoke(company, (running,))
    calls: list[str] = []
    log, stop = FakeCluster.log, FakeCluster.stop

    def logging(self: FakeCluster, name: str, **where: Any) -> LogChunk:
        calls.append("log")
        return log(self, name, **where)

    def stopping(self: FakeCluster, name: str, **how: Any) -> None:
        calls.append("stop")
        stop(self, name, **how)

    monkeypatch.setattr(FakeCluster, "log", logging)
    monkeypatch.setattr(FakeCluster, "stop", stopping)
    company.turn_jobs()

    assert calls[0] == "stop"
    assert "log" in calls


def test_a_short_log_does_not_wait_for_a_long_one(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    short, long = gangs(company, 2)
    revoke(company, (short, long))
    company.turn_jobs()
    monkeypatch.setattr(attempt_termination, "_FLUSH_INTERVAL_SECONDS", 0.0)
    seen: list[set[str]] = []
    log = FakeCluster.log

    def piecewise(self: FakeCluster, name: str, *, offset: int, **where: Any) -> LogChunk:
        if name != long.launch_name:
            return log(self, name, offset=offset, **where)
        seen.append(states((short,)))
        return LogChunk(content=b"x", next_offset=offset + 1, complete=offset == 2)

    monkeypatch.setattr(FakeCluster, "log", piecewise)
    company.turn_jobs()

    assert seen[-1] == {AttemptState.STOPPED}
    assert states((long,)) == {AttemptState.STOPPED}


def test_revoked_cards_get_no_launch(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    job = company.submit(name="late")
    company.turn_jobs()
    company.schedule()

    def slow(*of: Any, **how: Any) -> Any:
        found = attempt_context.attempt_reconcile_context(*of, **how)
        revoke(company, (job.attempts.get(),))
        return found

    monkeypatch.setattr("apps.jobs.reconcilers.attempts.attempt_reconcile_context", slow)
    company.turn_jobs()

    attempt = job.attempts.get()
    assert attempt.state == AttemptState.ADMITTED
    assert company.cluster.observe([attempt.launch_name]) == {}
