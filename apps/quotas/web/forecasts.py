"""Pages of forecasts, what-ifs and reclaim previews."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django import forms
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts import selectors as accounts
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet.models import Node
from apps.quotas.models import Claim, ClaimForecast, PriorityClass, Queue, WhatIf
from apps.quotas.selectors.claims import claims_allocated
from apps.quotas.selectors.forecasts import (
    StartForecast,
    VisibleForecast,
    WhatIfEffect,
    WhatIfOutcome,
    latest_forecast_run,
    what_if_result,
    what_ifs_visible,
)
from apps.quotas.selectors.queues import QuotaTree, flatten_queue_entries, queue_tree
from apps.quotas.selectors.scheduling_cycles import current_scheduling_policy
from apps.quotas.selectors.simulations import ReclaimRequest, reclaim_preview
from apps.quotas.services.forecasts import WhatIfRefused, WhatIfRequest, what_if_create
from apps.quotas.web.claims import (
    claim_label,
    claim_or_404,
    format_predicted_start,
    format_start_short,
    workload_link,
)
from apps.quotas.web.queues import queue_entry_or_404
from controlplane.domain.common.permissions import Permission
from controlplane.domain.quotas.claims import ClaimState
from controlplane.domain.scheduling.what_if import (
    MOST_CARDS,
    MOST_NODES,
    AddGuaranteedCards,
    AddNodes,
    ChangePriority,
    DrainNode,
    RemoveClaim,
    WhatIfChange,
    WhatIfState,
)
from controlplane.web.forms import StyledForm
from controlplane.web.pages import render_form, render_page, save_form


class WhatIfForm(StyledForm):
    """Changes of a what-if; all fields are optional, but at least one change is required."""

    queue = forms.ChoiceField(label=lazy("Queue"), required=False)
    chip = forms.ChoiceField(label=lazy("Chip"), required=False)
    cards = forms.IntegerField(
        label=lazy("Change of the guaranteed quota (cards)"),
        help_text=lazy("Negative values reduce the quota."),
        min_value=-MOST_CARDS,
        max_value=MOST_CARDS,
        required=False,
    )
    nodes = forms.IntegerField(
        label=lazy("Additional nodes"), min_value=1, max_value=MOST_NODES, required=False
    )
    like = forms.CharField(
        label=lazy("Same node type as"),
        help_text=lazy("Node name as on the fleet page."),
        max_length=200,
        required=False,
    )
    drained = forms.CharField(
        label=lazy("Cordoned node"),
        help_text=lazy("Node name. Its workloads would stop and become pending."),
        max_length=200,
        required=False,
    )
    priority = forms.ModelChoiceField(
        label=lazy("Priority"),
        queryset=PriorityClass.objects.all(),
        empty_label=lazy("unchanged"),
        required=False,
    )
    gone = forms.ChoiceField(label=lazy("Workload to remove"), required=False)

    def __init__(
        self,
        data: Any = None,
        *,
        queues: Sequence[Queue],
        chips: Iterable[str],
        claim: Claim | None = None,
        others: Sequence[tuple[str, str]] = (),
    ) -> None:
        """:param others: uids and names of claims that can be removed in the simulation."""
        super().__init__(data)
        self._claim = claim
        self._queues = {queue.uid: queue for queue in queues}
        self.choice("queue").choices = [(queue.uid, queue.name) for queue in queues]
        self.choice("chip").choices = [(chip, chip) for chip in chips]
        self._others = {_opaque_claim_token(uid): uid for uid, _name in others}
        unchanged = [("", _("none"))]
        self.choice("gone").choices = [
            *unchanged,
            *((_opaque_claim_token(uid), name) for uid, name in others),
        ]
        if claim is None:
            del self.fields["priority"]

    def clean_like(self) -> str:
        return self._node_uid("like")

    def clean_drained(self) -> str:
        return self._node_uid("drained")

    def _node_uid(self, field: str) -> str:
        """The uid of the node of that name."""
        name = self.cleaned_data[field].strip()
        if not name:
            return ""
        uid = Node.objects.filter(name=name).values_list("uid", flat=True).first()
        if uid is None:
            raise ValidationError(_("Node %(name)s does not exist.") % {"name": name})
        return uid

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        if values.get("nodes") and not values.get("like") and "like" not in self.errors:
            self.add_error(
                "like", _("Enter an existing node; the additional nodes have the same type.")
            )
        if values.get("cards") and not values.get("chip"):
            self.add_error("chip", _("Select a chip."))
        if not self.errors and not self.changes():
            raise ValidationError(_("Enter at least one change."))
        return values

    def changes(self) -> list[WhatIfChange]:
        """The changes of a valid form."""
        given, changes = self.cleaned_data, list[WhatIfChange]()
        if given.get("cards"):
            changes.append(
                AddGuaranteedCards(
                    queue=self.selected_queue().uid, chip=given["chip"], cards=given["cards"]
                )
            )
        if given.get("nodes") and given.get("like"):
            changes.append(AddNodes(like=given["like"], nodes=given["nodes"]))
        if given.get("drained"):
            changes.append(DrainNode(node=given["drained"]))
        if self._claim is not None and given.get("priority"):
            changes.append(ChangePriority(claim=self._claim.uid, priority=given["priority"].value))
        if given.get("gone"):
            changes.append(RemoveClaim(claim=self._others[given["gone"]]))
        return changes

    def selected_queue(self) -> Queue:
        """The selected queue; by default the queue of the claim."""
        if self.cleaned_data.get("queue"):
            return self._queues[self.cleaned_data["queue"]]
        return self._claim.queue if self._claim else next(iter(self._queues.values()))


def _opaque_claim_token(uid: str) -> str:
    """An opaque token in place of the uid of a claim that the reader may not see."""
    return salted_hmac("what-if", uid).hexdigest()[:16]


class ReclaimForm(StyledForm):
    chip = forms.ChoiceField(label=lazy("Chip"))
    cards = forms.IntegerField(label=lazy("Cards"), min_value=1, max_value=MOST_CARDS)
    together = forms.TypedChoiceField(
        label=lazy("Cards per node"),
        choices=[(count, count) for count in (1, 2, 4, 8, 16)],
        coerce=int,
        initial=1,
    )

    def __init__(self, data: Any = None, *, chips: Iterable[str], **more: Any) -> None:
        super().__init__(data, **more)
        self.choice("chip").choices = [(chip, chip) for chip in chips]

    def clean(self) -> dict[str, Any]:
        values = super().clean() or self.cleaned_data
        cards, together = values.get("cards"), values.get("together")
        if cards and together and cards % together:
            self.add_error("cards", _("Enter a multiple of %(together)d.") % {"together": together})
        return values


#: Maximum running claims to choose from: first those that have to end before it, then the largest.
_MAX_OTHERS = 30
_MAX_FORECASTS = 50


@login_required
def claim_what_if(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    claim, _unused = claim_or_404(request, uid)
    accounts.require_permission(request.user, Permission.VIEW, team=claim.team)
    tree = queue_tree(request.user)
    form = _what_if_form(request, tree, claim=claim)
    context = {"claim": claim, "name": claim_label(claim, visibility=tree.visibility)}
    return _what_if_form_response(
        request, form, claim=claim, template="quotas/what_if.html", context=context
    )


@login_required
def forecast(request: AuthenticatedRequest) -> HttpResponse:
    """Forecasts of all claims, and a what-if about all of them. For company administrators."""
    accounts.require_permission(request.user, Permission.VIEW, team=None)
    tree, at = queue_tree(request.user), timezone.now()
    soon = (
        ClaimForecast.objects.filter(claim__state=ClaimState.PENDING, starts_at__isnull=False)
        .select_related("claim__team", "claim__queue", "claim__user")
        .order_by("starts_at", "place")[:_MAX_FORECASTS]
    )
    context = {
        "run": latest_forecast_run(),
        "soon": [
            {
                "claim": row.claim,
                "place": row.place,
                "name": claim_label(row.claim, visibility=tree.visibility),
                "starts": format_start_short(row.claim, now=at),
            }
            for row in soon
        ],
        "recent_requests": what_ifs_visible(request.user)[:10],
    }
    form = _what_if_form(request, tree)
    return _what_if_form_response(
        request, form, claim=None, template="quotas/forecast.html", context=context
    )


def _what_if_form(
    request: AuthenticatedRequest, tree: QuotaTree, *, claim: Claim | None = None
) -> WhatIfForm:
    leaves = [
        entry.queue
        for entry in flatten_queue_entries(tree.roots)
        if entry.can_open and not entry.below
    ]
    if claim is not None:
        leaves.sort(key=lambda queue: queue.pk != claim.queue_id)
    chips = [*claim.chips] if claim else []
    chips += [chip for chip in tree.chips if chip not in chips]
    return WhatIfForm(
        request.POST if request.method == "POST" else None,
        queues=leaves,
        chips=chips,
        claim=claim,
        others=_running_claim_choices(tree, claim),
    )


def _running_claim_choices(tree: QuotaTree, claim: Claim | None) -> list[tuple[str, str]]:
    """Running claims with labels: first those that have to end before the claim starts."""
    forecast_row = ClaimForecast.objects.filter(claim=claim).first() if claim else None
    awaits = list(forecast_row.blocked_by) if forecast_row else []
    holding = claims_allocated([entry.queue.pk for entry in flatten_queue_entries(tree.roots)])
    if claim is not None:
        holding = holding.filter(chip__in=claim.chips)
    first = list(holding.filter(uid__in=awaits))
    largest = holding.exclude(uid__in=awaits).order_by("-card_count", "pk")
    return [
        (
            one.uid,
            _("%(name)s: %(cards)d × %(chip)s, queue %(queue)s")
            % {
                "name": claim_label(one, visibility=tree.visibility),
                "cards": one.card_count,
                "chip": one.chip,
                "queue": one.queue.name,
            },
        )
        for one in [*first, *largest[: max(0, _MAX_OTHERS - len(first))]]
    ]


def _what_if_form_response(
    request: AuthenticatedRequest,
    form: WhatIfForm,
    *,
    claim: Claim | None,
    template: str,
    context: Mapping[str, Any],
) -> HttpResponse:
    """Create the what-if of a valid form and redirect to its result; otherwise render the form."""

    def save() -> WhatIf:
        question = WhatIfRequest(changes=form.changes(), queue=form.selected_queue(), claim=claim)
        return what_if_create(question=question, actor=request.user)

    if created := save_form(form, save, refusals={WhatIfRefused: ""}):
        return redirect("what-if", created.uid)
    return render_form(request, template, form, **context)


@login_required
def what_if(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The result of a what-if; the page polls until it is computed."""
    what_if_row = get_object_or_404(what_ifs_visible(request.user), uid=uid)
    tree, at = queue_tree(request.user), timezone.now()
    answer = what_if_result(what_if_row, visibility=tree.visibility)
    context = {
        "what_if": what_if_row,
        "name": claim_label(what_if_row.claim, visibility=tree.visibility)
        if what_if_row.claim
        else "",
        "changes": format_what_if_changes(what_if_row, tree),
        "answer": answer,
        **(_outcome_context(answer, now=at) if answer else {}),
    }
    changing = what_if_row.state == WhatIfState.ASKED
    return render_page(
        request, "quotas/what_if_result.html", context, fragment="answer", changing=changing
    )


