"""Problem details (HTTP errors) for exceptions of this app."""

from __future__ import annotations

from typing import Any

from apps.quotas.services import TreeConflict, TreeOutdated, TreeRefused
from apps.quotas.services.defragmentation import (
    AnotherUnderWay,
    NothingToMove,
    RearrangementStale,
)
from apps.quotas.services.forecasts import WhatIfRefused
from apps.quotas.services.priority_classes import PriorityRefused
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.files import InvalidQueueFile
from controlplane.web.problems import Problem, translates


def _errors(findings: tuple[FieldFinding, ...]) -> list[dict[str, Any]]:
    return [{"field": finding.field, "message": finding.message} for finding in findings]


@translates(TreeRefused)
def _tree(error: TreeRefused) -> Problem:
    return Problem(
        status=422, code="queues-refused", detail=str(error), errors=_errors(error.findings)
    )


@translates(InvalidQueueFile)
def _file(error: InvalidQueueFile) -> Problem:
    return Problem(
        status=422, code="queue-file-refused", detail=str(error), errors=_errors(error.findings)
    )


@translates(TreeConflict)
def _conflict(error: TreeConflict) -> Problem:
    status = 412 if isinstance(error, TreeOutdated) else 409
    since = [difference.message for difference in error.differences]
    return Problem(
        status=status, code="queues-changed", detail=str(error), extensions={"since": since}
    )


@translates(WhatIfRefused)
def _question(error: WhatIfRefused) -> Problem:
    return Problem(status=422, code="refused", detail=str(error))


@translates(PriorityRefused)
def _priority(error: PriorityRefused) -> Problem:
    errors = [{"field": error.field, "message": str(error)}]
    return Problem(status=422, code="refused", detail=str(error), errors=errors)


@translates(NothingToMove)
def _nothing(error: NothingToMove) -> Problem:
    return Problem(status=422, code="nothing-to-move", detail=str(error))


@translates(RearrangementStale)
def _stale(error: RearrangementStale) -> Problem:
    return Problem(status=409, code="rearrangement-stale", detail=str(error))


@translates(AnotherUnderWay)
def _busy(error: AnotherUnderWay) -> Problem:
    return Problem(status=409, code="another-under-way", detail=str(error))
