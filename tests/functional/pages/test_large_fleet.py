"""The fleet's page where there are hundreds of nodes."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from apps.fleet.models import Node
from apps.fleet.reconcilers import inventories_sync
from config import simulations
from tests import factories

pytestmark = pytest.mark.django_db
#: Session, person, and what the page asks, whatever the size of the fleet.
QUERIES = 13


@pytest.fixture
def client(tmp_path: Path, settings: Settings) -> Client:
    settings.NINEFOLD_HOME = tmp_path
    group = {"name": "h800", "chip": "nvidia-h800", "nodes": 64, "levels": {"leaf": 16}}
    simulations.ensure("paper", fleet={"groups": [group]})
    inventories_sync(at=timezone.now())
    browser = Client()
    browser.force_login(factories.person(admin=True))
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
    assert "not isolated: a simulated cluster, where no program runs" in client.get("/fleet").text


def test_a_large_fleet_costs_as_few_queries_as_a_small_one(
    client: Client, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_max_num_queries(QUERIES):
        client.get("/fleet")
