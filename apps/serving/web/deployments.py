"""The list of deployments, and the page of one: overview, calls with charts, revisions, events, logs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.functional import Promise
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts import selectors as accounts
from apps.accounts.models import Team, User
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.serving import selectors
from apps.serving.models import Deployment, Replica
from apps.serving.selectors.deployments import (
    ROLLOUT_UNDONE,
    RevisionChange,
    RolloutStatus,
    deployment_events,
    deployments_with_calls,
    replica_locations,
    replica_nodes,
    replicas_with_logs,
    revision_rows,
    rollout_status,
)
from apps.serving.selectors.revision_configurations import replica_node_counts
from apps.serving.selectors.usage import (
    CallStatistics,
    UsageInterval,
    UsageWindow,
    call_statistics,
    deployment_calls,
    last_call_at,
    usage_steps,
    usage_window,
)
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.domain.common.reasons import Reason
from controlplane.domain.serving.lifecycle import (
    DEPLOYMENT,
    DeploymentEvent,
    DeploymentState,
    ReplicaState,
)
from controlplane.domain.serving.model_kinds import Operation
from controlplane.web.forms import row_choice_field
from controlplane.web.pages import PageTab, render_page
from controlplane.web.state_badges import state_badge
from controlplane.web.tables import FilterForm, ListTable, TableColumn

SETTLED_STATES = (DeploymentState.READY, DeploymentState.STOPPED)
#: Bytes of a log that one response contains at most.
LOG_TAIL_BYTES = 64 * 1024
_MAX_LOG_OFFSET = 1 << 53
#: More marks than these hide the lines.
_MAX_RELEASE_MARKS = 20


class DeploymentFilter(FilterForm):
    text = forms.CharField(label=lazy("Name contains"), max_length=80)
    state = forms.ChoiceField(label=lazy("State"))
    model = forms.CharField(label=lazy("Model"), max_length=80)
    team = row_choice_field(Team, lazy("Team"), empty_label=lazy("any team"))

    lookups: ClassVar[Mapping[str, str]] = {
        "text": "name__icontains",
        "state": "state",
        "model": "model_name__icontains",
        "team": "team",
    }

    def __init__(self, data: QueryDict | None = None, *, user: User, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        labels = [(one.value, state_badge(one).label) for one in DeploymentState]
        self.choice("state").choices = [("", _("any state")), *labels]
        teams = accounts.teams_visible(user)
        self.model_choice_field("team").queryset = teams
        if len(teams[:2]) < 2:
            del self.fields["team"]


COLUMNS = (
    TableColumn(key="name", label=lazy("Name"), sort="name"),
    TableColumn(key="state", label=lazy("State"), sort="state"),
    TableColumn(
        key="model",
        label=lazy("Model"),
        sort="model_name",
        csv=lambda row: f"{row.model_name} v{row.model_number}" if row.model_name else "",
    ),
    TableColumn(
        key="ready",
        label=lazy("Ready replicas"),
        numeric=True,
        csv=lambda row: f"{row.ready_replicas} of {row.replica_count}",
    ),
    TableColumn(key="calls", label=lazy("Requests (24 h)"), sort="calls", numeric=True),
    TableColumn(key="team", label=lazy("Team"), sort="team__name", csv=lambda row: row.team.name),
    TableColumn(
        key="created_at",
        label=lazy("Created"),
        sort="pk",
        csv=lambda row: row.created_at.isoformat(),
    ),
)


@login_required
def deployments(request: AuthenticatedRequest) -> HttpResponseBase:
    table = ListTable(
        request,
        deployments_with_calls(request.user, at=timezone.now()),
        columns=COLUMNS,
        filters=DeploymentFilter(request.GET, user=request.user),
    )
    if table.is_csv_request:
        return table.csv(filename="deployments.csv")
    changing = any(row.state not in SETTLED_STATES for row in table.rows)
    context = {"table": table, "may_deploy": _may_deploy_for_any_team(request)}
    return render_page(
        request, "serving/deployments.html", context, fragment="rows", changing=changing
    )


def _may_deploy_for_any_team(request: AuthenticatedRequest) -> bool:
    return accounts.teams_with_permission(request.user, Permission.DEPLOY).exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentActionBlockers:
    """For each action on the deployment, why it is not possible now; empty where it is."""

    playground: str
    change: str
    stop: str
    start: str
    delete: str


def action_blockers(request: AuthenticatedRequest, found: Deployment) -> DeploymentActionBlockers:
    state = DeploymentState(found.state)
    role = ""
    if not roles_grant(accounts.roles_of(request.user, found.team), Permission.DEPLOY):
        role = _("Your role in team %(team)s is read-only. An administrator can change it.") % {
            "team": found.team
        }
    unavailable = {
        DeploymentState.STOPPING: _("The deployment is stopping. Wait until it is stopped."),
        DeploymentState.STOPPED: _("The deployment is stopped. Start it first."),
    }.get(state, "")
    stop = unavailable if not DEPLOYMENT.allows(state, DeploymentEvent.STOP) else ""
    return DeploymentActionBlockers(
        playground=_playground_blocker(found, unavailable=unavailable),
        change=role or ("" if DEPLOYMENT.allows(state, DeploymentEvent.CHANGE) else unavailable),
        stop=role
        or (_("The deployment is already stopped.") if state is DeploymentState.STOPPED else stop),
        start=role
        or (
            ""
            if DEPLOYMENT.allows(state, DeploymentEvent.START)
            else _("The deployment is not stopped.")
        ),
        delete=role
        or (
            _("The deployment is being deleted. It disappears when its replicas have stopped.")
            if found.deletion_requested_at
            else ""
        ),
    )


def _playground_blocker(found: Deployment, *, unavailable: str) -> str:
    operations = selectors.newest_operations([found]).get(found.pk, ())
    if operations and Operation.CHAT not in operations:
        return _(
            "The playground requires a model that supports chat. This model serves %(operations)s; the "
            "overview of the deployment has example requests."
        ) % {"operations": ", ".join(operations)}
    ready = found.ready_replicas  # type: ignore[attr-defined] # an annotation of the selector
    return "" if ready else unavailable or _("No replica is ready.")


def visible_deployment_or_404(request: AuthenticatedRequest, uid: str) -> Deployment:
    """A deployment that the user may view, or 404."""
    found: Deployment = get_object_or_404(selectors.deployments_visible(request.user), uid=uid)
    return found


@login_required
def deployment(request: AuthenticatedRequest, uid: str) -> HttpResponseBase:
    """``?tab=`` is ``overview``, ``calls``, ``revisions``, ``events`` or ``log``."""
    found = visible_deployment_or_404(request, uid)
    tab = request.GET.get("tab", "")
    context_for = _TAB_CONTEXTS.get(tab, _overview_context)
    tab = tab if tab in _TAB_CONTEXTS else "overview"
    state = DeploymentState(found.state)
    context = {
        "deployment": found,
        "blockers": action_blockers(request, found),
        "tabs": _deployment_tabs(found, current=tab),
        **context_for(request, found),
    }
    template = f"serving/deployment_{tab}.html"
    if tab in ("calls", "log"):
        return render(request, template, context)
    return render_page(
        request, template, context, fragment="live", changing=state not in SETTLED_STATES
    )


def _deployment_tabs(found: Deployment, *, current: str) -> list[PageTab]:
    page = reverse("deployment", args=[found.uid])
    labels = {
        "overview": _("Overview"),
        "calls": _("Requests"),
        "revisions": _("Revisions"),
        "events": _("Events"),
        "log": _("Logs"),
    }
    return [
        PageTab(
            label=label,
            href=page if name == "overview" else f"{page}?tab={name}",
            current=name == current,
        )
        for name, label in labels.items()
    ]


def _overview_context(request: AuthenticatedRequest, found: Deployment) -> dict[str, Any]:
    replicas = list(selectors.live_replicas(found).order_by("-backend_id", "id"))
    locations = replica_locations(replicas)
    rollout = rollout_status(found)
    revision = rollout.revision
    nodes, node_cards = replica_node_counts(revision.chips, revision.cards)
    return {
        "revision": revision,
        "nodes": nodes,
        "node_cards": node_cards,
        "rollout": rollout,
        "undone": _is_undone(rollout),
        "operations": selectors.revision_operations(revision),
        "adapters": list(selectors.revision_adapters(revision)),
        "replicas": [(one, locations.get(one.claim_uid, ())) for one in replicas],
        # All replicas have the same claim shape, so the first pending one stands for the others.
        "claim_uid": next(
            (one.claim_uid for one in replicas[::-1] if one.state == ReplicaState.PENDING), ""
        ),
        "recent": call_statistics(
            deployment_calls(found, user=request.user),
            since=timezone.now() - UsageWindow.HOUR.length,
        ),
    }


def _is_undone(rollout: RolloutStatus) -> bool:
    """Whether a user gave up the newest revision, and not the rollout's own limits."""
    reason = rollout.given_up.failure_reason if rollout.given_up else ""
    return isinstance(reason, Reason) and reason.code == ROLLOUT_UNDONE


