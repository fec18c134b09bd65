"""The heat map: what it says of each part of the fleet and of each card, and at what cost."""

from __future__ import annotations

import gzip
import json
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import Team
from apps.fleet.models import Card, Node
from apps.telemetry.models import CardMetrics
from tests import factories
from tests.factories.crowds import crowd
from tests.functional.quickest import seconds_of

pytestmark = pytest.mark.django_db
#: Session, person, the page's own frame, what can be filtered by, and what it asks of the fleet.
QUERIES = 10
#: Seconds of one request that would be far too many even on a machine that does much else.
TOO_LONG = 1.0


def cards(browser: Client, query: str = "") -> dict[str, Any]:
    answer = browser.get(f"/fleet/map/cards.json{query}")
    assert answer.status_code == 200
    return answer.json()  # type: ignore[no-any-return]


def of(node: int = 0) -> list[Card]:
    return list(Card.objects.filter(node__name=f"n-{node}").order_by("index"))


def test_every_card_has_its_figures_or_nothing(viewer: Client, team: Team) -> None:
    crowd(nodes=2, claims=1, team=team)
    factories.card_metrics(of()[:2], utilization=83.4)
    factories.card_metrics(of()[2:3], utilization=None)
    data = cards(viewer)
    assert data["heats"] == ["utilization", "memory", "temperature", "power", "ecc"]
    first, second = data["nodes"]
    utilization, memory, *_, ecc = first[9]
    assert utilization == [83, 83, *[None] * 6]
    assert memory[:3] == [76, 76, 76]
    assert ecc[:3] == [0, 0, 0]
    assert second[9][0] == [None] * 8


def test_what_matters_most_of_a_card_is_its_letter(viewer: Client, team: Team) -> None:
    crowd(nodes=2, claims=1, team=team)
    Card.objects.filter(pk=of()[0].pk).update(state="isolated")
    Card.objects.filter(pk=of()[6].pk).update(state="unknown")
    Card.objects.filter(pk=of()[7].pk).update(state="no_new_work")
    Node.objects.filter(name="n-1").update(cordoned=True)
    assert [one[3] for one in cards(viewer)["nodes"]] == ["ihhhffun", "nnnnnnnn"]


def test_an_old_figure_says_its_age_and_is_no_part_of_the_mean(viewer: Client, team: Team) -> None:
    crowd(nodes=1, claims=0, team=team)
    factories.card_metrics(of()[:1], utilization=90.0)
    factories.card_metrics(of()[1:2], utilization=10.0, at=timezone.now() - timedelta(minutes=10))
    node = cards(viewer)["nodes"][0]
    assert node[8][0] <= 5
    assert 600 <= node[8][1] <= 605
    text = viewer.get("/fleet/map").text
    assert "90.0 %" in text
    assert "50.0 %" not in text


def test_a_part_shows_the_parts_below_it_and_the_way_up(viewer: Client, team: Team) -> None:
    crowd(nodes=20, claims=0, team=team)
    text = viewer.get("/fleet/map?at=leaf:crowd/l0&by=temperature").text
    assert "node n-15" in text
    assert "node n-16" not in text
    assert "spine s0" in text
    assert viewer.get("/fleet/map?at=leaf:crowd/l7").status_code == 404
    assert viewer.get("/fleet/map?by=taste").status_code == 404


def test_the_address_narrows_it_by_chip_and_cluster(viewer: Client, team: Team) -> None:
    crowd(nodes=1, claims=0, team=team)
    factories.cluster(cards=2)
    assert len(cards(viewer)["nodes"]) == 2
    assert [one[0] for one in cards(viewer, "?chip=cpu")["nodes"]] == ["here-1"]
    assert [one[0] for one in cards(viewer, "?cluster=crowd")["nodes"]] == ["n-0"]
    assert "crowd" in viewer.get("/fleet/map?cluster=crowd").text


def test_who_has_the_newest_picture_already_gets_nothing(viewer: Client, team: Team) -> None:
    crowd(nodes=1, claims=1, team=team)
    factories.card_metrics(of())
    known = {"If-None-Match": viewer.get("/fleet/map/cards.json")["ETag"]}
    assert viewer.get("/fleet/map/cards.json", headers=known).status_code == 304
    CardMetrics.objects.filter(card=of()[0]).update(received_at=timezone.now())
    assert viewer.get("/fleet/map/cards.json", headers=known).status_code == 200
    known = {"If-None-Match": viewer.get("/fleet/map/cards.json")["ETag"]}
    Card.objects.filter(pk=of()[0].pk).update(state="isolated")
    assert viewer.get("/fleet/map/cards.json", headers=known).status_code == 200


def test_a_card_of_the_picture_leads_to_its_page(viewer: Client, team: Team) -> None:
    crowd(nodes=1, claims=0, team=team)
    answer = viewer.get("/fleet/map/card?cluster=crowd&node=n-0&index=3")
    assert answer["Location"] == f"/fleet/cards/{of()[3].uid}"
    for gone in ("cluster=crowd&node=n-0&index=9", "cluster=crowd&node=n-0&index=x", ""):
        assert viewer.get(f"/fleet/map/card?{gone}").status_code == 404


def test_an_empty_fleet_says_how_there_will_be_one(viewer: Client) -> None:
    assert "Nodes and cards appear" in viewer.get("/fleet/map").text
    assert cards(viewer)["nodes"] == []


@pytest.mark.slow
def test_ten_thousand_cards_cost_as_few_queries_as_ten_and_little_time(
    viewer: Client, team: Team, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    crowd(nodes=1250, claims=1000, team=team)
    factories.card_metrics(Card.objects.all())
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    viewer.get("/fleet/map/cards.json")
    for address in ("/fleet/map", "/fleet/map/cards.json"):
        request = partial(viewer.get, address, headers={"Accept-Encoding": "gzip"})
        with django_assert_max_num_queries(QUERIES):
            answer = request()
        assert seconds_of(request) < TOO_LONG
    assert len(answer.content) < 300_000
    assert len(json.loads(gzip.decompress(answer.content))["nodes"]) == 1250
