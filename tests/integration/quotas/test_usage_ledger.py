"""The usage ledger records allocations to the microsecond, by day, exactly once."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.models import Sum
from django.test.utils import CaptureQueriesContext

from apps.accounts.models import Team
from apps.quotas.models import Allocation, Claim, Queue, UsageDay, UsageRecord
from apps.quotas.selectors.usage import usage_days_to_roll_up, usage_discrepancies
from apps.quotas.services.usage_ledger import (
    LedgerMismatch,
    usage_ledger_check,
    usage_record_midnights,
    usage_record_releases,
    usage_roll_up,
)
from tests import factories
from tests.factories import usage
from tests.integration.mortality import Killed, Worker
from tests.integration.threads import at_once

NOON = datetime(2026, 5, 6, 12, 0, 0, 123_457, tzinfo=UTC)
HOUR = timedelta(hours=1)
MICROSECONDS = 3_600_000_000


@pytest.fixture
def fleet(db: None) -> tuple[Queue, Team]:
    factories.cluster(cards=8)
    return factories.queue(), factories.team()


@pytest.fixture
def committed_fleet(transactional_db: None, tmp_path: Path) -> tuple[Queue, Team]:
    factories.cluster(cards=8)
    return factories.queue(), factories.team()


def held(fleet: tuple[Queue, Team], *, cards: int = 1, since: datetime = NOON) -> Claim:
    queue, team = fleet
    return usage.holding(since=since, queue=queue, team=team, cards=cards)


def spans(claim: Claim) -> list[tuple[datetime, datetime]]:
    return list(claim.usage.order_by("since").values_list("since", "until"))


def test_a_release_records_usage_with_user_and_workload(fleet: tuple[Queue, Team]) -> None:
    queue, team = fleet
    ada = factories.user(team=team)
    claim = usage.holding(
        since=NOON, queue=queue, team=team, user=ada, cards=3, name="teach addresses"
    )
    usage.release(claim, at=NOON + HOUR)

    [record] = UsageRecord.objects.all()
    assert (record.queue, record.team, record.user) == (queue, team, ada)
    assert (record.chip, record.cards, record.work_kind) == ("cpu", 3, "job")
    assert (record.work_name, record.work_uid) == ("teach addresses", claim.work_uid)
    assert (record.since, record.until) == (NOON, NOON + HOUR)
    assert record.card_microseconds == 3 * MICROSECONDS
    assert usage_discrepancies() == []


def test_records_are_split_at_midnight_without_gaps(fleet: tuple[Queue, Team]) -> None:
    claim = held(fleet)
    usage.release(claim, at=NOON + 36 * HOUR)

    first, second = datetime(2026, 5, 7, tzinfo=UTC), datetime(2026, 5, 8, tzinfo=UTC)
    assert spans(claim) == [(NOON, first), (first, second), (second, NOON + 36 * HOUR)]
    assert usage_discrepancies() == []


def test_running_claims_are_recorded_up_to_the_last_midnight(
    fleet: tuple[Queue, Team],
) -> None:
    claim = held(fleet, cards=2)
    assert usage_record_midnights(at=NOON + HOUR) == 0
    assert usage_record_midnights(at=NOON + 13 * HOUR) == 1
    assert usage_record_midnights(at=NOON + 14 * HOUR) == 0
    midnight = datetime(2026, 5, 7, tzinfo=UTC)
    assert spans(claim) == [(NOON, midnight)]
    assert usage_discrepancies() == []

    usage.release(claim, at=NOON + 13 * HOUR)
    assert spans(claim) == [(NOON, midnight), (midnight, NOON + 13 * HOUR)]
    assert usage_discrepancies() == []


def test_a_claim_without_usage_has_no_record(
    fleet: tuple[Queue, Team],
) -> None:
    queue, team = fleet
    usage.release(usage.waiting(queue=queue, team=team), at=NOON)
    usage.release(held(fleet), at=NOON)
    assert not UsageRecord.objects.exists()
    assert usage_discrepancies() == []


def test_a_clock_set_back_does_not_change_the_ledger(fleet: tuple[Queue, Team]) -> None:
    claim = held(fleet)
    usage_record_midnights(at=NOON + 24 * HOUR)
    usage.release(claim, at=NOON + HOUR)

    midnight = datetime(2026, 5, 7, tzinfo=UTC)
    claim.refresh_from_db()
    assert (claim.released_at, claim.metered_until) == (midnight, midnight)
    assert spans(claim) == [(NOON, midnight)]
    assert usage_discrepancies() == []


def test_a_release_costs_two_statements_more_for_its_record(fleet: tuple[Queue, Team]) -> None:
    claim = held(fleet, cards=8)
    with (
        CaptureQueriesContext(
            connection,
        ) as asked,
        transaction.atomic(),
    ):
        usage_record_releases(claims=(claim,), at=NOON + 72 * HOUR)
    said = [query["sql"] for query in asked if "SAVEPOINT" not in query["sql"]]
    assert len(said) == 2


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE quotas_usagerecord SET cards = 2",
        "DELETE FROM quotas_usagerecord",
        "TRUNCATE quotas_usagerecord",
    ],
)
def test_the_database_rejects_changes_of_records(fleet: tuple[Queue, Team], change: str) -> None:
    usage.release(held(fleet), at=NOON + HOUR)
    connection.check_constraints()
    with (
        pytest.raises(DatabaseError, match="a record of what happened"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(change)


@pytest.mark.parametrize(
    ("wrong", "constraint"),
    [
        ({"card_microseconds": 1}, "usage_record_exact"),
        (
            {
                "since": NOON + HOUR,
                "until": NOON + 14 * HOUR,
                "card_microseconds": 13 * MICROSECONDS,
            },
            "usage_record_of_one_day",
        ),
        (
            {"since": NOON + HOUR, "until": NOON + HOUR, "card_microseconds": 0},
            "usage_record_lasts",
        ),
        ({"since": NOON, "until": NOON + HOUR}, "usage_record_once"),
    ],
)
def test_the_database_rejects_invalid_records(
    fleet: tuple[Queue, Team], wrong: dict[str, object], constraint: str
) -> None:
    claim = held(fleet)
    usage.release(claim, at=NOON + HOUR)
    queue, team = fleet
    values: dict[str, object] = {
        "since": NOON + timedelta(seconds=1),
        "until": NOON + timedelta(seconds=1) + HOUR,
        "card_microseconds": MICROSECONDS,
    }
    with pytest.raises(DatabaseError, match=constraint), transaction.atomic():
        UsageRecord.objects.create(
            claim=claim, queue=queue, team=team, chip="cpu", cards=1, **values | wrong
        )


def test_days_are_sums_of_their_records_however_often_they_are_rolled(
    fleet: tuple[Queue, Team],
) -> None:
    first, second = held(fleet, cards=2), held(fleet)
    usage.release(first, at=NOON + 24 * HOUR)
    assert usage_roll_up() == 2
    usage.release(second, at=NOON + HOUR)
    assert date(2026, 5, 6) in usage_days_to_roll_up()
    for _ in range(2):
        usage_roll_up()
        by_day = dict(UsageDay.objects.values_list("day", "card_microseconds"))
        assert by_day == {
            date(2026, 5, 6): UsageRecord.objects.filter(
                since__lt=datetime(2026, 5, 7, tzinfo=UTC)
            ).aggregate(sum=Sum("card_microseconds"))["sum"],
            date(2026, 5, 7): 2 * first.usage.get(since__gt=NOON).card_microseconds // 2,
        }
    assert list(UsageDay.objects.values_list("claims", flat=True)) == [2, 1]


def test_a_discrepancy_names_the_claim_and_both_amounts(fleet: tuple[Queue, Team]) -> None:
    claim = held(fleet)
    usage.release(claim, at=NOON + HOUR)
    claim.allocations.update(released_at=NOON + 2 * HOUR)
    [found] = usage_discrepancies()
    assert (found.claim, found.recorded, found.allocated) == (
        claim.uid,
        MICROSECONDS,
        2 * MICROSECONDS,
    )
    assert usage_discrepancies(since=NOON + 3 * HOUR) == []


def test_concurrent_midnight_and_releases_count_usage_once(
    committed_fleet: tuple[Queue, Team],
) -> None:
    end = NOON + 30 * HOUR
    for _ in range(4):
        claims = [held(committed_fleet) for _ in range(4)]
        outcomes = at_once(
            lambda: usage_record_midnights(at=end),
            lambda: usage_record_midnights(at=end),
            *(lambda claim=claim: usage.release(claim, at=end) for claim in claims),
        )
        assert not [one for one in outcomes if isinstance(one, BaseException)]
        assert usage_discrepancies() == []
        for claim in claims:
            midnight = datetime(2026, 5, 7, tzinfo=UTC)
            assert spans(claim) == [(NOON, midnight), (midnight, end)]


def test_the_next_run_completes_a_midnight_that_was_killed_at_any_step(
    committed_fleet: tuple[Queue, Team],
) -> None:
    at, step, finished = NOON + 24 * HOUR, 0, False
    claims = [held(committed_fleet), held(committed_fleet, cards=2)]
    while not finished:
        worker = Worker()
        worker.dies_at = step
        try:
            with worker.working():
                usage_record_midnights(at=at)
            finished = True
        except Killed:
            connection.close()
        assert usage_discrepancies() == []
        step += 1
        at += 24 * HOUR
    assert step > 3
    for claim in claims:
        usage.release(claim, at=at)
        ends = [until for _, until in spans(claim)]
        assert ends[-1] == at
        assert [since for since, _ in spans(claim)] == [NOON, *ends[:-1]]
    assert usage_discrepancies() == []


def test_discrepancies_fail_the_task_and_are_listed_by_the_command(
    fleet: tuple[Queue, Team], capsys: pytest.CaptureFixture[str]
) -> None:
    claims = [held(fleet) for _ in range(4)]
    for claim in claims:
        usage.release(claim, at=NOON + HOUR)
    usage_ledger_check(at=NOON)
    call_command("usage_check")
    assert capsys.readouterr().out == "the ledger agrees with the allocations\n"

    Allocation.objects.update(released_at=NOON + 2 * HOUR)
    with pytest.raises(
        LedgerMismatch, match=r"their allocations: 4, for example( claim [^;]*;){2} claim "
    ):
        usage_ledger_check(at=NOON)
    with pytest.raises(CommandError, match="allocations of 4 claims"):
        call_command("usage_check")
    listed = capsys.readouterr().out.splitlines()
    assert [claim.uid in line for claim, line in zip(claims, listed, strict=True)] == [True] * 4
