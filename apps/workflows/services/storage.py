"""What pipelines need of the registry's storage."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime, timedelta

from apps.models.selectors.sources import Hold, OnlyHolds
from apps.workflows.models import Step
from controlplane.domain.pipelines import PipelineState

#: How long after its end what a pipeline reads is kept from rules, so that it can go on.
RETRYABLE_FOR = timedelta(days=7)
#: The artifacts that a step reads, or will.
_READ = (
    "pipeline__model_version__artifact",
    "dataset_version__artifact",
    "made__artifact",
)


class WorkflowStorage(OnlyHolds):
    """Implements ``apps.models.selectors.sources.StorageSource``.

    A pipeline stores nothing of its own: what steps make is stored by their jobs. What its later steps will
    read is read by no job yet.
    """

    name = "workflows"

    def holds(self, *, at: datetime, of: Collection[int] | None = None) -> Mapping[int, Hold]:
        unended = Step.objects.filter(
            pipeline__state__in=(PipelineState.RUNNING, PipelineState.HELD)
        )
        resumable = Step.objects.filter(
            pipeline__state__in=(PipelineState.FAILED, PipelineState.CANCELLED),
            pipeline__ended_at__gt=at - RETRYABLE_FOR,
        )
        found: dict[int, Hold] = {}
        # The unended last: theirs is the reason that counts.
        for steps, firm in ((resumable, False), (unended, True)):
            for name, state, *read in steps.order_by("pk").values_list(
                "pipeline__name", "pipeline__state", *_READ
            ):
                reason = (
                    f"pipeline {name} is {state}" if firm else f"pipeline {name} can still go on"
                )
                hold = Hold(reason=reason, firm=firm)
                found |= {key: hold for key in read if key and (of is None or key in of)}
        return found
