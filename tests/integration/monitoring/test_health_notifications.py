"""What operators are told of the fleet's health, and where it leads."""

from __future__ import annotations

import pytest
from pytest_django import Settings

from apps.accounts.models import User
from apps.fleet.models import Node
from apps.monitoring.reconcilers.health import health_reconcile
from apps.monitoring.services.faults import signals_record
from apps.monitoring.services.isolations import isolations_release, isolations_request
from apps.notifications.models import Event, Notification
from apps.notifications.selectors.notifications import render_notification
from apps.notifications.selectors.webhooks import delivery_body
from controlplane.domain.alerts.notifications import NotificationKind
from tests import factories
from tests.integration.monitoring.notifications import deliver_messages
from tests.integration.monitoring.wards import NOON, seconds_later, sign, ward

pytestmark = pytest.mark.django_db


@pytest.fixture
def users() -> dict[str, User]:
    team = factories.team("plant")
    operators = {"olga": True, "otto": True, "eve": False}
    return {
        name: factories.user(name, team=team, operator=operates)
        for name, operates in operators.items()
    }


def test_a_node_that_went_out_of_use_leads_to_its_page_and_who_did_it_knows(
    users: dict[str, User],
) -> None:
    cluster = ward(nodes=1)
    node = Node.objects.get()
    olga = users["olga"]
    (row,) = isolations_request(nodes=[node.uid], reason="fans", actor=olga, at=NOON)
    deliver_messages("isolation.begun")
    event = Event.objects.get()
    assert render_notification(event).title == "north/north-0 was isolated"
    assert render_notification(event).href == f"/fleet/clusters/{cluster.uid}/nodes/north-0"
    assert [one.recipient.username for one in Notification.objects.all()] == ["otto"]
    isolations_release(uids=[row.uid], reason="replaced", actor=olga, at=NOON)
    deliver_messages("isolation.ended")
    back = Event.objects.get(kind=NotificationKind.CARD_RETURNED)
    assert render_notification(back).detail == "replaced"


def test_a_webhook_gets_the_evidence_that_a_repair_ticket_needs(
    users: dict[str, User], settings: Settings
) -> None:
    settings.NINEFOLD_PUBLIC_URL = "https://ninefold.example.com"
    cluster = ward(nodes=1)
    signals_record(signals=[sign(cluster, message="GPU has fallen off the bus")], at=NOON)
    health_reconcile(at=seconds_later(1))
    deliver_messages("isolation.begun")
    body = delivery_body(Event.objects.get()).decode()
    for word in ('"serial":"0-1"', '"code":"79"', '"level":"L6"', "GPU has fallen off the bus"):
        assert word in body, word


def test_what_a_guard_holds_back_is_told_once_for_a_cluster(users: dict[str, User]) -> None:
    cluster = ward(nodes=5, cards=4)
    signals = [sign(cluster, node=f"north-{node}") for node in range(5)]
    signals_record(signals=signals, at=NOON)
    health_reconcile(at=seconds_later(1))
    health_reconcile(at=seconds_later(3))
    deliver_messages("decisions.held_back")
    event = Event.objects.get()
    assert (event.kind, event.subject_uid) == (NotificationKind.HEALTH_HELD_BACK, cluster.uid)
    assert event.payload["evidence"]["decisions"] == 3
    assert render_notification(event).href == "/fleet/faults"
    readers = Notification.objects.values_list("recipient__username", flat=True)
    assert sorted(readers) == ["olga", "otto"]
