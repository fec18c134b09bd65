"""Faults, what is out of use, rules and the policy by REST."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts.models import AuditEntry
from apps.fleet.models import Card, Node
from apps.monitoring.models import Fault, HealthPolicy, HealthRule, Isolation
from apps.monitoring.reconcilers.health import health_reconcile, health_rules_reconcile
from apps.monitoring.services.faults import signals_record
from apps.telemetry.models import CardHistory, CardMetrics
from controlplane.domain.common.accelerators import CardState
from tests.functional.api.callers import API, problem, wrong_fields
from tests.integration.company import Company
from tests.integration.monitoring.wards import sign

pytestmark = pytest.mark.django_db

HOT = {"metric": "temperature", "op": ">", "value": 90, "for": "30s"}


@pytest.fixture
def fault(company: Company) -> Fault:
    node = Node.objects.get(cluster=company.cluster_row).name
    signal = sign(company.cluster_row, node=node, index=0, at=company.at)
    signals_record(signals=[signal], at=company.at)
    return Fault.objects.get()


def _post(client: APIClient, path: str, body: dict[str, Any]) -> Any:
    return client.post(f"{API}/{path}", body, format="json")


def test_faults_are_listed_for_everybody_and_narrowed(viewer: APIClient, fault: Fault) -> None:
    (row,) = viewer.get(f"{API}/faults", {"standing": "true", "level": "6"}).json()["results"]
    assert (row["uid"], row["code"], row["level"], row["ended_at"]) == (fault.uid, "79", 6, None)
    assert row["card"]["uid"] == Card.objects.get(index=0).uid
    others: tuple[dict[str, str], ...] = (
        {"standing": "false"},
        {"level": "5"},
        {"code": "48"},
        {"acknowledged": "true"},
    )
    for beside in others:
        assert viewer.get(f"{API}/faults", beside).json()["results"] == []
    assert viewer.get(f"{API}/faults/{fault.uid}").json() == row


def test_an_operator_acknowledges_with_a_note(operator: APIClient, fault: Fault) -> None:
    body = {"uids": [fault.uid], "note": "called the maker"}
    assert _post(operator, "faults/acknowledge", body).json() == {"acknowledged": 1}
    assert _post(operator, "faults/acknowledge", body).json() == {"acknowledged": 0}
    row = operator.get(f"{API}/faults/{fault.uid}").json()
    assert (row["acknowledged_by_name"], row["note"]) == ("olga", "called the maker")
    assert AuditEntry.objects.filter(action="fault.acknowledge", object_uid=fault.uid).count() == 1


def test_an_operator_takes_out_and_gives_back(operator: APIClient, company: Company) -> None:
    card = Card.objects.get(index=1)
    answer = _post(operator, "isolations", {"cards": [card.uid], "reason": "smells"})
    assert answer.status_code == 201
    (row,) = answer.json()["isolations"]
    assert (row["state"], row["actor_name"]) == ("draining", "olga")
    assert row["reason"] == {"code": "", "params": {}, "message": "smells"}
    card.refresh_from_db()
    assert card.state == CardState.ISOLATED
    (listed,) = operator.get(f"{API}/isolations", {"standing": "true"}).json()["results"]
    assert listed == row
    assert _post(operator, "isolations/test", {"uids": [row["uid"]]}).json() == {"asked": 1}
    body = {"uids": [row["uid"]], "reason": "it was the coffee"}
    (back,) = _post(operator, "isolations/release", body).json()["isolations"]
    assert back["state"] == "returned"
    card.refresh_from_db()
    assert card.state == CardState.USABLE
    assert operator.get(f"{API}/isolations", {"standing": "true"}).json()["results"] == []


def test_what_cannot_be_isolated_says_why(operator: APIClient, company: Company) -> None:
    card = Card.objects.get(index=0).uid
    assert "reason" in wrong_fields(_post(operator, "isolations", {"cards": [card]}))
    unknown = {"cards": ["0" * 32], "reason": "no"}
    refusal = problem(_post(operator, "isolations", unknown), 422, "isolation-refused")
    assert refusal["reason"]["code"] == "isolation.request.not_found"
    assert refusal["reason"]["params"] == {"uid": repr("0" * 32)}
    empty = problem(_post(operator, "isolations", {"reason": "no"}), 422, "isolation-refused")
    assert empty["detail"] == "select 1 to 500 cards and nodes, got 0"


def test_others_look_and_do_not_act(engineer: APIClient, fault: Fault) -> None:
    card = Card.objects.get(index=0).uid
    requests: dict[str, dict[str, Any]] = {
        "faults/acknowledge": {"uids": [fault.uid]},
        "isolations": {"cards": [card], "reason": "no"},
        "isolations/release": {"uids": [fault.uid], "reason": "no"},
        "isolations/test": {"uids": [fault.uid]},
        "health-rules": {"name": "hot", "condition": HOT, "level": 1},
        "health-rules/dry-run": {"condition": HOT},
    }
    for path, body in requests.items():
        problem(_post(engineer, path, body), 403, "permission-refused")
    patch = engineer.patch(f"{API}/health-policy", {"automatic": False}, format="json")
    problem(patch, 403, "permission-refused")
    assert engineer.get(f"{API}/health-policy").json()["automatic"] is True


def test_a_rule_is_made_changed_and_deleted(operator: APIClient, company: Company) -> None:
    created = _post(operator, "health-rules", {"name": "hot", "condition": HOT, "level": 4})
    assert created.status_code == 201, created.content
    rule = created.json()
    assert rule["condition"] == {**HOT, "how": "value", "value": 90.0}
    address = f"{API}/health-rules/{rule['uid']}"
    changed = operator.patch(address, {"level": 1, "enabled": False}, format="json").json()
    assert (changed["level"], changed["enabled"], changed["condition"]) == (
        1,
        False,
        rule["condition"],
    )
    again = _post(operator, "health-rules", {"name": "hot", "condition": HOT, "level": 4})
    assert wrong_fields(again, 422, "health-rule-refused").keys() == {"name"}
    assert operator.delete(address).status_code == 204
    assert not HealthRule.objects.exists()


def test_a_rule_that_makes_no_sense_says_which_field_and_why(operator: APIClient) -> None:
    wrong = {"name": "hot", "condition": {**HOT, "op": "~"}, "level": 4}
    errors = wrong_fields(_post(operator, "health-rules", wrong), 422, "health-rule-refused")
    assert errors["op"].startswith("op is '~'; it must be one of")


def _measure(company: Company, card: Card, degrees: float, seconds: int) -> None:
    at = company.at + timedelta(seconds=seconds)
    CardHistory.objects.create(card=card, at=at, temperature=degrees)
    CardMetrics.objects.update_or_create(
        card=card, defaults={"at": at, "received_at": at, "temperature": degrees}
    )


def test_a_rule_can_be_tried_before_it_is_made(operator: APIClient, company: Company) -> None:
    company.at = timezone.now() - timedelta(minutes=10)
    card = Card.objects.get(index=0)
    for seconds, degrees in enumerate((80, 95, 96, 95, 80)):
        _measure(company, card, degrees, seconds * 20)
    tried = _post(operator, "health-rules/dry-run", {"condition": HOT}).json()
    assert (tried["cards"], tried["times"]) == (1, 1)
    (trial,) = tried["trials"]
    assert (trial["card"]["uid"], trial["firings"][0]["worst"]) == (card.uid, 95.0)
    assert not Fault.objects.exists()


def test_a_rule_that_fires_makes_a_fault_and_ends_it(operator: APIClient, company: Company) -> None:
    card = Card.objects.get(index=0)
    _post(operator, "health-rules", {"name": "hot", "condition": HOT, "level": 4})
    for seconds in (0, 20, 40):
        _measure(company, card, 95, seconds)
    health_rules_reconcile(at=company.later(timedelta(seconds=41)))
    fault = Fault.objects.get(code="hot")
    assert (fault.card, fault.level, fault.ended_at) == (card, 4, None)
    health_reconcile(at=company.at)
    card.refresh_from_db()
    assert card.state == CardState.NO_NEW_WORK
    health_rules_reconcile(at=company.later(timedelta(seconds=1)))
    assert Fault.objects.filter(code="hot").count() == 1
    _measure(company, card, 60, 30)
    health_rules_reconcile(at=company.later(timedelta(seconds=40)))
    fault.refresh_from_db()
    assert fault.ended_at is not None
    assert Isolation.objects.get().ended_at is None


def test_silence_ends_no_fault_and_a_rule_that_is_gone_does(
    operator: APIClient, company: Company
) -> None:
    card = Card.objects.get(index=0)
    rule = _post(operator, "health-rules", {"name": "hot", "condition": HOT, "level": 1}).json()
    for seconds in (0, 20, 40):
        _measure(company, card, 95, seconds)
    health_rules_reconcile(at=company.later(timedelta(seconds=41)))
    health_rules_reconcile(at=company.later(timedelta(hours=1)))
    assert Fault.objects.get(code="hot").ended_at is None
    operator.delete(f"{API}/health-rules/{rule['uid']}")
    health_rules_reconcile(at=company.at)
    assert Fault.objects.get(code="hot").ended_at == company.at


def test_the_policy_is_changed_field_by_field(operator: APIClient) -> None:
    address = f"{API}/health-policy"
    before = operator.get(address).json()
    body = {"automatic": False, "settings": {"pool_share": 50, "settle": 60}}
    after = operator.patch(address, body, format="json").json()
    assert after["automatic"] is False
    assert after["settings"] == {**before["settings"], "pool_share": 50, "settle": 60}
    assert after["changed_by_name"] == "olga"
    assert AuditEntry.objects.filter(action="health_policy.change").count() == 1


def test_settings_that_version_0_1_0_stored_hold_on(operator: APIClient, company: Company) -> None:
    stored = {"silent_after": 40.0, "repeats": 4, "repeats_within": 60.0}
    HealthPolicy.objects.update_or_create(
        id=1, defaults={"settings": stored, "changed_at": company.at}
    )
    settings = operator.get(f"{API}/health-policy").json()["settings"]
    now = {"heartbeat_timeout": 40.0, "min_occurrences": 4, "occurrences_within": 60.0}
    assert {name: settings[name] for name in now} == now


@pytest.mark.parametrize(
    ("change", "field"), [({"pool_share": 1001}, "pool_share"), ({"speed": 1}, "speed")]
)
def test_a_policy_that_cannot_be_is_refused(
    operator: APIClient, change: dict[str, float], field: str
) -> None:
    answer = operator.patch(f"{API}/health-policy", {"settings": change}, format="json")
    assert wrong_fields(answer, 422, "health-policy-refused").keys() == {field}
