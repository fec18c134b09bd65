"""Tokens of agents: made for one node, kept in a file, made anew only where the old one is no good."""

from __future__ import annotations

import stat
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone

from apps.accounts.services.personal_tokens import token_digest
from apps.fleet.models import Cluster, Node
from apps.telemetry.models import NodeToken

pytestmark = pytest.mark.django_db


@pytest.fixture
def node() -> Node:
    return Node.objects.create(
        cluster=Cluster.objects.create(name="local", kind="local"), name="n7"
    )


def of_file(path: Path) -> NodeToken:
    return NodeToken.objects.get(digest=token_digest(path.read_text().strip()))


def test_a_token_is_printed_once_and_only_its_digest_kept(node: Node) -> None:
    out = StringIO()
    call_command("agent_token", "n7", stdout=out)
    text = out.getvalue().strip()
    assert text.startswith("nft-")
    token = NodeToken.objects.get(digest=token_digest(text))
    assert token.node == node
    assert text not in str(NodeToken.objects.values().get())


def test_a_file_keeps_its_token_as_long_as_it_is_good(node: Node, tmp_path: Path) -> None:
    path = tmp_path / "token"
    call_command("agent_token", "local/n7", file=path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    first = of_file(path)
    call_command("agent_token", "local/n7", file=path)
    assert of_file(path) == first
    assert NodeToken.objects.count() == 1

    NodeToken.objects.update(revoked_at=timezone.now())
    call_command("agent_token", "local/n7", file=path)
    assert of_file(path) not in (first, None)


def test_a_token_of_another_node_is_no_good(node: Node, tmp_path: Path) -> None:
    path = tmp_path / "token"
    call_command("agent_token", "n7", file=path)
    other = Node.objects.create(cluster=node.cluster, name="n8")
    call_command("agent_token", "n8", file=path)
    assert of_file(path).node == other


def test_a_name_that_several_nodes_have_needs_its_cluster(node: Node) -> None:
    Node.objects.create(cluster=Cluster.objects.create(name="east", kind="kubernetes"), name="n7")
    with pytest.raises(CommandError, match="say which: east/n7, local/n7"):
        call_command("agent_token", "n7")
    with pytest.raises(CommandError, match="no cluster has a node 'west/n7'"):
        call_command("agent_token", "west/n7")
