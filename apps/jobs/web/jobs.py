"""The page of one job: overview, events, specification and files, and what can be done to it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors, services
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors.headway import headway_of
from apps.jobs.selectors.histories import changes_of, events_of, runs_of
from apps.jobs.selectors.utilization import utilization_of
from apps.jobs.web.cluster_objects import cluster_context, inspected_attempts
from apps.jobs.web.logs import log_context
from apps.jobs.web.renderings import job_rendering
from apps.jobs.web.specs import repeated, spec_json, spec_rows
from apps.jobs.web.timelines import tracks_of
from apps.models import selectors as registry
from apps.quotas import selectors as quotas
from apps.quotas.web.report_words import used_by
from controlplane.domain.claims import ClaimState
from controlplane.domain.jobs import ENDED_JOB_STATES, JOB, JobEvent, JobKind, JobState
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.permissions import Permission, allows
from controlplane.web.pages import Tab, acting, is_fragment, show


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """For each thing that can be done to the job, why it cannot be done now; empty where it can."""

    cancel: str
    retry: str
    clone: str
    compare: str


@login_required
def job(request: SignedIn, uid: str) -> HttpResponseBase:
    """``?tab=`` is ``overview``, ``log``, ``events``, ``spec`` or ``rendered``."""
    found = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    attempts = list(found.attempts.select_related("cluster", "job").order_by("-number"))
    tab = request.GET.get("tab", "")
    parts = {
        "log": log_context,
        "events": _events,
        "spec": _spec,
        "rendered": _rendered,
        "cluster": cluster_context,
    }
    part = parts.get(tab, _overview)
    tab = tab if tab in parts else "overview"
    context = {
        **job_context(request, found, attempts, tab=tab),
        "attempts": attempts,
        "attempt": attempts[0],
        **part(request, found, attempts),
    }
    if tab == "cluster" and is_fragment(request):
        return render(request, "jobs/cluster.html#seen", context)
    if tab in ("log", "spec", "rendered", "cluster"):
        return render(request, f"jobs/{tab}.html", context)
    changing = found.state not in ENDED_JOB_STATES
    return show(request, f"jobs/{tab}.html", context, fragment="live", changing=changing)


def job_context(
    request: SignedIn, found: Job, attempts: list[Attempt], *, tab: str
) -> dict[str, Any]:
    """What surrounds every part of the page."""
    page = reverse("job", args=[found.uid])
    files = reverse("job-files", args=[found.uid])
    return {
        "job": found,
        "acts": _acts(request, found),
        "tabs": [
            Tab(label=_("Overview"), href=page, current=tab == "overview"),
            Tab(label=_("Log"), href=f"{page}?tab=log", current=tab == "log"),
            Tab(label=_("Events"), href=f"{page}?tab=events", current=tab == "events"),
            Tab(label=_("Files"), href=files, current=tab == "files"),
            Tab(label=_("What was asked for"), href=f"{page}?tab=spec", current=tab == "spec"),
            Tab(label=_("What runs"), href=f"{page}?tab=rendered", current=tab == "rendered"),
            *_cluster_tab(attempts, href=f"{page}?tab=cluster", current=tab == "cluster"),
        ],
    }


def _cluster_tab(attempts: list[Attempt], *, href: str, current: bool) -> list[Tab]:
    """Only where there is a cluster to ask."""
    if not current and not inspected_attempts(attempts):
        return []
    return [Tab(label=_("Cluster objects"), href=href, current=current)]


def _acts(request: SignedIn, found: Job) -> Acts:
    state = JobState(found.state)
    role = ""
    if not allows(accounts.roles_of(request.user, found.team), Permission.RUN):
        role = _(
            "Your role in team %(team)s lets you look, not run; an administrator can change that."
        ) % {"team": found.team}
    cancel = retry = compare = ""
    if not JOB.allows(state, JobEvent.CANCEL):
        cancel = _("It has ended already.")
    elif found.cancel_requested_at is not None:
        cancel = _("It is being cancelled already.")
    if not JOB.allows(state, JobEvent.RETRY):
        retry = (
            _("It went well; clone it to run it once more.")
            if state is JobState.SUCCEEDED
            else _("It has not ended; only a job that failed or was cancelled is run again.")
        )
    if found.kind == JobKind.SCRIPT:
        compare = _("A script reports no figures that could be compared.")
    return Acts(cancel=role or cancel, retry=role or retry, clone=role, compare=compare)


def _overview(request: SignedIn, found: Job, attempts: list[Attempt]) -> dict[str, Any]:
    newest, at = attempts[0], timezone.now()
    return {
        "progress": newest.progress,
        "headway": headway_of(newest.progress, reported_at=newest.reported_at, at=at),
        "utilization": utilization_of(newest),
        "tracks": tracks_of(runs_of(attempts), at=at),
        "changes": changes_of(found, attempts),
        "used": used_by(found.uid, at=at),
        **_waiting(found, newest),
        **_outputs(request, found, attempts),
    }


def _waiting(found: Job, newest: Attempt) -> dict[str, Any]:
    """While it waits for cards the scheduler's own words and its place; the claim to ask more about."""
    if found.state in ENDED_JOB_STATES:
        return {"why": ""}
    asked = {"claim_uid": newest.claim_uid, "why": newest.claim_uid}
    claim = selectors.claim_of(newest) if found.state == JobState.WAITING else None
    if claim is None or claim.state != ClaimState.PENDING:
        return asked
    place = quotas.place_of(queue=found.queue, chips=found.chips, claim=claim)
    why = f"{claim.uid}-waits"
    return {**asked, "why": why, "waits_because": claim.explanation, "place": place}


