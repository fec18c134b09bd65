"""Pending claims: one queue each, grouped by equivalence class, and the order in which they are decided.

Thousands of claims have few different requests, so a queue knows only the first claim of each equivalence
class::

    vision   7B fine-tuning   3, 7, 9, 12 …
             evaluation       5, 6 …

and a class is left pending at once, however many claims it has. Within a queue the claim of higher priority
goes first, then the older. The first claims of the queues are compared by

1. priority;
2. right: within the queue's own guarantee, then within that of an ancestor, then borrowed;
3. dominant shares from the top down to the queue, the smaller first (``quotas.tree``);
4. age, then name.

Every admission makes the share of its queue and its ancestors larger, never smaller; so the rank of a queue can
only be too good. It is computed again when the queue comes up, and the queue is put back if it is worse:
nothing is re-sorted. An admission changes nothing below other topmost queues, and below its own it changes the
share for all queues alike. So there is a heap of queues below each topmost queue, ranked without its share, and
a heap of the first of each::

    all ─┬─ research ─┬─ vision   3, 7, 9 …
         │            └─ speech   1, 4 …
         └─ product   2, 5, 6 …

Where the attempts of one cycle are too few for all pending claims, the queues alternate with those that no
cycle has tried yet (``round_robin``): each tries its next class, in the order above, before any tries another.

A cycle starts from the queue tree of the snapshot (``queue_tree``), in thousandths of cards; cards that are
nominated for a claim (``nominated``) count as held by its queue.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappop, heappush, heapreplace
from typing import NamedTuple, TypeAlias

from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.quotas.tree import QueueTree
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    EquivalenceClass,
    QueuePosition,
    SchedulingSnapshot,
    claims_by_class,
)

#: What is searched for once: a kind, or the uid of a claim that is like no other.
SearchKey: TypeAlias = EquivalenceClass | str


class _ClassClaims:
    """Claims of one queue and class; those before ``at`` are decided."""

    __slots__ = ("at", "claims", "equivalence_class")

    def __init__(
        self, equivalence_class: EquivalenceClass | None, claims: Sequence[ClaimSnapshot]
    ) -> None:
        self.equivalence_class = equivalence_class
        self.claims = claims
        self.at = 0

    @property
    def key(self) -> SearchKey:
        return (
            self.claims[self.at].uid if self.equivalence_class is None else self.equivalence_class
        )


class PendingQueue:
    """Pending claims of one queue; higher priority first, then older."""

    __slots__ = ("_firsts",)

    def __init__(self) -> None:
        self._firsts: list[tuple[QueuePosition, _ClassClaims]] = []

    def __bool__(self) -> bool:
        return bool(self._firsts)

    def add(
        self, claims: Sequence[ClaimSnapshot], equivalence_class: EquivalenceClass | None
    ) -> None:
        """:param claims: the first in the queue first.
        :param equivalence_class: theirs; None for a claim that forms a class of its own.
        """
        if claims:
            heappush(self._firsts, (claims[0].position, _ClassClaims(equivalence_class, claims)))

    @property
    def next(self) -> ClaimSnapshot:
        _position, members = self._firsts[0]
        return members.claims[members.at]

    @property
    def equivalence_class(self) -> EquivalenceClass | None:
        """Of the next; None if it is like no other."""
        return self._firsts[0][1].equivalence_class

    def pop(self) -> ClaimSnapshot:
        """Remove and return the next claim."""
        _position, members = self._firsts[0]
        claim = members.claims[members.at]
        members.at += 1
        if members.at < len(members.claims):
            heapreplace(self._firsts, (members.claims[members.at].position, members))
        else:
            heappop(self._firsts)
        return claim

    def drop(self) -> Sequence[ClaimSnapshot]:
        """Remove and return the next claim and all others of its class."""
        _position, members = heappop(self._firsts)
        return members.claims[members.at :]

    def search_keys(self) -> Iterator[SearchKey]:
        """Yield the search key of each class in the queue."""
        return (members.key for _, members in self._firsts)

    def split_next_class(self) -> PendingQueue:
        """Move the next class into a queue of its own and return it."""
        return PendingQueue._from_class_heap([heappop(self._firsts)])

    def split(self, keys: Collection[SearchKey]) -> PendingQueue:
        """Move the classes with one of the keys into a queue of their own and return it."""
        chosen = [first for first in self._firsts if first[1].key in keys]
        self._firsts = [first for first in self._firsts if first[1].key not in keys]
        heapify(self._firsts)
        return PendingQueue._from_class_heap(chosen)

    @classmethod
    def _from_class_heap(cls, firsts: list[tuple[QueuePosition, _ClassClaims]]) -> PendingQueue:
        line = cls()
        line._firsts = firsts
        heapify(firsts)
        return line


def pending_queues(
    claims: Sequence[ClaimSnapshot], *, unique: Collection[str] = ()
) -> dict[str, PendingQueue]:
    """Return the pending queue of each queue.

    :param unique: uids of claims that form a class of their own.
    """
    lines: dict[str, PendingQueue] = {}
    kinds = claims_by_class(claims)
    apart = [claim for claim in claims if claim.uid in unique] if unique else []
    parted = {claim.equivalence_class for claim in apart}
    for equivalence_class, members in kinds.items():
        line = lines.get(equivalence_class.queue)
        if line is None:
            line = lines[equivalence_class.queue] = PendingQueue()
        if equivalence_class in parted:
            line.add([claim for claim in members if claim.uid not in unique], equivalence_class)
        else:
            line.add(members, equivalence_class)
    for claim in apart:
        lines[claim.queue].add((claim,), None)
    return lines


#: Thousandths of cards by chip that are nominated for a pending claim, by its uid.
Nominated = Mapping[str, Counter[str]]


def find_nominated_cards(snapshot: SchedulingSnapshot) -> Nominated:
    """Return the cards that are nominated for pending claims, by claim and chip.

    At most what each claim requests: the evicted claims may have had more. Cards of nodes that accept no
    workloads are excluded.
    """
    nominated = [
        part.cards[position]
        for node in snapshot.nodes
        if node.accepts_workloads
        for part in node.parts
        for position in part.nominated
    ]
    if not nominated:
        return {}
    nominees = {card.nominated_for for card in nominated}
    waiting = {claim.uid: claim.shape.amount for claim in snapshot.claims if claim.uid in nominees}
    cards: dict[str, Counter[str]] = {}
    for card in nominated:
        if card.nominated_for in waiting:
            nominated_cards = cards.setdefault(card.nominated_for, Counter())
            more = nominated_cards[card.chip] + WHOLE_CARD - card.shared
            nominated_cards[card.chip] = min(more, waiting[card.nominated_for])
    return cards


def queue_tree(snapshot: SchedulingSnapshot, nominated_cards: Nominated) -> QueueTree:
    """Return the queue tree of the snapshot; cards nominated for a claim count as if it had started."""
    views = {uid: _queue_in_thousandths(view) for uid, view in snapshot.queues.items()}
    tree = QueueTree(views, free=_free_cards_by_chip(snapshot))
    nominees = (
        [claim for claim in snapshot.claims if claim.uid in nominated_cards]
        if nominated_cards
        else ()
    )
    for claim in nominees:
        for chip, amount in nominated_cards[claim.uid].items():
            tree.start(claim.queue, chip, amount)
    return tree


def _queue_in_thousandths(view: QueueSnapshot) -> QueueSnapshot:
    """With what is stated and held in thousandths of cards, those of shared cards among them."""
    held = Counter({chip: cards * WHOLE_CARD for chip, cards in view.used.items()})
    held.update(view.shared)
    return replace(
        view,
        entitlements={
            chip: _thousandths_of_quota(stated) for chip, stated in view.entitlements.items()
        },
        total=_thousandths_of_quota(view.total),
        used=held,
        shared={},
    )


def _thousandths_of_quota(stated: ChipQuota) -> ChipQuota:
    return ChipQuota(
        reserved=stated.reserved * WHOLE_CARD,
        guaranteed=stated.guaranteed * WHOLE_CARD,
        cap=None if stated.cap is None else stated.cap * WHOLE_CARD,
    )


def _free_cards_by_chip(snapshot: SchedulingSnapshot) -> Counter[str]:
    """Whole cards that are free and usable, by chip; nominated ones included.

    Free parts of shared cards do not count.
    """
    free: Counter[str] = Counter()
    for node in snapshot.nodes:
        if node.accepts_workloads:
            for part in node.parts:
                if part.free:
                    free[part.chip] += part.free * WHOLE_CARD
    return free


#: Priority, right, shares from the top down, age and name; the smaller goes first.
Rank = tuple[int, int, tuple[float, ...], tuple[object, ...]]


class _QueueHead(NamedTuple):
    """The first claim of a queue, and the version of the tree when it was ranked."""

    #: Below its topmost queue, whose share is left out.
    rank: Rank
    queue: str
    version: int
    #: With that share.
    whole: Rank


class _TreeHead(NamedTuple):
    """The first claim of all queues below a topmost queue."""

    rank: Rank
    top: str
    version: int


OWN_GUARANTEE, GUARANTEE_ABOVE, BORROWED = range(3)


class ClaimOrder:
    """Iterates over pending claims while the tree changes with each admission."""

    def __init__(
        self,
        claims: Sequence[ClaimSnapshot],
        tree: QueueTree,
        *,
        drop_refused: Callable[[PendingQueue], None] | None = None,
        nominated_cards: Nominated | None = None,
        unique: Collection[str] = (),
    ) -> None:
        """:param drop_refused: drops the next claims of a queue that are known not to be admitted.
        :param nominated_cards: cards that the tree counts as held by the queue of the claim.
        :param unique: uids of claims that form a class of their own.
        """
        self._tree = tree
        self._nominated_cards = nominated_cards or {}
        self._drop_refused = drop_refused
        #: Queues in the current round, and those that are skipped in it.
        self._lines = pending_queues(claims, unique=unique)
        self._later: list[dict[str, PendingQueue]] = []
        self._heads: dict[str, list[_QueueHead]] = {}

    def round_robin(self, untried: Collection[SearchKey]) -> Iterator[ClaimSnapshot]:
        """Yield the remaining claims, one class of each queue in turn; call it after iteration has stopped.

        :param untried: those first; the others follow.
        """
        others = self._lines
        chosen = {queue: line.split(untried) for queue, line in others.items()}
        self._later = [chosen, others]
        for lines in self._later:
            while turn := self._take_next_classes(lines):
                self._lines = turn
                yield from self

    def _take_next_classes(self, lines: Mapping[str, PendingQueue]) -> dict[str, PendingQueue]:
        """Take the next class of each queue."""
        turn = {}
        for queue, line in lines.items():
            if self._drop_refused:
                self._drop_refused(line)
            if line:
                turn[queue] = line.split_next_class()
        return turn

    def __iter__(self) -> Iterator[ClaimSnapshot]:
        self._heads.clear()
        for queue in self._lines:
            self._heads.setdefault(self._tree.topmost_queue(queue), []).append(
                self._queue_head(queue)
            )
        for heads in self._heads.values():
            heapify(heads)
        firsts = [self._first_below(top) for top in self._heads]
        heapify(firsts)
        while firsts:
            top = firsts[0].top
            if firsts[0].version != self._tree.version_of(top):
                now = self._first_below(top)
                if now.rank > firsts[0].rank:
                    heapreplace(firsts, now)
                    continue
            heappop(firsts)
            heads = self._heads[top]
            queue = heappop(heads).queue
            line = self._lines[queue]
            yield line.pop()
            if line and self._drop_refused:
                self._drop_refused(line)
            if line:
                heappush(heads, self._queue_head(queue))
            if heads:
                heappush(firsts, self._first_below(top))

    def remaining(self) -> Iterator[PendingQueue]:
        """Yield the queues of claims that have not come up; callers that stop iterating may take from them."""
        parts = (self._lines, *self._later)
        return (lines[queue] for queue in sorted(parts[-1]) for lines in parts if lines.get(queue))

    def rank(self, claim: ClaimSnapshot) -> Rank:
        """Return the rank of the claim among the first of each queue, as the tree is now."""
        dominant_shares = self._tree.dominant_shares(claim.queue)
        return -claim.priority, self._best_quota_right(claim), dominant_shares, claim.position

    def _queue_head(self, queue: str) -> _QueueHead:
        whole = priority, right, dominant_shares, position = self.rank(self._lines[queue].next)
        below = priority, right, dominant_shares[1:], position
        return _QueueHead(below, queue, self._tree.version_of(queue), whole)

    def _first_below(self, top: str) -> _TreeHead:
        """The first below that queue; its head is first in the heap and as the tree is now."""
        heads, version = self._heads[top], self._tree.version_of(top)
        while heads[0].version != version:
            now = self._queue_head(heads[0].queue)
            if now.rank > heads[0].rank:
                heapreplace(heads, now)
            else:
                heads[0] = now
        return _TreeHead(heads[0].whole, top, version)

    def _best_quota_right(self, claim: ClaimSnapshot) -> int:
        """The best right that it has on any of its chips; nominated cards need no further quota."""
        amount, queue, best = claim.equivalence_class.fewest, claim.queue, BORROWED
        nominated_cards: Mapping[str, int] = (
            self._nominated_cards.get(claim.uid, {}) if self._nominated_cards else {}
        )
        for chip in claim.chips:
            lacking = max(0, amount - nominated_cards.get(chip, 0)) if nominated_cards else amount
            covering = self._tree.covered_by(queue, chip, lacking)
            if covering == queue:
                return OWN_GUARANTEE
            if covering:
                best = GUARANTEE_ABOVE
        return best
