"""What the guard holds back, on one page: its numbers for everybody, two acts for operators."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.accounts.models import AuditEntry
from apps.fleet.models import Card, Cluster
from apps.monitoring.models import Fault, HealthPolicy
from apps.monitoring.reconcilers.health import health_reconcile
from tests import factories

pytestmark = pytest.mark.django_db

#: Session, person, what they may, the sidebar, and what the page asks, however much is held back.
QUERIES = 9


@pytest.fixture
def cluster() -> Cluster:
    """Forty cards of which twelve are bad; the guard lets four go."""
    found = factories.cluster(cards=40)
    Card.objects.update(chip="nvidia-h800")
    HealthPolicy.objects.create(settings={"cards_per_node": 100}, changed_at=timezone.now())
    return found


@pytest.fixture
def storm(cluster: Cluster) -> Cluster:
    for card in Card.objects.filter(index__lt=12):
        factories.fault(card, code="79" if card.index else "48")
    health_reconcile(at=timezone.now())
    return cluster


def visible_text(text: str) -> str:
    return " ".join(re.sub("<[^>]+>", " ", text).split())


def action_address(browser: Client, name: str) -> str:
    """Address of the act as the page has it."""
    found = re.search(rf'action="(/fleet/held-back/{name}[^"]*)"', browser.get(ADDRESS).text)
    assert found is not None
    return unescape(found[1])


ADDRESS = "/fleet/held-back"


def test_it_says_how_much_waits_under_which_limits_and_since_when(
    viewer: Client, storm: Cluster
) -> None:
    text = visible_text(viewer.get(ADDRESS).text)
    assert "nvidia-h800 in here 8" in text
    assert "Rules may have 4 of 40 cards out of use at once (10 %); 4 are out of use now." in text
    assert "They may touch 10 nodes within 10 minutes. The oldest was held back" in text
    assert "Held back 8 on 1 node" in text
    assert "Usable cards left 28 70.0 % of 40" in text
    assert "79 × " in text


def test_the_inbox_and_the_overview_lead_there_while_something_waits(
    viewer: Client, storm: Cluster
) -> None:
    for address in ("/fleet", "/fleet/faults"):
        text = viewer.get(address).text
        assert "8 isolations are held back, on 1 node" in text
        assert f'href="{ADDRESS}"' in text
    Fault.objects.update(ended_at=timezone.now())
    for address in ("/fleet", "/fleet/faults"):
        assert ADDRESS not in viewer.get(address).text
    assert "Nothing is held back" in viewer.get(ADDRESS).text


def test_operators_isolate_all_of_it_and_are_told_what_it_costs(
    operator: Client, storm: Cluster
) -> None:
    text = visible_text(operator.get(ADDRESS).text)
    assert "8 cards of nvidia-h800 in here go out of use, and only a person gives them" in text
    assert "Of 40 cards 28 can be used then (70.0 %)." in text
    address = action_address(operator, "isolate")
    assert "say why" in operator.post(address, follow=True).text
    text = operator.post(address, {"reason": "bad batch"}, follow=True).text
    assert "8 places are out of use" in text
    assert "Nothing is held back" in text
    assert Card.objects.filter(state="isolated").count() == 12
    again = visible_text(operator.post(address, {"reason": "bad batch"}, follow=True).text)
    assert "Nothing changed: all of it was out of use already. 8 were left out:" in again
    entry = AuditEntry.objects.get(action="held_back.isolate")
    assert entry.detail["count"] == 8


def test_what_ended_after_the_page_was_shown_is_left_out_and_said(
    operator: Client, storm: Cluster
) -> None:
    address = action_address(operator, "isolate")
    well = Card.objects.filter(index__lt=12, state="usable").first()
    assert well is not None
    Fault.objects.filter(card=well).update(ended_at=timezone.now())
    text = operator.post(address, {"reason": "bad batch"}, follow=True).text
    assert "7 places are out of use" in text
    assert "1 was left out: its fault is over, or somebody decided before." in text


def test_operators_leave_all_of_it_with_a_reason(operator: Client, storm: Cluster) -> None:
    text = operator.post(
        action_address(operator, "leave"), {"reason": "firmware"}, follow=True
    ).text
    assert "8 places are left in use." in text
    assert "Nothing is held back" in text
    assert Fault.objects.filter(note="firmware", acknowledged_by_name="otto").count() == 8
    assert Card.objects.filter(state="isolated").count() == 4


def test_who_does_not_operate_the_fleet_sees_and_changes_nothing(
    viewer: Client, storm: Cluster
) -> None:
    assert "/fleet/held-back/isolate" not in viewer.get(ADDRESS).text
    query = f"?cluster={storm.uid}&chip=nvidia-h800"
    for name in ("isolate", "leave"):
        assert viewer.post(f"{ADDRESS}/{name}{query}", {"reason": "x"}).status_code == 403
    assert Card.objects.filter(state="isolated").count() == 4


def test_where_rules_may_not_act_it_says_so(viewer: Client, cluster: Cluster) -> None:
    HealthPolicy.objects.update(automatic=False)
    factories.fault(Card.objects.get(index=0))
    health_reconcile(at=timezone.now())
    text = viewer.get(ADDRESS).text
    assert "Decisions are left to people by the health policy." in text
    assert "Rules may have" not in text


def test_it_is_told_in_chinese(operator: Client, storm: Cluster) -> None:
    text = operator.get(ADDRESS, headers={"accept-language": "zh-hans"}).text
    assert "全部隔离" in text
    assert "here 中的 nvidia-h800" in visible_text(text)


def test_however_much_waits_it_costs_as_few_queries(
    operator: Client, storm: Cluster, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    operator.get(ADDRESS)
    with django_assert_max_num_queries(QUERIES):
        operator.get(ADDRESS)
