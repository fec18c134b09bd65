"""Moves of running work: what would be gained, who is moved, and how far it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from apps.accounts.web.requests import SignedIn
from apps.fleet import selectors as fleet
from apps.quotas.models import Claim, Queue, Rearrangement, RearrangementMove
from apps.quotas.selectors import rearrangements as selectors
from apps.quotas.selectors.claims import claims_of_sight
from apps.quotas.selectors.sights import Sight, sight_of
from apps.quotas.services import rearrangements as services
from apps.quotas.web.rearrangement_pictures import drawings, drawings_kept
from controlplane.domain.claims import ClaimState
from controlplane.domain.machines import IllegalTransition
from controlplane.domain.rearrangements import (
    ACTIVE,
    REARRANGEMENT,
    Purpose,
    RearrangementEvent,
    RearrangementState,
)
from controlplane.web.forms import PlainForm
from controlplane.web.pages import acting, keyset, show

MOST_NODES = 16
REFUSALS = (
    IllegalTransition,
    services.AnotherUnderWay,
    services.NothingToMove,
    services.RearrangementStale,
)
PURPOSES: Mapping[Purpose, Promise] = {
    Purpose.WHOLE_NODES: gettext_lazy("Whole nodes for large work"),
    Purpose.FEWER_FRAGMENTS: gettext_lazy("Fewer fragments"),
    Purpose.ROOM_FOR: gettext_lazy("Room for work that waits"),
}


class WishForm(PlainForm):
    purpose = forms.ChoiceField(
        label=gettext_lazy("What for"),
        choices=[(purpose.value, word) for purpose, word in PURPOSES.items()],
        initial=Purpose.WHOLE_NODES,
    )
    nodes = forms.IntegerField(
        label=gettext_lazy("Whole nodes wanted"),
        min_value=1,
        max_value=MOST_NODES,
        initial=1,
        required=False,
    )
    chip = forms.ChoiceField(label=gettext_lazy("Chip"), required=False)

    def __init__(self, *args: Any, claim: Claim | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._claim = claim
        any_chip = ("", gettext_lazy("any"))
        self.choice("chip").choices = [any_chip, *((name, name) for name in fleet.cards_by_chip())]
        words = (
            PURPOSES
            if claim
            else {one: PURPOSES[one] for one in PURPOSES if one != Purpose.ROOM_FOR}
        )
        self.choice("purpose").choices = [(one.value, word) for one, word in words.items()]

    def wish(self) -> services.Wish:
        purpose = Purpose(self.cleaned_data["purpose"])
        return services.Wish(
            purpose=purpose,
            nodes=self.cleaned_data["nodes"] or 1,
            chip=self.cleaned_data["chip"],
            claim=self._claim if purpose is Purpose.ROOM_FOR else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class MoveRow:
    """A move before a reader."""

    number: int
    claim: Claim
    #: They may know what the work is called.
    named: bool
    cards: int
    source: tuple[str, ...]
    target: tuple[str, ...]
    #: Seconds of work that are done again.
    lost: float
    cost: float
    #: None as long as nobody has approved it.
    row: RearrangementMove | None = None


@login_required
def rearrangements(request: SignedIn) -> HttpResponse:
    """Those that concern the reader's teams, the newest first."""
    rows = selectors.rearrangements_visible(request.user)
    context = {
        "page": keyset(rows, before=request.GET.get("before", "")),
        "purposes": _purposes(),
        "may_propose": selectors.may_propose(request.user),
    }
    return render(request, "quotas/rearrangements.html", context)


@login_required
def rearrangement_new(request: SignedIn) -> HttpResponse:
    """What moves would bring; by POST they are proposed."""
    selectors.require_proposing(request.user)
    given = request.POST or request.GET
    claim = _claim(request, given.get("claim", ""))
    filled = {"nodes": "1", "purpose": Purpose.ROOM_FOR if claim else Purpose.WHOLE_NODES}
    asked = {**filled, **given.dict()} if given else None
    form = WishForm(asked, claim=claim, initial=filled)
    context: dict[str, Any] = {"form": form, "claim": claim}
    status = 200
    if form.is_bound and form.is_valid():
        try:
            if request.method == "POST":
                return _proposed(request, form.wish())
            context |= _preview(request, form.wish())
        except services.NothingToMove as reason:
            context["nothing"] = str(reason)
            status = 422 if request.method == "POST" else 200
    elif form.is_bound:
        status = 422
    return render(request, "quotas/rearrangement_new.html", context, status=status)


