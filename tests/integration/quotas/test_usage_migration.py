"""The migration that writes ledger records for allocations of earlier releases."""

from __future__ import annotations

import importlib
from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from apps.fleet.models import Card
from apps.quotas.models import Allocation, Claim, UsageRecord
from apps.quotas.selectors.usage import usage_discrepancies
from controlplane.domain.quotas.card_hours import TimeSpan, cards_by_day
from controlplane.domain.quotas.claims import ClaimState, ReleaseReason
from tests import factories
from tests.factories import usage

NOON = datetime(2026, 5, 6, 12, 0, 0, 123_457, tzinfo=UTC)
LASTED = (
    timedelta(0),
    timedelta(microseconds=1),
    timedelta(hours=11, minutes=59, seconds=59, microseconds=876_543),
    timedelta(hours=12),
    timedelta(days=3, microseconds=7),
)


def before_the_ledger(lasted: timedelta | None, *, cards: int) -> Claim:
    """A claim as an earlier release left it; None if it is still running."""
    name = f"maps-{Claim.objects.count()}"
    claim = usage.waiting(queue=factories.queue(name=name), team=factories.team(name), cards=cards)
    ended = None if lasted is None else NOON + lasted
    Claim.objects.filter(pk=claim.pk).update(
        state=ClaimState.ADMITTED if ended is None else ClaimState.RELEASED,
        chip="cpu",
        admitted_at=NOON,
        released_at=ended,
        release_reason="" if ended is None else ReleaseReason.FINISHED,
        work_kind="",
    )
    held = Allocation.objects.filter(released_at=None).values("card")
    for card in Card.objects.exclude(pk__in=held).order_by("index")[:cards]:
        Allocation.objects.create(
            claim=claim,
            card=card,
            node=card.node,
            role="trainer",
            replica=0,
            allocated_at=NOON,
            released_at=ended,
        )
    return claim


@pytest.mark.django_db
def test_the_migration_records_ended_claims_by_day_and_running_ones_from_admission() -> None:
    factories.cluster(cards=8)
    ended = {before_the_ledger(lasted, cards=3): lasted for lasted in LASTED}
    held = before_the_ledger(None, cards=2)

    with connection.cursor() as cursor:
        statement = importlib.import_module("apps.quotas.migrations.0003_carry_over").BOOKS
        # The column is called user_id since migration 0009.
        cursor.execute(statement.replace("person_id", "user_id"))

    for claim, lasted in ended.items():
        found = claim.usage.order_by("since").values_list("since", "until", "card_microseconds")
        span = TimeSpan(since=NOON, until=NOON + lasted)
        expected = [
            (piece.since, piece.until, amount) for piece, amount in cards_by_day(cards=3, span=span)
        ]
        assert list(found) == expected
    assert set(UsageRecord.objects.values_list("work_kind", "cards")) == {("job", 3)}
    assert usage_discrepancies() == []
    held.refresh_from_db()
    usage.release(held, at=NOON + timedelta(hours=20))
    assert held.usage.count() == 2
    assert usage_discrepancies() == []
