"""The books of one queue: what it is entitled to, what it uses, keeps, awaits and owes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from controlplane.domain.scheduling.snapshots import QueueView

#: Stands where a chip does, for all chips together.
TOTAL = ""

#: A weight is never taken for less; the check of the tree asks for more than 0.
_LEAST_WEIGHT = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class Entitlement:
    """Cards of one chip, or in all, that a queue may count on and may have."""

    #: Never lent to anybody.
    reserved: int = 0
    #: Its own; lent while idle, and taken back on demand. Not below ``reserved``.
    guaranteed: int = 0
    #: Most that it and the queues below hold at once; None means no limit.
    cap: int | None = None


@dataclass(slots=True)
class Account:
    """Cards of one chip, or in all, in one queue and those below."""

    entitlement: Entitlement
    #: Never lent.
    keeps: int
    used: int = 0
    #: Used here and, for each queue below, used or kept there; and what is due.
    inner: int = 0
    #: Promised to claims that are owed it and wait for others to stop.
    due: int = 0
    #: Kept for claims that wait and are owed nothing; those of other queues that are owed cards may pass them. Of
    #: all queues together: for claims that wait until so many may be lent.
    wished: int = 0
    #: Held by claims that were told to stop.
    leaving: int = 0
    #: Of what is used: by claims that start now, and by cards that are nominated for pending claims.
    starting: int = 0

    @property
    def borrowed(self) -> int:
        """Held by those that start, and by those that run and go on, more than is guaranteed."""
        return self.used - self.leaving - self.entitlement.guaranteed

    @property
    def beyond(self) -> int:
        """Held by those that run and go on, more than is guaranteed."""
        return self.borrowed - self.starting

    @property
    def outer(self) -> int:
        """What the queue above has to count for this one."""
        return max(self.inner, self.keeps)

    def add(self, cards: int) -> int:
        """Count them in; how many more the queue above has to count."""
        before = self.outer
        self.inner += cards
        return self.outer - before

    def growth(self, cards: int) -> int:
        """What ``add`` would say."""
        return max(self.inner + cards, self.keeps) - self.outer


@dataclass(slots=True)
class QueueAccounts:
    """The accounts of one queue, by chip and in all; made as they are asked for."""

    view: QueueView
    accounts: dict[str, Account] = field(default_factory=dict)

    def account(self, chip: str) -> Account:
        account = self.accounts.get(chip)
        if account is None:
            view = self.view
            stated = view.entitlements.get(chip) if chip else view.total
            entitlement = stated or Entitlement()
            keeps = entitlement.reserved
            if not view.lends:
                keeps = max(keeps, entitlement.guaranteed)
            account = self.accounts[chip] = Account(entitlement, keeps)
        return account

    def guarantees(self, chip: str) -> Iterator[Account]:
        """The accounts that state a guarantee for cards of that chip."""
        for dimension in (chip, TOTAL):
            account = self.account(dimension)
            if account.entitlement.guaranteed:
                yield account

    def share(self, capacity: Mapping[str, int]) -> float:
        """The dominant share; see above."""
        total = bool(self.view.total.guaranteed)
        share = 0.0
        for chip, account in self.accounts.items():
            guaranteed = account.entitlement.guaranteed
            held = account.used + account.due
            # A chip without a guarantee of its own is judged in total, where there is one.
            if not held or (not guaranteed and (total or chip == TOTAL)):
                continue
            filled = min(1.0, held / guaranteed) if guaranteed else 1.0
            borrowed = max(0, held - guaranteed) / max(1, capacity.get(chip, 0))
            share = max(share, filled + borrowed / max(self.view.weight, _LEAST_WEIGHT))
        return share