def _proposed(request: SignedIn, wish: services.Wish) -> HttpResponse:
    made = services.rearrangement_propose(wish=wish, actor=request.user, at=timezone.now())
    return redirect("rearrangement", made.uid)


def _preview(request: SignedIn, wish: services.Wish) -> dict[str, Any]:
    proposal = services.rearrangement_preview(wish=wish, at=timezone.now())
    plan, sight = proposal.plan, _sight(request)
    uids = [move.claim for move in plan.moves]
    claims = {
        one.uid: one for one in Claim.objects.filter(uid__in=uids).select_related("team", "queue")
    }
    nodes = selectors.node_names(
        replica.node for move in plan.moves for replica in (*move.source, *move.target)
    )
    rows = [
        MoveRow(
            number=number,
            claim=claims[move.claim],
            named=sight.names(claims[move.claim]),
            cards=claims[move.claim].card_count,
            source=_nodes((replica.node for replica in move.source), nodes),
            target=_nodes((replica.node for replica in move.target), nodes),
            lost=move.lost.total_seconds(),
            cost=move.cost / 3600,
        )
        for number, move in enumerate(plan.moves, 1)
    ]
    return {
        "plan": plan,
        "moves": rows,
        "pictures": drawings(proposal.pictures),
        "cost": plan.cost / 3600,
        "gain": plan.gain / 3600,
    }


@login_required
def rearrangement(request: SignedIn, uid: str) -> HttpResponse:
    """One, with what it does to the nodes, and how far it is."""
    found = _found(request, uid)
    teams = selectors.teams_moved(found)
    moves = list(selectors.moves_of(found))
    sight = _sight(request)
    may_move = selectors.may_move(request.user, teams)
    now = timezone.now()
    state = RearrangementState(found.state)
    open_still = state is RearrangementState.PROPOSED and found.expires_at > now
    context = {
        "found": found,
        "plan": found,
        "purpose": _purposes()[found.purpose],
        "teams": teams,
        "moves": _rows(moves, sight),
        "made": sum(move.state in ("landed", "ended") for move in moves),
        "pictures": drawings_kept(found.pictures),
        "cost": found.cost / 3600,
        "gain": found.gain / 3600,
        "claim_named": found.claim is not None and sight.names(found.claim),
        "may_approve": may_move and open_still,
        "may_dismiss": (may_move or found.proposed_by_id == request.user.pk)
        and REARRANGEMENT.allows(state, RearrangementEvent.DISMISS)
        and found.stop_asked_at is None,
        "events": list(found.transitions.order_by("id")),
    }
    return show(
        request, "quotas/rearrangement.html", context, fragment="now", changing=state in ACTIVE
    )


def _rows(moves: Iterable[RearrangementMove], sight: Sight) -> list[MoveRow]:
    moves = list(moves)
    nodes = selectors.node_names(
        place["node"] for move in moves for place in (*move.source, *move.target)
    )
    return [
        MoveRow(
            number=move.number,
            claim=move.claim,
            named=sight.names(move.claim),
            cards=move.claim.card_count,
            source=_nodes((place["node"] for place in move.source), nodes),
            target=_nodes((place["node"] for place in move.target), nodes),
            lost=move.lost,
            cost=move.cost / 3600,
            row=move,
        )
        for move in moves
    ]


def _nodes(uids: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names.get(uid, uid) for uid in uids))


def _purposes() -> dict[str, str]:
    return {purpose.value: str(word) for purpose, word in PURPOSES.items()}


def _sight(request: SignedIn) -> Sight:
    return sight_of(request.user, Queue.objects.all())


def _claim(request: SignedIn, uid: str) -> Claim | None:
    if not uid:
        return None
    claims, _sight_of_them = claims_of_sight(request.user)
    return get_object_or_404(claims, uid=uid, state=ClaimState.PENDING)


def _found(request: SignedIn, uid: str) -> Rearrangement:
    return get_object_or_404(selectors.rearrangements_visible(request.user), uid=uid)


@acting(found=_found, page="rearrangement", refusals=REFUSALS)
def rearrangement_approve(request: SignedIn, found: Rearrangement) -> str:
    services.rearrangement_approve(rearrangement=found, actor=request.user, at=timezone.now())
    return _("It is approved; the first work is told to save and stop.")


@acting(found=_found, page="rearrangement", refusals=REFUSALS)
def rearrangement_dismiss(request: SignedIn, found: Rearrangement) -> str:
    ended = services.rearrangement_dismiss(
        rearrangement=found, actor=request.user, at=timezone.now()
    )
    if ended:
        return _("It is dismissed; nothing more is moved.")
    return _("It ends once the move that is in motion has landed.")
