"""The queue tree is changed, by whichever door, as one edit of some queues.

Every change takes the lock of the tree, and then every queue ``FOR UPDATE`` in the order of their primary keys.
Whoever makes a claim holds its queue ``FOR KEY SHARE`` until the claim is committed; a cycle that admits claims
locks the queues in the same order, after cards and claims. An edit never locks a card or a claim, so none of them
ever waits for it in a circle; and which queues have claims, once it has the locks, stays so until it is saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime

from django.db import connection, transaction
from django.db.models import Q

from apps.accounts.models import Team, User
from apps.accounts.selectors import PermissionRefused
from apps.accounts.services import audit
from apps.quotas import selectors
from apps.quotas.models import Claim, Entitlement, Queue, QueueChange
from apps.quotas.selectors.policies import policy_now
from apps.quotas.selectors.queues import queues_alive
from apps.quotas.selectors.sights import sight_of
from apps.quotas.selectors.trees import (
    surroundings,
    tree_documents,
    tree_fingerprint,
    tree_rights,
)
from controlplane.domain.fields import Finding
from controlplane.domain.queue_documents import (
    POLICIES,
    Documents,
    QueueDifference,
    QueueDocument,
    as_json,
    changes,
    from_json,
)
from controlplane.domain.queue_edits import (
    TreeAct,
    TreeEdit,
    edited,
    fingerprint,
    is_new,
    named,
    narrowed,
)
from controlplane.domain.queue_previews import (
    Gain,
    Reclaim,
    TreePreview,
    effects,
    several_cycles,
)
from controlplane.domain.queue_rights import refusals
from controlplane.domain.queue_rules import judged
from controlplane.outbox.messages import publish
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.models import new_uid

__all__ = [
    "Gain",
    "Reclaim",
    "TreeAct",
    "TreeEdit",
    "TreeMoved",
    "TreeOutdated",
    "TreePreview",
    "TreeRefused",
    "TreeUnchanged",
    "change_edit",
    "change_revert",
    "queue_pin",
    "queue_retired",
    "tree_apply",
    "tree_check",
    "tree_fingerprint",
    "tree_lock",
    "tree_preview",
]

#: Columns that hold what the document says under the same name.
_PLAIN = ("name", "state", "description", "weight", *POLICIES, "running_per_person")


class TreeRefused(Exception):
    """The tree cannot be like that; ``findings`` say why, each with the queue and the numbers."""

    def __init__(self, *findings: Finding) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


class TreeUnchanged(TreeRefused):
    """The tree is like that already."""


class TreeMoved(Exception):
    """Somebody else changed the tree meanwhile; ``differences`` say what, as far as that is known."""

    def __init__(self, message: str, *differences: QueueDifference) -> None:
        super().__init__(message)
        self.differences = differences


class TreeOutdated(TreeMoved):
    """The tree is not the one that was looked at any more."""


def tree_check(edit: TreeEdit) -> tuple[Finding, ...]:
    """What forbids the edit, whoever asks; empty if it may be saved."""
    documents = tree_documents()
    return (
        *_strangers(edit, documents),
        *judged(documents, edited(documents, edit), surroundings()).findings,
    )


def tree_preview(edit: TreeEdit, *, at: datetime, by_person: User) -> TreePreview:
    """What saving the edit would mean now. Nothing is touched.

    :raises PermissionRefused: if that person may not make it.
    """
    documents = tree_documents()
    after = edited(documents, edit)
    _require(documents, after, by_person)
    around = surroundings()
    judgement = judged(documents, after, around)
    preview = TreePreview(
        differences=changes(documents, after),
        findings=(*_strangers(edit, documents), *judgement.findings),
        warnings=judgement.warnings,
        fingerprint=fingerprint(documents),
    )
    if preview.findings or not preview.differences:
        return preview
    with transaction.atomic():
        snapshot = selectors.snapshot()
    effect = effects(snapshot, documents, after, at=at, policy=several_cycles(policy_now()))
    return replace(preview, gains=effect.gains, reclaims=_told(effect.reclaims, by_person))


@transaction.atomic
def tree_apply(
    edit: TreeEdit, *, actor: User, at: datetime, reverts: QueueChange | None = None
) -> QueueChange:
    """Save the edit: rows, history, audit, and the news that make a cycle look again.

    :raises PermissionRefused: if the actor may not make it.
    :raises TreeOutdated: if the tree is not the one that was looked at any more.
    :raises TreeRefused: if the tree cannot be like that, or is so already.
    """
    documents = _locked(edit)
    if edit.seen and edit.seen != fingerprint(documents):
        raise _outdated()
    edit = narrowed(documents, edit)
    after = edited(documents, edit)
    _require(documents, after, actor)
    if not edit.queues:
        message = "nothing would change: the queues are like that already"
        raise TreeUnchanged(Finding(field="", message=message))
    if wrong := (*_strangers(edit, documents), *judged(documents, after, surroundings()).findings):
        raise TreeRefused(*wrong)
    saved = named(edit, {uid: new_uid() for uid in edit.queues if is_new(uid)})
    rows = _written(saved, at=at)
    change = QueueChange.objects.create(
        actor=actor,
        actor_name=actor.username,
        act=edit.act,
        note=edit.note,
        before={uid: as_json(documents[uid]) if uid in documents else None for uid in saved},
        after={uid: document and as_json(document) for uid, document in saved.items()},
        reverts=reverts,
    )
    # One entry for each queue, so that each team finds what happened to its own.
    action = TreeAct.EDIT if edit.act == TreeAct.BULK else edit.act
    for uid in saved:
        audit(
            actor=actor,
            action=f"queue.{action}",
            team=rows[uid].team,
            uid=uid,
            name=rows[uid].name,
            change=change.uid,
            before=change.before[uid],
            after=change.after[uid],
        )
    publish("queues.changed", change_uid=change.uid)
    return change


def change_edit(change: QueueChange, *, note: str = "") -> TreeEdit:
    """The edit that would take a change back.

    :raises TreeMoved: if a queue that it touched is not as it left it any more.
    """
    documents = tree_documents()
    left = _documents_of(change.after)
    now = {uid: documents[uid] for uid in change.after if uid in documents}
    if since := changes(left, now):
        told = "; ".join(one.message for one in since)
        raise TreeMoved(f"the queues were changed again since: {told}", *since)
    before = _documents_of(change.before)
    return TreeEdit(
        queues={uid: before.get(uid) for uid in change.before},
        act=TreeAct.REVERT,
        note=note,
        seen=fingerprint(documents),
    )


@transaction.atomic
def change_revert(change: QueueChange, *, actor: User, at: datetime, note: str = "") -> QueueChange:
    """Take a change back: what it made is retired, what it retired is there again.

    :raises PermissionRefused: if the actor may not make that change.
    :raises TreeMoved: if a queue that it touched is not as it left it any more.
    :raises TreeRefused: if the tree cannot be like that now.
    """
    tree_lock()
    return tree_apply(change_edit(change, note=note), actor=actor, at=at, reverts=change)


def tree_lock() -> None:
    """Keep everybody else from changing the tree until the transaction ends."""
    lock_in_transaction(AdvisoryLock.CHANGE_QUEUES)


def queue_pin(*queues: Queue) -> None:
    """Keep the queues from being changed until the transaction ends; any number may do so at once.

    A foreign key to one does the same, but is only looked at when the transaction ends.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT FROM quotas_queue WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE",
            [[queue.pk for queue in queues]],
        )


