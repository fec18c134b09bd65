"""Taking cards and nodes out of use and giving them back, from their pages."""

from __future__ import annotations

from collections.abc import Callable

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts.web.requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.fleet.models import Card, Node
from apps.monitoring.selectors.fault_rows import Place, isolations_by_place
from apps.monitoring.services.isolations import (
    IsolationRefused,
    burn_ins_ask,
    isolations_order,
    isolations_release,
)
from apps.monitoring.web.faults import isolated_words, released_words
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.web.pages import run_action


def _act(request: HttpRequest, act: Callable[[], str], *, back: str) -> HttpResponse:
    """Do it and go back to the page; a refusal is a message in the reader's language."""
    return run_action(request, act, back=back, refusals=(IllegalTransition, IsolationRefused))


def _card(uid: str) -> Card:
    return get_object_or_404(fleet.cards().select_related("node__cluster"), uid=uid)


def _node(uid: str, name: str) -> Node:
    return get_object_or_404(fleet.nodes(), cluster__uid=uid, name=name)


def _reason(request: HttpRequest) -> str:
    return request.POST.get("reason", "").strip()


def _open_at(node: int, card: int | None) -> list[str]:
    """Uid of what is out of use at exactly that place; nothing where nothing is."""
    found = isolations_by_place({node}).get(Place(node, card))
    return [found.uid] if found else []


@login_required
@require_POST
def card_isolate(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    card = _card(uid)

    def act() -> str:
        begun = isolations_order(
            cards=[card.uid], reason=_reason(request), actor=request.user, at=timezone.now()
        )
        if any(row.card_id is None for row in begun):
            return _("Its whole node is out of use; what runs there saves and stops.")
        return isolated_words(len(begun))

    return _act(request, act, back=reverse("card", args=[uid]))


@login_required
@require_POST
def card_release(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    card = _card(uid)
    return _act(
        request,
        lambda: _released(request, _open_at(card.node_id, card.pk)),
        back=reverse("card", args=[uid]),
    )


@login_required
@require_POST
def card_test(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    card = _card(uid)

    def act() -> str:
        asked = burn_ins_ask(
            uids=_open_at(card.node_id, card.pk), actor=request.user, at=timezone.now()
        )
        if not asked:
            return _("Only what is out of use, and not being tested already, can be tested.")
        return _("A burn-in begins as soon as nothing runs there.")

    return _act(request, act, back=reverse("card", args=[uid]))


@login_required
@require_POST
def node_isolate(request: AuthenticatedRequest, uid: str, name: str) -> HttpResponse:
    node = _node(uid, name)

    def act() -> str:
        begun = isolations_order(
            nodes=[node.uid], reason=_reason(request), actor=request.user, at=timezone.now()
        )
        return isolated_words(len(begun))

    return _act(request, act, back=reverse("node", args=[uid, name]))


@login_required
@require_POST
def node_release(request: AuthenticatedRequest, uid: str, name: str) -> HttpResponse:
    node = _node(uid, name)
    return _act(
        request,
        lambda: _released(request, _open_at(node.pk, None)),
        back=reverse("node", args=[uid, name]),
    )


def _released(request: AuthenticatedRequest, uids: list[str]) -> str:
    ended = isolations_release(
        uids=uids, reason=_reason(request), actor=request.user, at=timezone.now()
    )
    return released_words(ended)
