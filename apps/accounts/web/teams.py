"""Teams, and who is in them."""

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
from apps.accounts.web.requests import SignedIn
from apps.accounts.web.words import ROLE_NAMES, role_names, roles_explained
from controlplane.domain.permissions import Permission, Role, allows
from controlplane.web.pages import acted
from controlplane.web.tables import Column, FilterForm, Table


class TeamFilter(FilterForm):
    text = forms.CharField(label=gettext_lazy("Name"), required=False)
    lookups: ClassVar = {"text": "name__icontains"}


COLUMNS = (
    Column(key="name", label=gettext_lazy("Team"), sort="name"),
    Column(key="slug", label=gettext_lazy("Short name"), sort="slug"),
    Column(key="mine", label=gettext_lazy("My roles")),
    Column(key="people", label=gettext_lazy("People"), sort="people", numeric=True),
    Column(key="created_at", label=gettext_lazy("Made"), sort="pk"),
)


@login_required
def teams(request: SignedIn) -> HttpResponseBase:
    """One's own; for an administrator of the company all."""
    # Counted over all members, not over the membership by which one sees the team.
    rows = Team.objects.filter(pk__in=selectors.teams_of(request.user)).annotate(
        people=Count("memberships__user", distinct=True)
    )
    table = Table(request, rows, columns=COLUMNS, filters=TeamFilter, default_sort="name")
    if table.wants_csv:
        return table.csv(filename="teams.csv")
    held: dict[int, list[str]] = {}
    for team, role in request.user.memberships.values_list("team_id", "role"):
        held.setdefault(team, []).append(role)
    context = {
        "table": table,
        "rows": [{"team": team, "roles": role_names(held.get(team.pk, []))} for team in table.rows],
        "may_make": selectors.is_company_administrator(request.user),
    }
    return render(request, "accounts/teams.html", context)


@login_required
def team_new(request: SignedIn) -> HttpResponse:
    selectors.require(request.user, Permission.MANAGE_TEAM, team=None)
    form = NewTeamForm(request.POST or None)
    if form.is_bound and form.is_valid():
        try:
            made = services.team_create(actor=request.user, **form.cleaned_data)
        except services.NameTaken as taken:
            form.add_error(taken.field, str(taken))
        else:
            messages.success(request, _("The team was made. Add its people now."))
            return redirect("team", made.slug)
    return render(request, "accounts/team_new.html", {"form": form})


@login_required
def team(request: SignedIn, slug: str) -> HttpResponse:
    """Its people and their roles; POST adds somebody."""
    row = get_object_or_404(selectors.teams_of(request.user), slug=slug)
    if request.method == "POST":
        # Before the form, which tells whether there is anybody of that name.
        selectors.require(request.user, Permission.MANAGE_TEAM, team=row)
    form = NewMemberForm(request.POST if request.method == "POST" else None)
    if form.is_bound and form.is_valid():
        person, roles = form.cleaned_data["person"], form.cleaned_data["roles"]
        held = {Role(one.role) for one in selectors.memberships_of(row).get(person, [])}
        try:
            services.membership_set(team=row, user=person, roles=roles | held, actor=request.user)
        except services.MembershipRefused as refusal:
            form.add_error(None, str(refusal))
        else:
            messages.success(request, _("%(name)s is in the team now.") % {"name": person.username})
            return redirect("team", row.slug)
    return render(request, "accounts/team.html", _team_context(request, row, form=form))


def _team_context(request: SignedIn, row: Team, **more: Any) -> dict[str, Any]:
    members = selectors.memberships_of(row)
    mine = selectors.roles_of(request.user, row)
    return {
        "team": row,
        "members": [_member(person, held) for person, held in members.items()],
        "manages": allows(mine, Permission.MANAGE_TEAM),
        "administers": selectors.is_company_administrator(request.user),
        "roles": roles_explained(),
        "rename": TeamNameForm(initial={"name": row.name}, auto_id="rename-%s"),
        **more,
    }


def _member(person: User, held: list[Membership]) -> dict[str, Any]:
    given = {one.role: one.source for one in held}
    return {
        "person": person,
        "roles": [
            {"name": ROLE_NAMES[role], "foreign": given[role] == Membership.Source.SIGN_ON}
            for role in Role
            if role in given
        ],
    }


@login_required
def member(request: SignedIn, slug: str, uid: str) -> HttpResponse:
    """Which roles somebody has in the team."""
    row, person, held = _found(request, slug, uid)
    foreign = frozenset(Role(one.role) for one in held if one.source == Membership.Source.SIGN_ON)
    initial = {"roles": [one.role for one in held]}
    form = RolesForm(request.POST if request.method == "POST" else None, initial=initial)
    confirm = False
    if form.is_bound and form.is_valid():
        roles = form.cleaned_data["roles"] | foreign
        confirm = _lowers_self(request, person, row, roles) and "sure" not in request.POST
        if not confirm:
            try:
                services.membership_set(team=row, user=person, roles=roles, actor=request.user)
            except services.MembershipRefused as refusal:
                form.add_error(None, str(refusal))
            else:
                messages.success(
                    request, _("The roles of %(name)s were changed.") % {"name": person.username}
                )
                still = selectors.teams_of(request.user).filter(pk=row.pk).exists()
                return redirect("team", row.slug) if still else redirect("teams")
    context = {
        "team": row,
        "person": person,
        "form": form,
        "confirm": confirm,
        "foreign": role_names(sorted(foreign)),
        "roles": roles_explained(),
    }
    return render(request, "accounts/member.html", context)


def _found(request: SignedIn, slug: str, uid: str) -> tuple[Team, User, list[Membership]]:
    """:raises Http404: if they see no such team, or nobody of that uid is in it.
    :raises PermissionRefused: if they see it and may not manage it.
    """
    row = get_object_or_404(selectors.teams_of(request.user), slug=slug)
    person = get_object_or_404(User.objects.filter(memberships__team=row).distinct(), uid=uid)
    selectors.require(request.user, Permission.MANAGE_TEAM, team=row)
    return row, person, selectors.memberships_of(row).get(person, [])


def _lowers_self(request: SignedIn, person: User, row: Team, roles: frozenset[Role]) -> bool:
    """Whether they are about to take their own right to do this away."""
    return (
        person == request.user
        and not request.user.is_superuser
        and not allows(roles, Permission.MANAGE_TEAM)
    )


@login_required
@require_POST
def member_remove(request: SignedIn, slug: str, uid: str) -> HttpResponse:
    row, person, _held = _found(request, slug, uid)
    out = person == request.user and not request.user.is_superuser
    return acted(
        request,
        lambda: services.membership_set(
            team=row, user=person, roles=frozenset(), actor=request.user
        ),
        back=reverse("teams") if out else reverse("team", args=[row.slug]),
        done=_("%(name)s is no longer in the team.") % {"name": person.username},
        refusals=(services.MembershipRefused,),
    )


@login_required
@require_POST
def team_rename(request: SignedIn, slug: str) -> HttpResponse:
    row = get_object_or_404(selectors.teams_of(request.user), slug=slug)
    selectors.require(request.user, Permission.MANAGE_TEAM, team=None)
    rename = TeamNameForm(request.POST, auto_id="rename-%s")
    if rename.is_valid():
        try:
            services.team_rename(team=row, actor=request.user, **rename.cleaned_data)
        except services.NameTaken as taken:
            rename.add_error(taken.field, str(taken))
        else:
            messages.success(request, _("Renamed."))
            return redirect("team", row.slug)
    context = _team_context(request, row, form=NewMemberForm())
    return render(request, "accounts/team.html", {**context, "rename": rename})