def _outputs(request: SignedIn, found: Job, attempts: list[Attempt]) -> dict[str, Any]:
    """What it made; asked for only once it can have made something."""
    if found.state != JobState.SUCCEEDED:
        return {}
    uids = [attempt.uid for attempt in attempts]
    made = registry.outputs_of(job_uid=found.uid, attempt_uids=uids)
    measured = made.model_version or (found.model_version if made.evaluation else None)
    evaluations = registry.evaluations_of(measured, user=request.user) if measured else []
    if made.evaluation is not None:
        evaluations = [one for one in evaluations if one.evaluation == made.evaluation]
    return {
        "model_version": made.model_version,
        "measured": measured,
        "evaluations": evaluations,
        "artifact": made.artifact,
    }


def _events(_request: SignedIn, found: Job, attempts: list[Attempt]) -> dict[str, Any]:
    return {"events": events_of(found, attempts), "changes": changes_of(found, attempts)}


def _spec(request: SignedIn, found: Job, _attempts: list[Attempt]) -> dict[str, Any]:
    return {
        "spec": spec_rows(found.spec),
        "secret_variables": found.secret_variables.all(),
        "spec_json": spec_json(found),
        "call": repeated(found, url=request.build_absolute_uri("/api/v1/jobs")),
    }


def _rendered(request: SignedIn, found: Job, _attempts: list[Attempt]) -> dict[str, Any]:
    return job_rendering(found, request.GET)


def _found_for(request: SignedIn, uid: str) -> Job:
    """A job that they may act on.

    :raises PermissionRefused: if they may only look at it.
    """
    found: Job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    accounts.require(request.user, Permission.RUN, team=found.team)
    return found


@acting(found=_found_for, page="job")
def job_cancel(request: SignedIn, found: Job) -> str:
    services.job_cancel(job=found, actor=request.user, at=timezone.now())
    return _("The job is being cancelled.")


@acting(found=_found_for, page="job", refusals=(IllegalTransition, services.SpecRefused))
def job_retry(request: SignedIn, found: Job) -> str:
    services.job_retry(job=found, actor=request.user, at=timezone.now())
    return _("The job waits for cards again.")
