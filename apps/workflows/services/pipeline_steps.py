"""Steps of pipelines: begin, observe and end them. Each change is made under the pipeline's lease, in one
transaction.
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
from apps.serving.selectors.revision_configurations import RevisionConfiguration
from apps.serving.services import deployments
from apps.workflows import selectors
from apps.workflows.models import Pipeline, Step
from apps.workflows.services.pipelines import (
    step_configuration,
    step_job_request,
    step_transition,
    steps_require_permissions,
)
from controlplane.domain.common.reasons import Reason, join_reasons
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.jobs.lifecycle import ENDED_JOB_STATES, JOB, JobEvent, JobState
from controlplane.domain.pipelines.lifecycle import (
    DEGRADED_TIMEOUT,
    MODEL_PRODUCING_KINDS,
    STEP,
    GateFailureAction,
    StepEvent,
    StepKind,
    StepState,
    evaluate_gate,
)
from controlplane.domain.registry.versions import GateDecision
from controlplane.domain.serving.lifecycle import DeploymentState
from controlplane.persistence.state_transitions import LeaseLost


class StepRefused(Exception):
    """The step cannot begin now; the message says why."""


def lock_leased_pipeline(pipeline: Pipeline, *, cancelling: bool) -> None:
    """Lock the pipeline and check its lease until the transaction ends."""
    row = Pipeline.objects.select_for_update(no_key=True).get(pk=pipeline.pk)
    same = row.lease_token == pipeline.lease_token and row.state == pipeline.state
    if not same or (row.cancel_requested_at is not None) != cancelling:
        raise LeaseLost("pipeline.lease.lost", "the pipeline has been changed in the meantime")


def step_begin(step: Step, *, pipeline: Pipeline, at: datetime) -> None:
    """Submit the job or create the deployment of the step, exactly once even if a worker dies."""
    steps = selectors.pipeline_steps(pipeline)
    version = selectors.step_input_version(step, steps=steps, base=pipeline.model_version)
    try:
        with transaction.atomic():
            lock_leased_pipeline(pipeline, cancelling=False)
            reason = Reason("claim.pending.cards", "waiting for cards")
            step_transition(
                step, StepEvent.BEGIN, at=at, reason=reason, began_at=at, model_version=version
            )
            steps_require_permissions(pipeline.runs_as, [StepKind(step.kind)], team=pipeline.team)
            if step.kind == StepKind.DEPLOY:
                _deploy_version(step, pipeline=pipeline, version=version, at=at)
            else:
                _submit_job(step, pipeline=pipeline, version=version, at=at)
            step.save(update_fields=["job", "deployment", "revision"])
            Pipeline.objects.filter(pk=pipeline.pk).update(
                state_reason=Reason(
                    "pipeline.state.step_running",
                    "step {step} of {steps} is running",
                    step=step.number,
                    steps=len(steps),
                )
            )
    except (jobs.SpecRefused, PermissionRefused) as refusal:
        raise StepRefused(str(refusal)) from refusal
    except IllegalTransition as refusal:
        if refusal.machine == STEP.name:
            raise
        raise StepRefused(str(refusal)) from refusal


def _submit_job(step: Step, *, pipeline: Pipeline, version: ModelVersion, at: datetime) -> None:
    """Submit a new job, or retry the existing one."""
    if step.job is None:
        request = step_job_request(step, pipeline=pipeline, version=version)
        step.job = jobs.job_submit(actor=pipeline.runs_as, team=pipeline.team, request=request)
    elif JOB.allows(JobState(step.job.state), JobEvent.RETRY):
        jobs.job_retry(job=step.job, actor=pipeline.runs_as, at=at)


def _deploy_version(step: Step, *, pipeline: Pipeline, version: ModelVersion, at: datetime) -> None:
    """Add a revision to the team's deployment of that name, or create the deployment.

    An existing deployment keeps its replica count: the request was checked to have the same, so another count was
    set by a user since.
    """
    actor = pipeline.runs_as
    if step.deployment is not None and _is_step_revision_newest(step, step.deployment):
        if step.deployment.state in (DeploymentState.STOPPED, DeploymentState.STOPPING):
            deployments.deployment_start(deployment=step.deployment, actor=actor, at=at)
        return
    configuration = step_configuration(step, version=version)
    found = selectors.find_deployment_of_team(pipeline=pipeline, name=step.deployment_name)
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


def _is_step_revision_newest(step: Step, deployment: Deployment) -> bool:
    """Whether the deployment exists and the step's revision is its newest."""
    if deployment.deleted_at is not None:
        return False
    return serving.newest_revision(deployment).pk == step.revision_id


@transaction.atomic
def step_fail(step: Step, *, pipeline: Pipeline, at: datetime, reason: str) -> None:
    """:raises LeaseLost: if another worker has the pipeline's lease."""
    lock_leased_pipeline(pipeline, cancelling=pipeline.cancel_requested_at is not None)
    # A refusal was noted on a step that, for all others, still waits.
    step.refresh_from_db(fields=["state"])
    step_transition(step, StepEvent.FAIL, at=at, reason=reason, ended_at=at)


