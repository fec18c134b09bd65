"""Pages of metric sources, of the agents that push metrics, and of their tokens.

Deletion and revocation end faults too: ``apps.monitoring.web.faults`` has these two.
"""

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
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, pgettext_lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.fleet import selectors as fleet
from apps.fleet.selectors import require_fleet_operator
from apps.telemetry import selectors
from apps.telemetry.models import NodeToken, Source
from apps.telemetry.selectors import (
    GONE,
    PUSH,
    STALE_AFTER,
    AgentCounts,
    AgentState,
    agent_counts,
    agent_state,
    metric_sources_visible,
    node_tokens_visible,
)
from apps.telemetry.services import metric_sources as services
from apps.telemetry.services.metric_sources import MetricSourceRefused, MetricSourceTestResult
from apps.telemetry.services.node_tokens import node_token_issue
from apps.telemetry.web.metric_source_forms import (
    EXPORTER,
    KIND_LABELS,
    NewMetricSourceForm,
    NodeTokenForm,
    offered_kinds,
    source_form_class,
)
from controlplane.ports.telemetry import exporter_name
from controlplane.web.forms import submitted_data
from controlplane.web.pages import PageTab, render_form, render_page, row_action_view
from controlplane.web.reasons import render_reason
from controlplane.web.tables import FilterForm, ListTable, TableColumn

#: Of many exporters a list shows so many addresses, and how many more there are.
ADDRESSES_SHOWN = 2


def source_tabs(current: str, *, sources: int, agents: AgentCounts) -> list[PageTab]:
    """What is read, and who sends."""
    parts = (
        ("sources", gettext_lazy("Sources"), sources),
        ("agents", gettext_lazy("Agents"), agents.nodes),
    )
    return [
        PageTab(label=label, href=reverse(name), current=name == current, count=count)
        for name, label, count in parts
    ]


@login_required
def metric_source_list(request: AuthenticatedRequest) -> HttpResponse:
    """All sources with their state and the rejections of the last scrape; refreshes itself."""
    require_fleet_operator(request.user)
    at = timezone.now()
    rows = [_source_row(one) for one in selectors.source_statuses(at=at)]
    agents = agent_counts(at=at)
    context = {
        "rows": rows,
        "agents": agents,
        "tabs": source_tabs("sources", sources=len(rows), agents=agents),
        "kinds": offered_kinds(),
    }
    return render_page(
        request, "telemetry/sources.html", context, fragment="now", changing=bool(rows)
    )


def _source_row(status: selectors.SourceStatus) -> dict[str, Any]:
    source = status.source
    addresses = _source_urls(source)
    return {
        "source": source,
        "state": status.how.value,
        "kind": KIND_LABELS.get(source.kind, source.kind),
        "measured": status.measured,
        "addresses": addresses[:ADDRESSES_SHOWN],
        "addresses_more": max(0, len(addresses) - ADDRESSES_SHOWN),
    }


def _source_urls(source: Source) -> list[str]:
    """Where it is read; nothing for one that is pushed to."""
    if source.kind == EXPORTER:
        return [one["url"] for one in source.options.get("targets", ())]
    return [source.options["url"]] if "url" in source.options else []


def _find_metric_source(request: AuthenticatedRequest, uid: str) -> Source:
    require_fleet_operator(request.user)
    return get_object_or_404(metric_sources_visible(request.user), uid=uid)


@login_required
def metric_source_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """One source: what is read where, and why something of it was not kept."""
    return _source_page(request, _find_metric_source(request, uid))


def _source_page(
    request: AuthenticatedRequest,
    found: Source,
    *,
    trial: MetricSourceTestResult | None = None,
    refusal: str = "",
) -> HttpResponse:
    at = timezone.now()
    context = {
        **_source_row(selectors.source_status(found, at=at)),
        "pushes": found.kind == PUSH,
        "agents": agent_counts(at=at, cluster=found.cluster) if found.kind == PUSH else None,
        "targets": _target_rows(found),
        "settings": _setting_rows(found),
        "unreachable": sorted(found.unreachable.items()),
        "trial": trial,
        "refusal": refusal,
    }
    status = 422 if refusal else 200
    return render(request, "telemetry/source.html", context, status=status)


