"""Steps: begin, follow and end them. Each change happens under the pipeline's lease, in one transaction.

A step's job or deployment is made in the transaction that moves the step. A worker that dies before the
commit leaves nothing, and one that was overtaken meanwhile changes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.selectors import PermissionRefused
from apps.jobs import selectors as jobs_selectors
from apps.jobs import services as jobs
from apps.jobs.models import Job
from apps.models.models import Evaluation, ModelVersion
from apps.serving import selectors as serving
from apps.serving.models import Deployment, Revision
from apps.serving.selectors.configurations import RevisionConfiguration
from apps.serving.services import deployments
from apps.workflows import selectors
from apps.workflows.models import Pipeline, Step
from apps.workflows.services.lives import step_move, steps_require
from apps.workflows.services.requests import configuration_of, job_of
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.jobs.lifecycle import ENDED_JOB_STATES, JOB, JobEvent, JobState
from controlplane.domain.models import Acceptance
from controlplane.domain.pipelines import (
    MAKING,
    STEP,
    TROUBLED_FOR,
    Otherwise,
    StepEvent,
    StepKind,
    StepState,
    judge,
)
from controlplane.domain.serving.lifecycle import DeploymentState
from controlplane.persistence.state_transitions import LeaseLost


class StepRefused(Exception):
    """What the step asks for cannot be done now; the message says why."""


def hold(pipeline: Pipeline, *, cancelling: bool) -> None:
    """Keep the pipeline as this worker knows it until the transaction ends.

    :raises LeaseLost: if another worker has taken it over, or somebody asked meanwhile to cancel it.
    """
    row = Pipeline.objects.select_for_update(no_key=True).get(pk=pipeline.pk)
    same = row.lease_token == pipeline.lease_token and row.state == pipeline.state
    if not same or (row.cancel_requested_at is not None) != cancelling:
        raise LeaseLost("the pipeline is not as it was any more")


def step_begin(step: Step, *, pipeline: Pipeline, at: datetime) -> None:
    """Submit its job or make its deployment: once, however often a worker dies over it.

    :raises StepRefused: if that cannot be done; nothing is kept then.
    :raises IllegalTransition: if the step does not wait any more.
    :raises LeaseLost: if the pipeline is another worker's now.
    """
    steps = selectors.steps_of(pipeline)
    version = selectors.input_of(step, steps=steps, base=pipeline.model_version)
    try:
        with transaction.atomic():
            hold(pipeline, cancelling=False)
            reason = "waiting for cards"
            step_move(
                step, StepEvent.BEGIN, at=at, reason=reason, began_at=at, model_version=version
            )
            steps_require(pipeline.runs_as, [StepKind(step.kind)], team=pipeline.team)
            if step.kind == StepKind.DEPLOY:
                _deploy(step, pipeline=pipeline, version=version, at=at)
            else:
                _submit(step, pipeline=pipeline, version=version, at=at)
            step.save(update_fields=["job", "deployment", "revision"])
            Pipeline.objects.filter(pk=pipeline.pk).update(
                state_reason=f"step {step.number} of {len(steps)} is under way"
            )
    except (jobs.SpecRefused, PermissionRefused) as refusal:
        raise StepRefused(str(refusal)) from refusal
    except IllegalTransition as refusal:
        if refusal.machine == STEP.name:
            raise
        raise StepRefused(str(refusal)) from refusal


def _submit(step: Step, *, pipeline: Pipeline, version: ModelVersion, at: datetime) -> None:
    """A new job; where there is one already, that goes on."""
    if step.job is None:
        wanted = job_of(step, pipeline=pipeline, version=version)
        step.job = jobs.job_submit(actor=pipeline.runs_as, team=pipeline.team, request=wanted)
    elif JOB.allows(JobState(step.job.state), JobEvent.RETRY):
        jobs.job_retry(job=step.job, actor=pipeline.runs_as, at=at)


def _deploy(step: Step, *, pipeline: Pipeline, version: ModelVersion, at: datetime) -> None:
    """The team's deployment of that name with a new revision, or a new deployment.

    One that is there keeps its number of replicas: the request was checked to ask for as many, so another
    number is what a person chose since.
    """
    actor = pipeline.runs_as
    if step.deployment is not None and _is_current(step, step.deployment):
        if step.deployment.state in (DeploymentState.STOPPED, DeploymentState.STOPPING):
            deployments.deployment_start(deployment=step.deployment, actor=actor, at=at)
        return
    configuration = configuration_of(step, version=version)
    found = selectors.deployment_live(pipeline=pipeline, name=step.deployment_name)
    if found is not None:
        step.deployment = found
        step.revision = deployments.deployment_revise(
            deployment=found, configuration=configuration, actor=actor, at=at
        )
        return
    step.deployment = deployments.deployment_create(
        actor=actor,
        team=pipeline.team,
        name=step.deployment_name,
        configuration=configuration,
        queue=pipeline.queue,
        replicas=step.replicas,
    )
    step.revision = step.deployment.revisions.get()


def _is_current(step: Step, deployment: Deployment) -> bool:
    """Whether the deployment is there and nobody gave it another revision than the step's."""
    if deployment.deleted_at is not None:
        return False
    return serving.newest_revision(deployment).pk == step.revision_id


