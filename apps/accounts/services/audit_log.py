"""The audit log: record who changed what and from where; prune old entries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Model

from apps.accounts.models import AuditEntry, Team, User
from apps.accounts.selectors import RequestUser
from controlplane.persistence.audit_context import current_audit_context
from controlplane.persistence.transactions import audit_entries_deletable


def record_audit_entry(
    row: Model | None = None,
    /,
    *,
    actor: RequestUser | None,
    action: str,
    team: Team | None = None,
    uid: str = "",
    name: str = "",
    **detail: Any,
) -> None:
    """Record a change, in the same transaction.

    :param row: what was changed; its uid, its text and its team are those of the entry, unless given here.
    """
    if row is not None:
        team = team or getattr(row, "team", None)
        uid, name = uid or getattr(row, "uid", ""), name or str(row)
    user = actor if isinstance(actor, User) else None
    source = current_audit_context()
    AuditEntry.objects.create(
        actor=user,
        actor_name=user.username if user else "system",
        team=team,
        action=action,
        object_uid=uid,
        object_name=name[:200],
        detail=detail,
        remote_address=source.address,
        request_id=source.request_id,
    )


@transaction.atomic
def audit_prune(*, before: datetime) -> int:
    """Delete entries older than that instant; return their number.

    The only way to delete an entry: the database refuses every other.
    """
    with audit_entries_deletable():
        count = AuditEntry.objects.filter(at__lt=before).delete()[0]
    if count:
        record_audit_entry(actor=None, action="audit.prune", count=count, before=before.isoformat())
    return count
