"""The queue tree: which cards each queue is guaranteed, and which it may borrow.

Every queue sets, by chip and in total, what is ``reserved`` for it (never lent), what is ``guaranteed`` to it
(lent while idle, reclaimed on demand) and its ``cap``. Its quotas include everything below it::

    fleet 32 cards
      ├─ research   guaranteed 16, reserved 4   uses 20    4 borrowed
      │    ├─ vision   guaranteed 8             uses 12
      │    └─ speech   guaranteed 8             uses  8
      ├─ product    guaranteed  8               uses  4    4 idle, which it lends
      └─ batch      weight 2                    uses  4    4 borrowed

A request is *within a guarantee* if a queue on the path to the root has a guarantee that is not exceeded by it;
the lowest such queue *covers* it. Any other request borrows. Neither may use what other queues withhold: their
reservations, or the whole guarantee of a queue that does not lend. So each queue charges its parent ``max(used,
withheld)``, and a check or a change walks up once: O(depth). The unit of all amounts is that of the given
queues: the cycle counts thousandths of cards, so that claims that share a card count by their share.

The *dominant share* orders queues of equal priority: the used part of the guarantee, and above it the borrowed
part of the fleet, divided by the weight; the largest over all chips counts. Above: research 1 + 4/32 = 1.125,
product 4/8 = 0.5, batch 1 + 4/32/2 = 1.0625: product is first, research last. (After dominant resource fairness:
Ghodsi et al., NSDI 2011; up a tree: Bhattacharya et al., SoCC 2013.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from controlplane.domain.quotas.queues import (
    TOTAL,
    CardUsage,
    ChipQuota,
    QueueSnapshot,
    QueueUsage,
    path_to_root,
)


class QuotaLimit(StrEnum):
    """The rule that refuses a request."""

    CLOSED = "closed"
    CAP = "cap"
    #: Beyond its guarantee, and the queue does not borrow.
    DOES_NOT_BORROW = "does_not_borrow"
    #: Beyond its guarantee, and others keep what is free.
    NOTHING_TO_BORROW = "nothing_to_borrow"
    #: Within its guarantee, but other queues withhold the free cards: borrowers have to return theirs first.
    RESERVED_BY_OTHERS = "kept_by_others"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaShortage:
    """Why a queue cannot have more cards; all amounts in the unit of the tree."""

    limit: QuotaLimit
    #: Name of the queue, itself or above, that refuses.
    queue: str
    #: The chip, or ``TOTAL``.
    chip: str = TOTAL
    wanted: int = 0
    #: Held now by that queue and those below.
    used: int = 0
    #: Not held, but kept by queues below or for pending claims longer.
    reserved: int = 0
    #: Its cap or guarantee; where others keep what is free, how much that is.
    bound: int = 0
    #: Of what is free, what may be borrowed.
    lendable: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaDecision:
    """Whether a queue may have a number of additional cards."""

    #: Uid of the lowest queue whose guarantee covers them; empty where they would be borrowed.
    covered_by: str = ""
    #: None if the request is admissible.
    shortage: QuotaShortage | None = None


class QueueTree:
    """The queue tree with current usage; it changes as a plan grows."""

    def __init__(self, queues: Mapping[str, QueueSnapshot], *, free: Mapping[str, int]) -> None:
        """:param free: cards that no claim holds and work may be placed on, by chip."""
        self._nodes = {uid: QueueUsage(view) for uid, view in queues.items()}
        self._paths = {uid: tuple(path_to_root(uid, queues)) for uid in queues}
        #: By the topmost queue: grows with every change to those below it.
        self._versions = {path[-1]: 0 for path in self._paths.values()}
        self._free = dict(free)
        #: Over all queues: ``inner`` counts what those at the top use or keep.
        self._root: dict[str, CardUsage] = {}
        self._account_paths: dict[tuple[str, str], tuple[tuple[CardUsage, ...], ...]] = {}
        self._decisions: dict[tuple[str, str, int], QuotaDecision] = {}
        #: What depends on nothing but the queues from one up to the topmost, and the version for which it holds.
        self._dominant_shares: dict[str, tuple[int, tuple[float, ...]]] = {}
        self._coverings: dict[tuple[str, str, int], tuple[int, str]] = {}
        self._charge_withheld()
        for uid, view in queues.items():
            for chip, cards in view.used.items():
                self.charge(uid, chip, cards)
        self._capacity = {
            chip: account.used + self._free_fleet_cards(chip)
            for chip, account in self._root.items()
        }

    # -- Questions --

    def check(self, queue: str, chip: str, cards: int) -> QuotaDecision:
        """Return whether the queue may have that many more cards of the chip, and which guarantee covers them."""
        key = (queue, chip, cards)
        decision = self._decisions.get(key)
        if decision is None:
            decision = self._decisions[key] = self._decide_quota(queue, chip, cards)
        return decision

    def max_admissible(self, queue: str, chip: str, cards: int) -> int:
        """Return how many of the given number of cards the queue may have."""
        low, high = 0, cards
        while low < high:
            middle = (low + high + 1) // 2
            if self.check(queue, chip, middle).shortage is None:
                low = middle
            else:
                high = middle - 1
        return low

    def dominant_shares(self, queue: str) -> tuple[float, ...]:
        """Return the dominant shares from the topmost queue down to this one, compared in this order."""
        version = self.version_of(queue)
        known = self._dominant_shares.get(queue)
        if known is None or known[0] != version:
            shares = (
                self._nodes[uid].share(self._capacity) for uid in reversed(self._paths[queue])
            )
            known = self._dominant_shares[queue] = version, tuple(shares)
        return known[1]

    def topmost_queue(self, queue: str) -> str:
        """The topmost queue above it, or itself."""
        return self._paths[queue][-1]

    def version_of(self, queue: str) -> int:
        """Return a version; while it is equal, ``dominant_shares`` and ``covered_by`` are unchanged."""
        return self._versions[self._paths[queue][-1]]

    def covered_by(self, queue: str, chip: str, cards: int) -> str:
        """Return the lowest queue whose guarantee covers that many more cards, as in ``check``; or empty."""
        key, version = (queue, chip, cards), self.version_of(queue)
        known = self._coverings.get(key)
        if known is None or known[0] != version:
            known = self._coverings[key] = version, self._guaranteeing_queue(queue, chip, cards)
        return known[1]

    def may_reclaim(
        self, covered_by: str, victim: str, chip: str, *, starting: bool = False
    ) -> bool:
        """Whether cards of the queue ``victim`` may be reclaimed for claims below ``covered_by``.

        They may if every queue from the victim up to the first common ancestor uses more than its guarantee,
        without claims that start now: no running claim is evicted because of what others of its queue have just
        been given.

        :param starting: about cards of claims that start now, of which a queue may use too many.
        """
        common = self._paths[covered_by]
        for uid in self._paths[victim]:
            if uid == covered_by:
                return False
            if uid in common:
                break
            for account in self._nodes[uid].guarantees(chip):
                if (account.borrowed if starting else account.borrowed_by_running) <= 0:
                    return False
        return True

    def is_borrowing(self, queue: str, chip: str) -> bool:
        """Return whether the queue holds more than it states itself, regardless of its ancestors."""
        return all(account.borrowed > 0 for account in self._nodes[queue].guarantees(chip))

    def path_to_root(self, queue: str) -> tuple[str, ...]:
        """The queue and those above it, up to the top."""
        return self._paths[queue]

    def guaranteed(self, queue: str, chip: str) -> int:
        """What the queue itself states for the chip, or else in total."""
        accounts = list(self._nodes[queue].guarantees(chip))
        return accounts[0].entitlement.guaranteed if accounts else 0

    def view(self, queue: str) -> QueueSnapshot:
        return self._nodes[queue].view

    def without_usage(self) -> QueueTree:
        """Return the tree without any usage: what it refuses is refused permanently."""
        views = {uid: replace(node.view, used={}) for uid, node in self._nodes.items()}
        return QueueTree(views, free={chip: n for chip, n in self._capacity.items() if chip})

    # -- Changes; negative amounts undo them --

    def charge(self, queue: str, chip: str, cards: int) -> None:
        """Count that many more cards as held by the queue."""
        self._count_usage(queue, chip, cards)
        for accounts in self._accounts_to_root(queue, chip):
            for account in accounts:
                account.used += cards

    def start(self, queue: str, chip: str, cards: int) -> None:
        """Count cards of a claim that starts now, or that are nominated for a pending claim."""
        self.charge(queue, chip, cards)
        for accounts in self._accounts_to_root(queue, chip):
            for account in accounts:
                account.starting += cards

    def nominate(self, queue: str, chip: str, cards: int) -> None:
        """Count cards that a claim of the queue gets as soon as the claims evicted for it have stopped."""
        self._count_usage(queue, chip, cards)
        for accounts in self._accounts_to_root(queue, chip):
            for account in accounts:
                account.nominated += cards

    def reserve(self, queue: str, chip: str, cards: int, *, lendable: bool = False) -> None:
        """Count cards that a pending claim of the queue needs and would borrow.

        :param lendable: reserve until that many may be lent; otherwise the nodes are reserved elsewhere.
        """
        self._invalidate_ancestors(queue)
        for accounts in self._accounts_to_root(queue, chip):
            for account in accounts if lendable else accounts[:-1]:
                account.reserved_for_pending += cards

    def charge_evicted_cards(
        self, queue: str, chip: str, cards: int, *, starting: bool = False
    ) -> None:
        """Count cards of the queue's claims that are being evicted.

        :param starting: the claims have not started yet, and will not.
        """
        self._invalidate_ancestors(queue)
        for accounts in self._accounts_to_root(queue, chip):
            for account in accounts:
                account.evicting += cards
                if starting:
                    account.starting -= cards

    # -- Inside --

    def _guaranteeing_queue(self, queue: str, chip: str, cards: int) -> str:
        if not cards:
            return queue
        growth = {chip: cards, TOTAL: cards}
        for uid in self._paths[queue]:
            node = self._nodes[uid]
            if _guarantee_covers(node, chip, growth):
                return uid
            growth = {part: node.account(part).growth(more) for part, more in growth.items()}
        return ""

    def _decide_quota(self, queue: str, chip: str, cards: int) -> QuotaDecision:
        nodes = [self._nodes[uid] for uid in self._paths[queue]]
        if not cards:
            return QuotaDecision(covered_by=queue, shortage=_closed_queue_shortage(nodes))
        growth = {chip: cards, TOTAL: cards}
        covered_by, shortage = "", _closed_queue_shortage(nodes)
        for node in nodes:
            below = bool(covered_by)
            if not below and _guarantee_covers(node, chip, growth):
                covered_by = node.view.uid
            shortage = (
                shortage
                or _cap_shortage(
                    node, growth, cards, passes=bool(covered_by) and node is not nodes[0]
                )
                or (None if below else _no_borrowing_shortage(node, chip, growth, cards))
            )
            growth = {part: node.account(part).growth(more) for part, more in growth.items()}
        shortage = shortage or self._shortage_by_withheld_cards(
            nodes[0], growth, cards=cards, covered=bool(covered_by)
        )
        return QuotaDecision(covered_by=covered_by, shortage=shortage)

    def _shortage_by_withheld_cards(
        self, node: QueueUsage, growth: Mapping[str, int], *, cards: int, covered: bool
    ) -> QuotaShortage | None:
        """What other queues withhold is not available. If nothing is withheld, the fleet itself is the limit."""
        for chip, more in growth.items():
            root = self._usage_of_root(chip)
            withheld, free = root.charged - root.used, self._capacity.get(chip, 0) - root.used
            # What is due to claims comes, as far as it goes, from those that are being evicted.
            lendable = (
                free
                - withheld
                + min(root.evicting, root.nominated)
                - (0 if covered else root.reserved_for_pending)
            )
            # A request within the queue's own withheld cards takes nothing from others.
            if more > max(0, lendable) and withheld:
                return QuotaShortage(
                    limit=QuotaLimit.RESERVED_BY_OTHERS
                    if covered
                    else QuotaLimit.NOTHING_TO_BORROW,
                    queue=node.view.name,
                    chip=chip,
                    wanted=cards,
                    used=node.account(chip).used,
                    reserved=withheld,
                    bound=max(0, free),
                    lendable=max(0, min(free, lendable)),
                )
        return None

    def _count_usage(self, queue: str, chip: str, cards: int) -> None:
        self._invalidate_ancestors(queue)
        for accounts in self._accounts_to_root(queue, chip):
            more = cards
            for account in accounts:
                more = account.add(more)
                if not more:
                    break

    def _accounts_to_root(self, queue: str, chip: str) -> tuple[tuple[CardUsage, ...], ...]:
        """The accounts of the chip, and of all chips, from the queue up to all queues together."""
        accounts = self._account_paths.get((queue, chip))
        if accounts is None:
            nodes = [self._nodes[uid] for uid in self._paths[queue]]
            accounts = self._account_paths[queue, chip] = tuple(
                (*(node.account(dimension) for node in nodes), self._usage_of_root(dimension))
                for dimension in (chip, TOTAL)
            )
        return accounts

    def _usage_of_root(self, chip: str) -> CardUsage:
        return self._root.setdefault(chip, CardUsage(ChipQuota(), 0))

    def _free_fleet_cards(self, chip: str) -> int:
        return self._free.get(chip, 0) if chip else sum(self._free.values())

    def _charge_withheld(self) -> None:
        """Charge each queue with what those below withhold, bottom up."""
        for uid in sorted(self._nodes, key=lambda uid: (-len(self._paths[uid]), uid)):
            node, above = self._nodes[uid], self._paths[uid][1:]
            for chip in (*node.view.entitlements, TOTAL):
                node.account(chip)
            for chip, account in node.accounts.items():
                over = self._nodes[above[0]].account(chip) if above else self._usage_of_root(chip)
                over.charged += account.charged_to_parent
        for chip in self._free:
            self._usage_of_root(chip)

    def _invalidate_ancestors(self, queue: str) -> None:
        self._versions[self._paths[queue][-1]] += 1
        self._decisions.clear()


def _closed_queue_shortage(nodes: list[QueueUsage]) -> QuotaShortage | None:
    for node in nodes:
        if not node.view.open:
            return QuotaShortage(limit=QuotaLimit.CLOSED, queue=node.view.name)
    return None


def _guarantee_covers(
    node: QueueUsage, chip: str, growth: Mapping[str, int], *, after_pending: bool = False
) -> bool:
    """Whether the queue has a guarantee that is not exceeded, also after claims with reservations."""
    covers = False
    for dimension in (chip, TOTAL):
        account = node.account(dimension)
        guaranteed = account.entitlement.guaranteed
        if guaranteed:
            first = account.reserved_for_pending if after_pending else 0
            if account.charged + first + growth[dimension] > guaranteed:
                return False
            covers = True
    return covers


def _cap_shortage(
    node: QueueUsage, growth: Mapping[str, int], cards: int, *, passes: bool
) -> QuotaShortage | None:
    """The shortage by the cap of one queue on the path to the root.

    :param passes: it takes precedence over reservations of pending claims, which it does not in its own queue.
    """
    for chip, more in growth.items():
        account = node.account(chip)
        cap = account.entitlement.cap
        reserved = account.charged - account.used + (0 if passes else account.reserved_for_pending)
        # What a queue below kept for itself is no growth, but held in the end all the same.
        if cap is not None and account.used + (reserved + more if more else cards) > cap:
            return QuotaShortage(
                limit=QuotaLimit.CAP,
                queue=node.view.name,
                chip=chip,
                wanted=cards,
                used=account.used,
                reserved=reserved,
                bound=cap,
            )
    return None


def _no_borrowing_shortage(
    node: QueueUsage, chip: str, growth: Mapping[str, int], cards: int
) -> QuotaShortage | None:
    """The shortage of a queue that does not borrow, beyond its guarantee, less what pending claims have
    reserved.
    """
    if node.view.borrows or _guarantee_covers(node, chip, growth, after_pending=True):
        return None
    stated = [
        (dimension, account)
        for dimension, more in growth.items()
        if (account := node.account(dimension)).entitlement.guaranteed
        and account.entitlement.guaranteed < account.charged + account.reserved_for_pending + more
    ]
    dimension, account = stated[0] if stated else (chip, node.account(chip))
    return QuotaShortage(
        limit=QuotaLimit.DOES_NOT_BORROW,
        queue=node.view.name,
        chip=dimension,
        wanted=cards,
        used=account.used,
        reserved=account.charged - account.used + account.reserved_for_pending,
        bound=account.entitlement.guaranteed,
    )
