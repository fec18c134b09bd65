"""Pipelines from their submission to their end: every step, every gate, and what people do on the way."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from apps.accounts.models import AuditEntry, Membership, User
from apps.accounts.services import membership_set
from apps.jobs import services as jobs
from apps.jobs.models import Job
from apps.jobs.services import SpecRefused
from apps.models.models import Artifact, ModelVersion
from apps.models.selectors.storage import obstacles
from apps.serving.models import Deployment
from apps.serving.services import deployments
from apps.serving.services.configurations import Configuration
from apps.workflows import selectors, services
from apps.workflows.models import Pipeline
from apps.workflows.services.storage import WorkflowStorage
from config.wiring import TOPICS
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.models import Acceptance
from controlplane.domain.permissions import Role
from controlplane.domain.pipelines import (
    ACCEPTED,
    TROUBLED_FOR,
    Gate,
    Otherwise,
    PipelineState,
    StepState,
)
from controlplane.domain.serving import DeploymentEvent, DeploymentState
from controlplane.outbox.models import OutboxMessage
from tests.integration.company import ENGINE, Company, ready_model
from tests.integration.workflows.lines import (
    WELL,
    D,
    E,
    F,
    Q,
    drive,
    gated,
    processes_act,
    states,
    step,
    steps_of,
    submit,
    turn,
    wanted,
)

BADLY = {"exact_match": 0.4, "perplexity": 30.0}


def test_one_submission_tunes_measures_quantizes_measures_again_and_serves(
    company: Company,
) -> None:
    pipeline = drive(company, submit(company, F, E, Q, E, D))

    assert (pipeline.state, pipeline.state_reason) == ("succeeded", "every step is done")
    tune, before, quantize, after, deploy = steps_of(pipeline)
    assert states(pipeline) == ["succeeded"] * 5
    assert tune.model_version == company.model
    assert tune.made is not None
    assert before.model_version == quantize.model_version == tune.made
    assert quantize.made is not None
    assert (quantize.made.base, str(quantize.made)) == (tune.made, "parser-small v1")
    assert after.model_version == deploy.model_version == quantize.made
    assert after.figures == WELL
    assert deploy.deployment is not None
    assert deploy.deployment.state == DeploymentState.READY
    assert deploy.revision is not None
    assert deploy.revision.model_version == quantize.made
    names = list(Job.objects.order_by("id").values_list("name", flat=True))
    assert names == [
        "addresses · 1 finetune",
        "addresses · 2 evaluate",
        "addresses · 3 quantize",
        "addresses · 4 evaluate",
    ]


def test_a_pipeline_that_makes_nothing_works_on_the_version_that_it_began_with(
    company: Company,
) -> None:
    pipeline = drive(company, submit(company, E, D))
    measured, deployed = steps_of(pipeline)
    assert measured.model_version == deployed.model_version == company.model
    assert not ModelVersion.objects.exclude(pk=company.model.pk).exists()


def test_a_deployment_of_that_name_gets_a_new_revision(company: Company) -> None:
    drive(company, submit(company, D))
    pipeline = drive(company, submit(company, F, D))
    deploy = steps_of(pipeline)[1]
    assert Deployment.objects.count() == 1
    assert deploy.revision is not None
    assert (deploy.revision.number, deploy.revision.model_version) == (2, deploy.model_version)


def test_the_page_is_told_what_the_running_step_waits_for(company: Company) -> None:
    pipeline = submit(company, F, D)
    assert pipeline.state_reason == "about to begin"
    turn(company)
    pipeline.refresh_from_db()
    assert pipeline.state_reason == "step 1 of 2 is under way"
    turn(company)
    assert steps_of(pipeline)[0].state_reason == "running"


@pytest.mark.parametrize(
    ("changes", "field", "why"),
    [
        ({"spec": {"refuse": "no such scheme"}}, "steps.1.refuse", "no such scheme"),
        ({"dataset_version": None}, "steps.1.dataset_version", "choose a dataset version"),
        ({"chips": ("abacus",)}, "steps.1.chips", "abacus"),
        ({"cards": 0}, "steps.1.cards", "got 0"),
        ({"output_name": ""}, "steps.1.output_name", "name the model"),
        ({"engine": "steam"}, "steps.1.engine", "steam"),
        ({"gate": Gate(figure="exact_match", threshold=1)}, "steps.1.gate", "measures nothing"),
    ],
    ids=str,
)
def test_what_is_wrong_with_a_step_is_told_with_its_number_and_nothing_is_kept(
    company: Company, changes: dict[str, Any], field: str, why: str
) -> None:
    request = wanted(company, step(company, F, **changes), E)
    with pytest.raises(SpecRefused) as refusal:
        services.pipeline_submit(actor=company.engineer, team=company.team, request=request)
    found = {finding.field: finding.message for finding in refusal.value.findings}
    assert set(found) == {field}
    assert why in found[field]
    assert not Pipeline.objects.exists()


def test_what_is_wrong_with_the_whole_is_told_once(company: Company) -> None:
    ModelVersion.objects.filter(pk=company.model.pk).update(state="deleted")
    company.model.refresh_from_db()
    findings = services.pipeline_check(wanted(company, D, E), team=company.team)
    assert [finding.field for finding in findings] == ["steps", "model_version"]


def test_a_name_that_another_team_serves_under_is_refused_at_once(company: Company) -> None:
    deployments.deployment_create(
        actor=company.stranger,
        team=company.other_team,
        name="parser",
        configuration=Configuration(
            model_version=ready_model(team=None, name="shared"), engine=ENGINE
        ),
        queue=company.queue,
    )
    findings = services.pipeline_check(wanted(company, F, D), team=company.team)
    assert [finding.field for finding in findings] == ["steps.2.deployment_name"]


def test_a_missed_gate_holds_the_pipeline_with_figure_and_threshold(company: Company) -> None:
    pipeline = drive(company, submit(company, F, gated(company), Q, D), metrics=BADLY)
    assert pipeline.state == PipelineState.HELD
    words = "exact_match is only 0.4; the gate asks for ≥ 0.8"
    assert pipeline.state_reason == f"step 2 misses its gate: {words}"
    assert states(pipeline) == ["succeeded", "held", "waiting", "waiting"]
    held = steps_of(pipeline)[1]
    assert (held.gate_passed, held.gate_verdict) == (False, words)
    turn(company)
    assert Job.objects.count() == 2


def test_a_person_waves_it_through_with_a_reason_that_is_kept(company: Company) -> None:
    pipeline = drive(company, submit(company, gated(company), D), metrics=BADLY)
    wave: dict[str, Any] = {"pipeline": pipeline, "actor": company.engineer, "at": company.at}
    for reason in ("", "  ", "x" * 501):
        with pytest.raises(SpecRefused, match="1 to 500 characters"):
            services.gate_wave(**wave, reason=reason)

    services.gate_wave(**wave, reason="the test rows are mislabelled")
    with pytest.raises(IllegalTransition):
        services.gate_wave(**wave, reason="me too")

    drive(company, pipeline)
    assert states(pipeline) == ["succeeded", "succeeded"]
    waved = steps_of(pipeline)[0]
    assert (waved.gate_passed, waved.waved_by) == (False, "mei")
    assert waved.waved_reason == "the test rows are mislabelled"
    entry = AuditEntry.objects.get(action="pipeline.wave")
    assert entry.detail["reason"] == "the test rows are mislabelled"
    assert entry.detail["verdict"] == "exact_match is only 0.4; the gate asks for ≥ 0.8"


def test_a_gate_may_skip_the_rest_and_be_waved_through_all_the_same(company: Company) -> None:
    gate = gated(company, figure="perplexity", threshold=10, otherwise=Otherwise.SKIP)
    pipeline = drive(company, submit(company, gate, Q, D), metrics=BADLY)
    assert pipeline.state == PipelineState.SUCCEEDED
    words = "perplexity is as much as 30; the gate asks for ≤ 10"
    assert pipeline.state_reason == f"ended at the gate of step 1: {words}"
    assert states(pipeline) == ["succeeded", "skipped", "skipped"]
    assert steps_of(pipeline)[1].state_reason == f"skipped by the gate of step 1: {words}"

    services.gate_wave(
        pipeline=pipeline, actor=company.engineer, reason="good enough", at=company.at
    )
    drive(company, pipeline)
    assert states(pipeline) == ["succeeded"] * 3
    assert (pipeline.state, pipeline.state_reason) == ("succeeded", "every step is done")


def test_a_gate_that_is_passed_says_so_and_holds_nothing(company: Company) -> None:
    pipeline = drive(company, submit(company, gated(company), Q))
    assert states(pipeline) == ["succeeded", "succeeded"]
    passed = steps_of(pipeline)[0]
    assert passed.gate_passed is True
    assert passed.gate_verdict == "exact_match is 0.9; the gate asks for ≥ 0.8"
    with pytest.raises(IllegalTransition):
        services.gate_wave(
            pipeline=pipeline, actor=company.engineer, reason="why not", at=company.at
        )


def test_a_quantized_version_that_was_rejected_misses_its_gate_until_somebody_accepts_it(
    company: Company,
) -> None:
    tolerance = {"metrics": ["perplexity"], "tolerance": {"perplexity_increase": 0.05}}
    quantize = step(company, Q, spec=tolerance, gate=Gate(figure=ACCEPTED))
    worse = {"perplexity_before": 3.0, "perplexity_after": 3.9}
    pipeline = drive(company, submit(company, quantize, D), metrics=worse)
    assert pipeline.state == PipelineState.HELD
    assert "the quantized version was rejected: perplexity" in pipeline.state_reason
    made = steps_of(pipeline)[0].made
    assert made is not None
    assert made.acceptance == Acceptance.REJECTED

    services.gate_wave(
        pipeline=pipeline, actor=company.engineer, reason="it is for a demo", at=company.at
    )
    drive(company, pipeline)
    made.refresh_from_db()
    assert made.acceptance == Acceptance.OVERRIDDEN
    assert pipeline.state == PipelineState.SUCCEEDED
    assert steps_of(pipeline)[1].model_version == made


def fail_its_job(company: Company, pipeline: Pipeline) -> Job:
    """The job of the step that runs dies of its program."""
    turn(company)
    processes_act(company)
    turn(company)
    running = next(one for one in steps_of(pipeline) if one.state == StepState.RUNNING)
    assert running.job is not None
    attempt = running.job.attempts.get()
    company.cluster.finish(attempt.launch_name, exit_code=3)
    drive(company, pipeline, until=lambda: pipeline.state == PipelineState.FAILED)
    return running.job


def test_a_failed_step_is_tried_again_and_the_pipeline_goes_on(company: Company) -> None:
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
    assert steps_of(pipeline)[0].job == job
    assert job.attempts.count() == 2
    assert Job.objects.count() == 2


def test_a_job_that_somebody_else_retried_meanwhile_is_not_run_twice(company: Company) -> None:
    pipeline = submit(company, F, E)
    job = fail_its_job(company, pipeline)
    jobs.job_retry(job=job, actor=company.engineer, at=company.at)
    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    assert job.attempts.count() == 2


def test_a_step_whose_input_has_gone_fails_with_the_reason(company: Company) -> None:
    pipeline = submit(company, F, E)
    drive(company, pipeline, until=lambda: steps_of(pipeline)[0].state == StepState.SUCCEEDED)
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    made = steps_of(pipeline)[0].made
    assert made is not None
    assert made.artifact_id is not None
    Artifact.objects.filter(pk=made.artifact_id).update(deleted_at=company.at)
    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    assert pipeline.state == PipelineState.FAILED
    assert "parser v1 has been deleted; have it back on the storage page" in pipeline.state_reason


def test_cancelling_ends_the_job_of_the_running_step_and_can_be_taken_back(
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


def test_a_held_pipeline_is_cancelled_at_once(company: Company) -> None:
    pipeline = drive(company, submit(company, gated(company), D), metrics=BADLY)
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    pipeline.refresh_from_db()
    assert pipeline.state == PipelineState.CANCELLED
    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    assert pipeline.state == PipelineState.HELD


def test_what_ended_well_before_it_could_be_stopped_is_kept(company: Company) -> None:
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


def test_cancelling_stops_the_deployment_that_the_step_made(company: Company) -> None:
    pipeline = submit(company, D)
    turn(company)
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    turn(company)
    turn(company)
    made = Deployment.objects.get()
    assert made.state in (DeploymentState.STOPPING, DeploymentState.STOPPED)
    assert states(pipeline) == ["cancelled"]
    drive(company, pipeline, until=lambda: deployment_is(made, DeploymentState.STOPPED))

    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    made.refresh_from_db()
    assert made.state == DeploymentState.READY
    assert made.revisions.count() == 1


def deployment_is(deployment: Deployment, state: DeploymentState) -> bool:
    deployment.refresh_from_db()
    return deployment.state == state


def test_cancelling_sends_a_deployment_that_was_there_back_to_what_it_served(
    company: Company,
) -> None:
    drive(company, submit(company, D))
    pipeline = submit(company, F, D)
    drive(company, pipeline, until=lambda: steps_of(pipeline)[1].state == StepState.RUNNING)
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    served = Deployment.objects.get()
    newest = served.revisions.order_by("-number")[0]
    assert (newest.number, newest.model_version) == (3, company.model)

    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    tuned, deploy = steps_of(pipeline)
    newest = served.revisions.order_by("-number")[0]
    assert (newest.number, newest.model_version) == (4, tuned.made)
    assert deploy.revision == newest


def deploying_over(company: Company) -> tuple[Pipeline, Deployment]:
    """A deployment serves the company's model, and a pipeline is giving it another one."""
    drive(company, submit(company, D))
    pipeline = submit(company, F, D)
    drive(company, pipeline, until=lambda: steps_of(pipeline)[1].state == StepState.RUNNING)
    return pipeline, Deployment.objects.get()


