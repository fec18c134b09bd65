"""Charts of how a deployment is called: how often, how much text, how long callers wait."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts.web.requests import SignedIn
from apps.serving.selectors.usage import Figures, Step, Window, calls_of, steps_of
from apps.serving.web.deployments import found_visible


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    name: str
    value: Callable[[Figures], float | None]
    dash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    lines: tuple[Line, ...]
    label: str
    unit: str = ""
    kind: str = "line"


def _chart(name: str) -> Chart:
    if name == "calls":
        return Chart(
            lines=(
                Line(name=_("answered"), value=lambda one: one.calls - one.failed),
                Line(name=_("failed"), value=lambda one: one.failed),
            ),
            label=_("calls"),
            kind="bar",
        )
    if name == "tokens":
        return Chart(
            lines=(
                Line(name=_("read"), value=lambda one: one.tokens_read),
                Line(name=_("written"), value=lambda one: one.tokens_written),
            ),
            label=_("tokens"),
            kind="bar",
        )
    if name == "latency":
        return Chart(
            lines=(
                Line(
                    name=_("first token, median"), value=lambda one: _seconds(one.median_first_ms)
                ),
                Line(
                    name=_("first token, 95 %"),
                    value=lambda one: _seconds(one.slow_first_ms),
                    dash="dash",
                ),
                Line(
                    name=_("whole answer, median"), value=lambda one: _seconds(one.median_whole_ms)
                ),
            ),
            label=_("time"),
            unit="s",
            kind="line",
        )
    raise Http404(f"there is no chart {name}")


def _seconds(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else round(milliseconds / 1000, 4)


@login_required
def deployment_chart(request: SignedIn, uid: str, chart: str) -> HttpResponse:
    """The chart's JSON (see ``static/js/charts.js``) over ``?window=``."""
    drawn = _chart(chart)
    found = found_visible(request, uid)
    asked = request.GET.get("window", "")
    window = Window(asked) if asked in set(Window) else Window.HOUR
    steps = steps_of(
        calls_of(found, user=request.user), window=window, at=timezone.localtime(timezone.now())
    )
    called = any(step.figures.calls for step in steps)
    body: dict[str, Any] = {
        "x": {"label": "", "type": "time"},
        "y": {"label": drawn.label, "unit": drawn.unit},
        "series": [_series(line, steps, drawn) for line in drawn.lines] if called else [],
        "ended": True,
    }
    return JsonResponse(body)


def _series(line: Line, steps: Sequence[Step], drawn: Chart) -> dict[str, Any]:
    return {
        "name": line.name,
        "x": [step.at.isoformat() for step in steps],
        "y": [line.value(step.figures) for step in steps],
        "kind": drawn.kind,
        "dash": line.dash,
    }
