"""The first step of a cycle: what each queue holds, and what is free."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from controlplane.domain.quotas import QueueTree
from controlplane.domain.scheduling.snapshots import Snapshot

#: Cards by chip that were freed for a waiting claim, by its uid.
Nominated = Mapping[str, Counter[str]]


def nominated(snapshot: Snapshot) -> Nominated:
    """No more than each asks for: who stopped for it may have held more, which its queue has no use for.

    Cards of a node that takes no work by now are of use to nobody.
    """
    kept = [
        part.cards[position]
        for node in snapshot.nodes
        if node.takes_work
        for part in node.parts
        for position in part.freed
    ]
    if not kept:
        return {}
    heirs = {card.nominated_for for card in kept}
    waiting = {claim.uid: claim.shape.cards for claim in snapshot.claims if claim.uid in heirs}
    cards: dict[str, Counter[str]] = {}
    for card in kept:
        if card.nominated_for in waiting:
            freed = cards.setdefault(card.nominated_for, Counter())
            if freed[card.chip] < waiting[card.nominated_for]:
                freed[card.chip] += 1
    return cards


def queue_tree(snapshot: Snapshot, freed: Nominated) -> QueueTree:
    """The tree of the snapshot; cards nominated for a claim count as if it had started."""
    tree = QueueTree(snapshot.queues, free=_free(snapshot))
    heirs = [claim for claim in snapshot.claims if claim.uid in freed] if freed else ()
    for claim in heirs:
        for chip, cards in freed[claim.uid].items():
            tree.start(claim.queue, chip, cards)
    return tree


def _free(snapshot: Snapshot) -> Counter[str]:
    """Whole cards that nobody holds and work may be placed on, by chip; those freed for a claim among them."""
    free: Counter[str] = Counter()
    for node in snapshot.nodes:
        if node.takes_work:
            for part in node.parts:
                if part.free:
                    free[part.chip] += part.free
    return free
