"""Who sits where: the fleet from the spine down to the card."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, JsonResponse
from django.urls import reverse
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.utils.translation import pgettext_lazy
from django.views.decorators.gzip import gzip_page

from apps.accounts.web.requests import SignedIn
from apps.quotas.selectors.openings import Use
from apps.quotas.selectors.rearrangements import may_propose
from apps.quotas.selectors.topology import (
    CLUSTER,
    FLEET,
    NODE,
    Domain,
    NoSuchDomain,
    topology_of,
)
from apps.quotas.selectors.topology_documents import document
from controlplane.web.pages import Tab, show

#: From so many hundredths of the free cards on, moves are suggested.
WORTH_A_LOOK = 5

KINDS: dict[str, str | Promise] = {
    FLEET: _("fleet"),
    CLUSTER: _("cluster"),
    "superpod": _("superpod"),
    "spine": _("spine"),
    "leaf": pgettext_lazy("network", "leaf"),
    "rack": _("rack"),
    NODE: _("node"),
}
WORDS: dict[Use, Promise] = {
    Use.HELD: _("held"),
    Use.FREE: _("free"),
    Use.FRAGMENT: _("fragment"),
    Use.KEPT: _("kept"),
    Use.NO_NEW_WORK: _("no new work"),
    Use.BROKEN: _("not usable"),
}
COLOURS: dict[str, Promise] = {
    "state": _("State"),
    "queue": _("Queue"),
    "team": _("Team"),
    "chip": _("Chip"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A domain on the way down, or below."""

    domain: Domain
    kind: str | Promise
    href: str


@login_required
def topology(request: SignedIn) -> HttpResponse:
    """The domain named by ``?at=``, and what is below it."""
    seen = topology_of(request.user)
    here = _here(seen.at, request.GET.get("at", ""))
    by = request.GET.get("by", "state")
    if by not in COLOURS:
        raise Http404
    context: dict[str, Any] = {
        "here": here,
        "kind": KINDS.get(here.kind, here.kind),
        "trail": [_step(domain, by) for domain in here.trail[:-1]],
        "rows": [_step(domain, by) for domain in here.below],
        "cells": [(cell, WORDS[cell.use]) for cell in seen.cells(here.stand)] if here.stand else [],
        "legend": [(use.value, word, here.uses[use]) for use, word in WORDS.items()],
        "by": by,
        "colours": [
            Tab(label=label, href=_address(here, colour), current=colour == by)
            for colour, label in COLOURS.items()
        ],
        "words": {
            "uses": {use.value: str(word) for use, word in WORDS.items()},
            "kinds": {kind: str(word) for kind, word in KINDS.items()},
        },
        "suggests": here.fragment_percent >= WORTH_A_LOOK and may_propose(request.user),
    }
    return show(request, "quotas/topology.html", context, fragment="zoomed", changing=True)


@login_required
@gzip_page
def topology_cards(request: SignedIn) -> HttpResponse:
    """Every card, as the picture is drawn from it."""
    return JsonResponse(
        document(topology_of(request.user)), json_dumps_params={"separators": (",", ":")}
    )


def _here(at: Any, key: str) -> Domain:
    try:
        found: Domain = at(key)
    except NoSuchDomain as missing:
        raise Http404 from missing
    return found


def _step(domain: Domain, by: str) -> Step:
    return Step(domain=domain, kind=KINDS.get(domain.kind, domain.kind), href=_address(domain, by))


def _address(domain: Domain, by: str) -> str:
    asked = {"at": domain.key, "by": by if by != "state" else ""}
    query = urlencode({name: value for name, value in asked.items() if value}, safe=":/")
    return f"{reverse('topology')}?{query}" if query else reverse("topology")
