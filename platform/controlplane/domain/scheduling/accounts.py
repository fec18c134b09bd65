"""The first step of a cycle: what each queue holds, and what is free, in thousandths of cards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

from controlplane.domain.claims import WHOLE_CARD
from controlplane.domain.quotas import Entitlement, QueueTree
from controlplane.domain.scheduling.snapshots import QueueView, Snapshot

#: Thousandths of cards by chip that were freed for a waiting claim, by its uid.
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
    waiting = {claim.uid: claim.shape.amount for claim in snapshot.claims if claim.uid in heirs}
    cards: dict[str, Counter[str]] = {}
    for card in kept:
        if card.nominated_for in waiting:
            freed = cards.setdefault(card.nominated_for, Counter())
            more = freed[card.chip] + WHOLE_CARD - card.shared
            freed[card.chip] = min(more, waiting[card.nominated_for])
    return cards


def queue_tree(snapshot: Snapshot, freed: Nominated) -> QueueTree:
    """The tree of the snapshot; cards nominated for a claim count as if it had started."""
    views = {uid: _in_thousandths(view) for uid, view in snapshot.queues.items()}
    tree = QueueTree(views, free=_free(snapshot))
    heirs = [claim for claim in snapshot.claims if claim.uid in freed] if freed else ()
    for claim in heirs:
        for chip, amount in freed[claim.uid].items():
            tree.start(claim.queue, chip, amount)
    return tree


def _in_thousandths(view: QueueView) -> QueueView:
    """With what is stated and held in thousandths of cards, those of shared cards among them."""
    held = Counter({chip: cards * WHOLE_CARD for chip, cards in view.used.items()})
    held.update(view.shared)
    return replace(
        view,
        entitlements={chip: _times(stated) for chip, stated in view.entitlements.items()},
        total=_times(view.total),
        used=held,
        shared={},
    )


def _times(stated: Entitlement) -> Entitlement:
    return Entitlement(
        reserved=stated.reserved * WHOLE_CARD,
        guaranteed=stated.guaranteed * WHOLE_CARD,
        cap=None if stated.cap is None else stated.cap * WHOLE_CARD,
    )


def _free(snapshot: Snapshot) -> Counter[str]:
    """Whole cards that nobody holds and work may be placed on, by chip; those freed for a claim among them.

    What is left of a shared card stands in for no card that is reserved.
    """
    free: Counter[str] = Counter()
    for node in snapshot.nodes:
        if node.takes_work:
            for part in node.parts:
                if part.free:
                    free[part.chip] += part.free * WHOLE_CARD
    return free
