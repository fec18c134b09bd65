"""Why a claim waits and when it starts: a page, and the same as a panel of the pages of jobs and deployments."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts.web.requests import SignedIn
from apps.quotas.models import Claim
from apps.quotas.selectors.bars import bars_of
from apps.quotas.selectors.claims import claims_of_sight, nodes_by_uid, work_last
from apps.quotas.selectors.forecasts import Awaited
from apps.quotas.selectors.rearrangements import may_propose
from apps.quotas.selectors.sights import Sight
from apps.quotas.selectors.whys import why_of
from apps.quotas.web.words import name_of, numbers_of, outlook_in_words
from controlplane.web.pages import show


def found_for(request: SignedIn, uid: str) -> tuple[Claim, Sight]:
    """The claim, if they may look at it; of work that was revoked, the one that waits again.

    :raises Http404: if there is none.
    """
    claims, sight = claims_of_sight(request.user)
    claim = work_last(get_object_or_404(claims, uid=uid))
    return claim, sight


@login_required
def claim(request: SignedIn, uid: str) -> HttpResponse:
    """The reason with its numbers, the queue, the place and the forecast; it asks anew until it has its cards."""
    found, sight = found_for(request, uid)
    at = timezone.now()
    why = why_of(found, user=request.user)
    context = {
        "why": why,
        "claim": found,
        "name": name_of(found, sight=sight),
        "numbers": numbers_of(found),
        "bars": bars_of(why.shares, tree=why.tree),
        "outlook": outlook_in_words(why.outlook, now=at) if why.outlook else "",
        "waits_for": [awaited(each) for each in why.outlook.waits_for] if why.outlook else [],
        "nodes": sorted(set(nodes_by_uid([found]).values())),
        "work_href": work_href(found.work_kind, found.work_uid) if why.named else "",
        "opened": why.line.opened,
        # Enough are free, only not together: moves would help it.
        "scattered": why.waits
        and any(cards >= found.card_count for cards in why.free.values())
        and may_propose(request.user),
    }
    return show(request, "quotas/claim.html", context, fragment="panel", changing=why.waits)


def awaited(each: Awaited) -> dict[str, Any]:
    """Somebody whose end it waits for, in words, and where that leads."""
    cards = each.cards
    if not each.name:
        words = _("work of team %(team)s on %(cards)d cards") % {"team": each.team, "cards": cards}
        return {"words": words, "href": ""}
    words = _("%(name)s (team %(team)s, %(cards)d cards)") % {
        "name": each.name,
        "team": each.team,
        "cards": cards,
    }
    return {"words": words, "href": work_href(each.work_kind, each.work_uid)}


def work_href(kind: str, uid: str) -> str:
    """The page of a job or a deployment; empty where there is none."""
    if kind not in ("job", "deployment") or not uid:
        return ""
    return reverse(kind, args=[uid])
