"""Pages of teams and their members."""

from __future__ import annotations

from typing import Any, ClassVar

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import Count
from django.http import HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views.decorators.http import require_POST

from apps.accounts import selectors, services
from apps.accounts.models import Membership, Team, User
from apps.accounts.web.forms import NewMemberForm, NewTeamForm, RolesForm, TeamNameForm
from apps.accounts.web.http_requests import AuthenticatedRequest
from apps.accounts.web.role_labels import ROLE_LABELS, role_descriptions, role_labels
from controlplane.domain.common.permissions import Permission, TeamRole, roles_grant
from controlplane.web.forms import submitted_data
from controlplane.web.pages import render_form, run_action, save_form
from controlplane.web.tables import FilterForm, ListTable, TableColumn


class TeamFilter(FilterForm):
    text = forms.CharField(label=gettext_lazy("Name"), required=False)
    lookups: ClassVar = {"text": "name__icontains"}


COLUMNS = (
    TableColumn(key="name", label=gettext_lazy("Team"), sort="name"),
    TableColumn(key="slug", label=gettext_lazy("Short name"), sort="slug"),
    TableColumn(key="mine", label=gettext_lazy("My roles")),
    TableColumn(key="people", label=gettext_lazy("People"), sort="people", numeric=True),
    TableColumn(key="created_at", label=gettext_lazy("Created"), sort="pk"),
)


@login_required
def team_list(request: AuthenticatedRequest) -> HttpResponseBase:
    """List the user's own teams; all for a company administrator."""
    # Counted over all members, not over the membership by which one sees the team.
    rows = Team.objects.filter(pk__in=selectors.teams_visible(request.user)).annotate(
        people=Count("memberships__user", distinct=True)
    )
    table = ListTable(request, rows, columns=COLUMNS, filters=TeamFilter, default_sort="name")
    if table.is_csv_request:
        return table.csv(filename="teams.csv")
    current: dict[int, list[str]] = {}
    for team, role in request.user.memberships.values_list("team_id", "role"):
        current.setdefault(team, []).append(role)
    context = {
        "table": table,
        "rows": [
            {"team": team, "roles": role_labels(current.get(team.pk, []))} for team in table.rows
        ],
        "may_make": selectors.is_company_administrator(request.user),
    }
    return render(request, "accounts/teams.html", context)


@login_required
def team_new(request: AuthenticatedRequest) -> HttpResponse:
    selectors.require_permission(request.user, Permission.MANAGE_TEAM, team=None)
    form = NewTeamForm(submitted_data(request))
    if created := save_form(
        form, lambda: services.team_create(actor=request.user, **form.cleaned_data)
    ):
        messages.success(request, _("Team created. Add its members now."))
        return redirect("team", created.slug)
    return render_form(request, "accounts/team_new.html", form)


