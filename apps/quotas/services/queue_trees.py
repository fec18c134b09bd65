"""Changes of the queue tree: from admin, REST and files, each as one edit of some queues.

Every change takes the lock of the tree, and then every queue ``FOR UPDATE`` in the order of their primary keys.
Claim requests lock their queue ``FOR KEY SHARE`` until the claim is committed; a cycle that admits claims locks
the queues in the same order, after cards and claims. An edit never locks a card or a claim, so there is no
deadlock; and under the locks, the set of queues with claims does not change until the edit is saved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q

from apps.accounts.models import Team, User
from apps.accounts.selectors import PermissionRefused
from apps.accounts.services import record_audit_entry
from apps.quotas import selectors
from apps.quotas.models import Entitlement, Queue, QueueChange
from apps.quotas.selectors.queue_trees import (
    queue_tree_context,
    queue_tree_documents,
    queue_tree_permissions,
    retired_queues,
)
from apps.quotas.selectors.queues import queue_visibility_of, queues_active
from apps.quotas.selectors.scheduling_cycles import current_scheduling_policy
from apps.quotas.selectors.simulations import PreemptedWorkload, preempted_workloads
from controlplane.domain.common.reasons import Reason, join_reasons
from controlplane.domain.common.spec_fields import FieldFinding, field_finding
from controlplane.domain.quotas.permissions import permission_errors
from controlplane.domain.quotas.queue_documents import (
    PLAIN_FIELDS,
    Documents,
    QueueDifference,
    QueueDocument,
    TreeAction,
    TreeEdit,
    apply_tree_edit,
    is_temporary_uid,
    queue_document_from_json,
    queue_document_to_json,
    queue_tree_fingerprint,
    tree_differences,
    with_assigned_uids,
    with_restored_queues,
    without_unchanged_queues,
)
from controlplane.domain.quotas.validation import validate_tree_change
from controlplane.domain.scheduling.queue_change_preview import (
    QueueCapacityChange,
    preview_effects,
    queue_preview_policy,
)
from controlplane.outbox.messages import publish_message
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.models import new_uid
from controlplane.persistence.transactions import execute


class QueueTreeRefused(Exception):
    """The tree would be invalid; ``findings`` say why, each with the queue and the numbers."""

    def __init__(self, *findings: FieldFinding) -> None:
        super().__init__(join_reasons(finding.message for finding in findings))
        self.findings = findings


class QueueTreeUnchanged(QueueTreeRefused):
    """The edit changes nothing."""


class QueueTreeConflict(Exception):
    """The tree was changed concurrently; ``differences`` say how, as far as known."""

    def __init__(self, message: str, *differences: QueueDifference) -> None:
        super().__init__(message)
        self.differences = differences


class QueueTreeOutdated(QueueTreeConflict):
    """The tree is not the one that the user saw."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChangePreview:
    """The consequences of saving a change."""

    differences: tuple[QueueDifference, ...]
    findings: tuple[FieldFinding, ...]
    warnings: tuple[FieldFinding, ...]
    #: Fingerprint of the tree on which it is based.
    fingerprint: str
    gains: tuple[QueueCapacityChange, ...] = ()
    reclaims: tuple[PreemptedWorkload, ...] = ()


def queue_tree_preview(edit: TreeEdit, *, at: datetime, user: User) -> QueueChangePreview:
    """Preview the effects of saving the edit now. Changes nothing.

    :raises PermissionRefused: if that user may not make it.
    """
    edit = with_restored_queues(edit, retired_queues())
    documents = queue_tree_documents()
    after = apply_tree_edit(documents, edit)
    _require_tree_change_permission(documents, after, user)
    around = queue_tree_context()
    judgement = validate_tree_change(documents, after, around)
    preview = QueueChangePreview(
        differences=tree_differences(documents, after),
        findings=(*_unknown_queue_findings(edit, documents), *judgement.findings),
        warnings=judgement.warnings,
        fingerprint=queue_tree_fingerprint(documents),
    )
    if preview.findings or not preview.differences:
        return preview
    with transaction.atomic():
        snapshot = selectors.scheduling_snapshot()
    effect = preview_effects(
        snapshot, documents, after, at=at, policy=queue_preview_policy(current_scheduling_policy())
    )
    visibility = queue_visibility_of(user, queues_active())
    reclaims = preempted_workloads(effect.evictions, snapshot, visibility=visibility, at=at)
    return replace(preview, gains=effect.gains, reclaims=reclaims)


