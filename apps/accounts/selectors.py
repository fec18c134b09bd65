"""Questions about people: who may do what, whose things are these."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet

from apps.accounts.models import PersonalToken, Team, User
from controlplane.domain.permissions import Permission, Role, allows

Person = User | AnonymousUser


class PermissionRefused(PermissionDenied):
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


def roles_by_team(user: Person) -> dict[int, frozenset[Role]]:
    """Their roles by the team's primary key, in one query."""
    if not isinstance(user, User) or not user.is_active:
        return {}
    if user.is_superuser:
        keys = Team.objects.values_list("pk", flat=True)
        return dict.fromkeys(keys, frozenset({Role.ADMINISTRATOR}))
    held: dict[int, set[Role]] = {}
    for team, role in user.memberships.values_list("team_id", "role"):
        held.setdefault(team, set()).add(Role(role))
    return {team: frozenset(roles) for team, roles in held.items()}


def tokens_of(user: Person) -> QuerySet[PersonalToken]:
    """Their own personal tokens, revoked ones included."""
    if not isinstance(user, User):
        return PersonalToken.objects.none()
    return PersonalToken.objects.filter(user=user)


def require(user: Person, permission: Permission, *, team: Team | None) -> None:
    """``team`` owns what they want to change; None where it belongs to everybody.

    :raises PermissionRefused: naming what is missing and who can give it.
    """
    if team is None:
        if not isinstance(user, User) or not user.is_superuser:
            raise PermissionRefused(
                "this belongs to every team; only an administrator of the company can change it"
            )
        return
    roles = roles_of(user, team)
    if not allows(roles, permission):
        held = ", ".join(sorted(roles)) or "no role"
        raise PermissionRefused(
            f"this needs the permission to {permission.value.replace('_', ' ')} in team "
            f"{team.name}; you have {held} there. An administrator of the company can change that."
        )


def default_team(user: Person) -> Team | None:
    """The team that forms preselect."""
    return teams_of(user).order_by("id").first()
