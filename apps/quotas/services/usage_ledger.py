"""Writes the usage ledger: at each release, at each midnight, and sums by day; and checks it.

Every record begins where the one before it ended, at ``Claim.metered_until``, and is written under the
claim's lock. So a claim whose release and midnight are recorded concurrently is never counted twice; a
unique constraint on the records enforces this.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal

from django.db import transaction
from django.db.models import Count, Q, Sum

from apps.accounts.models import User
from apps.accounts.services import record_audit_entry
from apps.quotas.models import Allocation, CardRate, Claim, UsageDay, UsageRecord
from apps.quotas.selectors.claim_snapshots import ALLOCATED_STATES
from apps.quotas.selectors.usage import (
    LedgerDiscrepancy,
    usage_days_to_roll_up,
    usage_discrepancies,
    usage_records_of_days,
)
from controlplane.domain.common.reasons import ReasonedError
from controlplane.domain.quotas.card_hours import TimeSpan, cards_by_day, midnight_before
from controlplane.persistence.advisory_locks import AdvisoryLock, lock_in_transaction
from controlplane.persistence.bulk_writes import bulk_insert_rows

log = logging.getLogger(__name__)

#: Claims per transaction of ``usage_record_midnights``.
BATCH = 500


def usage_record_releases(*, claims: Sequence[Claim], at: datetime) -> Mapping[int, datetime]:
    """Record the usage of claims since their last records. Call it in the transaction that releases them.

    The caller holds the claims' locks and their cards are still allocated. Returns, by primary key, the end of
    each claim's usage, which is its release time: ``at``, or the end of the last record if the clock was set back
    since then. Two statements for any number of claims.
    """
    allocated = _allocated_by_chip(
        [claim for claim in claims if _next_record_start(claim) is not None]
    )
    ends: dict[int, datetime] = {}
    records: list[UsageRecord] = []
    for claim in claims:
        ends[claim.pk] = end = _metering_end(claim, at)
        if _next_record_start(claim) is not None and end == at:
            records += _usage_records(claim, allocated[claim.pk], until=at)
            claim.metered_until = at
    bulk_insert_rows(records)
    return ends


def _metering_end(claim: Claim, at: datetime) -> datetime:
    since = _next_record_start(claim)
    if since is not None and at < since:
        log.warning(
            "the clock went backwards: nothing was recorded",
            extra={"claim": claim.uid, "recorded_until": since.isoformat(), "at": at.isoformat()},
        )
        return since
    return at


def _allocated_by_chip(claims: Sequence[Claim]) -> Mapping[int, Mapping[str, int]]:
    """Allocated cards of each claim, by its primary key and the chip."""
    allocated: dict[int, dict[str, int]] = {claim.pk: {} for claim in claims}
    if claims:
        rows = Allocation.objects.filter(claim__in=allocated, released_at=None).order_by()
        for pk, chip, cards in rows.values_list("claim_id", "card__chip").annotate(Count("id")):
            allocated[pk][chip] = cards
    return allocated


def usage_record_midnights(*, at: datetime) -> int:
    """Record the usage of running claims up to the last midnight (UTC); return their number.

    Locked claims are skipped: their release, or else the next run, records them.
    """
    midnight, count, after = midnight_before(at), 0, 0
    while claims := _record_midnight_batch(midnight, after=after):
        count += len(claims)
        after = claims[-1].pk
    return count


@transaction.atomic
def _record_midnight_batch(midnight: datetime, *, after: int) -> list[Claim]:
    behind = Q(metered_until__lt=midnight) | Q(metered_until=None, admitted_at__lt=midnight)
    claims = list(
        Claim.objects.select_for_update(no_key=True, skip_locked=True)
        .filter(behind, state__in=ALLOCATED_STATES, pk__gt=after)
        .order_by("pk")[:BATCH]
    )
    allocated = _allocated_by_chip(claims)
    UsageRecord.objects.bulk_create(
        record
        for claim in claims
        for record in _usage_records(claim, allocated[claim.pk], until=midnight)
    )
    Claim.objects.filter(pk__in=allocated).update(metered_until=midnight)
    return claims


def _next_record_start(claim: Claim) -> datetime | None:
    """Start of its next record; None for a claim that never had cards."""
    return claim.metered_until or claim.admitted_at


def _usage_records(
    claim: Claim, cards: Mapping[str, int], *, until: datetime
) -> Iterator[UsageRecord]:
    since = _next_record_start(claim)
    if since is None:
        return
    span = TimeSpan(since=since, until=until)
    for chip, count in sorted(cards.items()):
        for part, amount in cards_by_day(cards=count, span=span):
            yield UsageRecord(
                claim=claim,
                queue_id=claim.queue_id,
                team_id=claim.team_id,
                user_id=claim.user_id,
                chip=chip,
                work_kind=claim.work_kind,
                work_uid=claim.work_uid,
                work_name=claim.work_name,
                cards=count,
                since=part.since,
                until=part.until,
                card_microseconds=amount,
            )


@transaction.atomic
def usage_roll_up() -> int:
    """Sum the records of every day with records since the last roll-up; return the number of days."""
    lock_in_transaction(AdvisoryLock.ROLL_USAGE)
    days = usage_days_to_roll_up()
    for day in days:
        _roll_up_day(day)
    return len(days)


def _roll_up_day(day: date) -> None:
    UsageDay.objects.filter(day=day).delete()
    sums = (
        usage_records_of_days([day])
        .values("queue_id", "team_id", "user_id", "chip", "work_kind")
        .annotate(card_microseconds=Sum("card_microseconds"), claims=Count("claim", distinct=True))
        .order_by()
    )
    UsageDay.objects.bulk_create(UsageDay(day=day, **found) for found in sums.iterator())


@transaction.atomic
def card_rate_set(*, chip: str, per_hour: Decimal | None, actor: User) -> CardRate | None:
    """Set the price of a card-hour of that chip, which applies to past reports too; None deletes the rate."""
    before = CardRate.objects.filter(chip=chip).first()
    rate = None
    if per_hour is None:
        CardRate.objects.filter(chip=chip).delete()
    else:
        rate, _ = CardRate.objects.update_or_create(chip=chip, defaults={"per_hour": per_hour})
    record_audit_entry(
        actor=actor,
        action="rate.change",
        name=chip,
        before=None if before is None else str(before.per_hour),
        after=None if per_hour is None else str(per_hour),
    )
    return rate


#: Claims that ended earlier were checked by earlier runs.
CHECK_WINDOW = timedelta(days=2)
_MAX_NAMED = 3


class LedgerMismatch(ReasonedError):
    def __init__(self, found: list[LedgerDiscrepancy]) -> None:
        super().__init__(
            "usage.ledger.discrepancy",
            "claims whose ledger entries differ from their allocations: {claims}, for example "
            "{examples}. manage.py usage_check lists all",
            claims=len(found),
            examples=[str(each) for each in found[:_MAX_NAMED]],
        )


def usage_ledger_check(*, at: datetime) -> None:
    """Compare the ledger with the allocations of recent claims.

    :raises LedgerMismatch: if they differ, so that the status page shows it.
    """
    if found := usage_discrepancies(since=at - CHECK_WINDOW):
        raise LedgerMismatch(found)
