"""Charts of reported metrics: of one job, and of up to ``MAX_COMPARED`` jobs with their specs and results.

Each line belongs to one attempt, so that steps that a retry repeats are drawn beside the first ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.jobs import selectors
from apps.jobs.models import Job
from apps.jobs.selectors.job_comparison import (
    MAX_COMPARED,
    comparable_jobs,
    compared_metrics,
    compared_parameters,
    jobs_by_uids,
    latest_attempts,
)
from apps.jobs.selectors.progress import (
    AttemptCurve,
    attempt_curves,
    attempt_curves_since,
    attempt_starts,
    checkpoint_steps,
)
from apps.jobs.web.logs import integer_parameter
from controlplane.domain.jobs.lifecycle import ENDED_JOB_STATES

#: Points of one line of a comparison.
_POINTS = 300
_METRICS = {
    "loss": lazy("training loss"),
    "eval_loss": lazy("validation loss"),
    "learning_rate": lazy("learning rate"),
    "tokens_per_second": lazy("throughput"),
}
#: Labels of results; metrics of evaluations without a label keep their names.
_OUTCOMES = {
    "duration": lazy("duration"),
    "final_loss": lazy("final training loss"),
    "final_eval_loss": lazy("final validation loss"),
    "best_eval_loss": lazy("lowest validation loss"),
    "mean_tokens_per_second": lazy("mean tokens/s"),
    "utilization": lazy("FLOPS utilization (MFU)"),
    "scaling_efficiency": lazy("scaling efficiency (baseline: fewest cards)"),
    "steps": lazy("steps"),
    "exact_match": lazy("exact match"),
    "label_accuracy": lazy("label accuracy"),
    "perplexity": lazy("perplexity"),
}
_UNITS = {"tokens_per_second": lazy("tokens/s")}


@login_required
def job_comparison_page(request: AuthenticatedRequest) -> HttpResponse:
    """``?job=…&job=…&metric=loss&by=step``; the job list posts the selected jobs here."""
    if request.method == "POST":
        chosen = request.POST.getlist("uid")
        return redirect(_compare_url({"job": chosen}))
    uids = _requested_uids(request)
    if len(uids) > MAX_COMPARED:
        return _too_many_runs_message(request, uids)
    jobs = _requested_jobs(request, uids)
    metric, by = _chart_options(request)
    context: dict[str, Any] = {
        "jobs": jobs,
        "chosen": [(job, _query_without_job(uids, job.uid)) for job in jobs],
        "offered": list(comparable_jobs(request.user, jobs)) if len(jobs) < MAX_COMPARED else [],
        "remaining": MAX_COMPARED - len(jobs),
        "most": MAX_COMPARED,
    }
    if len(jobs) > 1:
        attempts = latest_attempts(jobs)
        parameters = compared_parameters(jobs)
        context |= {
            "differing": [row for row in parameters if row.differs],
            "same": [row for row in parameters if not row.differs],
            "outcomes": [
                (_metric_label(row.name), row) for row in compared_metrics(jobs, attempts)
            ],
            "metrics": list(_METRICS.items()),
            "metric": metric,
            "by": by,
            "chart_url": _compare_url(
                {"job": uids, "metric": [metric], "by": [by]}, "job-compare-curve"
            ),
        }
    return render(request, "jobs/compare.html", context)


@login_required
def job_compare_curve(request: AuthenticatedRequest) -> HttpResponse:
    """The chart's JSON: one line for each job, by step or by minutes since its start."""
    uids = _requested_uids(request)
    if len(uids) > MAX_COMPARED:
        raise Http404(f"at most {MAX_COMPARED} runs are compared, got {len(uids)}")
    jobs = _requested_jobs(request, uids)
    metric, by = _chart_options(request)
    attempts = latest_attempts(jobs)
    newest = {attempt.pk for attempt in attempts.values()}
    curves = {
        curve.attempt.job_id: curve
        for curve in attempt_curves(jobs, max_points=_POINTS)
        if curve.attempt.pk in newest
    }
    axis = {"label": _("time"), "unit": _("min")} if by == "time" else {"label": _("step")}
    return JsonResponse(
        {
            "x": axis,
            "y": {"label": str(_METRICS[metric]), "unit": str(_UNITS.get(metric, ""))},
            "series": [
                _job_chart_series(name, curves[job.pk], metric=metric, by=by)
                for job, name in zip(jobs, _unique_job_names(jobs), strict=True)
                if job.pk in curves
            ],
            "ended": True,
        }
    )


def _job_chart_series(name: str, curve: AttemptCurve, *, metric: str, by: str) -> dict[str, Any]:
    series = {"name": name, "kind": "line", **curve_metric_points(curve, metric)}
    if by == "time":
        began = curve.attempt.started_at or curve.attempt.created_at
        points = [point for point in curve.points if metric in point.values]
        series["x"] = [round((point.at - began).total_seconds() / 60, 3) for point in points]
    return series


def _metric_label(name: str) -> str:
    return str(_OUTCOMES.get(name, name.replace("_", " ")))


def _unique_job_names(jobs: Sequence[Job]) -> Iterable[str]:
    """Names of the jobs; equal names are followed by the beginning of the uid."""
    names = [job.name for job in jobs]
    return [f"{job.name} {job.uid[:8]}" if names.count(job.name) > 1 else job.name for job in jobs]