def step_observe(step: Step, *, pipeline: Pipeline, at: datetime) -> bool:
    """Check the job or deployment of the step, and end the step if it has ended; return whether it did.

    :raises LeaseLost: if another worker has the pipeline's lease.
    """
    if step.kind == StepKind.DEPLOY:
        return _observe_deployment(step, pipeline=pipeline, at=at)
    job = _job_of_step(step)
    if job.state == JobState.SUCCEEDED:
        _complete_step(step, job, pipeline=pipeline, at=at)
        return True
    if job.state in ENDED_JOB_STATES:
        step_fail(step, pipeline=pipeline, at=at, reason=job.state_reason)
        return True
    _update_step_reason(step, reason=job.state_reason)
    return False


def step_stop(step: Step, *, pipeline: Pipeline, at: datetime) -> bool:
    """Stop the job or deployment of the step because the pipeline is cancelled; return whether the step has ended.

    A job that succeeded before it could be stopped counts as succeeded.

    :raises LeaseLost: if another worker has the pipeline's lease.
    """
    actor = pipeline.cancel_requested_by or pipeline.runs_as
    reason: str = Reason("transition.by_user.cancelled", "cancelled by {user}", user=actor.username)
    if step.kind == StepKind.DEPLOY:
        if _observe_deployment(step, pipeline=pipeline, at=at):
            return True
        with transaction.atomic():
            lock_leased_pipeline(pipeline, cancelling=True)
            if left := _withdraw_deployment(step, actor=actor, at=at):
                reason = join_reasons((reason, left))
            step_transition(step, StepEvent.CANCEL, at=at, reason=reason, ended_at=at)
        return True
    job = _job_of_step(step)
    if job.state == JobState.SUCCEEDED:
        _complete_step(step, job, pipeline=pipeline, at=at)
        return True
    if job.state in ENDED_JOB_STATES:
        with transaction.atomic():
            lock_leased_pipeline(pipeline, cancelling=True)
            step_transition(step, StepEvent.CANCEL, at=at, reason=reason, ended_at=at)
        return True
    if job.cancel_requested_at is None:
        with transaction.atomic():
            lock_leased_pipeline(pipeline, cancelling=True)
            jobs.job_cancel(job=job, actor=actor, at=at)
    _update_step_reason(step, reason=Reason("pipeline.step.job_cancelling", "cancelling the job"))
    return False


def _withdraw_deployment(step: Step, *, actor: User, at: datetime) -> str:
    """Stop the deployment that the step created, or restore the previous revision of an existing one.

    Return why the deployment was left unchanged, or an empty string. The step can end in either case.
    """
    if step.deployment_id is None or step.revision is None:
        return ""
    # Locked until the step has ended, so that no other revision is added between check and change.
    deployment = Deployment.objects.select_for_update(no_key=True).get(pk=step.deployment_id)
    if reason := _ownership_lost_reason(deployment, step):
        return Reason(
            "pipeline.step.deployment_unchanged",
            "{reason}; the deployment was left unchanged",
            reason=reason,
        )
    try:
        with transaction.atomic():
            _restore_previous_revision(deployment, step.revision, actor=actor, at=at)
    except (jobs.SpecRefused, IllegalTransition) as refusal:
        return Reason(
            "pipeline.step.rollback_failed",
            "deployment {deployment} stays at revision {revision}, because the "
            "rollback failed: {reason}",
            deployment=deployment.name,
            revision=step.revision.number,
            reason=str(refusal),
        )
    return ""


def _ownership_lost_reason(deployment: Deployment, step: Step) -> str:
    """Why the deployment no longer belongs to the step; empty while it does."""
    if deployment.deleted_at is not None:
        return Reason(
            "deployment.state.deleted",
            "deployment {deployment} has been deleted",
            deployment=deployment.name,
        )
    if step.revision is not None and step.revision.failed_at is not None:
        return Reason(
            "pipeline.step.rollout_failed",
            "the rollout of revision {revision} of deployment {deployment} failed: {reason}",
            revision=step.revision.number,
            deployment=deployment.name,
            reason=step.revision.failure_reason,
        )
    if not _is_step_revision_newest(step, deployment):
        return Reason(
            "pipeline.step.revision_replaced",
            "deployment {deployment} has been changed to another revision",
            deployment=deployment.name,
        )
    if deployment.state in (DeploymentState.STOPPING, DeploymentState.STOPPED):
        return Reason(
            "pipeline.step.deployment_not_running",
            "deployment {deployment} is {state}: {reason}",
            deployment=deployment.name,
            state=deployment.state,
            reason=deployment.state_reason,
        )
    return ""


