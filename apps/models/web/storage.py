"""The storage page: what uses space, what goes next, and what can be had back."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.accounts.web.requests import AuthenticatedRequest
from apps.models.models import Artifact, StorageRun
from apps.models.selectors import artifacts_visible
from apps.models.selectors import storage as selectors
from apps.models.selectors.storage_things import item_of, things_biggest, things_deleted
from apps.models.services import storage as services
from apps.models.services.storage_retention import retention_plan, retention_preview
from apps.models.web.storage_forms import QuotaForm, RulesForm
from apps.models.web.storage_pictures import bars_of, kind_names, reason_of
from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.resources import GIB
from controlplane.domain.storage.retention import RetentionItemKind, RetentionPlan, RetentionRules
from controlplane.web.pages import Tab, keyset, run_action

#: Lines of a plan that a page shows; its sum counts all.
MOST_SHOWN = 50
#: Stands for all teams without rules of their own.
OTHERS = "others"


@login_required
def storage(request: AuthenticatedRequest) -> HttpResponse:
    """Each part has an address of its own: ``?tab=biggest``."""
    parts: dict[str, Callable[[AuthenticatedRequest], dict[str, Any]]] = {
        "use": _use,
        "biggest": lambda request: {"things": things_biggest(request.user)},
        "deleted": lambda request: {"things": things_deleted(request.user)},
        "retention": _retention,
        "runs": _runs,
    }
    tab = request.GET.get("tab", "use")
    if tab not in parts:
        raise Http404
    context = {"tab": tab, "tabs": _tabs(request, tab), **parts[tab](request)}
    return render(request, f"registry/storage_{tab}.html", context)


def _tabs(request: AuthenticatedRequest, current: str) -> list[Tab]:
    labels = {
        "use": _("What uses space"),
        "biggest": _("The biggest"),
        "deleted": _("Deleted"),
        "retention": _("Retention"),
        "runs": _("History"),
    }
    if not accounts.is_company_administrator(request.user):
        del labels["runs"]
    deleted = selectors.artifacts_deleted(request.user).count()
    return [
        Tab(
            label=label,
            href=f"?tab={name}",
            current=name == current,
            count=deleted if name == "deleted" and deleted else None,
        )
        for name, label in labels.items()
    ]


def _use(request: AuthenticatedRequest) -> dict[str, Any]:
    teams = selectors.storage_by_team(request.user)
    company = accounts.is_company_administrator(request.user)
    return {
        "teams": bars_of(teams),
        "kinds": kind_names(),
        "store": selectors.store_figures() if company else None,
        "may_set_quota": company,
    }


def _retention(request: AuthenticatedRequest) -> dict[str, Any]:
    at = timezone.now()
    teams = list(accounts.teams_of(request.user))
    own, default = selectors.rules_by_team()
    found = _visible(retention_plan(at=at), teams)
    editable = accounts.teams_where(request.user, Permission.MANAGE_TEAM)
    may_edit = frozenset(editable.values_list("pk", flat=True))
    return {
        "rows": [
            {
                "team": team,
                "own": team.uid in own,
                "rules": own.get(team.uid, default),
                "editable": team.pk in may_edit,
            }
            for team in teams
        ],
        "default": default,
        "may_edit_default": accounts.is_company_administrator(request.user),
        **_planned(found),
    }


def _visible(found: RetentionPlan, teams: Iterable[Team]) -> RetentionPlan:
    """The part of the plan that is about those teams."""
    uids = frozenset(team.uid for team in teams)
    return RetentionPlan(
        removals=tuple(one for one in found.removals if one.item.team in uids),
        spared=tuple(item for item in found.spared if item.team in uids),
    )


def _planned(found: RetentionPlan) -> dict[str, Any]:
    shown = [removal for removal in found.removals if removal.item.size][:MOST_SHOWN]
    return {
        "plan": found,
        "removals": [{"removal": removal, "reason": reason_of(removal)} for removal in shown],
        "more": len(found.removals) - len(shown),
        "spared": found.spared[:MOST_SHOWN],
    }


def _runs(request: AuthenticatedRequest) -> dict[str, Any]:
    if not accounts.is_company_administrator(request.user):
        raise Http404
    rows = selectors.runs_visible(request.user)
    return {"page": keyset(rows, before=request.GET.get("before", "")), "kinds": StorageRun.Kind}


@login_required
def quota(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """What a team may store; for administrators of the company."""
    team = get_object_or_404(accounts.teams_of(request.user), uid=uid)
    accounts.require(request.user, Permission.MANAGE_TEAM, team=None)
    use = selectors.storage_use(team)
    initial = {"limit": None if use.limit is None else round(use.limit / GIB, 3)}
    form = QuotaForm(request.POST or None, initial=initial)
    if request.method == "POST" and form.is_valid():
        return run_action(
            request,
            lambda: services.quota_set(team=team, limit=form.limit_bytes(), actor=request.user),
            back=reverse("storage"),
            done=_("The quota of %(team)s was changed.") % {"team": team},
        )
    context = {"form": form, "team": team, "use": use}
    status = 422 if form.is_bound and form.errors else 200
    return render(request, "registry/storage_quota.html", context, status=status)


@login_required
def rules(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The rules of one team, or of all others, with what the next round would then remove."""
    team = None if uid == OTHERS else get_object_or_404(accounts.teams_of(request.user), uid=uid)
    accounts.require(request.user, Permission.MANAGE_TEAM, team=team)
    own, default = selectors.rules_by_team()
    now = default if team is None else own.get(team.uid, default)
    form = RulesForm(request.POST or None, initial=_initial(now))
    valid = form.is_bound and form.is_valid()
    if valid and "check" not in request.GET:
        return run_action(
            request,
            lambda: services.rules_set(team=team, rules=form.rules(), actor=request.user),
            back=reverse("storage") + "?tab=retention",
            done=_("The rules were changed."),
        )
    wanted = form.rules() if valid else now
    # Shown as if they applied: that is what people want to know before they let them.
    wanted = RetentionRules(**{**_initial(wanted), "enabled": True})
    found = retention_preview(team=team, rules=wanted, at=timezone.now())
    context = {
        "form": form,
        "team": team,
        "has_own": team is not None and team.uid in own,
        **_planned(_visible(found, accounts.teams_of(request.user))),
    }
    if "check" in request.GET:
        return render(request, "registry/storage_rules.html#consequence", context)
    status = 422 if form.is_bound else 200
    return render(request, "registry/storage_rules.html", context, status=status)


