"""Pipelines and their steps as people look at them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from django.db.models import Prefetch, QuerySet

from apps.accounts import selectors as accounts
from apps.models.models import ModelVersion
from apps.serving.models import Deployment
from apps.workflows.models import Pipeline, PipelineTransition, Step, StepTransition
from controlplane.domain.pipelines import PipelineState, StepState

EVENTS_SHOWN = 200


def pipelines_visible(user: accounts.RequestUser) -> QuerySet[Pipeline]:
    """Those of their teams, with their steps at hand."""
    return (
        Pipeline.objects.filter(team__in=accounts.teams_of(user))
        .select_related("team", "created_by", "model_version__line", "queue", "cancel_requested_by")
        .prefetch_related(
            Prefetch(
                "steps",
                queryset=Step.objects.select_related(
                    "job",
                    "deployment",
                    "revision",
                    "made__line",
                    "model_version__line",
                    "dataset_version__dataset",
                ).order_by("number"),
            )
        )
    )


def steps_of(pipeline: Pipeline) -> list[Step]:
    """As they are now, in their order, with what a turn needs to know."""
    rows = Step.objects.filter(pipeline=pipeline).select_related(
        "job", "deployment", "made__line", "made__artifact", "dataset_version__dataset"
    )
    return list(rows.order_by("number"))


def input_of(step: Step, *, steps: Sequence[Step], base: ModelVersion) -> ModelVersion:
    """What the step works on: the newest version that a step before it made."""
    made = [one.made for one in steps if one.number < step.number and one.made is not None]
    return made[-1] if made else base


def deployment_live(*, pipeline: Pipeline, name: str) -> Deployment | None:
    """The team's deployment of that name, if it has one."""
    return Deployment.objects.filter(team=pipeline.team, name=name, deleted_at=None).first()


def held_step(steps: Sequence[Step]) -> Step | None:
    """The step whose missed gate keeps the pipeline from going on; None if none does."""
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if step.state == StepState.HELD:
            return step
        skipped = following is not None and following.state == StepState.SKIPPED
        if skipped and step.state == StepState.SUCCEEDED and step.gate_passed is False:
            return step
    return None


def can_be_retried(pipeline: Pipeline) -> bool:
    """Whether it stands at a step that can be tried again."""
    return pipeline.state in (PipelineState.FAILED, PipelineState.CANCELLED)


class Subject(StrEnum):
    """What an event happened to."""

    PIPELINE = "pipeline"
    STEP = "step"


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    move: PipelineTransition | StepTransition
    subject: Subject
    #: The step's number; None for the pipeline itself.
    step: int | None = None


def events_of(pipeline: Pipeline) -> list[Event]:
    """Moves of the pipeline and of its steps, the newest first."""
    own = PipelineTransition.objects.filter(entity=pipeline).order_by("-id")[:EVENTS_SHOWN]
    of_steps = (
        StepTransition.objects.filter(entity__pipeline=pipeline)
        .select_related("entity")
        .order_by("-id")[:EVENTS_SHOWN]
    )
    events = [Event(move=move, subject=Subject.PIPELINE) for move in own]
    events += [Event(move=move, subject=Subject.STEP, step=move.entity.number) for move in of_steps]
    # What happened at one instant: the step first, then what followed from it for the pipeline.
    events.sort(
        key=lambda event: (event.move.at, event.subject is Subject.PIPELINE, event.move.pk),
        reverse=True,
    )
    return events[:EVENTS_SHOWN]
