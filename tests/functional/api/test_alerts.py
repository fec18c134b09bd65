"""Alerts over REST: rules, silences, receivers, routes, and what fires."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import AuditEntry
from apps.accounts.services import company_roles_set
from apps.monitoring.models import AlertReceiver, AlertSilence
from controlplane.domain.common.permissions import CompanyRole
from tests import factories
from tests.factories.alerts import Alerts
from tests.functional.api.callers import API, caller, problem, wrong_fields
from tests.integration.company import Company

RULE = {
    "name": "power",
    "title": "Too much power",
    "measure": "cards.power",
    "op": ">",
    "threshold": 700,
    "severity": "critical",
}


@pytest.fixture
def operator(company: Company) -> APIClient:
    roles = frozenset({CompanyRole.OPERATOR})
    company_roles_set(user=company.engineer, roles=roles, actor=None)
    return caller(company.engineer)


@pytest.fixture
def alarmed(operator: APIClient) -> Alerts:
    root = factories.user("rita", admin=True)
    return factories.firing_alerts(actor=root, at=timezone.now())


def test_what_fires_is_listed_and_its_alerts_are_on_it(
    operator: APIClient, alarmed: Alerts
) -> None:
    (firing,) = operator.get(f"{API}/alerts?firing=true").json()["results"]
    assert (firing["rule"], firing["severity"], firing["count"]) == ("memory-hot", "warning", 3)
    assert firing["labels"] == {"cluster": "here"}
    whole = operator.get(f"{API}/alerts/{alarmed.firing.uid}").json()
    assert [one["labels"]["card"] for one in whole["alerts"]] == ["2", "1", "0"]
    (past,) = operator.get(f"{API}/alerts?firing=false").json()["results"]
    assert past["ended_at"] is not None


def test_a_rule_is_tried_made_changed_and_deleted(operator: APIClient) -> None:
    trial = operator.post(f"{API}/alert-rules/trial", RULE).json()
    assert trial == {"now": 0, "times": 0, "things": 0, "cut": False}
    created = operator.post(f"{API}/alert-rules", RULE)
    assert created.status_code == 201
    uid = created.json()["uid"]
    changed = operator.patch(f"{API}/alert-rules/{uid}", {"threshold": 800, "enabled": False})
    assert changed.json()["document"]["threshold"] == 800
    assert changed.json()["enabled"] is False
    assert operator.delete(f"{API}/alert-rules/{uid}").status_code == 204
    problem(operator.get(f"{API}/alert-rules/{uid}"), 404, "not-found")


def test_a_rule_that_cannot_be_is_refused_field_by_field(operator: APIClient) -> None:
    refused = problem(
        operator.post(f"{API}/alert-rules", {**RULE, "name": "P", "group_by": ["team"]}),
        422,
        "rule-invalid",
    )
    assert [error["field"] for error in refused["errors"]] == ["name", "group_by"]


def test_a_silence_is_begun_and_ended(operator: APIClient) -> None:
    ends_at = (timezone.now() + timedelta(hours=1)).isoformat()
    asked = {"name": "cables", "matchers": ["rule=power"], "ends_at": ends_at, "reason": "new"}
    created = operator.post(f"{API}/alert-silences", asked).json()
    assert created["name"] == "cables"
    address = f"{API}/alert-silences/{created['uid']}"
    twice = problem(operator.post(f"{API}/alert-silences", asked), 422, "alert-refused")
    assert twice["errors"][0]["reason"]["code"] == "silence.name.already_exists"
    changed = operator.patch(
        address, {"reason": "new cables", "matchers": ["rule=power", "node=a"]}
    )
    assert (changed.json()["reason"], changed.json()["matchers"][1]) == ("new cables", "node=a")
    assert changed.json()["ends_at"] == created["ends_at"]
    audited = AuditEntry.objects.filter(action="alert_silence.change")
    assert operator.patch(address, {"reason": "new cables"}).status_code == 200
    assert audited.count() == 1, "equal values change nothing"
    assert wrong_fields(operator.patch(address, {"name": "other"})).keys() == {"name"}
    assert wrong_fields(operator.patch(address, {"matchers": []})).keys() == {"matchers"}
    assert operator.delete(address).status_code == 204
    silence = AlertSilence.objects.get(uid=created["uid"])
    assert silence.ends_at <= timezone.now()
    expired = problem(operator.patch(address, {"reason": "old"}), 422, "alert-refused")
    assert expired["errors"][0]["reason"]["code"] == "silence.change.expired"
    problem(
        operator.post(f"{API}/alert-silences", {**asked, "matchers": ["power"]}),
        422,
        "alert-refused",
    )


def test_a_receiver_keeps_its_address_to_itself(operator: APIClient) -> None:
    asked = {"name": "ops", "kind": "slack", "url": "https://203.0.114.7/t0ken", "secret": "s3"}
    created = operator.post(f"{API}/alert-receivers", asked)
    assert created.status_code == 201
    assert "t0ken" not in created.content.decode()
    uid = created.json()["uid"]
    assert operator.post(f"{API}/alert-receivers/{uid}/test").status_code == 202
    paused = operator.patch(f"{API}/alert-receivers/{uid}", {"active": False})
    assert paused.json()["active"] is False
    problem(operator.post(f"{API}/alert-receivers/{uid}/test"), 422, "alert-refused")
    route = {"name": "all", "severity": "info", "receivers": [uid]}
    stored = operator.post(f"{API}/alert-routes", route).json()
    assert [one["uid"] for one in stored["receivers"]] == [uid]
    changed = operator.put(
        f"{API}/alert-routes/{stored['uid']}", {**route, "severity": "critical"}
    ).json()
    assert changed["severity"] == "critical"
    assert operator.delete(f"{API}/alert-routes/{stored['uid']}").status_code == 204
    assert operator.delete(f"{API}/alert-receivers/{uid}").status_code == 204
    assert not AlertReceiver.objects.exists()


@pytest.mark.parametrize(
    "path", ["alerts", "alert-rules", "alert-silences", "alert-receivers", "alert-routes"]
)
def test_who_does_not_operate_the_fleet_sees_none_of_it(stranger: APIClient, path: str) -> None:
    problem(stranger.get(f"{API}/{path}"), 403, "permission-refused")