def _outcome_context(answer: WhatIfOutcome, *, now: datetime) -> dict[str, Any]:
    def effect_row(each: WhatIfEffect) -> dict[str, Any]:
        return {
            "work": workload_link(each.work),
            "gained": each.gained,
            "lost": -each.gained if each.gained is not None else None,
            "before": _format_start_forecast(each.before, now=now),
            "after": _format_start_forecast(each.after, now=now),
        }

    return {
        "own": effect_row(answer.own) if answer.own else None,
        "earlier": [effect_row(each) for each in answer.earlier],
        "later": [effect_row(each) for each in answer.later],
        "stopped": [effect_row(each) for each in answer.stopped],
    }


def _format_start_forecast(start: StartForecast | None, *, now: datetime) -> str:
    """The formatted start; empty if it is not pending."""
    if start is None:
        return ""
    visible = VisibleForecast(
        starts_at=start.starts_at, earliest=start.earliest, latest=start.latest
    )
    return format_predicted_start(visible, now=now)


def format_what_if_changes(what_if_row: WhatIf, tree: QuotaTree) -> list[str]:
    """The changes of a what-if, one sentence each."""
    queues = {entry.queue.uid: entry.queue.name for entry in flatten_queue_entries(tree.roots)}
    uids = [
        change[name]
        for change in what_if_row.changes
        for name in ("node", "like")
        if name in change
    ]
    nodes = dict(Node.objects.filter(uid__in=uids).values_list("uid", "name"))
    removed = [change["claim"] for change in what_if_row.changes if change["kind"] == "cancelled"]
    claims = {
        claim.uid: claim
        for claim in Claim.objects.filter(uid__in=removed).select_related("team", "queue")
    }

    def describe(change: Mapping[str, Any]) -> str:
        match change["kind"]:
            case "more_cards":
                text = (
                    _("guaranteed quota of queue %(queue)s: +%(cards)d × %(chip)s")
                    if change["cards"] > 0
                    else _("guaranteed quota of queue %(queue)s: −%(cards)d × %(chip)s")
                )
                return text % {
                    "queue": queues.get(change["queue"], "–"),
                    "cards": abs(change["cards"]),
                    "chip": change["chip"],
                }
            case "more_nodes":
                return _("%(nodes)d additional nodes of the same type as %(node)s") % {
                    "nodes": change["nodes"],
                    "node": nodes.get(change["like"], "–"),
                }
            case "drain_node":
                return _("node %(node)s cordoned") % {"node": nodes.get(change["node"], "–")}
            case "urgent":
                return _("priority %(priority)d") % {"priority": change["priority"]}
            case _:
                name = claim_label(claims[change["claim"]], visibility=tree.visibility)
                return _("%(name)s removed") % {"name": name}

    return [describe(change) for change in what_if_row.changes]


