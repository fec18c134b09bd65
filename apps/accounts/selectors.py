"""Questions about people: who may do what, whose things are these."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.db.models import QuerySet

from apps.accounts.models import Team, User
from controlplane.domain.permissions import Permission, Role, allows

Person = User | AnonymousUser


class PermissionRefused(Exception):
    """They may see it, but not do this to it."""


def teams_of(user: Person) -> QuerySet[Team]:
    """Teams whose things they may see; all of them for an administrator of the company."""
    if not isinstance(user, User):
        return Team.objects.none()
    if user.is_superuser:
        return Team.objects.all()
    return Team.objects.filter(memberships__user=user).distinct()


def roles_of(user: Person, team: Team) -> frozenset[Role]:
    if not isinstance(user, User) or not user.is_active:
        return frozenset()
    if user.is_superuser:
        return frozenset({Role.ADMINISTRATOR})
    held = user.memberships.filter(team=team).values_list("role", flat=True)
    return frozenset(Role(role) for role in held)


def may(user: Person, permission: Permission, *, team: Team) -> bool:
    return allows(roles_of(user, team), permission)


def require(user: Person, permission: Permission, *, team: Team) -> None:
    """:raises PermissionRefused: naming what is missing and who can give it."""
    roles = roles_of(user, team)
    if not allows(roles, permission):
        held = ", ".join(sorted(roles)) or "no role"
        raise PermissionRefused(
            f"this needs the permission to {permission.value.replace('_', ' ')} in team "
            f"{team.name}; you have {held} there. An administrator of the team can change that."
        )


def default_team(user: Person) -> Team | None:
    """The team that forms preselect."""
    return teams_of(user).order_by("id").first()
