"""Pages that look across the apps: home and the fleet."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy

from apps.accounts.web.requests import SignedIn
from apps.fleet import selectors as fleet
from apps.fleet.models import Card, Node
from apps.monitoring.selectors.homes import FirstSteps, Step, home_of
from apps.quotas import selectors as quotas
from apps.serving import selectors as serving
from apps.serving.selectors import Holder
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import ClaimState
from controlplane.web.pages import show

WAITING_SHOWN = 50
#: More nodes than these are drawn as a map, and opened one at a time.
NODES_IN_FULL = 24


@login_required
def home(request: SignedIn) -> HttpResponse:
    """What runs, what waits and why, what needs somebody."""
    shown = home_of(request.user, at=timezone.now())
    context = {"home": shown, "steps": _steps(shown.steps) if shown.steps else []}
    template = "monitoring/home.html"
    return show(request, template, context, fragment="now", changing=shown.changing)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRow:
    """One of the first steps, with the press that takes it."""

    label: Promise
    hint: Promise
    action: Promise
    href: str
    done: bool
    next: bool


_STEP_WORDS = {
    Step.MODEL: (
        gettext_lazy("Register a model"),
        gettext_lazy("A folder with config.json and safetensors."),
        gettext_lazy("Register"),
        "model-import",
    ),
    Step.DATASET: (
        gettext_lazy("Upload a dataset"),
        gettext_lazy("Questions and answers, or chats. Each row is checked."),
        gettext_lazy("Upload"),
        "dataset-new",
    ),
    Step.FINETUNE: (
        gettext_lazy("Fine-tune"),
        gettext_lazy("Watch the loss fall; a new version comes out."),
        gettext_lazy("Begin"),
        "job-new-finetune",
    ),
    Step.DEPLOY: (
        gettext_lazy("Deploy"),
        gettext_lazy(
            "One press on a version's page gives it an address that OpenAI's clients can call."
        ),
        gettext_lazy("To the version"),
        "models",
    ),
    Step.TALK: (
        gettext_lazy("Talk to it"),
        gettext_lazy("The playground shows the answer and how to get it by a program."),
        gettext_lazy("Open the playground"),
        "playground",
    ),
}


def _steps(steps: FirstSteps) -> list[StepRow]:
    rows = []
    for step, (label, hint, action, page) in _STEP_WORDS.items():
        href = reverse(page)
        if step is Step.DEPLOY and steps.tuned is not None:
            href = reverse("model-version", args=[steps.tuned.uid])
        rows.append(
            StepRow(
                label=label,
                hint=hint,
                action=action,
                href=href,
                done=step in steps.done,
                next=step is steps.next,
            )
        )
    return rows


class Use(StrEnum):
    """What a cell of the fleet says about its card."""

    HELD = "held"
    FREE = "free"
    NO_NEW_WORK = "no_new_work"
    BROKEN = "broken"


_USES = {
    Use.HELD: gettext_lazy("held"),
    Use.FREE: gettext_lazy("free"),
    Use.NO_NEW_WORK: gettext_lazy("no new work"),
    Use.BROKEN: gettext_lazy("not usable"),
}


def _use(card: Card, holder: Holder | None) -> Use:
    """What matters most about it: a broken card first, whoever still holds it."""
    if card.state in (CardState.ISOLATED, CardState.UNKNOWN):
        return Use.BROKEN
    if holder is not None:
        return Use.HELD
    return Use.NO_NEW_WORK if card.state == CardState.NO_NEW_WORK else Use.FREE


@login_required
def fleet_overview(request: SignedIn) -> HttpResponse:
    """Clusters, nodes, cards and who holds them; queues and what waits in them."""
    holders = serving.card_holders(request.user)
    waiting = quotas.claims_visible(request.user).filter(state=ClaimState.PENDING)
    nodes = [_node(node, holders) for node in fleet.nodes_with_cards()]
    uses = Counter(cell["use"] for node in nodes for cell in node["cells"])
    context = {
        "clusters": list(fleet.clusters()),
        **_divided(nodes, opened=request.GET.get("node", "")),
        "legend": [{"use": use, "word": word, "count": uses[use]} for use, word in _USES.items()],
        "total": sum(uses.values()),
        "chips": fleet.cards_by_chip(),
        "queues": list(quotas.queues_visible(request.user)),
        "claims": list(waiting.order_by("-priority", "id")[:WAITING_SHOWN]),
    }
    return render(request, "monitoring/fleet.html", context)


def _divided(nodes: list[dict[str, Any]], *, opened: str) -> dict[str, Any]:
    """Which nodes are drawn in full, and in a large fleet the map of all of them, by cluster."""
    if len(nodes) <= NODES_IN_FULL:
        return {"nodes": nodes}
    parts: dict[str, list[dict[str, Any]]] = {}
    for one in nodes:
        parts.setdefault(one["node"].cluster.name, []).append(one)
    return {
        "nodes": [one for one in nodes if one["node"].uid == opened],
        "parts": sorted(parts.items()),
    }


def cells_of(node: Node, holders: dict[int, Holder]) -> list[dict[str, Any]]:
    """The node's cards in the order of their numbers, each with who holds it and what that means."""
    cells = []
    for card in sorted(node.cards.all(), key=lambda card: card.index):
        holder = holders.get(card.pk)
        use = _use(card, holder)
        cells.append({"card": card, "holder": holder, "use": use, "word": _USES[use]})
    return cells


def _node(node: Node, holders: dict[int, Holder]) -> dict[str, Any]:
    cells = cells_of(node, holders)
    cards = [cell["card"] for cell in cells]
    kinds = Counter((card.chip, card.memory) for card in cards)
    return {
        "node": node,
        "cells": cells,
        "held": sum(card.pk in holders for card in cards),
        "chips": [
            {"name": name, "memory": memory, "count": count}
            for (name, memory), count in kinds.items()
        ],
    }