def cancel(company: Company, pipeline: Pipeline) -> str:
    """The last step's reason, once the pipeline is cancelled: that takes one turn."""
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    company.turn_pipelines()
    pipeline.refresh_from_db()
    assert (pipeline.state, states(pipeline)[-1]) == ("cancelled", "cancelled")
    return steps_of(pipeline)[-1].state_reason


def test_cancelling_leaves_a_deployment_alone_that_somebody_revised_meanwhile(
    company: Company,
) -> None:
    pipeline, served = deploying_over(company)
    chosen = deployments.deployment_revise(
        deployment=served,
        configuration=Configuration(model_version=company.model, engine=ENGINE, cards=2),
        actor=company.engineer,
        at=company.at,
    )

    reason = cancel(company, pipeline)

    assert reason == (
        "cancelled by mei; the deployment parser was given another revision meanwhile and was left so"
    )
    assert served.revisions.order_by("-number")[0] == chosen


def test_cancelling_does_not_stop_a_new_deployment_that_somebody_revised_meanwhile(
    company: Company,
) -> None:
    pipeline = submit(company, D)
    turn(company)
    made = Deployment.objects.get()
    deployments.deployment_revise(
        deployment=made,
        configuration=Configuration.of(made.revisions.get()),
        actor=company.engineer,
        at=company.at,
    )
    assert "was given another revision meanwhile" in cancel(company, pipeline)
    made.refresh_from_db()
    assert made.state not in (DeploymentState.STOPPING, DeploymentState.STOPPED)


