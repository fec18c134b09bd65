"""People and their teams."""

from __future__ import annotations

from apps.accounts.models import CompanyRoleBinding, Membership, Team, User
from controlplane.domain.common.permissions import CompanyRole, TeamRole


def user(
    name: str = "ada",
    *,
    team: Team | None = None,
    role: TeamRole = TeamRole.ENGINEER,
    admin: bool = False,
    operator: bool = False,
) -> User:
    """Somebody who can log in with the password ``open sesame``."""
    created = User.objects.create_user(
        name, password="open sesame", is_superuser=admin, is_staff=admin
    )
    if team is not None:
        Membership.objects.create(user=created, team=team, role=role)
    if operator:
        CompanyRoleBinding.objects.create(user=created, role=CompanyRole.OPERATOR)
    return created


def team(name: str = "maps") -> Team:
    return Team.objects.create(name=name, slug=name)
