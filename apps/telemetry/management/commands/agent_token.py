"""Create a token for the agent of one node, in a file that only its owner reads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser

from apps.accounts.services.personal_tokens import token_digest
from apps.fleet.models import Node
from apps.telemetry.models import NodeToken
from apps.telemetry.services.node_tokens import node_token_issue


class Command(BaseCommand):
    help = (
        "Make a token by which an agent may send the figures of one node's cards. With --file nothing is made as "
        "long as the file holds one that is good for that node."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("node", help="the node's name, or CLUSTER/NAME where several have one")
        parser.add_argument(
            "--file", type=Path, help="where to keep it (0600); without, it is printed"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        node, path = _find_node(options["node"]), options["file"]
        if path is None:
            self.stdout.write(node_token_issue(node=node, actor=None))
        elif not _is_valid_token_file(path, node=node):
            _write_atomically(path, node_token_issue(node=node, actor=None))


def _find_node(name: str) -> Node:
    """:raises CommandError: unless exactly one node is called that."""
    # A node's name may hold no slash; a cluster's never does.
    cluster, _, own = name.rpartition("/")
    nodes = Node.objects.filter(name=own, **({"cluster__name": cluster} if cluster else {}))
    found = list(nodes.select_related("cluster"))
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandError(f"no cluster has a node {name!r}; the page of the fleet lists them")
    clusters = ", ".join(sorted(f"{node.cluster.name}/{node.name}" for node in found))
    raise CommandError(f"several nodes are called {name!r}; say which: {clusters}")


def _is_valid_token_file(path: Path, *, node: Node) -> bool:
    try:
        text = path.read_text(encoding="ascii").strip()
    except (FileNotFoundError, UnicodeDecodeError):
        return False
    return NodeToken.objects.filter(node=node, digest=token_digest(text), revoked_at=None).exists()


def _write_atomically(path: Path, text: str) -> None:
    """Atomically, so that no process reads a partial file."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(f"{text}\n")
    draft.replace(path)
