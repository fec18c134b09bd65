"""Usage, counted once whatever the network does."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.db import transaction

from apps.serving.models import ApiKey, UsageBatch, UsageRecord


@transaction.atomic
def usage_record(*, gateway: str, sequence: int, records: Sequence[dict[str, Any]]) -> bool:
    """Count a batch; False if it had been counted before."""
    batch, fresh = UsageBatch.objects.get_or_create(gateway=gateway, sequence=sequence)
    if not fresh:
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
