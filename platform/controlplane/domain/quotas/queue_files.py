"""The queue tree as a file: nested by names, without default values.

::

    queues:
      research:
        team: research
        weight: 2
        cards:
          nvidia-h800: {reserved: 4, guaranteed: 16, cap: 24}
          total: {cap: 64}
        below:
          vision:
            cards:
              nvidia-h800: {guaranteed: 8}

A queue inherits the team of its parent unless it sets one (``team: null`` is every team), and every other
omitted field has its default. A file of a part begins with ``below: research``: its queues are below that one,
or with ``below: null`` at the top level.

Queues are identified by name, so a file can move a queue but not rename it. Queues that are not in the file are
kept, unless they are pruned.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.queue_documents import (
    NEW,
    PLAIN_FIELDS,
    RENAMED_FIELDS,
    Documents,
    QueueDocument,
    ancestor_uids,
)
from controlplane.domain.quotas.queue_fields import QueueField, shorten_value
from controlplane.domain.quotas.queues import QUOTA_FIELDS, TOTAL, TOTAL_NAME, ChipQuota
from controlplane.domain.quotas.validation import MAX_TREE_DEPTH

MOST_QUEUES: Final = 2000

_TOP = ("queues", "below")
#: Fields of a document that a file states by the same name.
FILE_FIELDS: Final = {name: each for name, each in PLAIN_FIELDS.items() if name != "name"}
_KEYS = ("team", *FILE_FIELDS, "cards", "below")
#: Fields whose default a file may also state as null.
_NULL_IS_DEFAULT = frozenset({"description", "reserved", "guaranteed"})
_STEP = " › "


class InvalidQueueFile(ValueError):
    """The file is not a valid tree; ``findings`` say where and why."""

    def __init__(self, *findings: FieldFinding) -> None:
        super().__init__("; ".join(finding.message for finding in findings))
        self.findings = findings


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueFile:
    #: By uid; new ones by a temporary uid.
    queues: Documents
    #: Uids of queues that it does not name, of the part of the tree that it is about.
    unnamed: tuple[str, ...]


# -- Written --


def dump_queue_file(documents: Documents, *, of: str = "") -> dict[str, Any]:
    """The tree as plain values; the inverse of ``parse_queue_file``.

    :param of: uid of a queue: only that one and those below it.
    """
    file: dict[str, Any] = {}
    if of:
        above = documents.get(documents[of].parent)
        file["below"] = above.name if above else None
    tops = [of] if of else _child_uids("", documents)
    file["queues"] = {documents[uid].name: _queue_mapping(uid, documents) for uid in tops}
    return file


def _child_uids(uid: str, documents: Documents) -> list[str]:
    found = [one for one, document in documents.items() if document.parent == uid]
    return sorted(found, key=lambda one: documents[one].name)


def _queue_mapping(uid: str, documents: Documents) -> dict[str, Any]:
    document = documents[uid]
    above = documents.get(document.parent)
    written: dict[str, Any] = {}
    if document.team != (above.team if above else ""):
        written["team"] = document.team or None
    written |= _non_default_fields(document, FILE_FIELDS)
    if isinstance(weight := written.get("weight"), float) and weight.is_integer():
        written["weight"] = int(weight)
    if document.entitlements:
        written["cards"] = {
            chip or TOTAL_NAME: _non_default_fields(document.entitlements[chip], QUOTA_FIELDS)
            for chip in sorted(document.entitlements, key=lambda chip: (chip == TOTAL, chip))
        }
    if below := _child_uids(uid, documents):
        written["below"] = {documents[one].name: _queue_mapping(one, documents) for one in below}
    return written


def _non_default_fields(
    of: QueueDocument | ChipQuota, fields: Mapping[str, QueueField]
) -> dict[str, Any]:
    """The fields that differ from their defaults, as plain values."""
    values = {name: getattr(of, name) for name in fields}
    return {
        name: fields[name].to_json(value)
        for name, value in values.items()
        if value != fields[name].default
    }


# -- Read --


class _ParentPosition(NamedTuple):
    """The parent of queues that are siblings in the file."""

    #: Path for messages.
    path: str = ""
    uid: str = ""
    team: str = ""
    #: Queues from the top down to it.
    depth: int = 0


@dataclass(slots=True)
class _FileParser:
    """State of parsing a file: queues found so far, and findings."""

    documents: Documents
    #: Uids by name.
    uids: Mapping[str, str]
    queues: dict[str, QueueDocument] = field(default_factory=dict)
    #: Where a name occurred first, for messages about duplicates.
    places: dict[str, str] = field(default_factory=dict)
    findings: list[FieldFinding] = field(default_factory=list)

    #: Path of a queue in messages → its path in the content.
    fields: dict[str, str] = field(default_factory=dict)

    def wrong(self, path: str, *, message: str, key: object = "") -> None:
        """:param key: the field there that is wrong; empty: all of it."""
        place = self.fields.get(path, path)
        self.findings.append(
            FieldFinding(field=f"{place}.{key}" if key != "" else place, message=message)
        )


def parse_queue_file(content: Any, documents: Documents) -> QueueFile:
    """Parse the contents of a file.

    :param content: plain values, as a YAML parser returns them.
    :raises InvalidQueueFile: with every error and the path of its queue.
    """
    parser = _FileParser(documents, {document.name: uid for uid, document in documents.items()})
    if not isinstance(content, Mapping):
        message = Reason(
            "queue.file.invalid",
            "a file must have queues: with a queue under each name, got {value}",
            value=shorten_value(content),
        )
        raise InvalidQueueFile(FieldFinding(field="", message=message))
    _reject_unknown_fields(parser, "file", content, _TOP)
    _parse_siblings(parser, content.get("queues"), _parse_parent_position(parser, content))
    if parser.findings:
        raise InvalidQueueFile(*parser.findings)
    return QueueFile(
        queues=parser.queues, unnamed=_queues_not_in_file(parser, whole="below" not in content)
    )


def with_pruned_queues(file: QueueFile) -> Mapping[str, QueueDocument | None]:
    """The tree after importing the file with pruning."""
    return {**file.queues, **dict.fromkeys(file.unnamed)}


def _parse_parent_position(parser: _FileParser, content: Mapping[Any, Any]) -> _ParentPosition:
    """The queues of the file by their position."""
    if "below" not in content:
        return _ParentPosition()
    name = content["below"]
    if name is None:
        return _ParentPosition()
    uid = parser.uids.get(name) if isinstance(name, str) else None
    if uid is None:
        message = Reason(
            "queue.file.unknown_parent",
            "below must be the name of an existing queue, got {value}",
            value=shorten_value(name),
        )
        parser.wrong("below", message=message)
        return _ParentPosition()
    depth = len(ancestor_uids(uid, parser.documents))
    return _ParentPosition(uid=uid, team=parser.documents[uid].team, depth=depth)


def _parse_siblings(parser: _FileParser, raw: Any, above: _ParentPosition) -> None:
    """Queues side by side."""
    place = above.path or "queues"
    if raw is None and above.path:
        return
    if not isinstance(raw, Mapping):
        message = Reason(
            "queue.file.queue_missing",
            "{path}: expected a queue under each name, got {value}",
            path=place,
            value=shorten_value(raw),
        )
        parser.wrong(place, message=message)
        return
    for name, fields in raw.items():
        if not isinstance(name, str):
            message = Reason(
                "queue.file.queue_name_not_text",
                "{path}: a queue name must be text, got {name}; put it in quotes",
                path=place,
                name=shorten_value(name),
            )
        elif above.depth >= MAX_TREE_DEPTH:
            message = Reason(
                "queue.file.too_deep",
                "{path}: queues can be at most {limit} levels deep; place {queue} higher",
                path=place,
                limit=MAX_TREE_DEPTH,
                queue=name,
            )
        elif len(parser.queues) >= MOST_QUEUES:
            message = Reason(
                "queue.file.too_many_queues",
                "a file has at most {limit} queues; split it into several files",
                limit=MOST_QUEUES,
            )
            parser.wrong(place, message=message)
            return
        else:
            _parse_queue(parser, name, fields, above)
            continue
        parser.wrong(place, message=message)


def _parse_queue(parser: _FileParser, name: str, raw: Any, above: _ParentPosition) -> None:
    path = f"{above.path}{_STEP}{name}" if above.path else name
    if (before := parser.places.setdefault(name, path)) != path:
        message = Reason(
            "queue.file.duplicate_name",
            "{path}: duplicate name {name}; it is also at {other_path}",
            path=path,
            name=name,
            other_path=before,
        )
        parser.wrong(path, message=message)
        return
    siblings = f"{parser.fields[above.path]}.below" if above.path else "queues"
    parser.fields[path] = f"{siblings}.{name}"
    raw = {} if raw is None else raw
    if not isinstance(raw, Mapping):
        parser.wrong(
            path,
            message=Reason(
                "queue.file.queue_not_an_object",
                "{path}: a queue must consist of fields and values, got {value}",
                path=path,
                value=shorten_value(raw),
            ),
        )
        return
    raw = {RENAMED_FIELDS.get(key, key): value for key, value in raw.items()}
    _reject_unknown_fields(parser, path, raw, _KEYS)
    uid = parser.uids.get(name, f"{NEW}{name}")
    document = QueueDocument(
        uid=uid,
        name=name,
        parent=above.uid,
        team=_parse_team(parser, raw, path=path, above=above.team),
        **_parse_fields(parser, FILE_FIELDS, raw, path=path),
        entitlements=_parse_quotas(parser, raw.get("cards"), path=path),
    )
    parser.queues[uid] = document
    below = _ParentPosition(path=path, uid=uid, team=document.team, depth=above.depth + 1)
    _parse_siblings(parser, raw.get("below"), below)


def _reject_unknown_fields(
    parser: _FileParser, path: str, raw: Mapping[Any, Any], known: tuple[str, ...]
) -> None:
    for name in raw:
        if name not in known:
            message = Reason(
                "queue.file.unknown_field",
                "{path}: unknown field {field}; known are {fields}",
                path=path,
                field=shorten_value(name),
                fields=", ".join(known),
            )
            parser.wrong(path, message=message, key="" if path == "file" else name)


def _parse_team(parser: _FileParser, raw: Mapping[Any, Any], *, path: str, above: str) -> str:
    value = raw.get("team", above)
    if value is None or isinstance(value, str):
        return value or ""
    message = Reason(
        "queue.file.invalid_team",
        "{path}: team must be the short name of a team, or null, got {value}",
        path=path,
        value=shorten_value(value),
    )
    parser.wrong(path, message=message, key="team")
    return above


def _parse_fields(
    parser: _FileParser, fields: Mapping[str, QueueField], raw: Mapping[Any, Any], *, path: str
) -> dict[str, Any]:
    """The valid fields; those that are left out are left to their defaults."""
    values: dict[str, Any] = {}
    for name, declared in fields.items():
        value = raw.get(name)
        if name not in raw or (value is None and name in _NULL_IS_DEFAULT):
            continue
        if message := declared.error(value, path=path):
            parser.wrong(path, message=message, key=name)
        else:
            values[name] = declared.from_json(value)
    return values


def _parse_quotas(parser: _FileParser, raw: Any, *, path: str) -> dict[str, ChipQuota]:
    if raw is None:
        return {}
    if not isinstance(raw, Mapping):
        message = Reason(
            "queue.file.chip_missing",
            "{path}: cards must have a chip name before each amount, got {value}",
            path=path,
            value=shorten_value(raw),
        )
        parser.wrong(path, message=message, key="cards")
        return {}
    stated: dict[str, ChipQuota] = {}
    for chip, amounts in raw.items():
        if not isinstance(chip, str) or not chip:
            message = Reason(
                "queue.file.chip_name_not_text",
                "{path}: a chip name must be text, got {chip}; put it in quotes",
                path=path,
                chip=shorten_value(chip),
            )
            parser.wrong(path, message=message, key="cards")
            continue
        entitlement = _parse_chip_quota(parser, amounts, path=path, chip=chip)
        if entitlement != ChipQuota():
            stated[TOTAL if chip == TOTAL_NAME else chip] = entitlement
    return stated


def _parse_chip_quota(parser: _FileParser, raw: Any, *, path: str, chip: str) -> ChipQuota:
    place = f"{path}{_STEP}{chip}"
    parser.fields[place] = f"{parser.fields[path]}.cards.{chip}"
    if not isinstance(raw, Mapping):
        message = Reason(
            "queue.file.quota_missing",
            "{path}: expected reserved, guaranteed or cap, got {value}",
            path=place,
            value=shorten_value(raw),
        )
        parser.wrong(place, message=message)
        return ChipQuota()
    _reject_unknown_fields(parser, place, raw, tuple(QUOTA_FIELDS))
    return ChipQuota(**_parse_fields(parser, QUOTA_FIELDS, raw, path=place))


def _queues_not_in_file(parser: _FileParser, *, whole: bool) -> tuple[str, ...]:
    """Queues that the file could have named: all, or those below the ones that it names."""
    return tuple(
        uid
        for uid in parser.documents
        if uid not in parser.queues
        and (whole or any(one in parser.queues for one in ancestor_uids(uid, parser.documents)))
    )
