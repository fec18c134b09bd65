"""Wait for a registration in the database, then exec the process that needs it.

::

    python -m launcher.wait_for_registration cluster COMMAND …            for a cluster that can be watched
    python -m launcher.wait_for_registration node TOKEN_FILE STATE_FILE   for this machine as a node

A product on one machine has no cluster to watch, and an idle Django process would use 100 MB. Once this machine is
a node, a token is created for it and the metrics agent is started; it needs a few megabytes, and does not get the
URL of the database. In both cases this process replaces itself.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import psycopg

from launcher.configuration import manage_arguments

Registration = TypeVar("Registration")

_DATABASE_URL = "NINEFOLD_DATABASE_URL"
_CONTROL_URL = "NINEFOLD_CONTROL_URL"
#: The node of the cluster that is this machine. After its name has changed the earlier one is not ready any more.
_LOCAL_NODE_QUERY = """
    SELECT cluster.name || '/' || node.name, node.name, min(card.chip), count(*)
    FROM fleet_node node
    JOIN fleet_cluster cluster ON cluster.id = node.cluster_id
    JOIN fleet_card card ON card.node_id = node.id
    WHERE cluster.kind = 'local' AND node.ready AND card.parent_id IS NULL
      AND cluster.removed_at IS NULL AND node.removed_at IS NULL AND card.removed_at IS NULL
    GROUP BY cluster.id, node.id
    ORDER BY node.id DESC
    LIMIT 1
"""
#: A registered cluster is watched within a few seconds.
_POLL_SECONDS = 2.0
#: Kinds that cannot be watched; the command decides about all others.
_UNWATCHED_CLUSTER_KINDS = ("fake", "local", "simulated")
_WATCHABLE_CLUSTER_QUERY = (
    "SELECT EXISTS (SELECT FROM fleet_cluster WHERE removed_at IS NULL AND kind <> ALL(%s))"
)
_PROGRAM = "python -m launcher.wait_for_registration"
_USAGE = (
    f"usage: {_DATABASE_URL}=… {_PROGRAM} cluster COMMAND …\n"
    f"       {_DATABASE_URL}=… {_CONTROL_URL}=… {_PROGRAM} node TOKEN_FILE STATE_FILE"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNode:
    """This machine, as the fleet knows it."""

    #: With its cluster: ``local/node-1``.
    full_name: str
    name: str
    chip: str
    cards: int


def _local_node(database: psycopg.Connection[tuple[object, ...]]) -> LocalNode | None:
    """This machine, once a cluster has reported it."""
    row = database.execute(_LOCAL_NODE_QUERY).fetchone()
    if row is None:
        return None
    full_name, name, chip, cards = row
    return LocalNode(
        full_name=str(full_name), name=str(name), chip=str(chip), cards=int(str(cards))
    )


def agent_command(
    local_node: LocalNode, *, server: str, token_file: str, state_file: str
) -> list[str]:
    """The agent's command line."""
    arguments = [sys.executable, "-m", "ninefold_runtime.agent", "--server", server]
    arguments += ["--token-file", token_file, "--state", state_file, "--node", local_node.name]
    if local_node.chip == "cpu":
        arguments += ["--reader", "cpu", "--cards", str(local_node.cards)]
    return arguments


def wait_for_registration(
    database_url: str,
    *,
    query: Callable[[psycopg.Connection[tuple[object, ...]]], Registration | None],
    description: str,
    poll_seconds: float = _POLL_SECONDS,
    sleep: Callable[[float], None] = time.sleep,
) -> Registration:
    """Poll the database until ``query`` returns a result; database errors are retried."""
    last_error = ""
    while True:
        try:
            with psycopg.connect(
                database_url, autocommit=True, application_name="ninefold wait for registration"
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


def _has_watchable_cluster(database: psycopg.Connection[tuple[object, ...]]) -> bool | None:
    row = database.execute(_WATCHABLE_CLUSTER_QUERY, [list(_UNWATCHED_CLUSTER_KINDS)]).fetchone()
    return True if row is not None and row[0] else None


def exec_once_cluster_registered(command: Sequence[str], *, database_url: str) -> None:
    """Replace this process with the command once there is a cluster to watch."""
    wait_for_registration(database_url, query=_has_watchable_cluster, description="clusters")
    os.execvp(command[0], list(command))


def exec_agent_once_node_registered(
    token_file: str, state_file: str, *, database_url: str, control_url: str
) -> None:
    """Replace this process with the metrics agent once this machine is a node.

    :raises SystemExit: if no token can be created.
    """
    local_node = wait_for_registration(
        database_url, query=_local_node, description="this machine's node"
    )
    result = subprocess.run(
        [
            *(sys.executable, *manage_arguments()),
            *("agent_token", local_node.full_name, "--file", token_file),
        ],
        check=False,
    )
    if result.returncode != 0:
        raise SystemExit("no token could be created for the agent; it is tried again")
    environment = {name: text for name, text in os.environ.items() if name != _DATABASE_URL}
    program = agent_command(
        local_node, server=control_url, token_file=token_file, state_file=state_file
    )
    os.execve(program[0], program, environment)


def main(arguments: Sequence[str]) -> None:
    """:raises SystemExit: if arguments or environment variables are wrong, or no token can be created."""
    database_url, control_url = (os.environ.get(name, "") for name in (_DATABASE_URL, _CONTROL_URL))
    match arguments:
        case ["cluster", *command] if command and database_url:
            exec_once_cluster_registered(command, database_url=database_url)
        case ["node", token_file, state_file] if database_url and control_url:
            exec_agent_once_node_registered(
                token_file, state_file, database_url=database_url, control_url=control_url
            )
        case _:
            raise SystemExit(_USAGE)


if __name__ == "__main__":
    main(sys.argv[1:])