@transaction.atomic
def step_fail(step: Step, *, pipeline: Pipeline, at: datetime, reason: str) -> None:
    """:raises LeaseLost: if the pipeline is another worker's now."""
    hold(pipeline, cancelling=pipeline.cancel_requested_at is not None)
    # A refusal was noted on a step that, for all others, still waits.
    step.refresh_from_db(fields=["state"])
    step_move(step, StepEvent.FAIL, at=at, reason=reason, ended_at=at)


def step_follow(step: Step, *, pipeline: Pipeline, at: datetime) -> bool:
    """Look at what does the step, and end it if that has ended; say whether it did.

    :raises LeaseLost: if the pipeline is another worker's now.
    """
    if step.kind == StepKind.DEPLOY:
        return _follow_deployment(step, pipeline=pipeline, at=at)
    job = _job(step)
    if job.state == JobState.SUCCEEDED:
        _settle(step, job, pipeline=pipeline, at=at)
        return True
    if job.state in ENDED_JOB_STATES:
        step_fail(step, pipeline=pipeline, at=at, reason=job.state_reason)
        return True
    _note(step, reason=job.state_reason)
    return False


def step_stop(step: Step, *, pipeline: Pipeline, at: datetime) -> bool:
    """End what does the step, for the pipeline is cancelled; say whether the step has ended.

    What ended well before it could be stopped counts as done.

    :raises LeaseLost: if the pipeline is another worker's now.
    """
    actor = pipeline.cancel_requested_by or pipeline.runs_as
    reason = f"cancelled by {actor.username}"
    if step.kind == StepKind.DEPLOY:
        if _follow_deployment(step, pipeline=pipeline, at=at):
            return True
        with transaction.atomic():
            hold(pipeline, cancelling=True)
            if left := _withdraw(step, actor=actor, at=at):
                reason = f"{reason}; {left}"
            step_move(step, StepEvent.CANCEL, at=at, reason=reason, ended_at=at)
        return True
    job = _job(step)
    if job.state == JobState.SUCCEEDED:
        _settle(step, job, pipeline=pipeline, at=at)
        return True
    if job.state in ENDED_JOB_STATES:
        with transaction.atomic():
            hold(pipeline, cancelling=True)
            step_move(step, StepEvent.CANCEL, at=at, reason=reason, ended_at=at)
        return True
    if job.cancel_requested_at is None:
        with transaction.atomic():
            hold(pipeline, cancelling=True)
            jobs.job_cancel(job=job, actor=actor, at=at)
    _note(step, reason="its job is being cancelled")
    return False


def _withdraw(step: Step, *, actor: User, at: datetime) -> str:
    """Stop the deployment that the step made; send one that was there before back to what it served.

    Says why the deployment was left as it is; empty where it was not. Whatever refuses it, the step can end.
    """
    if step.deployment_id is None or step.revision is None:
        return ""
    # Held until the step has ended, so that nobody gives it another revision between the look and the change.
    deployment = Deployment.objects.select_for_update(no_key=True).get(pk=step.deployment_id)
    if why := _why_not_ours(deployment, step):
        return f"{why} and was left so"
    try:
        with transaction.atomic():
            _take_back(deployment, step.revision, actor=actor, at=at)
    except (jobs.SpecRefused, IllegalTransition) as refusal:
        return (
            f"the deployment {deployment.name} stays at revision {step.revision.number}, "
            f"for it could not be taken back: {refusal}"
        )
    return ""


def _why_not_ours(deployment: Deployment, step: Step) -> str:
    """What others did with the deployment, after which it is no longer the step's; empty while it is."""
    if deployment.deleted_at is not None:
        return f"the deployment {deployment.name} was deleted"
    if not _is_current(step, deployment):
        return f"the deployment {deployment.name} was given another revision meanwhile"
    if deployment.state in (DeploymentState.STOPPING, DeploymentState.STOPPED):
        return f"the deployment {deployment.name} is {deployment.state}: {deployment.state_reason}"
    return ""


