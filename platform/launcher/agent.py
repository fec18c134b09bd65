"""Wait until this machine is registered as a node, create a token for it, then exec the metrics agent.

Run as ``python -m launcher.agent TOKEN_FILE STATE_FILE``: the process replaces itself with the agent, which
needs a few megabytes, and drops what it no longer needs: the URL of the database.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from launcher.start_gate import wait_for

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


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalNode:
    """This machine, as the fleet knows it."""

    #: With its cluster: ``local/node-1``.
    full_name: str
    name: str
    chip: str
    cards: int


def find_local_node(database: psycopg.Connection[tuple[object, ...]]) -> LocalNode | None:
    """This machine, once a cluster has reported it."""
    row = database.execute(_LOCAL_NODE_QUERY).fetchone()
    if row is None:
        return None
    full_name, name, chip, cards = row
    return LocalNode(
        full_name=str(full_name), name=str(name), chip=str(chip), cards=int(str(cards))
    )


def command(local_node: LocalNode, *, server: str, token: str, state: str) -> list[str]:
    """The agent's command line."""
    arguments = [sys.executable, "-m", "ninefold_runtime.agent", "--server", server]
    arguments += ["--token-file", token, "--state", state, "--node", local_node.name]
    if local_node.chip == "cpu":
        arguments += ["--reader", "cpu", "--cards", str(local_node.cards)]
    return arguments


def main(arguments: Sequence[str]) -> None:
    """:raises SystemExit: if the arguments are wrong, or no token can be created."""
    url, server = os.environ.get(_DATABASE_URL, ""), os.environ.get(_CONTROL_URL, "")
    if len(arguments) != 2 or not url or not server:
        raise SystemExit(
            f"usage: {_DATABASE_URL}=… {_CONTROL_URL}=… python -m launcher.agent TOKEN_FILE STATE_FILE"
        )
    token, state = arguments
    local_node = wait_for(url, query=find_local_node, description="this machine's node")
    result = subprocess.run(
        [sys.executable, "manage.py", "agent_token", local_node.full_name, "--file", token],
        check=False,
    )
    if result.returncode != 0:
        raise SystemExit("no token could be made for the agent; it is tried again")
    environment = {name: text for name, text in os.environ.items() if name != _DATABASE_URL}
    program = command(local_node, server=server, token=token, state=state)
    os.execve(program[0], program, environment)


if __name__ == "__main__":
    main(sys.argv[1:])
