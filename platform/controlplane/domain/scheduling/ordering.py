"""Who is next: priority, then right, then fair share, then age.

Each queue is a line of its own: the more urgent goes first, then the older. Between lines the first of each are
compared, by

1. priority;
2. right: those within their queue's own guarantee, those within that of a queue above, then borrowers;
3. dominant shares on the way down to the queue, the smaller first (``domain.quotas``);
4. age, then name.

Every admission makes its queue's share larger, and that of the queues above, never smaller; so a line's place in
the heap can only be too good. It is looked at again when it comes up, and put back if it is: nothing is re-sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from controlplane.domain.quotas import QueueTree
from controlplane.domain.scheduling.accounts import Nominated
from controlplane.domain.scheduling.snapshots import ClaimView

#: Priority, right, shares from the top down, age, name; the smaller goes first.
Rank = tuple[int, int, tuple[float, ...], datetime, str]


class _Head(NamedTuple):
    """The first of a line, and how the tree was when it was ranked."""

    rank: Rank
    queue: str
    version: int


OWN_GUARANTEE, GUARANTEE_ABOVE, BORROWED = range(3)


class Order:
    """Iterates over waiting claims while the tree changes with each that is admitted."""

    def __init__(
        self,
        claims: Sequence[ClaimView],
        tree: QueueTree,
        *,
        settle: Callable[[ClaimView], bool] | None = None,
        freed: Nominated | None = None,
    ) -> None:
        """:param settle: deals with a claim of which is known that it is not admitted; says whether it did.
        :param freed: cards that the tree counts as held by the queue of the claim that they were freed for.
        """
        self._tree = tree
        self._freed = freed or {}
        self._settle = settle
        self._lines: dict[str, list[ClaimView]] = {}
        # Each line ends with the claim that is next in it.
        for claim in sorted(claims, key=_in_line, reverse=True):
            self._lines.setdefault(claim.queue, []).append(claim)

    def __iter__(self) -> Iterator[ClaimView]:
        heads = [self._head(queue) for queue in self._lines]
        heapify(heads)
        while heads:
            head = heappop(heads)
            if head.version != self._tree.version_of(head.queue):
                now = self._head(head.queue)
                if now.rank > head.rank:
                    heappush(heads, now)
                    continue
            line = self._lines[head.queue]
            yield line.pop()
            # Behind one that was refused wait others like it, often thousands: they need no place in the heap.
            while line and self._settle and self._settle(line[-1]):
                line.pop()
            if line:
                heappush(heads, self._head(head.queue))

    def _head(self, queue: str) -> _Head:
        return _Head(self.rank(self._lines[queue][-1]), queue, self._tree.version_of(queue))

    def rank(self, claim: ClaimView) -> Rank:
        """Its place among the first of each line, as the tree is now."""
        standing = self._tree.standing(claim.queue)
        return -claim.priority, self._right(claim), standing, claim.created_at, claim.uid

    def _right(self, claim: ClaimView) -> int:
        """The best right that it has on any of its chips; what was freed for it, its queue need not have again."""
        cards = claim.shape.fewest_cards
        freed: Mapping[str, int] = self._freed.get(claim.uid, {})
        covering = {
            self._tree.covered_by(claim.queue, chip, max(0, cards - freed.get(chip, 0)))
            for chip in claim.chips
        }
        if claim.queue in covering:
            return OWN_GUARANTEE
        return GUARANTEE_ABOVE if covering - {""} else BORROWED


def kind_of(claim: ClaimView) -> Hashable:
    """Equal for claims of a queue that ask for the same: where one was refused, the others behind it are too."""
    return (
        claim.queue,
        claim.shape,
        claim.chips,
        claim.within,
        claim.near,
        claim.runtime,
        claim.tolerations,
        tuple(sorted(claim.selector.items())),
        tuple(sorted(claim.speeds.items())),
    )


class Kinds:
    """Numbers of kinds. Claims that are read from a database share their parts: few have to be compared."""

    def __init__(self) -> None:
        self._numbers: dict[Hashable, int] = {}
        #: By the identities of the parts that are slow to compare; the claims keep those alive.
        self._alike: dict[tuple[object, ...], int] = {}

    def number(self, claim: ClaimView) -> int:
        """Equal for claims of one kind, as long as they are kept by somebody."""
        parts = (
            claim.queue,
            id(claim.shape),
            claim.chips,
            claim.within,
            claim.near,
            claim.runtime,
            id(claim.tolerations),
            id(claim.selector) if claim.selector else 0,
            id(claim.speeds) if claim.speeds else 0,
        )
        number = self._alike.get(parts)
        if number is None:
            number = self._numbers.setdefault(kind_of(claim), len(self._numbers))
            self._alike[parts] = number
        return number


def _in_line(claim: ClaimView) -> tuple[int, datetime, str]:
    return -claim.priority, claim.created_at, claim.uid
