"""Quota status of each queue: what it uses, borrows and lends.

For one chip (or all chips together) every queue has a *right*: what is guaranteed to it, or to the queues below
it where that is more. What it holds beyond its right is *borrowed*; what others hold of its right is *lent*.
Borrowed cards come first from those that are guaranteed to no queue, and only then from idle rights, in
proportion to what each queue leaves idle and lends::

    32 cards                   right  holds  borrowed  lent
      ├─ research                 16     20         4     0
      │    ├─ vision               8     16         8     0   4 of speech, and 4 that research borrows
      │    └─ speech               8      4         0     4
      ├─ product                   8      2         0     4   to research and batch
      ├─ batch                     0      8         8     0
      └─ guaranteed to no queue    8      8                   used up before product lends any

At every level of the tree the sums agree: what siblings borrow, and what their parent lends, is what they lend,
what the parent borrows, and what was guaranteed to none of them (tested by property).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from controlplane.domain.quotas.queues import TOTAL, ChipQuota, QueueSnapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueStatus:
    """Cards of one chip, or of all chips, in one queue and the queues below it."""

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
        """Unused part of its right."""
        return self.guaranteed - self.own - self.lent

    @property
    def reclaimable(self) -> int:
        """What it may still use by its guarantee: idle, or reclaimed from borrowers."""
        return self.guaranteed - self.own


@dataclass(slots=True)
class _QueueBalance:
    """One queue while the status of the tree is computed."""

    stated: ChipQuota
    lends: bool
    #: Its own claims hold, not those of the queues below.
    held: int
    children: list[_QueueBalance] = field(default_factory=list)
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

    def status(self) -> QueueStatus:
        return QueueStatus(
            reserved=self.stated.reserved,
            guaranteed=self.right,
            cap=self.stated.cap,
            used=self.used,
            borrowed=self.borrowed,
            lent=self.lent,
        )


def queue_statuses(
    queues: Mapping[str, QueueSnapshot], *, chip: str = TOTAL, capacity: int
) -> Mapping[str, QueueStatus]:
    """Return the status of each queue by uid, for that chip or for all chips together.

    :param capacity: cards of the chip in the fleet, or of all chips.
    """
    balances = {uid: _queue_balance(view, chip) for uid, view in queues.items()}
    fleet = _QueueBalance(stated=ChipQuota(), lends=True, held=0)
    for uid, view in queues.items():
        balances.get(view.parent or "", fleet).children.append(balances[uid])
    _add_up(fleet)
    fleet.right = max(capacity, fleet.used)
    _distribute_lent_cards(fleet)
    return {uid: balance.status() for uid, balance in balances.items()}


def chips_of_queue(queues: Mapping[str, QueueSnapshot]) -> tuple[str, ...]:
    """Chips that some queue states something for or holds, by name; without ``TOTAL``."""
    stated = {chip for view in queues.values() for chip in (*view.entitlements, *view.used)}
    return tuple(sorted(stated - {TOTAL}))


def _queue_balance(view: QueueSnapshot, chip: str) -> _QueueBalance:
    held = sum(view.used.values()) if chip == TOTAL else view.used.get(chip, 0)
    return _QueueBalance(stated=view.quota(chip), lends=view.lends, held=held)


def _add_up(balance: _QueueBalance) -> None:
    """Add up rights and usage from the leaves to the root."""
    for child in balance.children:
        _add_up(child)
    balance.used = balance.held + sum(child.used for child in balance.children)
    balance.right = max(balance.stated.guaranteed, sum(child.right for child in balance.children))


def _distribute_lent_cards(balance: _QueueBalance) -> None:
    """Distribute, from the top down, what other queues hold of the children's rights."""
    if not balance.children:
        return
    undivided = max(0, balance.right - sum(child.right for child in balance.children))
    borrowed = balance.held + sum(child.borrowed for child in balance.children)
    lent = max(0, borrowed + balance.lent - balance.borrowed - undivided)
    # What is no longer lendable may still be in other hands: it was lent before it was reserved.
    for room in (
        [child.lendable for child in balance.children],
        [child.idle for child in balance.children],
    ):
        left = [most - child.lent for most, child in zip(room, balance.children, strict=True)]
        shares = _distribute_proportionally(min(lent, sum(max(0, most) for most in left)), left)
        for child, share in zip(balance.children, shares, strict=True):
            child.lent += share
        lent -= sum(shares)
    for child in balance.children:
        _distribute_lent_cards(child)


def _distribute_proportionally(cards: int, room: Sequence[int]) -> list[int]:
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
