"""Who is next: priority, then right, then fair share, then age.

Each queue is a line of its own: the more urgent goes first, then the older. Between lines the first of each are
compared, by

1. priority;
2. right: those within their queue's own guarantee, those within that of a queue above, then borrowers;
3. dominant shares on the way down to the queue, the smaller first (``domain.quotas``);
4. age, then name.

Every admission makes its queue's share larger, and that of the queues above, never smaller; so a line's place can
only be too good. It is looked at again when it comes up, and put back if it is: nothing is re-sorted. An admission
changes nothing below other topmost queues, and below its own it moves that one's share for all lines alike. So
there is a heap of lines below each topmost queue, ranked without its share, and a heap of the first of each::

    all ─┬─ research ─┬─ vision   3, 7, 9 …
         │            └─ speech   1, 4 …
         └─ product   2, 5, 6 …

Where the searches of one cycle are too few for all pending claims, the queues take turns with those that no cycle
has tried yet (``turns``): each tries its next kind, in the order above, before any of them tries another.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple

from controlplane.domain.quotas import QueueTree
from controlplane.domain.scheduling.accounts import Nominated
from controlplane.domain.scheduling.lines import Line, SearchKey, lines_of
from controlplane.domain.scheduling.snapshots import ClaimView

#: Priority, right, shares from the top down, age and name; the smaller goes first.
Rank = tuple[int, int, tuple[float, ...], tuple[object, ...]]


class _Head(NamedTuple):
    """The first of a line, and how the tree was when it was ranked."""

    #: Below its topmost queue, whose share is left out.
    rank: Rank
    queue: str
    version: int
    #: With that share.
    whole: Rank


class _First(NamedTuple):
    """The first of all lines below a topmost queue."""

    rank: Rank
    top: str
    version: int


OWN_GUARANTEE, GUARANTEE_ABOVE, BORROWED = range(3)


class Order:
    """Iterates over waiting claims while the tree changes with each that is admitted."""

    def __init__(
        self,
        claims: Sequence[ClaimView],
        tree: QueueTree,
        *,
        settle: Callable[[Line], None] | None = None,
        freed: Nominated | None = None,
        alone: Collection[str] = (),
    ) -> None:
        """:param settle: takes those out of a line who are next, and of whom is known that they are not admitted.
        :param freed: cards that the tree counts as held by the queue of the claim that they were freed for.
        :param alone: uids of claims that are like no other, whatever they ask for.
        """
        self._tree = tree
        self._freed = freed or {}
        self._settle = settle
        #: Those that come up now, and those of whom it is not the turn.
        self._lines = lines_of(claims, alone=alone)
        self._later: list[dict[str, Line]] = []
        self._heads: dict[str, list[_Head]] = {}

    def turns(self, untried: Collection[SearchKey]) -> Iterator[ClaimView]:
        """Those that have not come up, one kind of each queue a turn; whoever iterates has stopped before.

        :param untried: those first; the others follow.
        """
        others = self._lines
        chosen = {queue: line.split(untried) for queue, line in others.items()}
        self._later = [chosen, others]
        for lines in self._later:
            while turn := self._turn(lines):
                self._lines = turn
                yield from self

    def _turn(self, lines: Mapping[str, Line]) -> dict[str, Line]:
        """The next kind of each line, which leaves it."""
        turn = {}
        for queue, line in lines.items():
            if self._settle:
                self._settle(line)
            if line:
                turn[queue] = line.split_first()
        return turn

    def __iter__(self) -> Iterator[ClaimView]:
        self._heads.clear()
        for queue in self._lines:
            self._heads.setdefault(self._tree.top_of(queue), []).append(self._head(queue))
        for heads in self._heads.values():
            heapify(heads)
        firsts = [self._first(top) for top in self._heads]
        heapify(firsts)
        while firsts:
            top = firsts[0].top
            if firsts[0].version != self._tree.version_of(top):
                now = self._first(top)
                if now.rank > firsts[0].rank:
                    heapreplace(firsts, now)
                    continue
            heappop(firsts)
            heads = self._heads[top]
            queue = heappop(heads).queue
            line = self._lines[queue]
            yield line.pop()
            if line and self._settle:
                self._settle(line)
            if line:
                heappush(heads, self._head(queue))
            if heads:
                heappush(firsts, self._first(top))

    def rest(self) -> Iterator[Line]:
        """The lines of those that have not come up, by queue; who iterates no more may take from them."""
        parts = (self._lines, *self._later)
        return (lines[queue] for queue in sorted(parts[-1]) for lines in parts if lines.get(queue))

    def rank(self, claim: ClaimView) -> Rank:
        """Its place among the first of each line, as the tree is now."""
        standing = self._tree.standing(claim.queue)
        return -claim.priority, self._right(claim), standing, claim.place

    def _head(self, queue: str) -> _Head:
        whole = priority, right, standing, place = self.rank(self._lines[queue].next)
        below = priority, right, standing[1:], place
        return _Head(below, queue, self._tree.version_of(queue), whole)

    def _first(self, top: str) -> _First:
        """The first below that queue; its head is first in the heap and as the tree is now."""
        heads, version = self._heads[top], self._tree.version_of(top)
        while heads[0].version != version:
            now = self._head(heads[0].queue)
            if now.rank > heads[0].rank:
                heapreplace(heads, now)
            else:
                heads[0] = now
        return _First(heads[0].whole, top, version)

    def _right(self, claim: ClaimView) -> int:
        """The best right that it has on any of its chips; what was freed for it, its queue need not have again."""
        amount, queue, best = claim.kind.fewest, claim.queue, BORROWED
        freed: Mapping[str, int] = self._freed.get(claim.uid, {}) if self._freed else {}
        for chip in claim.chips:
            lacking = max(0, amount - freed.get(chip, 0)) if freed else amount
            covering = self._tree.covered_by(queue, chip, lacking)
            if covering == queue:
                return OWN_GUARANTEE
            if covering:
                best = GUARANTEE_ABOVE
        return best
