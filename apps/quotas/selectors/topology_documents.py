"""The whole fleet in a few hundred kilobytes: columns and numbers instead of names that repeat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from apps.quotas.selectors.openings import Stand
from apps.quotas.selectors.topology import NODE, ClaimRow, Topology, claims_on_cards
from controlplane.domain.geometry import Geometry


class _Numbers:
    """Things by number, in the order in which they came."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}

    def of(self, thing: Any) -> int:
        return self._known.setdefault(thing, len(self._known))

    def __iter__(self) -> Any:
        return iter(self._known)


def document(topology: Topology) -> dict[str, Any]:
    """What the picture is drawn from.

    - ``domains``: ``[kind, name, key, number of the one above]``, the fleet first, nodes left out;
    - ``nodes``: ``[name, number of its domain, chips, uses, claims, gaps, fragments]``: a ``Use`` for each
      card, then ``number, cards`` for neighbours of one claim (-1: of none), positions before which a ring or
      group begins, tenths of cards that are fragments;
      chips are written as claims are;
    - ``claims``: ``[queue, team, cards, second since, kind of work, its uid, its name]``; the last two are empty
      where the reader may not know them.
    """
    domains = [one for one in topology.root.every() if one.kind != NODE]
    places = {one.key: number for number, one in enumerate(domains)}
    claims = claims_on_cards()
    chips, numbers = _Numbers(), _Numbers()
    nodes = [
        _node(one.stand, places[domain.key], claims, chips, numbers)
        for domain in domains
        for one in domain.below
        if one.stand is not None
    ]
    queues, teams = _Numbers(), _Numbers()
    written = [_claim(topology, claims[pk], queues, teams) for pk in numbers]
    return {
        "domains": [
            [one.kind, one.name, one.key, places[one.parent.key] if one.parent else -1]
            for one in domains
        ],
        "nodes": nodes,
        "claims": written,
        "chips": list(chips),
        "queues": [topology.queues[pk] for pk in queues],
        "teams": [topology.teams[pk] for pk in teams],
    }


def _node(
    stand: Stand, place: int, claims: Mapping[int, ClaimRow], chips: _Numbers, numbers: _Numbers
) -> list[Any]:
    # A claim that came after the cards were read is left out.
    return [
        stand.name,
        place,
        runs(map(chips.of, stand.chips)),
        stand.uses,
        runs(numbers.of(pk) if pk in claims else -1 for pk in stand.claims),
        list(breaks(stand.indices, stand.geometries)),
        round(10 * stand.opening.fragments),
    ]


def runs(numbers: Iterable[int]) -> list[int]:
    """Equal neighbours as the number and how many: ``[7, 4, 9, 4]``."""
    runs: list[int] = []
    for number in numbers:
        if runs and runs[-2] == number:
            runs[-1] += 1
        else:
            runs += (number, 1)
    return runs


@lru_cache(maxsize=256)
def breaks(indices: tuple[int, ...], geometries: tuple[Geometry, ...]) -> tuple[int, ...]:
    """Positions of cards with which another ring, or piece of the host's memory, begins."""
    groups = [group for geometry in geometries for group in (geometry.rings or geometry.numa)]
    ring = {index: number for number, group in enumerate(groups) for index in group}
    return tuple(
        place
        for place in range(1, len(indices))
        if ring.get(indices[place]) != ring.get(indices[place - 1])
    )


def _claim(topology: Topology, claim: ClaimRow, queues: _Numbers, teams: _Numbers) -> list[Any]:
    named = topology.names(claim)
    return [
        queues.of(claim.queue),
        teams.of(claim.team),
        claim.cards,
        int(claim.since.timestamp()) if claim.since else 0,
        claim.work_kind,
        claim.work_uid if named else "",
        claim.work_name if named else "",
    ]
