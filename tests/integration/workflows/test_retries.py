"""A step that fails, and the pipeline that goes on from it."""

from __future__ import annotations

import pytest

from apps.accounts.models import Membership, User
from apps.accounts.services import membership_set
from apps.jobs import services as jobs
from apps.jobs.models import Job
from apps.models.models import Artifact
from apps.serving.models import Deployment
from apps.workflows import services
from apps.workflows.models import Pipeline
from controlplane.domain.common.permissions import TeamRole
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.pipelines.lifecycle import (
    PipelineState,
    StepState,
)
from tests.integration.company import Company
from tests.integration.workflows.pipeline_requests import (
    D,
    E,
    F,
    drive,
    pipeline_steps,
    processes_act,
    states,
    submit,
    turn,
)


def fail_its_job(company: Company, pipeline: Pipeline) -> Job:
    """The job of the step that runs dies of its program."""
    turn(company)
    processes_act(company)
    turn(company)
    running = next(one for one in pipeline_steps(pipeline) if one.state == StepState.RUNNING)
    assert running.job is not None
    attempt = running.job.attempts.get()
    company.cluster.finish(attempt.launch_name, exit_code=3)
    drive(company, pipeline, until=lambda: pipeline.state == PipelineState.FAILED)
    return running.job


def test_a_failed_step_is_retried_and_the_pipeline_resumes(company: Company) -> None:
    pipeline = submit(company, F, E)
    job = fail_its_job(company, pipeline)
    assert states(pipeline) == ["failed", "waiting"]
    job.refresh_from_db()
    assert pipeline.state_reason == f"step 1 failed: {job.state_reason}"

    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    with pytest.raises(IllegalTransition, match="running cannot be tried again"):
        services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)

    assert states(pipeline) == ["succeeded", "succeeded"]
    # The same job goes on; no second one was submitted for the step.
    assert pipeline_steps(pipeline)[0].job == job
    assert job.attempts.count() == 2
    assert Job.objects.count() == 2


def test_a_job_retried_concurrently_is_not_run_twice(company: Company) -> None:
    pipeline = submit(company, F, E)
    job = fail_its_job(company, pipeline)
    jobs.job_retry(job=job, actor=company.engineer, at=company.at)
    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    assert job.attempts.count() == 2


def test_a_step_whose_input_was_removed_fails_with_the_reason(company: Company) -> None:
    pipeline = submit(company, F, E)
    drive(company, pipeline, until=lambda: pipeline_steps(pipeline)[0].state == StepState.SUCCEEDED)
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    version = pipeline_steps(pipeline)[0].output_version
    assert version is not None
    assert version.artifact_id is not None
    Artifact.objects.filter(pk=version.artifact_id).update(deleted_at=company.at)
    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    assert pipeline.state == PipelineState.FAILED
    assert "parser v1 has been deleted; restore it on the storage page" in pipeline.state_reason


def test_steps_fail_if_the_user_lost_the_permission(company: Company) -> None:
    pipeline = submit(company, F, D)
    drive(company, pipeline, until=lambda: pipeline_steps(pipeline)[0].state == StepState.RUNNING)
    Membership.objects.filter(user=company.engineer).delete()
    drive(company, pipeline)
    assert pipeline.state == PipelineState.FAILED
    assert (
        "step 2 failed: this requires the permission to deploy in team Addresses; your role there: none"
        in pipeline.state_reason
    )
    assert not Deployment.objects.exists()

    other = User.objects.create(username="nils")
    membership_set(team=company.team, user=other, roles=frozenset({TeamRole.ENGINEER}), actor=None)
    services.pipeline_retry(pipeline=pipeline, actor=other, at=company.at)
    drive(company, pipeline)
    assert pipeline.state == PipelineState.SUCCEEDED
    assert Deployment.objects.get().created_by == other
