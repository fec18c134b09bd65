"""User accounts: creation, activation, company roles, profile, e-mail and sessions."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from axes.utils import reset
from django.contrib.auth.tokens import default_token_generator
from django.db import transaction
from django.db.models import F
from django.utils.encoding import force_bytes
from django.utils.http import urlsafe_base64_encode
from django.utils.translation import gettext as _

from apps.accounts.models import CompanyRoleBinding, Membership, Team, User
from apps.accounts.selectors import RequestUser, require_permission
from apps.accounts.services.audit_log import record_audit_entry
from apps.accounts.services.teams import membership_set, staff_status_update
from controlplane.domain.common.permissions import CompanyRole, Permission, TeamRole
from controlplane.domain.common.reasons import FieldRefused

#: Fields that users change themselves.
PROFILE_FIELDS = ("first_name", "last_name", "language", "time_zone")


class UserChangeRefused(FieldRefused):
    """The change of the user is refused; ``field`` names the invalid value, if there is one."""


@transaction.atomic
def administrator_ensure(*, username: str, password: str) -> User:
    """The administrator of the company; the password is set only when the account is created."""
    user, created = User.objects.get_or_create(
        username=username, defaults={"is_staff": True, "is_superuser": True}
    )
    if created:
        user.set_password(password)
        user.save(update_fields=["password"])
        record_audit_entry(user, actor=None, action="user.create", name=username)
    return user


@transaction.atomic
def user_create(
    *,
    username: str,
    email: str,
    actor: User,
    team: Team | None = None,
    roles: frozenset[TeamRole] = frozenset(),
) -> User:
    """Create a user without a password; they set it with the link of :func:`password_set_link_parts`.

    :raises PermissionRefused: unless ``actor`` administers the company.
    :raises UserChangeRefused: if the name or the e-mail is in use.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=None)
    if User.objects.filter(username__iexact=username).exists():
        raise UserChangeRefused(
            _("a user named %(name)s already exists") % {"name": username}, field="username"
        )
    if email and User.objects.filter(email__iexact=email).exists():
        message = _("a user with the e-mail %(email)s already exists") % {"email": email}
        raise UserChangeRefused(message, field="email")
    user = User.objects.create_user(username, email)
    record_audit_entry(user, actor=actor, action="user.create", name=username, email=email)
    if team is not None and roles:
        membership_set(team=team, user=user, roles=roles, actor=actor)
    return user


def password_set_link_parts(user: User) -> tuple[str, str]:
    """Return the two parts of the URL for setting a password: user and token.

    Valid once, until ``PASSWORD_RESET_TIMEOUT`` has passed or the user signs in.
    """
    return urlsafe_base64_encode(force_bytes(user.pk)), default_token_generator.make_token(user)


@transaction.atomic
def create_password_invitation(*, user: User, actor: User) -> tuple[str, str]:
    """A new link for them, as :func:`password_set_link_parts`.

    :raises PermissionRefused: unless ``actor`` administers the company.
    :raises UserChangeRefused: if they are not active.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=None)
    if not user.is_active:
        message = _("%(name)s is deactivated; reactivate the account first")
        raise UserChangeRefused(message % {"name": user.username})
    record_audit_entry(user, actor=actor, action="user.invite")
    return password_set_link_parts(user)


@transaction.atomic
def user_set_active(*, user: User, is_active: bool, actor: User) -> bool:
    """Activate or deactivate a user; deactivation ends sessions and tokens at once. Return whether it changed.

    :raises PermissionRefused: unless ``actor`` administers the company.
    :raises UserChangeRefused: if nobody would administer the company any more.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=None)
    if not is_active:
        _check_company_administrator_remains(without=user)
    if not User.objects.filter(pk=user.pk).exclude(is_active=is_active).update(is_active=is_active):
        return False
    user.is_active = is_active
    if not is_active:
        sessions_end(user=user)
    action = "user.reactivate" if is_active else "user.deactivate"
    record_audit_entry(user, actor=actor, action=action)
    return True


