"""Pipelines and their steps."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Team, User
from apps.jobs.models import Job
from apps.models.models import DatasetVersion, ModelVersion
from apps.quotas.models import Queue
from apps.serving.models import Deployment, Revision
from controlplane.domain.pipelines.lifecycle import Gate, PipelineState, StepKind, StepState
from controlplane.persistence.models import LeasedModel, Transition, UidModel
from controlplane.persistence.reasons import ReasonField


class Pipeline(UidModel, LeasedModel):
    """Several steps submitted together; see ``controlplane.domain.pipelines.lifecycle`` for its states."""

    STATES = [(state.value, state.value) for state in PipelineState]

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="pipelines")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="pipelines")
    #: The user who started or resumed it last; its steps run with their permissions.
    runs_as = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    state = models.CharField(max_length=20, choices=STATES, default=PipelineState.RUNNING)
    #: Why it is in that state.
    state_reason = ReasonField()
    #: Input of the first step.
    model_version = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, related_name="pipelines"
    )
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="pipelines")
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: When it stopped running; None while it runs.
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=("team", "-id")),
            models.Index(
                fields=("id",),
                name="pipeline_running",
                condition=models.Q(state=PipelineState.RUNNING),
            ),
        )


class PipelineTransition(Transition):
    entity = models.ForeignKey(Pipeline, on_delete=models.CASCADE, related_name="transitions")


class Step(UidModel):
    """One step of a pipeline: its request and its results."""

    KINDS = [(kind.value, kind.value) for kind in StepKind]
    STATES = [(state.value, state.value) for state in StepState]

    pipeline = models.ForeignKey(Pipeline, on_delete=models.CASCADE, related_name="steps")
    #: Position in the pipeline, from 1.
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=20, choices=KINDS)
    state = models.CharField(max_length=20, choices=STATES, default=StepState.WAITING)
    #: Current status, or why it ended.
    state_reason = ReasonField()

    #: Empty: serving chooses an engine when the step begins.
    engine = models.CharField(max_length=40, blank=True)
    #: The engine's fields as submitted; the job or revision stores them with all defaults.
    spec = models.JSONField(default=dict, blank=True)
    #: Acceptable chips, the preferred first.
    chips = models.JSONField()
    #: Cards of the job, or of one replica.
    cards = models.PositiveIntegerField(default=1)
    #: None for a deployment.
    dataset_version = models.ForeignKey(
        DatasetVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: Model name of the version that it creates; empty if it creates none.
    output_name = models.SlugField(max_length=80, blank=True)
    #: The deployment that it creates, or revises if the team already has it.
    deployment_name = models.SlugField(max_length=80, blank=True)
    replicas = models.PositiveIntegerField(default=1)
    #: ``Gate.as_json()``; None without a gate.
    gate = models.JSONField(null=True, blank=True)

    #: Its input, once it has begun.
    model_version = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: Set in the transaction that begins the step, so there is at most one.
    job = models.OneToOneField(
        Job, on_delete=models.PROTECT, null=True, blank=True, related_name="pipeline_step"
    )
    deployment = models.ForeignKey(
        Deployment, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: The revision that it created.
    revision = models.ForeignKey(
        Revision, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    output_version = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: Metrics by name.
    metrics = models.JSONField(default=dict, blank=True)
    #: None until its gate has been evaluated.
    gate_passed = models.BooleanField(null=True, blank=True)
    #: Message with the metric and the threshold.
    gate_verdict = ReasonField()
    #: The user who overrode its missed gate, and the reason.
    overridden_by = models.CharField(max_length=150, blank=True)
    override_reason = models.TextField(blank=True)
    began_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("number",)
        constraints = (
            models.UniqueConstraint(fields=("pipeline", "number"), name="pipeline_step_number"),
        )

    def __str__(self) -> str:
        return f"{self.pipeline} step {self.number}"

    @property
    def condition(self) -> Gate | None:
        """Its gate as a value."""
        return Gate.from_json(self.gate) if self.gate else None


class StepTransition(Transition):
    entity = models.ForeignKey(Step, on_delete=models.CASCADE, related_name="transitions")
