"""Teams, their members and the roles of members."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from django.db import transaction
from django.utils.translation import gettext as _

from apps.accounts.models import Membership, Team, User
from apps.accounts.selectors import RequestUser, is_company_administrator, require_permission
from apps.accounts.services.audit_log import record_audit_entry
from controlplane.domain.common.permissions import Permission, TeamRole
from controlplane.domain.common.reasons import FieldRefused

#: Whoever holds one of them somewhere, or any company role, may enter the admin; there they see what the role
#: is for.
ADMIN_ROLES = frozenset({TeamRole.QUEUE_ADMIN, TeamRole.ADMINISTRATOR})


class MembershipRefused(Exception):
    """The change would leave the team in an invalid state; the message says what to do instead."""


class TeamNameTaken(FieldRefused):
    """The name or slug is in use; ``field`` is ``name`` or ``slug``."""


def staff_status_update(user: User) -> None:
    """Derive ``is_staff``, the access to the admin, from the roles of the user."""
    current = user.memberships.filter(role__in=[role.value for role in ADMIN_ROLES])
    is_staff = user.is_superuser or current.exists() or user.company_role_bindings.exists()
    if is_staff != user.is_staff:
        user.is_staff = is_staff
        User.objects.filter(pk=user.pk).update(is_staff=is_staff)


def _check_team_name_available(*, name: str, slug: str, beside: Team | None = None) -> None:
    others = Team.objects.exclude(pk=beside.pk) if beside else Team.objects.all()
    if others.filter(name=name).exists():
        raise TeamNameTaken(
            _("a team named %(name)s already exists") % {"name": name}, field="name"
        )
    if others.filter(slug=slug).exists():
        message = _("the URL /teams/%(slug)s is used by another team") % {"slug": slug}
        raise TeamNameTaken(message, field="slug")


@transaction.atomic
def team_create(
    *,
    name: str,
    slug: str,
    actor: User,
    members: Mapping[User, frozenset[TeamRole]] = MappingProxyType({}),
) -> Team:
    """A new team with those members and their roles.

    :raises PermissionRefused: unless ``actor`` administers the company.
    :raises TeamNameTaken: if another has that name or address.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=None)
    _check_team_name_available(name=name, slug=slug)
    team = Team.objects.create(name=name, slug=slug)
    record_audit_entry(team, actor=actor, action="team.create", team=team, name=name, slug=slug)
    for user, roles in members.items():
        membership_set(team=team, user=user, roles=roles, actor=actor)
    return team


@transaction.atomic
def team_rename(*, team: Team, name: str, actor: User) -> None:
    """Rename a team. The slug stays, so links keep working.

    :raises PermissionRefused: unless ``actor`` administers the company.
    :raises TeamNameTaken: if another has that name.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=None)
    if name == team.name:
        return
    _check_team_name_available(name=name, slug=team.slug, beside=team)
    before, team.name = team.name, name
    team.save(update_fields=["name"])
    record_audit_entry(team, actor=actor, action="team.rename", team=team, name=name, before=before)


@transaction.atomic
def team_ensure(*, name: str, slug: str, administrator: User) -> Team:
    """The team of that slug, created if absent, with its administrator."""
    team, created = Team.objects.get_or_create(slug=slug, defaults={"name": name})
    if created:
        roles = frozenset({TeamRole.ADMINISTRATOR})
        membership_set(team=team, user=administrator, roles=roles, actor=None)
    return team


@transaction.atomic
def membership_set(
    *, team: Team, user: User, roles: frozenset[TeamRole], actor: RequestUser | None
) -> None:
    """Set exactly those roles in the team; an empty set removes the member. Without an actor nothing is checked.

    :raises PermissionRefused: if ``actor`` may not manage the team.
    :raises MembershipRefused: if the team would be without an administrator, which only one of the company
        may leave behind, or if a role that is taken away came from the sign-on provider.
    """
    # Two who take the last two administrators away must not both succeed.
    Team.objects.select_for_update(no_key=True).get(pk=team.pk)
    before = {row.role: row for row in Membership.objects.filter(team=team, user=user)}
    if actor is not None:
        require_permission(actor, Permission.MANAGE_TEAM, team=team)
        _check_sign_on(user=user, before=before, roles=roles)
        _check_team_administrator_remains(team=team, user=user, roles=roles, actor=actor)
    if set(before) == {role.value for role in roles}:
        return
    Membership.objects.filter(team=team, user=user).exclude(role__in=roles).delete()
    for role in sorted(roles - set(before)):
        Membership.objects.create(team=team, user=user, role=role)
    record_audit_entry(
        user,
        actor=actor,
        action="membership.set" if roles else "membership.remove",
        team=team,
        roles=sorted(roles),
        before=sorted(before),
    )


def _check_sign_on(
    *, user: User, before: Mapping[str, Membership], roles: frozenset[TeamRole]
) -> None:
    from_provider = sorted(
        role
        for role, row in before.items()
        if row.source == Membership.GrantSource.SIGN_ON and role not in roles
    )
    if from_provider:
        raise MembershipRefused(
            _(
                "%(name)s has the role %(role)s from a group of the sign-on provider and would "
                "regain it at the next sign-in; remove them from the group there"
            )
            % {"name": user.username, "role": from_provider[0].replace("_", " ")}
        )


def _check_team_administrator_remains(
    *, team: Team, user: User, roles: frozenset[TeamRole], actor: RequestUser
) -> None:
    if TeamRole.ADMINISTRATOR in roles or is_company_administrator(actor):
        return
    others = Membership.objects.filter(
        team=team, role=TeamRole.ADMINISTRATOR, user__is_active=True
    ).exclude(user=user)
    current = Membership.objects.filter(team=team, user=user, role=TeamRole.ADMINISTRATOR)
    if current.exists() and not others.exists():
        raise MembershipRefused(
            _(
                "%(name)s is the last administrator of %(team)s; appoint another administrator "
                "first, or ask an administrator of the company"
            )
            % {"name": user.username, "team": team.name}
        )


@transaction.atomic
def memberships_sync(
    *, user: User, granted: Mapping[Team, frozenset[TeamRole]], provider: str
) -> None:
    """Sync the roles that came from the provider with what it grants now; local roles are kept."""
    from_provider = Membership.objects.filter(user=user, source=Membership.GrantSource.SIGN_ON)
    concerned = {team.pk for team in granted} | set(from_provider.values_list("team_id", flat=True))
    # The same locks as ``membership_set``, in key order, so that there is no deadlock.
    list(Team.objects.select_for_update(no_key=True).filter(pk__in=concerned).order_by("pk"))
    current = {(row.team_id, row.role): row for row in Membership.objects.filter(user=user)}
    desired = {(team.pk, role.value): team for team, roles in granted.items() for role in roles}
    changed: set[Team] = set()
    for key, team in desired.items():
        if key not in current:
            Membership.objects.create(
                user=user, team=team, role=key[1], source=Membership.GrantSource.SIGN_ON
            )
            changed.add(team)
    for key, row in current.items():
        if row.source == Membership.GrantSource.SIGN_ON and key not in desired:
            changed.add(row.team)
            row.delete()
    for team in sorted(changed, key=lambda one: one.pk):
        roles = Membership.objects.filter(user=user, team=team).order_by("role")
        record_audit_entry(
            user,
            actor=None,
            action="membership.sync",
            team=team,
            roles=list(roles.values_list("role", flat=True)),
            by=provider,
        )
