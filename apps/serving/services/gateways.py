"""Gateways: versioned snapshots to serve from, heartbeats, and usage batches counted once."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction

from apps.serving import selectors
from apps.serving.models import ApiKey, Gateway, GatewaySnapshot, UsageBatch, UsageRecord
from controlplane.persistence.encryption import decrypt, encrypt
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction

#: A gateway serves from its last snapshot for this long while it cannot reach the control plane.
MAX_SNAPSHOT_AGE = timedelta(hours=24)
#: An unchanged snapshot is issued again this often, so that it is never stale while the control plane runs.
REISSUE_AFTER = timedelta(hours=1)
STORED_SNAPSHOTS = 20


@transaction.atomic
def snapshot_publish(*, at: datetime) -> GatewaySnapshot:
    """The newest snapshot, issued now if its content has changed."""
    lock_in_transaction(AdvisoryLock.PUBLISH_GATEWAY_SNAPSHOT)
    content = selectors.snapshot_content(at=at)
    digest = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
    latest = selectors.latest_snapshot()
    if latest is not None and latest.digest == digest and at - latest.issued_at < REISSUE_AFTER:
        return latest
    snapshot = GatewaySnapshot(
        digest=digest, issued_at=at, body=encrypt(json.dumps(content).encode())
    )
    snapshot.save()
    GatewaySnapshot.objects.filter(version__lte=snapshot.version - STORED_SNAPSHOTS).delete()
    return snapshot


def snapshot_body(snapshot: GatewaySnapshot) -> bytes:
    """The JSON that a gateway gets."""
    head = {
        "version": snapshot.version,
        "issued_at": snapshot.issued_at.isoformat(),
        "max_stale_seconds": int(MAX_SNAPSHOT_AGE.total_seconds()),
    }
    return json.dumps({**head, **json.loads(decrypt(snapshot.body))}).encode()


def gateway_mark_seen(*, name: str, version: int, at: datetime) -> None:
    """Record the heartbeat of a gateway and the snapshot version that it has."""
    Gateway.objects.update_or_create(name=name, defaults={"last_seen_at": at, "version": version})


@transaction.atomic
def usage_batch_record(*, gateway: str, sequence: int, records: Sequence[dict[str, Any]]) -> bool:
    """Store a batch of usage records; False if it was stored before."""
    batch, created = UsageBatch.objects.get_or_create(gateway=gateway, sequence=sequence)
    if not created:
        return False
    keys = {
        key.uid: key for key in ApiKey.objects.filter(uid__in={one.get("key") for one in records})
    }
    UsageRecord.objects.bulk_create(
        _record(batch, record, keys.get(str(record.get("key")))) for record in records
    )
    return True


def _record(batch: UsageBatch, record: dict[str, Any], key: ApiKey | None) -> UsageRecord:
    return UsageRecord(
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
