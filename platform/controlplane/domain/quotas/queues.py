"""Queues as the scheduler sees them: state, entitlements, and the cards that each queue uses.

All amounts of ``QueueUsage`` are in the unit of the queues that it is built from.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from controlplane.domain.common.reasons import Reason
from controlplane.domain.quotas.queue_fields import declared_queue_fields, queue_dataclass_field

#: Stands where a chip does, for all chips together.
TOTAL = ""
#: What ``TOTAL`` is called in files and messages.
TOTAL_NAME = "total"


class QueueState(StrEnum):
    #: Takes claims and admits them.
    OPEN = "open"
    #: Takes no new claims; pending claims are still admitted, running claims go on.
    DRAINING = "draining"
    #: Takes and admits nothing; running claims go on.
    CLOSED = "closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChipQuota:
    """Cards of one chip, or in all, that a queue may count on and may have."""

    reserved: int = queue_dataclass_field(
        default=0,
        label="Reserved cards",
        help="Cards that are never lent, from 0 (the default) to the guarantee.",
        requirement=Reason("queue.requirement.cards", "a whole number of cards from 0"),
    )
    guaranteed: int = queue_dataclass_field(
        default=0,
        label="Guaranteed cards",
        help="Cards that are lent while idle and reclaimed on demand, from 0 (the default) to the cap.",
        requirement=Reason("queue.requirement.cards", "a whole number of cards from 0"),
    )
    cap: int | None = queue_dataclass_field(
        default=None,
        label="Cap (cards)",
        help=(
            "Maximum cards in use in the queue and its child queues, from 0; by default "
            "there is no limit."
        ),
        requirement=Reason("queue.requirement.cards", "a whole number of cards from 0"),
    )


_NO_QUOTA: Final = ChipQuota()
#: ``reserved``, ``guaranteed`` and ``cap``.
QUOTA_FIELDS: Final = declared_queue_fields(ChipQuota)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSnapshot:
    """One queue of a scheduling snapshot."""

    uid: str
    name: str
    #: The queue above; None at the top.
    parent: str | None = None
    #: By chip; absent means nothing of its own and no limit.
    entitlements: Mapping[str, ChipQuota] = field(default_factory=dict)
    #: Over all chips together.
    total: ChipQuota = field(default_factory=ChipQuota)
    #: Share of what is idle, against the queues beside it.
    weight: float = 1.0
    #: Whole cards that its own claims hold now, by chip; those of the queues below are not among them.
    used: Mapping[str, int] = field(default_factory=dict)
    #: Thousandths that its own claims hold of cards which they share, by chip.
    shared: Mapping[str, int] = field(default_factory=dict)
    #: A closed queue admits nothing.
    open: bool = True
    #: May hold more than its guarantee while others leave theirs idle.
    borrows: bool = True
    #: Others may use its idle guarantee (never what is reserved).
    lends: bool = True
    #: May take its guarantee back from borrowers.
    reclaims: bool = True
    #: Its urgent claims may take the place of its own less urgent ones.
    preempts: bool = True
    #: Most claims of one person that run at once, in it and the queues below; None means no limit.
    max_running_per_user: int | None = None

    def quota(self, chip: str) -> ChipQuota:
        """Its quota for the chip, or for all chips together; zero if it sets none."""
        return self.entitlements.get(chip, _NO_QUOTA) if chip else self.total


def path_to_root(uid: str, queues: Mapping[str, QueueSnapshot]) -> Iterator[str]:
    """Yield the uids of the queue and its ancestors, up to the top; in a cycle each uid once."""
    seen: set[str] = set()
    above: str | None = uid
    while above is not None and above in queues and above not in seen:
        seen.add(above)
        yield above
        above = queues[above].parent


#: A weight is never taken for less; the check of the tree asks for more than 0.
_LEAST_WEIGHT = 1e-6


@dataclass(slots=True)
class CardUsage:
    """Cards of one chip, or of all chips, in one queue and the queues below it."""

    entitlement: ChipQuota
    #: Never lent.
    withheld: int
    used: int = 0
    #: Used here and, for each queue below, used or kept there; and what is due.
    charged: int = 0
    #: Nominated for claims within a guarantee that wait for evictions.
    nominated: int = 0
    #: Kept for pending claims and are owed nothing; those of other queues that are owed cards may pass them. Of
    #: all queues together: for pending claims until so many may be lent.
    reserved_for_pending: int = 0
    #: Held by claims that are being evicted.
    evicting: int = 0
    #: Of what is used: by claims that start now, and by cards that are nominated for pending claims.
    starting: int = 0

    @property
    def borrowed(self) -> int:
        """Held by starting and running claims beyond the guarantee, claims that are being evicted left out."""
        return self.used - self.evicting - self.entitlement.guaranteed

    @property
    def borrowed_by_running(self) -> int:
        """Held beyond the guarantee by claims that already run and are not being evicted."""
        return self.borrowed - self.starting

    @property
    def charged_to_parent(self) -> int:
        """What the parent queue counts for this one."""
        return max(self.charged, self.withheld)

    def add(self, cards: int) -> int:
        """Count the cards; return by how many the parent's count grows."""
        before = self.charged_to_parent
        self.charged += cards
        return self.charged_to_parent - before

    def growth(self, cards: int) -> int:
        """Return what ``add`` would return, without counting."""
        return max(self.charged + cards, self.withheld) - self.charged_to_parent


@dataclass(slots=True)
class QueueUsage:
    """Usage of one queue by chip and over all chips; entries are created on first use."""

    view: QueueSnapshot
    accounts: dict[str, CardUsage] = field(default_factory=dict)

    def account(self, chip: str) -> CardUsage:
        account = self.accounts.get(chip)
        if account is None:
            entitlement = self.view.quota(chip)
            withheld = entitlement.reserved
            if not self.view.lends:
                withheld = max(withheld, entitlement.guaranteed)
            account = self.accounts[chip] = CardUsage(entitlement, withheld)
        return account

    def guarantees(self, chip: str) -> Iterator[CardUsage]:
        """Yield the usages that state a guarantee for cards of that chip."""
        for dimension in (chip, TOTAL):
            account = self.account(dimension)
            if account.entitlement.guaranteed:
                yield account

    def share(self, capacity: Mapping[str, int]) -> float:
        """Return the dominant share (see ``quotas.tree``)."""
        total = bool(self.view.total.guaranteed)
        share = 0.0
        for chip, account in self.accounts.items():
            guaranteed = account.entitlement.guaranteed
            held = account.used + account.nominated
            # A chip without a guarantee of its own is judged in total, where there is one.
            if not held or (not guaranteed and (total or chip == TOTAL)):
                continue
            filled = min(1.0, held / guaranteed) if guaranteed else 1.0
            borrowed = max(0, held - guaranteed) / max(1, capacity.get(chip, 0))
            share = max(share, filled + borrowed / max(self.view.weight, _LEAST_WEIGHT))
        return share
