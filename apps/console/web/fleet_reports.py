"""Reports across the fleet: idle allocation, and vendor concentration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from django.contrib.auth.decorators import login_required
from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.console.selectors.fleet_reports import (
    IDLE_FOR,
    IdleAllocationRow,
    VendorConcentration,
    idle_allocation_rows,
    vendor_concentration_of,
)
from apps.monitoring.selectors.fleet_counts import chip_pools, sum_card_counts
from apps.telemetry.selectors import IDLE
from controlplane.web import downloads

#: Claims that the page shows; the CSV has all.
MOST_SHOWN = 200


@login_required
def idle_allocation(request: AuthenticatedRequest) -> HttpResponseBase:
    """What is idle now, the most card-hours first; what other teams' work is called stays with them."""
    at = timezone.now()
    rows = idle_allocation_rows(request.user, at=at)
    if request.GET.get("format") == "csv":
        return downloads.csv_download(
            filename=f"waste-{at:%Y-%m-%d}.csv",
            head=[
                _("Team"),
                _("Queue"),
                _("Workloads"),
                _("Chip"),
                _("Cluster"),
                _("Idle cards"),
                _("Allocated cards"),
                _("Idle since"),
                _("Card-hours"),
            ],
            lines=_idle_allocation_csv(rows),
        )
    counts = sum_card_counts(pool.counts for pool in chip_pools(at=at))
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
    return render(request, "console/idle_allocation.html", context)


def _idle_allocation_csv(rows: Sequence[IdleAllocationRow]) -> Iterator[list[object]]:
    for row in rows:
        yield [
            row.team,
            row.queue,
            row.name,
            " ".join(row.chips),
            " ".join(row.clusters),
            len(row.idle),
            row.held,
            _format_moment(row.since),
            round(row.card_hours, 2),
        ]


def _format_moment(at: datetime) -> str:
    return at.isoformat(timespec="seconds")


#: Share of the largest vendor above which a warning is shown.
_MOST, _NEARLY_ALL = 0.5, 0.9


@login_required
def vendor_concentration(request: AuthenticatedRequest) -> HttpResponseBase:
    """Vendors of the reader's teams; of the company for its administrators."""
    found = vendor_concentration_of(request.user, at=timezone.now())
    if request.GET.get("format") == "csv":
        return downloads.csv_download(
            filename=f"exposure-{found.period.first}-{found.period.last}.csv",
            head=[
                _("Vendor"),
                _("Card-hours"),
                _("Share"),
                _("Cards in use for serving"),
                _("Deployments"),
            ],
            lines=_concentration_csv(found),
        )
    context = {
        "found": found,
        "vendors": [
            {"one": one, "share": 100 * one.share, "width": f"{100 * one.share:.2f}"}
            for one in found.vendors
        ],
        "verdict": _concentration_summary(found),
        "stuck": sum(one.has_no_alternative for one in found.moves),
    }
    return render(request, "console/vendor_concentration.html", context)


def _concentration_csv(found: VendorConcentration) -> Iterator[list[object]]:
    for one in found.vendors:
        yield [
            one.title,
            round(one.card_hours, 3),
            round(one.share, 6),
            one.serving_cards,
            one.deployments,
        ]


def _concentration_summary(found: VendorConcentration) -> str:
    """What the shares come to, in a sentence; empty where nothing was used."""
    if not found.card_hours:
        return ""
    first = found.vendors[0]
    said = {"percent": f"{100 * first.share:.0f}", "maker": first.title}
    if first.share >= _NEARLY_ALL:
        return (
            _(
                "Very high concentration: %(percent)s %% of the card-hours are on chips of "
                "%(maker)s."
            )
            % said
        )
    if first.share >= _MOST:
        return (
            _("High concentration: %(percent)s %% of the card-hours are on chips of %(maker)s.")
            % said
        )
    return (
        _(
            "Low concentration: the most used vendor, %(maker)s, has %(percent)s %% of the "
            "card-hours."
        )
        % said
    )
