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

from collections.abc import Hashable, Iterator, Sequence
from datetime import datetime
from heapq import heapify, heappop, heappush
from typing import NamedTuple

from controlplane.domain.quotas import QueueTree
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

    def __init__(self, claims: Sequence[ClaimView], tree: QueueTree) -> None:
        self._tree = tree
        self._lines: dict[str, list[ClaimView]] = {}
        # Each line ends with the claim that is next in it.
        for claim in sorted(claims, key=_in_line, reverse=True):
            self._lines.setdefault(claim.queue, []).append(claim)

    def __iter__(self) -> Iterator[ClaimView]:
        heads = [self._head(queue) for queue in self._lines]
        heapify(heads)
        while heads:
            head = heappop(heads)
            if head.version != self._tree.version:
                now = self._head(head.queue)
                if now.rank > head.rank:
                    heappush(heads, now)
                    continue
            line = self._lines[head.queue]
            yield line.pop()
            if line:
                heappush(heads, self._head(head.queue))

    def _head(self, queue: str) -> _Head:
        return _Head(self.rank(self._lines[queue][-1]), queue, self._tree.version)

    def rank(self, claim: ClaimView) -> Rank:
        """Its place among the first of each line, as the tree is now."""
        standing = self._tree.standing(claim.queue)
        return -claim.priority, self._right(claim), standing, claim.created_at, claim.uid

    def _right(self, claim: ClaimView) -> int:
        """The best right that it has on any of its chips."""
        cards = claim.shape.fewest_cards
        covering = {self._tree.room(claim.queue, chip, cards).covered_by for chip in claim.chips}
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


def _in_line(claim: ClaimView) -> tuple[int, datetime, str]:
    return -claim.priority, claim.created_at, claim.uid