def _target_rows(source: Source) -> list[dict[str, str | None]]:
    """Each exporter with its node, and why it did not respond to the last scrape; None if unknown."""
    if source.kind != EXPORTER:
        return []
    found: list[dict[str, str | None]] = []
    for one in source.options.get("targets", ()):
        url, node = one["url"], one.get("node", "")
        reason = services.target_unreachable_reason(source, exporter_name(url=url, node=node))
        found.append({"url": url, "node": node, "reason": reason})
    return found


def _setting_rows(source: Source) -> list[tuple[str, Any]]:
    """Further options, with their names in the REST API."""
    own = {"url", "vendor"} | ({"targets"} if source.kind == EXPORTER else set())
    return sorted((name, value) for name, value in source.options.items() if name not in own)


@sensitive_post_parameters("token")
@login_required
def metric_source_new_view(request: AuthenticatedRequest) -> HttpResponse:
    """A form for the kind that ``?kind=`` names. Nothing is called yet: the source's page tries it."""
    require_fleet_operator(request.user)
    kinds = offered_kinds()
    asked = request.GET.get("kind", "")
    kind = asked if asked in kinds else (kinds[0] if kinds else "")
    bound = request.method == "POST" and bool(kind)
    data = request.POST if bound else None
    which, form = NewMetricSourceForm(data), source_form_class(kind)(data)
    # Validate both, so that all errors are shown together.
    if bound and all([which.is_valid(), form.is_valid()]):
        try:
            source = services.metric_source_create(
                actor=request.user,
                kind=kind,
                options=form.chosen_options,
                every=form.cleaned_data["every"],
                token=form.chosen_token or "",
                **which.cleaned_data,
            )
        except MetricSourceRefused as refusal:
            if refusal.field in which.fields:
                which.add_error(refusal.field, render_reason(str(refusal)))
            else:
                form.refused(refusal.field, render_reason(str(refusal)))
        else:
            messages.success(
                request, _("Metric source created. Use “Test metric source” to verify it.")
            )
            return redirect("source", source.uid)
    here = reverse("source-new")
    context = {
        "which": which,
        "form": form,
        "kinds": [
            PageTab(label=KIND_LABELS[one], href=f"{here}?kind={one}", current=one == kind)
            for one in kinds
        ],
    }
    return render(request, "telemetry/source_edit.html", context, status=422 if bound else 200)


@sensitive_post_parameters("token")
@login_required
def metric_source_change_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _find_metric_source(request, uid)
    form = source_form_class(found.kind)(submitted_data(request), source=found)
    if form.is_bound and form.is_valid():
        try:
            services.metric_source_change(
                source=found,
                actor=request.user,
                options=form.chosen_options if form.options else None,
                every=form.cleaned_data["every"],
                token=form.chosen_token,
            )
        except MetricSourceRefused as refusal:
            form.refused(refusal.field, render_reason(str(refusal)))
        else:
            messages.success(request, _("Metric source saved."))
            return redirect("source", found.uid)
    return render_form(request, "telemetry/source_edit.html", form, source=found)


