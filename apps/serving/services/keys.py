"""Keys of the gateway."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction
from django.db.models.functions import Now

from apps.accounts.models import Team, User
from apps.accounts.services import audit, digest_of, new_key
from apps.serving.models import ApiKey
from apps.serving.services import snapshots

KEY_PREFIX = "nf-"


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
    """The new key and, for the only time, its text. Gateways know it within moments."""
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
    snapshots.snapshot_publish(at=at)
    return key, text


@transaction.atomic
def key_revoke(*, key: ApiKey, actor: User, at: datetime) -> None:
    """It stops working within moments. Repeating it changes nothing."""
    if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=Now()):
        audit(actor=actor, action="key.revoke", team=key.team, uid=key.uid, name=key.name)
        snapshots.snapshot_publish(at=at)
