"""Waits until there may be a cluster to watch, and only then becomes the process that watches.

A product on one machine has none, and a whole Django would hold 100 MB to do nothing. Run as
``python -m launcher.lobby COMMAND …``: the process stays the same one when it becomes the command.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import TypeVar

import psycopg

Found = TypeVar("Found")

#: A cluster that is registered is followed within a few seconds.
LOOK_SECONDS = 2.0
#: These say nothing by themselves; whatever else is registered, the command knows whether it does.
_SILENT_KINDS = ("fake", "local", "simulated")
_ANY = "SELECT EXISTS (SELECT FROM fleet_cluster WHERE removed_at IS NULL AND kind <> ALL(%s))"


def wait_for(
    url: str,
    *,
    look: Callable[[psycopg.Connection[tuple[object, ...]]], Found | None],
    what: str,
    look_seconds: float = LOOK_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> Found:
    """What ``look`` finds in the database, once it does, however often the database is away."""
    said = ""
    while True:
        try:
            with psycopg.connect(
                url, autocommit=True, application_name="ninefold lobby"
            ) as database:
                while (found := look(database)) is None:
                    sleep(look_seconds)
                return found
        except psycopg.Error as error:
            words = str(error).partition("\n")[0]
            if words != said:
                print(f"the database cannot be asked for {what}: {words}", flush=True)
            said = words
        sleep(look_seconds)


def _clusters(database: psycopg.Connection[tuple[object, ...]]) -> bool | None:
    row = database.execute(_ANY, [list(_SILENT_KINDS)]).fetchone()
    return True if row is not None and row[0] else None


def main(arguments: Sequence[str]) -> None:
    """:raises SystemExit: if no command is given, or nobody says where the database is."""
    url = os.environ.get("NINEFOLD_DATABASE_URL", "")
    if not arguments or not url:
        raise SystemExit("usage: NINEFOLD_DATABASE_URL=… python -m launcher.lobby COMMAND …")
    wait_for(url, look=_clusters, what="clusters")
    os.execvp(arguments[0], list(arguments))


if __name__ == "__main__":
    main(sys.argv[1:])
