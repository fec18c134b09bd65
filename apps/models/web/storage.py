"""The storage page: usage, largest items, retention, deleted items and history."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.models.models import StorageRunKind
from apps.models.selectors import artifacts_visible
from apps.models.selectors import storage as selectors
from apps.models.selectors.storage import (
    TeamStorage,
    attempt_storage_item,
    deleted_items,
    largest_stored_items,
)
from apps.models.services import artifact_storage as services
from apps.models.services.storage_cleanup import retention_plan, retention_preview
from apps.models.web.forms import RetentionRulesForm, StorageQuotaForm
from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.resources import GIB
from controlplane.domain.storage.team_storage import (
    RetentionItemKind,
    RetentionPlan,
    RetentionRemoval,
    RetentionRuleCode,
    StorageKind,
)
from controlplane.web.forms import submitted_data
from controlplane.web.pages import PageTab, keyset_page, render_form, run_action

#: Removals of a plan that a page shows; its total counts all.
MAX_SHOWN = 50


@login_required
def storage_page(request: AuthenticatedRequest) -> HttpResponse:
    """``?tab=`` selects the part."""
    parts: dict[str, Callable[[AuthenticatedRequest], dict[str, Any]]] = {
        "use": _usage_context,
        "biggest": lambda request: {"items": largest_stored_items(request.user)},
        "deleted": lambda request: {"items": deleted_items(request.user)},
        "retention": _retention_context,
        "runs": _runs_context,
    }
    tab = request.GET.get("tab", "use")
    if tab not in parts:
        raise Http404
    context = {"tab": tab, "tabs": _storage_tabs(request, tab), **parts[tab](request)}
    return render(request, f"registry/storage_{tab}.html", context)


def _storage_tabs(request: AuthenticatedRequest, current: str) -> list[PageTab]:
    labels = {
        "use": _("Usage"),
        "biggest": _("Largest stored objects"),
        "deleted": _("Deleted"),
        "retention": _("Retention"),
        "runs": _("History"),
    }
    if not accounts.is_company_administrator(request.user):
        del labels["runs"]
    deleted = selectors.artifacts_deleted(request.user).count()
    return [
        PageTab(
            label=label,
            href=f"?tab={name}",
            current=name == current,
            count=deleted if name == "deleted" and deleted else None,
        )
        for name, label in labels.items()
    ]


def _usage_context(request: AuthenticatedRequest) -> dict[str, Any]:
    teams = selectors.visible_team_storage(request.user)
    company = accounts.is_company_administrator(request.user)
    return {
        "teams": storage_bars(teams),
        "kinds": kind_names(),
        "store": selectors.store_statistics() if company else None,
        "may_set_quota": company,
    }


def _retention_context(request: AuthenticatedRequest) -> dict[str, Any]:
    at = timezone.now()
    teams = list(accounts.teams_visible(request.user))
    own, default = selectors.retention_rules_by_team()
    found = _plan_of_teams(retention_plan(at=at), teams)
    editable = accounts.teams_with_permission(request.user, Permission.MANAGE_TEAM)
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
        **_plan_context(found),
    }


def _plan_of_teams(found: RetentionPlan, teams: Iterable[Team]) -> RetentionPlan:
    """The part of the plan that concerns those teams."""
    uids = frozenset(team.uid for team in teams)
    return found.restricted(lambda item: item.team in uids)


def _plan_context(found: RetentionPlan) -> dict[str, Any]:
    shown = [removal for removal in found.removals if removal.item.size][:MAX_SHOWN]
    return {
        "plan": found,
        "removals": [{"removal": removal, "reason": removal_reason(removal)} for removal in shown],
        "more": len(found.removals) - len(shown),
        "spared": found.spared[:MAX_SHOWN],
    }


def _runs_context(request: AuthenticatedRequest) -> dict[str, Any]:
    if not accounts.is_company_administrator(request.user):
        raise Http404
    rows = selectors.storage_runs_visible(request.user)
    return {
        "page": keyset_page(rows, before=request.GET.get("before", "")),
        "kinds": StorageRunKind,
    }


@login_required
def storage_quota_page(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """The quota of a team; for company administrators."""
    team = get_object_or_404(accounts.teams_visible(request.user), uid=uid)
    accounts.require_permission(request.user, Permission.MANAGE_TEAM, team=None)
    use = selectors.storage_usage_of_team(team)
    initial = {"limit": None if use.limit is None else round(use.limit / GIB, 3)}
    form = StorageQuotaForm(submitted_data(request), initial=initial)
    if form.is_bound and form.is_valid():
        services.storage_quota_set(team=team, limit=form.limit_bytes(), actor=request.user)
        messages.success(request, _("The storage quota of %(team)s was changed.") % {"team": team})
        return redirect("storage")
    return render_form(request, "registry/storage_quota.html", form, team=team, use=use)


@login_required
def retention_rules_page(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Retention rules of one team, or the default rules, with a preview of the next run."""
    team = (
        None
        if uid == selectors.OTHER_TEAMS
        else get_object_or_404(accounts.teams_visible(request.user), uid=uid)
    )
    accounts.require_permission(request.user, Permission.MANAGE_TEAM, team=team)
    own, default = selectors.retention_rules_by_team()
    now = default if team is None else own.get(team.uid, default)
    form = RetentionRulesForm(request.POST or None, initial=asdict(now))
    valid = form.is_bound and form.is_valid()
    if valid and "check" not in request.GET:
        services.retention_rules_set(team=team, rules=form.rules(), actor=request.user)
        messages.success(request, _("The retention rules were changed."))
        return redirect(reverse("storage") + "?tab=retention")
    wanted = form.rules() if valid else now
    # The preview shows the rules as enabled, even if they are not yet.
    wanted = replace(wanted, enabled=True)
    found = retention_preview(team=team, rules=wanted, at=timezone.now())
    context = {
        "form": form,
        "team": team,
        "has_own": team is not None and team.uid in own,
        **_plan_context(_plan_of_teams(found, accounts.teams_visible(request.user))),
    }
    if "check" in request.GET:
        return render(request, "registry/storage_rules.html#consequence", context)
    return render_form(request, "registry/storage_rules.html", **context)


