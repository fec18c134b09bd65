"""Pages of the gateway's keys."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Q, QuerySet
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.models import User
from apps.accounts.web.forms import token_lifetime_from_choice
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.serving import selectors
from apps.serving.models import ApiKey
from apps.serving.selectors.gateways import (
    ApiKeyState,
    api_key_state,
    api_key_usage_by_route,
    api_keys_with_usage,
    playground_keys_filter,
)
from apps.serving.services import gateways as services
from apps.serving.web.forms import ApiKeyForm, ApiKeyRotationForm
from controlplane.domain.common.permissions import Permission, roles_grant
from controlplane.web.forms import submitted_data
from controlplane.web.pages import render_form, render_page
from controlplane.web.reasons import render_reason
from controlplane.web.tables import FilterForm, ListTable, TableColumn

_ENDED, _ALL = "ended", "all"


class ApiKeyFilter(FilterForm):
    """Filters of the list of keys; by default it shows valid ones."""

    text = forms.CharField(label=lazy("Name or prefix of the key"), max_length=80)
    state = forms.ChoiceField(
        label=lazy("State"),
        choices=[
            ("", lazy("active")),
            (_ENDED, lazy("expired or revoked")),
            (_ALL, lazy("all")),
        ],
    )
    route = forms.ChoiceField(label=lazy("Deployments"))
    mine = forms.BooleanField(label=lazy("mine only"))
    playground = forms.BooleanField(label=lazy("include keys of the playground"))

    lookups: ClassVar[Mapping[str, str]] = {}

    def __init__(self, *args: Any, user: User, at: datetime, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._user, self._at = user, at
        rows = selectors.deployments_visible(user).order_by("name").values_list("name", "team")
        self._teams = dict(rows)
        self.choice("route").choices = [
            ("", _("any deployment")),
            *((name, name) for name in self._teams),
        ]

    def apply(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        state, works = self.chosen("state"), selectors.valid_api_keys_filter(at=self._at)
        if state != _ALL:
            rows = rows.exclude(works) if state == _ENDED else rows.filter(works)
        if text := self.chosen("text"):
            rows = rows.filter(Q(name__icontains=text) | Q(prefix__startswith=text))
        if route := self.chosen("route"):
            whole_team = Q(routes__isnull=True) & Q(team=self._teams[route])
            rows = rows.filter(whole_team | Q(routes__contains=[route]))
        if self.chosen("mine"):
            rows = rows.filter(created_by=self._user)
        return rows if self.chosen("playground") else rows.exclude(playground_keys_filter())


def _recent_usage(name: str) -> Any:
    return lambda key: (key.recent_usage or {}).get(name, 0)


COLUMNS = (
    TableColumn(key="name", label=lazy("Name"), sort="name"),
    TableColumn(
        key="state",
        label=lazy("State"),
        csv=lambda key: api_key_state(key, at=timezone.now()).value,
    ),
    TableColumn(
        key="may_call",
        label=lazy("Deployments"),
        csv=lambda key: " ".join(key.routes or ()),
    ),
    TableColumn(key="team", label=lazy("Team"), sort="team__name"),
    TableColumn(
        key="calls",
        label=lazy("Requests (24 h / 30 d)"),
        numeric=True,
        csv=_recent_usage("calls_month"),
    ),
    TableColumn(
        key="tokens",
        label=lazy("Tokens (24 h / 30 d)"),
        numeric=True,
        csv=_recent_usage("tokens_month"),
    ),
    TableColumn(key="last_used_at", label=lazy("Last used"), sort="last_used_at"),
    TableColumn(key="expires_at", label=lazy("Expires"), sort="expires_at"),
    TableColumn(key="acts", label=""),
)


@login_required
def api_key_list(request: AuthenticatedRequest) -> HttpResponseBase:
    """The list of keys with their recent usage."""
    now = timezone.now()
    table = ListTable(
        request,
        api_keys_with_usage(request.user, at=now),
        columns=COLUMNS,
        filters=ApiKeyFilter(request.GET, user=request.user, at=now),
    )
    if table.is_csv_request:
        return table.csv(filename="keys.csv")
    roles_by_team = accounts.roles_by_team(request.user)
    manageable_teams = {
        team for team, roles in roles_by_team.items() if roles_grant(roles, Permission.MANAGE_KEYS)
    }
    rows = [
        (key, api_key_state(key, at=now), key.team_id in manageable_teams) for key in table.rows
    ]
    context = {
        "table": table,
        "rows": rows,
        "denied_reason": "" if manageable_teams else _read_only_role_message(),
    }
    return render(request, "serving/keys.html", context)


def _read_only_role_message() -> str:
    return _("Your roles are read-only. A team administrator can change them.")


def _find_key(request: AuthenticatedRequest, uid: str, *, to_change: bool) -> ApiKey:
    """The key, or 404.

    :raises PermissionRefused: if ``to_change`` and the user may only view it.
    """
    rows = api_keys_with_usage(request.user, at=timezone.now())
    key: ApiKey = get_object_or_404(rows, uid=uid)
    if to_change:
        accounts.require_permission(request.user, Permission.MANAGE_KEYS, team=key.team)
    return key


@login_required
def api_key_detail(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The page of a key: its permissions, its usage, and actions to revoke or rotate it."""
    now = timezone.now()
    found = _find_key(request, uid, to_change=False)
    state = api_key_state(found, at=now)
    may = roles_grant(accounts.roles_of(request.user, found.team), Permission.MANAGE_KEYS)
    context = {
        "key": found,
        "state": state,
        "may_change": may and state is ApiKeyState.VALID,
        "denied_reason": "" if may else _read_only_role_message(),
        "routes": api_key_usage_by_route(found, at=now),
        "form": ApiKeyRotationForm(),
    }
    return render(request, "serving/key.html", context)


