"""Permissions on queues: which changes of the tree a user may make.

Company administrators may change everything. A queue admin of a team may change that team's part of the tree:
its *topmost* queues, which an administrator assigned, and the queues below them. Below, everything may be
changed within the quotas of the topmost queue. On the topmost queue only changes are permitted that take nothing
from other teams::

    science               for every team: read only
      └─ speech           topmost of team speech: state, description, limit per user; lend more, borrow less
           ├─ dialects    create, edit, move, retire, within the 96 cards of speech
           └─ noise       the same
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, fields

from controlplane.domain.common.reasons import Reason
from controlplane.domain.quotas.queue_documents import (
    QUEUE_FIELDS,
    Documents,
    QueueDocument,
    ancestor_uids,
    card_unit_label,
    queue_snapshots,
)
from controlplane.domain.quotas.queues import TOTAL, QueueSnapshot
from controlplane.domain.quotas.validation import QueueChildren

#: What a queue admin may change of a topmost queue as they like.
_HARMLESS = frozenset({"state", "description", "max_running_per_user", "preempts"})
#: Fields of a topmost queue, and the value that takes nothing from other teams.
_TOWARDS_OTHERS = {"lends": True, "borrows": False, "reclaims": False}


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuePermissions:
    """The part of the tree that a user may change."""

    #: An administrator of the company.
    everything: bool = False
    #: Slugs of the teams whose queues they manage.
    teams: Set[str] = frozenset()


def permission_errors(
    before: Documents, after: Documents, rights: QueuePermissions
) -> tuple[str, ...]:
    """Return why the user may not make the changes between the two trees; empty if they may."""
    if rights.everything:
        return ()
    found: dict[str, None] = {}
    for uid in sorted({*before, *after}):
        old, new = before.get(uid), after.get(uid)
        if old != new:
            found.update(dict.fromkeys(_refused_changes(old, new, before, after, rights)))
    found.update(dict.fromkeys(_quota_increases(before, after, rights)))
    return tuple(found)


def may_change_queue(uid: str, documents: Documents, rights: QueuePermissions) -> bool:
    """Whether there is anything about the queue that they may change."""
    return rights.everything or documents[uid].team in rights.teams


def may_add_child_queue(uid: str, documents: Documents, rights: QueuePermissions) -> bool:
    """Whether they may create queues below it; an empty uid is the top level."""
    return rights.everything or (uid in documents and may_change_queue(uid, documents, rights))


def is_topmost(uid: str, documents: Documents, rights: QueuePermissions) -> bool:
    """Whether an administrator assigned it to one of their teams."""
    document = documents[uid]
    above = documents.get(document.parent)
    return document.team in rights.teams and (above is None or above.team not in rights.teams)


def is_assigned_queue(uid: str, documents: Documents, rights: QueuePermissions) -> bool:
    """Whether an administrator of the company gave the queue to a team of the user."""
    return not rights.everything and is_topmost(uid, documents, rights)


def administrator_only_fields(document: QueueDocument) -> frozenset[str]:
    """Names of the fields of a topmost queue that its queue admins cannot change."""
    values = {name: getattr(document, name) for name in QUEUE_FIELDS if name not in _HARMLESS}
    return frozenset(
        name for name, value in values.items() if _TOWARDS_OTHERS.get(name, value) == value
    )


def _refused_changes(
    old: QueueDocument | None,
    new: QueueDocument | None,
    before: Documents,
    after: Documents,
    rights: QueuePermissions,
) -> Iterator[str]:
    for document, tree in ((old, before), (new, after)):
        if document is not None and not _is_administered(document.uid, tree, rights):
            yield _not_administered_message(document)
            return
    topmost_before = old is not None and is_topmost(old.uid, before, rights)
    topmost_after = new is not None and is_topmost(new.uid, after, rights)
    if old is not None and new is not None and topmost_before:
        yield from _topmost_queue_change_errors(old, new)
    elif old is not None and topmost_before:
        yield Reason(
            "queue.permission.retire_assigned",
            "queue {queue} was assigned to team {team} by an administrator of the "
            "company; only an administrator of the company can retire it",
            queue=old.name,
            team=old.team,
        )
    elif new is not None and topmost_after:
        yield Reason(
            "queue.permission.outside_team",
            "queue {queue} would not be below a queue of team {team}; only an "
            "administrator of the company can place it there",
            queue=new.name,
            team=new.team,
        )


def _is_administered(uid: str, documents: Documents, rights: QueuePermissions) -> bool:
    return uid in documents and may_change_queue(uid, documents, rights)


def _not_administered_message(document: QueueDocument) -> str:
    if document.team:
        return Reason(
            "queue.permission.team_queue",
            "queue {queue} is for team {team}; changing it requires the permission "
            "to manage queues in that team",
            queue=document.name,
            team=document.team,
        )
    return Reason(
        "queue.permission.shared_queue",
        "queue {queue} is for every team; only an administrator of the company can change it",
        queue=document.name,
    )


def _topmost_queue_change_errors(old: QueueDocument, new: QueueDocument) -> Iterator[str]:
    for name in (field.name for field in fields(QueueDocument)):
        value = getattr(new, name)
        if getattr(old, name) == value or name in _HARMLESS:
            continue
        if _TOWARDS_OTHERS.get(name) == value:
            continue
        if name in _TOWARDS_OTHERS:
            yield Reason(
                "queue.permission.policy_change",
                "queue {queue} would use more of the quota of other teams because of the "
                "change of {field}; only an administrator of the company can allow this",
                queue=old.name,
                field=name,
            )
        else:
            what = "cards" if name == "entitlements" else name
            yield Reason(
                "queue.permission.shared_setting",
                "other teams depend on the {field} of queue {queue}; only an "
                "administrator of the company can change that",
                field=what,
                queue=old.name,
            )


def _quota_increases(
    before: Documents, after: Documents, rights: QueuePermissions
) -> Iterator[str]:
    """More below a topmost queue than it has."""
    was, then = queue_snapshots(before, {}), queue_snapshots(after, {})
    below_before, below_after = QueueChildren(was), QueueChildren(then)
    for uid in sorted(after):
        if uid not in before or not is_topmost(uid, after, rights):
            continue
        if _subtree_documents(uid, before) == _subtree_documents(uid, after):
            continue
        top = then[uid]
        for chip in _subtree_chips(uid, after):
            old, new = (
                _guaranteed_below(was[uid], chip, below_before),
                _guaranteed_below(top, chip, below_after),
            )
            has = top.quota(chip).guaranteed
            if new > max(has, old):
                yield Reason(
                    "queue.permission.guarantee_exceeded",
                    "the guaranteed quotas of the queues below {queue} would total "
                    "{guaranteed} {unit}, and {queue} is guaranteed {parent_guaranteed}; an "
                    "administrator of the company can raise it",
                    queue=top.name,
                    guaranteed=new,
                    unit=card_unit_label(chip),
                    parent_guaranteed=has,
                )
            old, new = (
                _reserved_in_subtree(was[uid], chip, below_before),
                _reserved_in_subtree(top, chip, below_after),
            )
            keeps = _reserved_by_queue(top, chip)
            if new > max(keeps, old):
                yield Reason(
                    "queue.permission.reservation_exceeded",
                    "the queues below {queue} would reserve {reserved} {unit}, unavailable "
                    "to others even while idle, and {queue} may reserve {parent_reserved}; "
                    "reserve less, or let them lend",
                    queue=top.name,
                    reserved=new,
                    unit=card_unit_label(chip),
                    parent_reserved=keeps,
                )


def _subtree_documents(uid: str, documents: Documents) -> Mapping[str, QueueDocument]:
    return {one: documents[one] for one in documents if uid in ancestor_uids(one, documents)}


def _subtree_chips(uid: str, documents: Documents) -> tuple[str, ...]:
    chips = {
        chip for one in _subtree_documents(uid, documents).values() for chip in one.entitlements
    }
    return (*sorted(chips - {TOTAL}), TOTAL)


def _guaranteed_below(view: QueueSnapshot, chip: str, tree: QueueChildren) -> int:
    """Guarantees below, by chip; totals only where they are set, as they apply to any chip."""
    return sum(
        child.quota(chip).guaranteed or _guaranteed_below(child, chip, tree)
        for child in tree.children(view.uid)
    )


def _reserved_in_subtree(view: QueueSnapshot, chip: str, tree: QueueChildren) -> int:
    """What those below keep from other queues, used or not."""
    return sum(
        max(_reserved_by_queue(child, chip), _reserved_in_subtree(child, chip, tree))
        for child in tree.children(view.uid)
    )


def _reserved_by_queue(view: QueueSnapshot, chip: str) -> int:
    quota = view.quota(chip)
    return quota.reserved if view.lends else max(quota.reserved, quota.guaranteed)