def _take_back(deployment: Deployment, revision: Revision, *, actor: User, at: datetime) -> None:
    """:raises SpecRefused: if what it served before cannot be served any more.
    :raises IllegalTransition: if the deployment cannot change now.
    """
    earlier = (
        Revision.objects.filter(deployment=deployment, number__lt=revision.number)
        .select_related("model_version__line", "model_version__artifact")
        .order_by("-number")
        .first()
    )
    if earlier is None:
        deployments.deployment_stop(deployment=deployment, actor=actor, at=at)
    else:
        deployments.deployment_revise(
            deployment=deployment,
            configuration=RevisionConfiguration.of(earlier),
            actor=actor,
            at=at,
        )


def _job(step: Step) -> Job:
    if step.job_id is None:
        raise RuntimeError(f"{step} runs without a job")
    return Job.objects.get(pk=step.job_id)


def _deployment(step: Step) -> Deployment:
    if step.deployment_id is None:
        raise RuntimeError(f"{step} runs without a deployment")
    return Deployment.objects.get(pk=step.deployment_id)


def _note(step: Step, *, reason: str) -> None:
    """What goes on, where it differs from what is known; no move of its state."""
    if step.state_reason != reason:
        Step.objects.filter(pk=step.pk, state=StepState.RUNNING).update(state_reason=reason)


def _follow_deployment(step: Step, *, pipeline: Pipeline, at: datetime) -> bool:
    deployment = _deployment(step)
    cancelling = pipeline.cancel_requested_at is not None
    if deployment.state == DeploymentState.READY and _is_current(step, deployment):
        with transaction.atomic():
            hold(pipeline, cancelling=cancelling)
            step_move(
                step, StepEvent.SUCCEED, at=at, reason=_what_serves(deployment, step), ended_at=at
            )
        return True
    if cancelling:
        return False
    if reason := _why_failed(deployment, step, at=at):
        step_fail(step, pipeline=pipeline, at=at, reason=reason)
        return True
    _note(step, reason=deployment.state_reason)
    return False


def _what_serves(deployment: Deployment, step: Step) -> str:
    serves = f"the deployment {deployment.name} serves {step.model_version}"
    if deployment.replica_count == step.replicas:
        return serves
    return (
        f"{serves}; its replicas are {deployment.replica_count}, not the {step.replicas} asked for: "
        "it was scaled meanwhile"
    )


def _why_failed(deployment: Deployment, step: Step, *, at: datetime) -> str:
    """Empty while it may still become ready."""
    if why := _why_not_ours(deployment, step):
        return why
    if deployment.state == DeploymentState.DEGRADED:
        last = deployment.transitions.order_by("-id").first()
        since = max(last.at if last else at, step.began_at or at)
        if at - since >= TROUBLED_FOR:
            return f"the deployment {deployment.name} is in trouble: {deployment.state_reason}"
    return ""


def _settle(step: Step, job: Job, *, pipeline: Pipeline, at: datetime) -> None:
    """Its job went well: keep what it made and measured, and look at the gate."""
    outputs = jobs_selectors.job_outputs(job)
    made, evaluation = outputs.model_version, outputs.evaluation
    if made is None and step.kind in MAKING:
        step_fail(step, pipeline=pipeline, at=at, reason="its job made no model version")
        return
    changes: dict[str, Any] = {
        "made": made,
        "figures": _figures(evaluation, made),
        "ended_at": at,
    }
    with transaction.atomic():
        hold(pipeline, cancelling=pipeline.cancel_requested_at is not None)
        gate = step.condition
        if gate is None:
            step_move(step, StepEvent.SUCCEED, at=at, reason=job.state_reason, **changes)
            return
        verdict = judge(
            gate,
            figures=changes["figures"],
            acceptance=Acceptance(made.acceptance) if made else Acceptance.ACCEPTED,
            acceptance_reason=made.acceptance_reason if made else "",
        )
        changes |= {"gate_passed": verdict.passed, "gate_verdict": verdict.reason}
        stops = not verdict.passed and gate.otherwise is Otherwise.STOP
        event = StepEvent.MISS if stops else StepEvent.SUCCEED
        step_move(step, event, at=at, reason=verdict.reason, **changes)
        if not verdict.passed and gate.otherwise is Otherwise.SKIP:
            _skip_rest(step, at=at, reason=verdict.reason)


def _skip_rest(step: Step, *, at: datetime, reason: str) -> None:
    later = Step.objects.filter(
        pipeline=step.pipeline_id, number__gt=step.number, state=StepState.WAITING
    )
    for each in later.order_by("number"):
        why = f"skipped by the gate of step {step.number}: {reason}"
        step_move(each, StepEvent.SKIP, at=at, reason=why)


def _figures(evaluation: Evaluation | None, made: ModelVersion | None) -> dict[str, Any]:
    """Plain numbers only; what else a job reports is on its own page."""
    metrics: Mapping[str, Any] = evaluation.metrics if evaluation else made.metrics if made else {}
    return {
        name: value
        for name, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
