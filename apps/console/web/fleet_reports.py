"""Reports across the fleet: idle allocation, and vendor concentration."""

from __future__ import annotations

from django.contrib.auth.decorators import login_required
from django.http import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.console.selectors.fleet_reports import (
    IDLE_FOR,
    VendorConcentration,
    idle_allocation_rows,
    vendor_concentration_of,
)
from apps.monitoring.selectors.fleet_counts import chip_pools, sum_card_counts
from apps.telemetry.selectors import IDLE
from controlplane.web.tables import TableColumn, csv_table

#: Claims that the page shows; the CSV has all.
MOST_SHOWN = 200

IDLE_COLUMNS = (
    TableColumn(key="team", label=lazy("Team")),
    TableColumn(key="queue", label=lazy("Queue")),
    TableColumn(key="name", label=lazy("Workloads")),
    TableColumn(key="chips", label=lazy("Chip"), csv=lambda row: " ".join(row.chips)),
    TableColumn(key="clusters", label=lazy("Cluster"), csv=lambda row: " ".join(row.clusters)),
    TableColumn(key="idle", label=lazy("Idle cards"), csv=lambda row: len(row.idle)),
    TableColumn(key="held", label=lazy("Allocated cards")),
    TableColumn(
        key="since",
        label=lazy("Idle since"),
        csv=lambda row: row.since.isoformat(timespec="seconds"),
    ),
    TableColumn(
        key="card_hours", label=lazy("Card-hours"), csv=lambda row: round(row.card_hours, 2)
    ),
)
VENDOR_COLUMNS = (
    TableColumn(key="title", label=lazy("Vendor")),
    TableColumn(
        key="card_hours", label=lazy("Card-hours"), csv=lambda row: round(row.card_hours, 3)
    ),
    TableColumn(key="share", label=lazy("Share"), csv=lambda row: round(row.share, 6)),
    TableColumn(key="serving_cards", label=lazy("Cards in use for serving")),
    TableColumn(key="deployments", label=lazy("Deployments")),
)


@login_required
def idle_allocation(request: AuthenticatedRequest) -> HttpResponseBase:
    """What is idle now, the most card-hours first; what other teams' work is called stays with them."""
    at = timezone.now()
    rows = idle_allocation_rows(request.user, at=at)
    if request.GET.get("format") == "csv":
        return csv_table(rows, columns=IDLE_COLUMNS, filename=f"waste-{at:%Y-%m-%d}.csv")
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


#: Share of the largest vendor above which a warning is shown.
_MOST, _NEARLY_ALL = 0.5, 0.9


@login_required
def vendor_concentration(request: AuthenticatedRequest) -> HttpResponseBase:
    """Vendors of the reader's teams; of the company for its administrators."""
    found = vendor_concentration_of(request.user, at=timezone.now())
    if request.GET.get("format") == "csv":
        filename = f"exposure-{found.period.first}-{found.period.last}.csv"
        return csv_table(found.vendors, columns=VENDOR_COLUMNS, filename=filename)
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