def _calls_context(request: AuthenticatedRequest, found: Deployment) -> dict[str, Any]:
    at = timezone.now()
    records = deployment_calls(found, user=request.user)
    last = last_call_at(records)
    requested = request.GET.get("window", "")
    window = UsageWindow(requested) if requested in set(UsageWindow) else usage_window(last, at=at)
    labels = {
        UsageWindow.HOUR: _("last hour"),
        UsageWindow.DAY: _("last 24 hours"),
        UsageWindow.MONTH: _("last 30 days"),
    }
    page = reverse("deployment", args=[found.uid])
    return {
        "last_call": last,
        "window": window,
        "windows": [
            PageTab(label=label, href=f"{page}?tab=calls&window={one}", current=one is window)
            for one, label in labels.items()
        ],
        "statistics": call_statistics(records, since=at - window.length),
    }


FIELD_LABELS = {
    "model_version": lazy("Model"),
    "chips": lazy("Chip"),
    "cards": lazy("Cards per replica"),
    "engine": lazy("Engine"),
    "adapters": lazy("LoRA adapters"),
    "precision": lazy("Precision"),
    "queue_size": lazy("Max pending requests"),
}


def labelled_changes(changes: tuple[RevisionChange, ...]) -> list[dict[str, Any]]:
    """Changed settings with their labels."""
    return [
        {
            "label": FIELD_LABELS.get(change.field, change.field.replace("_", " ")),
            "before": change.before,
            "after": change.after,
        }
        for change in changes
    ]


