"""What is to become of some queues: the one form of every change to the tree.

The console, REST, a file and a revert all say the same: for each queue that they touch, the document that it shall
have, or None if it shall go. Everything else stays as it is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from controlplane.domain.queue_documents import NEW, Documents, QueueDocument, as_json
from controlplane.domain.quotas import Entitlement


class TreeAct(StrEnum):
    """In a word what is done."""

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
    """What is to become of some queues."""

    #: By uid; a new one under a temporary uid ``new:<name>``; None: it is retired. Others may name a new queue as
    #: their parent by its temporary uid.
    queues: Mapping[str, QueueDocument | None]
    act: str
    #: Why, as the person says.
    note: str = ""
    #: ``fingerprint`` of the tree that the person looked at; empty: whatever it is now.
    seen: str = ""


def edited(documents: Documents, edit: TreeEdit) -> Documents:
    """The tree as the edit would have it; the one given stays as it is."""
    after = dict(documents)
    for uid, document in edit.queues.items():
        if document is None:
            after.pop(uid, None)
        else:
            stated = {
                chip: one for chip, one in document.entitlements.items() if one != Entitlement()
            }
            after[uid] = replace(document, uid=uid, entitlements=stated)
    return after


def narrowed(documents: Documents, edit: TreeEdit) -> TreeEdit:
    """The edit without the queues that it leaves as they are, and without entitlements to nothing."""
    after = edited(documents, edit)
    queues = {uid: after.get(uid) for uid in edit.queues if after.get(uid) != documents.get(uid)}
    return replace(edit, queues=queues)


def named(edit: TreeEdit, uids: Mapping[str, str]) -> Mapping[str, QueueDocument | None]:
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


def is_new(uid: str) -> bool:
    """Whether the uid is a temporary one."""
    return uid.startswith(NEW)


def fingerprint(documents: Documents) -> str:
    """32 hexadecimal digits that differ whenever a queue does."""
    kept = [as_json(documents[uid]) for uid in sorted(documents)]
    text = json.dumps(kept, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
