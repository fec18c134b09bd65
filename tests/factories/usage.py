"""Claims that hold cards at a given time and give them back at another, by the product's own services."""

from __future__ import annotations

import uuid
from datetime import datetime

from apps.accounts.models import Team, User
from apps.fleet.models import Card
from apps.quotas import services
from apps.quotas.models import Allocation, Claim, Queue
from controlplane.domain.common.accelerators import CardState
from controlplane.domain.quotas.claims import GangShape, ReleaseReason, RoleShape
from controlplane.domain.scheduling.plans import ClaimPlacement
from controlplane.domain.scheduling.snapshots import ReplicaPlacement


def waiting(
    *,
    queue: Queue,
    team: Team,
    user: User | None = None,
    cards: int = 1,
    name: str = "teach",
    chip: str = "cpu",
) -> Claim:
    """A claim of a job that has asked for that many cards."""
    request = services.ClaimRequest(
        owner=("attempt", uuid.uuid4().hex),
        team=team,
        queue=queue,
        shape=GangShape(roles=(RoleShape(name="trainer", replicas=1, cards=cards),)),
        chips=[chip],
        work=services.ClaimWorkload(kind="job", uid=uuid.uuid4().hex, name=name, user=user),
    )
    return services.claims_create(requests=[request])[0]


def admit(claim: Claim, *, at: datetime) -> Claim:
    """Give it free cards of the first node that has enough of them."""
    held = Allocation.objects.filter(released_at=None).values("card_id")
    usable = Card.objects.filter(
        chip__in=claim.chips, state=CardState.USABLE, node__ready=True, node__cordoned=False
    )
    by_node: dict[int, list[Card]] = {}
    for card in usable.exclude(pk__in=held).select_related("node").order_by("node_id", "index"):
        by_node.setdefault(card.node_id, []).append(card)
    wanted = claim.card_count
    free = next(cards for cards in by_node.values() if len(cards) >= wanted)[:wanted]
    placement = ClaimPlacement(
        claim=claim.uid,
        chip=free[0].chip,
        replicas=(
            ReplicaPlacement(
                role="trainer",
                index=0,
                node=free[0].node.uid,
                cards=tuple(card.uid for card in free),
                count=len(free),
            ),
        ),
        reason="there is room",
    )
    outcomes = services.claims_admit(placements=(placement,), at=at)
    assert not outcomes.conflicts
    claim.refresh_from_db()
    return claim


def holding(
    *,
    since: datetime,
    queue: Queue,
    team: Team,
    user: User | None = None,
    cards: int = 1,
    name: str = "teach",
    chip: str = "cpu",
) -> Claim:
    """A claim that holds that many cards since then."""
    claim = waiting(queue=queue, team=team, user=user, cards=cards, name=name, chip=chip)
    return admit(claim, at=since)


def release(claim: Claim, *, at: datetime) -> None:
    services.claim_release(uid=claim.uid, reason=ReleaseReason.FINISHED, at=at)