@login_required
@require_POST
def metric_source_test_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Show the result of a test scrape; nothing is stored."""
    found = _find_metric_source(request, uid)
    try:
        trial = services.metric_source_test(source=found, actor=request.user)
    except MetricSourceRefused as refusal:
        return _source_page(request, found, refusal=render_reason(str(refusal)))
    return _source_page(request, found, trial=trial)


_source_action = row_action_view(
    load=_find_metric_source, page="source", refusals=(MetricSourceRefused,)
)


@_source_action
def metric_source_pause_view(request: AuthenticatedRequest, found: Source) -> str:
    services.metric_source_change(source=found, actor=request.user, enabled=False)
    return _("Metric source paused. Metrics of its cards become stale.")


@_source_action
def metric_source_resume_view(request: AuthenticatedRequest, found: Source) -> str:
    services.metric_source_change(source=found, actor=request.user, enabled=True)
    return _("Metric source resumed.")


_ALL = "all"
STATE_LABELS = {
    AgentState.WELL: pgettext_lazy("agent", "connected"),
    AgentState.STALE: pgettext_lazy("agent", "stale"),
    AgentState.UNSEEN: pgettext_lazy("agent", "never connected"),
    AgentState.GONE: pgettext_lazy("agent", "node removed"),
    AgentState.REVOKED: gettext_lazy("revoked"),
}


class NodeTokenFilter(FilterForm):
    """Valid tokens by default."""

    text = forms.CharField(label=gettext_lazy("Node"), max_length=80)
    state = forms.ChoiceField(
        label=gettext_lazy("State"),
        choices=[
            ("", gettext_lazy("valid")),
            *((one.value, word) for one, word in STATE_LABELS.items()),
            (_ALL, gettext_lazy("all")),
        ],
    )
    lookups: ClassVar[dict[str, str]] = {"text": "node__name__icontains"}

    def __init__(self, *args: Any, at: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._since = at - STALE_AFTER

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        state, rows = self.chosen("state"), super().apply(rows)
        if state == _ALL:
            return rows
        stale = Q(used_at=None) | Q(used_at__lt=self._since)
        by_state = {
            AgentState.WELL: Q(used_at__gte=self._since),
            AgentState.STALE: Q(used_at__lt=self._since) & ~GONE,
            AgentState.UNSEEN: Q(used_at=None) & ~GONE,
            AgentState.GONE: stale & GONE,
        }
        if state == AgentState.REVOKED:
            return rows.exclude(revoked_at=None)
        return rows.filter(by_state.get(state, Q()), revoked_at=None)


COLUMNS = (
    TableColumn(
        key="node", label=gettext_lazy("Node"), sort="node__name", csv=lambda row: row.node
    ),
    TableColumn(
        key="state",
        label=gettext_lazy("State"),
        csv=lambda row: agent_state(row, at=timezone.now()).value,
    ),
    TableColumn(key="used_at", label=gettext_lazy("Last seen"), sort="used_at"),
    TableColumn(
        key="agent", label=gettext_lazy("Agent"), csv=lambda row: row.agent.get("name", "")
    ),
    TableColumn(key="created_by_name", label=gettext_lazy("Created by")),
    TableColumn(key="created_at", label=gettext_lazy("Created"), sort="pk"),
    TableColumn(key="acts", label=""),
)


@login_required
def metric_agent_list(request: AuthenticatedRequest) -> HttpResponseBase:
    """All tokens with their nodes and the last push of the agent."""
    require_fleet_operator(request.user)
    at = timezone.now()
    rows = node_tokens_visible(request.user).filter(
        node__removed_at=None, node__cluster__removed_at=None
    )
    filters = NodeTokenFilter(request.GET, at=at)
    table = ListTable(request, rows, columns=COLUMNS, filters=filters)
    if table.is_csv_request:
        return table.csv(filename="agents.csv")
    counts = agent_counts(at=at)
    readable = metric_sources_visible(request.user).filter(cluster__removed_at=None)
    context = {
        "table": table,
        "rows": [_node_token_row(token, at=at) for token in table.rows],
        "agents": counts,
        "tabs": source_tabs("agents", sources=readable.count(), agents=counts),
        "server": settings.NINEFOLD_PUBLIC_URL,
    }
    return render(request, "telemetry/agents.html", context)


def _node_token_row(token: NodeToken, *, at: datetime) -> dict[str, Any]:
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
def node_token_new_view(request: AuthenticatedRequest) -> HttpResponse:
    """The form; the response shows the token once."""
    require_fleet_operator(request.user)
    form = NodeTokenForm(submitted_data(request), initial={"node": _requested_node(request)})
    if form.is_bound and form.is_valid():
        node = form.cleaned_data["node"]
        text = node_token_issue(node=node, actor=request.user)
        context = {"node": node, "text": text, "server": settings.NINEFOLD_PUBLIC_URL}
        return render(request, "telemetry/agent_token.html", context)
    return render_form(request, "telemetry/agent_token_new.html", form)


def _requested_node(request: AuthenticatedRequest) -> str:
    """The node in ``?node=``, as the form expects it."""
    node = fleet.nodes_with_cluster().filter(uid=request.GET.get("node", "")).first()
    return f"{node.cluster.name}/{node.name}" if node is not None else ""
