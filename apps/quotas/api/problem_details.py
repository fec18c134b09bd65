"""Problem details (HTTP errors) for exceptions of this app."""

from __future__ import annotations

from typing import Any

from apps.quotas.services import QueueTreeConflict, QueueTreeOutdated, QueueTreeRefused
from apps.quotas.services.defragmentation import (
    DefragmentationInProgress,
    DefragmentationPlanStale,
    NoUsefulRelocation,
)
from apps.quotas.services.forecasts import WhatIfRefused
from apps.quotas.services.priority_classes import PriorityRefused
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.queue_files import InvalidQueueFile
from controlplane.web.problem_details import ProblemDetails, problem_translator


def _field_errors(findings: tuple[FieldFinding, ...]) -> list[dict[str, Any]]:
    return [{"field": finding.field, "message": finding.message} for finding in findings]


@problem_translator(QueueTreeRefused)
def _queue_tree_refused_problem(error: QueueTreeRefused) -> ProblemDetails:
    return ProblemDetails(
        status=422, code="queues-refused", detail=str(error), errors=_field_errors(error.findings)
    )


@problem_translator(InvalidQueueFile)
def _queue_file_problem(error: InvalidQueueFile) -> ProblemDetails:
    return ProblemDetails(
        status=422,
        code="queue-file-refused",
        detail=str(error),
        errors=_field_errors(error.findings),
    )


@problem_translator(QueueTreeConflict)
def _tree_conflict_problem(error: QueueTreeConflict) -> ProblemDetails:
    status = 412 if isinstance(error, QueueTreeOutdated) else 409
    since = [difference.message for difference in error.differences]
    return ProblemDetails(
        status=status, code="queues-changed", detail=str(error), extensions={"since": since}
    )


@problem_translator(WhatIfRefused)
def _what_if_problem(error: WhatIfRefused) -> ProblemDetails:
    return ProblemDetails(status=422, code="refused", detail=str(error))


@problem_translator(PriorityRefused)
def _priority_class_problem(error: PriorityRefused) -> ProblemDetails:
    errors = [{"field": error.field, "message": str(error)}]
    return ProblemDetails(status=422, code="refused", detail=str(error), errors=errors)


@problem_translator(NoUsefulRelocation)
def _nothing_to_move_problem(error: NoUsefulRelocation) -> ProblemDetails:
    return ProblemDetails(status=422, code="nothing-to-move", detail=str(error))


@problem_translator(DefragmentationPlanStale)
def _stale_plan_problem(error: DefragmentationPlanStale) -> ProblemDetails:
    return ProblemDetails(status=409, code="defragmentation-plan-stale", detail=str(error))


@problem_translator(DefragmentationInProgress)
def _plan_in_progress_problem(error: DefragmentationInProgress) -> ProblemDetails:
    return ProblemDetails(status=409, code="another-under-way", detail=str(error))
