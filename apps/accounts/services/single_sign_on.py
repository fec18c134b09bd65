"""Users who sign in through the OpenID provider: account matching, and roles derived from groups."""

from __future__ import annotations

import logging
from datetime import datetime

from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.db import transaction
from django.utils.translation import gettext as _

from apps.accounts.models import ExternalIdentity, Team, User
from apps.accounts.services.audit_log import record_audit_entry
from apps.accounts.services.teams import memberships_sync, staff_status_update
from apps.accounts.services.users import company_roles_sync, is_last_administrator
from controlplane.domain.accounts.single_sign_on import (
    SsoIdentity,
    SsoProvider,
    company_roles_granted,
    grants_administration,
    roles_granted,
)
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction

log = logging.getLogger(__name__)

_USERNAME_LENGTH = 150


class SignOnRefused(Exception):
    """The provider authenticated the user, but they cannot sign in; the message says what to do."""


@transaction.atomic
def user_sign_in(*, identity: SsoIdentity, provider: SsoProvider, at: datetime) -> User:
    """Return the user of that identity with the roles of its groups; create the user if there is none.

    :raises SignOnRefused: if the account is deactivated, or a new one would collide with one that is there.
    """
    # Two concurrent first sign-ins of one user must not create two accounts.
    lock_in_transaction(AdvisoryLock.ENROL_USER)
    binding = _find_external_identity(identity) or _create_user_for(identity)
    user = binding.user
    if not user.is_active:
        raise SignOnRefused(
            _(
                "the account %(name)s is deactivated; an administrator of the company can reactivate it"
            )
            % {"name": user.username}
        )
    _update_external_identity(binding, identity=identity, provider=provider, at=at)
    return user


@transaction.atomic
def identity_link(
    *, user: User, identity: SsoIdentity, provider: SsoProvider, at: datetime
) -> None:
    """Link an identity to the signed-in user.

    :raises SignOnRefused: if it is linked to another user, or the user has another identity at that provider.
    """
    lock_in_transaction(AdvisoryLock.ENROL_USER)
    binding = _find_external_identity(identity)
    if binding is not None and binding.user_id != user.pk:
        raise SignOnRefused(
            _(
                "this account of %(provider)s is linked to %(name)s; sign out there and choose "
                "your own account, or ask an administrator of the company"
            )
            % {"provider": provider.name, "name": binding.user.username}
        )
    if binding is None:
        if user.identities.filter(issuer=identity.issuer).exists():
            raise SignOnRefused(
                _(
                    "you are already linked to another account of %(provider)s; unlink that account first"
                )
                % {"provider": provider.name}
            )
        binding = _create_external_identity(user, identity)
        record_audit_entry(user, actor=user, action="identity.link", by=provider.name)
    _update_external_identity(binding, identity=identity, provider=provider, at=at)


@transaction.atomic
def identity_unlink(*, binding: ExternalIdentity, actor: User, provider: SsoProvider) -> None:
    """Unlink an identity; roles that came from its groups are removed.

    :raises SignOnRefused: if the user could not sign in any more, or no company administrator would be left.
    """
    lock_in_transaction(AdvisoryLock.ENROL_USER)
    user = binding.user
    if not user.has_usable_password() or (provider.required and not user.is_superuser):
        raise SignOnRefused(
            _(
                "without the linked single sign-on account you could not sign in; set a password first"
            )
            if not user.has_usable_password()
            else _("all users sign in with %(provider)s") % {"provider": provider.name}
        )
    if binding.granted_administrator and is_last_administrator(user):
        raise SignOnRefused(
            _(
                "%(name)s is the last administrator of the company; appoint another "
                "administrator first"
            )
            % {"name": user.username}
        )
    memberships_sync(user=user, granted={}, provider=provider.name)
    company_roles_sync(user=user, granted=frozenset(), provider=provider.name)
    _sync_company_administrator_role(binding, user=user, granted=False, provider=provider)
    binding.delete()
    record_audit_entry(user, actor=actor, action="identity.unlink", by=provider.name)


