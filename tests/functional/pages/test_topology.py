"""The topology page: content, visibility and cost."""

from __future__ import annotations

import gzip
import json
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import Team
from apps.fleet.models import Card, Node
from apps.quotas.models import Claim
from tests import factories
from tests.factories.crowds import crowd
from tests.functional.pages.conftest import logged_in
from tests.functional.quickest import seconds_of

pytestmark = [pytest.mark.django_db, pytest.mark.slow]
#: Session, person, the page's own frame, and what it asks of the fleet, whatever its size.
QUERIES = 14
#: Seconds of one request that would be far too many even on a machine that does much else.
TOO_LONG = 2.0


@pytest.fixture
def outsider() -> Client:
    return logged_in("otto", team=factories.team("search"))


def cards(browser: Client) -> dict[str, Any]:
    answer = browser.get("/topology/cards.json")
    assert answer.status_code == 200
    return answer.json()  # type: ignore[no-any-return]


def test_a_domain_shows_used_free_idle_and_fragmented(viewer: Client, team: Team) -> None:
    crowd(nodes=3, claims=5, team=team)
    # Four and three ones fill a node but for one card; the fifth claim takes four of the second.
    text = viewer.get("/topology?at=cluster:crowd").text
    assert "1 of 3" in text
    leaf = viewer.get("/topology?at=leaf:crowd/l0").text
    assert "node n-0" in leaf
    assert "node n-2" in leaf


def test_the_cluster_can_be_left_out_of_a_unique_key(viewer: Client, team: Team) -> None:
    crowd(nodes=1, claims=0, team=team)
    assert viewer.get("/topology?at=spine:s0").status_code == 200
    assert viewer.get("/topology?at=spine:s7").status_code == 404
    assert viewer.get("/topology?by=taste").status_code == 404


def test_every_use_of_a_card_has_a_letter(viewer: Client, team: Team) -> None:
    crowd(nodes=2, claims=1, team=team)
    node = Node.objects.get(name="n-0")
    Card.objects.filter(node=node, index=6).update(state="isolated")
    Card.objects.filter(node=node, index=7).update(state="no_new_work")
    Node.objects.filter(name="n-1").update(cordoned=True)
    data = cards(viewer)
    assert [one[3] for one in data["nodes"]] == ["hhhhggbn", "nnnnnnnn"]


def test_unusable_free_cards_are_fragments(viewer: Client, team: Team) -> None:
    crowd(nodes=1, claims=1, team=team)
    # Everybody asks for all eight from now on.
    Claim.objects.update(shape=[{"name": "run", "replicas": 1, "cards": 8, "cpu": 0, "memory": 0}])
    data = cards(viewer)
    assert data["nodes"][0][3] == "hhhhgggg"
    assert data["nodes"][0][6] == 40
    assert "100 % of the free cards" in viewer.get("/topology").text


def test_workloads_of_other_teams_have_no_name(
    viewer: Client, outsider: Client, team: Team
) -> None:
    crowd(nodes=1, claims=1, team=team)
    node = "/topology?at=node:crowd/n-0"
    assert "work 0" in viewer.get(node).text
    assert "work 0" not in outsider.get(node).text
    assert "maps" in outsider.get(node).text
    assert cards(viewer)["claims"][0][5:] == [f"{0:032x}", "work 0"]
    assert cards(outsider)["claims"][0][5:] == ["", ""]


def test_an_empty_fleet_has_an_empty_state(viewer: Client) -> None:
    assert "Add a cluster" in viewer.get("/topology").text
    assert cards(viewer)["nodes"] == []


def test_queries_and_time_for_ten_thousand_cards(
    viewer: Client, team: Team, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    crowd(nodes=1250, claims=5000, team=team)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    for address in ("/topology", "/topology/cards.json"):
        request = partial(viewer.get, address, headers={"Accept-Encoding": "gzip"})
        with django_assert_max_num_queries(QUERIES):
            answer = request()
        assert seconds_of(request) < TOO_LONG
    assert len(answer.content) < 200_000
    assert len(json.loads(gzip.decompress(answer.content))["nodes"]) == 1250
