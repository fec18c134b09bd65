"""Whether an answer shows anything of the other team, or tells its things from those that never were."""

from __future__ import annotations

from collections.abc import Mapping

from tests.functional.roles.permission_rules import PermissionRow
from tests.functional.roles.role_requests import normalized
from tests.functional.roles.team_data import MARK, RANDOM

_TEAM, _QUEUE = f"team {MARK}", f"{MARK}-queue"
#: Whoever waits for a card wants to know which team has it, and through which queue: said on purpose, by those
#: names alone.
_HOLDERS: Mapping[str, tuple[str, ...]] = {
    "/topology?at=node:here/here-1": (f">{MARK}</td>", _QUEUE),
    "/topology/cards.json": (f'"{MARK}"', _QUEUE),
    "/api/v1/topology?at=node:here/here-1": (f'"team":"{MARK}"', _QUEUE),
    "/fleet": (_TEAM,),
    "/fleet/clusters/{cluster}/nodes/{node.name}": (_TEAM,),
    "/queues": (_TEAM, _QUEUE),
    "/queues/{queue}/reclaim?chip=cpu&cards=1&together=1": (_TEAM, _QUEUE),
    "/claims/{claim.waiting}/what-if": (_TEAM, _QUEUE),
}


def leaked_texts(text: str, row: PermissionRow, theirs: Mapping[str, str]) -> list[str]:
    """What an answer says of the other team: its word, and the public names of its things.

    Random text is left out: five letters in a row are too few not to occur in one of so many CSRF tokens.
    """
    text = normalized(text)
    for said in _HOLDERS.get(row.path, ()):
        text = text.replace(said, "")
    marks = [MARK] if MARK in text.lower() else []
    return marks + sorted(uid for uid in uids(theirs) if uid in text)


def uids(names: Mapping[str, str]) -> set[str]:
    """Those names of things that nobody could guess."""
    return {name for name in names.values() if len(name) == 32}


def unknown_uids(names: Mapping[str, str]) -> dict[str, str]:
    """As many names, of things that never were."""
    return {name: RANDOM if len(value) == 32 else "nobody-at-all" for name, value in names.items()}