def _initial(rules: RetentionRules) -> dict[str, Any]:
    return {
        "enabled": rules.enabled,
        "keep_versions": rules.keep_versions,
        "checkpoint_days": rules.checkpoint_days,
        "failed_days": rules.failed_days,
        "log_days": rules.log_days,
    }


@login_required
@require_POST
def rules_forget(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The team has the same rules as all others from now on."""
    team = get_object_or_404(accounts.teams_of(request.user), uid=uid)
    accounts.require(request.user, Permission.MANAGE_TEAM, team=team)
    services.rules_set(team=team, rules=None, actor=request.user)
    return redirect(reverse("storage") + "?tab=retention")


@login_required
@require_POST
def artifact_act(request: AuthenticatedRequest, uid: str, act: str) -> HttpResponse:
    """Delete, have back, remove for good, pin or unpin."""
    artifact = get_object_or_404(artifacts_visible(request.user).select_related("team"), uid=uid)
    accounts.require(request.user, Permission.CONTRIBUTE, team=selectors.owner_of(artifact))
    at, actor = timezone.now(), request.user
    acts: dict[str, tuple[Callable[[Artifact], None], str, str]] = {
        "delete": (
            lambda row: services.artifact_delete(artifact=row, actor=actor, at=at),
            _("It is deleted. You can have it back for 7 days."),
            "deleted",
        ),
        "restore": (
            lambda row: services.artifact_restore(artifact=row, actor=actor, at=at),
            _("It is back."),
            "biggest",
        ),
        "remove": (
            lambda row: services.artifact_remove_now(artifact=row, actor=actor, at=at),
            _("Its bytes are gone for good."),
            "deleted",
        ),
        "pin": (
            lambda row: services.artifact_pin(artifact=row, actor=actor, at=at),
            _("It is pinned: no rule removes it."),
            "biggest",
        ),
        "unpin": (
            lambda row: services.artifact_unpin(artifact=row, actor=actor),
            _("It is no longer pinned."),
            "biggest",
        ),
    }
    if act not in acts:
        raise Http404
    action, done, tab = acts[act]
    return run_action(
        request,
        lambda: action(artifact),
        back=f"{reverse('storage')}?tab={tab}",
        done=done,
        refusals=(services.DeletionRefused,),
    )


@login_required
@require_POST
def item_delete(request: AuthenticatedRequest, kind: str, uid: str) -> HttpResponse:
    """Remove what an attempt left: its working folder, files that became nothing, or its log."""
    if kind not in set(RetentionItemKind) - {RetentionItemKind.VERSION}:
        raise Http404
    item = item_of(RetentionItemKind(kind), uid, user=request.user)
    if item is None:
        raise Http404
    team = get_object_or_404(Team, uid=item.team)
    accounts.require(request.user, Permission.RUN, team=team)
    return run_action(
        request,
        lambda: services.item_delete(item=item, actor=request.user, at=timezone.now()),
        back=reverse("storage") + "?tab=biggest",
        done=_("It is gone."),
        refusals=(services.DeletionRefused,),
    )
