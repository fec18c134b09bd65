"""Permissions of users, and the teams, tokens, users and audit entries that they can see."""

from __future__ import annotations

from datetime import datetime

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import Prefetch, Q, QuerySet

from apps.accounts.models import (
    AuditEntry,
    CompanyRoleBinding,
    Membership,
    PersonalToken,
    Team,
    User,
)
from controlplane.domain.common.permissions import (
    COMPANY_GRANTS,
    GRANTS,
    CompanyRole,
    Permission,
    TeamRole,
    roles_grant,
)
from controlplane.domain.common.reasons import Reason, ReasonedError

RequestUser = User | AnonymousUser

#: Team roles of this version: rows that an earlier one still writes during an upgrade grant nothing.
_ROLES = [role.value for role in TeamRole]


class PermissionRefused(ReasonedError, PermissionDenied):
    """They may see it, but not do this to it."""


def is_company_administrator(user: object) -> bool:
    """Whether they may do everything; not while a token confines them to one team."""
    return (
        isinstance(user, User) and user.is_active and user.is_superuser and user.confined_to is None
    )


def company_roles_of(user: RequestUser) -> frozenset[CompanyRole]:
    """Their company roles; none while a token confines them to one team."""
    if not isinstance(user, User) or not user.is_active or user.confined_to is not None:
        return frozenset()
    current = user.company_role_bindings.values_list("role", flat=True)
    return frozenset(CompanyRole(role) for role in current)


def has_company_permission(user: RequestUser, permission: Permission) -> bool:
    """Whether they have the permission for what belongs to every team."""
    return is_company_administrator(user) or any(
        permission in COMPANY_GRANTS[role] for role in company_roles_of(user)
    )


def users_with_permission(permission: Permission) -> QuerySet[User]:
    """Return active users with the permission for objects that belong to every team."""
    roles = [role.value for role in CompanyRole if permission in COMPANY_GRANTS[role]]
    bound = CompanyRoleBinding.objects.filter(role__in=roles).values("user_id")
    return User.objects.filter(Q(pk__in=bound) | Q(is_superuser=True), is_active=True)


def teams_visible(user: RequestUser) -> QuerySet[Team]:
    """Return the teams whose objects the user can see; all for a company administrator."""
    if not isinstance(user, User):
        return Team.objects.none()
    teams = Team.objects.all()
    if user.confined_to is not None:
        teams = teams.filter(pk=user.confined_to.pk)
    if user.is_superuser:
        return teams
    return teams.filter(memberships__user=user).distinct()


def roles_of(user: RequestUser, team: Team) -> frozenset[TeamRole]:
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    if user.confined_to is not None and user.confined_to != team:
        return frozenset()
    if user.is_superuser:
        return frozenset({TeamRole.ADMINISTRATOR})
    current = user.memberships.filter(team=team, role__in=_ROLES).values_list("role", flat=True)
    return frozenset(TeamRole(role) for role in current)


def roles_by_team(user: RequestUser) -> dict[int, frozenset[TeamRole]]:
    """Their roles by the team's primary key, in one query."""
    if not isinstance(user, User) or not user.is_active:
        return {}
    if user.is_superuser:
        keys = teams_visible(user).values_list("pk", flat=True)
        return dict.fromkeys(keys, frozenset({TeamRole.ADMINISTRATOR}))
    memberships = user.memberships.filter(role__in=_ROLES)
    if user.confined_to is not None:
        memberships = memberships.filter(team=user.confined_to)
    current: dict[int, set[TeamRole]] = {}
    for team, role in memberships.values_list("team_id", "role"):
        current.setdefault(team, set()).add(TeamRole(role))
    return {team: frozenset(roles) for team, roles in current.items()}


def personal_tokens_visible(user: RequestUser) -> QuerySet[PersonalToken]:
    """Their own personal tokens, revoked ones included; of the team alone to which one confines them."""
    if not isinstance(user, User):
        return PersonalToken.objects.none()
    tokens = PersonalToken.objects.filter(user=user).select_related("team")
    return tokens if user.confined_to is None else tokens.filter(team=user.confined_to)


def valid_personal_tokens(*, user: User, at: datetime) -> QuerySet[PersonalToken]:
    """All of theirs that work, whatever a token confines them to: names are theirs, not a team's."""
    unexpired = Q(expires_at=None) | Q(expires_at__gt=at)
    return PersonalToken.objects.filter(unexpired, user=user, revoked_at=None)