def queue_retired(document: QueueDocument) -> TreeEdit:
    """The edit by which a queue goes."""
    return TreeEdit(queues={document.uid: None}, act=TreeAct.RETIRE)


# -- Inside --


def _documents_of(kept: Mapping[str, dict[str, object] | None]) -> Documents:
    return {uid: from_json(document) for uid, document in kept.items() if document}


def _locked(edit: TreeEdit) -> Documents:
    """The tree as it is, and stays until the transaction ends."""
    # Without a single queue there would be no row to wait for.
    tree_lock()
    rows = Queue.objects.filter(Q(retired_at=None) | Q(uid__in=list(edit.queues)))
    list(rows.select_for_update(of=("self",)).order_by("id").values_list("pk", flat=True))
    return tree_documents()


def _require(before: Documents, after: Documents, person: User) -> None:
    """:raises PermissionRefused: if that person may not turn one tree into the other."""
    if refused := refusals(before, after, tree_rights(person)):
        raise PermissionRefused("; ".join(refused))


def _strangers(edit: TreeEdit, documents: Documents) -> tuple[Finding, ...]:
    """Queues of the edit that there are not: neither in the tree, nor new, nor retired."""
    unknown = {uid for uid in edit.queues if uid not in documents and not is_new(uid)}
    retired = {uid for uid in unknown if edit.queues[uid] is not None}
    there = Queue.objects.filter(uid__in=retired).exclude(retired_at=None)
    unknown -= set(there.values_list("uid", flat=True))
    return tuple(
        Finding(field=uid, message=f"there is no queue with the uid {uid}; look at the tree again")
        for uid in sorted(unknown)
    )


