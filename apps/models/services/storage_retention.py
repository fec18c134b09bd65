"""Retention: what the rules let go, planned by a pure function and done one by one, each checked again."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import datetime, timedelta

from django.db import transaction

from apps.accounts.models import Team
from apps.accounts.services import audit
from apps.models.models import Artifact, StorageRun
from apps.models.selectors import storage as selectors
from apps.models.selectors.sources import sources
from apps.models.services.storage import artifact_remove, lock_for_removal
from apps.models.services.storage_runs import storage_run
from controlplane.domain.storage.retention import (
    Removal,
    RetentionItem,
    RetentionItemKind,
    RetentionPlan,
    RetentionRules,
    plan,
)
from controlplane.persistence.leases import LeaderLease, leader_lease

log = logging.getLogger(__name__)

LEASE = "registry.retention"
LEASE_TTL = timedelta(minutes=5)
#: Things removed in one round; what is left follows in the next.
BATCH = 500
#: Lines that the history of one round keeps.
DETAILS = 50
#: Rounds that the history keeps.
HISTORY = 500
#: Who has removed it, where a rule did.
BY_RULE = "retention"


def retention_items(*, at: datetime) -> list[RetentionItem]:
    """Everything that a rule could remove, with what holds it."""
    held = selectors.holds(at=at)
    return [*_versions(held), *(item for source in sources() for item in source.items())]


def _versions(held: dict[int, list[str]]) -> Iterator[RetentionItem]:
    rows = Artifact.objects.filter(
        kind=Artifact.Kind.MODEL,
        removed_at=None,
        deleted_at=None,
        modelversion__isnull=False,
    ).select_related("team", "modelversion__line__team", "modelversion__base")
    for artifact in rows.iterator(chunk_size=200):
        version = artifact.modelversion
        owner = version.line.team
        # Its own reverse link would be asked for again otherwise.
        version.artifact = artifact
        yield RetentionItem(
            kind=RetentionItemKind.VERSION,
            uid=version.uid,
            name=str(version),
            team=owner.uid if owner else "",
            size=artifact.size,
            at=version.created_at,
            series=version.line.uid,
            number=version.number,
            pinned=artifact.pinned_at is not None,
            held="; ".join(held.get(artifact.pk, ())),
            needs=selectors.needs_of(version),
        )


def retention_plan(*, at: datetime) -> RetentionPlan:
    """What the next round removes, by the rules as they are."""
    own, default = selectors.rules_by_team()
    return plan(retention_items(at=at), rules=own, default=default, at=at)


def retention_preview(*, team: Team | None, rules: RetentionRules, at: datetime) -> RetentionPlan:
    """What a round would remove of that team's, or of all that have no rules, if the rules were these."""
    own, default = selectors.rules_by_team()
    if team is None:
        default = rules
    else:
        own[team.uid] = rules
    found = plan(retention_items(at=at), rules=own, default=default, at=at)

    def concerned(item: RetentionItem) -> bool:
        return item.team not in own if team is None else item.team == team.uid

    return RetentionPlan(
        removals=tuple(one for one in found.removals if concerned(one.item)),
        spared=tuple(item for item in found.spared if concerned(item)),
    )


def retention_run(*, at: datetime) -> StorageRun | None:
    """One round: deleted things whose time is over, then what the rules let go.

    None if another worker is at it.
    """
    with leader_lease(LEASE, ttl=LEASE_TTL) as lease:
        if lease is None:
            return None
        with storage_run(StorageRun.Kind.RETENTION, at=at) as run:
            run.removed, run.removed_bytes = _expire(at=at)
            found = retention_plan(at=at)
            run.examined = len(found.removals) + len(found.spared)
            for removal in _turns(found, lease):
                if removal_apply(removal, at=at):
                    _note(run, removal)
        _forget_old_runs()
        return run


def _turns(found: RetentionPlan, lease: LeaderLease) -> Iterator[Removal]:
    for removal in found.removals[:BATCH]:
        if not lease.renew(ttl=LEASE_TTL):
            log.warning("a round of retention took too long and was cut off")
            return
        yield removal


def _note(run: StorageRun, removal: Removal) -> None:
    run.removed += 1
    run.removed_bytes += removal.item.size
    if len(run.details) < DETAILS:
        line = {
            "kind": removal.item.kind.value,
            "name": removal.item.name,
            "size": removal.item.size,
            "reason": removal.reason,
        }
        run.details.append(line)


def _expire(*, at: datetime) -> tuple[int, int]:
    """Deleted things that can no longer be had back give up their bytes: how many, and how much."""
    count = size = 0
    for artifact in list(selectors.expired(at=at)[:BATCH]):
        with transaction.atomic():
            row = lock_for_removal(artifact)
            if row.deleted_at is None or row.removed_at is not None:
                continue
            if selectors.obstacles(row, at=at):
                # Somebody took it up just as it was deleted: it waits for them.
                continue
            artifact_remove(row, at=at, reason=row.deletion_reason, by=row.deleted_by)
        count, size = count + 1, size + row.size
    return count, size


def removal_apply(removal: Removal, *, at: datetime) -> bool:
    """Do it, unless somebody has come to need it since it was planned."""
    item = removal.item
    if item.kind is RetentionItemKind.VERSION:
        return _remove_version(removal, at=at)
    removed = any(source.remove(item, at=at) for source in sources())
    if removed:
        log.info("bytes were removed by rule", extra={"kind": item.kind.value, "uid": item.uid})
    return removed


@transaction.atomic
def _remove_version(removal: Removal, *, at: datetime) -> bool:
    artifact = Artifact.objects.filter(modelversion__uid=removal.item.uid).first()
    if artifact is None:
        return False
    row = lock_for_removal(artifact)
    if not row.usable or selectors.obstacles(row, at=at, by_rule=True):
        return False
    artifact_remove(row, at=at, reason=f"removed by a rule: {removal.reason}", by=BY_RULE)
    audit(
        actor=None,
        action="storage.retention",
        team=row.team,
        uid=row.uid,
        name=removal.item.name,
        rule=removal.rule.value,
    )
    return True


def _forget_old_runs() -> None:
    edge = StorageRun.objects.order_by("-id").values_list("id", flat=True)[HISTORY : HISTORY + 1]
    for pk in edge:
        StorageRun.objects.filter(id__lte=pk).delete()
