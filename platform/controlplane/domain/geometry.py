"""How cards of one node hang together, and which of the free ones a request gets.

::

    ring 0      ring 1            pairs (aligned_to = 2)
    0─1─2─3     4─5─6─7           (0 1) (2 3) (4 5) (6 7)

A *ring* is a group of cards with a direct link: what fits into one stays inside it. What is larger than a ring
fills whole rings, or, where the hardware wants it (``split_evenly``), takes the same positions of each. Cards of a
pair belong together: whole groups are given out first, and a single card comes from a group that is broken
already. NUMA nodes are a wish, not a rule; among the cards of one, those beside the same network adapters are
taken together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

#: Indices of cards.
Group = tuple[int, ...]

_SPAN = re.compile(r"(\d{1,4})(?:-(\d{1,4}))?")
_MOST_CARDS = 1024


class MalformedGroups(ValueError):
    """Text that names no groups of cards."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Geometry:
    """The rules of one kind of card on one node."""

    #: Sizes of a request on the node that the hardware allows, ascending; empty means any.
    sizes: tuple[int, ...] = ()
    rings: tuple[Group, ...] = ()
    #: Cards belong together in aligned groups of so many.
    aligned_to: int = 1
    #: What is larger than a ring takes the same positions in each of several.
    split_evenly: bool = False
    #: Cards next to the same memory of the host.
    numa: tuple[Group, ...] = ()
    #: Cards on the same PCI switch as the same network adapters.
    nics: tuple[Group, ...] = ()

    def allows(self, count: int) -> bool:
        """Whether the hardware gives out so many cards of a node at all."""
        return not count or not self.sizes or count in self.sizes

    @property
    def plain(self) -> bool:
        """Any card is as good as any other."""
        return not (self.sizes or self.rings or self.numa or self.nics or self.aligned_to > 1)


def choose(free: Sequence[int], count: int, geometry: Geometry) -> Group | None:
    """Indices of the cards that a request of ``count`` gets, ascending; None if they cannot be had together.

    The same free cards always give the same choice.
    """
    if count > len(free) or not geometry.allows(count):
        return None
    options = [
        chosen
        for pool in _pools(sorted(free), count, geometry)
        if (chosen := _take(pool, count, geometry)) is not None
    ]
    # The pools come in order of preference; a choice beside one piece of memory goes before.
    best = min(options, key=lambda chosen: _spread(chosen, geometry.numa), default=None)
    return None if best is None else tuple(sorted(best))


def nearest_size(sizes: Sequence[int], count: int) -> int:
    """The allowed size to ask for instead: the next larger one, or the largest of all."""
    return min((size for size in sizes if size >= count), default=max(sizes))


def groups_of(text: str) -> tuple[Group, ...]:
    """``0-3_4-7`` → ((0, 1, 2, 3), (4, 5, 6, 7)); groups are parted by ``_``, cards by ``.``.

    :raises MalformedGroups: if it is anything else, or names a card twice.
    """
    groups = tuple(tuple(_cards_of(part, text)) for part in text.split("_"))
    named = [card for group in groups for card in group]
    if len(set(named)) < len(named):
        raise MalformedGroups(f"{text!r} names a card twice; each belongs to one group")
    return groups


def text_of(groups: Sequence[Group]) -> str:
    """The groups as ``groups_of`` reads them."""
    return "_".join(".".join(map(str, group)) for group in groups)


def _cards_of(part: str, text: str) -> Iterator[int]:
    for span in part.split("."):
        found = _SPAN.fullmatch(span)
        if found is None:
            raise MalformedGroups(f"{text!r} names no groups of cards; write them like 0-3_4-7")
        first, last = int(found[1]), int(found[2] or found[1])
        if not first <= last < _MOST_CARDS:
            raise MalformedGroups(
                f"{span!r} in {text!r} is no span of cards; the first goes before the last"
            )
        yield from range(first, last + 1)


def _pools(free: list[int], count: int, geometry: Geometry) -> Iterator[list[int]]:
    """Sets of free cards that the request may be taken from, the best first."""
    if not geometry.rings:
        yield free
        return
    rings = [*geometry.rings]
    outside = set(free) - {card for ring in rings for card in ring}
    if outside:
        rings.append(tuple(sorted(outside)))
    left = {ring: [card for card in ring if card in set(free)] for ring in rings}
    if count <= max(map(len, geometry.rings)):
        # The fullest ring that still has room keeps the others whole for larger requests.
        yield from sorted((pool for pool in left.values() if len(pool) >= count), key=len)
    elif geometry.split_evenly:
        yield from _even(geometry.rings, left, count)
    else:
        # Whole rings first, so that as few as possible are touched.
        pool: list[int] = []
        for cards in sorted(left.values(), key=len, reverse=True):
            pool.extend(cards)
            if len(pool) >= count:
                yield pool
                return


def _even(
    rings: tuple[Group, ...], left: dict[Group, list[int]], count: int
) -> Iterator[list[int]]:
    """The same positions of the fewest rings that can hold the request."""
    for touched in range(2, len(rings) + 1):
        each, rest = divmod(count, touched)
        if rest:
            continue
        for chosen in combinations(rings, touched):
            positions = [
                place
                for place in range(min(map(len, chosen)))
                if all(ring[place] in left[ring] for ring in chosen)
            ]
            if len(positions) >= each:
                yield [ring[place] for ring in chosen for place in positions[:each]]


def _take(pool: list[int], count: int, geometry: Geometry) -> Group | None:
    """``count`` cards of the pool: whole aligned groups, and for what is over a broken one."""
    ordered = _by_locality(pool, count, geometry)
    if geometry.aligned_to == 1:
        return tuple(ordered[:count])
    groups: dict[int, list[int]] = {}
    for card in ordered:
        groups.setdefault(card // geometry.aligned_to, []).append(card)
    whole = [cards for cards in groups.values() if len(cards) == geometry.aligned_to]
    wanted, over = divmod(count, geometry.aligned_to)
    if len(whole) < wanted:
        return None
    chosen = [card for cards in whole[:wanted] for card in cards]
    broken = [card for cards in groups.values() if cards not in whole for card in cards]
    spare = [*broken, *(card for cards in whole[wanted:] for card in cards)]
    return (*chosen, *spare[:over]) if len(spare) >= over else None


def _by_locality(pool: list[int], count: int, geometry: Geometry) -> list[int]:
    """The pool with those cards in front that share memory of the host, and among them network adapters."""
    return _nearest_first(_nearest_first(pool, count, geometry.nics), count, geometry.numa)


def _nearest_first(pool: list[int], count: int, groups: tuple[Group, ...]) -> list[int]:
    """The pool group by group: the smallest that hold the request, then the largest; each keeps its order."""
    near = [[card for card in pool if card in group] for group in groups]
    fitting = sorted((cards for cards in near if len(cards) >= count), key=len)
    others = sorted((cards for cards in near if len(cards) < count), key=len, reverse=True)
    ordered = [card for cards in (*fitting, *others) for card in cards]
    return [*ordered, *(card for card in pool if card not in ordered)]


def _spread(cards: Group, numa: tuple[Group, ...]) -> int:
    """How many pieces of the host's memory they lie beside."""
    return sum(any(card in group for card in cards) for group in numa)