@login_required
@require_POST
def rules_reset(request: AuthenticatedRequest, uid: str) -> HttpResponse:
    """Reset the team to the default rules."""
    team = get_object_or_404(accounts.teams_visible(request.user), uid=uid)
    accounts.require_permission(request.user, Permission.MANAGE_TEAM, team=team)
    services.retention_rules_set(team=team, rules=None, actor=request.user)
    return redirect(reverse("storage") + "?tab=retention")


@login_required
@require_POST
def artifact_action(request: AuthenticatedRequest, uid: str, action: str) -> HttpResponse:
    """Delete, restore, remove, pin or unpin an artifact."""
    artifact = get_object_or_404(artifacts_visible(request.user).select_related("team"), uid=uid)
    accounts.require_permission(
        request.user, Permission.CONTRIBUTE, team=selectors.artifact_owner(artifact)
    )
    actions: dict[str, tuple[Callable[..., None], str, str]] = {
        "delete": (
            services.artifact_delete,
            _("Object deleted. It can be restored for 7 days."),
            "deleted",
        ),
        "restore": (services.artifact_restore, _("Object restored."), "biggest"),
        "remove": (services.artifact_remove_now, _("Object deleted permanently."), "deleted"),
        "pin": (
            services.artifact_pin,
            _("Object pinned. Retention rules do not remove it."),
            "biggest",
        ),
        "unpin": (services.artifact_unpin, _("Object unpinned."), "biggest"),
    }
    if action not in actions:
        raise Http404
    apply, done, tab = actions[action]
    options = {} if action == "unpin" else {"at": timezone.now()}
    return run_action(
        request,
        lambda: apply(artifact=artifact, actor=request.user, **options),
        back=f"{reverse('storage')}?tab={tab}",
        done=done,
        refusals=(services.DeletionRefused,),
    )


@login_required
@require_POST
def attempt_item_delete(request: AuthenticatedRequest, kind: str, uid: str) -> HttpResponse:
    """Remove an item of an attempt: its working folder, uploads or log."""
    if kind not in set(RetentionItemKind) - {RetentionItemKind.VERSION}:
        raise Http404
    item = attempt_storage_item(RetentionItemKind(kind), uid, user=request.user)
    if item is None:
        raise Http404
    team = get_object_or_404(Team, uid=item.team)
    accounts.require_permission(request.user, Permission.RUN, team=team)
    return run_action(
        request,
        lambda: services.attempt_item_delete(item=item, actor=request.user, at=timezone.now()),
        back=reverse("storage") + "?tab=biggest",
        done=_("Object removed."),
        refusals=(services.DeletionRefused,),
    )


#: Width of a bar in drawing units.
WIDTH = 1000.0


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageBarSegment:
    kind: StorageKind
    size: int
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageBar:
    """Usage of one team relative to its quota, or to the largest team if it has none."""

    row: TeamStorage
    segments: tuple[StorageBarSegment, ...]
    #: Percent of the quota; None without a quota.
    percent: float | None


def kind_names() -> dict[str, str]:
    return {
        StorageKind.DATASETS: _("Datasets"),
        StorageKind.VERSIONS: _("Model versions"),
        StorageKind.CHECKPOINTS: _("Checkpoints"),
        StorageKind.JOB_FILES: _("Job files"),
        StorageKind.LOGS: _("Logs"),
    }


def storage_bars(rows: Sequence[TeamStorage]) -> list[StorageBar]:
    fullest = max((row.use.used for row in rows), default=0)
    return [_storage_bar(row, fullest=fullest) for row in rows]


def _storage_bar(row: TeamStorage, *, fullest: int) -> StorageBar:
    whole = max(row.use.limit or 0, row.use.used) if row.use.limit is not None else fullest
    segments, x = [], 0.0
    for kind, size in row.use.by_kind.items():
        width = WIDTH * size / whole if whole else 0.0
        if width:
            segments.append(
                StorageBarSegment(kind=kind, size=size, x=round(x, 2), width=round(width, 2))
            )
        x += width
    return StorageBar(
        row=row,
        segments=tuple(segments),
        percent=None if row.use.limit is None else 100 * row.use.share,
    )


def removal_reason(removal: RetentionRemoval) -> str:
    """The retention rule in the user's language."""
    limit = removal.limit
    match removal.rule:
        case RetentionRuleCode.NEWEST_VERSIONS:
            return ngettext(
                "only the latest version of each model is kept",
                "only the latest %(kept)d versions of each model are kept",
                limit,
            ) % {"kept": limit}
        case RetentionRuleCode.CHECKPOINT_DAYS:
            return _("checkpoints are kept for %(kept)d days after their run") % {"kept": limit}
        case RetentionRuleCode.FAILED_DAYS:
            return _("files of failed runs are kept for %(kept)d days") % {"kept": limit}
        case RetentionRuleCode.LOG_DAYS:
            return _("logs are kept for %(kept)d days after their run") % {"kept": limit}
        case RetentionRuleCode.UNLISTED:
            return _("the job has ended and the files are not referenced")
