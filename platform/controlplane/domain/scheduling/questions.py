"""Questions of the kind "what if", as they are kept until they are answered."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from controlplane.domain.scheduling.what_if import (
    Cancelled,
    Change,
    DrainNode,
    MoreCards,
    MoreNodes,
    Urgent,
)

#: Most that one question adds or takes away.
MOST_CARDS = 100_000
MOST_NODES = 1000


class WhatIfState(StrEnum):
    ASKED = "asked"
    ANSWERED = "answered"
    #: It was about something that is not there any more.
    REFUSED = "refused"


_KINDS: Mapping[str, type[Change]] = {
    "more_cards": MoreCards,
    "more_nodes": MoreNodes,
    "drain_node": DrainNode,
    "urgent": Urgent,
    "cancelled": Cancelled,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}


def changes_as_json(changes: Iterable[Change]) -> list[dict[str, Any]]:
    """``[{"kind": "more_cards", "queue": …}]``.

    :raises KeyError: for a claim that is not there yet: such a question is not kept.
    """
    return [{"kind": _NAMES[type(change)], **asdict(change)} for change in changes]


def changes_from_json(written: Sequence[Mapping[str, Any]]) -> tuple[Change, ...]:
    """What ``changes_as_json`` wrote.

    :raises KeyError: if a kind is unknown.
    :raises TypeError: if a part is missing or too much.
    """
    return tuple(
        _KINDS[each["kind"]](**{name: value for name, value in each.items() if name != "kind"})
        for each in written
    )
