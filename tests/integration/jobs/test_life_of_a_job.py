"""A job from submission to its outputs, on the fake cluster, turned by hand."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import pytest

from apps.accounts.models import AuditEntry
from apps.jobs import selectors, services
from apps.jobs.models import Attempt, Job
from apps.models.models import Artifact, Evaluation, ModelVersion
from apps.models.selectors import lineage_of
from apps.quotas.models import Allocation, Claim
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.claims import ClaimState, ReleaseReason
from controlplane.domain.jobs import AttemptState, JobKind, JobState
from controlplane.domain.machines import IllegalTransition
from controlplane.outbox.models import OutboxMessage
from controlplane.ports.clusters import ExitCause, Phase
from tests.integration.company import Company, stored


def moves(entity: Job | Attempt) -> list[str]:
    return list(entity.transitions.values_list("event", flat=True))


def claim_of(attempt: Attempt) -> Claim:
    return Claim.objects.get(uid=attempt.claim_uid)


def test_a_submitted_job_waits_with_an_attempt_and_a_claim(company: Company) -> None:
    job = company.submit()

    attempt = selectors.latest_attempt(job)
    claim = claim_of(attempt)
    assert (job.state, attempt.state, claim.state) == ("waiting", "pending", "pending")
    assert (claim.owner_kind, claim.owner_uid) == ("attempt", attempt.uid)
    assert claim.card_count == 1
    assert job.spec == {"split": "test"}
    assert OutboxMessage.objects.filter(topic="claim.requested").count() == 1
    assert AuditEntry.objects.filter(action="job.submit", object_uid=job.uid).count() == 1


def test_a_job_runs_from_submission_to_a_registered_version_with_lineage(company: Company) -> None:
    job, attempt = company.running()
    assert attempt.state == AttemptState.RUNNING
    company.cluster.write_log(attempt.launch_name, b"step 1\nstep 2\n")
    company.finish(attempt)

    company.turn_jobs()

    job.refresh_from_db()
    attempt.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert job.state_reason == "made parser v1"
    assert job.ended_at is not None
    assert moves(job) == ["start", "succeed"]
    assert moves(attempt) == ["admit", "launch", "run", "finish", "complete"]
    version = ModelVersion.objects.get(attempt_uid=attempt.uid)
    assert version.state == "ready"
    assert version.parameters == 64
    assert version.context_length == 512
    assert version.metrics == {"loss": 0.5}
    assert version.dataset_version == company.dataset
    assert lineage_of(version, user=company.engineer) == [version, company.model]
    claim = claim_of(attempt)
    assert (claim.state, claim.release_reason) == (ClaimState.RELEASED, ReleaseReason.FINISHED)
    assert not Allocation.objects.filter(released_at=None).exists()
    assert selectors.attempt_log(attempt, offset=0, limit=100).content == b"step 1\nstep 2\n"


def test_the_launch_names_the_inputs_the_cards_and_the_limits(company: Company) -> None:
    _, attempt = company.launched(cards=2, memory=1 << 30, run_seconds=60)

    launch = company.cluster.launched(attempt.launch_name)
    (role,) = launch.roles
    (placement,) = role.placements
    assert (placement.node, placement.cards) == (company.cluster_row.name, (0, 1))
    assert (role.limits.cpu, role.limits.memory) == (2000, 1 << 30)
    assert launch.run_within is not None
    assert launch.run_within.total_seconds() == 60
    assert [tree.name for tree in launch.inputs] == ["model", "dataset"]
    assert launch.secrets == {"NINEFOLD_ENGINE_KEY": selectors.attempt_token(attempt)}
    assert dict(launch.labels)["uid"] == attempt.uid


def test_an_evaluation_keeps_its_metrics_with_the_version(company: Company) -> None:
    job, attempt = company.running(kind=JobKind.EVALUATE, output_name="")
    company.finish(attempt, {"report.json": b"{}"})

    company.turn_jobs()

    evaluation = Evaluation.objects.get(attempt_uid=attempt.uid)
    assert (evaluation.model_version, evaluation.dataset_version) == (
        company.model,
        company.dataset,
    )
    assert (evaluation.split, evaluation.metrics) == ("test", {"loss": 0.5})
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert not ModelVersion.objects.filter(attempt_uid=attempt.uid).exists()


def test_what_a_script_leaves_behind_becomes_one_artifact(company: Company) -> None:
    job, attempt = company.running(
        kind=JobKind.SCRIPT, output_name="", model_version=None, dataset_version=None
    )
    company.finish(attempt, {"out/answer.txt": b"42"})

    company.turn_jobs()

    artifact = Artifact.objects.get(made_by=f"attempt:{attempt.uid}")
    assert artifact.tree == {"out/answer.txt": stored("", b"42")[1]}
    job.refresh_from_db()
    assert job.state_reason == "made 1 files"


def test_a_job_that_ends_badly_keeps_the_end_of_its_log_and_frees_its_cards(
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
    ],
)
def test_the_cause_of_the_end_is_kept(
    company: Company, cause: ExitCause, exit_code: int | None
) -> None:
    job, attempt = company.running()
    company.cluster.finish(attempt.launch_name, exit_code=exit_code or 0, cause=cause)

    company.turn_jobs()

    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, attempt.exit_cause) == (JobState.FAILED, cause)


def test_a_program_that_ends_well_without_a_manifest_has_failed(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.finish(attempt.launch_name)

    company.turn_jobs()

    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "no manifest arrived" in job.state_reason
    assert claim_of(attempt).state == ClaimState.RELEASED


def test_outputs_that_are_no_model_fail_the_job_and_say_why(company: Company) -> None:
    job, attempt = company.running()
    company.finish(attempt, {"notes.txt": b"hello"})

    company.turn_jobs()

    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert "there is no config.json" in job.state_reason
    assert not Artifact.objects.filter(made_by=f"attempt:{attempt.uid}").exists()


def test_a_launch_that_the_cluster_has_lost_fails_the_job(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.lose(attempt.launch_name)

    company.turn_jobs()

    job.refresh_from_db()
    attempt.refresh_from_db()
    assert (job.state, attempt.exit_cause) == (JobState.FAILED, ExitCause.LOST)


def test_a_launch_that_has_vanished_fails_the_job(company: Company) -> None:
    job, attempt = company.running()
    company.cluster.lose(attempt.launch_name)
    company.cluster.remove(attempt.launch_name)

    company.turn_jobs()

    job.refresh_from_db()
    assert (job.state, job.state_reason) == (JobState.FAILED, "the cluster no longer knows it")


def test_a_cluster_that_does_not_answer_only_delays(company: Company) -> None:
    job, attempt = company.running()
    company.finish(attempt)
    company.cluster.lose_contact()

    company.turn_jobs()

    attempt.refresh_from_db()
    assert attempt.state == AttemptState.RUNNING
    assert attempt.message.startswith("the cluster does not answer")
    company.cluster.regain_contact()
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == JobState.SUCCEEDED


def test_a_fault_of_ours_is_shown_and_does_not_stop_the_others(
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
    assert "a fault of ours" in broken.message
    assert "not made for this" not in broken.message


def test_a_launch_that_is_refused_fails_the_job_with_the_reason(company: Company) -> None:
    job = company.submit()
    company.schedule()
    Claim.objects.update(placement=[{"role": "trainer", "index": 0, "node": "gone", "cards": [0]}])
    company.cluster_row.nodes.update(uid="gone", name="elsewhere")

    company.turn_jobs()

    job.refresh_from_db()
    assert job.state == JobState.FAILED
    assert job.state_reason.startswith("could not be started")
    assert "elsewhere" in job.state_reason


def test_preparation_is_shown_while_it_lasts(company: Company) -> None:
    _, attempt = company.launched()
    company.cluster.prepare(attempt.launch_name, "installing 34 of 62 packages")

    company.turn_jobs()

    attempt.refresh_from_db()
    assert (attempt.state, attempt.message) == ("launched", "installing 34 of 62 packages")


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


def test_an_engine_that_refuses_a_spec_keeps_nothing(company: Company) -> None:
    with pytest.raises(services.SpecRefused, match="refuse: learning_rate must be above 0"):
        company.submit(spec={"refuse": "learning_rate must be above 0, got -1"})

    assert not Job.objects.exists()
    assert not Claim.objects.exists()


def test_each_missing_input_is_named_at_once(company: Company) -> None:
    with pytest.raises(services.SpecRefused) as refused:
        company.submit(
            name=" ",
            model_version=None,
            dataset_version=None,
            output_name="",
            chips=("tpu-v9",),
            cards=0,
        )

    fields = {finding.field for finding in refused.value.findings}
    assert fields == {"name", "model_version", "dataset_version", "output_name", "chips", "cards"}


def test_a_manifest_that_lists_what_did_not_arrive_is_refused(company: Company) -> None:
    _, attempt = company.running()
    with pytest.raises(
        services.ReportRefused, match=r"'model\.safetensors', which was not uploaded"
    ):
        services.manifest_record(
            attempt=attempt,
            manifest={"files": [{"path": "model.safetensors", "sha256": "0" * 64, "size": 1}]},
        )
    services.file_record(attempt=attempt, path="a.txt", digest=f"sha256:{'1' * 64}", size=1)
    with pytest.raises(services.ReportRefused, match="arrived with other content"):
        services.manifest_record(
            attempt=attempt,
            manifest={"files": [{"path": "a.txt", "sha256": "0" * 64, "size": 1}]},
        )
    attempt.refresh_from_db()
    assert attempt.manifest is None


def test_the_token_of_an_attempt_is_good_for_that_attempt_while_it_runs_only(
    company: Company,
) -> None:
    _, attempt = company.running()
    token = selectors.attempt_token(attempt)

    assert selectors.attempt_by_token(uid=attempt.uid, token=token) == attempt
    assert selectors.attempt_by_token(uid=attempt.uid, token="guess") is None
    other = company.submit("another")
    uid = selectors.latest_attempt(other).uid
    assert selectors.attempt_by_token(uid=uid, token=token) is None
    company.finish(attempt)
    company.turn_jobs()
    assert selectors.attempt_by_token(uid=attempt.uid, token=token) is None


def test_steps_reported_twice_count_once_and_reach_the_claim(company: Company) -> None:
    job, attempt = company.running()
    first = [{"step": 1, "loss": 5.0, "total_steps": 4}, {"step": 1, "learning_rate": 0.1}]
    services.progress_record(attempt=attempt, points=first, at=company.at)
    services.progress_record(
        attempt=attempt, points=[{"step": 2, "loss": 4.0}, {"checkpoint": "c2"}], at=company.at
    )
    services.progress_record(attempt=attempt, points=[{"step": 2, "loss": 3.0}], at=company.at)

    one, two = selectors.curve_of(job)
    assert (one["step"], one["loss"], one["learning_rate"]) == (1, 5.0, 0.1)
    assert two == {"step": 2, "loss": 3.0}
    claim = claim_of(attempt)
    assert (claim.progress, claim.checkpointed_at) == (0.5, company.at)


@pytest.mark.parametrize("step", [None, -1, "3", True, 1.5])
def test_a_point_without_a_whole_step_is_refused(company: Company, step: object) -> None:
    _, attempt = company.running()
    with pytest.raises(services.ReportRefused, match="whole, non-negative number"):
        services.progress_record(attempt=attempt, points=[{"step": step}], at=company.at)


def test_jobs_of_another_team_are_not_visible(company: Company) -> None:
    job = company.submit()

    assert list(selectors.jobs_visible(company.engineer)) == [job]
    assert list(selectors.jobs_visible(company.stranger)) == []


def test_more_attempts_than_one_batch_all_get_their_turn(company: Company) -> None:
    for number in range(40):
        company.submit(f"job {number}")
    last = Attempt.objects.order_by("-id")[0]
    Claim.objects.filter(uid=last.claim_uid).update(priority=10)
    company.schedule()

    company.turn_jobs()
    company.turn_jobs()

    last.refresh_from_db()
    assert last.state == AttemptState.LAUNCHED
    assert company.phase_of(last.launch_name) is Phase.PREPARING