def team_roles_granting_permission(permission: Permission) -> list[str]:
    """The roles that grant it, as rows name them."""
    return [role.value for role in TeamRole if permission in GRANTS[role]]


def teams_with_permission(user: RequestUser, permission: Permission) -> QuerySet[Team]:
    """Teams in which they have that permission."""
    teams = teams_visible(user)
    if not isinstance(user, User) or user.is_superuser:
        return teams
    # One join, so that user and role are of the same membership.
    granted = Membership.objects.filter(
        user=user, role__in=team_roles_granting_permission(permission)
    )
    return teams.filter(pk__in=granted.values("team_id"))


def memberships_by_team_member(team: Team) -> dict[User, list[Membership]]:
    """Who is in the team, by name, each with what gives them their roles."""
    rows = Membership.objects.filter(team=team, role__in=_ROLES).select_related("user")
    members: dict[User, list[Membership]] = {}
    for row in rows.order_by("user__username", "role"):
        members.setdefault(row.user, []).append(row)
    return members


def team_members(teams: QuerySet[Team]) -> QuerySet[User]:
    """Return the members of one team by name; ``memberships_in_team`` is what gives them their roles."""
    rows = Membership.objects.filter(team__in=teams, role__in=_ROLES).order_by("role")
    members = User.objects.filter(pk__in=rows.order_by().values("user"))
    prefetched = Prefetch("memberships", queryset=rows, to_attr="memberships_in_team")
    return members.prefetch_related(prefetched).order_by("username")


def users_visible(user: RequestUser) -> QuerySet[User]:
    """Return all users for a company administrator; none otherwise."""
    return User.objects.all() if is_company_administrator(user) else User.objects.none()


def can_view_audit_log(user: RequestUser) -> bool:
    """Whether there is any audit trail for them."""
    return (
        is_company_administrator(user)
        or teams_with_permission(user, Permission.MANAGE_TEAM).exists()
    )


def audit_entries_visible(user: RequestUser) -> QuerySet[AuditEntry]:
    """What happened in teams that they administer; everything for an administrator of the company."""
    entries = AuditEntry.objects.select_related("team")
    if is_company_administrator(user):
        return entries
    return entries.filter(team__in=teams_with_permission(user, Permission.MANAGE_TEAM))


def teams_with_visible_audit_log(user: RequestUser) -> QuerySet[Team]:
    """Return the teams whose audit log the user can see."""
    return teams_with_permission(user, Permission.MANAGE_TEAM)


def require_permission(user: RequestUser, permission: Permission, *, team: Team | None) -> None:
    """Require the permission in the team that owns the object; None for objects of every team.

    :raises PermissionRefused: naming the missing permission and who can grant it.
    """
    if team is None:
        if not has_company_permission(user, permission):
            raise PermissionRefused(_company_permission_refusal_reason(user, permission))
        return
    roles = roles_of(user, team)
    if not roles_grant(roles, permission):
        current = ", ".join(sorted(roles)) or Reason("permission.team.no_role", "none")
        raise PermissionRefused(
            "permission.team.missing",
            "this requires the permission to {permission} in team {team}; your role "
            "there: {role}. An administrator of the company can change that.",
            permission=permission.value.replace("_", " "),
            team=team.name,
            role=current,
        )


def _company_permission_refusal_reason(user: RequestUser, permission: Permission) -> str:
    if isinstance(user, User) and user.confined_to is not None:
        return Reason(
            "permission.token.confined_to_team",
            "this object belongs to every team, and the token is confined to team "
            "{team}; use a token without a team",
            team=user.confined_to.name,
        )
    roles = [role for role in CompanyRole if permission in COMPANY_GRANTS[role]]
    if not roles:
        return Reason(
            "permission.company.administrator_required",
            "this object belongs to every team; only an administrator of the company can change it",
        )
    return Reason(
        "permission.company.role_missing",
        "this object belongs to every team and requires the company role "
        "{roles}; an administrator of the company can grant it under Teams, "
        "People",
        roles=" or ".join(roles),
    )


def default_team(user: RequestUser) -> Team | None:
    """The team that forms preselect."""
    return teams_visible(user).order_by("id").first()
