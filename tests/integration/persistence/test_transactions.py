"""Statements that are sent while the database is still at an earlier one."""

from __future__ import annotations

from time import monotonic

import pytest
from django.db import IntegrityError, connection, transaction

from apps.accounts.models import Team
from controlplane.persistence.transactions import pipelined_statements

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
    with transaction.atomic(), pipelined_statements():
        for slug in slugs:
            write(slug)


def slugs() -> set[str]:
    return set(Team.objects.values_list("slug", flat=True))


def test_the_next_statement_is_prepared_while_the_last_one_runs() -> None:
    begun = monotonic()
    with transaction.atomic():
        with pipelined_statements():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(%s)", [SLOW])
            write("maps")
            sent = monotonic() - begun
        ended = monotonic() - begun

    assert sent < SLOW / 2
    assert ended >= SLOW
    assert slugs() == {"maps"}


def test_a_query_in_a_pipeline_sees_earlier_writes() -> None:
    with transaction.atomic(), pipelined_statements():
        write("maps")
        found = slugs()
        write("speech")

    assert found == {"maps"}
    assert slugs() == {"maps", "speech"}


def test_a_nested_pipeline_joins_the_outer_one() -> None:
    begun = monotonic()
    with transaction.atomic(), pipelined_statements():
        with pipelined_statements(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_sleep(%s)", [SLOW])
        inner = monotonic() - begun

    assert inner < SLOW / 2
    assert monotonic() - begun >= SLOW


def test_an_error_in_a_pipeline_is_a_django_error_and_later_statements_do_not_run() -> None:
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
        with transaction.atomic(), pipelined_statements():
            write("maps")
            raise LookupError("nobody has it")

    with pytest.raises(LookupError, match="nobody"):
        fail()

    assert slugs() == set()


def test_a_pipeline_needs_a_transaction() -> None:
    with pytest.raises(RuntimeError, match="inside a transaction"), pipelined_statements():
        write("maps")

    assert slugs() == set()
