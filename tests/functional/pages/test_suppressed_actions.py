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
    assert "Isolation limit: 4 of 40 cards (10 %) by rules; 4 are isolated now." in text
    assert "Rate limit: 10 nodes in 10 minutes. Oldest suppressed isolation: " in text
    assert "Suppressed 8 on 1 node" in text
    assert "Remaining available cards 28 70.0 % of 40 cards" in text
    assert "79 × " in text


def test_the_inbox_and_the_overview_lead_there_while_something_waits(
    viewer: Client, storm: Cluster
) -> None:
    for address in ("/fleet", "/fleet/faults"):
        text = viewer.get(address).text
        assert "8 isolations suppressed on 1 node" in text
        assert f'href="{ADDRESS}"' in text
    Fault.objects.update(ended_at=timezone.now())
    for address in ("/fleet", "/fleet/faults"):
        assert ADDRESS not in viewer.get(address).text
    assert "No suppressed isolations" in viewer.get(ADDRESS).text


def test_operators_isolate_all_of_it_and_are_told_what_it_costs(
    operator: Client, storm: Cluster
) -> None:
    text = visible_text(operator.get(ADDRESS).text)
    assert "8 cards of nvidia-h800 in here will be isolated until an operator returns them" in text
    assert "28 of 40 cards (70.0 %) remain available." in text
    address = action_address(operator, "isolate")
    assert "enter a reason; it is stored in the history" in operator.post(address, follow=True).text
    text = operator.post(address, {"reason": "bad batch"}, follow=True).text
    assert "8 cards or nodes isolated" in text
    assert "No suppressed isolations" in text
    assert Card.objects.filter(state="isolated").count() == 12
    again = visible_text(operator.post(address, {"reason": "bad batch"}, follow=True).text)
    assert (
        "No change: all selected cards and nodes were already isolated. 8 isolations skipped:"
        in again
    )
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
    assert "7 cards or nodes isolated" in text
    assert "1 isolation skipped: fault resolved or already decided." in text


def test_operators_leave_all_of_it_with_a_reason(operator: Client, storm: Cluster) -> None:
    text = operator.post(
        action_address(operator, "leave"), {"reason": "firmware"}, follow=True
    ).text
    assert "8 cards or nodes kept in service." in text
    assert "No suppressed isolations" in text
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
    assert "The health policy requires an operator decision." in text
    assert "Isolation limit" not in text


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
