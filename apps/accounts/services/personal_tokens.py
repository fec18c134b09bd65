"""Personal tokens, and how secrets are generated and hashed."""

from __future__ import annotations

import hashlib
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone
from django.utils.translation import gettext as _

from apps.accounts.models import PersonalToken, Team, User
from apps.accounts.selectors import teams_visible, valid_personal_tokens
from apps.accounts.services.audit_log import record_audit_entry
from controlplane.domain.common.permissions import Scope
from controlplane.domain.common.reasons import FieldRefused

TOKEN_PREFIX = "nfp-"  # noqa: S105 - a public prefix, not a secret
#: How stale "last used" may be; saves a write on each request.
LAST_USED_PRECISION = timedelta(minutes=1)


class TokenRefused(FieldRefused):
    """The token cannot be created; ``field`` names the invalid value."""


def token_digest(key: str) -> str:
    """Return the SHA-256 of a key; plain, because keys are long and random."""
    return hashlib.sha256(key.encode()).hexdigest()


def generate_secret_token(prefix: str) -> str:
    """A fresh secret that begins with ``prefix``: 192 bits in 32 characters."""
    return prefix + secrets.token_urlsafe(24)


@transaction.atomic
def token_create(
    *,
    user: User,
    name: str,
    scopes: frozenset[Scope],
    expires_at: datetime | None = None,
    team: Team | None = None,
) -> tuple[PersonalToken, str]:
    """The new token and, for the only time, its text.

    :raises TokenRefused: if it would live too long, its name is taken, or the team is not theirs.
    """
    # Two of the same name at once would otherwise both find it free.
    User.objects.select_for_update(no_key=True).get(pk=user.pk)
    _check_token_request(user=user, name=name, scopes=scopes, expires_at=expires_at, team=team)
    text = generate_secret_token(TOKEN_PREFIX)
    token = PersonalToken.objects.create(
        user=user,
        name=name,
        prefix=text[:10],
        digest=token_digest(text),
        expires_at=expires_at,
        scopes=sorted(scopes),
        team=team,
    )
    record_audit_entry(
        token, actor=user, action="token.create", team=team, name=name, scopes=token.scopes
    )
    return token, text


def _check_token_request(
    *,
    user: User,
    name: str,
    scopes: frozenset[Scope],
    expires_at: datetime | None,
    team: Team | None,
) -> None:
    now = timezone.now()
    if not scopes:
        raise TokenRefused(_("choose at least one scope; “read” grants the least"), field="scopes")
    longest: int = settings.NINEFOLD_TOKEN_MAX_DAYS
    # A minute of tolerance: a client that requests the maximum computed it a moment ago.
    if longest and (expires_at is None or expires_at > now + timedelta(days=longest, minutes=1)):
        raise TokenRefused(
            _("a token is valid for at most %(days)d days; choose an earlier expiry")
            % {"days": longest},
            field="expires_at",
        )
    if team is not None and not teams_visible(user).filter(pk=team.pk).exists():
        raise TokenRefused(_("you are not in that team"), field="team")
    if team is None and user.confined_to is not None:
        raise TokenRefused(
            _("your token is limited to team %(team)s; limit the new token to the same team")
            % {"team": user.confined_to.name},
            field="team",
        )
    _check_token_name(user=user, name=name)


def _check_token_name(*, user: User, name: str) -> None:
    if valid_personal_tokens(user=user, at=timezone.now()).filter(name=name).exists():
        raise TokenRefused(
            _("you have a token named %(name)s already; revoke it first or choose another name")
            % {"name": name},
            field="name",
        )


@transaction.atomic
def token_rename(*, token: PersonalToken, actor: User, name: str) -> PersonalToken:
    """The token with its new name.

    :raises TokenRefused: if the name is taken.
    """
    User.objects.select_for_update(no_key=True).get(pk=token.user_id)
    if token.name == name:
        return token
    _check_token_name(user=token.user, name=name)
    before, token.name = token.name, name
    token.save(update_fields=["name"])
    record_audit_entry(token, actor=actor, action="token.change", name=name, before=before)
    return token


@transaction.atomic
def token_revoke(*, token: PersonalToken, actor: User) -> None:
    """It stops working at once. Repeating it changes nothing."""
    if PersonalToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=Now()):
        record_audit_entry(actor=actor, action="token.revoke", uid=token.uid, name=token.name)


def authenticate_personal_token(text: str, *, at: datetime) -> PersonalToken | None:
    """The valid token of that text, its owner confined to what it may see; None if there is none."""
    token = (
        PersonalToken.objects.select_related("user", "team")
        .filter(digest=token_digest(text), revoked_at=None, user__is_active=True)
        .first()
    )
    if token is None or (token.expires_at is not None and token.expires_at <= at):
        return None
    if token.last_used_at is None or at - token.last_used_at > LAST_USED_PRECISION:
        PersonalToken.objects.filter(pk=token.pk).update(last_used_at=at)
    token.user.confined_to = token.team
    return token