@login_required
@never_cache
def api_key_new_view(request: AuthenticatedRequest) -> HttpResponse:
    """The form of a new key; only the response to it contains the key's text."""
    form = ApiKeyForm(submitted_data(request), user=request.user)
    if not (form.is_bound and form.is_valid()):
        may = accounts.teams_with_permission(request.user, Permission.MANAGE_KEYS).exists()
        denied_reason = "" if may else _read_only_role_message()
        return render_form(request, "serving/key_new.html", form, denied_reason=denied_reason)
    values = {**form.cleaned_data, "routes": form.cleaned_data["routes"] or None}
    accounts.require_permission(request.user, Permission.MANAGE_KEYS, team=values["team"])
    now, lifetime = timezone.now(), token_lifetime_from_choice(values.pop("expires"))
    new_key, text = services.api_key_create(
        actor=request.user, at=now, expires_at=now + lifetime if lifetime else None, **values
    )
    return _show_new_key(request, new_key, text, replaced=None)


@login_required
@never_cache
@require_POST
def api_key_rotate_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Show the new key once, or redirect to the old one with the reason of the refusal."""
    old = _find_key(request, uid, to_change=True)
    form = ApiKeyRotationForm(request.POST)
    if not form.is_valid():
        messages.error(request, str(form.errors["overlap"][0]))
        return redirect("key", uid=old.uid)
    overlap = timedelta(hours=form.cleaned_data["overlap"])
    try:
        new_key, text = services.api_key_rotate(
            key=old, actor=request.user, at=timezone.now(), overlap=overlap
        )
    except services.ApiKeyRefused as refusal:
        messages.error(request, render_reason(str(refusal)))
        return redirect("key", uid=old.uid)
    old.refresh_from_db()
    return _show_new_key(request, new_key, text, replaced=old)


def _show_new_key(
    request: AuthenticatedRequest, new_key: ApiKey, text: str, *, replaced: ApiKey | None
) -> HttpResponse:
    newest = selectors.latest_gateway_snapshot()
    context = {
        "key": new_key,
        "text": text,
        "replaced": replaced,
        **_propagation_context(newest.version if newest else 0),
    }
    return render(request, "serving/key_created.html", context)


def _propagation_context(version: int) -> dict[str, Any]:
    propagation = selectors.snapshot_propagation(version=version, at=timezone.now())
    return {"version": version, "propagation": propagation, "changing": not propagation.all}


@login_required
def api_key_propagation(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Whether the gateways have the key; ``?version=`` is the first snapshot that contains it."""
    found = _find_key(request, uid, to_change=False)
    requested = request.GET.get("version", "")
    context = {
        "key": found,
        **_propagation_context(
            int(requested) if requested.isdecimal() and len(requested) < 19 else 0
        ),
    }
    changing = bool(context["changing"])
    return render_page(
        request,
        "serving/key_propagation.html",
        context,
        fragment="propagation",
        changing=changing,
    )


@login_required
@require_POST
def api_key_revoke_view(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    found = _find_key(request, uid, to_change=True)
    services.api_key_revoke(key=found, actor=request.user, at=timezone.now())
    messages.success(request, _("API key %(name)s was revoked.") % {"name": found.name})
    return redirect("keys")
