"""Page of actions suppressed by the guard in each pool, with their cost."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode

from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.monitoring.models import HealthPolicy
from apps.monitoring.selectors.health_snapshots import health_policy
from apps.monitoring.selectors.suppressed_actions import SuppressedPool, suppressed_pools
from apps.monitoring.services.isolations import IsolationRefused
from apps.monitoring.services.suppressed_actions import (
    SuppressedActionsRequest,
    SuppressedActionsResult,
    suppressed_pool_dismiss,
    suppressed_pool_isolate,
)
from apps.monitoring.web.faults import isolation_count_message
from controlplane.domain.health.decisions import isolation_limit
from controlplane.web.pages import run_action
from controlplane.web.templatetags.ninefold import number

#: Nothing has so many.
_DIGITS = 10


@login_required
def suppressed_actions(request: AuthenticatedRequest) -> HttpResponse:
    """Pools with suppressed isolations."""
    policy_row = health_policy()
    context = {
        "rows": [
            _suppressed_pool_row(pool, policy_row) for pool in suppressed_pools(at=timezone.now())
        ],
        "operates": fleet.is_fleet_operator(request.user),
    }
    return render(request, "monitoring/suppressed_actions.html", context)


@login_required
@require_POST
def suppressed_actions_isolate(request: AuthenticatedRequest) -> HttpResponse:
    def action() -> str:
        done = suppressed_pool_isolate(
            _submitted_request(request),
            reason=_submitted_reason(request),
            actor=request.user,
            at=timezone.now(),
        )
        return _suppressed_pool_result_message(isolation_count_message(done.done), done)

    return _run_suppressed_pool_action(request, action)


@login_required
@require_POST
def suppressed_actions_dismiss(request: AuthenticatedRequest) -> HttpResponse:
    def action() -> str:
        done = suppressed_pool_dismiss(
            _submitted_request(request),
            reason=_submitted_reason(request),
            actor=request.user,
            at=timezone.now(),
        )
        message = ngettext(
            "%(count)d card or node kept in service.",
            "%(count)d cards or nodes kept in service.",
            done.done,
        )
        return _suppressed_pool_result_message(message % {"count": done.done}, done)

    return _run_suppressed_pool_action(request, action)


def _run_suppressed_pool_action(
    request: AuthenticatedRequest, action: Callable[[], str]
) -> HttpResponse:
    """Run the action and redirect; a refusal becomes a message in the reader's language."""
    return run_action(request, action, back=reverse("held-back"), refusals=(IsolationRefused,))


def _submitted_request(request: AuthenticatedRequest) -> SuppressedActionsRequest:
    shown = request.GET.get("shown", "")
    return SuppressedActionsRequest(
        cluster=request.GET.get("cluster", ""),
        chip=request.GET.get("chip", ""),
        until=request.GET.get("until", ""),
        shown=int(shown) if shown.isdecimal() and len(shown) < _DIGITS else 0,
    )


def _submitted_reason(request: AuthenticatedRequest) -> str:
    return request.POST.get("reason", "").strip()


def _suppressed_pool_result_message(message: str, done: SuppressedActionsResult) -> str:
    """With how many of those that the page showed were left out."""
    if not done.left_out:
        return message
    left = ngettext(
        "%(count)d isolation skipped: fault resolved or already decided.",
        "%(count)d isolations skipped: faults resolved or already decided.",
        done.left_out,
    )
    return f"{message} {left % {'count': done.left_out}}"


def _suppressed_pool_row(pool: SuppressedPool, policy_row: HealthPolicy) -> dict[str, Any]:
    policy = policy_row.policy
    shown = {
        "cluster": pool.cluster_uid,
        "chip": pool.chip,
        "until": pool.until,
        "shown": pool.isolations,
    }
    query = urlencode(shown)
    return {
        "pool": pool,
        "name": _pool_name(pool),
        "automatic": policy_row.automatic,
        "allowed": isolation_limit(pool.size, policy),
        "share": f"{policy.pool_share / 10:g}",
        "nodes_per_window": policy.nodes_per_window,
        "minutes": f"{policy.window.total_seconds() / 60:g}",
        "left_share": _remaining_card_percent(pool),
        "costs": _isolation_cost_label(pool),
        "faults": f"{reverse('faults')}?{urlencode({'state': 'new', 'cluster': pool.cluster})}",
        "isolate": f"{reverse('held-back-isolate')}?{query}",
        "leave": f"{reverse('held-back-leave')}?{query}",
    }


def _isolation_cost_label(pool: SuppressedPool) -> str:
    cards = ngettext(
        "%(cards)s card of %(pool)s will be isolated until an operator returns it to service.",
        "%(cards)s cards of %(pool)s will be isolated until an operator returns them to service.",
        pool.cards,
    )
    works = ngettext(
        "%(works)s workload saves a checkpoint, stops and restarts elsewhere.",
        "%(works)s workloads save a checkpoint, stop and restart elsewhere.",
        pool.works,
    )
    left = _("%(left)s of %(size)s cards (%(share)s %%) remain available.")
    named = {
        "cards": number(pool.cards),
        "pool": _pool_name(pool),
        "works": number(pool.works),
        "size": number(pool.size),
        "left": number(pool.left),
        "share": _remaining_card_percent(pool),
    }
    return " ".join(part % named for part in (cards, works, left))


def _pool_name(pool: SuppressedPool) -> str:
    if not pool.chip:
        return pool.cluster
    return _("%(chip)s in %(cluster)s") % {"chip": pool.chip, "cluster": pool.cluster}


def _remaining_card_percent(pool: SuppressedPool) -> str:
    """Percent of the pool's cards that can still be used once all of it is out."""
    return f"{100 * pool.left / pool.size:.1f}" if pool.size else "–"