def _requested_uids(request: HttpRequest) -> list[str]:
    """:raises Http404: if one of the values is not a uid."""
    uids = list(dict.fromkeys(request.GET.getlist("job")))
    if not all(uid.isalnum() for uid in uids):
        raise Http404("there is no such job here for you")
    return uids


def _requested_jobs(request: AuthenticatedRequest, uids: Sequence[str]) -> list[Job]:
    """:raises Http404: if one of the jobs is not visible to the user."""
    jobs = jobs_by_uids(request.user, uids)
    if len(jobs) < len(uids):
        raise Http404("there is no such job here for you")
    return jobs


def _chart_options(request: HttpRequest) -> tuple[str, str]:
    """The metric and the x axis; defaults for unknown values."""
    metric, by = request.GET.get("metric", ""), request.GET.get("by", "")
    return (metric if metric in _METRICS else "loss"), ("time" if by == "time" else "step")


def _too_many_runs_message(request: AuthenticatedRequest, uids: Sequence[str]) -> HttpResponse:
    jobs = _requested_jobs(request, uids)
    context = {
        "jobs": jobs,
        "chosen": [(job, _query_without_job(uids, job.uid)) for job in jobs],
        "too_many": len(jobs) - MAX_COMPARED,
        "most": MAX_COMPARED,
    }
    return render(request, "jobs/compare.html", context, status=422)


def _query_without_job(uids: Sequence[str], uid: str) -> str:
    return _compare_url({"job": [one for one in uids if one != uid]})


def _compare_url(parameters: Mapping[str, Sequence[str]], name: str = "job-compare") -> str:
    query = QueryDict(mutable=True)
    for key, values in parameters.items():
        query.setlist(key, list(values))
    return f"{reverse(name)}?{query.urlencode()}"


#: Newest attempts in a chart, which shows up to six lines.
_MAX_ATTEMPTS = 3
#: Newest checkpoints that are marked in a chart.
_MAX_CHECKPOINTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChart:
    #: Metric, label and kind of each line.
    lines: tuple[tuple[str, Promise, str], ...]
    label: Promise
    unit: Promise | str = ""


_CHARTS: Mapping[str, JobChart] = {
    "loss": JobChart(
        lines=(
            ("loss", lazy("training loss"), "line"),
            ("eval_loss", lazy("validation loss"), "markers"),
        ),
        label=lazy("loss"),
    ),
    "throughput": JobChart(
        lines=(("tokens_per_second", lazy("tokens"), "line"),),
        label=lazy("throughput"),
        unit=lazy("tokens/s"),
    ),
}


@login_required
def job_curve(request: AuthenticatedRequest, uid: str, chart: str) -> HttpResponse:
    """The chart's JSON (see ``static/js/charts.js``); with ``?attempt=&step=`` only points since then."""
    job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    attempt, step = (
        integer_parameter(request, "attempt", default=0),
        integer_parameter(request, "step", default=0),
    )
    if (drawn := _CHARTS.get(chart)) is None:
        raise Http404(f"there is no chart {chart}")
    curves = (
        attempt_curves_since(job, attempt=attempt, step=step) if attempt else attempt_curves([job])
    )
    curves = curves[-_MAX_ATTEMPTS:]
    at = (curves[-1].attempt.number, curves[-1].points[-1].step) if curves else (attempt, step)
    body: dict[str, Any] = {
        "x": {"label": _("step")},
        "y": {"label": str(drawn.label), "unit": str(drawn.unit)},
        "series": [one for curve in curves for one in _attempt_series(curve, drawn)],
        "ended": job.state in ENDED_JOB_STATES,
        "more": f"{reverse('job-curve', args=[uid, chart])}?attempt={at[0]}&step={at[1]}",
    }
    # A poll that brings no checkpoint keeps the marks that the chart has.
    if not attempt or any("checkpoint" in point.values for one in curves for point in one.points):
        body["marks"] = _job_marks(job)
    return JsonResponse(body)


def _attempt_series(curve: AttemptCurve, chart: JobChart) -> list[dict[str, Any]]:
    """The attempt's lines. Those of the first attempt have no number, so that they keep their names."""
    number = curve.attempt.number
    return [
        {
            "name": str(label)
            if number == 1
            else _("%(line)s, attempt %(number)d") % {"line": label, "number": number},
            "kind": kind,
            **curve_metric_points(curve, metric),
        }
        for metric, label, kind in chart.lines
        if any(metric in point.values for point in curve.points)
    ]


def curve_metric_points(curve: AttemptCurve, metric: str) -> dict[str, list[Any]]:
    """``{"x": steps, "y": values}`` of points with the metric; values that are not numbers are gaps."""
    points = [point for point in curve.points if metric in point.values]
    return {
        "x": [point.step for point in points],
        "y": [point.values[metric] for point in points],
    }


def _job_marks(job: Job) -> list[dict[str, Any]]:
    """Marks at the first step of each later attempt, and at checkpoints, of which the newest has a label."""
    starts = [
        {"x": step, "label": _("attempt %(number)d") % {"number": number}, "kind": "attempt"}
        for number, step in attempt_starts(job)[-_MAX_ATTEMPTS:]
        if number > 1
    ]
    steps = checkpoint_steps(job, limit=_MAX_CHECKPOINTS)
    saved = [
        {"x": step, "label": _("checkpoint") if step == steps[-1] else "", "kind": "checkpoint"}
        for step in steps
    ]
    return [*starts, *saved]
