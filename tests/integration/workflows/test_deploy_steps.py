"""The step that deploys: a new deployment or a revision of one that is there, which others may change too."""

from __future__ import annotations

import pytest

from apps.serving.models import Deployment
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services import deployments
from apps.workflows import services
from controlplane.domain.pipelines.lifecycle import (
    DEGRADED_TIMEOUT,
    PipelineState,
)
from controlplane.domain.serving.lifecycle import DeploymentEvent
from tests.integration.company import ENGINE, Company, ready_model
from tests.integration.workflows.pipeline_requests import (
    D,
    E,
    F,
    drive,
    pipeline_steps,
    states,
    step,
    submit,
    turn,
    wanted,
)


def test_an_existing_deployment_gets_a_new_revision(company: Company) -> None:
    drive(company, submit(company, D))
    pipeline = drive(company, submit(company, F, D))
    deploy = pipeline_steps(pipeline)[1]
    assert Deployment.objects.count() == 1
    assert deploy.revision is not None
    assert (deploy.revision.number, deploy.revision.model_version) == (2, deploy.model_version)


def test_a_deployment_name_of_another_team_is_refused_on_submission(company: Company) -> None:
    deployments.deployment_create(
        actor=company.stranger,
        team=company.other_team,
        name="parser",
        configuration=RevisionConfiguration(
            model_version=ready_model(team=None, name="shared"), engine=ENGINE
        ),
        queue=company.queue,
    )
    findings = services.pipeline_check(wanted(company, F, D), team=company.team)
    assert [finding.field for finding in findings] == ["steps.2.deployment_name"]


def test_a_different_replica_count_than_the_deployment_has_is_refused(
    company: Company,
) -> None:
    drive(company, submit(company, step(company, D, replicas=2)))
    other = wanted(company, F, step(company, D, replicas=1))
    findings = services.pipeline_check(other, team=company.team)
    assert [(each.field, each.message) for each in findings] == [
        (
            "steps.2.replicas",
            (
                "the number of replicas must be 2, the current number of replicas of deployment parser, got "
                "1; a pipeline does not scale an existing deployment: scale it on its "
                "own page"
            ),
        )
    ]
    same = wanted(company, F, step(company, D, replicas=2))
    assert services.pipeline_check(same, team=company.team) == ()


def test_default_replicas_are_those_of_the_deployment(company: Company) -> None:
    drive(company, submit(company, step(company, D, replicas=2)))
    unsaid = wanted(company, F, D)
    assert services.pipeline_check(unsaid, team=company.team) == ()
    again = submit(company, F, D)
    assert again.steps.get(kind=D).replicas == 2


def test_a_deployment_scaled_concurrently_keeps_its_replicas_and_the_step_reports_it(
    company: Company,
) -> None:
    drive(company, submit(company, step(company, D, replicas=2)))
    served = Deployment.objects.get()
    pipeline = submit(company, E, step(company, D, replicas=2))
    deployments.deployment_scale(
        deployment=served, replicas=1, actor=company.engineer, at=company.at
    )
    drive(company, pipeline)
    served.refresh_from_db()
    assert served.replica_count == 1
    reason = pipeline_steps(pipeline)[1].state_reason
    assert reason.endswith(
        "it has 1 replicas instead of 2, because it has been scaled in the meantime"
    )


def test_a_deployment_that_stays_degraded_fails_its_step(company: Company) -> None:
    pipeline = submit(company, D)
    turn(company)
    created = Deployment.objects.get()
    deployments.deployment_transition(
        created, DeploymentEvent.DEGRADE, at=company.at, reason="0 of 1 replicas are ready"
    )
    turn(company)
    assert states(pipeline) == ["running"]
    company.later(DEGRADED_TIMEOUT)
    company.turn_pipelines()
    pipeline.refresh_from_db()
    assert pipeline.state == PipelineState.FAILED
    assert "parser is degraded: 0 of 1 replicas are ready" in pipeline.state_reason
    # Tried again it has as long as before to recover, and does.
    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    company.turn_pipelines()
    assert states(pipeline) == ["running"]
    drive(company, pipeline)
    assert pipeline.state == PipelineState.SUCCEEDED


@pytest.mark.parametrize("meddle", ["stop", "revise", "delete"])
def test_a_step_fails_if_its_deployment_is_deleted(company: Company, meddle: str) -> None:
    pipeline = submit(company, D)
    turn(company)
    created = Deployment.objects.get()
    reasons = {"stop": "is stop", "revise": "another revision", "delete": "has been deleted"}
    if meddle == "stop":
        deployments.deployment_stop(deployment=created, actor=company.engineer, at=company.at)
    elif meddle == "revise":
        deployments.deployment_revise(
            deployment=created,
            configuration=RevisionConfiguration.of(created.revisions.get()),
            actor=company.engineer,
            at=company.at,
        )
    else:
        Deployment.objects.filter(pk=created.pk).update(deleted_at=company.at)
    drive(company, pipeline)
    assert pipeline.state == PipelineState.FAILED
    assert reasons[meddle] in pipeline.state_reason
