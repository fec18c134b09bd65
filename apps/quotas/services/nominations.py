"""Cards that were freed for somebody are kept for a while: who they were taken for gets them, and nobody else."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.db.models import Q

from apps.fleet.models import Card
from apps.quotas.models import Claim, Nomination
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import ClaimState

#: How long a card is kept for whom it was freed for. All that stop for one claim have stopped by then.
KEPT = timedelta(minutes=10)


def nominations_made(*, released: Claim, at: datetime) -> None:
    """Keep what the claim held for the one that it was told to stop for, if that still waits.

    For the transaction that releases it, before its cards are. Cards that can no longer be used are for nobody,
    and what is kept for others stays theirs.
    """
    heir = released.revoked_for
    if heir is None or heir.state != ClaimState.PENDING:
        return
    cards = Card.objects.filter(
        allocations__claim=released, allocations__released_at=None, state=CardState.USABLE
    )
    Nomination.objects.bulk_create(
        (Nomination(card=card, claim=heir, until=at + KEPT) for card in cards.order_by("uid")),
        ignore_conflicts=True,
    )


def nominations_taken_up(*, claims: Iterable[Claim]) -> None:
    """What was kept for a work is for its new claim."""
    by_work = {claim.work_uid: claim for claim in claims if claim.work_uid}
    kept = Nomination.objects.filter(claim=None, work_uid__in=by_work)
    for work in kept.order_by().values_list("work_uid", flat=True).distinct() if by_work else ():
        kept.filter(work_uid=work).update(claim=by_work[work], work_uid="")


def nominations_prune(*, at: datetime) -> int:
    """Let anybody have cards whose time is over, or whose claim no longer waits; says how many those were."""
    settled = Q(claim__isnull=False) & ~Q(claim__state=ClaimState.PENDING)
    pruned, _ = Nomination.objects.filter(Q(until__lte=at) | settled).delete()
    return pruned
