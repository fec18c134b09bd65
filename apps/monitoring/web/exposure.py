"""The report on makers of chips: how much rests on each, and what could move."""

from __future__ import annotations

from collections.abc import Iterator

from django.contrib.auth.decorators import login_required
from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts.web.requests import AuthenticatedRequest
from apps.monitoring.selectors.exposure import Exposure, exposure_of
from controlplane.web import downloads

#: Shares of the first maker from which on a page says so.
_MOST, _NEARLY_ALL = 0.5, 0.9


@login_required
def exposure(request: AuthenticatedRequest) -> HttpResponseBase:
    """As the reader may see it: the use of their teams, of the company for whoever administers it."""
    found = exposure_of(request.user, at=timezone.now())
    if request.GET.get("format") == "csv":
        return downloads.csv_download(
            filename=f"exposure-{found.period.first}-{found.period.last}.csv",
            head=[
                _("Maker"),
                _("Card-hours"),
                _("Share"),
                _("Cards serving now"),
                _("Deployments"),
            ],
            lines=_lines(found),
        )
    context = {
        "found": found,
        "vendors": [
            {"one": one, "share": 100 * one.share, "width": f"{100 * one.share:.2f}"}
            for one in found.vendors
        ],
        "verdict": _verdict(found),
        "stuck": sum(one.stuck for one in found.moves),
    }
    return render(request, "monitoring/exposure.html", context)


def _lines(found: Exposure) -> Iterator[list[object]]:
    for one in found.vendors:
        yield [
            one.title,
            round(one.card_hours, 3),
            round(one.share, 6),
            one.serving_cards,
            one.deployments,
        ]


def _verdict(found: Exposure) -> str:
    """What the shares come to, in a sentence; empty where nothing was used."""
    if not found.card_hours:
        return ""
    first = found.vendors[0]
    said = {"percent": f"{100 * first.share:.0f}", "maker": first.title}
    if first.share >= _NEARLY_ALL:
        return (
            _(
                "Nearly everything rests on one maker: %(percent)s %% of the card-hours are on chips of %(maker)s."
            )
            % said
        )
    if first.share >= _MOST:
        return (
            _(
                "Most rests on one maker: %(percent)s %% of the card-hours are on chips of %(maker)s."
            )
            % said
        )
    return (
        _(
            "No maker carries more than half: the most used, %(maker)s, has %(percent)s %% of the card-hours."
        )
        % said
    )
