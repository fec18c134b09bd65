"""Pages of jobs: the list, one job, and what can be done to it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors, services
from apps.jobs.models import Attempt, AttemptTransition, Job
from apps.jobs.web.progress import log_tail, loss_table
from controlplane.domain.jobs import ENDED_JOB_STATES, JOB, JobEvent, JobKind, JobState
from controlplane.domain.permissions import Permission
from controlplane.web.pages import acted, keyset, show

LIVE_STATES = (JobState.WAITING, JobState.RUNNING)


@login_required
def jobs(request: SignedIn) -> HttpResponse:
    """Filters are in the address: ``?state=&kind=&mine=1&before=``."""
    rows = selectors.jobs_visible(request.user)
    state, kind = request.GET.get("state", ""), request.GET.get("kind", "")
    if state in set(JobState):
        rows = rows.filter(state=state)
    if kind in set(JobKind):
        rows = rows.filter(kind=kind)
    if request.GET.get("mine"):
        rows = rows.filter(created_by=request.user)
    page = keyset(selectors.jobs_with_newest_attempt(rows), before=request.GET.get("before", ""))
    context = {
        "page": page,
        "states": [state.value for state in JobState],
        "kinds": [kind.value for kind in JobKind],
        "filtered": bool(state or kind or request.GET.get("mine")),
    }
    changing = any(job.state in LIVE_STATES for job in page.rows)
    return show(request, "jobs/jobs.html", context, fragment="rows", changing=changing)


@login_required
def job(request: SignedIn, uid: str) -> HttpResponse:
    found = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    attempts = list(found.attempts.select_related("cluster").order_by("-number"))
    changing = found.state not in ENDED_JOB_STATES
    context: dict[str, Any] = {
        "job": found,
        "attempts": attempts,
        "attempt": attempts[0],
        "progress": attempts[0].progress,
        "waits_because": _waits_because(found),
        "spec": _spec_rows(found.spec),
        "events": _events(found, attempts),
        **_outputs(found),
        "may_cancel": JOB.allows(JobState(found.state), JobEvent.CANCEL),
        "may_retry": JOB.allows(JobState(found.state), JobEvent.RETRY),
    }
    if not request.htmx:  # type: ignore[attr-defined]
        context |= {"tail": log_tail(attempts[0]), "losses": loss_table(found)}
    return show(request, "jobs/job.html", context, fragment="live", changing=changing)


def _waits_because(job: Job) -> str:
    """The scheduler's own words and numbers, while it waits for cards."""
    claim = selectors.waiting_claim(job)
    return claim.explanation if claim is not None else ""


def _spec_rows(spec: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """The fields of the spec in a line each, those of a group behind the group's name."""
    rows: list[tuple[str, Any]] = []
    for name, value in sorted(spec.items()):
        if isinstance(value, Mapping):
            rows += _spec_rows(value, f"{prefix}{name} ")
        else:
            rows.append((prefix + name, value))
    return rows


def _events(job: Job, attempts: list[Attempt]) -> list[dict[str, Any]]:
    """Moves of the job and of its attempts, in order."""
    numbers = {attempt.pk: attempt.number for attempt in attempts}
    moves: list[dict[str, Any]] = [
        {"at": move.at, "state": move.to_state, "reason": move.reason, "actor": move.actor}
        for move in job.transitions.all()
    ]
    moves += [
        {
            "at": move.at,
            "state": move.to_state,
            "reason": move.reason,
            "attempt": numbers[move.entity_id],
        }
        for move in AttemptTransition.objects.filter(entity__in=attempts)
    ]
    return sorted(moves, key=lambda move: move["at"])


def _outputs(job: Job) -> dict[str, Any]:
    """What it made; asked for only once it can have made something."""
    if job.state != JobState.SUCCEEDED:
        return {}
    made = selectors.job_outputs(job)
    return {
        "model_version": made.model_version,
        "evaluation": made.evaluation,
        "artifact": made.artifact,
    }


def _found_for(request: SignedIn, uid: str) -> Job:
    """A job that they may act on.

    :raises PermissionRefused: if they may only look at it.
    """
    found: Job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    accounts.require(request.user, Permission.RUN, team=found.team)
    return found


@login_required
@require_POST
def job_cancel(request: SignedIn, uid: str) -> HttpResponse:
    found = _found_for(request, uid)
    return acted(
        request,
        lambda: services.job_cancel(job=found, actor=request.user, at=timezone.now()),
        back=reverse("job", args=[uid]),
        done=_("The job is being cancelled."),
    )


@login_required
@require_POST
def job_retry(request: SignedIn, uid: str) -> HttpResponse:
    found = _found_for(request, uid)
    return acted(
        request,
        lambda: services.job_retry(job=found, actor=request.user, at=timezone.now()),
        back=reverse("job", args=[uid]),
        done=_("The job waits for cards again."),
    )


@login_required
def job_files(request: SignedIn, uid: str) -> HttpResponse:
    """The files that it made, to be downloaded one by one."""
    found = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    context = {"job": found, "artifact": selectors.job_outputs(found).artifact}
    return render(request, "jobs/files.html", context)
