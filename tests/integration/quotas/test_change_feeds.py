"""Change feeds return committed rows, whatever other transactions commit, roll back or leave open."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence

import psycopg
import pytest
from django.db import connection, transaction

from apps.quotas.selectors.row_versions import ChangeFeed, FeedQuery, server_identity

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
QUERY = FeedQuery(changed=_CHANGED.format(elsewhere=_DEAD), keys=_KEYS)
BLIND = FeedQuery(changed=_CHANGED.format(elsewhere="NULL"), keys=_KEYS)

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


def summary(before: Collection[str] | None, went: Sequence[str], came: Sequence[str]) -> list[str]:
    """The aggregate: every word."""
    left = list(before or ())
    for word in went:
        left.remove(word)
    return sorted([*left, *came])


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture(params=[QUERY, BLIND], ids=["told who left", "told of nobody"])
def feed(reader: Reader, request: pytest.FixtureRequest) -> ChangeFeed[str, list[str]]:
    return ChangeFeed(request.param, reader.read, summary)


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
    """Another connection that commits explicitly."""
    with opened() as another:
        yield another
        another.rollback()


def opened() -> psycopg.Connection:
    settings = connection.get_connection_params()
    return psycopg.connect(
        **{name: settings[name] for name in ("dbname", "host", "user") if name in settings}
    )


def seen(feed: ChangeFeed[str, list[str]]) -> Rows:
    refreshed = feed.refresh(server=server_identity())
    assert sorted(refreshed.values.values()) == refreshed.summary
    assert list(refreshed.values) == sorted(refreshed.values)
    return dict(refreshed.values)


def committed_rows() -> Rows:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, word FROM followed WHERE alive ORDER BY id")
        return dict(cursor.fetchall())


def test_only_what_changed_is_read_again(
    feed: ChangeFeed[str, list[str]], reader: Reader, other: psycopg.Connection
) -> None:
    other.execute(
        "INSERT INTO followed SELECT n, 'word ' || n, true FROM generate_series(1, 9) AS n"
    )
    other.commit()
    assert len(seen(feed)) == 9
    seen(feed)
    other.execute("UPDATE followed SET word = 'new' WHERE id = 4")
    other.execute("UPDATE followed SET alive = false WHERE id = 5")
    other.execute("DELETE FROM followed WHERE id = 6")
    other.commit()
    assert seen(feed) == committed_rows()
    assert reader.asked == [set(range(1, 10)), {4}]


def test_keys_are_not_queried_if_removed_rows_are_reported(
    reader: Reader, other: psycopg.Connection
) -> None:
    never = ChangeFeed(QUERY._replace(keys="SELECT 1 / 0"), reader.read, summary)
    other.execute("INSERT INTO followed VALUES (1, 'one', true), (4, 'four', true)")
    other.commit()
    seen(never)
    other.execute("UPDATE followed SET alive = false WHERE id = 4")
    other.execute("INSERT INTO followed VALUES (7, 'seven', true), (8, 'never there', false)")
    other.commit()
    assert seen(never) == committed_rows() == {1: "one", 7: "seven"}


def test_commits_of_older_transactions_after_a_query_are_seen(
    feed: ChangeFeed[str, list[str]], other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO followed VALUES (1, 'old', true)")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO followed VALUES (2, 'young', true)")
    assert seen(feed) == {2: "young"}
    other.commit()
    assert seen(feed) == {1: "old", 2: "young"}, "in order, though it came later"


def test_a_removed_and_an_added_row_are_detected_with_equal_counts(
    feed: ChangeFeed[str, list[str]], other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO followed VALUES (1, 'one', true), (4, 'four', true)")
    other.commit()
    seen(feed)
    other.execute("UPDATE followed SET alive = id IN (2, 3)")
    other.execute("INSERT INTO followed VALUES (2, 'two', true), (3, 'three', true)")
    other.commit()
    assert seen(feed) == {2: "two", 3: "three"}


def test_own_uncommitted_writes_are_seen_and_dropped_on_rollback(
    feed: ChangeFeed[str, list[str]], other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO followed VALUES (1, 'one', true)")
    other.commit()
    seen(feed)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE followed SET word = 'mine'")
        cursor.execute("INSERT INTO followed VALUES (2, 'mine too', true)")
        assert seen(feed) == {1: "mine", 2: "mine too"}
        transaction.set_rollback(True)
    assert seen(feed) == {1: "one"}


def test_the_state_is_discarded_for_another_server(
    feed: ChangeFeed[str, list[str]], reader: Reader, other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO followed VALUES (1, 'one', true)")
    other.commit()
    feed.refresh(server="one")
    feed.refresh(server="one")
    feed.refresh(server="another")
    assert reader.asked == [{1}, {1}]


@pytest.mark.parametrize("away", [-(2**31), 1000], ids=["a milliard ago", "to come"])
def test_an_old_or_future_horizon_is_discarded(
    away: int, feed: ChangeFeed[str, list[str]], reader: Reader, other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO followed VALUES (1, 'one', true)")
    other.commit()
    seen(feed)
    known = feed._known
    assert known is not None
    feed._known = known._replace(horizon=known.horizon + away)
    assert seen(feed) == {1: "one"}
    assert reader.asked == [{1}, {1}]


@pytest.mark.parametrize("as_many_go", [False, True])
def test_a_missed_row_is_detected_by_count_and_sum(
    as_many_go: bool, feed: ChangeFeed[str, list[str]], other: psycopg.Connection
) -> None:
    """As if a recovered server had reused lost transaction ids."""
    other.execute("INSERT INTO followed SELECT n, 'word', true FROM generate_series(1, 3) AS n")
    other.commit()
    seen(feed)
    known = feed._known
    assert known is not None
    marks = {key: mark for key, mark in known.versions.items() if key != 2}
    values = {key: value for key, value in known.values.items() if key != 2}
    # Rows of its last transactions are looked at once more; these are of an older one.
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_current_xact_id()")
    feed._known = known._replace(versions=marks, values=values, summary=["word"] * 2)
    if as_many_go:
        other.execute("DELETE FROM followed WHERE id = 3")
        other.commit()
    assert seen(feed) == committed_rows()


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize("seed", range(12))
def test_a_query_returns_committed_rows_under_concurrent_writers(
    seed: int, feed: ChangeFeed[str, list[str]]
) -> None:
    chance = random.Random(seed)
    others = [opened() for _ in range(3)]
    held: dict[int, set[int]] = {number: set() for number in range(3)}
    try:
        for step in range(150):
            number = chance.randrange(3)
            other, key = others[number], chance.randrange(30)
            action = chance.choice(["put", "put", "put", "drop", "commit", "roll back", "nested"])
            if action == "commit":
                other.commit()
                held[number].clear()
            elif action == "roll back":
                other.rollback()
                held[number].clear()
            elif any(key in keys for who, keys in held.items() if who != number):
                continue  # It would wait for the other for ever.
            elif action == "drop":
                other.execute("UPDATE followed SET alive = NOT alive WHERE id = %s", [key])
                held[number].add(key)
            else:
                held[number].add(key)
                with other.transaction() if action == "nested" else other.cursor():
                    other.execute(
                        "INSERT INTO followed VALUES (%s, %s, true)"
                        " ON CONFLICT (id) DO UPDATE SET word = EXCLUDED.word",
                        [key, f"{step} of {number}"],
                    )
                if action == "nested" and other.info.transaction_status.name == "IDLE":
                    held[number].clear()
            if chance.random() < 0.4:
                assert seen(feed) == committed_rows()
    finally:
        for other in others:
            other.close()
