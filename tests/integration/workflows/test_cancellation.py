"""A pipeline that is cancelled ends what it began, and touches nothing that is others'."""

from __future__ import annotations

from typing import Any

import pytest

from apps.jobs.models import Job
from apps.models.models import ModelVersion
from apps.serving.models import Deployment
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services import deployments
from apps.workflows import services
from apps.workflows.models import Pipeline
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.pipelines.lifecycle import (
    PipelineState,
    StepState,
)
from controlplane.domain.registry.versions import GateDecision
from controlplane.domain.serving.lifecycle import DeploymentState
from tests.integration.company import ENGINE, Company
from tests.integration.workflows.pipeline_requests import (
    BADLY,
    D,
    E,
    F,
    drive,
    gated,
    pipeline_steps,
    processes_act,
    states,
    submit,
    turn,
)


def test_cancellation_stops_the_running_job_and_can_be_retried(
    company: Company,
) -> None:
    pipeline = submit(company, F, E)
    turn(company)
    assert services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    assert not services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    assert (pipeline.state, pipeline.state_reason) == ("cancelled", "cancelled by mei")
    assert states(pipeline) == ["cancelled", "waiting"]
    (job,) = Job.objects.all()
    assert job.state == "cancelled"
    with pytest.raises(IllegalTransition):
        services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)

    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    assert states(pipeline) == ["succeeded", "succeeded"]


def test_a_held_pipeline_is_cancelled_immediately(company: Company) -> None:
    pipeline = drive(company, submit(company, gated(company), D), metrics=BADLY)
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    pipeline.refresh_from_db()
    assert pipeline.state == PipelineState.CANCELLED
    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    assert pipeline.state == PipelineState.HELD


def test_a_job_that_succeeded_before_cancellation_counts_as_succeeded(company: Company) -> None:
    pipeline = submit(company, F, E)
    turn(company)
    processes_act(company)
    turn(company)
    processes_act(company)
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    company.turn_jobs()
    drive(company, pipeline)
    assert states(pipeline) == ["succeeded", "waiting"]
    assert pipeline.state == PipelineState.CANCELLED


def test_cancellation_stops_the_deployment_that_the_step_created(company: Company) -> None:
    pipeline = submit(company, D)
    turn(company)
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    turn(company)
    turn(company)
    created = Deployment.objects.get()
    assert created.state in (DeploymentState.STOPPING, DeploymentState.STOPPED)
    assert states(pipeline) == ["cancelled"]
    drive(company, pipeline, until=lambda: deployment_is(created, DeploymentState.STOPPED))

    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    created.refresh_from_db()
    assert created.state == DeploymentState.READY
    assert created.revisions.count() == 1


def deployment_is(deployment: Deployment, state: DeploymentState) -> bool:
    deployment.refresh_from_db()
    return deployment.state == state


def test_cancellation_restores_the_previous_revision_of_an_existing_deployment(
    company: Company,
) -> None:
    drive(company, submit(company, D))
    pipeline = submit(company, F, D)
    drive(company, pipeline, until=lambda: pipeline_steps(pipeline)[1].state == StepState.RUNNING)
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    served = Deployment.objects.get()
    newest = served.revisions.order_by("-number")[0]
    assert (newest.number, newest.model_version) == (3, company.model)

    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    tuned, deploy = pipeline_steps(pipeline)
    newest = served.revisions.order_by("-number")[0]
    assert (newest.number, newest.model_version) == (4, tuned.output_version)
    assert deploy.revision == newest


def deploying_over(company: Company) -> tuple[Pipeline, Deployment]:
    """A deployment serves the company's model, and a pipeline is giving it another one."""
    drive(company, submit(company, D))
    pipeline = submit(company, F, D)
    drive(company, pipeline, until=lambda: pipeline_steps(pipeline)[1].state == StepState.RUNNING)
    return pipeline, Deployment.objects.get()


def cancel(company: Company, pipeline: Pipeline) -> str:
    """The last step's reason, once the pipeline is cancelled: that takes one turn."""
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    company.turn_pipelines()
    pipeline.refresh_from_db()
    assert (pipeline.state, states(pipeline)[-1]) == ("cancelled", "cancelled")
    reason: str = pipeline_steps(pipeline)[-1].state_reason
    return reason


def test_cancellation_keeps_a_concurrent_revision_of_an_existing_deployment(
    company: Company,
) -> None:
    pipeline, served = deploying_over(company)
    chosen = deployments.deployment_revise(
        deployment=served,
        configuration=RevisionConfiguration(model_version=company.model, engine=ENGINE, cards=2),
        actor=company.engineer,
        at=company.at,
    )

    reason = cancel(company, pipeline)

    assert reason == (
        "cancelled by mei; deployment parser has been changed to another revision; "
        "the deployment was left unchanged"
    )
    assert served.revisions.order_by("-number")[0] == chosen


def test_cancellation_does_not_stop_a_new_deployment_that_was_revised_concurrently(
    company: Company,
) -> None:
    pipeline = submit(company, D)
    turn(company)
    created = Deployment.objects.get()
    deployments.deployment_revise(
        deployment=created,
        configuration=RevisionConfiguration.of(created.revisions.get()),
        actor=company.engineer,
        at=company.at,
    )
    assert "has been changed to another revision" in cancel(company, pipeline)
    created.refresh_from_db()
    assert created.state not in (DeploymentState.STOPPING, DeploymentState.STOPPED)


def test_cancellation_completes_if_the_previous_version_was_rejected_since(
    company: Company,
) -> None:
    pipeline, served = deploying_over(company)
    ModelVersion.objects.filter(pk=company.model.pk).update(
        acceptance=GateDecision.REJECTED, acceptance_reason="too much was lost"
    )

    reason = cancel(company, pipeline)

    assert "deployment parser stays at revision 2, because the rollback failed: " in reason
    assert "is not accepted (too much was lost)" in reason
    assert served.revisions.count() == 2


@pytest.mark.parametrize("meddle", ["stop", "delete"])
def test_cancellation_completes_if_the_deployment_was_deleted(
    company: Company, meddle: str
) -> None:
    pipeline, served = deploying_over(company)
    if meddle == "stop":
        deployments.deployment_stop(deployment=served, actor=company.engineer, at=company.at)
    else:
        Deployment.objects.filter(pk=served.pk).update(deleted_at=company.at)

    reason = cancel(company, pipeline)

    reasons = {"stop": "is stopping: stopped by mei", "delete": "has been deleted"}
    assert reason == (
        f"cancelled by mei; deployment parser {reasons[meddle]}; the deployment was left unchanged"
    )
    assert served.revisions.count() == 2


def test_a_deployment_deleted_during_the_restore_does_not_block_cancellation(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, served = deploying_over(company)
    revise = deployments.deployment_revise

    def late(**asked: Any) -> Any:
        deployments.deployment_stop(deployment=served, actor=company.engineer, at=company.at)
        return revise(**asked)

    monkeypatch.setattr(deployments, "deployment_revise", late)
    assert "because the rollback failed: " in cancel(company, pipeline)
    served.refresh_from_db()
    # What was begun of it is undone with the refusal.
    assert served.state not in (DeploymentState.STOPPING, DeploymentState.STOPPED)
    assert served.revisions.count() == 2