def test_cancelling_ends_although_what_was_served_before_was_rejected_since(
    company: Company,
) -> None:
    pipeline, served = deploying_over(company)
    ModelVersion.objects.filter(pk=company.model.pk).update(
        acceptance=Acceptance.REJECTED, acceptance_reason="too much was lost"
    )

    reason = cancel(company, pipeline)

    assert "the deployment parser stays at revision 2, for it could not be taken back: " in reason
    assert "is not accepted (too much was lost)" in reason
    assert served.revisions.count() == 2


@pytest.mark.parametrize("meddle", ["stop", "delete"])
def test_cancelling_ends_although_the_deployment_was_taken_away(
    company: Company, meddle: str
) -> None:
    pipeline, served = deploying_over(company)
    if meddle == "stop":
        deployments.deployment_stop(deployment=served, actor=company.engineer, at=company.at)
    else:
        Deployment.objects.filter(pk=served.pk).update(deleted_at=company.at)

    reason = cancel(company, pipeline)

    told = {"stop": "is stopping: stopped by mei", "delete": "was deleted"}
    assert reason == f"cancelled by mei; the deployment parser {told[meddle]} and was left so"
    assert served.revisions.count() == 2


def test_a_deployment_that_goes_while_it_is_taken_back_keeps_no_pipeline_from_its_end(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipeline, served = deploying_over(company)
    revise = deployments.deployment_revise

    def late(**asked: Any) -> Any:
        deployments.deployment_stop(deployment=served, actor=company.engineer, at=company.at)
        return revise(**asked)

    monkeypatch.setattr(deployments, "deployment_revise", late)
    assert "could not be taken back: " in cancel(company, pipeline)
    served.refresh_from_db()
    # What was begun of it is undone with the refusal.
    assert served.state not in (DeploymentState.STOPPING, DeploymentState.STOPPED)
    assert served.revisions.count() == 2


def test_another_number_of_replicas_than_a_deployment_has_is_refused_at_once(
    company: Company,
) -> None:
    drive(company, submit(company, step(company, D, replicas=2)))
    other = wanted(company, F, step(company, D, replicas=1))
    findings = services.pipeline_check(other, team=company.team)
    assert [(each.field, each.message) for each in findings] == [
        (
            "steps.2.replicas",
            "must be 2, as the deployment parser has now, got 1; a pipeline scales no deployment "
            "that is there: scale it on its own page",
        )
    ]
    same = wanted(company, F, step(company, D, replicas=2))
    assert services.pipeline_check(same, team=company.team) == ()


def test_replicas_of_which_nobody_says_are_those_that_the_deployment_has(company: Company) -> None:
    drive(company, submit(company, step(company, D, replicas=2)))
    unsaid = wanted(company, F, D)
    assert services.pipeline_check(unsaid, team=company.team) == ()
    again = submit(company, F, D)
    assert again.steps.get(kind=D).replicas == 2


def test_a_deployment_that_was_scaled_meanwhile_keeps_its_replicas_and_the_step_says_so(
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
    reason = steps_of(pipeline)[1].state_reason
    assert reason.endswith("its replicas are 1, not the 2 asked for: it was scaled meanwhile")


def test_a_deployment_that_stays_in_trouble_fails_its_step(company: Company) -> None:
    pipeline = submit(company, D)
    turn(company)
    made = Deployment.objects.get()
    deployments.deployment_move(
        made, DeploymentEvent.DEGRADE, at=company.at, reason="0 of 1 replicas are ready"
    )
    turn(company)
    assert states(pipeline) == ["running"]
    company.later(TROUBLED_FOR)
    company.turn_pipelines()
    pipeline.refresh_from_db()
    assert pipeline.state == PipelineState.FAILED
    assert "parser is in trouble: 0 of 1 replicas are ready" in pipeline.state_reason
    # Tried again it has as long as before to recover, and does.
    services.pipeline_retry(pipeline=pipeline, actor=company.engineer, at=company.at)
    company.turn_pipelines()
    assert states(pipeline) == ["running"]
    drive(company, pipeline)
    assert pipeline.state == PipelineState.SUCCEEDED


@pytest.mark.parametrize("meddle", ["stop", "revise", "delete"])
def test_a_step_fails_whose_deployment_somebody_else_takes_away(
    company: Company, meddle: str
) -> None:
    pipeline = submit(company, D)
    turn(company)
    made = Deployment.objects.get()
    told = {"stop": "is stop", "revise": "another revision", "delete": "was deleted"}
    if meddle == "stop":
        deployments.deployment_stop(deployment=made, actor=company.engineer, at=company.at)
    elif meddle == "revise":
        deployments.deployment_revise(
            deployment=made,
            configuration=Configuration.of(made.revisions.get()),
            actor=company.engineer,
            at=company.at,
        )
    else:
        Deployment.objects.filter(pk=made.pk).update(deleted_at=company.at)
    drive(company, pipeline)
    assert pipeline.state == PipelineState.FAILED
    assert told[meddle] in pipeline.state_reason


def test_what_its_runner_may_no_longer_do_is_not_done_in_their_name(company: Company) -> None:
    pipeline = submit(company, F, D)
    drive(company, pipeline, until=lambda: steps_of(pipeline)[0].state == StepState.RUNNING)
    Membership.objects.filter(user=company.engineer).delete()
    drive(company, pipeline)
    assert pipeline.state == PipelineState.FAILED
    assert "step 2 failed: this needs the permission to deploy" in pipeline.state_reason
    assert not Deployment.objects.exists()

    other = User.objects.create(username="nils")
    membership_set(team=company.team, user=other, roles=frozenset({Role.ENGINEER}), actor=None)
    services.pipeline_retry(pipeline=pipeline, actor=other, at=company.at)
    drive(company, pipeline)
    assert pipeline.state == PipelineState.SUCCEEDED
    assert Deployment.objects.get().created_by == other


def test_its_end_is_told_with_everything_that_a_neighbour_needs(company: Company) -> None:
    pipeline = drive(company, submit(company, E))
    (told,) = OutboxMessage.objects.filter(topic="pipeline.ended")
    assert told.payload == {
        "event_uid": told.payload["event_uid"],
        "pipeline_uid": pipeline.uid,
        "name": "addresses",
        "team_uid": company.team.uid,
        "maker_uid": company.engineer.uid,
        "actor_name": "",
        "state": "succeeded",
        "reason": "every step is done",
        "at": company.at.isoformat(),
    }
    for task in TOPICS["pipeline.ended"]:
        task(**told.payload)
    note = company.engineer.notifications.get()
    assert (note.kind, note.event.subject_uid) == ("pipeline.succeeded", pipeline.uid)


def test_news_of_its_job_and_deployment_take_it_further_at_once(company: Company) -> None:
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


def test_what_later_steps_will_read_is_held_in_storage_until_it_has_ended(
    company: Company,
) -> None:
    pipeline = submit(company, F, E)
    drive(company, pipeline, until=lambda: steps_of(pipeline)[0].state == StepState.SUCCEEDED)
    made = steps_of(pipeline)[0].made
    assert made is not None
    assert made.artifact is not None
    assert any("pipeline addresses" in each for each in obstacles(made.artifact, at=company.at))
    services.pipeline_cancel(pipeline=pipeline, actor=company.engineer, at=company.at)
    drive(company, pipeline)
    source = WorkflowStorage()
    hold = source.holds(at=company.at, of=[made.artifact.pk])[made.artifact.pk]
    assert (hold.firm, hold.reason) == (False, "pipeline addresses can still go on")
    later = company.at + timedelta(days=8)
    assert source.holds(at=later) == {}


def test_everything_that_happened_can_be_read(company: Company) -> None:
    pipeline = drive(company, submit(company, gated(company), D), metrics=BADLY)
    told = [(one.subject, one.move.event) for one in selectors.events_of(pipeline)]
    assert told == [
        ("pipeline", "hold"),
        ("step", "miss"),
        ("step", "begin"),
    ]
