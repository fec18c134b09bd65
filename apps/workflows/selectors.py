"""Queries for pipelines and their steps, and the artifacts that pipelines hold."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from django.db.models import F, IntegerField, Prefetch, QuerySet, Value

from apps.accounts import selectors as accounts
from apps.models.models import ModelVersion
from apps.models.selectors.storage_consumers import StorageConsumer, StorageHold
from apps.serving.models import Deployment
from apps.workflows.models import Pipeline, PipelineTransition, Step, StepTransition
from controlplane.domain.common.reasons import Reason
from controlplane.domain.pipelines.lifecycle import PipelineState, StepKind, StepState
from controlplane.ports.engines import EngineTask

EVENTS_SHOWN = 200


def pipelines_visible(user: accounts.RequestUser) -> QuerySet[Pipeline]:
    """Pipelines of the user's teams, with prefetched steps."""
    return (
        Pipeline.objects.filter(team__in=accounts.teams_visible(user))
        .select_related("team", "created_by", "model_version__line", "queue", "cancel_requested_by")
        .prefetch_related(
            Prefetch(
                "steps",
                queryset=Step.objects.select_related(
                    "job",
                    "deployment",
                    "revision",
                    "output_version__line",
                    "model_version__line",
                    "dataset_version__dataset",
                ).order_by("number"),
            )
        )
    )


def pipeline_steps(pipeline: Pipeline) -> list[Step]:
    """The current steps in order, with what the controller needs."""
    rows = Step.objects.filter(pipeline=pipeline).select_related(
        "job",
        "deployment",
        "output_version__line",
        "output_version__artifact",
        "dataset_version__dataset",
    )
    return list(rows.order_by("number"))


def step_input_version(step: Step, *, steps: Sequence[Step], base: ModelVersion) -> ModelVersion:
    """The input of a step: the newest version that an earlier step created."""
    versions = [
        one.output_version
        for one in steps
        if one.number < step.number and one.output_version is not None
    ]
    return versions[-1] if versions else base


def find_deployment_of_team(*, pipeline: Pipeline, name: str) -> Deployment | None:
    """The team's deployment with that name; None if there is none."""
    return Deployment.objects.filter(team=pipeline.team, name=name, deleted_at=None).first()


def step_held_by_gate(steps: Sequence[Step]) -> Step | None:
    """The step whose missed gate stops the pipeline; None if none does."""
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        if step.state == StepState.HELD:
            return step
        skipped = following is not None and following.state == StepState.SKIPPED
        if skipped and step.state == StepState.SUCCEEDED and step.gate_passed is False:
            return step
    return None


def pipeline_can_be_retried(pipeline: Pipeline) -> bool:
    """Whether it stopped at a step that can be retried."""
    return pipeline.state in (PipelineState.FAILED, PipelineState.CANCELLED)


def pipeline_transitions(
    pipelines: QuerySet[Pipeline],
) -> tuple[QuerySet[PipelineTransition], QuerySet[StepTransition]]:
    """Transitions of the pipelines and of their steps; ``step`` is the number of the step, or None."""
    own = PipelineTransition.objects.filter(entity__in=pipelines)
    of_steps = StepTransition.objects.filter(entity__pipeline__in=pipelines)
    return (
        own.annotate(step=Value(None, output_field=IntegerField())),
        of_steps.select_related("entity").annotate(step=F("entity__number")),
    )


def pipeline_events(pipeline: Pipeline) -> list[PipelineTransition | StepTransition]:
    """Transitions of the pipeline and of its steps, newest first, each with ``step`` as above."""
    shown: list[PipelineTransition | StepTransition] = []
    for rows in pipeline_transitions(Pipeline.objects.filter(pk=pipeline.pk)):
        shown += rows.order_by("-id")[:EVENTS_SHOWN]
    # At the same instant, the transition of the step precedes that of the pipeline.
    shown.sort(key=lambda row: (row.at, isinstance(row, PipelineTransition), row.pk), reverse=True)
    return shown[:EVENTS_SHOWN]


def engine_task(kind: StepKind) -> EngineTask:
    return EngineTask.SERVE if kind is StepKind.DEPLOY else EngineTask(kind.value)


#: How long after its end the inputs of a pipeline are kept, so that it can be retried.
RETRY_WINDOW = timedelta(days=7)
#: Artifacts that a step reads.
_READ_ARTIFACTS = (
    "pipeline__model_version__artifact",
    "dataset_version__artifact",
    "output_version__artifact",
)


class WorkflowStorageConsumer(StorageConsumer):
    """A pipeline stores nothing itself: outputs of steps are stored by their jobs. It holds the inputs of later
    steps, which no job reads yet.
    """

    def holds(
        self, *, at: datetime, of: Collection[int] | None = None
    ) -> Mapping[int, StorageHold]:
        active = Step.objects.filter(
            pipeline__state__in=(PipelineState.RUNNING, PipelineState.HELD)
        )
        resumable = Step.objects.filter(
            pipeline__state__in=(PipelineState.FAILED, PipelineState.CANCELLED),
            pipeline__ended_at__gt=at - RETRY_WINDOW,
        )
        found: dict[int, StorageHold] = {}
        # Active pipelines last, because their reason takes precedence.
        for steps, firm in ((resumable, False), (active, True)):
            for name, state, *read in steps.order_by("pk").values_list(
                "pipeline__name", "pipeline__state", *_READ_ARTIFACTS
            ):
                reason = (
                    Reason(
                        "artifact.hold.pipeline_active",
                        "pipeline {pipeline} is {state}",
                        pipeline=name,
                        state=state,
                    )
                    if firm
                    else Reason(
                        "artifact.hold.pipeline_resumable",
                        "pipeline {pipeline} can still be resumed",
                        pipeline=name,
                    )
                )
                hold = StorageHold(reason=reason, firm=firm)
                found |= {key: hold for key in read if key and (of is None or key in of)}
        return found
