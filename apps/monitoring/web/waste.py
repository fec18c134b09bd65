"""The report on waste: cards that somebody holds and nobody uses."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.contrib.auth.decorators import login_required
from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts.web.requests import AuthenticatedRequest
from apps.monitoring.selectors.fleet_figures import IDLE, pools, together
from apps.monitoring.selectors.waste import IDLE_FOR, WasteRow, waste_rows
from controlplane.web import downloads

#: Claims that the page shows; the CSV has all.
MOST_SHOWN = 200


@login_required
def waste(request: AuthenticatedRequest) -> HttpResponseBase:
    """What is idle now, the most card-hours first; what other teams' work is called stays with them."""
    at = timezone.now()
    rows = waste_rows(request.user, at=at)
    if request.GET.get("format") == "csv":
        return downloads.csv_download(
            filename=f"waste-{at:%Y-%m-%d}.csv",
            head=[
                _("Team"),
                _("Queue"),
                _("Work"),
                _("Chip"),
                _("Cluster"),
                _("Idle cards"),
                _("Cards held"),
                _("Idle since"),
                _("Card-hours"),
            ],
            lines=_lines(rows),
        )
    counts = together(pool.counts for pool in pools(at=at))
    context = {
        "rows": [{"row": row, "lasted": at - row.since} for row in rows[:MOST_SHOWN]],
        "more": max(0, len(rows) - MOST_SHOWN),
        "cards": sum(len(row.idle) for row in rows),
        "card_hours": sum(row.card_hours for row in rows),
        "claims": len(rows),
        "counts": counts,
        "below": f"{IDLE:g}",
        "minutes": int(IDLE_FOR.total_seconds() // 60),
    }
    return render(request, "monitoring/waste.html", context)


def _lines(rows: Sequence[WasteRow]) -> Iterator[list[object]]:
    for row in rows:
        yield [
            row.team,
            row.queue,
            row.name,
            " ".join(row.chips),
            " ".join(row.clusters),
            len(row.idle),
            row.held,
            _moment(row.since),
            round(row.card_hours, 2),
        ]


def _moment(at: datetime) -> str:
    return at.isoformat(timespec="seconds")