@transaction.atomic
def queue_tree_apply(
    edit: TreeEdit, *, actor: User, at: datetime, reverts: QueueChange | None = None
) -> QueueChange:
    """Save the edit: rows, history, audit, and the message that triggers a cycle.

    A new queue with name and team of a retired one is that queue with new values: its usage stays with the name.

    :raises PermissionRefused: if the actor may not make it.
    :raises QueueTreeOutdated: if the tree is not the one that the user saw.
    :raises QueueTreeRefused: if the tree would be invalid, or would not change.
    """
    queue_tree_lock()
    edit = with_restored_queues(edit, retired_queues())
    documents = _lock_queues(edit)
    if edit.seen and edit.seen != queue_tree_fingerprint(documents):
        raise _tree_outdated_error()
    edit = without_unchanged_queues(documents, edit)
    after = apply_tree_edit(documents, edit)
    _require_tree_change_permission(documents, after, actor)
    if not edit.queues:
        message = Reason(
            "queue.tree.unchanged", "nothing to save: the queues already have this configuration"
        )
        raise QueueTreeUnchanged(FieldFinding(field="", message=message))
    if wrong := (
        *_unknown_queue_findings(edit, documents),
        *validate_tree_change(documents, after, queue_tree_context()).findings,
    ):
        raise QueueTreeRefused(*wrong)
    saved = with_assigned_uids(
        edit, {uid: new_uid() for uid in edit.queues if is_temporary_uid(uid)}
    )
    rows = _write_queues(saved, at=at)
    change = QueueChange.objects.create(
        actor=actor,
        actor_name=actor.username,
        action=edit.action,
        note=edit.note,
        before={
            uid: queue_document_to_json(documents[uid]) if uid in documents else None
            for uid in saved
        },
        after={
            uid: document and queue_document_to_json(document) for uid, document in saved.items()
        },
        reverts=reverts,
    )
    # One entry per queue, so that each team sees the changes of its own.
    action = TreeAction.EDIT if edit.action == TreeAction.BULK else edit.action
    for uid in saved:
        record_audit_entry(
            actor=actor,
            action=f"queue.{action}",
            team=rows[uid].team,
            uid=uid,
            name=rows[uid].name,
            change=change.uid,
            before=change.before[uid],
            after=change.after[uid],
        )
    publish_message("queues.changed", change_uid=change.uid)
    return change


def queue_change_revert_edit(change: QueueChange, *, note: str = "") -> TreeEdit:
    """The edit that reverts a change.

    :raises QueueTreeConflict: if a queue that it changed was changed again.
    """
    documents = queue_tree_documents()
    left = _queue_documents_from_json(change.after)
    now = {uid: documents[uid] for uid in change.after if uid in documents}
    if since := tree_differences(left, now):
        raise QueueTreeConflict(
            Reason(
                "queue.revert.changed_since",
                "the queues have been changed since: {changes}",
                changes=[one.message for one in since],
            ),
            *since,
        )
    before = _queue_documents_from_json(change.before)
    return TreeEdit(
        queues={uid: before.get(uid) for uid in change.before},
        action=TreeAction.REVERT,
        note=note,
        seen=queue_tree_fingerprint(documents),
    )


@transaction.atomic
def queue_change_revert(
    change: QueueChange, *, actor: User, at: datetime, note: str = ""
) -> QueueChange:
    """Revert a change: queues that it created are retired, queues that it retired are restored.

    :raises PermissionRefused: if the actor may not make that change.
    :raises QueueTreeConflict: if a queue that it changed was changed again.
    :raises QueueTreeRefused: if the tree would be invalid.
    """
    queue_tree_lock()
    return queue_tree_apply(
        queue_change_revert_edit(change, note=note), actor=actor, at=at, reverts=change
    )


def queue_tree_lock() -> None:
    """Lock the tree against changes until the transaction ends."""
    lock_in_transaction(AdvisoryLock.CHANGE_QUEUES)


def queue_rows_lock_shared(*queues: Queue) -> None:
    """Lock the queues against changes until the transaction ends, shared with other holders.

    A foreign key does the same, but is checked only when the transaction ends.
    """
    execute(
        "SELECT FROM quotas_queue WHERE id = ANY(%s) ORDER BY id FOR KEY SHARE",
        [[queue.pk for queue in queues]],
    )


