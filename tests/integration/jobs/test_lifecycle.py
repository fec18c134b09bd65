"""A job from submission to its outputs, on the fake cluster, turned by hand."""

from __future__ import annotations

import pytest

from apps.accounts.models import AuditEntry
from apps.jobs import selectors, services
from apps.jobs.models import Attempt, Job
from apps.models.models import Artifact, Evaluation, ModelVersion
from apps.models.selectors import model_version_ancestors
from apps.quotas.models import Allocation, Claim
from controlplane.domain.jobs.lifecycle import AttemptState, JobKind, JobState
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from controlplane.outbox.models import OutboxMessage
from controlplane.ports.clusters import ReplicaPhase
from tests.integration.company import Company, stored
from tests.integration.jobs.records import claim_of, transition_events


def test_a_submitted_job_is_waiting_with_an_attempt_and_a_claim(company: Company) -> None:
    job = company.submit()

    attempt = selectors.latest_attempt(job)
    claim = claim_of(attempt)
    assert (job.state, attempt.state, claim.state) == ("waiting", "pending", "pending")
    assert (claim.owner_kind, claim.owner_uid) == ("attempt", attempt.uid)
    assert claim.card_count == 1
    assert job.spec == {"split": "test"}
    assert OutboxMessage.objects.filter(topic="claim.requested").count() == 1
    assert AuditEntry.objects.filter(action="job.submit", object_uid=job.uid).count() == 1


def test_a_spec_that_an_engine_refuses_stores_nothing(company: Company) -> None:
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


def test_jobs_of_another_team_are_not_visible(company: Company) -> None:
    job = company.submit()

    assert list(selectors.jobs_visible(company.engineer)) == [job]
    assert list(selectors.jobs_visible(company.stranger)) == []


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


def test_preparation_is_shown_while_it_lasts(company: Company) -> None:
    _, attempt = company.launched()
    company.cluster.prepare(attempt.launch_name, "installing 34 of 62 packages")

    company.turn_jobs()

    attempt.refresh_from_db()
    assert (attempt.state, attempt.message) == ("launched", "installing 34 of 62 packages")


def test_a_job_runs_from_submission_to_a_registered_version_with_lineage(company: Company) -> None:
    job, attempt = company.running()
    assert attempt.state == AttemptState.RUNNING
    company.cluster.write_log(attempt.launch_name, b"step 1\nstep 2\n")
    company.finish(attempt)

    company.turn_jobs()

    job.refresh_from_db()
    attempt.refresh_from_db()
    assert job.state == JobState.SUCCEEDED
    assert job.state_reason == "the job created parser v1"
    assert job.ended_at is not None
    assert transition_events(job) == ["start", "succeed"]
    assert transition_events(attempt) == ["admit", "launch", "run", "finish", "complete"]
    version = ModelVersion.objects.get(attempt_uid=attempt.uid)
    assert version.state == "ready"
    assert version.parameters == 64
    assert version.context_length == 512
    assert version.metrics == {"loss": 0.5}
    assert version.dataset_version == company.dataset
    assert model_version_ancestors(version, user=company.engineer) == [version, company.model]
    claim = claim_of(attempt)
    assert (claim.state, claim.release_reason) == (ClaimState.RELEASED, ReleaseReason.FINISHED)
    assert not Allocation.objects.filter(released_at=None).exists()
    assert selectors.attempt_log(attempt, offset=0, limit=100).content == b"step 1\nstep 2\n"


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


def test_outputs_of_a_script_become_one_artifact(company: Company) -> None:
    job, attempt = company.running(
        kind=JobKind.SCRIPT, output_name="", model_version=None, dataset_version=None
    )
    company.finish(attempt, {"out/answer.txt": b"42"})

    company.turn_jobs()

    artifact = Artifact.objects.get(created_by=f"attempt:{attempt.uid}")
    assert artifact.tree == {"out/answer.txt": stored("", b"42")[1]}
    job.refresh_from_db()
    assert job.state_reason == "output files: 1"


def test_attempts_beyond_one_batch_are_reconciled(company: Company) -> None:
    for number in range(40):
        company.submit(f"job {number}")
    last = Attempt.objects.order_by("-id")[0]
    Claim.objects.filter(uid=last.claim_uid).update(priority=10)
    company.schedule()

    company.turn_jobs()
    company.turn_jobs()

    last.refresh_from_db()
    assert last.state == AttemptState.LAUNCHED
    assert company.phase_of(last.launch_name) is ReplicaPhase.PREPARING
