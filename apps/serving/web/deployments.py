"""Deployments: the list, and the page of one with what it runs on, its calls, revisions, events and logs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from django import forms
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse, HttpResponseBase, QueryDict
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy

from apps.accounts import selectors as accounts
from apps.accounts.models import Team, User
from apps.accounts.web.requests import SignedIn
from apps.serving import selectors
from apps.serving.models import Deployment, Replica
from apps.serving.selectors.deployments import (
    RevisionRow,
    deployments_listed,
    events_of,
    places_of,
    replicas_with_log,
    revision_rows,
)
from apps.serving.selectors.usage import Window, calls_of, figures_since, last_call_at, window_of
from controlplane.domain.permissions import Permission, allows
from controlplane.domain.serving import (
    DEPLOYMENT,
    DeploymentEvent,
    DeploymentState,
    ReplicaState,
)
from controlplane.web.pages import Tab, show
from controlplane.web.states import look_of
from controlplane.web.tables import Column, FilterForm, Table

SETTLED = (DeploymentState.READY, DeploymentState.STOPPED)
#: Bytes of a log that one look shows.
TAIL = 64 * 1024
_FARTHEST = 1 << 53


class DeploymentFilter(FilterForm):
    text = forms.CharField(label=lazy("Name contains"), max_length=80)
    state = forms.ChoiceField(label=lazy("State"))
    model = forms.CharField(label=lazy("Model"), max_length=80)
    team = forms.ModelChoiceField(
        label=lazy("Team"),
        queryset=Team.objects.none(),
        to_field_name="uid",
        empty_label=lazy("any team"),
    )

    lookups: ClassVar[Mapping[str, str]] = {
        "text": "name__icontains",
        "state": "state",
        "model": "model_name__icontains",
        "team": "team",
    }

    def __init__(self, data: QueryDict | None = None, *, user: User, **kwargs: Any) -> None:
        super().__init__(data, **kwargs)
        words = [(one.value, look_of(one).word) for one in DeploymentState]
        self.choice("state").choices = [("", _("any state")), *words]
        teams = accounts.teams_of(user)
        self.row_choice("team").queryset = teams
        if len(teams[:2]) < 2:
            del self.fields["team"]


COLUMNS = (
    Column(key="name", label=lazy("Name"), sort="name"),
    Column(key="state", label=lazy("State"), sort="state"),
    Column(
        key="model",
        label=lazy("Model"),
        sort="model_name",
        csv=lambda row: f"{row.model_name} v{row.model_number}" if row.model_name else "",
    ),
    Column(
        key="ready",
        label=lazy("Replicas ready"),
        numeric=True,
        csv=lambda row: f"{row.ready_replicas} of {row.replica_count}",
    ),
    Column(key="calls", label=lazy("Calls in 24 h"), sort="calls", numeric=True),
    Column(key="team", label=lazy("Team"), sort="team__name", csv=lambda row: row.team.name),
    Column(
        key="created_at",
        label=lazy("Made"),
        sort="pk",
        csv=lambda row: row.created_at.isoformat(),
    ),
)


@login_required
def deployments(request: SignedIn) -> HttpResponseBase:
    table = Table(
        request,
        deployments_listed(request.user, at=timezone.now()),
        columns=COLUMNS,
        filters=DeploymentFilter(request.GET, user=request.user),
    )
    if table.wants_csv:
        return table.csv(filename="deployments.csv")
    changing = any(row.state not in SETTLED for row in table.rows)
    context = {"table": table, "may_deploy": _may_deploy_somewhere(request)}
    return show(request, "serving/deployments.html", context, fragment="rows", changing=changing)


def _may_deploy_somewhere(request: SignedIn) -> bool:
    return accounts.teams_where(request.user, Permission.DEPLOY).exists()


@dataclass(frozen=True, slots=True, kw_only=True)
class Acts:
    """For each thing that can be done to the deployment, why it cannot be done now; empty where it can."""

    talk: str
    change: str
    stop: str
    start: str
    delete: str


def acts_on(request: SignedIn, found: Deployment) -> Acts:
    state = DeploymentState(found.state)
    role = ""
    if not allows(accounts.roles_of(request.user, found.team), Permission.DEPLOY):
        role = _(
            "Your role in team %(team)s lets you look, not deploy; "
            "an administrator can change that."
        ) % {"team": found.team}
    gone = {
        DeploymentState.STOPPING: _("It is being stopped; wait until it has ended."),
        DeploymentState.STOPPED: _("It is stopped; start it first."),
    }.get(state, "")
    ready = found.ready_replicas  # type: ignore[attr-defined] # an annotation of the selector
    stop = gone if not DEPLOYMENT.allows(state, DeploymentEvent.STOP) else ""
    return Acts(
        talk="" if ready else gone or _("No replica is ready yet."),
        change=role or ("" if DEPLOYMENT.allows(state, DeploymentEvent.CHANGE) else gone),
        stop=role or (_("It is stopped already.") if state is DeploymentState.STOPPED else stop),
        start=role
        or ("" if DEPLOYMENT.allows(state, DeploymentEvent.START) else _("It is not stopped.")),
        delete=role
        or (
            "" if state is DeploymentState.STOPPED else _("Stop it first: callers still reach it.")
        ),
    )


def found_visible(request: SignedIn, uid: str) -> Deployment:
    """The deployment, if they may look at it; else there is none."""
    found: Deployment = get_object_or_404(selectors.deployments_visible(request.user), uid=uid)
    return found


@login_required
def deployment(request: SignedIn, uid: str) -> HttpResponseBase:
    """``?tab=`` is ``overview``, ``calls``, ``revisions``, ``events`` or ``log``."""
    found = found_visible(request, uid)
    tab = request.GET.get("tab", "")
    part = _PARTS.get(tab, _overview)
    tab = tab if tab in _PARTS else "overview"
    state = DeploymentState(found.state)
    context = {
        "deployment": found,
        "acts": acts_on(request, found),
        "tabs": _tabs(found, current=tab),
        **part(request, found),
    }
    template = f"serving/deployment_{tab}.html"
    if tab in ("calls", "log"):
        return render(request, template, context)
    return show(request, template, context, fragment="live", changing=state not in SETTLED)


def _tabs(found: Deployment, *, current: str) -> list[Tab]:
    page = reverse("deployment", args=[found.uid])
    words = {
        "overview": _("Overview"),
        "calls": _("Calls"),
        "revisions": _("Revisions"),
        "events": _("Events"),
        "log": _("Logs"),
    }
    return [
        Tab(
            label=word,
            href=page if name == "overview" else f"{page}?tab={name}",
            current=name == current,
        )
        for name, word in words.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaRow:
    replica: Replica
    #: ``node-1 · 0, 1``; empty while it holds no card.
    place: str


def _overview(request: SignedIn, found: Deployment) -> dict[str, Any]:
    replicas = list(selectors.live_replicas(found).order_by("-backend_id", "id"))
    places = places_of(replicas)
    rows = []
    for replica in replicas:
        cards = places.get(replica.claim_uid, [])
        nodes = dict.fromkeys(card.node for card in cards)
        held = [
            f"{node} · {', '.join(str(card.index) for card in cards if card.node == node)}"
            for node in nodes
        ]
        rows.append(ReplicaRow(replica=replica, place="; ".join(held)))
    return {
        "revision": selectors.newest_revision(found),
        "replicas": rows,
        # Replicas are alike: why the first waits is why the others do.
        "claim_uid": next(
            (one.claim_uid for one in replicas[::-1] if one.state == ReplicaState.PENDING), ""
        ),
        "lately": figures_since(
            calls_of(found, user=request.user), since=timezone.now() - Window.HOUR.length
        ),
    }


def _calls(request: SignedIn, found: Deployment) -> dict[str, Any]:
    at = timezone.now()
    records = calls_of(found, user=request.user)
    last = last_call_at(records)
    asked = request.GET.get("window", "")
    window = Window(asked) if asked in set(Window) else window_of(last, at=at)
    words = {
        Window.HOUR: _("last hour"),
        Window.DAY: _("last 24 hours"),
        Window.MONTH: _("last 30 days"),
    }
    page = reverse("deployment", args=[found.uid])
    return {
        "last_call": last,
        "window": window,
        "windows": [
            Tab(label=word, href=f"{page}?tab=calls&window={one}", current=one is window)
            for one, word in words.items()
        ],
        "figures": figures_since(records, since=at - window.length),
    }


FIELD_WORDS = {
    "model_version": lazy("Model"),
    "chips": lazy("Chip"),
    "cards": lazy("Cards of one replica"),
    "engine": lazy("Engine"),
    "precision": lazy("Precision"),
    "queue_size": lazy("Requests that may wait"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A change in words."""

    label: Any
    before: Any
    after: Any


