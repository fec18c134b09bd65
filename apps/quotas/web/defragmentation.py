"""Pages of defragmentation plans, with drawings of the nodes before and after."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
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

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.quotas.models import Claim, Defragmentation, DefragmentationMove, Queue
from apps.quotas.selectors import defragmentation as selectors
from apps.quotas.selectors.claims import claims_readable
from apps.quotas.selectors.queues import QueueVisibility, queue_visibility_of
from apps.quotas.services import defragmentation as services
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.scheduling.defragmentation_runs import (
    ACTIVE,
    DEFRAGMENTATION,
    CardOccupancy,
    DefragmentationEvent,
    DefragmentationPurpose,
    DefragmentationState,
)
from controlplane.web.forms import StyledForm
from controlplane.web.pages import keyset_page, render_page, row_action_view

STEP = 22
SIZE = 18


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSquare:
    #: A value of ``Spot``, or ``move``.
    kind: str
    #: Number of the relocation.
    number: str
    room: bool
    x: int

    @property
    def middle(self) -> int:
        return self.x + SIZE // 2

    @property
    def end(self) -> int:
        return self.x + SIZE


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCardsRow:
    spots: tuple[CardSquare, ...]
    #: Text for screen readers.
    label: str

    @property
    def width(self) -> int:
        return len(self.spots) * STEP


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDrawing:
    name: str
    before: NodeCardsRow
    after: NodeCardsRow


def draw_plan(pictures: Iterable[Mapping[str, Any]]) -> list[NodeDrawing]:
    return [
        NodeDrawing(
            name=picture["name"],
            before=_cards_row(picture["before"], ()),
            after=_cards_row(picture["after"], picture["room"]),
        )
        for picture in pictures
    ]


def _cards_row(spots: Sequence[str], room: Sequence[int]) -> NodeCardsRow:
    labels = {
        CardOccupancy.FREE.value: _("free"),
        CardOccupancy.OTHER.value: _("other workloads"),
        CardOccupancy.UNUSABLE.value: _("unavailable"),
    }
    named = [labels.get(spot) or _("relocation %(number)s") % {"number": spot} for spot in spots]
    squares = (
        CardSquare(
            kind=spot if spot in labels else "move",
            number="" if spot in labels else spot,
            room=place in room,
            x=place * STEP + 1,
        )
        for place, spot in enumerate(spots)
    )
    return NodeCardsRow(spots=tuple(squares), label=", ".join(named))


MAX_NODES = 16
REFUSALS = (
    IllegalTransition,
    services.DefragmentationInProgress,
    services.NoUsefulRelocation,
    services.DefragmentationPlanStale,
)
PURPOSES: Mapping[DefragmentationPurpose, Promise] = {
    DefragmentationPurpose.WHOLE_NODES: gettext_lazy("Entirely free nodes for large workloads"),
    DefragmentationPurpose.FEWER_FRAGMENTS: gettext_lazy("Fewer fragmented cards"),
    DefragmentationPurpose.ROOM_FOR: gettext_lazy("Capacity for pending workloads"),
}


class DefragmentationForm(StyledForm):
    purpose = forms.ChoiceField(
        label=gettext_lazy("Purpose"),
        choices=[(purpose.value, label) for purpose, label in PURPOSES.items()],
        initial=DefragmentationPurpose.WHOLE_NODES,
    )
    nodes = forms.IntegerField(
        label=gettext_lazy("Number of entirely free nodes"),
        min_value=1,
        max_value=MAX_NODES,
        initial=1,
        required=False,
    )
    chip = forms.ChoiceField(label=gettext_lazy("Chip"), required=False)

    def __init__(self, *args: Any, claim: Claim | None = None, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._claim = claim
        any_chip = ("", gettext_lazy("any"))
        self.choice("chip").choices = [any_chip, *((name, name) for name in fleet.cards_by_chip())]
        labels = (
            PURPOSES
            if claim
            else {one: PURPOSES[one] for one in PURPOSES if one != DefragmentationPurpose.ROOM_FOR}
        )
        self.choice("purpose").choices = [(one.value, label) for one, label in labels.items()]

    def plan_request(self) -> services.DefragmentationRequest:
        purpose = DefragmentationPurpose(self.cleaned_data["purpose"])
        return services.DefragmentationRequest(
            purpose=purpose,
            nodes=self.cleaned_data["nodes"] or 1,
            chip=self.cleaned_data["chip"],
            claim=self._claim if purpose is DefragmentationPurpose.ROOM_FOR else None,
        )


@login_required
def defragmentation_list(request: AuthenticatedRequest) -> HttpResponse:
    """Plans that the user may see, newest first."""
    rows = selectors.defragmentations_visible(request.user)
    context = {
        "page": keyset_page(rows, before=request.GET.get("before", "")),
        "purposes": _purpose_labels(),
        "may_propose": selectors.can_propose_defragmentation(request.user),
    }
    return render(request, "quotas/defragmentation_list.html", context)


@login_required
def defragmentation_new(request: AuthenticatedRequest) -> HttpResponse:
    """Compute a plan; POST proposes it."""
    selectors.require_permission_to_propose(request.user)
    given = request.POST or request.GET
    claim = _find_claim(request, given.get("claim", ""))
    filled = {
        "nodes": "1",
        "purpose": DefragmentationPurpose.ROOM_FOR if claim else DefragmentationPurpose.WHOLE_NODES,
    }
    asked = {**filled, **given.dict()} if given else None
    form = DefragmentationForm(asked, claim=claim, initial=filled)
    context: dict[str, Any] = {"form": form, "claim": claim}
    status = 200
    if form.is_bound and form.is_valid():
        try:
            if request.method == "POST":
                return _propose_plan(request, form.plan_request())
            context |= _preview_context(request, form.plan_request())
        except services.NoUsefulRelocation as reason:
            context["nothing"] = str(reason)
            status = 422 if request.method == "POST" else 200
    elif form.is_bound:
        status = 422
    return render(request, "quotas/defragmentation_new.html", context, status=status)


def _propose_plan(
    request: AuthenticatedRequest, plan_request: services.DefragmentationRequest
) -> HttpResponse:
    row = services.defragmentation_propose(
        plan_request=plan_request, actor=request.user, at=timezone.now()
    )
    return redirect("defragmentation-plan", row.uid)


def _preview_context(
    request: AuthenticatedRequest, plan_request: services.DefragmentationRequest
) -> dict[str, Any]:
    plan, moves = services.defragmentation_preview(plan_request=plan_request, at=timezone.now())
    return _plan_context(plan, moves, _queue_visibility(request))


def _plan_context(
    plan: Defragmentation, moves: list[DefragmentationMove], visibility: QueueVisibility
) -> dict[str, Any]:
    """What pages show of a plan, whether or not it is stored."""
    return {
        "plan": plan,
        "moves": _relocation_rows(moves, visibility),
        "pictures": draw_plan(plan.pictures),
        "cost": plan.cost / 3600,
        "gain": plan.gain / 3600,
    }


@login_required
def defragmentation_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """A plan with its effect on nodes and its progress."""
    found = _find_plan(request, uid)
    teams = selectors.relocated_teams(found)
    moves = list(selectors.relocations_of(found))
    visibility = _queue_visibility(request)
    may_move = selectors.can_relocate(request.user, teams)
    now = timezone.now()
    state = DefragmentationState(found.state)
    open_still = state is DefragmentationState.PROPOSED and found.expires_at > now
    context = {
        **_plan_context(found, moves, visibility),
        "found": found,
        "purpose": _purpose_labels()[found.purpose],
        "teams": teams,
        "made": sum(move.state in ("landed", "ended") for move in moves),
        "claim_named": found.claim is not None and visibility.can_name(found.claim),
        "may_approve": may_move and open_still,
        "may_dismiss": (may_move or found.proposed_by_id == request.user.pk)
        and DEFRAGMENTATION.allows(state, DefragmentationEvent.DISMISS)
        and found.stop_asked_at is None,
        "events": list(found.transitions.order_by("id")),
    }
    return render_page(
        request, "quotas/defragmentation.html", context, fragment="now", changing=state in ACTIVE
    )


def _relocation_rows(
    moves: list[DefragmentationMove], visibility: QueueVisibility
) -> list[dict[str, Any]]:
    """The relocations as a reader may see them."""
    nodes = selectors.node_names(
        place["node"] for move in moves for place in (*move.source, *move.target)
    )
    return [
        {
            "move": move,
            "named": visibility.can_name(move.claim),
            "source": _node_labels((place["node"] for place in move.source), nodes),
            "target": _node_labels((place["node"] for place in move.target), nodes),
            "hours": move.cost / 3600,
        }
        for move in moves
    ]


def _node_labels(uids: Iterable[str], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names.get(uid, uid) for uid in uids))


def _purpose_labels() -> dict[str, str]:
    return {purpose.value: str(label) for purpose, label in PURPOSES.items()}


def _queue_visibility(request: AuthenticatedRequest) -> QueueVisibility:
    return queue_visibility_of(request.user, Queue.objects.all())


def _find_claim(request: AuthenticatedRequest, uid: str) -> Claim | None:
    if not uid:
        return None
    claims, _unused = claims_readable(request.user)
    return get_object_or_404(claims, uid=uid, state=ClaimState.PENDING)


def _find_plan(request: AuthenticatedRequest, uid: str) -> Defragmentation:
    return get_object_or_404(selectors.defragmentations_visible(request.user), uid=uid)


@row_action_view(load=_find_plan, page="defragmentation-plan", refusals=REFUSALS)
def defragmentation_approve(request: AuthenticatedRequest, found: Defragmentation) -> str:
    services.defragmentation_approve(plan=found, actor=request.user, at=timezone.now())
    return _("Plan approved. The first workload is being preempted.")


@row_action_view(load=_find_plan, page="defragmentation-plan", refusals=REFUSALS)
def defragmentation_dismiss(request: AuthenticatedRequest, found: Defragmentation) -> str:
    ended = services.defragmentation_dismiss(plan=found, actor=request.user, at=timezone.now())
    if ended:
        return _("Plan dismissed.")
    return _("The plan stops after the current relocation.")