def _find_external_identity(identity: SsoIdentity) -> ExternalIdentity | None:
    return (
        ExternalIdentity.objects.select_related("user")
        .filter(issuer=identity.issuer, subject=identity.subject)
        .first()
    )


def _create_external_identity(user: User, identity: SsoIdentity) -> ExternalIdentity:
    return ExternalIdentity.objects.create(
        user=user, issuer=identity.issuer, subject=identity.subject, name=identity.username
    )


def _create_user_for(identity: SsoIdentity) -> ExternalIdentity:
    """Create an account; never match an existing one by name or e-mail."""
    try:
        UnicodeUsernameValidator()(identity.username)
    except ValidationError:
        message = _(
            "the user name %(name)s contains characters other than letters, digits and "
            "@.+-_; an administrator can map another claim to the user name"
        )
        raise SignOnRefused(message % {"name": repr(identity.username)}) from None
    if len(identity.username) > _USERNAME_LENGTH:
        raise SignOnRefused(
            _("the user name %(name)s… is longer than %(most)d characters")
            % {"name": identity.username[:40], "most": _USERNAME_LENGTH}
        )
    if User.objects.filter(username__iexact=identity.username).exists():
        raise SignOnRefused(
            _(
                "an account named %(name)s exists and is not linked to your single sign-on. If "
                "it is yours, sign in with its password and link it on your profile; otherwise "
                "an administrator of the company can rename it"
            )
            % {"name": identity.username}
        )
    if identity.email and User.objects.filter(email__iexact=identity.email).exists():
        raise SignOnRefused(
            _(
                "an account with the e-mail %(email)s exists and is not linked to your single "
                "sign-on. If it is yours, sign in with its password and link it on your profile; "
                "otherwise an administrator of the company can correct its e-mail"
            )
            % {"email": identity.email}
        )
    user = User.objects.create_user(
        identity.username,
        _email_if_valid(identity.email),
        first_name=identity.first_name[:150],
        last_name=identity.last_name[:150],
    )
    record_audit_entry(user, actor=None, action="user.enrol", issuer=identity.issuer)
    return _create_external_identity(user, identity)


def _email_if_valid(email: str) -> str:
    """Return the e-mail if it is valid, else an empty string: providers do not validate it."""
    try:
        User._meta.get_field("email").clean(email, None)
    except ValidationError:
        if email:
            log.warning("the sign-on provider sends an e-mail address that is none")
        return ""
    return email


def _update_external_identity(
    binding: ExternalIdentity, *, identity: SsoIdentity, provider: SsoProvider, at: datetime
) -> None:
    binding.name = identity.username[:255]
    binding.last_used_at = at
    binding.save(update_fields=["name", "last_used_at"])
    by_slug = roles_granted(provider, identity.groups)
    teams = {team.slug: team for team in Team.objects.filter(slug__in=by_slug)}
    for slug in sorted(by_slug.keys() - teams.keys()):
        log.warning("a group of the sign-on provider leads to no team", extra={"team": slug})
    memberships_sync(
        user=binding.user,
        granted={team: by_slug[slug] for slug, team in teams.items()},
        provider=provider.name,
    )
    company_roles_sync(
        user=binding.user,
        granted=company_roles_granted(provider, identity.groups),
        provider=provider.name,
    )
    granted = grants_administration(provider, identity.groups)
    _sync_company_administrator_role(binding, user=binding.user, granted=granted, provider=provider)


def _sync_company_administrator_role(
    binding: ExternalIdentity, *, user: User, granted: bool, provider: SsoProvider
) -> None:
    """Grant or revoke company administration by group; a local grant is kept.

    The last administrator is kept until a sign-in after another one exists.
    """
    if granted == binding.granted_administrator or (granted and user.is_superuser):
        return
    if not granted and is_last_administrator(user):
        log.warning("a group was taken from the last administrator of the company")
        record_audit_entry(user, actor=None, action="user.keep", by=provider.name)
        return
    binding.granted_administrator = user.is_superuser = granted
    binding.save(update_fields=["granted_administrator"])
    user.save(update_fields=["is_superuser"])
    staff_status_update(user)
    action = "user.promote" if granted else "user.demote"
    record_audit_entry(user, actor=None, action=action, by=provider.name)
