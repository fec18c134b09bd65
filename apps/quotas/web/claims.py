"""The page of a claim: why it is pending, its forecast; and labels and formats of claims for other pages."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.quotas.models import Claim
from apps.quotas.selectors.claims import (
    claim_explanation,
    claim_node_names,
    claims_readable,
    latest_claim_of_work,
)
from apps.quotas.selectors.defragmentation import can_propose_defragmentation
from apps.quotas.selectors.forecasts import VisibleForecast, WorkloadSummary
from apps.quotas.selectors.queues import QueueVisibility
from apps.quotas.selectors.quota_bars import quota_bars
from controlplane.web.pages import render_page

#: Labels of the numbers of a reason; see ``controlplane.domain.scheduling.explanations`` and ``blockers``.
NUMBERS: Mapping[str, str | Promise] = {
    "wanted": lazy("Requested cards"),
    "used": lazy("Cards used by the queue"),
    "cap": lazy("Queue cap"),
    "guaranteed": lazy("Guaranteed quota of the queue"),
    "kept": lazy("Cards reserved for others"),
    "free": lazy("Free cards"),
    "lendable": lazy("Free cards that can be borrowed"),
    "cards": lazy("Cards"),
    "claims": lazy("Preempted resource claims"),
    "nodes": lazy("Nodes"),
    "placed": lazy("Claims placed earlier in the scheduling cycle"),
    "looked_at": lazy("Placement searches earlier in the scheduling cycle"),
    "largest_node": lazy("Cards on the largest node"),
    "best": lazy("Max replicas that fit"),
    "best_node": lazy("Max free cards on one node"),
    "replicas": lazy("Replicas"),
    "total": lazy("Total matching cards"),
    "running": lazy("Running resource claims"),
    "limit": lazy("Per-user limit of running workloads"),
}


def labelled_reason_parameters(claim: Claim) -> list[tuple[str | Promise, object]]:
    """The numbers of the claim's reason with their labels, in the order of the reason."""
    return [
        (NUMBERS.get(name, name.replace("_", " ")), value)
        for name, value in claim.explanation_numbers.items()
    ]


def format_clock(at: datetime, *, now: datetime) -> str:
    """``14:20`` today, ``22 Nov, 14:20`` on another day; in UTC, as every time on a page."""
    local, today = at.astimezone(UTC), now.astimezone(UTC)
    hour = date_format(local, "H:i")
    if local.date() == today.date():
        return hour
    return _("%(day)s, %(hour)s") % {"day": date_format(local, "MONTH_DAY_FORMAT"), "hour": hour}


def format_predicted_start(forecast: VisibleForecast, *, now: datetime) -> str:
    """``Starts about 14:20 UTC, between 13:50 and 15:10.``"""
    if forecast.unseen:
        return _("No forecast: too many pending workloads ahead.")
    if forecast.starts_at is None:
        return _("Not expected to start within one day.")
    when = f"{format_clock(forecast.starts_at, now=now)} UTC"
    if forecast.starts_at <= now + timedelta(minutes=1):
        return _("Starts next; enough cards are free.")
    if forecast.earliest is None or forecast.earliest == forecast.latest:
        return _("Expected start: about %(when)s.") % {"when": when}
    since = format_clock(forecast.earliest, now=now)
    if forecast.latest is None:
        return _(
            "Expected start: about %(when)s, not before %(since)s; possibly after more "
            "than one day."
        ) % {
            "when": when,
            "since": since,
        }
    return _("Expected start: about %(when)s, between %(since)s and %(until)s.") % {
        "when": when,
        "since": since,
        "until": format_clock(forecast.latest, now=now),
    }


def format_start_short(claim: Claim, *, now: datetime) -> str:
    """Predicted start of a claim for a table cell; empty without a forecast."""
    forecast = getattr(claim, "forecast", None)
    if forecast is None:
        return ""
    if forecast.starts_at is None:
        return _("not within a day")
    return _("about %(when)s") % {"when": f"{format_clock(forecast.starts_at, now=now)} UTC"}


def claim_label(claim: Claim, *, visibility: QueueVisibility) -> str:
    """Name of the workload, or only its team if the reader may not see the name."""
    if visibility.can_name(claim):
        return claim.work_name or claim.owner_uid[:8]
    return _("team %(team)s") % {"team": claim.team.name}


def claim_or_404(request: AuthenticatedRequest, uid: str) -> tuple[Claim, QueueVisibility]:
    """The claim, if the user may see it; of an evicted workload, the claim that is pending again.

    :raises Http404: if there is none.
    """
    claims, visibility = claims_readable(request.user)
    claim = latest_claim_of_work(get_object_or_404(claims, uid=uid))
    return claim, visibility


@login_required
def claim(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Reason with numbers, queue, position and forecast; polls while the claim is pending."""
    found, visibility = claim_or_404(request, uid)
    at = timezone.now()
    explanation = claim_explanation(found, user=request.user)
    context = {
        "explanation": explanation,
        "claim": found,
        "name": claim_label(found, visibility=visibility),
        "numbers": labelled_reason_parameters(found),
        "bars": quota_bars(explanation.shares, tree=explanation.tree),
        "outlook": format_predicted_start(explanation.outlook, now=at)
        if explanation.outlook
        else "",
        "blocked_by": [workload_link(each) for each in explanation.outlook.blocked_by]
        if explanation.outlook
        else [],
        "nodes": sorted(set(claim_node_names([found]).values())),
        "workload_url": workload_url(found.work_kind, found.work_uid) if explanation.named else "",
        "can_open": explanation.entry.can_open,
        # Enough cards are free, but fragmented: defragmentation would help.
        "scattered": explanation.is_pending
        and any(cards >= found.card_count for cards in explanation.free.values())
        and can_propose_defragmentation(request.user),
    }
    return render_page(
        request, "quotas/claim.html", context, fragment="panel", changing=explanation.is_pending
    )


def workload_link(each: WorkloadSummary) -> dict[str, Any]:
    cards = each.cards
    if not each.name:
        label = _("workload of team %(team)s on %(cards)d cards") % {
            "team": each.team,
            "cards": cards,
        }
        return {"label": label, "href": ""}
    label = _("%(name)s (team %(team)s, %(cards)d cards)") % {
        "name": each.name,
        "team": each.team,
        "cards": cards,
    }
    return {"label": label, "href": workload_url(each.work_kind, each.work_uid)}


def workload_url(kind: str, uid: str) -> str:
    """URL of the page of a job or a deployment; empty if there is none."""
    if kind not in ("job", "deployment") or not uid:
        return ""
    return reverse(kind, args=[uid])
