"""Figures of a run for its charts: does the loss fall, and how fast does it go?

A line belongs to one attempt, so that steps which a retry ran again are drawn beside what they were before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils.translation import gettext as _

from apps.accounts.web.requests import SignedIn
from apps.jobs import selectors
from apps.jobs.selectors.curves import AttemptCurve, curves_of, points_since
from apps.jobs.web.logs import whole
from controlplane.domain.jobs import ENDED_JOB_STATES

#: The newest ones; a chart has room for six lines.
_MOST_ATTEMPTS = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One kind of line of a chart."""

    figure: str
    name: str
    kind: str = "line"


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    lines: tuple[Line, ...]
    label: str
    unit: str = ""


def _chart(name: str) -> Chart:
    if name == "loss":
        return Chart(
            lines=(
                Line(figure="loss", name=_("training loss")),
                Line(figure="eval_loss", name=_("validation loss"), kind="markers"),
            ),
            label=_("loss"),
        )
    if name == "throughput":
        lines = (Line(figure="tokens_per_second", name=_("tokens")),)
        return Chart(lines=lines, label=_("throughput"), unit=_("tokens/s"))
    raise Http404(f"there is no chart {name}")


@login_required
def job_curve(request: SignedIn, uid: str, chart: str) -> HttpResponse:
    """The chart's JSON (see ``static/js/charts.js``); with ``?attempt=&step=`` what came since then."""
    job = get_object_or_404(selectors.jobs_visible(request.user), uid=uid)
    attempt, step = whole(request, "attempt", default=0), whole(request, "step", default=0)
    drawn = _chart(chart)
    curves = points_since(job, attempt=attempt, step=step) if attempt else curves_of([job])
    curves = curves[-_MOST_ATTEMPTS:]
    at = (curves[-1].attempt.number, curves[-1].points[-1].step) if curves else (attempt, step)
    body: dict[str, Any] = {
        "x": {"label": _("step")},
        "y": {"label": drawn.label, "unit": drawn.unit},
        "series": [one for curve in curves for one in _series(curve, drawn.lines)],
        "ended": job.state in ENDED_JOB_STATES,
        "more": f"{reverse('job-curve', args=[uid, chart])}?attempt={at[0]}&step={at[1]}",
    }
    if not attempt:
        body["marks"] = _marks(curves)
    return JsonResponse(body)


def _series(curve: AttemptCurve, lines: Iterable[Line]) -> list[dict[str, Any]]:
    """The attempt's lines. The first one's names stand alone, so that they stay when a second begins."""
    number = curve.attempt.number
    return [
        {"name": _named(line.name, number), "kind": line.kind, **values_of(curve, line.figure)}
        for line in lines
        if any(line.figure in point.values for point in curve.points)
    ]


def _named(name: str, number: int) -> str:
    if number == 1:
        return name
    return _("%(line)s, attempt %(number)d") % {"line": name, "number": number}


def values_of(curve: AttemptCurve, figure: str) -> dict[str, list[Any]]:
    """``{"x": steps, "y": values}`` of the points that told the figure; what was no number is a gap."""
    points = [point for point in curve.points if figure in point.values]
    return {
        "x": [point.step for point in points],
        "y": [point.values[figure] for point in points],
    }


def _marks(curves: Sequence[AttemptCurve]) -> list[dict[str, Any]]:
    """Where a later attempt took over."""
    return [
        {
            "x": curve.points[0].step,
            "label": _("attempt %(number)d") % {"number": curve.attempt.number},
        }
        for curve in curves
        if curve.attempt.number > 1 and curve.points
    ]
