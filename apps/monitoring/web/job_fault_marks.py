"""Marks of faults in the charts of a job."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils import timezone

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.jobs import selectors as jobs
from apps.monitoring.selectors.job_faults import JobFault, job_faults
from apps.monitoring.web.fault_labels import fault_mark_text

#: Newest attempts and faults; a chart of a job shows as many attempts.
_MAX_ATTEMPTS = 3
_MAX_FAULTS = 20


@login_required
def job_fault_marks(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """``{"marks": [...]}`` at steps, as ``static/js/charts.js`` draws them; one mark for all faults of a step."""
    job = get_object_or_404(jobs.jobs_visible(request.user), uid=uid)
    operates = fleet.is_fleet_operator(request.user)
    found = job_faults(job, attempts=_MAX_ATTEMPTS, limit=_MAX_FAULTS, at=timezone.now())
    by_step: dict[int, list[JobFault]] = {}
    for one in found:
        by_step.setdefault(one.step, []).append(one)
    marks: list[dict[str, Any]] = [
        {
            "x": step,
            "label": ", ".join(dict.fromkeys(one.fault.code for one in faults)),
            "detail": "\n".join(fault_mark_text(one.fault, operates=operates) for one in faults),
            "kind": "fault",
        }
        for step, faults in by_step.items()
    ]
    return JsonResponse({"marks": marks})
