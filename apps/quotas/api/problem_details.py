"""Problem details (HTTP errors) for exceptions of this app."""

from __future__ import annotations

from apps.quotas.services import QueueTreeConflict, QueueTreeOutdated, QueueTreeRefused
from apps.quotas.services.defragmentation import (
    DefragmentationInProgress,
    DefragmentationPlanStale,
    NoUsefulRelocation,
)
from apps.quotas.services.forecasts import WhatIfRefused
from apps.quotas.services.priority_classes import PriorityRefused
from controlplane.domain.quotas.queue_files import InvalidQueueFile
from controlplane.web.problem_details import ProblemDetails, problem_translator, register_problem

register_problem(QueueTreeRefused, code="queues-refused")
register_problem(InvalidQueueFile, code="queue-file-refused")


@problem_translator(QueueTreeConflict)
def _tree_conflict_problem(error: QueueTreeConflict) -> ProblemDetails:
    status = 412 if isinstance(error, QueueTreeOutdated) else 409
    since = [difference.message for difference in error.differences]
    return ProblemDetails(
        status=status, code="queues-changed", detail=str(error), extensions={"since": since}
    )


register_problem(WhatIfRefused, code="refused")
register_problem(PriorityRefused, code="refused")
register_problem(NoUsefulRelocation, code="nothing-to-move")
register_problem(DefragmentationPlanStale, code="defragmentation-plan-stale", status=409)
register_problem(DefragmentationInProgress, code="another-under-way", status=409)
