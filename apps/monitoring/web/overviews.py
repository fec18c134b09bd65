"""Pages that look across the apps: home and the fleet."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render

from apps.accounts.models import User
from apps.accounts.web.requests import SignedIn
from apps.fleet import selectors as fleet
from apps.fleet.models import Node
from apps.jobs import selectors as jobs
from apps.models import selectors as models
from apps.quotas import selectors as quotas
from apps.serving import selectors as serving
from apps.serving.selectors import Holder
from controlplane.domain.claims import ClaimState
from controlplane.domain.jobs import JobState
from controlplane.domain.serving import DeploymentState
from controlplane.web.pages import show

SHOWN = 8
WAITING_SHOWN = 50


@login_required
def home(request: SignedIn) -> HttpResponse:
    """What runs, what waits and why, what needs somebody."""
    recent = jobs.jobs_with_newest_attempt(jobs.jobs_visible(request.user))
    rows = {state: list(recent.filter(state=state)[:SHOWN]) for state in _HOME_STATES}
    deployments = list(serving.deployments_visible(request.user)[:50])
    troubled = [one for one in deployments if one.state == DeploymentState.DEGRADED]
    served = [one for one in deployments if one.state in _SERVING]
    context: dict[str, Any] = {
        "running": rows[JobState.RUNNING],
        "waiting": rows[JobState.WAITING],
        "failed": rows[JobState.FAILED],
        "troubled": troubled,
        "serving": served[:SHOWN],
    }
    idle = not any(rows.values()) and not deployments
    context["steps"] = _first_steps(request.user) if idle else None
    changing = bool(rows[JobState.RUNNING] or rows[JobState.WAITING]) or any(
        one.state in _MOVING for one in deployments
    )
    return show(request, "monitoring/home.html", context, fragment="now", changing=changing)


_HOME_STATES = (JobState.RUNNING, JobState.WAITING, JobState.FAILED)
_SERVING = (DeploymentState.STARTING, DeploymentState.READY, DeploymentState.DEGRADED)
_MOVING = (DeploymentState.STARTING, DeploymentState.DEGRADED, DeploymentState.STOPPING)


def _first_steps(user: User) -> dict[str, bool] | None:
    """Which of the first steps are done; None once a model has been fine-tuned: no beginner any more."""
    if models.model_versions_visible(user).exclude(base=None).exists():
        return None
    return {
        "dataset": models.datasets_visible(user).exists(),
        "model": models.model_lines_visible(user).exists(),
    }


@login_required
def fleet_overview(request: SignedIn) -> HttpResponse:
    """Clusters, nodes, cards and who holds them; queues and what waits in them."""
    holders = serving.card_holders(request.user)
    waiting = quotas.claims_visible(request.user).filter(state=ClaimState.PENDING)
    context = {
        "clusters": list(fleet.clusters()),
        "nodes": [_node(node, holders) for node in fleet.nodes_with_cards()],
        "chips": fleet.cards_by_chip(),
        "queues": list(quotas.queues_visible(request.user)),
        "claims": list(waiting.order_by("-priority", "id")[:WAITING_SHOWN]),
    }
    return render(request, "monitoring/fleet.html", context)


def _node(node: Node, holders: dict[int, Holder]) -> dict[str, Any]:
    cards = sorted(node.cards.all(), key=lambda card: card.index)
    return {
        "node": node,
        "cards": [{"card": card, "holder": holders.get(card.pk)} for card in cards],
        "held": sum(card.pk in holders for card in cards),
    }
