"""The page of one job: overview, events, spec, launch, cluster objects and files; cancel and retry."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import FileResponse, Http404, HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts import selectors as accounts
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.fleet.models import Cluster
from apps.jobs import selectors, services
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors.job_comparison import flatten_spec
from apps.jobs.selectors.job_history import (
    AttemptTimeline,
    attempt_timelines,
    job_history,
    spec_changes,
)
from apps.jobs.selectors.progress import attempt_utilization, job_progress_of
from apps.jobs.web.job_submission import job_launch_comparison_context
from apps.jobs.web.logs import log_context
from apps.models import selectors as registry
from apps.models.models import Artifact
from apps.quotas import selectors as quotas
from apps.quotas.web.usage_reports import workload_usage
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.jobs.lifecycle import ENDED_JOB_STATES, JOB, JobEvent, JobKind, JobState
from controlplane.domain.jobs.retries import RetryPolicy
from controlplane.domain.quotas.claims import ClaimState, GangShape
from controlplane.ports.artifacts import BlobMissing
from controlplane.ports.clusters import (
    ClusterError,
    ClusterEvent,
    ClusterObject,
    InspectableCluster,
)
from controlplane.web.pages import PageTab, is_htmx_fragment_request, render_page, row_action_view
from controlplane.web.reasons import render_reason


@login_required
def job_detail(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """``?tab=`` is ``overview``, ``log``, ``events``, ``spec`` or ``rendered``."""
    found = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    attempts = list(found.attempts.select_related("cluster", "job").order_by("-number"))
    tab = request.GET.get("tab", "")
    parts = {
        "log": log_context,
        "events": _events_context,
        "spec": _spec_context,
        "rendered": _launch_context,
        "cluster": job_cluster_context,
    }
    part = parts.get(tab, _overview_context)
    tab = tab if tab in parts else "overview"
    context = {
        **job_context(request, found, attempts, tab=tab),
        "attempts": attempts,
        "attempt": attempts[0],
        **part(request, found, attempts),
    }
    if tab == "cluster" and is_htmx_fragment_request(request):
        return render(request, "jobs/cluster.html#seen", context)
    if tab in ("log", "spec", "rendered", "cluster"):
        return render(request, f"jobs/{tab}.html", context)
    changing = found.state not in ENDED_JOB_STATES
    return render_page(request, f"jobs/{tab}.html", context, fragment="live", changing=changing)


def job_context(
    request: AuthenticatedRequest, found: Job, attempts: list[Attempt], *, tab: str
) -> dict[str, Any]:
    """Context that all tabs share."""
    page = reverse("job", args=[found.uid])
    files = reverse("job-files", args=[found.uid])
    return {
        "job": found,
        "refusals": _action_refusals(request, found),
        "tabs": [
            PageTab(label=_("Overview"), href=page, current=tab == "overview"),
            PageTab(label=_("Log"), href=f"{page}?tab=log", current=tab == "log"),
            PageTab(label=_("Events"), href=f"{page}?tab=events", current=tab == "events"),
            PageTab(label=_("Files"), href=files, current=tab == "files"),
            PageTab(label=_("Spec"), href=f"{page}?tab=spec", current=tab == "spec"),
            PageTab(
                label=_("Rendered launch"), href=f"{page}?tab=rendered", current=tab == "rendered"
            ),
            *_cluster_tab(attempts, href=f"{page}?tab=cluster", current=tab == "cluster"),
        ],
    }


def _cluster_tab(attempts: list[Attempt], *, href: str, current: bool) -> list[PageTab]:
    """The tab, if an attempt is on a cluster that can be inspected."""
    if not current and not attempts_on_inspectable_clusters(attempts):
        return []
    return [PageTab(label=_("Cluster objects"), href=href, current=current)]


def _action_refusals(request: AuthenticatedRequest, found: Job) -> dict[str, str]:
    """For each action on the job, why it is refused; empty if it is allowed."""
    state = JobState(found.state)
    role = ""
    if not roles_grant(accounts.roles_of(request.user, found.team), Permission.RUN):
        role = _("Your role in team %(team)s is read-only. An administrator can change it.") % {
            "team": found.team
        }
    cancel = retry = compare = ""
    if not JOB.allows(state, JobEvent.CANCEL):
        cancel = _("The job or pipeline has already ended.")
    elif found.cancel_requested_at is not None:
        cancel = _("The job or pipeline is already being cancelled.")
    if not JOB.allows(state, JobEvent.RETRY):
        retry = (
            _("Succeeded jobs cannot be retried. Clone the job to run it again.")
            if state is JobState.SUCCEEDED
            else _("Only failed or cancelled jobs can be retried.")
        )
    if found.kind == JobKind.SCRIPT:
        compare = _("Script jobs report no metrics to compare.")
    return {
        "cancel": role or cancel,
        "retry": role or retry,
        "clone": role,
        "compare": compare,
    }


def _overview_context(
    request: AuthenticatedRequest, found: Job, attempts: list[Attempt]
) -> dict[str, Any]:
    newest, at = attempts[0], timezone.now()
    return {
        "progress": newest.progress,
        "job_progress": job_progress_of(newest.progress, reported_at=newest.reported_at, at=at),
        "utilization": attempt_utilization(newest),
        "tracks": attempt_tracks(attempt_timelines(attempts), at=at),
        "changes": spec_changes(found, attempts),
        "used": workload_usage(found.uid, at=at),
        **_pending_context(found, newest),
        **_outputs_context(request, found, attempts),
    }


def _pending_context(found: Job, newest: Attempt) -> dict[str, Any]:
    """The pending reason and queue position of a waiting job, and the claim for its placement details."""
    if found.state in ENDED_JOB_STATES:
        return {"why": ""}
    context = {"claim_uid": newest.claim_uid, "why": newest.claim_uid}
    claim = selectors.attempt_claim(newest) if found.state == JobState.WAITING else None
    if claim is None or claim.state != ClaimState.PENDING:
        return context
    place = quotas.queue_position(queue=found.queue, chips=found.chips, claim=claim)
    explanation_uid = f"{claim.uid}-waits"
    return {**context, "why": explanation_uid, "pending_reason": claim.explanation, "place": place}


def _outputs_context(
    request: AuthenticatedRequest, found: Job, attempts: list[Attempt]
) -> dict[str, Any]:
    """Outputs and evaluations of a succeeded job."""
    if found.state != JobState.SUCCEEDED:
        return {}
    uids = [attempt.uid for attempt in attempts]
    outputs = registry.outputs_of_job(job_uid=found.uid, attempt_uids=uids)
    measured = outputs.model_version or (found.model_version if outputs.evaluation else None)
    evaluations = registry.evaluations_with_base(measured, user=request.user) if measured else []
    if outputs.evaluation is not None:
        evaluations = [one for one in evaluations if one.evaluation == outputs.evaluation]
    return {
        "model_version": outputs.model_version,
        "measured": measured,
        "evaluations": evaluations,
        "artifact": outputs.artifact,
    }


def _events_context(
    _request: AuthenticatedRequest, found: Job, attempts: list[Attempt]
) -> dict[str, Any]:
    return {"events": job_history(found, attempts), "changes": spec_changes(found, attempts)}


def _spec_context(
    request: AuthenticatedRequest, found: Job, _attempts: list[Attempt]
) -> dict[str, Any]:
    return {
        "spec": sorted(flatten_spec(found.spec).items()),
        "secret_variables": found.secret_variables.all(),
        "spec_json": spec_json(found),
        "call": curl_command(found, url=request.build_absolute_uri("/api/v1/jobs")),
    }


def _launch_context(
    request: AuthenticatedRequest, found: Job, _attempts: list[Attempt]
) -> dict[str, Any]:
    return job_launch_comparison_context(found, request.GET)


def _controllable_job_or_404(request: AuthenticatedRequest, uid: str) -> Job:
    """A job that the user may cancel and retry.

    :raises PermissionRefused: if the user may only view it.
    """
    found: Job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    accounts.require_permission(request.user, Permission.RUN, team=found.team)
    return found


@row_action_view(load=_controllable_job_or_404, page="job")
def job_cancel(request: AuthenticatedRequest, found: Job) -> str:
    services.job_cancel(job=found, actor=request.user, at=timezone.now())
    return _("The job is being cancelled.")


@row_action_view(
    load=_controllable_job_or_404, page="job", refusals=(IllegalTransition, services.SpecRefused)
)
def job_retry(request: AuthenticatedRequest, found: Job) -> str:
    services.job_retry(job=found, actor=request.user, at=timezone.now())
    return _("The job is pending again.")


@login_required
def job_files(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The output files of the job, with a download for each."""
    found = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    attempts = list(found.attempts.select_related("cluster"))
    context = {
        **job_context(request, found, attempts, tab="files"),
        "artifact": _output_artifact(found),
    }
    return render(request, "jobs/files.html", context)


