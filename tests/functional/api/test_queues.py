"""The queue tree by REST: queues, files, history, priority classes, and dry runs of all of it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.accounts.models import User
from apps.quotas.models import Claim, PriorityClass, Queue, QueueChange
from controlplane.domain.common.permissions import Scope
from controlplane.domain.quotas.queue_documents import QUEUE_FIELDS
from tests.cases import for_each_case
from tests.functional.api.callers import API, caller, problem, wrong_fields
from tests.integration.company import Company

QUEUES, TREE, CHANGES = f"{API}/queues", f"{API}/queue-tree", f"{API}/queue-changes"
CLASSES = f"{API}/priority-classes"
LAB = """
queues:
  lab:
    team: addresses
    cards:
      cpu: {guaranteed: 2}
    below:
      vision: {}
"""


@pytest.fixture
def administrator(company: Company) -> APIClient:
    return caller(User.objects.create(username="root", is_superuser=True, is_staff=True))


def imported(client: APIClient, text: str, query: str = "") -> Any:
    return client.put(f"{TREE}{query}", text, content_type="application/yaml")


def cards_of(client: APIClient, name: str) -> list[dict[str, Any]]:
    rows = client.get(QUEUES).json()["results"]
    (queue,) = [row for row in rows if row["name"] == name]
    cards: list[dict[str, Any]] = queue["cards"]
    return cards


def test_a_queue_is_created_read_changed_moved_and_retired(
    administrator: APIClient, company: Company
) -> None:
    created = administrator.post(
        QUEUES,
        {
            "name": "vision",
            "team": company.team.uid,
            "weight": 2,
            "entitlements": [{"chip": "cpu", "guaranteed": 2}],
            "note": "they asked",
        },
        format="json",
    )
    assert created.status_code == 201, created.content
    body = created.json()
    assert body["team"]["uid"] == company.team.uid
    assert body["entitlements"] == [{"chip": "cpu", "reserved": 0, "guaranteed": 2, "cap": None}]
    address = f"{QUEUES}/{body['uid']}"
    top = administrator.post(QUEUES, {"name": "top"}, format="json").json()

    moved = administrator.patch(
        address, {"parent": top["uid"], "lends": False, "state": "draining"}, format="json"
    ).json()
    assert (moved["parent"]["uid"], moved["lends"], moved["state"]) == (
        top["uid"],
        False,
        "draining",
    )
    assert moved["weight"] == 2
    assert administrator.get(address).json() == moved
    assert administrator.delete(f"{address}?note=done").status_code == 204
    assert administrator.get(address).status_code == 404
    actions = QueueChange.objects.values_list("action", "note").order_by("id")
    assert list(actions) == [
        ("create", "they asked"),
        ("create", ""),
        ("move", ""),
        ("retire", "done"),
    ]

    request = {"name": "vision", "team": company.team.uid, "weight": 5}
    preview = administrator.post(f"{QUEUES}?dry_run=true", request, format="json").json()
    assert "queue vision was retired and is restored" in preview["warnings"][0]["message"]
    of_other_team = {**request, "team": company.other_team.uid}
    found = administrator.post(QUEUES, of_other_team, format="json")
    assert "retired queue of another team" in wrong_fields(found, 422, "queues-refused")["vision"]
    restored = administrator.post(QUEUES, request, format="json")
    assert restored.status_code == 201, restored.content
    values = restored.json()
    assert (values["uid"], values["weight"]) == (body["uid"], 5)
    assert (values["entitlements"], values["lends"], values["parent"]) == ([], True, None)


def test_used_borrowed_and_lent_cards_by_chip(administrator: APIClient, company: Company) -> None:
    imported(administrator, LAB)
    company.submit(cards=2)
    company.schedule()

    assert cards_of(administrator, "default") == [
        {
            "chip": chip,
            "reserved": 0,
            "guaranteed": 0,
            "cap": None,
            "used": 2,
            "borrowed": 2,
            "lent": 0,
        }
        for chip in ("cpu", "")
    ]
    (lab, *_) = cards_of(administrator, "lab")
    assert (lab["chip"], lab["guaranteed"], lab["used"], lab["lent"]) == ("cpu", 2, 0, 2)


def test_a_dry_run_returns_a_preview_and_changes_nothing(
    administrator: APIClient, company: Company
) -> None:
    borrower = company.submit("long training", cards=2)
    company.schedule()
    Claim.objects.update(preemptible=True)
    owner = Queue.objects.create(name="owner", team=company.team)
    waiting = company.submit("owed", cards=2, queue=owner)
    change = {"entitlements": [{"chip": "cpu", "guaranteed": 2}]}
    address = f"{QUEUES}/{owner.uid}?dry_run=true"

    preview = administrator.patch(address, change, format="json").json()

    assert preview["differences"][0]["message"] == "queue owner is guaranteed 2 × cpu instead of 0"
    assert preview["gains"][0]["starting"] == [waiting.attempts.get().claim_uid]
    assert preview["reclaims"][0]["uid"] == borrower.attempts.get().claim_uid
    assert preview["reclaims"][0]["work_name"] == "long training"
    assert not QueueChange.objects.exists()
    too_much = {"entitlements": [{"chip": "cpu", "guaranteed": 4, "cap": 2}]}
    refused = administrator.patch(address, too_much, format="json").json()
    assert refused["findings"][0]["field"] == "owner"
    assert "more than its cap of 2" in refused["findings"][0]["message"]


def test_an_outdated_fingerprint_is_refused(administrator: APIClient, company: Company) -> None:
    seen = administrator.get(TREE)["ETag"]
    address = f"{QUEUES}/{company.queue.uid}"
    first = administrator.patch(address, {"weight": 3}, format="json", HTTP_IF_MATCH=seen)
    assert first.status_code == 200

    late = administrator.patch(address, {"weight": 4}, format="json", HTTP_IF_MATCH=seen)
    refusal = problem(late, 412, "queues-changed")
    assert refusal["since"] == ["the weight of queue default is 3 instead of 1"]
    again = administrator.patch(address, {"weight": 4}, format="json", HTTP_IF_MATCH=first["ETag"])
    assert again.status_code == 200


def test_an_invalid_tree_is_refused_with_every_finding(
    administrator: APIClient, company: Company
) -> None:
    answer = imported(
        administrator, LAB.replace("vision: {}", "vision: {cards: {cpu: {cap: 1, guaranteed: 3}}}")
    )

    errors = problem(answer, 422, "queues-refused")["errors"]
    assert {error["field"] for error in errors} == {"lab", "vision"}
    wrong = administrator.post(QUEUES, {"name": "a", "colour": "red"}, format="json")
    assert "unknown field" in wrong_fields(wrong)["colour"]
    twice = {"name": "a", "entitlements": [{"chip": "cpu"}, {"chip": "cpu"}]}
    assert "cpu is there twice" in str(administrator.post(QUEUES, twice, format="json").json())


@for_each_case(
    ("field", "value"),
    [
        ("name", "two words"),
        ("state", "shut"),
        ("description", "x" * 2001),
        ("weight", 0),
        ("weight", None),
        ("lends", "no"),
        ("max_running_per_user", 0),
        ("max_running_per_user", 1.5),
    ],
)
def test_an_invalid_field_has_the_message_of_its_declaration(
    administrator: APIClient, company: Company, field: str, value: Any
) -> None:
    address = f"{QUEUES}/{company.queue.uid}"
    refused = administrator.patch(address, {field: value}, format="json")
    assert wrong_fields(refused) == {field: QUEUE_FIELDS[field].error(value)}


def test_an_invalid_amount_has_the_message_of_its_declaration(
    administrator: APIClient, company: Company
) -> None:
    body = {"entitlements": [{"chip": "cpu", "guaranteed": -1, "cap": "eight"}]}
    refused = administrator.patch(f"{QUEUES}/{company.queue.uid}", body, format="json")
    assert wrong_fields(refused) == {
        "entitlements.0.guaranteed": "guaranteed must be a whole number of cards from 0, got -1",
        "entitlements.0.cap": "cap must be a whole number of cards from 0, got 'eight'",
    }


def test_the_tree_is_exported_and_imported_as_yaml_and_json(
    administrator: APIClient, company: Company
) -> None:
    saved = imported(administrator, LAB, "?note=from+git").json()["change"]
    assert (saved["action"], saved["note"], saved["actor"]) == ("import", "from git", "root")

    text = administrator.get(TREE, HTTP_ACCEPT="application/yaml")
    assert text["Content-Type"].startswith("application/yaml")
    assert "cpu: {guaranteed: 2}" in text.content.decode()
    assert imported(administrator, text.content.decode(), "?prune=true").json() == {"change": None}
    tree = administrator.get(TREE, {"of": "lab"}).json()
    assert tree["below"] is None
    assert administrator.put(TREE, tree, format="json").json() == {"change": None}
    preview = imported(
        administrator, "queues: {lab: {team: addresses}}", "?prune=true&dry_run=true"
    )
    kinds = {(one["queue"], one["kind"]) for one in preview.json()["differences"]}
    assert {("vision", "retired"), ("default", "retired")} <= kinds
    assert wrong_fields(imported(administrator, "queues: 3"), 422, "queue-file-refused") == {
        "queues": "queues: expected a queue under each name, got 3"
    }
    assert administrator.get(TREE, {"of": "nobody"}).status_code == 404


def test_a_change_is_read_and_reverted(administrator: APIClient, company: Company) -> None:
    uid = imported(administrator, LAB).json()["change"]["uid"]
    address = f"{CHANGES}/{uid}/revert"

    preview = administrator.post(f"{address}?dry_run=true", {}, format="json").json()
    assert [one["kind"] for one in preview["differences"]] == ["retired", "retired"]
    back = administrator.post(address, {"note": "wrong file"}, format="json").json()["change"]

    assert (back["action"], back["reverts"], back["note"]) == ("revert", uid, "wrong file")
    assert [one["uid"] for one in administrator.get(CHANGES).json()["results"]] == [
        back["uid"],
        uid,
    ]
    problem(administrator.post(address, {}, format="json"), 409, "queues-changed")


def test_a_queue_admin_manages_only_queues_of_their_team(
    administrator: APIClient, company: Company
) -> None:
    imported(administrator, LAB)
    administrator.post(QUEUES, {"name": "routes", "team": company.other_team.uid}, format="json")
    company.make_queue_admin()
    engineer = caller(company.engineer)
    lab = Queue.objects.get(name="lab")

    assert {"lab", "vision", "default"} == {
        row["name"] for row in engineer.get(QUEUES).json()["results"]
    }
    assert set(engineer.get(TREE).json()["queues"]) == {"lab", "default"}
    created = engineer.post(
        QUEUES,
        {"name": "speech", "parent": lab.uid, "team": company.team.uid},
        format="json",
    )
    assert created.status_code == 201, created.content
    (change, first) = engineer.get(CHANGES).json()["results"]
    assert change["differences"][0]["message"] == "queue speech is created under lab"
    assert first["action"] == "import"
    taken = engineer.patch(
        f"{QUEUES}/{lab.uid}",
        {"entitlements": [{"chip": "cpu", "guaranteed": 9}]},
        format="json",
    )
    problem(taken, 403, "permission-refused")
    reader = caller(company.engineer, Scope.READ)
    problem(reader.delete(f"{QUEUES}/{lab.uid}"), 403, "permission-refused")


# -- Priority classes --


def test_priority_classes_are_for_administrators_and_claims_keep_their_value(
    administrator: APIClient, engineer: APIClient, company: Company
) -> None:
    known = engineer.get(CLASSES).json()["results"]
    assert {(row["name"], row["value"]) for row in known} == {
        ("urgent", 100),
        ("high", 10),
        ("normal", 0),
        ("low", -10),
    }
    problem(
        engineer.post(CLASSES, {"name": "mine", "value": 5}, format="json"),
        403,
        "permission-refused",
    )
    created = administrator.post(CLASSES, {"name": "night", "value": -20}, format="json")
    assert created.status_code == 201
    taken = administrator.post(CLASSES, {"name": "late", "value": -20}, format="json")
    assert "night already has the value -20" in wrong_fields(taken, 422, "refused")["value"]
    company.submit(priority=-20)

    address = f"{CLASSES}/{created.json()['uid']}"
    renamed = administrator.patch(address, {"name": "nightly"}, format="json").json()
    assert (renamed["name"], renamed["value"]) == ("nightly", -20)
    refused = wrong_fields(administrator.delete(address), 422, "refused")["value"]
    assert refused.startswith("1 pending or running claims have priority -20")
    assert administrator.delete(f"{address}?force=true").status_code == 204
    assert Claim.objects.get().priority == -20
    normal = PriorityClass.objects.get(value=0)
    problem(administrator.delete(f"{CLASSES}/{normal.uid}?force=true"), 422, "refused")


# -- A claim that nobody makes --


def asked(client: APIClient, **changes: Any) -> Any:
    body = {"queue": "default", "chips": ["cpu"], "cards": 2, **changes}
    return client.post(f"{API}/claims/dry-run", body, format="json")


def test_a_dry_run_of_a_claim_returns_placement_or_reason(
    engineer: APIClient, company: Company
) -> None:
    starts = asked(engineer).json()
    assert (starts["outcome"], starts["chip"]) == ("starts", "cpu")
    assert [node["cards"] for node in starts["nodes"]] == [2]
    never = asked(engineer, cards=3).json()
    assert (never["outcome"], never["code"], never["nodes"]) == ("waits", "never_fits", [])
    assert never["reason"]

    company.submit(cards=2)
    company.schedule()
    assert asked(engineer).json()["code"] == "no_free_cards"
    assert Claim.objects.count() == 1


def test_a_dry_run_of_a_claim_lists_visible_victims(stranger: APIClient, company: Company) -> None:
    owner = Queue.objects.create(name="owner", team=company.other_team)
    owner.entitlements.create(chip="cpu", guaranteed=2)
    borrower = company.submit("long training", cards=2)
    company.schedule()
    Claim.objects.update(preemptible=True, admitted_at=company.at - timedelta(hours=1))

    answer = asked(stranger, queue="owner").json()

    assert answer["outcome"] == "reclaims"
    (stopped,) = answer["stopped"]
    assert stopped["claim"] == borrower.attempts.get().claim_uid
    assert (stopped["team"], stopped["work_name"], stopped["cards"]) == ("Addresses", "", 2)
    assert stopped["lost_seconds"] >= 3600


def test_an_invalid_dry_run_of_a_claim_is_refused(engineer: APIClient, company: Company) -> None:
    assert "queue nobody does not exist" in wrong_fields(asked(engineer, queue="nobody"))["queue"]
    assert "unknown chip 'gpu-9'" in wrong_fields(asked(engineer, chips=["gpu-9"]))["chips"]
    Queue.objects.update(state="draining")
    assert "is draining" in wrong_fields(asked(engineer))["queue"]
