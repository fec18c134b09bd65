"""Cards that were freed for somebody are kept for a while: who they were taken for gets them, and nobody else."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

from django.db import connection

from apps.quotas.models import Allocation, Claim, Nomination
from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import ClaimState

#: How long a card is kept for whom it was freed for. All that stop for one claim have stopped by then.
KEPT = timedelta(minutes=10)


def nominations_made(*, released: Iterable[Claim], at: datetime) -> None:
    """Keep what each held for the claim that it was told to stop for, if that still waits.

    For the transaction that releases them, before their cards are. Cards that can no longer be used are for
    nobody, and what is kept for others stays theirs.
    """
    heirs = {
        claim.pk: claim.revoked_for
        for claim in released
        if claim.revoked_for is not None and claim.revoked_for.state == ClaimState.PENDING
    }
    if not heirs:
        return
    held = Allocation.objects.filter(
        claim__in=heirs, released_at=None, card__state=CardState.USABLE
    ).order_by("card__uid")
    Nomination.objects.bulk_create(
        (
            Nomination(card_id=each.card_id, claim=heirs[each.claim_id], until=at + KEPT)
            for each in held
        ),
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
    with connection.cursor() as cursor:
        # Mostly there are none: the scheduler asks before each of its cycles. Looked for one by one: joined, all
        # claims that ever were are read for a few.
        cursor.execute(
            """
            DELETE FROM quotas_nomination AS kept
             WHERE kept.until <= %s
                OR (SELECT claim.state FROM quotas_claim AS claim WHERE claim.id = kept.claim_id) <> %s
            """,
            [at, ClaimState.PENDING.value],
        )
        pruned: int = cursor.rowcount
    return pruned


def nominations_release(*, claims: Collection[str]) -> int:
    """Let anybody have the cards that are nominated for those claims, given by uid; return how many those were."""
    deleted, _ = Nomination.objects.filter(claim__uid__in=claims).delete() if claims else (0, {})
    return deleted