@login_required
def team_detail(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """Show the members and their roles; POST adds a member."""
    row = get_object_or_404(selectors.teams_visible(request.user), slug=slug)
    if request.method == "POST":
        # Before the form, which reveals whether a user name exists.
        selectors.require_permission(request.user, Permission.MANAGE_TEAM, team=row)
    form = NewMemberForm(submitted_data(request))

    def save() -> User:
        user: User = form.cleaned_data["user"]
        members = selectors.memberships_by_team_member(row)
        current = {TeamRole(one.role) for one in members.get(user, [])}
        roles = form.cleaned_data["roles"] | current
        services.membership_set(team=row, user=user, roles=roles, actor=request.user)
        return user

    if added := save_form(form, save, refusals={services.MembershipRefused: ""}):
        messages.success(request, _("%(name)s was added to the team.") % {"name": added.username})
        return redirect("team", row.slug)
    return render_form(request, "accounts/team.html", form, **_team_context(request, row))


def _team_context(request: AuthenticatedRequest, row: Team, **more: Any) -> dict[str, Any]:
    members = selectors.memberships_by_team_member(row)
    mine = selectors.roles_of(request.user, row)
    return {
        "team": row,
        "members": [_member_row(user, current) for user, current in members.items()],
        "manages": roles_grant(mine, Permission.MANAGE_TEAM),
        "administers": selectors.is_company_administrator(request.user),
        "roles": role_descriptions(),
        "rename": TeamNameForm(initial={"name": row.name}, auto_id="rename-%s"),
        **more,
    }


def _member_row(user: User, current: list[Membership]) -> dict[str, Any]:
    sources = {one.role: one.source for one in current}
    return {
        "person": user,
        "roles": [
            {
                "name": ROLE_LABELS[role],
                "from_provider": sources[role] == Membership.GrantSource.SIGN_ON,
            }
            for role in TeamRole
            if role in sources
        ],
    }


@login_required
def team_member_detail(request: AuthenticatedRequest, slug: str, uid: str) -> HttpResponse:
    """Show and change the roles of a member."""
    row, user, current = _member_or_404(request, slug, uid)
    from_provider = frozenset(
        TeamRole(one.role) for one in current if one.source == Membership.GrantSource.SIGN_ON
    )
    initial = {"roles": [one.role for one in current]}
    form = RolesForm(submitted_data(request), initial=initial)

    def save() -> bool:
        """Return whether the change was made; one that needs a confirmation is not."""
        roles = form.cleaned_data["roles"] | from_provider
        if _removes_own_permission(request, user, row, roles) and "sure" not in request.POST:
            return False
        services.membership_set(team=row, user=user, roles=roles, actor=request.user)
        return True

    changed = save_form(form, save, refusals={services.MembershipRefused: ""})
    if changed:
        messages.success(request, _("Roles of %(name)s changed.") % {"name": user.username})
        still = selectors.teams_visible(request.user).filter(pk=row.pk).exists()
        return redirect("team", row.slug) if still else redirect("teams")
    context = {
        "team": row,
        "person": user,
        "form": form,
        "confirm": changed is False,
        "from_provider": role_labels(sorted(from_provider)),
        "roles": role_descriptions(),
    }
    return render(request, "accounts/member.html", context)


def _member_or_404(
    request: AuthenticatedRequest, slug: str, uid: str
) -> tuple[Team, User, list[Membership]]:
    """:raises Http404: if there is no such visible team or member.
    :raises PermissionRefused: if the user may not manage the team.
    """
    row = get_object_or_404(selectors.teams_visible(request.user), slug=slug)
    user = get_object_or_404(User.objects.filter(memberships__team=row).distinct(), uid=uid)
    selectors.require_permission(request.user, Permission.MANAGE_TEAM, team=row)
    return row, user, selectors.memberships_by_team_member(row).get(user, [])


def _removes_own_permission(
    request: AuthenticatedRequest, user: User, row: Team, roles: frozenset[TeamRole]
) -> bool:
    """Whether they are about to take their own right to do this away."""
    return (
        user == request.user
        and not request.user.is_superuser
        and not roles_grant(roles, Permission.MANAGE_TEAM)
    )


@login_required
@require_POST
def member_remove(request: AuthenticatedRequest, slug: str, uid: str) -> HttpResponse:
    row, user, _current = _member_or_404(request, slug, uid)
    out = user == request.user and not request.user.is_superuser
    return run_action(
        request,
        lambda: services.membership_set(team=row, user=user, roles=frozenset(), actor=request.user),
        back=reverse("teams") if out else reverse("team", args=[row.slug]),
        done=_("%(name)s was removed from the team.") % {"name": user.username},
        refusals=(services.MembershipRefused,),
    )


@login_required
@require_POST
def team_rename(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    row = get_object_or_404(selectors.teams_visible(request.user), slug=slug)
    selectors.require_permission(request.user, Permission.MANAGE_TEAM, team=None)
    rename = TeamNameForm(request.POST, auto_id="rename-%s")

    def save() -> bool:
        services.team_rename(team=row, actor=request.user, **rename.cleaned_data)
        return True

    if save_form(rename, save):
        messages.success(request, _("Team renamed."))
        return redirect("team", row.slug)
    context = _team_context(request, row, form=NewMemberForm())
    return render(request, "accounts/team.html", {**context, "rename": rename})