def _revisions_context(_request: AuthenticatedRequest, found: Deployment) -> dict[str, Any]:
    return {
        "revisions": [
            {
                "revision": row.revision,
                "layout": replica_node_counts(row.revision.chips, row.revision.cards),
                "serves": row.serves,
                "newest": position == 0,
                "changes": labelled_changes(row.changes),
                "rollback_changes": labelled_changes(row.rollback_changes),
            }
            for position, row in enumerate(revision_rows(found))
        ]
    }


def _events_context(_request: AuthenticatedRequest, found: Deployment) -> dict[str, Any]:
    return {"events": deployment_events(found)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLines:
    """Whole lines of a log, and the offset of the next ones."""

    text: str
    offset: int
    complete: bool


def _log_context(request: AuthenticatedRequest, found: Deployment) -> dict[str, Any]:
    choices = list(replicas_with_logs(found))
    requested = request.GET.get("replica", "")
    shown = next((one for one in choices if one.uid == requested), choices[0] if choices else None)
    nodes = replica_nodes(shown) if shown else ()
    process = _requested_process(request, nodes)
    return {
        "choices": choices,
        "shown": shown,
        "nodes": nodes,
        "process": process,
        "lines": _log_lines(shown, process=process, offset=-LOG_TAIL_BYTES) if shown else None,
    }


def _requested_process(request: AuthenticatedRequest, nodes: Sequence[str]) -> int:
    """The index of the process in ``?process=``; 0 if the replica has no such process."""
    requested = request.GET.get("process", "")
    return next((index for index, _ in enumerate(nodes) if str(index) == requested), 0)


def _log_lines(replica: Replica, *, process: int, offset: int) -> LogLines:
    """Whole lines from ``offset``; the stored end of the log of a crash where its file is gone."""
    chunk = selectors.replica_log(replica, process=process, offset=offset, limit=LOG_TAIL_BYTES)
    content, end = chunk.content, chunk.next_offset
    if not chunk.complete:
        whole = content.rfind(b"\n") + 1
        end -= len(content) - whole
        content = content[:whole]
    if not content and offset < 0 and replica.log_tail:
        return LogLines(text=replica.log_tail, offset=end, complete=chunk.complete)
    return LogLines(text=content.decode("utf-8", "replace"), offset=end, complete=chunk.complete)


@login_required
def deployment_log(request: AuthenticatedRequest, uid: str, replica: str) -> HttpResponse:
    """The log of a replica's ``?process=`` from ``?offset=``, as a fragment that polls for more."""
    found = visible_deployment_or_404(request, uid)
    shown = get_object_or_404(
        selectors.replicas_visible(request.user),
        uid=replica,
        backend__revision__deployment=found,
    )
    requested = request.GET.get("offset", "")
    offset = (
        min(int(requested), _MAX_LOG_OFFSET)
        if requested.isdecimal() and len(requested) < 20
        else -LOG_TAIL_BYTES
    )
    process = _requested_process(request, replica_nodes(shown))
    context = {
        "deployment": found,
        "shown": shown,
        "process": process,
        "lines": _log_lines(shown, process=process, offset=offset),
    }
    return render(request, "serving/deployment_log.html#lines", context)


_TAB_CONTEXTS = {
    "calls": _calls_context,
    "revisions": _revisions_context,
    "events": _events_context,
    "log": _log_context,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageSeries:
    name: Promise
    value: Callable[[CallStatistics], float | None]
    dash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageChart:
    series: tuple[UsageSeries, ...]
    label: Promise
    unit: str = ""
    kind: str = "line"


def _seconds(field: str) -> Callable[[CallStatistics], float | None]:
    def value(statistics: CallStatistics) -> float | None:
        milliseconds: float | None = getattr(statistics, field)
        return None if milliseconds is None else round(milliseconds / 1000, 4)

    return value


CHARTS: Mapping[str, UsageChart] = {
    "calls": UsageChart(
        series=(
            UsageSeries(name=lazy("completed"), value=lambda one: one.calls - one.failed),
            UsageSeries(name=lazy("failed"), value=lambda one: one.failed),
        ),
        label=lazy("calls"),
        kind="bar",
    ),
    "tokens": UsageChart(
        series=(
            UsageSeries(name=lazy("input"), value=lambda one: one.input_tokens),
            UsageSeries(name=lazy("output"), value=lambda one: one.output_tokens),
        ),
        label=lazy("tokens"),
        kind="bar",
    ),
    "latency": UsageChart(
        series=(
            UsageSeries(
                name=lazy("time to first token, median"), value=_seconds("median_first_token_ms")
            ),
            UsageSeries(
                name=lazy("time to first token, 95th percentile"),
                value=_seconds("p95_first_token_ms"),
                dash="dash",
            ),
            UsageSeries(
                name=lazy("request duration, median"), value=_seconds("median_duration_ms")
            ),
        ),
        label=lazy("time"),
        unit="s",
    ),
}


@login_required
def deployment_chart(request: AuthenticatedRequest, uid: str, chart: str) -> HttpResponse:
    """The chart's JSON (see ``static/js/charts.js``) over ``?window=``."""
    if (chart_spec := CHARTS.get(chart)) is None:
        raise Http404(f"there is no chart {chart}")
    deployment = visible_deployment_or_404(request, uid)
    requested = request.GET.get("window", "")
    window = UsageWindow(requested) if requested in set(UsageWindow) else UsageWindow.HOUR
    steps = usage_steps(
        deployment_calls(deployment, user=request.user),
        window=window,
        at=timezone.localtime(timezone.now()),
    )
    called = any(step.statistics.calls for step in steps)
    body: dict[str, Any] = {
        "x": {"label": "", "type": "time"},
        "y": {"label": chart_spec.label, "unit": chart_spec.unit},
        "series": [_series_json(series, steps, chart_spec) for series in chart_spec.series]
        if called
        else [],
        "marks": _release_marks(deployment, since=steps[0].at) if called else [],
        "ended": True,
    }
    return JsonResponse(body)


def _release_marks(deployment: Deployment, *, since: datetime) -> list[dict[str, Any]]:
    """Marks where a later revision was created, the oldest first."""
    revisions = deployment.revisions.filter(created_at__gte=since, number__gt=1)
    return [
        {"x": one.created_at.isoformat(), "label": f"r{one.number}", "kind": "release"}
        for one in reversed(revisions[:_MAX_RELEASE_MARKS])
    ]


def _series_json(
    series: UsageSeries, steps: Sequence[UsageInterval], chart_spec: UsageChart
) -> dict[str, Any]:
    return {
        "name": series.name,
        "x": [step.at.isoformat() for step in steps],
        "y": [series.value(step.statistics) for step in steps],
        "kind": chart_spec.kind,
        "dash": series.dash,
    }
