"""Moves of work that runs, as they would be proposed."""

from __future__ import annotations

from dataclasses import asdict
from datetime import timedelta

from django.utils import timezone

from apps.accounts.models import User
from apps.fleet.models import Card
from apps.quotas.models import Allocation, Claim, Defragmentation, DefragmentationMove
from apps.quotas.selectors.defragmentation import planned_move
from apps.quotas.selectors.snapshots import scheduling_snapshot
from controlplane.domain.scheduling.defragmentation_runs import (
    PROPOSAL_LIFETIME,
    DefragmentationPurpose,
    preview_relocated_nodes,
)
from controlplane.domain.scheduling.snapshots import ReplicaPlacement


def defragmentation(*, claim: Claim, actor: User | None, reason: str = "") -> Defragmentation:
    """The claim moves to other cards of its chip, wherever there are enough; its node would be whole."""
    held = Allocation.objects.filter(claim=claim, released_at=None).select_related("card", "node")
    first = held.order_by("card__index")[0]
    cards = [one.card.uid for one in held.order_by("card__index")]
    free = Card.objects.filter(chip=claim.chip, allocations=None).exclude(node=first.node)
    others = list(free.order_by("node", "index").select_related("node")[: len(cards)])
    target = others[0].node if others else first.node
    at = timezone.now()
    row = Defragmentation.objects.create(
        purpose=DefragmentationPurpose.WHOLE_NODES,
        reason=reason or f"nodes that would become entirely free: {first.node.name}",
        whole_before=1,
        whole_after=2,
        fragments_before=3.5,
        fragments_after=1.5,
        cost=5400.0,
        gain=28800.0,
        room=cards,
        proposed_by=actor,
        proposed_by_name=actor.username if actor else "somebody",
        expires_at=at + PROPOSAL_LIFETIME,
    )
    move = DefragmentationMove.objects.create(
        defragmentation=row,
        number=1,
        claim=claim,
        chip=claim.chip,
        source=[_place(first.role, first.node.uid, cards)],
        target=[_place(first.role, target.uid, [card.uid for card in others] or cards)],
        lost=timedelta(minutes=12).total_seconds(),
        cost=5400.0,
    )
    planned = planned_move(move)
    row.pictures = [
        asdict(one)
        for one in preview_relocated_nodes(scheduling_snapshot(), [planned], planned.source)
    ]
    row.save(update_fields=["pictures"])
    return row


def _place(role: str, node: str, cards: list[str]) -> dict[str, object]:
    return asdict(
        ReplicaPlacement(role=role, index=0, node=node, cards=tuple(cards), count=len(cards))
    )