@login_required
def job_output_file_download(
    request: AuthenticatedRequest, uid: str, path: str
) -> HttpResponseBase:
    job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    artifact = _output_artifact(job)
    if artifact is None:
        raise Http404(path)
    try:
        content, _size = registry.artifact_file(artifact, path)
    except (registry.ArtifactFileMissing, BlobMissing) as missing:
        raise Http404(path) from missing
    return FileResponse(content, as_attachment=True, filename=PurePosixPath(path).name)


def _output_artifact(job: Job) -> Artifact | None:
    return selectors.job_outputs(job).artifact


#: Maximum number of objects and of events shown.
MAX_SHOWN = 100


def attempts_on_inspectable_clusters(attempts: list[Attempt]) -> list[Attempt]:
    """Attempts on clusters that can be inspected, in the same order."""
    return [one for one in attempts if fleet.supports_inspection(one.cluster)]


def job_cluster_context(
    request: AuthenticatedRequest, _found: Job, attempts: list[Attempt]
) -> dict[str, Any]:
    """Objects and events of an attempt, the newest or that of ``?attempt=``; a second request queries them."""
    known = attempts_on_inspectable_clusters(attempts)
    named = request.GET.get("attempt", "")
    shown = next((one for one in known if str(one.number) == named), known[0] if known else None)
    context: dict[str, Any] = {"shown": shown, "known": known}
    requested = is_htmx_fragment_request(request) or bool(request.GET.get("asked"))
    if shown is None or shown.cluster is None or not requested:
        return context
    return {**context, "asked": True, **_cluster_details(shown, shown.cluster)}


