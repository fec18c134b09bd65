"""Rows that are followed: whatever others commit, roll back or leave open, a look gives what is committed now."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence

import psycopg
import pytest
from django.db import connection, transaction

from apps.quotas.selectors.followers import Follower, Look
from apps.quotas.selectors.shelves import server_started

_CHANGED = """
    SELECT pg_snapshot_xmin(pg_current_snapshot())::text,
           pg_current_xact_id_if_assigned() IS NULL,
           count(*), coalesce(sum(followed.id), 0)::bigint,
           string_agg(followed.id || followed.ctid::text || followed.xmin::text, ' ' ORDER BY followed.id)
               FILTER (WHERE (age(followed.xmin) > age(%(since)s::xid8::xid)) IS NOT TRUE),
           {elsewhere}
      FROM followed WHERE alive
"""
_DEAD = """
           (SELECT string_agg(dead.id::text, ' ') FROM followed AS dead
             WHERE NOT dead.alive AND age(dead.xmin) <= age(%(since)s::xid8::xid))
"""
_KEYS = "SELECT string_agg(followed.id::text, ' ') FROM followed WHERE alive"
LOOK = Look(changed=_CHANGED.format(elsewhere=_DEAD), keys=_KEYS)
BLIND = Look(changed=_CHANGED.format(elsewhere="NULL"), keys=_KEYS)

Rows = dict[int, str]


class Reader:
    """Counts what is read."""

    def __init__(self) -> None:
        self.asked: list[set[int]] = []

    def read(self, keys: Collection[int]) -> Rows:
        self.asked.append(set(keys))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id, word FROM followed WHERE alive AND id = ANY(%s)", [list(keys)]
            )
            return dict(cursor.fetchall())


def words(before: Collection[str] | None, went: Sequence[str], came: Sequence[str]) -> list[str]:
    """The sum: every word that is there."""
    left = list(before or ())
    for word in went:
        left.remove(word)
    return sorted([*left, *came])


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture(params=[LOOK, BLIND], ids=["told who left", "told of nobody"])
def follower(reader: Reader, request: pytest.FixtureRequest) -> Follower[str, list[str]]:
    return Follower(request.param, reader.read, words)


@pytest.fixture
def _table(transactional_db: None) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute("CREATE TABLE followed (id int PRIMARY KEY, word text, alive bool)")
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE followed")


@pytest.fixture
def other(_table: None) -> Iterator[psycopg.Connection]:
    """Somebody else, who commits when told to."""
    with opened() as another:
        yield another
        another.rollback()


def opened() -> psycopg.Connection:
    settings = connection.get_connection_params()
    return psycopg.connect(
        **{name: settings[name] for name in ("dbname", "host", "user") if name in settings}
    )


def seen(follower: Follower[str, list[str]]) -> Rows:
    look = follower.now(server=server_started())
    assert sorted(look.values.values()) == look.sum
    assert list(look.values) == sorted(look.values)
    return dict(look.values)


def in_truth() -> Rows:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, word FROM followed WHERE alive ORDER BY id")
        return dict(cursor.fetchall())


def test_only_what_changed_is_read_again(
    follower: Follower[str, list[str]], reader: Reader, other: psycopg.Connection
) -> None:
    other.execute(
        "INSERT INTO followed SELECT n, 'word ' || n, true FROM generate_series(1, 9) AS n"
    )
    other.commit()
    assert len(seen(follower)) == 9
    seen(follower)
    other.execute("UPDATE followed SET word = 'new' WHERE id = 4")
    other.execute("UPDATE followed SET alive = false WHERE id = 5")
    other.execute("DELETE FROM followed WHERE id = 6")
    other.commit()
    assert seen(follower) == in_truth()
    assert reader.asked == [set(range(1, 10)), {4}]


def test_the_keys_are_not_asked_for_where_it_is_told_who_left(
    reader: Reader, other: psycopg.Connection
) -> None:
    never = Follower(LOOK._replace(keys="SELECT 1 / 0"), reader.read, words)
    other.execute("INSERT INTO followed VALUES (1, 'one', true), (4, 'four', true)")
    other.commit()
    seen(never)
    other.execute("UPDATE followed SET alive = false WHERE id = 4")
    other.execute("INSERT INTO followed VALUES (7, 'seven', true), (8, 'never there', false)")
    other.commit()
    assert seen(never) == in_truth() == {1: "one", 7: "seven"}


def test_what_is_committed_after_a_look_by_a_transaction_that_was_older_is_seen(
    follower: Follower[str, list[str]], other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO followed VALUES (1, 'old', true)")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO followed VALUES (2, 'young', true)")
    assert seen(follower) == {2: "young"}
    other.commit()
    assert seen(follower) == {1: "old", 2: "young"}, "in order, though it came later"


def test_one_goes_and_one_comes_and_there_are_as_many_as_before(
    follower: Follower[str, list[str]], other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO followed VALUES (1, 'one', true), (4, 'four', true)")
    other.commit()
    seen(follower)
    other.execute("UPDATE followed SET alive = id IN (2, 3)")
    other.execute("INSERT INTO followed VALUES (2, 'two', true), (3, 'three', true)")
    other.commit()
    assert seen(follower) == {2: "two", 3: "three"}


def test_what_a_transaction_has_written_itself_is_seen_and_forgotten_if_it_is_rolled_back(
    follower: Follower[str, list[str]], other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO followed VALUES (1, 'one', true)")
    other.commit()
    seen(follower)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE followed SET word = 'mine'")
        cursor.execute("INSERT INTO followed VALUES (2, 'mine too', true)")
        assert seen(follower) == {1: "mine", 2: "mine too"}
        transaction.set_rollback(True)
    assert seen(follower) == {1: "one"}


def test_another_server_is_believed_nothing_of_the_last(
    follower: Follower[str, list[str]], reader: Reader, other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO followed VALUES (1, 'one', true)")
    other.commit()
    follower.now(server="one")
    follower.now(server="one")
    follower.now(server="another")
    assert reader.asked == [{1}, {1}]


@pytest.mark.parametrize("away", [-(2**31), 1000], ids=["a milliard ago", "to come"])
def test_a_horizon_that_is_long_past_or_to_come_is_not_relied_on(
    away: int, follower: Follower[str, list[str]], reader: Reader, other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO followed VALUES (1, 'one', true)")
    other.commit()
    seen(follower)
    known = follower._known
    assert known is not None
    follower._known = known._replace(horizon=known.horizon + away)
    assert seen(follower) == {1: "one"}
    assert reader.asked == [{1}, {1}]


@pytest.mark.parametrize("as_many_go", [False, True])
def test_a_row_that_nobody_was_told_of_is_found_by_number_and_sum(
    as_many_go: bool, follower: Follower[str, list[str]], other: psycopg.Connection
) -> None:
    """As after a server that recovered has given lost numbers of transactions to others."""
    other.execute("INSERT INTO followed SELECT n, 'word', true FROM generate_series(1, 3) AS n")
    other.commit()
    seen(follower)
    known = follower._known
    assert known is not None
    marks = {key: mark for key, mark in known.marks.items() if key != 2}
    values = {key: value for key, value in known.values.items() if key != 2}
    # Rows of its last transactions are looked at once more; these are of an older one.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()")
    follower._known = known._replace(marks=marks, values=values, sum=["word"] * 2)
    if as_many_go:
        other.execute("DELETE FROM followed WHERE id = 3")
        other.commit()
    assert seen(follower) == in_truth()


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize("seed", range(12))
def test_whatever_three_others_do_a_look_gives_what_is_committed(
    seed: int, follower: Follower[str, list[str]]
) -> None:
    chance = random.Random(seed)
    others = [opened() for _ in range(3)]
    held: dict[int, set[int]] = {number: set() for number in range(3)}
    try:
        for step in range(150):
            number = chance.randrange(3)
            other, key = others[number], chance.randrange(30)
            act = chance.choice(["put", "put", "put", "drop", "commit", "roll back", "nested"])
            if act == "commit":
                other.commit()
                held[number].clear()
            elif act == "roll back":
                other.rollback()
                held[number].clear()
            elif any(key in keys for who, keys in held.items() if who != number):
                continue  # It would wait for the other for ever.
            elif act == "drop":
                other.execute("UPDATE followed SET alive = NOT alive WHERE id = %s", [key])
                held[number].add(key)
            else:
                held[number].add(key)
                with other.transaction() if act == "nested" else other.cursor():
                    other.execute(
                        "INSERT INTO followed VALUES (%s, %s, true)"
                        " ON CONFLICT (id) DO UPDATE SET word = EXCLUDED.word",
                        [key, f"{step} of {number}"],
                    )
                if act == "nested" and other.info.transaction_status.name == "IDLE":
                    held[number].clear()
            if chance.random() < 0.4:
                assert seen(follower) == in_truth()
    finally:
        for other in others:
            other.close()
