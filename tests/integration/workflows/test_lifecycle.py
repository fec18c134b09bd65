"""Pipelines from their submission to their end, and what is told of them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.jobs.models import Job
from apps.jobs.services import SpecRefused
from apps.models.models import ModelVersion
from apps.models.selectors.storage import deletion_blockers
from apps.workflows import selectors, services
from apps.workflows.models import Pipeline, StepTransition
from apps.workflows.selectors import WorkflowStorageConsumer
from config.tasks import TOPICS
from controlplane.domain.pipelines.lifecycle import (
    Gate,
    StepState,
)
from controlplane.domain.serving.lifecycle import DeploymentState
from controlplane.outbox.models import OutboxMessage
from tests.integration.company import Company
from tests.integration.workflows.pipeline_requests import (
    BADLY,
    WELL,
    D,
    E,
    F,
    Q,
    drive,
    gated,
    pipeline_steps,
    processes_act,
    states,
    step,
    submit,
    turn,
    wanted,
)


def test_one_submission_finetunes_evaluates_quantizes_evaluates_and_deploys(
    company: Company,
) -> None:
    pipeline = drive(company, submit(company, F, E, Q, E, D))

    assert (pipeline.state, pipeline.state_reason) == ("succeeded", "all steps have finished")
    tune, before, quantize, after, deploy = pipeline_steps(pipeline)
    assert states(pipeline) == ["succeeded"] * 5
    assert tune.model_version == company.model
    assert tune.output_version is not None
    assert before.model_version == quantize.model_version == tune.output_version
    assert quantize.output_version is not None
    assert (quantize.output_version.base, str(quantize.output_version)) == (
        tune.output_version,
        "parser-small v1",
    )
    assert after.model_version == deploy.model_version == quantize.output_version
    assert after.metrics == WELL
    assert deploy.deployment is not None
    assert deploy.deployment.state == DeploymentState.READY
    assert deploy.revision is not None
    assert deploy.revision.model_version == quantize.output_version
    names = list(Job.objects.order_by("id").values_list("name", flat=True))
    assert names == [
        "addresses · 1 finetune",
        "addresses · 2 evaluate",
        "addresses · 3 quantize",
        "addresses · 4 evaluate",
    ]


def test_a_pipeline_that_creates_no_version_uses_the_initial_one(
    company: Company,
) -> None:
    pipeline = drive(company, submit(company, E, D))
    measured, deployed = pipeline_steps(pipeline)
    assert measured.model_version == deployed.model_version == company.model
    assert not ModelVersion.objects.exclude(pk=company.model.pk).exists()


def test_the_pending_reason_of_the_running_step_is_recorded(company: Company) -> None:
    pipeline = submit(company, F, D)
    assert pipeline.state_reason == "starting"
    turn(company)
    pipeline.refresh_from_db()
    assert pipeline.state_reason == "step 1 of 2 is running"
    turn(company)
    assert pipeline_steps(pipeline)[0].state_reason == "running"


@pytest.mark.parametrize(
    ("changes", "field", "reason"),
    [
        ({"spec": {"refuse": "no such scheme"}}, "steps.1.refuse", "no such scheme"),
        ({"dataset_version": None}, "steps.1.dataset_version", "choose a dataset version"),
        ({"chips": ("abacus",)}, "steps.1.chips", "abacus"),
        ({"cards": 0}, "steps.1.cards", "got 0"),
        ({"output_name": ""}, "steps.1.output_name", "enter the name of the model"),
        ({"engine": "steam"}, "steps.1.engine", "steam"),
        (
            {"gate": Gate(metric="exact_match", threshold=1)},
            "steps.1.gate",
            "a finetune step has no metrics for a gate",
        ),
    ],
    ids=str,
)
def test_findings_of_a_step_have_its_number_and_nothing_is_stored(
    company: Company, changes: dict[str, Any], field: str, reason: str
) -> None:
    request = wanted(company, step(company, F, **changes), E)
    with pytest.raises(SpecRefused) as refusal:
        services.pipeline_submit(actor=company.engineer, team=company.team, request=request)
    found = {finding.field: finding.message for finding in refusal.value.findings}
    assert set(found) == {field}
    assert reason in found[field]
    assert not Pipeline.objects.exists()


def test_findings_of_the_whole_pipeline_are_reported_once(company: Company) -> None:
    ModelVersion.objects.filter(pk=company.model.pk).update(state="deleted")
    company.model.refresh_from_db()
    findings = services.pipeline_check(wanted(company, D, E), team=company.team)
    assert [finding.field for finding in findings] == ["steps", "model_version"]


def test_the_message_about_its_end_is_complete(company: Company) -> None:
    pipeline = drive(company, submit(company, E))
    (message,) = OutboxMessage.objects.filter(topic="pipeline.ended")
    assert message.payload == {
        "event_uid": message.payload["event_uid"],
        "pipeline_uid": pipeline.uid,
        "name": "addresses",
        "team_uid": company.team.uid,
        "creator_uid": company.engineer.uid,
        "actor_name": "",
        "state": "succeeded",
        "reason": {"code": "pipeline.state.succeeded", "params": {}},
        "at": company.at.isoformat(),
    }
    for task in TOPICS["pipeline.ended"]:
        task(**message.payload)
    note = company.engineer.notifications.get()
    assert (note.kind, note.event.subject_uid) == ("pipeline.succeeded", pipeline.uid)


def test_messages_of_its_job_and_deployment_trigger_reconciliation(company: Company) -> None:
    pipeline = submit(company, E, D)
    turn(company)
    processes_act(company)
    company.turn_jobs()
    processes_act(company)
    company.turn_jobs()
    (ended,) = OutboxMessage.objects.filter(topic="job.ended")
    for task in TOPICS["job.ended"]:
        task(**ended.payload)
    assert states(pipeline) == ["succeeded", "running"]
    for _ in range(6):
        company.turn_deployments()
        company.schedule()
        for name in company.cluster.names():
            if name.startswith("replica-"):
                company.cluster.run(name)
    (ready,) = OutboxMessage.objects.filter(topic="deployment.ready")
    for task in TOPICS["deployment.ready"]:
        task(**ready.payload)
    assert states(pipeline) == ["succeeded", "succeeded"]


def test_inputs_of_later_steps_are_held_in_storage_until_the_end(
    company: Company,
) -> None:
    pipeline = submit(company, F, E)
    drive(company, pipeline, until=lambda: pipeline_steps(pipeline)[0].state == StepState.SUCCEEDED)
    version = pipeline_steps(pipeline)[0].output_version
    assert version is not None
    assert version.artifact is not None
    assert any(
        "pipeline addresses" in each for each in deletion_blockers(version.artifact, at=company.at)
    )
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    source = WorkflowStorageConsumer()
    hold = source.holds(at=company.at, of=[version.artifact.pk])[version.artifact.pk]
    assert (hold.firm, hold.reason) == (False, "pipeline addresses can still be resumed")
    later = company.at + timedelta(days=8)
    assert source.holds(at=later) == {}


def test_all_transitions_are_listed(company: Company) -> None:
    pipeline = drive(company, submit(company, gated(company), D), metrics=BADLY)
    events = [
        ("step" if isinstance(one, StepTransition) else "pipeline", one.event)
        for one in selectors.pipeline_events(pipeline)
    ]
    assert events == [
        ("pipeline", "hold"),
        ("step", "miss"),
        ("step", "begin"),
    ]
