"""What gateways are told: versioned, so that they ask only for what is new."""

from __future__ import annotations

import hashlib
import json
from datetime import datetime, timedelta

from django.db import transaction

from apps.serving import selectors
from apps.serving.models import Gateway, GatewaySnapshot
from controlplane.persistence.encryption import decrypt, encrypt
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction

#: A gateway serves from its last snapshot for this long when it cannot reach us.
MAX_STALE = timedelta(hours=24)
#: An unchanged snapshot is issued anew this often, so that it never grows stale while we are up.
REISSUE_AFTER = timedelta(hours=1)
KEPT = 20


@transaction.atomic
def snapshot_publish(*, at: datetime) -> GatewaySnapshot:
    """The newest snapshot, issued now if what it says has changed."""
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
    GatewaySnapshot.objects.filter(version__lte=snapshot.version - KEPT).delete()
    return snapshot


def snapshot_body(snapshot: GatewaySnapshot) -> bytes:
    """The JSON that a gateway gets."""
    head = {
        "version": snapshot.version,
        "issued_at": snapshot.issued_at.isoformat(),
        "max_stale_seconds": int(MAX_STALE.total_seconds()),
    }
    return json.dumps({**head, **json.loads(decrypt(snapshot.body))}).encode()


def gateway_seen(*, name: str, version: int, at: datetime) -> None:
    """It is alive and has that version."""
    Gateway.objects.update_or_create(name=name, defaults={"last_seen_at": at, "version": version})
