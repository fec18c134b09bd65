"""A node whose agent may send, with nothing counted of it yet."""

from __future__ import annotations

import pytest
from django.core.cache import cache

from apps.fleet.models import Card, Cluster, Node
from apps.telemetry.services.node_tokens import node_token_issue


@pytest.fixture
def nothing_counted() -> None:
    cache.clear()


@pytest.fixture
def node(db: None) -> Node:
    """The first of two nodes with two cards each."""
    cluster = Cluster.objects.create(name="east", kind="simulated")
    rows = Node.objects.bulk_create([Node(cluster=cluster, name=f"n{number}") for number in (0, 1)])
    Card.objects.bulk_create(
        [Card(node=row, index=index, chip="nvidia-h200") for row in rows for index in range(2)]
    )
    return rows[0]


@pytest.fixture
def token(node: Node) -> str:
    """The only one of the node."""
    return node_token_issue(node=node, actor=None)
