"""Pipelines and their steps."""

from __future__ import annotations

from django.db import models

from apps.accounts.models import Team, User
from apps.jobs.models import Job
from apps.models.models import DatasetVersion, ModelVersion
from apps.quotas.models import Queue
from apps.serving.models import Deployment, Revision
from controlplane.domain.pipelines import Gate, PipelineState, StepKind, StepState
from controlplane.persistence.models import Entity, Leased, Transition


class Pipeline(Entity, Leased):
    """Several steps as one piece of work; see ``controlplane.domain.pipelines`` for its states."""

    STATES = [(state.value, state.value) for state in PipelineState]

    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="pipelines")
    created_by = models.ForeignKey(User, on_delete=models.PROTECT, related_name="pipelines")
    #: Who set it going last: what its steps do is done in their name, as far as they may do it.
    runs_as = models.ForeignKey(User, on_delete=models.PROTECT, related_name="+")
    name = models.CharField(max_length=120)
    state = models.CharField(max_length=20, choices=STATES, default=PipelineState.RUNNING)
    #: Why it is in that state, in words.
    state_reason = models.TextField(blank=True)
    #: What the first step works on.
    model_version = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, related_name="pipelines"
    )
    queue = models.ForeignKey(Queue, on_delete=models.PROTECT, related_name="pipelines")
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    cancel_requested_by = models.ForeignKey(
        User, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: Since when it does not run; None while it does.
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

    def __str__(self) -> str:
        return self.name


class PipelineTransition(Transition):
    entity = models.ForeignKey(Pipeline, on_delete=models.CASCADE, related_name="transitions")

    class Meta(Transition.Meta):
        abstract = False


class Step(Entity):
    """One step of a pipeline: what is asked for, and what came of it."""

    KINDS = [(kind.value, kind.value) for kind in StepKind]
    STATES = [(state.value, state.value) for state in StepState]

    pipeline = models.ForeignKey(Pipeline, on_delete=models.CASCADE, related_name="steps")
    #: Place in the pipeline, from 1.
    number = models.PositiveIntegerField()
    kind = models.CharField(max_length=20, choices=KINDS)
    state = models.CharField(max_length=20, choices=STATES, default=StepState.WAITING)
    #: What goes on, or why it ended, in words.
    state_reason = models.TextField(blank=True)

    #: Empty where serving chooses the best for what is there by then.
    engine = models.CharField(max_length=40, blank=True)
    #: The engine's fields as they were given; the job or revision keeps them with every default.
    spec = models.JSONField(default=dict, blank=True)
    #: Acceptable chips, the preferred first.
    chips = models.JSONField()
    #: Of the job, or of one replica.
    cards = models.PositiveIntegerField(default=1)
    #: None for a deployment.
    dataset_version = models.ForeignKey(
        DatasetVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: The model that what it makes becomes a version of; empty where it makes none.
    output_name = models.SlugField(max_length=80, blank=True)
    #: The deployment that it makes, or gives a new revision if the team has it already.
    deployment_name = models.SlugField(max_length=80, blank=True)
    replicas = models.PositiveIntegerField(default=1)
    #: ``Gate.as_json()``; None where it has no gate.
    gate = models.JSONField(null=True, blank=True)

    #: What it works on, once it has begun.
    model_version = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: Written with the move that begins it, so that there is one.
    job = models.OneToOneField(
        Job, on_delete=models.PROTECT, null=True, blank=True, related_name="pipeline_step"
    )
    deployment = models.ForeignKey(
        Deployment, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: The revision of the deployment that it made.
    revision = models.ForeignKey(
        Revision, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    made = models.ForeignKey(
        ModelVersion, on_delete=models.PROTECT, null=True, blank=True, related_name="+"
    )
    #: What it measured, by name.
    figures = models.JSONField(default=dict, blank=True)
    #: None until its gate has been looked at.
    gate_passed = models.BooleanField(null=True, blank=True)
    #: The figure and the threshold in words.
    gate_verdict = models.TextField(blank=True)
    #: Who waved it through a gate that it misses, and why.
    waved_by = models.CharField(max_length=150, blank=True)
    waved_reason = models.TextField(blank=True)
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

    class Meta(Transition.Meta):
        abstract = False
