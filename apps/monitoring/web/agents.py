"""Pages of agents: which nodes' agents speak, and the tokens by which they do."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from apps.accounts.web.requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.fleet.selectors import require_operator
from apps.monitoring.models import NodeToken
from apps.monitoring.selectors.agents import (
    GONE,
    SILENT_AFTER,
    AgentState,
    agent_state,
    agents_heard,
)
from apps.monitoring.selectors.sources import node_tokens_visible, sources_visible
from apps.monitoring.services import node_tokens as services
from apps.monitoring.web.sources import tabs_of
from apps.monitoring.web.sources_forms import NodeTokenForm
from controlplane.web.tables import Column, FilterForm, Table

_ALL = "all"
STATE_WORDS = {
    AgentState.WELL: pgettext_lazy("agent", "heard"),
    AgentState.SILENT: pgettext_lazy("agent", "silent"),
    AgentState.UNSEEN: pgettext_lazy("agent", "never heard"),
    AgentState.GONE: pgettext_lazy("agent", "its node is gone"),
    AgentState.REVOKED: gettext_lazy("revoked"),
}


class TokenFilter(FilterForm):
    """Tokens that are good, unless others are asked for."""

    text = forms.CharField(label=gettext_lazy("Node"), max_length=80)
    state = forms.ChoiceField(
        label=gettext_lazy("State"),
        choices=[
            ("", gettext_lazy("those that are good")),
            *((one.value, word) for one, word in STATE_WORDS.items()),
            (_ALL, gettext_lazy("all")),
        ],
    )
    lookups: ClassVar[dict[str, str]] = {"text": "node__name__icontains"}

    def __init__(self, *args: Any, at: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._since = at - SILENT_AFTER

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        state, rows = self.chosen("state"), super().apply(rows)
        if state == _ALL:
            return rows
        unheard = Q(used_at=None) | Q(used_at__lt=self._since)
        by_state = {
            AgentState.WELL: Q(used_at__gte=self._since),
            AgentState.SILENT: Q(used_at__lt=self._since) & ~GONE,
            AgentState.UNSEEN: Q(used_at=None) & ~GONE,
            AgentState.GONE: unheard & GONE,
        }
        if state == AgentState.REVOKED:
            return rows.exclude(revoked_at=None)
        return rows.filter(by_state.get(state, Q()), revoked_at=None)


COLUMNS = (
    Column(key="node", label=gettext_lazy("Node"), sort="node__name", csv=lambda row: row.node),
    Column(
        key="state",
        label=gettext_lazy("State"),
        csv=lambda row: agent_state(row, at=timezone.now()).value,
    ),
    Column(key="used_at", label=gettext_lazy("Last heard"), sort="used_at"),
    Column(key="agent", label=gettext_lazy("Agent"), csv=lambda row: row.agent.get("name", "")),
    Column(key="created_by_name", label=gettext_lazy("Made by")),
    Column(key="created_at", label=gettext_lazy("Made"), sort="pk"),
    Column(key="acts", label=""),
)


@login_required
def agents(request: AuthenticatedRequest) -> HttpResponseBase:
    """Every token with its node and when its agent was heard."""
    require_operator(request.user)
    at = timezone.now()
    rows = node_tokens_visible(request.user).filter(
        node__removed_at=None, node__cluster__removed_at=None
    )
    filters = TokenFilter(request.GET, at=at)
    table = Table(request, rows, columns=COLUMNS, filters=filters)
    if table.wants_csv:
        return table.csv(filename="agents.csv")
    heard = agents_heard(at=at)
    readable = sources_visible(request.user).filter(cluster__removed_at=None)
    context = {
        "table": table,
        "rows": [_row(token, at=at) for token in table.rows],
        "agents": heard,
        "tabs": tabs_of("agents", sources=readable.count(), agents=heard),
        "server": settings.NINEFOLD_PUBLIC_URL,
    }
    return render(request, "monitoring/agents.html", context)


def _row(token: NodeToken, *, at: datetime) -> dict[str, Any]:
    state = agent_state(token, at=at)
    return {
        "token": token,
        "state": f"agent_{state.value}" if state is not AgentState.REVOKED else state.value,
        "name": token.agent.get("name", ""),
        "vendor": token.agent.get("vendor", ""),
        "blind": token.agent.get("reader_ok") is False,
    }


@never_cache
@login_required
def token_new(request: AuthenticatedRequest) -> HttpResponse:
    """The form; the token is in the answer to it and nowhere else."""
    require_operator(request.user)
    bound = request.method == "POST"
    form = NodeTokenForm(request.POST if bound else None, initial={"node": _named(request)})
    if bound and form.is_valid():
        node = form.cleaned_data["node"]
        text = services.token_issue(node=node, actor=request.user)
        context = {"node": node, "text": text, "server": settings.NINEFOLD_PUBLIC_URL}
        return render(request, "monitoring/agent_token.html", context)
    status = 422 if bound else 200
    return render(request, "monitoring/agent_token_new.html", {"form": form}, status=status)


def _named(request: AuthenticatedRequest) -> str:
    """The node that ``?node=`` names, as the form takes it."""
    node = fleet.nodes().filter(uid=request.GET.get("node", "")).first()
    return f"{node.cluster.name}/{node.name}" if node is not None else ""


@login_required
@require_POST
def token_revoke(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    require_operator(request.user)
    token = get_object_or_404(node_tokens_visible(request.user), uid=uid)
    services.token_revoke(token=token, actor=request.user, at=timezone.now())
    said = _("The token of %(node)s was revoked: what its agent sends is refused.")
    messages.success(request, said % {"node": token.node})
    return redirect("agents")
