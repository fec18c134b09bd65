"""Defragmentation plans on pages and by REST: visibility and actions."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from apps.accounts.models import AuditEntry, Team, User
from apps.quotas.models import Claim, Defragmentation
from controlplane.domain.common.permissions import TeamRole
from tests import factories
from tests.cases import for_each_case
from tests.factories.crowds import crowd

pytestmark = pytest.mark.django_db


@pytest.fixture
def head(team: Team) -> User:
    return factories.user("hana", team=team, role=TeamRole.QUEUE_ADMIN)


@pytest.fixture
def browser(head: User) -> Client:
    client = Client()
    client.force_login(head)
    return client


@pytest.fixture
def scattered(team: Team) -> None:
    """Three nodes, two of them with a claim on four cards and a recent checkpoint."""
    crowd(nodes=3, claims=5, team=team)
    Claim.objects.exclude(card_count=4).update(state="released")
    for claim in Claim.objects.filter(state="released"):
        claim.allocations.update(released_at=claim.admitted_at)
    for claim in Claim.objects.filter(state="admitted"):
        Claim.objects.filter(pk=claim.pk).update(checkpointed_at="2100-01-01T00:00Z")


GOAL = {"purpose": "whole_nodes", "nodes": "1"}


def test_a_preview_shows_relocations_and_stores_nothing(browser: Client, scattered: None) -> None:
    text = browser.get("/defragmentation-plans/new", GOAL).text
    assert "nodes that would become entirely free" in text
    assert "Propose plan" in text
    assert text.count('class="nf-node-cards"') == 4
    assert not Defragmentation.objects.exists()


def test_a_proposed_plan_can_be_approved_and_dismissed(browser: Client, scattered: None) -> None:
    answer = browser.post("/defragmentation-plans/new", GOAL, follow=True)
    row = Defragmentation.objects.get()
    assert answer.redirect_chain == [(f"/defragmentation-plans/{row.uid}", 302)]
    assert "Approve plan" in answer.text
    assert "nodes that would become entirely free" in browser.get("/defragmentation-plans").text
    browser.post(f"/defragmentation-plans/{row.uid}/approve")
    row.refresh_from_db()
    assert (row.state, row.approved_by_name) == ("approved", "hana")
    assert "Approve plan" not in browser.get(f"/defragmentation-plans/{row.uid}").text
    browser.post(f"/defragmentation-plans/{row.uid}/dismiss")
    row.refresh_from_db()
    assert row.state == "dismissed"
    actions = (
        AuditEntry.objects.filter(object_uid=row.uid)
        .order_by("id")
        .values_list("action", flat=True)
    )
    assert list(actions) == [
        f"defragmentation_plan.{action}" for action in ("propose", "approve", "dismiss")
    ]


def test_a_reason_is_shown_if_no_relocation_helps(browser: Client, scattered: None) -> None:
    Claim.objects.update(preemptible=False)
    assert (
        "no node can be freed at a cost below its value"
        in browser.get("/defragmentation-plans/new", GOAL).text
    )
    assert browser.post("/defragmentation-plans/new", GOAL).status_code == 422


def test_a_user_without_permission_is_refused_with_the_required_roles(
    team: Team, scattered: None
) -> None:
    client = Client()
    client.force_login(factories.user("vera", team=team, role=TeamRole.VIEWER))
    assert client.get("/defragmentation-plans/new").status_code == 403
    assert "Find plan" not in client.get("/defragmentation-plans").text


def test_a_queue_admin_of_another_team_can_view_but_not_approve(
    browser: Client, scattered: None
) -> None:
    other = factories.user("otto", team=factories.team("search"), role=TeamRole.QUEUE_ADMIN)
    client = Client()
    client.force_login(other)
    text = client.get("/defragmentation-plans/new", GOAL).text
    assert "maps" in text
    assert "work 0" not in text
    client.post("/defragmentation-plans/new", GOAL)
    row = Defragmentation.objects.get()
    assert client.post(f"/defragmentation-plans/{row.uid}/approve").status_code == 403
    row.refresh_from_db()
    assert row.state == "proposed"


def test_an_operator_of_the_company_proposes_and_approves_without_the_names_of_workloads(
    scattered: None,
) -> None:
    client = Client()
    client.force_login(factories.user("olga", operator=True))
    assert "work 0" not in client.get("/defragmentation-plans/new", GOAL).text
    client.post("/defragmentation-plans/new", GOAL)
    row = Defragmentation.objects.get()
    client.post(f"/defragmentation-plans/{row.uid}/approve")
    row.refresh_from_db()
    assert row.state == "approved"


def _request(client: Client, path: str, body: dict[str, Any]) -> Any:
    return client.post(f"/api/v1/{path}", body, content_type="application/json")


def test_a_dry_run_by_rest_returns_the_plan(browser: Client, scattered: None) -> None:
    goal = {"purpose": "whole_nodes", "dry_run": True}
    said = _request(browser, "defragmentation-plans", goal).json()
    assert (said["uid"], said["whole_before"], said["whole_after"]) == (None, 1, 2)
    assert [move["cards"] for move in said["moves"]] == [4]
    response = _request(browser, "defragmentation-plans", {"purpose": "whole_nodes"})
    assert response.status_code == 201
    listed = browser.get("/api/v1/defragmentation-plans?state=proposed").json()
    assert [one["uid"] for one in listed["results"]] == [response.json()["uid"]]


@for_each_case(
    ("body", "field"),
    [
        ({"purpose": "room_for"}, "claim"),
        ({"purpose": "tidiness"}, "purpose"),
        ({"purpose": "whole_nodes", "nodes": 0}, "nodes"),
    ],
)
def test_an_invalid_request_by_rest_is_refused_with_the_field(
    browser: Client, body: dict[str, Any], field: str
) -> None:
    answer = _request(browser, "defragmentation-plans", body)
    assert answer.status_code in (400, 422)
    assert [one["field"] for one in answer.json()["errors"]] == [field]


def test_a_stale_plan_by_rest_is_a_conflict(browser: Client, scattered: None) -> None:
    uid = _request(browser, "defragmentation-plans", {"purpose": "whole_nodes"}).json()["uid"]
    Claim.objects.filter(moves__isnull=False).update(state="revoking")
    answer = _request(browser, f"defragmentation-plans/{uid}/approve", {})
    assert (answer.status_code, answer.json()["code"]) == (409, "defragmentation-plan-stale")
    assert "relocation 1" in answer.json()["detail"]
