"""Statements that are sent while the database is still at an earlier one."""

from __future__ import annotations

from time import monotonic

import pytest
from django.db import IntegrityError, connection, transaction

from apps.accounts.models import Team
from controlplane.persistence.pipelines import pipelined

#: Seconds that a slow statement takes.
SLOW = 0.5

pytestmark = pytest.mark.django_db(transaction=True)


def write(slug: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO accounts_team (uid, name, slug, created_at) VALUES (%s, %s, %s, now())",
            [f"team-{slug}", slug.title(), slug],
        )


def write_at_once(*slugs: str) -> None:
    with transaction.atomic(), pipelined():
        for slug in slugs:
            write(slug)


def slugs() -> set[str]:
    return set(Team.objects.values_list("slug", flat=True))


def test_the_next_statement_is_prepared_while_the_last_one_runs() -> None:
    begun = monotonic()
    with transaction.atomic():
        with pipelined():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(%s)", [SLOW])
            write("maps")
            sent = monotonic() - begun
        ended = monotonic() - begun

    assert sent < SLOW / 2
    assert ended >= SLOW
    assert slugs() == {"maps"}


def test_who_asks_for_rows_gets_them_with_all_that_was_written_before() -> None:
    with transaction.atomic(), pipelined():
        write("maps")
        found = slugs()
        write("speech")

    assert found == {"maps"}
    assert slugs() == {"maps", "speech"}


def test_one_within_another_ends_with_that() -> None:
    begun = monotonic()
    with transaction.atomic(), pipelined():
        with pipelined(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(%s)", [SLOW])
        inner = monotonic() - begun

    assert inner < SLOW / 2
    assert monotonic() - begun >= SLOW


def test_an_error_is_djangos_and_what_came_behind_it_did_not_take_place() -> None:
    write("maps")

    with pytest.raises(IntegrityError, match="maps"):
        write_at_once("speech", "maps", "vision")

    assert slugs() == {"maps"}


def test_an_error_within_a_savepoint_leaves_what_was_written_before_it() -> None:
    write("maps")

    with transaction.atomic():
        write("speech")
        with pytest.raises(IntegrityError, match="maps"):
            write_at_once("speech-too", "maps")
        write("vision")

    assert slugs() == {"maps", "speech", "vision"}


def test_an_error_of_the_callers_own_is_raised_as_it_is() -> None:
    def fail() -> None:
        with transaction.atomic(), pipelined():
            write("maps")
            raise LookupError("nobody has it")

    with pytest.raises(LookupError, match="nobody"):
        fail()

    assert slugs() == set()


def test_outside_a_transaction_a_part_could_stay() -> None:
    with pytest.raises(RuntimeError, match="inside a transaction"), pipelined():
        write("maps")

    assert slugs() == set()
