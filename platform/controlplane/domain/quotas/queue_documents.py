"""Queue documents, the differences between two versions of a tree, and edits of it.

Documents are the unit of edits, files, history and previews. They refer to each other by uid; a queue that is
to be created has a temporary uid, ``new:<name>``, until it is saved. Differences are a list of single facts,
each with a message. A ``TreeEdit`` is the one form of every change: console, REST, file import and revert name,
for each queue that they touch, the document that it shall have, or None if it is retired. All other queues stay
as they are.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum, StrEnum, auto
from typing import Any, Final

from controlplane.domain.common.reasons import Reason, ReasonTemplate
from controlplane.domain.quotas.queue_fields import (
    DECLARATION,
    QueueField,
    declared_queue_fields,
    queue_dataclass_field,
)
from controlplane.domain.quotas.queues import (
    QUOTA_FIELDS,
    TOTAL,
    ChipQuota,
    QueueSnapshot,
    QueueState,
)

#: Prefix of the uid of a queue that is to be created; its name follows.
NEW: Final = "new:"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDocument:
    """One queue as users write it."""

    #: Uid of the stored queue; ``new:<name>`` or empty for a new one.
    uid: str
    name: str = field(
        metadata={
            DECLARATION: QueueField(
                label="Name",
                help="Unique name of 1 to 60 Latin letters, digits, hyphens and underscores.",
                requirement=Reason(
                    "queue.requirement.name",
                    "1 to 60 Latin letters, digits, hyphens and underscores",
                ),
                pattern=r"[-a-zA-Z0-9_]+",
            )
        }
    )
    #: Uid of the queue above; empty at the top.
    parent: str = queue_dataclass_field(
        default="",
        label="Parent queue",
        help="The parent queue; none (the default) is the top level.",
    )
    #: Slug of the team; empty for every team.
    team: str = queue_dataclass_field(
        default="",
        label="Team",
        help="The only team that may use the queue; none (the default) is every team.",
    )
    state: QueueState = queue_dataclass_field(  # noqa: RUF009 (a dataclass field, as for the others)
        default=QueueState.OPEN,
        label="State",
        help="An open queue (the default) takes claims and admits them; a draining one only admits pending "
        "claims; a closed one takes and admits nothing. Running claims continue.",
        requirement=Reason("queue.requirement.state", "open, draining or closed"),
    )
    description: str = queue_dataclass_field(
        default="",
        label="Description",
        help="Text of at most 2000 characters; empty by default.",
        requirement=Reason("queue.requirement.description", "text of at most 2000 characters"),
        longest=2000,
    )
    weight: float = queue_dataclass_field(
        default=1.0,
        label="Weight",
        help="Share of idle cards relative to sibling queues, a number more than 0: 2 gets twice as much as 1, "
        "the default.",
        requirement=Reason("queue.requirement.positive_number", "a number greater than 0"),
        above_least=True,
    )
    borrows: bool = queue_dataclass_field(
        default=True,
        label="Borrowing",
        help="Allows the queue to use idle cards beyond its guaranteed quota (the default).",
    )
    lends: bool = queue_dataclass_field(
        default=True, label="Lending", help="Lends idle cards of its guarantee (the default)."
    )
    reclaims: bool = queue_dataclass_field(
        default=True,
        label="Reclaiming",
        help="Allows the queue to reclaim lent cards for pending claims (the default).",
    )
    preempts: bool = queue_dataclass_field(
        default=True,
        label="Preemption",
        help="Allows claims to preempt claims of lower priority in the same queue (the default).",
    )
    max_running_per_user: int | None = queue_dataclass_field(
        default=None,
        label="Max running claims per user",
        help=(
            "Maximum running claims of one user in the queue and its child queues, from "
            "1; by default there is no limit. To prevent all starts, close the queue."
        ),
        requirement=Reason(
            "queue.requirement.limit", "a whole number from 1, or null for no limit"
        ),
        least=1,
    )
    #: By chip, or ``TOTAL`` for all chips together; those that state nothing are left out.
    entitlements: Mapping[str, ChipQuota] = field(default_factory=dict)

    def entitlement(self, chip: str) -> ChipQuota:
        """Its quota for the chip; zero if it sets none."""
        return self.entitlements.get(chip, ChipQuota())


Documents = Mapping[str, QueueDocument]
#: The fields of a queue but for its quota.
QUEUE_FIELDS: Final = declared_queue_fields(QueueDocument)
#: Those that are values, not references.
PLAIN_FIELDS: Final = {name: each for name, each in QUEUE_FIELDS.items() if not each.reference}
#: Fields for borrowing, lending, reclaim and preemption.
POLICIES: Final = tuple(name for name, each in QUEUE_FIELDS.items() if each.value_type is bool)
#: Those that the scheduler reads as they are.
SCHEDULED_FIELDS: Final = ("weight", *POLICIES, "max_running_per_user")
#: Fields in stored changes and in queue files of version 0.1.0 → their present names.
RENAMED_FIELDS: Final[Mapping[str, str]] = {"running_per_person": "max_running_per_user"}


class DifferenceKind(StrEnum):
    CREATED = "created"
    RETIRED = "retired"
    CHANGED = "changed"


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueDifference:
    """One fact about one queue that differs between two versions."""

    kind: DifferenceKind = DifferenceKind.CHANGED
    uid: str
    #: Its name, as it is afterwards.
    queue: str
    #: The field of the document, or of the entitlement: ``reserved``, ``guaranteed``, ``cap``. Empty where the
    #: queue itself came or went.
    field: str = ""
    #: The chip, or ``TOTAL``, of an entitlement's field.
    chip: str = TOTAL
    #: Formatted values; empty for none.
    before: str = ""
    after: str = ""
    #: All of it in one sentence.
    message: str


def queue_document_to_json(document: QueueDocument) -> dict[str, Any]:
    """The document as JSON; the inverse of ``from_json``."""
    return {
        "uid": document.uid,
        **{name: each.to_json(getattr(document, name)) for name, each in QUEUE_FIELDS.items()},
        "entitlements": {
            chip: {name: getattr(one, name) for name in QUOTA_FIELDS}
            for chip, one in sorted(document.entitlements.items())
        },
    }


def queue_document_from_json(stored: Mapping[str, Any]) -> QueueDocument:
    """The document that ``as_json`` was given; what an older release did not keep has its default.

    :raises KeyError, ValueError: if it is none.
    """
    values = {RENAMED_FIELDS.get(name, name): value for name, value in stored.items()}
    return QueueDocument(
        uid=values["uid"],
        **{
            name: each.from_json(values[name])
            for name, each in QUEUE_FIELDS.items()
            if name in values or each.required
        },
        entitlements={
            chip: ChipQuota(**one) for chip, one in values.get("entitlements", {}).items()
        },
    )


def queue_snapshots(
    documents: Documents, used: Mapping[str, Mapping[str, int]]
) -> Mapping[str, QueueSnapshot]:
    """The tree as the scheduler sees it.

    :param used: cards that each queue's own claims hold now, by uid and chip.
    """
    return {
        uid: _queue_snapshot(document, used.get(uid, {})) for uid, document in documents.items()
    }


def _queue_snapshot(document: QueueDocument, used: Mapping[str, int]) -> QueueSnapshot:
    return QueueSnapshot(
        uid=document.uid,
        name=document.name,
        parent=document.parent or None,
        entitlements={chip: one for chip, one in document.entitlements.items() if chip != TOTAL},
        total=document.entitlement(TOTAL),
        used=used,
        open=document.state is not QueueState.CLOSED,
        **{name: getattr(document, name) for name in SCHEDULED_FIELDS},
    )


def queue_path(uid: str, documents: Documents) -> str:
    """Names from the top down: ``research › vision``."""
    return " › ".join(documents[one].name for one in reversed(ancestor_uids(uid, documents)))


def ancestor_uids(uid: str, documents: Documents) -> tuple[str, ...]:
    """Uids of the queue and those above it, up to the top; where they go in a circle, each once."""
    seen: dict[str, None] = {}
    while uid in documents and uid not in seen:
        seen[uid] = None
        uid = documents[uid].parent
    return tuple(seen)


def card_unit_label(chip: str) -> str:
    """What a number of cards is followed by in a sentence."""
    return f"× {chip}" if chip else Reason("queue.quota.total_cards", "cards in all")


# -- Differences --


def tree_differences(
    before: Documents, after: Documents, *, names: Mapping[str, str] | None = None
) -> tuple[QueueDifference, ...]:
    """Differences between two versions of a tree, queue by queue in the order of names, as messages.

    :param names: names by uid of queues that are in neither version but may be parents.
    """
    every = {**before, **after}
    names = {**(names or {}), **{uid: document.name for uid, document in every.items()}}
    found: list[QueueDifference] = []
    for uid in sorted(every, key=lambda uid: (names[uid], uid)):
        old, new = before.get(uid), after.get(uid)
        if old is None and new is not None:
            found.append(_creation_or_retirement(DifferenceKind.CREATED, new, names))
            found += _field_differences(
                QueueDocument(uid=uid, name=new.name, parent=new.parent), new, names
            )
        elif new is None and old is not None:
            found.append(_creation_or_retirement(DifferenceKind.RETIRED, old, names))
        elif old is not None and new is not None:
            found += _field_differences(old, new, names)
    return tuple(found)


def _change(of: QueueDocument, message: str, **values: Any) -> QueueDifference:
    return QueueDifference(uid=of.uid, queue=of.name, message=message, **values)


def _creation_or_retirement(
    kind: DifferenceKind, of: QueueDocument, names: Mapping[str, str]
) -> QueueDifference:
    template = _PRESENCE_MESSAGES[kind, bool(of.parent)]
    parent = names.get(of.parent, of.parent)
    return _change(of, template.fill(queue=of.name, parent=parent), kind=kind)


#: The messages for a queue that is created or retired, by whether it has a parent.
_PRESENCE_MESSAGES: Final = {
    (DifferenceKind.CREATED, True): ReasonTemplate(
        "queue.change.created_below", "queue {queue} is created under {parent}"
    ),
    (DifferenceKind.CREATED, False): ReasonTemplate(
        "queue.change.created_at_top", "queue {queue} is created at the top level"
    ),
    (DifferenceKind.RETIRED, True): ReasonTemplate(
        "queue.change.retired_below", "queue {queue} under {parent} is retired"
    ),
    (DifferenceKind.RETIRED, False): ReasonTemplate(
        "queue.change.retired_at_top", "queue {queue} at the top level is retired"
    ),
}


def _field_differences(
    old: QueueDocument, new: QueueDocument, names: Mapping[str, str]
) -> Iterator[QueueDifference]:
    was, now = _format_fields(old, names), _format_fields(new, names)
    for name, before in was.items():
        if before != now[name]:
            message = _change_message(name, new.name, before, now[name])
            yield _change(new, message, field=name, before=before, after=now[name])
    for chip in sorted({*old.entitlements, *new.entitlements}):
        yield from _quota_differences(old.entitlement(chip), new, chip)


def _format_fields(document: QueueDocument, names: Mapping[str, str]) -> dict[str, str]:
    """Its plain fields, formatted."""
    values = {name: _format_value(getattr(document, name)) for name in QUEUE_FIELDS}
    return {**values, "parent": names.get(document.parent, document.parent)}


def _format_value(value: str | float | None) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:.12g}" if isinstance(value, float) else str(value)


class _Case(Enum):
    """How a field changes; states and policies have a message for each new value instead."""

    CHANGED = auto()
    #: It had no value before.
    ADDED = auto()
    #: It has no value afterwards.
    REMOVED = auto()


#: The messages for a change of each field, by case or new value.
_CHANGE_MESSAGES: Final[Mapping[tuple[str, str | _Case], ReasonTemplate]] = {
    ("name", _Case.CHANGED): ReasonTemplate(
        "queue.change.renamed", "queue {before} is renamed to {queue}"
    ),
    ("parent", _Case.CHANGED): ReasonTemplate(
        "queue.change.moved", "queue {queue} moves from {before} to {after}"
    ),
    ("parent", _Case.ADDED): ReasonTemplate(
        "queue.change.moved_from_top", "queue {queue} moves from the top level to {after}"
    ),
    ("parent", _Case.REMOVED): ReasonTemplate(
        "queue.change.moved_to_top", "queue {queue} moves from {before} to the top level"
    ),
    ("team", _Case.CHANGED): ReasonTemplate(
        "queue.change.team_changed", "queue {queue} is for team {after} instead of team {before}"
    ),
    ("team", _Case.ADDED): ReasonTemplate(
        "queue.change.team_added", "queue {queue} is for team {after} instead of every team"
    ),
    ("team", _Case.REMOVED): ReasonTemplate(
        "queue.change.team_removed", "queue {queue} is for every team instead of team {before}"
    ),
    ("state", QueueState.OPEN): ReasonTemplate("queue.change.opened", "queue {queue} is opened"),
    ("state", QueueState.DRAINING): ReasonTemplate(
        "queue.change.drained",
        "queue {queue} is drained: it accepts no new claims; pending claims are still admitted",
    ),
    ("state", QueueState.CLOSED): ReasonTemplate(
        "queue.change.closed", "queue {queue} is closed: it accepts and admits no claims"
    ),
    ("description", _Case.CHANGED): ReasonTemplate(
        "queue.change.description", "the description of queue {queue} is changed"
    ),
    ("weight", _Case.CHANGED): ReasonTemplate(
        "queue.change.weight", "the weight of queue {queue} is {after} instead of {before}"
    ),
    ("borrows", "yes"): ReasonTemplate(
        "queue.change.borrowing_enabled", "queue {queue} may borrow"
    ),
    ("borrows", "no"): ReasonTemplate(
        "queue.change.borrowing_disabled", "queue {queue} may no longer borrow"
    ),
    ("lends", "yes"): ReasonTemplate(
        "queue.change.lending_enabled", "queue {queue} lends its idle quota"
    ),
    ("lends", "no"): ReasonTemplate(
        "queue.change.lending_disabled", "queue {queue} no longer lends its idle quota"
    ),
    ("reclaims", "yes"): ReasonTemplate(
        "queue.change.reclaim_enabled", "queue {queue} reclaims its guaranteed quota on demand"
    ),
    ("reclaims", "no"): ReasonTemplate(
        "queue.change.reclaim_disabled", "queue {queue} no longer reclaims its guaranteed quota"
    ),
    ("preempts", "yes"): ReasonTemplate(
        "queue.change.preemption_enabled",
        "claims of higher priority in queue {queue} may preempt those of lower priority",
    ),
    ("preempts", "no"): ReasonTemplate(
        "queue.change.preemption_disabled",
        "claims of higher priority in queue {queue} no longer preempt those of lower priority",
    ),
    ("max_running_per_user", _Case.CHANGED): ReasonTemplate(
        "queue.change.user_limit",
        "queue {queue} limits the running claims per user to {after} instead of {before}",
    ),
    ("max_running_per_user", _Case.ADDED): ReasonTemplate(
        "queue.change.user_limit_added",
        "queue {queue} limits the running claims per user to {after}; there was no limit",
    ),
    ("max_running_per_user", _Case.REMOVED): ReasonTemplate(
        "queue.change.user_limit_removed",
        "queue {queue} no longer limits the running claims per user; the limit was {before}",
    ),
    ("reserved", _Case.CHANGED): ReasonTemplate(
        "queue.change.reserved", "queue {queue} reserves {after} {unit} instead of {before}"
    ),
    ("guaranteed", _Case.CHANGED): ReasonTemplate(
        "queue.change.guaranteed", "queue {queue} is guaranteed {after} {unit} instead of {before}"
    ),
    ("cap", _Case.CHANGED): ReasonTemplate(
        "queue.change.cap", "queue {queue} has a cap of {after} {unit} instead of {before}"
    ),
    ("cap", _Case.ADDED): ReasonTemplate(
        "queue.change.cap_added", "queue {queue} has a cap of {after} {unit}; there was no cap"
    ),
    ("cap", _Case.REMOVED): ReasonTemplate(
        "queue.change.cap_removed", "queue {queue} no longer has a cap ({unit}); it was {before}"
    ),
}


def _change_message(
    field: str, queue: str, before: str | int | None, after: str | int | None, *, unit: str = ""
) -> str:
    """:param before, after: None or an empty text for no value."""
    case = _Case.CHANGED
    if before in (None, ""):
        case = _Case.ADDED
    elif after in (None, ""):
        case = _Case.REMOVED
    template = (
        _CHANGE_MESSAGES.get((field, str(after)))
        or _CHANGE_MESSAGES.get((field, case))
        or _CHANGE_MESSAGES[field, _Case.CHANGED]
    )
    return template.fill(queue=queue, before=before, after=after, unit=unit)


def _quota_differences(old: ChipQuota, new: QueueDocument, chip: str) -> Iterator[QueueDifference]:
    now = new.entitlement(chip)
    for name in QUOTA_FIELDS:
        before, after = getattr(old, name), getattr(now, name)
        if before != after:
            unit = card_unit_label(chip)
            message = _change_message(name, new.name, before, after, unit=unit)
            shown = {"before": _format_value(before), "after": _format_value(after)}
            yield _change(new, message, field=name, chip=chip, **shown)


class TreeAction(StrEnum):
    """The kind of change, as history shows it."""

    CREATE = "create"
    EDIT = "edit"
    MOVE = "move"
    RETIRE = "retire"
    IMPORT = "import"
    REVERT = "revert"
    #: One edit of many queues.
    BULK = "bulk"


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEdit:
    """New documents for some queues, or None where a queue is retired."""

    #: By uid; a new one under a temporary uid ``new:<name>``; None: it is retired. Others may name a new queue as
    #: their parent by its temporary uid.
    queues: Mapping[str, QueueDocument | None]
    action: str
    #: The reason given by the user.
    note: str = ""
    #: ``fingerprint`` of the tree on which the change is based; empty: the current one.
    seen: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetiredQueue:
    """A queue that is not in the tree any more, and whose name only a queue of its team can have."""

    uid: str
    #: Slug of its team; empty for every team.
    team: str


def single_queue_edit(
    document: QueueDocument, *, saved: QueueDocument | None, note: str = "", seen: str = ""
) -> TreeEdit:
    """The edit that creates, changes or moves one queue.

    :param saved: its present document; None for a new queue.
    """
    if saved is None:
        uid, action = f"{NEW}{document.name}", TreeAction.CREATE
    else:
        moved = document.parent != saved.parent
        uid, action = saved.uid, TreeAction.MOVE if moved else TreeAction.EDIT
    return TreeEdit(queues={uid: document}, action=action, note=note, seen=seen)


def apply_tree_edit(documents: Documents, edit: TreeEdit) -> Documents:
    """Return the tree with the edit applied; the given tree is unchanged."""
    after = dict(documents)
    for uid, document in edit.queues.items():
        if document is None:
            after.pop(uid, None)
        else:
            stated = {
                chip: one for chip, one in document.entitlements.items() if one != ChipQuota()
            }
            after[uid] = replace(document, uid=uid, entitlements=stated)
    return after


def without_unchanged_queues(documents: Documents, edit: TreeEdit) -> TreeEdit:
    """Return the edit without queues that it leaves unchanged and without entitlements to nothing."""
    after = apply_tree_edit(documents, edit)
    queues = {uid: after.get(uid) for uid in edit.queues if after.get(uid) != documents.get(uid)}
    return replace(edit, queues=queues)


def with_assigned_uids(
    edit: TreeEdit, uids: Mapping[str, str]
) -> Mapping[str, QueueDocument | None]:
    """The queues of the edit under the uids that new ones were given.

    :param uids: the given uid for each temporary one.
    """
    return {
        uids.get(uid, uid): document
        and replace(
            document,
            uid=uids.get(uid, uid),
            parent=uids.get(document.parent, document.parent),
        )
        for uid, document in edit.queues.items()
    }


def with_restored_queues(edit: TreeEdit, retired: Mapping[str, RetiredQueue]) -> TreeEdit:
    """Return the edit with each new queue that has name and team of a retired one under the uid of that.

    :param retired: retired queues by name.
    """
    uids = {
        uid: found.uid
        for uid, document in edit.queues.items()
        if document is not None
        and is_temporary_uid(uid)
        and (found := retired.get(document.name)) is not None
        and found.team == document.team
        and found.uid not in edit.queues
    }
    return replace(edit, queues=with_assigned_uids(edit, uids)) if uids else edit


def is_temporary_uid(uid: str) -> bool:
    return uid.startswith(NEW)


def queue_tree_fingerprint(documents: Documents) -> str:
    """Return 32 hexadecimal digits that differ whenever a queue of the tree differs."""
    documents_json = [queue_document_to_json(documents[uid]) for uid in sorted(documents)]
    text = json.dumps(documents_json, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
