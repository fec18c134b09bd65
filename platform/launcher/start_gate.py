"""Wait until a cluster that can be watched is registered, then exec the watcher.

A product on one machine has none, and an idle Django process would use 100 MB. Run as ``python -m
launcher.start_gate COMMAND …``: the process replaces itself with the command.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import psycopg

Found = TypeVar("Found")

#: A registered cluster is watched within a few seconds.
POLL_SECONDS = 2.0
#: Kinds that cannot be watched; the command decides about all others.
_UNWATCHED_KINDS = ("fake", "local", "simulated")
_ANY = "SELECT EXISTS (SELECT FROM fleet_cluster WHERE removed_at IS NULL AND kind <> ALL(%s))"


def wait_for(
    url: str,
    *,
    query: Callable[[psycopg.Connection[tuple[object, ...]]], Found | None],
    description: str,
    poll_seconds: float = POLL_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> Found:
    """Poll the database until ``query`` returns a result; database errors are retried."""
    last_error = ""
    while True:
        try:
            with psycopg.connect(
                url, autocommit=True, application_name="ninefold start gate"
            ) as database:
                while (found := query(database)) is None:
                    sleep(poll_seconds)
                return found
        except psycopg.Error as error:
            message = str(error).partition("\n")[0]
            if message != last_error:
                print(f"the database cannot be asked for {description}: {message}", flush=True)
            last_error = message
        sleep(poll_seconds)


def _clusters(database: psycopg.Connection[tuple[object, ...]]) -> bool | None:
    row = database.execute(_ANY, [list(_UNWATCHED_KINDS)]).fetchone()
    return True if row is not None and row[0] else None


def main(arguments: Sequence[str]) -> None:
    """:raises SystemExit: if there is no command or no database URL."""
    url = os.environ.get("NINEFOLD_DATABASE_URL", "")
    if not arguments or not url:
        raise SystemExit("usage: NINEFOLD_DATABASE_URL=… python -m launcher.start_gate COMMAND …")
    wait_for(url, query=_clusters, description="clusters")
    os.execvp(arguments[0], list(arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
