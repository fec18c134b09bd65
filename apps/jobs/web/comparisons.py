"""Up to five runs side by side: what was asked, how they learned, what came out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts.web.requests import SignedIn
from apps.jobs.models import Attempt, Job
from apps.jobs.selectors.comparisons import (
    MOST_COMPARED,
    comparable,
    jobs_chosen,
    newest_attempts,
    outcomes_of,
    parameters_of,
)
from apps.jobs.selectors.curves import AttemptCurve, Point, curves_of

#: Points of one line; five of them are looked at together.
_POINTS = 300
_METRICS = {
    "loss": lazy("training loss"),
    "eval_loss": lazy("validation loss"),
    "learning_rate": lazy("learning rate"),
    "tokens_per_second": lazy("throughput"),
}
#: The names of figures that runs report; those of evaluations are shown as they are.
_OUTCOMES = {
    "duration": lazy("duration"),
    "final_loss": lazy("training loss at the end"),
    "final_eval_loss": lazy("validation loss at the end"),
    "best_eval_loss": lazy("lowest validation loss"),
    "mean_tokens_per_second": lazy("tokens per second, mean"),
    "utilization": lazy("utilization (MFU)"),
    "scaling_efficiency": lazy("scaling against the fewest cards"),
    "steps": lazy("steps"),
    "exact_match": lazy("exact match"),
    "label_accuracy": lazy("label accuracy"),
    "perplexity": lazy("perplexity"),
}
_UNITS = {"tokens_per_second": lazy("tokens/s")}


@login_required
def job_compare(request: SignedIn) -> HttpResponse:
    """``?job=…&job=…&metric=loss&by=step``; the list of jobs sends its boxes here."""
    if request.method == "POST":
        chosen = request.POST.getlist("uid")
        return redirect(_address({"job": chosen}))
    uids = _uids(request)
    if len(uids) > MOST_COMPARED:
        return _too_many(request, uids)
    jobs = _jobs(request, uids)
    metric, by = _shown(request)
    context: dict[str, Any] = {
        "jobs": jobs,
        "chosen": [(job, _without(uids, job.uid)) for job in jobs],
        "offered": list(comparable(request.user, jobs)) if len(jobs) < MOST_COMPARED else [],
        "room": MOST_COMPARED - len(jobs),
        "most": MOST_COMPARED,
    }
    if len(jobs) > 1:
        attempts = newest_attempts(jobs)
        parameters = parameters_of(jobs)
        context |= {
            "differing": [row for row in parameters if row.differs],
            "same": [row for row in parameters if not row.differs],
            "outcomes": [(_label(row.name), row) for row in outcomes_of(jobs, attempts)],
            "metrics": list(_METRICS.items()),
            "metric": metric,
            "by": by,
            "figures": _address({"job": uids, "metric": [metric], "by": [by]}, "job-compare-curve"),
        }
    return render(request, "jobs/compare.html", context)


@login_required
def job_compare_curve(request: SignedIn) -> HttpResponse:
    """The chart's JSON: one line for each run, over steps or over minutes since it began."""
    uids = _uids(request)
    if len(uids) > MOST_COMPARED:
        raise Http404(f"at most {MOST_COMPARED} runs are compared, got {len(uids)}")
    jobs = _jobs(request, uids)
    metric, by = _shown(request)
    attempts = newest_attempts(jobs)
    newest = {attempt.pk for attempt in attempts.values()}
    curves = {
        curve.attempt.job_id: curve
        for curve in curves_of(jobs, most=_POINTS)
        if curve.attempt.pk in newest
    }
    axis = {"label": _("time"), "unit": _("min")} if by == "time" else {"label": _("step")}
    return JsonResponse(
        {
            "x": axis,
            "y": {"label": str(_METRICS[metric]), "unit": str(_UNITS.get(metric, ""))},
            "series": [
                _line(name, curves[job.pk], metric=metric, by=by)
                for job, name in zip(jobs, _names(jobs), strict=True)
                if job.pk in curves
            ],
            "ended": True,
        }
    )


def _line(name: str, curve: AttemptCurve, *, metric: str, by: str) -> dict[str, Any]:
    points = [point for point in curve.points if metric in point.values]
    return {
        "name": name,
        "kind": "line",
        "x": [_place(point, curve.attempt, by=by) for point in points],
        "y": [point.values[metric] for point in points],
    }


def _place(point: Point, attempt: Attempt, *, by: str) -> float:
    """The step, or minutes since the attempt's processes began."""
    if by != "time":
        return point.step
    began = attempt.started_at or attempt.created_at
    return round((point.at - began).total_seconds() / 60, 3)


def _label(name: str) -> str:
    return str(_OUTCOMES.get(name, name.replace("_", " ")))


def _names(jobs: Sequence[Job]) -> Iterable[str]:
    """Runs are often called alike; then their ids tell them apart."""
    names = [job.name for job in jobs]
    return [f"{job.name} {job.uid[:8]}" if names.count(job.name) > 1 else job.name for job in jobs]


def _uids(request: HttpRequest) -> list[str]:
    """:raises Http404: if one of them cannot be a uid."""
    uids = list(dict.fromkeys(request.GET.getlist("job")))
    if not all(uid.isalnum() for uid in uids):
        raise Http404("there is no such job here for you")
    return uids


def _jobs(request: SignedIn, uids: Sequence[str]) -> list[Job]:
    """:raises Http404: if one of them is not there for them."""
    jobs = jobs_chosen(request.user, uids)
    if len(jobs) < len(uids):
        raise Http404("there is no such job here for you")
    return jobs


def _shown(request: HttpRequest) -> tuple[str, str]:
    """What is drawn, over what; an unknown wish is answered by the usual."""
    metric, by = request.GET.get("metric", ""), request.GET.get("by", "")
    return (metric if metric in _METRICS else "loss"), ("time" if by == "time" else "step")


def _too_many(request: SignedIn, uids: Sequence[str]) -> HttpResponse:
    jobs = _jobs(request, uids)
    context = {
        "jobs": jobs,
        "chosen": [(job, _without(uids, job.uid)) for job in jobs],
        "too_many": len(jobs) - MOST_COMPARED,
        "most": MOST_COMPARED,
    }
    return render(request, "jobs/compare.html", context, status=422)


def _without(uids: Sequence[str], uid: str) -> str:
    return _address({"job": [one for one in uids if one != uid]})


def _address(parameters: Mapping[str, Sequence[str]], name: str = "job-compare") -> str:
    query = QueryDict(mutable=True)
    for key, values in parameters.items():
        query.setlist(key, list(values))
    return f"{reverse(name)}?{query.urlencode()}"
