"""API keys of the gateway: create, revoke, rotate."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models.functions import Now

from apps.accounts.models import Team, User
from apps.accounts.services import audit, digest_of, new_key
from apps.serving.models import ApiKey
from apps.serving.services import gateways

KEY_PREFIX = "nf-"
#: How long the old key may stay valid beside its replacement.
MAX_OVERLAP = timedelta(days=30)


class KeyRefused(Exception):
    """The key cannot be replaced; the message says why and what to do instead."""


@transaction.atomic
def key_create(
    *,
    actor: User,
    team: Team,
    name: str,
    at: datetime,
    routes: Sequence[str] | None = None,
    expires_at: datetime | None = None,
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    concurrency: int | None = None,
) -> tuple[ApiKey, str]:
    """The new key and, this once, its text. Gateways get it within seconds."""
    text = new_key(KEY_PREFIX)
    key = ApiKey.objects.create(
        team=team,
        created_by=actor,
        name=name,
        prefix=text[:10],
        digest=digest_of(text),
        routes=list(routes) if routes is not None else None,
        expires_at=expires_at,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        concurrency=concurrency,
    )
    audit(actor=actor, action="key.create", team=team, uid=key.uid, name=name)
    gateways.snapshot_publish(at=at)
    return key, text


@transaction.atomic
def key_revoke(*, key: ApiKey, actor: User, at: datetime) -> None:
    """Revoke a key; gateways refuse it within seconds. Idempotent."""
    if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=Now()):
        audit(actor=actor, action="key.revoke", team=key.team, uid=key.uid, name=key.name)
        gateways.snapshot_publish(at=at)


@transaction.atomic
def key_rotate(
    *, key: ApiKey, actor: User, at: datetime, overlap: timedelta = timedelta(0)
) -> tuple[ApiKey, str]:
    """A new key with the same name, deployments and limits, and its text this once.

    The old key stays valid for ``overlap``, so that programs can be changed without downtime, and then expires;
    without an overlap it is revoked. The new key has the lifetime that the old one was created with.

    :raises KeyRefused: if the old key is revoked or expired, or the overlap is longer than ``MAX_OVERLAP``.
    """
    old = ApiKey.objects.select_for_update(of=("self",)).select_related("team").get(pk=key.pk)
    _check_rotation(old, at=at, overlap=overlap)
    lifetime = old.expires_at - old.created_at if old.expires_at else None
    replacement, text = key_create(
        actor=actor,
        team=old.team,
        name=old.name,
        at=at,
        routes=old.routes,
        expires_at=at + lifetime if lifetime else None,
        requests_per_minute=old.requests_per_minute,
        tokens_per_minute=old.tokens_per_minute,
        concurrency=old.concurrency,
    )
    audit(
        actor=actor,
        action="key.rotate",
        team=old.team,
        uid=old.uid,
        name=old.name,
        new=replacement.uid,
    )
    if not overlap:
        key_revoke(key=old, actor=actor, at=at)
    elif old.expires_at is None or old.expires_at > at + overlap:
        old.expires_at = at + overlap
        old.save(update_fields=["expires_at"])
        gateways.snapshot_publish(at=at)
    return replacement, text


def _check_rotation(key: ApiKey, *, at: datetime, overlap: timedelta) -> None:
    if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= at):
        raise KeyRefused(f"key {key.name} has ended, so nothing can replace it; make a new key")
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise KeyRefused(
            f"the old key may work for 0 to {MAX_OVERLAP.days} days more, got {overlap.days}"
        )