def _restore_previous_revision(
    deployment: Deployment, revision: Revision, *, actor: User, at: datetime
) -> None:
    """:raises SpecRefused: if the previous configuration can no longer be served.
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


def _job_of_step(step: Step) -> Job:
    if step.job_id is None:
        raise RuntimeError(f"{step} runs without a job")
    return Job.objects.get(pk=step.job_id)


def _deployment_of_step(step: Step) -> Deployment:
    if step.deployment_id is None:
        raise RuntimeError(f"{step} runs without a deployment")
    return Deployment.objects.get(pk=step.deployment_id)


def _update_step_reason(step: Step, *, reason: str) -> None:
    """Update the state reason without a transition."""
    if step.state_reason != reason:
        Step.objects.filter(pk=step.pk, state=StepState.RUNNING).update(state_reason=reason)


def _observe_deployment(step: Step, *, pipeline: Pipeline, at: datetime) -> bool:
    deployment = _deployment_of_step(step)
    cancelling = pipeline.cancel_requested_at is not None
    if deployment.state == DeploymentState.READY and _is_step_revision_newest(step, deployment):
        with transaction.atomic():
            lock_leased_pipeline(pipeline, cancelling=cancelling)
            step_transition(
                step,
                StepEvent.SUCCEED,
                at=at,
                reason=_deployment_ready_reason(deployment, step),
                ended_at=at,
            )
        return True
    if cancelling:
        return False
    if reason := _deployment_failure_reason(deployment, step, at=at):
        step_fail(step, pipeline=pipeline, at=at, reason=reason)
        return True
    _update_step_reason(step, reason=deployment.state_reason)
    return False


def _deployment_ready_reason(deployment: Deployment, step: Step) -> str:
    serves = f"the deployment {deployment.name} serves {step.model_version}"
    if deployment.replica_count == step.replicas:
        return serves
    return Reason(
        "pipeline.step.replicas_changed",
        "{reason}; it has {replicas} replicas instead of {expected}, because it "
        "has been scaled in the meantime",
        reason=serves,
        replicas=deployment.replica_count,
        expected=step.replicas,
    )


def _deployment_failure_reason(deployment: Deployment, step: Step, *, at: datetime) -> str:
    """Empty while the deployment may still become ready."""
    if reason := _ownership_lost_reason(deployment, step):
        return reason
    if deployment.state == DeploymentState.DEGRADED:
        last = deployment.transitions.order_by("-id").first()
        since = max(last.at if last else at, step.began_at or at)
        if at - since >= DEGRADED_TIMEOUT:
            return Reason(
                "pipeline.step.deployment_degraded",
                "deployment {deployment} is degraded: {reason}",
                deployment=deployment.name,
                reason=deployment.state_reason,
            )
    return ""


def _complete_step(step: Step, job: Job, *, pipeline: Pipeline, at: datetime) -> None:
    """Store the outputs and metrics of a succeeded job, and evaluate the gate."""
    outputs = jobs_selectors.job_outputs(job)
    version, evaluation = outputs.model_version, outputs.evaluation
    if version is None and step.kind in MODEL_PRODUCING_KINDS:
        step_fail(
            step,
            pipeline=pipeline,
            at=at,
            reason=Reason("pipeline.step.no_model_version", "the job produced no model version"),
        )
        return
    changes: dict[str, Any] = {
        "output_version": version,
        "metrics": _numeric_metrics(evaluation, version),
        "ended_at": at,
    }
    with transaction.atomic():
        lock_leased_pipeline(pipeline, cancelling=pipeline.cancel_requested_at is not None)
        gate = step.condition
        if gate is None:
            step_transition(step, StepEvent.SUCCEED, at=at, reason=job.state_reason, **changes)
            return
        verdict = evaluate_gate(
            gate,
            metrics=changes["metrics"],
            acceptance=GateDecision(version.acceptance) if version else GateDecision.ACCEPTED,
            acceptance_reason=version.acceptance_reason if version else "",
        )
        changes |= {"gate_passed": verdict.passed, "gate_verdict": verdict.reason}
        stops = not verdict.passed and gate.otherwise is GateFailureAction.STOP
        event = StepEvent.MISS if stops else StepEvent.SUCCEED
        step_transition(step, event, at=at, reason=verdict.reason, **changes)
        if not verdict.passed and gate.otherwise is GateFailureAction.SKIP:
            _skip_remaining_steps(step, at=at, reason=verdict.reason)


def _skip_remaining_steps(step: Step, *, at: datetime, reason: str) -> None:
    later = Step.objects.filter(
        pipeline=step.pipeline_id, number__gt=step.number, state=StepState.WAITING
    )
    for each in later.order_by("number"):
        explanation = Reason(
            "pipeline.step.skipped_by_gate",
            "skipped by the gate of step {step}: {reason}",
            step=step.number,
            reason=reason,
        )
        step_transition(each, StepEvent.SKIP, at=at, reason=explanation)


def _numeric_metrics(evaluation: Evaluation | None, version: ModelVersion | None) -> dict[str, Any]:
    """Finite numbers only; other reported values are on the job's page."""
    metrics: Mapping[str, Any] = (
        evaluation.metrics if evaluation else version.metrics if version else {}
    )
    return {
        name: value
        for name, value in metrics.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    }
