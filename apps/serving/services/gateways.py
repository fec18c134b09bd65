"""Gateways: versioned snapshots to serve from, heartbeats, usage batches counted once, and API keys."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models.functions import Now

from apps.accounts.models import Team, User
from apps.accounts.services import generate_secret_token, record_audit_entry, token_digest
from apps.serving import selectors
from apps.serving.models import ApiKey, Gateway, GatewayCall, GatewaySnapshot, UsageBatch
from controlplane.domain.common.reasons import ReasonedError
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.encryption import decrypt, encrypt

#: A gateway serves from its last snapshot for this long while it cannot reach the control plane.
MAX_SNAPSHOT_AGE = timedelta(hours=24)
#: An unchanged snapshot is issued again this often, so that it is never stale while the control plane runs.
REISSUE_AFTER = timedelta(hours=1)
STORED_SNAPSHOTS = 20


@transaction.atomic
def gateway_snapshot_publish(*, at: datetime) -> GatewaySnapshot:
    """The newest snapshot, issued now if its content has changed."""
    lock_in_transaction(AdvisoryLock.PUBLISH_GATEWAY_SNAPSHOT)
    content = selectors.gateway_snapshot_content(at=at)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    latest = selectors.latest_gateway_snapshot()
    if latest is not None and latest.digest == digest and at - latest.issued_at < REISSUE_AFTER:
        return latest
    snapshot = GatewaySnapshot(
        digest=digest, issued_at=at, body=encrypt(json.dumps(content).encode())
    )
    snapshot.save()
    GatewaySnapshot.objects.filter(version__lte=snapshot.version - STORED_SNAPSHOTS).delete()
    return snapshot


def gateway_snapshot_body(snapshot: GatewaySnapshot) -> bytes:
    """The JSON that a gateway gets."""
    head = {
        "version": snapshot.version,
        "issued_at": snapshot.issued_at.isoformat(),
        "max_stale_seconds": int(MAX_SNAPSHOT_AGE.total_seconds()),
    }
    return json.dumps({**head, **json.loads(decrypt(snapshot.body))}).encode()


def gateway_mark_seen(
    *, name: str, version: int, at: datetime, draining_requests: Mapping[str, int] | None = None
) -> None:
    """Record the heartbeat of a gateway and the snapshot version that it has.

    :param draining_requests: its open requests by uid of the replicas that this version no longer names.
    """
    Gateway.objects.update_or_create(
        name=name,
        defaults={
            "last_seen_at": at,
            "version": version,
            "draining_requests": dict(draining_requests or {}),
        },
    )


@transaction.atomic
def usage_batch_record(*, gateway: str, sequence: int, records: Sequence[dict[str, Any]]) -> bool:
    """Store a batch of usage records; False if it was stored before."""
    batch, created = UsageBatch.objects.get_or_create(gateway=gateway, sequence=sequence)
    if not created:
        return False
    keys = {
        key.uid: key for key in ApiKey.objects.filter(uid__in={one.get("key") for one in records})
    }
    GatewayCall.objects.bulk_create(
        _create_usage_record(batch, record, keys.get(str(record.get("key")))) for record in records
    )
    return True


def _create_usage_record(
    batch: UsageBatch, record: dict[str, Any], key: ApiKey | None
) -> GatewayCall:
    return GatewayCall(
        batch=batch,
        at=datetime.fromisoformat(record["at"]),
        key=key,
        team_id=key.team_id if key else None,
        route=record["route"] or "",
        backend_uid=record["backend"] or "",
        operation=record["operation"],
        status=record["status"],
        outcome=record["outcome"],
        prompt_tokens=record["prompt_tokens"],
        completion_tokens=record["completion_tokens"],
        duration_ms=record["duration_ms"],
        first_token_ms=record["first_token_ms"],
    )


KEY_PREFIX = "nf-"
#: How long the old key may stay valid beside its replacement.
MAX_OVERLAP = timedelta(days=30)


class ApiKeyRefused(ReasonedError):
    """The key cannot be replaced; the message says why and what to do instead."""


@transaction.atomic
def api_key_create(
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
    text = generate_secret_token(KEY_PREFIX)
    key = ApiKey.objects.create(
        team=team,
        created_by=actor,
        name=name,
        prefix=text[:10],
        digest=token_digest(text),
        routes=list(routes) if routes is not None else None,
        expires_at=expires_at,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        concurrency=concurrency,
    )
    record_audit_entry(key, actor=actor, action="key.create", team=team, name=name)
    gateway_snapshot_publish(at=at)
    return key, text


@transaction.atomic
def api_key_change(*, key: ApiKey, actor: User, at: datetime, **values: Any) -> ApiKey:
    """Change name, permitted routes, limits or expiry of a key; gateways apply them within seconds.

    :param values: new values of ``name``, ``routes``, ``requests_per_minute``, ``tokens_per_minute``,
        ``concurrency`` and ``expires_at``; the others stay.
    :raises ApiKeyRefused: if the key is revoked or expired.
    """
    row = ApiKey.objects.select_for_update(of=("self",)).select_related("team").get(pk=key.pk)
    if row.revoked_at is not None or (row.expires_at is not None and row.expires_at <= at):
        raise ApiKeyRefused(
            "api_key.change.ended",
            "key {key} has expired or been revoked and cannot be changed; create a new key",
            key=row.name,
        )
    changed = [name for name, value in values.items() if getattr(row, name) != value]
    if not changed:
        return row
    for name in changed:
        setattr(row, name, values[name])
    row.save(update_fields=changed)
    record_audit_entry(row, actor=actor, action="key.change", name=row.name, fields=changed)
    gateway_snapshot_publish(at=at)
    return row


@transaction.atomic
def api_key_revoke(*, key: ApiKey, actor: User, at: datetime) -> None:
    """Revoke a key; gateways refuse it within seconds. Idempotent."""
    if ApiKey.objects.filter(pk=key.pk, revoked_at=None).update(revoked_at=Now()):
        record_audit_entry(key, actor=actor, action="key.revoke", name=key.name)
        gateway_snapshot_publish(at=at)


@transaction.atomic
def api_key_rotate(
    *, key: ApiKey, actor: User, at: datetime, overlap: timedelta = timedelta(0)
) -> tuple[ApiKey, str]:
    """A new key with the same name, deployments and limits, and its text this once.

    The old key stays valid for ``overlap``, so that programs can be changed without downtime, and then expires;
    without an overlap it is revoked. The new key has the lifetime that the old one was created with.

    :raises ApiKeyRefused: if the old key is revoked or expired, or the overlap is longer than ``MAX_OVERLAP``.
    """
    old = ApiKey.objects.select_for_update(of=("self",)).select_related("team").get(pk=key.pk)
    _check_api_key_rotation(old, at=at, overlap=overlap)
    lifetime = old.expires_at - old.created_at if old.expires_at else None
    replacement, text = api_key_create(
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
    record_audit_entry(old, actor=actor, action="key.rotate", name=old.name, new=replacement.uid)
    if not overlap:
        api_key_revoke(key=old, actor=actor, at=at)
    elif old.expires_at is None or old.expires_at > at + overlap:
        old.expires_at = at + overlap
        old.save(update_fields=["expires_at"])
        gateway_snapshot_publish(at=at)
    return replacement, text


def _check_api_key_rotation(key: ApiKey, *, at: datetime, overlap: timedelta) -> None:
    if key.revoked_at is not None or (key.expires_at is not None and key.expires_at <= at):
        raise ApiKeyRefused(
            "api_key.rotation.ended",
            "key {key} has expired or been revoked and cannot be rotated; create a new key",
            key=key.name,
        )
    if not timedelta(0) <= overlap <= MAX_OVERLAP:
        raise ApiKeyRefused(
            "api_key.rotation.overlap_out_of_range",
            "the old key can stay valid for 0 to {limit} more days, got {days}",
            limit=MAX_OVERLAP.days,
            days=overlap.days,
        )