@transaction.atomic
def user_unlock(*, user: User, actor: User) -> None:
    """Clear failed sign-ins of the user, so that they may try again at once.

    :raises PermissionRefused: unless ``actor`` administers the company.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=None)
    reset(username=user.username)
    record_audit_entry(user, actor=actor, action="user.unlock")


@transaction.atomic
def user_set_administrator(*, user: User, is_administrator: bool, actor: User) -> None:
    """Grant or revoke company administration.

    :raises PermissionRefused: unless ``actor`` is one.
    :raises UserChangeRefused: if nobody would be left.
    """
    require_permission(actor, Permission.MANAGE_TEAM, team=None)
    if not is_administrator:
        _check_company_administrator_remains(without=user)
    if user.is_superuser == is_administrator:
        return
    user.is_superuser = is_administrator
    user.save(update_fields=["is_superuser"])
    staff_status_update(user)
    action = "user.promote" if is_administrator else "user.demote"
    record_audit_entry(user, actor=actor, action=action)


@transaction.atomic
def company_roles_set(
    *, user: User, roles: frozenset[CompanyRole], actor: RequestUser | None
) -> None:
    """Grant exactly those company roles. Without an actor no permission is checked.

    :raises PermissionRefused: unless ``actor`` administers the company.
    :raises UserChangeRefused: if a role that is taken away came from the sign-on provider.
    """
    if actor is not None:
        require_permission(actor, Permission.MANAGE_TEAM, team=None)
    current = _lock_company_roles(user)
    for role, row in current.items():
        if actor is not None and role not in roles and row.source == Membership.GrantSource.SIGN_ON:
            raise UserChangeRefused(
                _(
                    "%(name)s has the company role %(role)s from a group of the sign-on provider; "
                    "remove them from the group there"
                )
                % {"name": user.username, "role": role}
            )
    CompanyRoleBinding.objects.filter(user=user).exclude(role__in=roles).delete()
    _add_company_roles(user, roles - current.keys(), source=Membership.GrantSource.LOCAL)
    _audit_company_roles(user, actor=actor, before=current.keys())


@transaction.atomic
def company_roles_sync(*, user: User, granted: frozenset[CompanyRole], provider: str) -> None:
    """Sync the company roles that came from the provider with what it grants now; keep local ones."""
    current = _lock_company_roles(user)
    from_provider = CompanyRoleBinding.objects.filter(
        user=user, source=Membership.GrantSource.SIGN_ON
    )
    from_provider.exclude(role__in=granted).delete()
    _add_company_roles(user, granted - current.keys(), source=Membership.GrantSource.SIGN_ON)
    _audit_company_roles(user, actor=None, before=current.keys(), by=provider)


def _lock_company_roles(user: User) -> dict[CompanyRole, CompanyRoleBinding]:
    # Two concurrent changes of one user's roles must not both see the old roles.
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    rows = CompanyRoleBinding.objects.filter(user=user)
    return {CompanyRole(row.role): row for row in rows}


def _add_company_roles(user: User, roles: Iterable[CompanyRole], *, source: str) -> None:
    for role in sorted(roles):
        CompanyRoleBinding.objects.create(user=user, role=role, source=source)


def _audit_company_roles(
    user: User, *, actor: RequestUser | None, before: Collection[CompanyRole], **detail: Any
) -> None:
    roles = set(user.company_role_bindings.values_list("role", flat=True))
    if roles != set(before):
        record_audit_entry(
            user,
            actor=actor,
            action="company_roles.set",
            roles=sorted(roles),
            before=sorted(before),
            **detail,
        )


def is_last_administrator(user: User) -> bool:
    """Return whether no other company administrator exists; valid until the transaction ends."""
    # All are locked: two who take each other out must not both succeed.
    administrators = User.objects.select_for_update(no_key=True).filter(
        is_superuser=True, is_active=True
    )
    return list(administrators.order_by("pk")) == [user]


def _check_company_administrator_remains(*, without: User) -> None:
    """:raises UserChangeRefused: if they are the only administrator of the company."""
    if is_last_administrator(without):
        raise UserChangeRefused(
            _(
                "%(name)s is the last administrator of the company; appoint another "
                "administrator first"
            )
            % {"name": without.username}
        )


@transaction.atomic
def profile_change(*, user: User, values: dict[str, Any]) -> list[str]:
    """Save changed values; return which of :data:`PROFILE_FIELDS` changed."""
    changed = [
        name for name in PROFILE_FIELDS if name in values and values[name] != getattr(user, name)
    ]
    if changed:
        for name in changed:
            setattr(user, name, values[name])
        user.save(update_fields=changed)
        record_audit_entry(user, actor=user, action="profile.change", fields=changed)
    return changed


def check_email_available(*, user: User, email: str) -> None:
    """:raises UserChangeRefused: if the e-mail is another account's."""
    if User.objects.filter(email__iexact=email).exclude(pk=user.pk).exists():
        message = _("a user with the e-mail %(email)s already exists") % {"email": email}
        raise UserChangeRefused(message, field="email")


@transaction.atomic
def email_change(*, user: User, email: str) -> None:
    """Set a confirmed e-mail; all sessions end, and links sent before are invalid.

    :raises UserChangeRefused: if the e-mail is another account's.
    """
    check_email_available(user=user, email=email)
    old, user.email = user.email, email
    user.save(update_fields=["email"])
    sessions_end(user=user)
    record_audit_entry(user, actor=user, action="email.change", before=old, after=email)


def sessions_end(*, user: User) -> None:
    """End all sessions of the user."""
    User.objects.filter(pk=user.pk).update(session_generation=F("session_generation") + 1)
    user.refresh_from_db(fields=["session_generation"])


@transaction.atomic
def user_other_sessions_end(*, user: User) -> None:
    """End all other sessions of the user; the caller keeps the current one."""
    sessions_end(user=user)
    record_audit_entry(user, actor=user, action="session.end_all")
