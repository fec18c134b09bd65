"""Priority classes: created, changed and deleted."""

from __future__ import annotations

from collections.abc import Mapping

from django.db import transaction

from apps.accounts.models import User
from apps.accounts.selectors import require_permission
from apps.accounts.services import record_audit_entry
from apps.quotas.models import Claim, PriorityClass
from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.reasons import FieldRefused
from controlplane.domain.quotas.claims import ClaimState

#: Priority classes of a new installation.
DEFAULT_CLASSES: Mapping[str, tuple[int, str]] = {
    "urgent": (100, "Workloads start ahead of all others in the queue."),
    "high": (10, "Workloads start ahead of those of normal priority."),
    "normal": (0, "Default."),
    "low": (-10, "Workloads start last and are preempted first."),
}


def priority_classes_ensure(*, using: str | None = None) -> None:
    """Create the default classes if there is none."""
    rows = PriorityClass.objects.using(using)
    if not rows.exists():
        rows.bulk_create(
            PriorityClass(name=name, value=value, description=description)
            for name, (value, description) in DEFAULT_CLASSES.items()
        )


class PriorityRefused(FieldRefused):
    """The change of the priority class is invalid."""


@transaction.atomic
def priority_class_save(
    *,
    name: str,
    value: int,
    description: str,
    actor: User,
    existing: PriorityClass | None = None,
) -> PriorityClass:
    """Create a class, or change the existing one. Existing workloads keep their priority value.

    :raises PermissionRefused: unless the actor is an administrator of the company.
    :raises PriorityRefused: if another class has that name or that value.
    """
    require_permission(actor, Permission.MANAGE_QUEUES, team=None)
    row = existing or PriorityClass()
    others = PriorityClass.objects.select_for_update().exclude(pk=row.pk)
    for other in others:
        if other.name == name:
            raise PriorityRefused(
                "priority_class.name.already_exists",
                "a priority class named {name} already exists; choose another name",
                name=name,
                field="name",
            )
        if other.value == value:
            raise PriorityRefused(
                "priority_class.value.already_exists",
                "priority class {name} already has the value {value}; choose another value",
                name=other.name,
                value=value,
                field="value",
            )
    before = _audited_columns(row) if existing else None
    row.name, row.value, row.description = name, value, description
    row.save()
    action = "priority_class.edit" if existing else "priority_class.create"
    record_audit_entry(
        row, actor=actor, action=action, name=name, before=before, after=_audited_columns(row)
    )
    return row


@transaction.atomic
def priority_class_delete(*, row: PriorityClass, actor: User, force: bool = False) -> int:
    """Delete the class; active claims keep their priority value. Returns the number of these claims.

    :raises PermissionRefused: unless the actor is an administrator of the company.
    :raises PriorityRefused: if active claims have its value, unless forced; or if it is the default class, 0.
    """
    require_permission(actor, Permission.MANAGE_QUEUES, team=None)
    if row.value == 0:
        raise PriorityRefused(
            "priority_class.deletion.default",
            "priority class {name} is the default and cannot be deleted",
            name=row.name,
            field="value",
        )
    live = Claim.objects.exclude(state=ClaimState.RELEASED).filter(priority=row.value).count()
    if live and not force:
        raise PriorityRefused(
            "priority_class.deletion.in_use",
            "{claims} pending or running claims have priority {value}; they keep the "
            "value without the name {name}. Set force to delete the class",
            claims=live,
            value=row.value,
            name=row.name,
            field="value",
        )
    uid = row.uid
    before = _audited_columns(row)
    row.delete()
    record_audit_entry(
        actor=actor,
        action="priority_class.delete",
        uid=uid,
        name=row.name,
        before=before,
        live=live,
    )
    return live


def _audited_columns(row: PriorityClass) -> dict[str, object]:
    return {"name": row.name, "value": row.value, "description": row.description}
