"""How refusals of jobs look to a client. Deployments are refused alike."""

from __future__ import annotations

from apps.jobs.services import ReportRefused, SpecRefused
from controlplane.web.problems import Problem, translates


@translates(SpecRefused)
def _spec(error: SpecRefused) -> Problem:
    return Problem(
        status=422,
        code="spec-refused",
        detail=str(error),
        errors=[{"field": finding.field, "message": finding.message} for finding in error.findings],
    )


@translates(ReportRefused)
def _report(error: ReportRefused) -> Problem:
    return Problem(status=422, code="report-refused", detail=str(error))