def _cluster_details(attempt: Attempt, where: Cluster) -> dict[str, Any]:
    """Objects and events of its Launch, or the error of the cluster."""

    def both(
        cluster: InspectableCluster,
    ) -> tuple[tuple[ClusterObject, ...], tuple[ClusterEvent, ...]]:
        return cluster.objects(attempt.launch_name), cluster.events(attempt.launch_name)

    try:
        objects, events = fleet.inspect_cluster(where, both)
    except ClusterError as error:
        return {"cluster_error": render_reason(str(error))}
    # A pod's status repeats the last lines of its log.
    masked = selectors.secret_masker(attempt.job)
    return {
        "objects": [replace(one, text=masked(one.text)) for one in objects[:MAX_SHOWN]],
        "events": [replace(one, message=masked(one.message)) for one in events[:MAX_SHOWN]],
    }


#: Width of the timeline in its own units; it is stretched to the page.
WIDTH = 1000
#: Minimum width of a segment, so that short intervals stay visible.
_MIN_WIDTH = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineSegment:
    state: str
    duration: timedelta
    #: Whether the attempt is in this state now.
    is_current: bool
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptTrack:
    number: int
    segments: tuple[TimelineSegment, ...]
    #: Empty while the attempt has not ended.
    final_state: str


def attempt_tracks(runs: Sequence[AttemptTimeline], *, at: datetime) -> list[AttemptTrack]:
    """Attempts one after the other on one scale, without the time between them."""
    lengths = [
        # Rows and transitions have timestamps of different machines, whose clocks may differ.
        [
            max(timedelta(), (interval.ended_at or at) - interval.started_at)
            for interval in run.intervals
        ]
        for run in runs
    ]
    total = sum((length for row in lengths for length in row), timedelta()).total_seconds()
    count = sum(len(row) for row in lengths)
    spare = WIDTH - count * _MIN_WIDTH
    tracks, x = [], 0.0
    for run, row in zip(runs, lengths, strict=True):
        segments = []
        for interval, length in zip(run.intervals, row, strict=True):
            share = length.total_seconds() / total if total > 0 else 1 / count
            width = round(_MIN_WIDTH + max(0.0, spare) * share, 1)
            segments.append(
                TimelineSegment(
                    state=interval.state,
                    duration=length,
                    is_current=interval.ended_at is None,
                    x=round(x, 1),
                    width=width,
                )
            )
            x += width
        tracks.append(
            AttemptTrack(
                number=run.attempt.number, segments=tuple(segments), final_state=run.final_state
            )
        )
    return tracks


def job_request_body(job: Job) -> dict[str, Any]:
    """The body of ``POST /api/v1/jobs`` for an equal job, without fields that have their defaults."""
    shape = GangShape.from_json(job.shape)
    body: dict[str, Any] = {
        "kind": job.kind,
        "name": job.name,
        "team": job.team.uid,
        "queue": job.queue.name,
        "engine": job.engine,
        "model_version": job.model_version.uid if job.model_version else None,
        "dataset_version": job.dataset_version.uid if job.dataset_version else None,
        "code": job.code.uid if job.code else None,
        "output_name": job.output_name or None,
        "output_shared": job.output_shared or None,
        "chips": job.asked_chips or job.chips,
        "cards": shape.cards,
        "memory": shape.roles[0].limits.memory or None,
        "priority": job.priority or None,
        "run_seconds": job.run_seconds,
        "retry_policy": _non_default_retry_policy(job) or None,
        "spec": _without_nulls(job.spec),
        # Values are never shown: the client has to enter them.
        "secret_variables": [
            {"name": each.name, "value": ""} for each in job.secret_variables.all()
        ]
        or None,
    }
    return {name: value for name, value in body.items() if value is not None}


def _non_default_retry_policy(job: Job) -> dict[str, Any]:
    defaults = RetryPolicy.from_json({}).as_json()
    policy = job.resolved_retry_policy.as_json()
    return {name: value for name, value in policy.items() if value != defaults[name]}


def _without_nulls(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: _without_nulls(value) if isinstance(value, Mapping) else value
        for name, value in spec.items()
        if value is not None
    }


def spec_json(job: Job) -> str:
    return json.dumps(job_request_body(job), ensure_ascii=False, indent=2)


def curl_command(job: Job, *, url: str) -> str:
    """A shell command that submits an equal job, with the token from the environment."""
    return (
        f"curl -X POST {url} \\\n"
        '  -H "Authorization: Bearer $NINEFOLD_TOKEN" \\\n'
        '  -H "Content-Type: application/json" \\\n'
        f"  -d {shlex.quote(spec_json(job))}"
    )
