"""Who has what, and whose it is: what each queue borrows and lends.

For one chip (or all chips together) every queue has a *right*: what is guaranteed to it, or to the queues below it
where that is more. What it holds beyond its right is *borrowed*; what others hold of its right is *lent*. Borrowed
cards come first from those that nobody is guaranteed, and only then from idle rights, in proportion to what each
queue leaves idle and lends::

    32 cards                   right  holds  borrowed  lent
      ├─ research                 16     20         4     0
      │    ├─ vision               8     16         8     0   4 of speech, and 4 that research borrows
      │    └─ speech               8      4         0     4
      ├─ product                   8      2         0     4   to research and batch
      ├─ batch                     0      8         8     0
      └─ guaranteed to nobody      8      8                   used up before product lends any

At every level of the tree it fits: what the queues side by side borrow, and what the queue above them lends, is
what they lend, what the queue above borrows, and what was guaranteed to none of them. Nothing is counted twice
and nothing is left over (tested by property).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from controlplane.domain.quota_accounts import TOTAL, Entitlement

if TYPE_CHECKING:
    from controlplane.domain.scheduling.snapshots import QueueView


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The cards of one chip, or of all, in one queue and those below."""

    #: Never lent.
    reserved: int = 0
    #: Its right.
    guaranteed: int = 0
    #: Most that it may hold; None: no limit.
    cap: int | None = None
    used: int = 0
    #: Held beyond its right.
    borrowed: int = 0
    #: Of its right, held by others.
    lent: int = 0

    @property
    def own(self) -> int:
        """Held within its right."""
        return self.used - self.borrowed

    @property
    def idle(self) -> int:
        """Of its right, held by nobody."""
        return self.guaranteed - self.own - self.lent

    @property
    def reclaimable(self) -> int:
        """What it may still ask for by right: idle, or taken back from those that it is lent to."""
        return self.guaranteed - self.own


@dataclass(slots=True)
class _Book:
    """One queue as the figures grow."""

    stated: Entitlement
    lends: bool
    #: Its own claims hold, not those of the queues below.
    held: int
    below: list[_Book] = field(default_factory=list)
    right: int = 0
    used: int = 0
    lent: int = 0

    @property
    def borrowed(self) -> int:
        return max(0, self.used - self.right)

    @property
    def idle(self) -> int:
        return max(0, self.right - self.used)

    @property
    def lendable(self) -> int:
        """Idle, and neither reserved nor kept."""
        return max(0, self.right - max(self.used, self.stated.reserved)) if self.lends else 0

    def standing(self) -> Standing:
        return Standing(
            reserved=self.stated.reserved,
            guaranteed=self.right,
            cap=self.stated.cap,
            used=self.used,
            borrowed=self.borrowed,
            lent=self.lent,
        )


def standings(
    queues: Mapping[str, QueueView], *, chip: str = TOTAL, capacity: int
) -> Mapping[str, Standing]:
    """The standing of each queue by uid, for that chip or for all together.

    :param capacity: cards of the chip in the fleet, or of all.
    """
    books = {uid: _book(view, chip) for uid, view in queues.items()}
    fleet = _Book(stated=Entitlement(), lends=True, held=0)
    for uid, view in queues.items():
        books.get(view.parent or "", fleet).below.append(books[uid])
    _add_up(fleet)
    fleet.right = max(capacity, fleet.used)
    _lend(fleet)
    return {uid: book.standing() for uid, book in books.items()}


def chips_of(queues: Mapping[str, QueueView]) -> tuple[str, ...]:
    """Chips that some queue states something for or holds, by name; without ``TOTAL``."""
    stated = {chip for view in queues.values() for chip in (*view.entitlements, *view.used)}
    return tuple(sorted(stated - {TOTAL}))


def _book(view: QueueView, chip: str) -> _Book:
    stated = view.total if chip == TOTAL else view.entitlements.get(chip)
    held = sum(view.used.values()) if chip == TOTAL else view.used.get(chip, 0)
    return _Book(stated=stated or Entitlement(), lends=view.lends, held=held)


def _add_up(book: _Book) -> None:
    """Rights and what is held, from the leaves up."""
    for below in book.below:
        _add_up(below)
    book.used = book.held + sum(below.used for below in book.below)
    book.right = max(book.stated.guaranteed, sum(below.right for below in book.below))


def _lend(book: _Book) -> None:
    """Share out among the queues below what is held of their rights by others, from the top down."""
    if not book.below:
        return
    undivided = max(0, book.right - sum(below.right for below in book.below))
    borrowed = book.held + sum(below.borrowed for below in book.below)
    lent = max(0, borrowed + book.lent - book.borrowed - undivided)
    # What is no longer lendable may still be in other hands: it was lent before it was reserved.
    for room in ([below.lendable for below in book.below], [below.idle for below in book.below]):
        left = [most - below.lent for most, below in zip(room, book.below, strict=True)]
        shares = _in_proportion(min(lent, sum(max(0, most) for most in left)), left)
        for below, share in zip(book.below, shares, strict=True):
            below.lent += share
        lent -= sum(shares)
    for below in book.below:
        _lend(below)


def _in_proportion(cards: int, room: Sequence[int]) -> list[int]:
    """So many cards in proportion to the room of each, in whole cards; never more than its room."""
    room = [max(0, each) for each in room]
    whole = sum(room)
    if not cards or not whole:
        return [0] * len(room)
    shares = [cards * each // whole for each in room]
    # The largest remainders get what is left, the first of equal ones before the others.
    order = sorted(range(len(room)), key=lambda place: (-(cards * room[place] % whole), place))
    for place in order[: cards - sum(shares)]:
        shares[place] += 1
    return shares
