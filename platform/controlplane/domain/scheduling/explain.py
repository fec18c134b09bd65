"""Words and numbers for each choice and each refusal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from controlplane.domain.resources import Resources, bytes_in_words
from controlplane.domain.scheduling.plans import (
    Placement,
    Refusal,
    RefusalCode,
    ReplicaPlacement,
)
from controlplane.domain.scheduling.snapshots import CardView, ClaimView, QueueView, Snapshot


def explain_placement(
    claim: ClaimView, chip: str, replicas: tuple[ReplicaPlacement, ...], snapshot: Snapshot
) -> Placement:
    names = {node.uid: node.name for node in snapshot.nodes}
    nodes = sorted({names[replica.node] for replica in replicas})
    where = nodes[0] if len(nodes) == 1 else f"{len(nodes)} nodes ({', '.join(nodes[:4])}…)"
    return Placement(
        claim=claim.uid,
        chip=chip,
        replicas=replicas,
        reason=f"{claim.shape.in_words()} of {chip} on {where}: the first with room, by name",
    )


def explain_closed(claim: ClaimView, queue: QueueView) -> Refusal:
    return Refusal(
        claim=claim.uid,
        code=RefusalCode.QUEUE_CLOSED,
        reason=f"queue {queue.name} is closed; it admits nothing until it is opened",
    )


def explain_cap(claim: ClaimView, queue: QueueView, chip: str, *, used: int, cap: int) -> Refusal:
    wanted = claim.shape.cards
    return Refusal(
        claim=claim.uid,
        code=RefusalCode.QUEUE_CAP,
        reason=(f"needs {wanted} × {chip}; queue {queue.name} holds {used} of at most {cap}"),
        numbers={"wanted": wanted, "used": used, "cap": cap},
    )


def explain_no_room(
    claim: ClaimView,
    chip: str,
    snapshot: Snapshot,
    free: Mapping[str, Sequence[CardView]],
    room: Mapping[str, Resources],
    *,
    cards_would_fit: bool,
) -> Refusal:
    """The first thing that stands in the way, from the most lasting to the most passing."""
    largest = max(claim.shape.roles, key=lambda role: role.cards)
    owned = {node.uid: sum(card.chip == chip for card in node.cards) for node in snapshot.nodes}
    total = sum(owned.values())
    if largest.cards and not total:
        known = sorted({card.chip for node in snapshot.nodes for card in node.cards})
        return Refusal(
            claim=claim.uid,
            code=RefusalCode.NO_SUCH_CHIP,
            reason=f"needs {chip}; the fleet has only {', '.join(known) or 'no cards at all'}",
        )
    biggest = max(owned.values(), default=0)
    if largest.cards > biggest:
        return Refusal(
            claim=claim.uid,
            code=RefusalCode.NEVER_FITS,
            reason=(f"needs {largest.cards} × {chip} on one node; the largest node has {biggest}"),
            numbers={"wanted": largest.cards, "largest_node": biggest},
        )
    whole_nodes = {node.uid: node.cards for node in snapshot.nodes}
    if not _together(snapshot, whole_nodes, chip=chip, count=largest.cards):
        return _explain_geometry(largest.cards, claim, chip, snapshot)
    available = {uid: sum(card.chip == chip for card in cards) for uid, cards in free.items()}
    best = max(available.values(), default=0)
    if cards_would_fit:
        return _explain_memory(claim, available, room, snapshot)
    together = _together(snapshot, free, chip=chip, count=largest.cards)
    if best >= largest.cards and not together:
        return Refusal(
            claim=claim.uid,
            code=RefusalCode.NOT_TOGETHER,
            reason=(
                f"needs {largest.cards} × {chip} that hang together on one node; "
                f"{best} are free on the best node, but not in one ring or whole pairs"
            ),
            numbers={"wanted": largest.cards, "best_node": best},
        )
    return Refusal(
        claim=claim.uid,
        code=RefusalCode.NO_FREE_CARDS,
        reason=(
            f"needs {claim.shape.in_words()} of {chip}; {sum(available.values())} of {total} "
            f"are free, at most {best} on one node"
        ),
        numbers={
            "wanted": claim.shape.cards,
            "free": sum(available.values()),
            "total": total,
            "best_node": best,
        },
    )


def _together(
    snapshot: Snapshot, cards: Mapping[str, Sequence[CardView]], *, chip: str, count: int
) -> bool:
    """Whether some node could give so many of those cards."""
    return any(
        node.pick(cards[node.uid], chip=chip, count=count) is not None for node in snapshot.nodes
    )


def _explain_geometry(cards: int, claim: ClaimView, chip: str, snapshot: Snapshot) -> Refusal:
    """No node gives out so many, however free it is."""
    sizes = sorted(
        {
            count
            for node in snapshot.nodes
            for count in range(1, len(node.cards) + 1)
            if node.pick(node.cards, chip=chip, count=count)
        }
    )
    given = ", ".join(map(str, sizes))
    return Refusal(
        claim=claim.uid,
        code=RefusalCode.NEVER_FITS,
        reason=f"needs {cards} × {chip} on one node; the nodes give out {given}",
        numbers={"wanted": cards},
    )


def _explain_memory(
    claim: ClaimView,
    available: Mapping[str, int],
    room: Mapping[str, Resources],
    snapshot: Snapshot,
) -> Refusal:
    """Memory of one node for the greediest replica; a node without its cards is no help."""
    greediest = max(claim.shape.roles, key=lambda role: role.limits.memory)
    wanted = greediest.limits.memory
    free = max(
        (
            room[node.uid].memory
            for node in snapshot.nodes
            if node.schedulable and available[node.uid] >= greediest.cards
        ),
        default=0,
    )
    replicas = sum(role.replicas for role in claim.shape.roles)
    each = " for each replica" if replicas > 1 else ""
    return Refusal(
        claim=claim.uid,
        code=RefusalCode.NO_MEMORY,
        reason=(
            f"needs {bytes_in_words(wanted)} of memory on one node{each}; "
            f"the most that is free is {bytes_in_words(max(0, free))}"
        ),
        numbers={"wanted": wanted, "free": free, "replicas": replicas},
    )
