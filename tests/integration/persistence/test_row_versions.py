"""Row caches return committed rows, whatever other transactions commit, roll back or leave open."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence

import psycopg
import pytest
from django.db import connection, transaction

from controlplane.persistence.row_versions import (
    RowCache,
    RowVersionTrigger,
    database_server_identity,
)

_VERSIONS = """
    SELECT array_agg(id ORDER BY id), array_agg(row_version::text ORDER BY id) FROM versioned WHERE alive
"""

Rows = dict[int, str]


class Reader:
    """Counts what is read."""

    def __init__(self) -> None:
        self.read_keys: list[set[int]] = []

    def read(self, keys: Collection[int]) -> Rows:
        self.read_keys.append(set(keys))
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT id, word FROM versioned WHERE alive AND id = ANY(%s)", [list(keys)]
            )
            return dict(cursor.fetchall())


def summarize(
    before: Collection[str] | None, removed: Sequence[str], added: Sequence[str]
) -> list[str]:
    """The aggregate: every word."""
    left = list(before or ())
    for word in removed:
        left.remove(word)
    return sorted([*left, *added])


@pytest.fixture
def reader() -> Reader:
    return Reader()


@pytest.fixture
def cache(reader: Reader) -> RowCache[str, list[str]]:
    return RowCache(_VERSIONS, reader.read, summarize)


@pytest.fixture
def _table(transactional_db: None) -> Iterator[None]:
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE versioned (id int PRIMARY KEY, word text, alive bool, seen_at timestamptz,"
            " row_version bigint NOT NULL DEFAULT nextval('persistence_row_version'))"
        )
        cursor.execute(str(RowVersionTrigger("versioned", "word", "alive").sql))
    try:
        yield
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP TABLE versioned")


@pytest.fixture
def other(_table: None) -> Iterator[psycopg.Connection]:
    """Another connection that commits explicitly."""
    with connect() as another:
        yield another
        another.rollback()


def connect() -> psycopg.Connection:
    settings = connection.get_connection_params()
    return psycopg.connect(
        **{name: settings[name] for name in ("dbname", "host", "user") if name in settings}
    )


def cached(cache: RowCache[str, list[str]]) -> Rows:
    rows = cache.refresh(server=database_server_identity())
    assert sorted(rows.values.values()) == rows.summary
    assert list(rows.values) == sorted(rows.values)
    return dict(rows.values)


def committed_rows() -> Rows:
    with connection.cursor() as cursor:
        cursor.execute("SELECT id, word FROM versioned WHERE alive ORDER BY id")
        return dict(cursor.fetchall())


def test_only_what_changed_is_read_again(
    cache: RowCache[str, list[str]], reader: Reader, other: psycopg.Connection
) -> None:
    other.execute(
        "INSERT INTO versioned SELECT n, 'word ' || n, true FROM generate_series(1, 9) AS n"
    )
    other.commit()
    assert len(cached(cache)) == 9
    cached(cache)
    other.execute("UPDATE versioned SET word = 'new' WHERE id = 4")
    other.execute("UPDATE versioned SET alive = false WHERE id = 5")
    other.execute("DELETE FROM versioned WHERE id = 6")
    other.execute("UPDATE versioned SET seen_at = now()")
    other.commit()
    assert cached(cache) == committed_rows()
    assert reader.read_keys == [set(range(1, 10)), {4}]


def test_commits_of_older_transactions_after_a_refresh_are_seen(
    cache: RowCache[str, list[str]], other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO versioned VALUES (1, 'old', true)")
    with connection.cursor() as cursor:
        cursor.execute("INSERT INTO versioned VALUES (2, 'young', true)")
    assert cached(cache) == {2: "young"}
    other.commit()
    assert cached(cache) == {1: "old", 2: "young"}, "in order, though it came later"


def test_own_uncommitted_writes_are_seen_and_dropped_on_rollback(
    cache: RowCache[str, list[str]], other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO versioned VALUES (1, 'one', true)")
    other.commit()
    cached(cache)
    with transaction.atomic(), connection.cursor() as cursor:
        for word in ("mine", "mine again"):
            cursor.execute("UPDATE versioned SET word = %s", [word])
            assert cached(cache) == {1: word}
        cursor.execute("INSERT INTO versioned VALUES (2, 'mine too', true)")
        assert cached(cache) == {1: "mine again", 2: "mine too"}
        transaction.set_rollback(True)
    assert cached(cache) == {1: "one"}
    with connection.cursor() as cursor:
        cursor.execute("UPDATE versioned SET word = 'later'")
    assert cached(cache) == {1: "later"}


def test_rows_are_discarded_for_another_server(
    cache: RowCache[str, list[str]], reader: Reader, other: psycopg.Connection
) -> None:
    other.execute("INSERT INTO versioned VALUES (1, 'one', true)")
    other.commit()
    for server in ("one", "one", "another"):
        cache.refresh(server=server)
    assert reader.read_keys == [{1}, {1}]


def test_a_row_that_is_gone_before_it_is_read_is_left_out(other: psycopg.Connection) -> None:
    other.execute("INSERT INTO versioned VALUES (1, 'one', true), (2, 'two', true)")
    other.commit()
    cache: RowCache[str, list[str]] = RowCache(
        _VERSIONS, lambda keys: {key: "two" for key in keys if key == 2}, summarize
    )
    assert cached(cache) == {2: "two"}
    assert cached(cache) == {2: "two"}


@pytest.mark.usefixtures("_table")
@pytest.mark.parametrize("seed", range(6))
def test_a_refresh_returns_committed_rows_under_concurrent_writers(
    seed: int, cache: RowCache[str, list[str]]
) -> None:
    chance = random.Random(seed)
    others = [connect() for _ in range(3)]
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
                other.execute("UPDATE versioned SET alive = NOT alive WHERE id = %s", [key])
                held[number].add(key)
            else:
                held[number].add(key)
                with other.transaction() if action == "nested" else other.cursor():
                    other.execute(
                        "INSERT INTO versioned VALUES (%s, %s, true)"
                        " ON CONFLICT (id) DO UPDATE SET word = EXCLUDED.word",
                        [key, f"{step} of {number}"],
                    )
                if action == "nested" and other.info.transaction_status.name == "IDLE":
                    held[number].clear()
            if chance.random() < 0.4:
                assert cached(cache) == committed_rows()
    finally:
        for other in others:
            other.close()