def _outdated() -> TreeOutdated:
    last = QueueChange.objects.order_by("-id").first()
    if last is None:
        return TreeOutdated("the queues were changed meanwhile; look at them again, then save")
    since = changes(_documents_of(last.before), _documents_of(last.after))
    message = f"the queues were changed meanwhile, last by {last.actor_name}; look at them again, then save"
    return TreeOutdated(message, *since)


def _written(saved: Mapping[str, QueueDocument | None], *, at: datetime) -> dict[str, Queue]:
    """The rows of those queues by uid, as their documents say."""
    rows = {row.uid: row for row in Queue.objects.filter(uid__in=list(saved))}
    kept = {uid: document for uid, document in saved.items() if document is not None}
    # Two queues may swap names: for a moment each bears its uid.
    renamed = [uid for uid in kept if uid in rows and rows[uid].name != kept[uid].name]
    for uid in renamed:
        Queue.objects.filter(uid=uid).update(name=uid)
    for uid in kept:
        if uid not in rows:
            rows[uid] = Queue.objects.create(uid=uid, name=uid)
    parents = {
        row.uid: row for row in Queue.objects.filter(uid__in=[one.parent for one in kept.values()])
    }
    teams = {
        team.slug: team
        for team in Team.objects.filter(slug__in=[one.team for one in kept.values()])
    }
    for uid, document in kept.items():
        _fill(
            rows[uid], document, parent=parents.get(document.parent), team=teams.get(document.team)
        )
    for uid in set(rows) - set(kept):
        rows[uid].retired_at = at
    Queue.objects.bulk_update(rows.values(), (*_PLAIN, "parent", "team", "retired_at"))
    _entitle(rows, kept)
    return rows


def _fill(row: Queue, document: QueueDocument, *, parent: Queue | None, team: Team | None) -> None:
    for name in _PLAIN:
        setattr(row, name, getattr(document, name))
    row.parent, row.team, row.retired_at = parent, team, None


def _entitle(rows: Mapping[str, Queue], kept: Mapping[str, QueueDocument]) -> None:
    """What the queues state, in place of what they stated."""
    Entitlement.objects.filter(queue__uid__in=list(kept)).delete()
    Entitlement.objects.bulk_create(
        Entitlement(
            queue=rows[uid],
            chip=chip,
            reserved=stated.reserved,
            guaranteed=stated.guaranteed,
            cap=stated.cap,
        )
        for uid, document in kept.items()
        for chip, stated in document.entitlements.items()
    )


def _told(reclaims: tuple[Reclaim, ...], person: User) -> tuple[Reclaim, ...]:
    """With the names of the work, where that person may know them, and of its team."""
    claims = {
        claim.uid: claim
        for claim in Claim.objects.filter(uid__in=[one.uid for one in reclaims]).select_related(
            "team"
        )
    }
    sight = sight_of(person, queues_alive())
    return tuple(
        replace(
            one,
            team=claims[one.uid].team.name,
            work_name=claims[one.uid].work_name if sight.names(claims[one.uid]) else "",
        )
        for one in reclaims
        if one.uid in claims
    )
