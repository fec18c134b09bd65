"""Pages of alerts: what fires, why, who was told, and what people can do about it."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from apps.monitoring.models import AlertGroup, AlertReceiver, AlertRoute, AlertRule, AlertSilence
from apps.monitoring.reconcilers.alerts import alerts_reconcile
from controlplane.persistence.encryption import decrypt
from tests import factories
from tests.cases import for_each_case
from tests.factories.alerts import Alerts

_AT = "/fleet/alerts"
RULE = {
    "name": "power",
    "title": "Too much power",
    "measure": "cards.power",
    "op": ">",
    "threshold": "700",
    "lasts": "60",
    "severity": "critical",
    "enabled": "on",
    "where": "cluster=here\nnode!=test-*",
    "keeps": "0",
    "group_by": "cluster, chip",
    "repeat": "60",
}


@pytest.fixture
def operator(db: None) -> Client:
    client = Client()
    client.force_login(factories.user("root", admin=True))
    return client


@pytest.fixture
def alarmed(operator: Client) -> Alerts:
    factories.cluster()
    root = factories.user("rita", admin=True)
    return factories.firing_alerts(actor=root, at=timezone.now())


def text_of(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, path
    return answer.content.decode()


def test_before_anything_fires_the_pages_say_so_and_what_to_do(operator: Client) -> None:
    page = text_of(operator, _AT)
    assert "No firing alerts" in page
    assert "No alert notifications are sent" in page
    assert "No alert history" in text_of(operator, f"{_AT}/past")
    assert "No alert silences" in text_of(operator, f"{_AT}/silences")
    assert "No alert rules" in text_of(operator, f"{_AT}/rules")
    assert "No alert receivers" in text_of(operator, f"{_AT}/routes")


def test_what_fires_shows_where_since_when_and_how_many(operator: Client, alarmed: Alerts) -> None:
    page = text_of(operator, _AT)
    assert "Memory is too hot" in page
    assert "cluster=here" in page
    assert "No alert notifications are sent" not in page
    assert "Memory is too hot" in text_of(operator, f"{_AT}/past")
    episode = text_of(operator, f"{_AT}/{alarmed.firing.uid}")
    assert "cluster=here node=here-1 card=2 chip=cpu" in episode
    assert "99 °C" in episode
    assert "night shift" in episode
    csv = operator.get(f"{_AT}?format=csv")
    assert b"".join(csv.streaming_content).count(b"Memory is too hot") == 1  # type: ignore[attr-defined]


def test_who_silenced_what_and_until_when_is_on_its_page(operator: Client, alarmed: Alerts) -> None:
    form = {"name": "fan of card 1", "matchers": "rule=memory-hot\ncard=1", "hours": "24",
            "reason": "fan ordered"}  # fmt: skip
    answer = operator.post(f"{_AT}/silences/new", form)
    assert answer.status_code == 302
    assert "fan of card 1" in text_of(operator, f"{_AT}/silences")
    again = operator.post(f"{_AT}/silences/new", form)
    assert again.status_code == 422
    assert "a silence named fan of card 1 has not expired yet" in again.content.decode()
    assert "cooling trial" in text_of(operator, "/admin/monitoring/alertsilence/")
    page = text_of(operator, f"{_AT}/{alarmed.firing.uid}")
    assert "Silenced by root: fan ordered" in page
    AlertGroup.objects.filter(pk=alarmed.firing.pk).update(silenced=1)
    assert "1 alert silenced by root" in text_of(operator, _AT)
    silence = AlertSilence.objects.get(reason="fan ordered")
    operator.post(f"{_AT}/silences/{silence.uid}/end")
    silence.refresh_from_db()
    assert silence.ended_by_name == "root"
    assert "Silenced by root" not in text_of(operator, f"{_AT}/{alarmed.firing.uid}")


def test_a_silence_that_cannot_be_is_refused_beside_its_field(operator: Client) -> None:
    form = {"name": "x", "matchers": "nonsense", "hours": "24", "reason": "x"}
    answer = operator.post(f"{_AT}/silences/new", form)
    assert answer.status_code == 422
    assert "is not a label matcher; write cluster=west or node!=a*" in answer.content.decode()


def test_a_rule_is_made_tried_changed_and_deleted(operator: Client) -> None:
    factories.cluster()
    trial = operator.post(f"{_AT}/rules/new?check=1", RULE, headers={"HX-Request": "true"})
    assert "Matches no objects now." in trial.content.decode()
    empty = operator.post(f"{_AT}/rules/new?check=1", {"name": ""}, headers={"HX-Request": "true"})
    assert "required" not in empty.content.decode(), "nobody has filled in anything yet"
    assert "Last 24 hours: no alerts." in trial.content.decode()
    assert operator.post(f"{_AT}/rules/new", RULE).status_code == 302
    rule = AlertRule.objects.get(name="power")
    assert rule.document["where"] == ["cluster=here", "node!=test-*"]
    assert (rule.document["group_by"], rule.document["repeat"]) == (["cluster", "chip"], 3600)
    page = text_of(operator, f"{_AT}/rules/{rule.uid}")
    assert "node!=test-*" in page
    changed = {**RULE, "threshold": "800", "enabled": ""}
    operator.post(f"{_AT}/rules/{rule.uid}", changed)
    rule.refresh_from_db()
    assert (rule.document["threshold"], rule.enabled) == (800, False)
    operator.post(f"{_AT}/rules/{rule.uid}/delete")
    assert not AlertRule.objects.filter(name="power").exists()


@for_each_case(
    ("changes", "says"),
    [
        ({"name": "Power"}, "is not a valid name"),
        ({"where": "team=x"}, "this metric has no label"),
        ({"group_by": "team"}, "this metric has no label"),
    ],
)
def test_what_is_wrong_with_a_rule_is_said_before_and_after(
    operator: Client, changes: Mapping[str, str], says: str
) -> None:
    checked = operator.post(f"{_AT}/rules/new?check=1", {**RULE, **changes})
    assert (checked.status_code, says in checked.content.decode()) == (200, True)
    saved = operator.post(f"{_AT}/rules/new", {**RULE, **changes})
    assert (saved.status_code, says in saved.content.decode()) == (422, True)
    assert not AlertRule.objects.exists()


def test_a_rule_that_came_with_the_product_cannot_be_deleted(operator: Client) -> None:
    alerts_reconcile(at=timezone.now())
    rule = AlertRule.objects.get(name="card-hot")
    assert "default rule" in text_of(operator, f"{_AT}/rules/{rule.uid}")
    operator.post(f"{_AT}/rules/{rule.uid}/delete")
    assert AlertRule.objects.filter(name="card-hot").exists()
    assert "is built in and cannot be deleted; disable it instead" in text_of(
        operator, f"{_AT}/rules"
    )


def test_a_receiver_and_a_route_to_it_are_made_and_its_address_is_never_shown(
    operator: Client,
) -> None:
    form = {
        "name": "ops",
        "kind": "feishu",
        "url": "https://open.example.com/hook/t0ken",
        "secret": "s3cret",
        "language": "zh-hans",
    }
    assert operator.post(f"{_AT}/receivers/new", form).status_code == 302
    receiver = AlertReceiver.objects.get()
    assert receiver.url is not None
    assert decrypt(receiver.url) == b"https://open.example.com/hook/t0ken"
    route = {"name": "all", "severity": "info", "receivers": [receiver.uid], "enabled": "on"}
    assert operator.post(f"{_AT}/routes/new", route).status_code == 302
    page = text_of(operator, f"{_AT}/routes")
    assert "Feishu" in page
    assert "t0ken" not in page
    assert "s3cret" not in page
    found = AlertRoute.objects.get()
    assert receiver.uid in text_of(operator, f"{_AT}/routes/{found.uid}")
    operator.post(f"{_AT}/receivers/{receiver.uid}/test")
    assert receiver.deliveries.count() == 1
    operator.post(f"{_AT}/receivers/{receiver.uid}/pause")
    operator.post(f"{_AT}/receivers/{receiver.uid}/test")
    assert "notifications are paused; resume them before the test" in text_of(
        operator, f"{_AT}/routes"
    )
    operator.post(f"{_AT}/receivers/{receiver.uid}/resume")
    operator.post(f"{_AT}/routes/{found.uid}/delete")
    operator.post(f"{_AT}/receivers/{receiver.uid}/delete")
    assert not AlertReceiver.objects.exists()


def test_pages_of_alerts_cost_the_same_however_many_fire(
    operator: Client, alarmed: Alerts, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    for path in ("", f"/{alarmed.firing.uid}", "/rules", "/routes", "/silences", "/past"):
        with django_assert_max_num_queries(12):
            operator.get(f"{_AT}{path}")


def test_the_pages_are_for_operators(db: None) -> None:
    client = Client()
    client.force_login(factories.user("ada", team=factories.team()))
    for path in ("", "/past", "/silences", "/rules", "/routes", "/rules/new"):
        assert client.get(f"{_AT}{path}").status_code == 403
