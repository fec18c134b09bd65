"""The fleet's page where there are hundreds of nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from apps.fleet.models import Card, Cluster, Node
from apps.fleet.reconcilers import inventories_sync
from config import simulated_clusters
from tests import factories

pytestmark = pytest.mark.django_db
#: Session, person, and what the page asks, whatever the size of the fleet.
QUERIES = 10


@pytest.fixture
def client(tmp_path: Path, settings: Settings) -> Client:
    settings.NINEFOLD_HOME = tmp_path
    group = {"name": "h800", "chip": "nvidia-h800", "nodes": 64, "levels": {"leaf": 16}}
    simulated_clusters.ensure_simulated_cluster("paper", fleet={"groups": [group]})
    inventories_sync(at=timezone.now())
    browser = Client()
    browser.force_login(factories.user(admin=True))
    return browser


def test_many_nodes_are_a_map_that_opens_one_of_them(client: Client) -> None:
    node = Node.objects.get(name="h800-33")
    shown = client.get("/fleet").text
    assert f'href="?node={node.uid}#node-{node.uid}"' in shown
    assert 'class="nf-cell"' not in shown
    opened = client.get(f"/fleet?node={node.uid}").text
    assert f'id="node-{node.uid}"' in opened
    assert opened.count('class="nf-cell"') == 8


def test_a_simulated_cluster_says_so_on_the_page(client: Client) -> None:
    assert "not isolated: a simulated cluster runs no programs" in client.get("/fleet").text


def test_a_large_fleet_costs_as_few_queries_as_a_small_one(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    client.get("/fleet")
    with django_assert_max_num_queries(QUERIES):
        client.get("/fleet")


def test_processors_stand_below_what_a_company_buys(client: Client) -> None:
    cluster = Cluster.objects.get(name="paper")
    node = Node.objects.create(cluster=cluster, name="workshop")
    Card.objects.bulk_create(Card(node=node, index=index, chip="cpu") for index in range(600))
    shown = client.get("/fleet").text
    assert shown.index(">nvidia-h800</a>") < shown.index(">cpu</a>")


@pytest.fixture
def huge(client: Client) -> Client:
    cluster = Cluster.objects.get(name="paper")
    nodes = [Node(cluster=cluster, name=f"h20-{number}") for number in range(1250 - 64)]
    Node.objects.bulk_create(nodes)
    Card.objects.bulk_create(
        Card(node=node, index=index, chip="nvidia-h20") for node in nodes for index in range(8)
    )
    return client


def test_of_a_fleet_too_large_to_draw_only_nodes_in_trouble_are_shown(
    huge: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    lost = Node.objects.get(name="h20-33")
    Node.objects.filter(pk=lost.pk).update(ready=False)
    Node.objects.filter(name="h800-15").update(cordoned=True)
    broken = Node.objects.get(name="h20-7")
    broken.cards.filter(index__lt=2).update(state="isolated")
    faulty = Node.objects.get(name="h800-19")
    factories.fault(faulty)
    huge.get("/fleet")
    with django_assert_max_num_queries(QUERIES):
        shown = huge.get("/fleet").text
    assert len(shown) < 100_000
    order = [shown.index(f">{name}</a></td>") for name in ("h20-33", "h20-7", "h800-19", "h800-15")]
    assert order == sorted(order)
    assert "h20-34<" not in shown
    assert "only unhealthy nodes are listed. The map shows all cards" in shown
    assert 'href="/fleet/clusters">All nodes by cluster' in shown
    assert "1,246 other nodes are healthy" in shown
    assert "2 of 8 cards unavailable" in shown
    assert 'href="/fleet/map?by=state"' in shown