@login_required
def reclaim_preview_page(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Workloads that would be preempted if the queue requested cards now: ``?chip=&cards=&together=``."""
    tree = queue_tree(request.user)
    entry = queue_entry_or_404(tree, uid)
    reclaimable = [share for share in entry.shares if share.chip and share.standing.reclaimable > 0]
    chips = list(dict.fromkeys((*(share.chip for share in reclaimable), *tree.chips)))
    first = reclaimable[0] if reclaimable else None
    initial = {"chip": first.chip, "cards": first.standing.reclaimable} if first else {"cards": 1}
    form = ReclaimForm(
        request.GET if "cards" in request.GET else None, chips=chips, initial=initial
    )
    preview = None
    if form.is_bound and form.is_valid():
        reclaim_request = ReclaimRequest(queue=entry.queue, **form.cleaned_data)
        at = timezone.now()
        preview = reclaim_preview(
            reclaim_request, visibility=tree.visibility, policy=current_scheduling_policy(), at=at
        )
    context = {
        "queue": entry.queue,
        "entry": entry,
        "form": form,
        "reclaimable": reclaimable,
        "preview": preview,
        "grace": current_scheduling_policy().grace,
        "losers": [
            {"victim": victim, **workload_link(victim.work)}
            for victim in (preview.losers if preview else ())
        ],
        "back": reverse("queue", args=[entry.queue.uid]),
    }
    return render(request, "quotas/reclaim.html", context)
