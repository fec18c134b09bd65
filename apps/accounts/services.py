"""Changes to people, teams and tokens; the audit trail."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now

from apps.accounts.models import (
    AuditEntry,
    IdempotencyRecord,
    Membership,
    PersonalToken,
    Team,
    User,
)
from apps.accounts.selectors import Person
from controlplane.domain.permissions import Role
from controlplane.persistence.encryption import decrypt, encrypt

TOKEN_PREFIX = "nfp-"  # noqa: S105 - a public prefix, not a secret
#: How stale "last used" may be; saves a write on each request.
LAST_USED_PRECISION = timedelta(minutes=1)


def audit(
    *,
    actor: Person | None,
    action: str,
    team: Team | None = None,
    uid: str = "",
    name: str = "",
    **detail: Any,
) -> None:
    """Record a change, in the transaction that makes it."""
    person = actor if isinstance(actor, User) else None
    AuditEntry.objects.create(
        actor=person,
        actor_name=person.username if person else "system",
        team=team,
        action=action,
        object_uid=uid,
        object_name=name,
        detail=detail,
    )


def digest_of(key: str) -> str:
    """Keys are long and random, so one plain SHA-256 is enough to keep and to look up."""
    return hashlib.sha256(key.encode()).hexdigest()


def new_key(prefix: str) -> str:
    """A fresh secret that begins with ``prefix``: 192 bits in 32 characters."""
    return prefix + secrets.token_urlsafe(24)


@transaction.atomic
def token_create(
    *, user: User, name: str, expires_at: datetime | None = None
) -> tuple[PersonalToken, str]:
    """The new token and, for the only time, its text."""
    text = new_key(TOKEN_PREFIX)
    token = PersonalToken.objects.create(
        user=user, name=name, prefix=text[:10], digest=digest_of(text), expires_at=expires_at
    )
    audit(actor=user, action="token.create", uid=token.uid, name=name)
    return token, text


@transaction.atomic
def token_revoke(*, token: PersonalToken, actor: User) -> None:
    """It stops working at once. Repeating it changes nothing."""
    if PersonalToken.objects.filter(pk=token.pk, revoked_at=None).update(revoked_at=Now()):
        audit(actor=actor, action="token.revoke", uid=token.uid, name=token.name)


def token_user(text: str, *, at: datetime) -> User | None:
    """Whose valid token that is."""
    token = (
        PersonalToken.objects.select_related("user")
        .filter(digest=digest_of(text), revoked_at=None, user__is_active=True)
        .first()
    )
    if token is None or (token.expires_at is not None and token.expires_at <= at):
        return None
    if token.last_used_at is None or at - token.last_used_at > LAST_USED_PRECISION:
        PersonalToken.objects.filter(pk=token.pk).update(last_used_at=at)
    return token.user


@transaction.atomic
def membership_set(*, team: Team, user: User, roles: frozenset[Role], actor: Person | None) -> None:
    """Give exactly those roles in the team; none removes the person."""
    Membership.objects.filter(team=team, user=user).exclude(role__in=roles).delete()
    for role in sorted(roles):
        Membership.objects.get_or_create(team=team, user=user, role=role)
    audit(
        actor=actor,
        action="membership.set",
        team=team,
        uid=user.uid,
        name=user.username,
        roles=sorted(roles),
    )


@transaction.atomic
def administrator_ensure(*, username: str, password: str) -> User:
    """The administrator of the company; the password is set only when the account is created."""
    user, created = User.objects.get_or_create(
        username=username, defaults={"is_staff": True, "is_superuser": True}
    )
    if created:
        user.set_password(password)
        user.save(update_fields=["password"])
        audit(actor=None, action="user.create", uid=user.uid, name=username)
    return user


@transaction.atomic
def team_ensure(*, name: str, slug: str, administrator: User) -> Team:
    """The team of that slug, created if absent, with its administrator."""
    team, created = Team.objects.get_or_create(slug=slug, defaults={"name": name})
    if created:
        membership_set(
            team=team,
            user=administrator,
            roles=frozenset({Role.ADMINISTRATOR}),
            actor=None,
        )
    return team


#: An answer is repeated for this long; then its key is free again.
IDEMPOTENCY_KEPT = timedelta(hours=24)
#: How long a repetition waits for the request that it repeats.
_IDEMPOTENCY_WAIT = "5s"
#: PostgreSQL's code for a lock that was not had in time.
_LOCK_NOT_AVAILABLE = "55P03"


class IdempotencyMismatch(Exception):
    """The key came with another request before."""


class IdempotencyBusy(Exception):
    """The request that carries the key is still being answered."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was answered to a request."""

    status: int
    #: As it was sent.
    body: bytes


def idempotency_begin(
    *, user: User, key: str, fingerprint: str, at: datetime
) -> tuple[IdempotencyRecord, Answer | None]:
    """Take the key until the caller's transaction ends, or give what it was answered before.

    The key, the answer and what the request changes become visible together, or not at all.

    :raises IdempotencyMismatch: if the key belongs to another request.
    :raises IdempotencyBusy: if the same request is still being answered after a short wait.
    """
    IdempotencyRecord.objects.filter(
        user=user, key=key, created_at__lte=at - IDEMPOTENCY_KEPT
    ).delete()
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT set_config('lock_timeout', %s, true)", [_IDEMPOTENCY_WAIT])
            record, fresh = IdempotencyRecord.objects.get_or_create(
                user=user, key=key, defaults={"fingerprint": fingerprint}
            )
            cursor.execute("SET LOCAL lock_timeout TO DEFAULT")
    except OperationalError as error:
        if getattr(error.__cause__, "sqlstate", "") != _LOCK_NOT_AVAILABLE:
            raise
        raise IdempotencyBusy("this request is still being answered; ask again shortly") from None
    if fresh:
        return record, None
    if record.fingerprint != fingerprint:
        raise IdempotencyMismatch(
            f"the Idempotency-Key {key!r} came with another request before; use a new one"
        )
    if record.status is None or record.body is None:
        raise IdempotencyBusy("this request has not been answered; ask again shortly")
    sealed = str(record.body["sealed"]).encode("ascii")
    return record, Answer(status=record.status, body=decrypt(sealed))


def idempotency_end(*, record: IdempotencyRecord, answer: Answer) -> None:
    """Keep the answer; encrypted, because it may hold a secret that is shown once."""
    record.status = answer.status
    record.body = {"sealed": encrypt(answer.body).decode("ascii")}
    record.save(update_fields=["status", "body"])


def idempotency_prune(*, at: datetime) -> int:
    """Forget answers that are no longer repeated; say how many."""
    stale = IdempotencyRecord.objects.filter(created_at__lte=at - IDEMPOTENCY_KEPT)
    return stale.delete()[0]
