"""How the product itself does: its parts, its loops, and what helps where one is in trouble."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse

from apps.accounts.web.requests import AuthenticatedRequest
from apps.monitoring.selectors.components import Component
from apps.monitoring.selectors.loops import Loop, troubled_loops
from apps.monitoring.selectors.product import RecentError, product_status, require_product
from apps.monitoring.web import status_words
from controlplane.persistence.reconcile_runs import RECENT_RUNS
from controlplane.web.pages import show
from controlplane.web.response_cache import TimedCache

#: The page's bars: how wide one turn is, and how high the longest.
BAR_WIDTH, BAR_GAP, BAR_HEIGHT = 3, 1, 18
WARNED_SECONDS = 10.0

#: How many loops do not keep up, for the line on top of every page.
lagging_controllers = TimedCache(troubled_loops, seconds=WARNED_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    x: int
    y: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopRow:
    loop: Loop
    title: str
    advice: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PartRow:
    component: Component
    told: status_words.Told


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    error: RecentError
    title: str


@login_required
def status(request: AuthenticatedRequest) -> HttpResponse:
    """For operators and administrators; never still, so it goes on looking while it is looked at."""
    require_product(request.user)
    found = product_status()
    parts = [PartRow(component=one, told=status_words.told(one)) for one in found.components]
    context = {
        "status": found,
        "parts": parts,
        "loops": [_row(loop) for loop in found.loops],
        "errors": [
            ErrorRow(error=one, title=status_words.error_title(one)) for one in found.errors
        ],
        "bars_width": RECENT_RUNS * (BAR_WIDTH + BAR_GAP),
        "bars_height": BAR_HEIGHT,
    }
    return show(request, "monitoring/status.html", context, fragment="now", changing=True)


def _row(loop: Loop) -> LoopRow:
    return LoopRow(
        loop=loop,
        title=status_words.loop_title(loop.name),
        advice=status_words.loop_advice(loop),
        bars=_bars(loop.recent),
    )


def _bars(seconds: tuple[float, ...]) -> tuple[Bar, ...]:
    """One bar a turn, the newest at the right end; the longest fills the height."""
    longest = max(seconds, default=0.0) or 1.0
    first = RECENT_RUNS - len(seconds)
    bars = []
    for place, one in enumerate(seconds, start=first):
        height = max(1, round(one / longest * BAR_HEIGHT))
        bars.append(Bar(x=place * (BAR_WIDTH + BAR_GAP), y=BAR_HEIGHT - height, height=height))
    return tuple(bars)