# -- Internal --


def _queue_documents_from_json(documents: Mapping[str, dict[str, object] | None]) -> Documents:
    return {
        uid: queue_document_from_json(document) for uid, document in documents.items() if document
    }


def _lock_queues(edit: TreeEdit) -> Documents:
    """The current tree, its rows locked until the transaction ends."""
    rows = Queue.objects.filter(Q(retired_at=None) | Q(uid__in=list(edit.queues)))
    list(rows.select_for_update(of=("self",)).order_by("id").values_list("pk", flat=True))
    return queue_tree_documents()


def _require_tree_change_permission(before: Documents, after: Documents, user: User) -> None:
    """:raises PermissionRefused: if that user may not make this change of the tree."""
    if refused := permission_errors(before, after, queue_tree_permissions(user)):
        raise PermissionRefused(join_reasons(refused))


def _unknown_queue_findings(edit: TreeEdit, documents: Documents) -> tuple[FieldFinding, ...]:
    """Findings for unknown queues of the edit: neither in the tree, nor new, nor retired."""
    unknown = {uid for uid in edit.queues if uid not in documents and not is_temporary_uid(uid)}
    retired = {uid for uid in unknown if edit.queues[uid] is not None}
    known = Queue.objects.filter(uid__in=retired).exclude(retired_at=None)
    unknown -= set(known.values_list("uid", flat=True))
    return tuple(
        field_finding(
            uid,
            "queue.tree.uid_not_found",
            "no queue has the UID {uid}; reload the queues",
            uid=uid,
        )
        for uid in sorted(unknown)
    )


def _tree_outdated_error() -> QueueTreeOutdated:
    last = QueueChange.objects.order_by("-id").first()
    if last is None:
        return QueueTreeOutdated("the queues were changed meanwhile; look at them again, then save")
    since = tree_differences(
        _queue_documents_from_json(last.before), _queue_documents_from_json(last.after)
    )
    message = Reason(
        "queue.tree.changed_by_other_user",
        "the queues have been changed in the meantime, last by {user}; reload them, then save",
        user=last.actor_name,
    )
    return QueueTreeOutdated(message, *since)


def _write_queues(saved: Mapping[str, QueueDocument | None], *, at: datetime) -> dict[str, Queue]:
    """Write the rows of those queues from their documents; returns them by uid."""
    rows = {row.uid: row for row in Queue.objects.filter(uid__in=list(saved))}
    documents = {uid: document for uid, document in saved.items() if document is not None}
    # Two queues may swap names: temporarily each is named by its uid.
    renamed = [uid for uid in documents if uid in rows and rows[uid].name != documents[uid].name]
    for uid in renamed:
        Queue.objects.filter(uid=uid).update(name=uid)
    for uid in documents:
        if uid not in rows:
            rows[uid] = Queue.objects.create(uid=uid, name=uid)
    parents = {
        row.uid: row
        for row in Queue.objects.filter(uid__in=[one.parent for one in documents.values()])
    }
    teams = {
        team.slug: team
        for team in Team.objects.filter(slug__in=[one.team for one in documents.values()])
    }
    for uid, document in documents.items():
        for name in PLAIN_FIELDS:
            setattr(rows[uid], name, getattr(document, name))
        rows[uid].parent = parents.get(document.parent)
        rows[uid].team = teams.get(document.team)
        rows[uid].retired_at = None
    for uid in set(rows) - set(documents):
        rows[uid].retired_at = at
    Queue.objects.bulk_update(rows.values(), (*PLAIN_FIELDS, "parent", "team", "retired_at"))
    _write_entitlements(rows, documents)
    return rows


def _write_entitlements(rows: Mapping[str, Queue], documents: Mapping[str, QueueDocument]) -> None:
    """Replace the entitlements of the queues."""
    Entitlement.objects.filter(queue__uid__in=list(documents)).delete()
    Entitlement.objects.bulk_create(
        Entitlement(queue=rows[uid], chip=chip, **asdict(configured))
        for uid, document in documents.items()
        for chip, configured in document.entitlements.items()
    )


def queue_ensure_default() -> Queue:
    """The default queue for every team; created if missing."""
    queue, _ = Queue.objects.get_or_create(name="default")
    return queue
