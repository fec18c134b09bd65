"""What claims ask of the fleet, found once for all that ask for the same, and kept as long as one of them is."""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple
from weakref import WeakValueDictionary

from controlplane.domain.scheduling.shapes import Demand
from controlplane.domain.scheduling.snapshots import ClaimView


class AskedRole(NamedTuple):
    """A role of a gang, as the search sees it."""

    role: str
    demand: Demand
    wanted: int
    fewest: int


class Search:
    """Where a gang may go on one chip. Claims that ask for the same share one: ``search is other``."""

    __slots__ = ("__weakref__", "chip", "near", "parts", "within")

    def __init__(
        self, chip: str, parts: tuple[AskedRole, ...], *, within: str = "", near: str = ""
    ) -> None:
        self.chip = chip
        #: Those first that are hardest to place.
        self.parts = parts
        self.within = within
        self.near = near


#: Of all kinds that somebody keeps.
_SEARCHES: WeakValueDictionary[Hashable, Search] = WeakValueDictionary()


def search_of(claim: ClaimView, chip: str) -> Search:
    """What the claim asks on that chip."""
    known = claim.kind.searches
    search = known.get(chip)
    if search is None:
        parts = _parts(claim, chip)
        asked = chip, parts, claim.within, claim.near
        search = _SEARCHES.get(asked)
        if search is None:
            search = Search(chip, parts, within=claim.within, near=claim.near)
            search = _SEARCHES.setdefault(asked, search)
        known[chip] = search
    return search


def _parts(claim: ClaimView, chip: str) -> tuple[AskedRole, ...]:
    parts = [
        AskedRole(role.name, Demand.of(role, claim, chip), role.replicas, role.fewest)
        for role in claim.shape.roles
    ]
    return tuple(
        sorted(parts, key=lambda part: (-part.demand.shape.cards, -part.demand.shape.share))
    )
