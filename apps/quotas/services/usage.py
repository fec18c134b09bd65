"""The ledger is written: when a claim gives its cards back, at each midnight, and summed by day.

Every record begins where the one before it ended, at ``Claim.metered_until``, and is written under the
claim's lock. A claim whose end and whose midnight are recorded at the same moment is thus never counted
twice; the unique constraint of the records is the last word.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal

from django.db import transaction
from django.db.models import Count, Q, Sum

from apps.accounts.models import User
from apps.accounts.services import audit
from apps.quotas.models import Allocation, CardRate, Claim, UsageDay, UsageRecord
from apps.quotas.selectors.snapshots import HOLDING
from apps.quotas.selectors.usage import days_touched, records_by_day
from controlplane.domain.usage import Span, cards_by_day, midnight_before
from controlplane.persistence.locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.updates import insert_each

log = logging.getLogger(__name__)

#: Claims whose midnight is recorded in one transaction.
BATCH = 500


def usage_close_each(*, claims: Sequence[Claim], at: datetime) -> Mapping[int, datetime]:
    """Record what the claims have held since their last records. For the transaction that releases them.

    The caller holds the claims' locks and their cards are still allocated. Gives back, by primary key, the instant
    up to which each counts, which is when it ends: ``at``, or the end of the last record where the clock has been
    set back since then. Two statements, however many they are.
    """
    held = _held_by_chip([claim for claim in claims if _metered(claim) is not None])
    ends: dict[int, datetime] = {}
    records: list[UsageRecord] = []
    for claim in claims:
        ends[claim.pk] = end = _end(claim, at)
        if _metered(claim) is not None and end == at:
            records += _records(claim, held[claim.pk], until=at)
            claim.metered_until = at
    insert_each(records)
    return ends


def _end(claim: Claim, at: datetime) -> datetime:
    since = _metered(claim)
    if since is not None and at < since:
        log.warning(
            "the clock went backwards: nothing was recorded",
            extra={"claim": claim.uid, "recorded_until": since.isoformat(), "at": at.isoformat()},
        )
        return since
    return at


def _held_by_chip(claims: Sequence[Claim]) -> Mapping[int, Mapping[str, int]]:
    """Cards that each of the claims holds, by its primary key and the chip."""
    held: dict[int, dict[str, int]] = {claim.pk: {} for claim in claims}
    if claims:
        rows = Allocation.objects.filter(claim__in=held, released_at=None).order_by()
        for pk, chip, cards in rows.values_list("claim_id", "card__chip").annotate(Count("id")):
            held[pk][chip] = cards
    return held


def usage_cut(*, at: datetime) -> int:
    """Record what claims that hold cards held up to the last midnight (UTC); says how many claims that were.

    A claim that somebody else works on is left out: its release records all, and else the next turn does.
    """
    midnight, count, after = midnight_before(at), 0, 0
    while claims := _cut_some(midnight, after=after):
        count += len(claims)
        after = claims[-1].pk
    return count


@transaction.atomic
def _cut_some(midnight: datetime, *, after: int) -> list[Claim]:
    behind = Q(metered_until__lt=midnight) | Q(metered_until=None, admitted_at__lt=midnight)
    claims = list(
        Claim.objects.select_for_update(no_key=True, skip_locked=True)
        .filter(behind, state__in=HOLDING, pk__gt=after)
        .order_by("pk")[:BATCH]
    )
    held = _held_by_chip(claims)
    UsageRecord.objects.bulk_create(
        record for claim in claims for record in _records(claim, held[claim.pk], until=midnight)
    )
    Claim.objects.filter(pk__in=held).update(metered_until=midnight)
    return claims


def _metered(claim: Claim) -> datetime | None:
    """Where its next record begins; None for one that never held anything."""
    return claim.metered_until or claim.admitted_at


def _records(claim: Claim, cards: Mapping[str, int], *, until: datetime) -> Iterator[UsageRecord]:
    since = _metered(claim)
    if since is None:
        return
    span = Span(since=since, until=until)
    for chip, count in sorted(cards.items()):
        for piece, amount in cards_by_day(cards=count, span=span):
            yield UsageRecord(
                claim=claim,
                queue_id=claim.queue_id,
                team_id=claim.team_id,
                person_id=claim.person_id,
                chip=chip,
                work_kind=claim.work_kind,
                work_uid=claim.work_uid,
                work_name=claim.work_name,
                cards=count,
                since=piece.since,
                until=piece.until,
                card_microseconds=amount,
            )


@transaction.atomic
def usage_roll() -> int:
    """Sum the records of every day for which some came since the last roll; says how many days that were."""
    lock_in_transaction(AdvisoryLock.ROLL_USAGE)
    days = days_touched()
    for day in days:
        _roll(day)
    return len(days)


def _roll(day: date) -> None:
    UsageDay.objects.filter(day=day).delete()
    sums = (
        records_by_day([day])
        .values("queue_id", "team_id", "person_id", "chip", "work_kind")
        .annotate(card_microseconds=Sum("card_microseconds"), claims=Count("claim", distinct=True))
        .order_by()
    )
    UsageDay.objects.bulk_create(UsageDay(day=day, **found) for found in sums.iterator())


@transaction.atomic
def rate_set(*, chip: str, per_hour: Decimal | None, actor: User) -> CardRate | None:
    """What an hour of one card of that chip is charged at from now on, in past reports too; None: no rate."""
    before = CardRate.objects.filter(chip=chip).first()
    rate = None
    if per_hour is None:
        CardRate.objects.filter(chip=chip).delete()
    else:
        rate, _ = CardRate.objects.update_or_create(chip=chip, defaults={"per_hour": per_hour})
    audit(
        actor=actor,
        action="rate.change",
        name=chip,
        before=None if before is None else str(before.per_hour),
        after=None if per_hour is None else str(per_hour),
    )
    return rate