def differences(changes: tuple[Any, ...]) -> list[Difference]:
    return [
        Difference(
            label=FIELD_WORDS.get(change.field, change.field.replace("_", " ")),
            before=change.before,
            after=change.after,
        )
        for change in changes
    ]


def _revisions(_request: SignedIn, found: Deployment) -> dict[str, Any]:
    rows: list[RevisionRow] = list(revision_rows(found))
    return {
        "revisions": [
            {
                "revision": row.revision,
                "serves": row.serves,
                "newest": place == 0,
                "changes": differences(row.changes),
                "back": differences(row.back),
            }
            for place, row in enumerate(rows)
        ]
    }


def _events(_request: SignedIn, found: Deployment) -> dict[str, Any]:
    return {"events": events_of(found)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lines:
    """Whole lines of a log, and where to go on."""

    text: str
    offset: int
    complete: bool


def _log(request: SignedIn, found: Deployment) -> dict[str, Any]:
    choices = list(replicas_with_log(found))
    asked = request.GET.get("replica", "")
    shown = next((one for one in choices if one.uid == asked), choices[0] if choices else None)
    return {
        "choices": choices,
        "shown": shown,
        "lines": _lines_of(shown, offset=-TAIL) if shown else None,
    }


def _lines_of(replica: Replica, *, offset: int) -> Lines:
    """What is not a whole line yet is left for the next look; the crash's last lines where no file is left."""
    chunk = selectors.replica_log(replica, offset=offset, limit=TAIL)
    content, end = chunk.content, chunk.next_offset
    if not chunk.complete:
        whole = content.rfind(b"\n") + 1
        end -= len(content) - whole
        content = content[:whole]
    if not content and offset < 0 and replica.log_tail:
        return Lines(text=replica.log_tail, offset=end, complete=chunk.complete)
    return Lines(text=content.decode("utf-8", "replace"), offset=end, complete=chunk.complete)


@login_required
def deployment_log(request: SignedIn, uid: str, replica: str) -> HttpResponse:
    """What a replica has written since ``?offset=``, as a fragment that asks on."""
    found = found_visible(request, uid)
    shown = get_object_or_404(
        selectors.replicas_visible(request.user),
        uid=replica,
        backend__revision__deployment=found,
    )
    asked = request.GET.get("offset", "")
    offset = min(int(asked), _FARTHEST) if asked.isdecimal() and len(asked) < 20 else -TAIL
    context = {
        "deployment": found,
        "shown": shown,
        "lines": _lines_of(shown, offset=offset),
    }
    return render(request, "serving/deployment_log.html#lines", context)


_PARTS = {"calls": _calls, "revisions": _revisions, "events": _events, "log": _log}
