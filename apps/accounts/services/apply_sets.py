"""Apply sets: which objects a set of documents has, so that ``ninefold apply --prune`` deletes no others."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.utils.translation import gettext as _

from apps.accounts.models import ApplySet, ApplySetObject, Team, User
from apps.accounts.services.audit_log import record_audit_entry

#: The greatest number of objects in a set.
MAX_OBJECTS = 10_000


class ApplySetConflict(Exception):
    """The set has another version, its name is taken, or an object belongs to another set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SetObject:
    """An object of a set, by the kind of its document."""

    kind: str
    uid: str
    name: str


@transaction.atomic
def apply_set_create(*, name: str, team: Team | None, actor: User) -> ApplySet:
    """Return a new, empty set.

    :raises ApplySetConflict: if the team, or the company, has a set of that name.
    """
    try:
        with transaction.atomic():
            row = ApplySet.objects.create(name=name, team=team, created_by=actor)
    except IntegrityError:
        raise ApplySetConflict(
            _("an apply set named %(name)s already exists") % {"name": name}
        ) from None
    record_audit_entry(row, actor=actor, action="apply_set.create", team=team, name=name)
    return row


@transaction.atomic
def apply_set_change(
    *, apply_set: ApplySet, version: int, objects: Collection[SetObject], actor: User
) -> ApplySet:
    """Replace the objects of a set.

    :param version: the version that the caller has read.
    :raises ApplySetConflict: if the set was changed since, or an object belongs to another set.
    """
    row = ApplySet.objects.select_for_update(no_key=True).get(pk=apply_set.pk)
    if row.version != version:
        raise ApplySetConflict(
            _(
                "apply set %(name)s has version %(current)d, not %(version)d: it was changed by another apply; "
                "run yours again"
            )
            % {"name": row.name, "current": row.version, "version": version}
        )
    current = {(one.kind, one.object_uid): one for one in row.objects_of_set.all()}
    wanted = {(one.kind, one.uid): one for one in objects}
    _require_in_no_other_set(row, wanted.keys() - current.keys())
    ApplySetObject.objects.filter(
        pk__in=[current[key].pk for key in current.keys() - wanted.keys()]
    ).delete()
    try:
        with transaction.atomic():
            ApplySetObject.objects.bulk_create(
                ApplySetObject(apply_set=row, kind=one.kind, object_uid=one.uid, name=one.name)
                for key, one in wanted.items()
                if key not in current
            )
    except IntegrityError:
        raise ApplySetConflict(
            _("an object of this apply set was added to another set concurrently; run apply again")
        ) from None
    row.version += 1
    row.save(update_fields=["version", "changed_at"])
    record_audit_entry(
        row,
        actor=actor,
        action="apply_set.change",
        added=len(wanted.keys() - current.keys()),
        removed=len(current.keys() - wanted.keys()),
    )
    return row


def _require_in_no_other_set(row: ApplySet, keys: Collection[tuple[str, str]]) -> None:
    added = set(keys)
    others = ApplySetObject.objects.exclude(apply_set=row).select_related("apply_set")
    for one in others.filter(object_uid__in=[uid for _kind, uid in added]):
        if (one.kind, one.object_uid) in added:
            raise ApplySetConflict(
                _(
                    "%(kind)s %(object)s belongs to the apply set %(other)s; remove it from the documents of one "
                    "of the two sets and prune that one"
                )
                % {"kind": one.kind, "object": one.name, "other": one.apply_set.name}
            )


@transaction.atomic
def apply_set_delete(*, apply_set: ApplySet, actor: User) -> None:
    """Forget a set. Its objects stay as they are."""
    record_audit_entry(apply_set, actor=actor, action="apply_set.delete")
    apply_set.delete()
