"""Storage source of pipelines."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from apps.models.selectors.storage_consumers import ReferencingConsumer, StorageHold
from apps.workflows.models import Step
from controlplane.domain.common.reasons import Reason
from controlplane.domain.pipelines import PipelineState

#: How long after its end the inputs of a pipeline are kept, so that it can be retried.
RETRY_WINDOW = timedelta(days=7)
#: Artifacts that a step reads.
_READ_ARTIFACTS = (
    "pipeline__model_version__artifact",
    "dataset_version__artifact",
    "output_version__artifact",
)


class WorkflowStorageConsumer(ReferencingConsumer):
    """Implements ``apps.models.selectors.storage_consumers.StorageConsumer``.

    A pipeline stores nothing itself: outputs of steps are stored by their jobs. It holds the inputs of later
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
