"""What if: ask what would be different for a claim or for everybody, and what a guarantee would take back."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts import selectors as accounts
from apps.accounts.web.requests import SignedIn
from apps.fleet.models import Node
from apps.quotas.models import Claim, ClaimForecast, WhatIf
from apps.quotas.selectors.claims import claims_holding
from apps.quotas.selectors.forecasts import Outlook, last_run
from apps.quotas.selectors.policies import policy_now
from apps.quotas.selectors.previews import Ask, reclaim_preview
from apps.quotas.selectors.queues import Tree, flat, queue_tree
from apps.quotas.selectors.what_ifs import Answer, Concerned, Start, answer_of, what_ifs_visible
from apps.quotas.services.what_ifs import Question, QuestionRefused, what_if_ask
from apps.quotas.web.claims import awaited, found_for
from apps.quotas.web.question_forms import ReclaimForm, WhatIfForm
from apps.quotas.web.queues import found_in
from apps.quotas.web.words import name_of, outlook_brief, outlook_in_words
from controlplane.domain.claims import ClaimState
from controlplane.domain.permissions import Permission
from controlplane.domain.scheduling.questions import WhatIfState
from controlplane.web.pages import show

#: Work that may be imagined away: what it waits for, then the largest.
_MOST_OTHERS = 30
_MOST_FORETOLD = 50


@login_required
def claim_what_if(request: SignedIn, uid: str) -> HttpResponse:
    """Ask about one claim."""
    claim, _sight = found_for(request, uid)
    accounts.require(request.user, Permission.VIEW, team=claim.team)
    tree = queue_tree(request.user)
    form = _form(request, tree, claim=claim)
    context = {"claim": claim, "name": name_of(claim, sight=tree.sight)}
    return _asked(request, form, claim=claim, template="quotas/what_if.html", context=context)


@login_required
def forecast(request: SignedIn) -> HttpResponse:
    """What starts when, of everybody; and what would be different. For administrators of the company."""
    accounts.require(request.user, Permission.VIEW, team=None)
    tree, at = queue_tree(request.user), timezone.now()
    soon = (
        ClaimForecast.objects.filter(claim__state=ClaimState.PENDING, starts_at__isnull=False)
        .select_related("claim__team", "claim__queue", "claim__person")
        .order_by("starts_at", "place")[:_MOST_FORETOLD]
    )
    context = {
        "run": last_run(),
        "soon": [
            {
                "claim": told.claim,
                "place": told.place,
                "name": name_of(told.claim, sight=tree.sight),
                "starts": outlook_brief(told.claim, now=at),
            }
            for told in soon
        ],
        "asked_before": what_ifs_visible(request.user)[:10],
    }
    form = _form(request, tree)
    return _asked(request, form, claim=None, template="quotas/forecast.html", context=context)


def _form(request: SignedIn, tree: Tree, *, claim: Claim | None = None) -> WhatIfForm:
    opened = [line.queue for line in flat(tree.tops) if line.opened and not line.below]
    if claim is not None:
        opened.sort(key=lambda queue: queue.pk != claim.queue_id)
    chips = [*claim.chips] if claim else []
    chips += [chip for chip in tree.chips if chip not in chips]
    return WhatIfForm(
        request.POST if request.method == "POST" else None,
        queues=opened,
        chips=chips,
        claim=claim,
        others=_others(tree, claim),
    )


def _others(tree: Tree, claim: Claim | None) -> list[tuple[str, str]]:
    """Work that holds cards, named as the reader may know it: first what the claim waits for."""
    told = ClaimForecast.objects.filter(claim=claim).first() if claim else None
    awaits = list(told.waits_for) if told else []
    holding = claims_holding([line.queue.pk for line in flat(tree.tops)])
    if claim is not None:
        holding = holding.filter(chip__in=claim.chips)
    first = list(holding.filter(uid__in=awaits))
    largest = holding.exclude(uid__in=awaits).order_by("-card_count", "pk")
    return [
        (
            one.uid,
            _("%(name)s: %(cards)d × %(chip)s, queue %(queue)s")
            % {
                "name": name_of(one, sight=tree.sight),
                "cards": one.card_count,
                "chip": one.chip,
                "queue": one.queue.name,
            },
        )
        for one in [*first, *largest[: max(0, _MOST_OTHERS - len(first))]]
    ]


def _asked(
    request: SignedIn,
    form: WhatIfForm,
    *,
    claim: Claim | None,
    template: str,
    context: Mapping[str, Any],
) -> HttpResponse:
    """Keep a valid question and go to its answer; otherwise the form."""
    if form.is_bound and form.is_valid():
        question = Question(changes=form.changes(), queue=form.queue_chosen(), claim=claim)
        try:
            asked = what_if_ask(question=question, actor=request.user)
        except QuestionRefused as refusal:
            form.add_error(None, ValidationError(str(refusal)))
        else:
            return redirect("what-if", asked.uid)
    status = 422 if form.is_bound else 200
    return render(request, template, {**context, "form": form}, status=status)


@login_required
def what_if(request: SignedIn, uid: str) -> HttpResponse:
    """The answer; the page asks anew until it is there."""
    asked = get_object_or_404(what_ifs_visible(request.user), uid=uid)
    tree, at = queue_tree(request.user), timezone.now()
    answer = answer_of(asked, sight=tree.sight)
    context = {
        "asked": asked,
        "name": name_of(asked.claim, sight=tree.sight) if asked.claim else "",
        "changes": changes_in_words(asked, tree),
        "answer": answer,
        **(_answered(answer, now=at) if answer else {}),
    }
    changing = asked.state == WhatIfState.ASKED
    return show(
        request, "quotas/what_if_answer.html", context, fragment="answer", changing=changing
    )


def _answered(answer: Answer, *, now: datetime) -> dict[str, Any]:
    def told(each: Concerned) -> dict[str, Any]:
        return {
            "work": awaited(each.work),
            "gained": each.gained,
            "lost": -each.gained if each.gained is not None else None,
            "before": _start(each.before, now=now),
            "after": _start(each.after, now=now),
        }

    return {
        "own": told(answer.own) if answer.own else None,
        "earlier": [told(each) for each in answer.earlier],
        "later": [told(each) for each in answer.later],
        "stopped": [told(each) for each in answer.stopped],
    }


def _start(start: Start | None, *, now: datetime) -> str:
    """When it starts, in words; empty where it does not wait."""
    if start is None:
        return ""
    told = Outlook(starts_at=start.starts_at, earliest=start.earliest, latest=start.latest)
    return outlook_in_words(told, now=now)


def changes_in_words(asked: WhatIf, tree: Tree) -> list[str]:
    """What would be different, one sentence each."""
    queues = {line.queue.uid: line.queue.name for line in flat(tree.tops)}
    uids = [change[name] for change in asked.changes for name in ("node", "like") if name in change]
    nodes = dict(Node.objects.filter(uid__in=uids).values_list("uid", "name"))
    gone = [change["claim"] for change in asked.changes if change["kind"] == "cancelled"]
    claims = {
        claim.uid: claim
        for claim in Claim.objects.filter(uid__in=gone).select_related("team", "queue")
    }

    def told(change: Mapping[str, Any]) -> str:
        match change["kind"]:
            case "more_cards":
                words = (
                    _("queue %(queue)s is guaranteed %(cards)d × %(chip)s more")
                    if change["cards"] > 0
                    else _("queue %(queue)s is guaranteed %(cards)d × %(chip)s less")
                )
                return words % {
                    "queue": queues.get(change["queue"], "–"),
                    "cards": abs(change["cards"]),
                    "chip": change["chip"],
                }
            case "more_nodes":
                return _("there are %(nodes)d more nodes like %(node)s") % {
                    "nodes": change["nodes"],
                    "node": nodes.get(change["like"], "–"),
                }
            case "drain_node":
                return _("node %(node)s takes no work") % {"node": nodes.get(change["node"], "–")}
            case "urgent":
                return _("its priority is %(priority)d") % {"priority": change["priority"]}
            case _:
                name = name_of(claims[change["claim"]], sight=tree.sight)
                return _("%(name)s is gone") % {"name": name}

    return [told(change) for change in asked.changes]


@login_required
def reclaim(request: SignedIn, uid: str) -> HttpResponse:
    """Who would have to stop if the queue asked for cards now: ``?chip=&cards=&together=``."""
    tree = queue_tree(request.user)
    line = found_in(tree, uid)
    owed = [share for share in line.shares if share.chip and share.standing.reclaimable > 0]
    chips = list(dict.fromkeys((*(share.chip for share in owed), *tree.chips)))
    first = owed[0] if owed else None
    initial = {"chip": first.chip, "cards": first.standing.reclaimable} if first else {"cards": 1}
    form = ReclaimForm(
        request.GET if "cards" in request.GET else None, chips=chips, initial=initial
    )
    preview = None
    if form.is_bound and form.is_valid():
        ask = Ask(queue=line.queue, **form.cleaned_data)
        at = timezone.now()
        preview = reclaim_preview(ask, sight=tree.sight, policy=policy_now(), at=at)
    context = {
        "queue": line.queue,
        "line": line,
        "form": form,
        "owed": owed,
        "preview": preview,
        "grace": policy_now().grace,
        "losers": [
            {"loser": loser, **awaited(loser.work)} for loser in (preview.losers if preview else ())
        ],
        "back": reverse("queue", args=[line.queue.uid]),
    }
    return render(request, "quotas/reclaim.html", context)
