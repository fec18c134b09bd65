"""An agent's figures reach the rows of its node's cards through the real interface, and nobody else's."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.core.management import call_command
from pytest_django.live_server_helper import LiveServer

from apps.fleet.models import Card, Cluster, Node
from apps.telemetry.models import CardMetrics, NodeToken
from tests.integration.launcher.process_polling import wait_for

pytestmark = pytest.mark.slow

WITHIN = 120.0
ROOT = Path(__file__).parents[3]
Agent = Callable[[str], "subprocess.Popen[str]"]


@pytest.fixture
def node(transactional_db: None) -> Node:
    cluster = Cluster.objects.create(name="local", kind="local")
    node = Node.objects.create(cluster=cluster, name="n7")
    Card.objects.bulk_create(Card(node=node, index=index, chip="cpu") for index in range(2))
    return node


@pytest.fixture
def agent(live_server: LiveServer, node: Node, tmp_path: Path) -> Iterator[Agent]:
    """Starts one that calls its node by that name, with a token of the node n7."""
    token = tmp_path / "token"
    call_command("agent_token", "n7", file=token)
    started: list[subprocess.Popen[str]] = []

    def start(name: str) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ninefold_runtime.agent", "--server", live_server.url),
                *("--token-file", str(token), "--node", name, "--every", "1"),
                *("--reader", "cpu", "--cards", "2", "--state", str(tmp_path / "sequence")),
            ],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT / "platform")},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate(timeout=WITHIN)


def test_figures_of_every_card_are_there_and_follow(agent: Agent, node: Node) -> None:
    agent("n7")
    metrics = CardMetrics.objects.filter(card__node=node, utilization__isnull=False)
    wait_for(lambda: metrics.count() == 2, what="both cards have figures")
    first = metrics.earliest("card__index")
    assert first.memory_total is not None
    assert first.memory_used is not None
    assert first.memory_total > first.memory_used > 0
    wait_for(lambda: metrics.earliest("card__index").at > first.at, what="newer figures come")
    token = NodeToken.objects.get()
    assert token.agent["reader_ok"] is True
    assert token.sequence > 0


def test_a_token_does_not_speak_for_another_node(agent: Agent, node: Node) -> None:
    other = Node.objects.create(cluster=node.cluster, name="n8")
    Card.objects.create(node=other, index=0, chip="cpu")
    process = agent("n8")
    said, _ = process.communicate(timeout=WITHIN)
    assert process.returncode == 4
    assert "this token belongs to node n7" in said
    assert not CardMetrics.objects.exists()


def test_a_revoked_token_ends_the_agent(agent: Agent) -> None:
    process = agent("n7")
    wait_for(CardMetrics.objects.exists, what="figures come")
    NodeToken.objects.update(revoked_at="2026-01-01T00:00:00Z")
    said, _ = process.communicate(timeout=WITHIN)
    assert process.returncode == 4
    assert "the control plane refuses the token: it answered 401" in said
