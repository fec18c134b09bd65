"""How roles of the whole company are granted, revoked, carried over by the upgrade, and shown."""

from __future__ import annotations

import pytest
from django.core.management import CommandError, call_command

from apps.accounts.models import AuditEntry, Membership
from apps.accounts.selectors import company_roles_of
from apps.accounts.services import administrator_ensure
from apps.fleet.models import Node
from apps.fleet.selectors import is_fleet_operator
from controlplane.domain.common.permissions import Scope, TeamRole
from controlplane.domain.jobs.lifecycle import JobKind
from tests import factories
from tests.functional.accounts.conftest import browser
from tests.functional.api.callers import API, caller, problem

pytestmark = pytest.mark.django_db


def audited() -> list[tuple[str, list[str], list[str]]]:
    rows = AuditEntry.objects.filter(action="company_roles.set").order_by("pk")
    return [(row.object_name, row.detail["before"], row.detail["roles"]) for row in rows]


def test_the_first_administrator_operates_the_fleet() -> None:
    assert is_fleet_operator(administrator_ensure(username="admin", password="a long password"))


def test_an_administrator_of_the_company_grants_the_role_on_the_page_of_a_person() -> None:
    root, otto = factories.user("root", admin=True), factories.user("otto")
    page = f"/people/{otto.uid}"
    assert 'value="operator"' in browser(root).get(page).text
    browser(root).post(f"{page}/company-roles", {"company_roles": ["operator"]})
    otto.refresh_from_db()
    assert is_fleet_operator(otto)
    assert otto.is_staff
    rows = browser(root).get("/people", {"state": "operator"}).context["rows"]
    assert [one["person"] for one in rows] == [otto]
    browser(root).post(f"{page}/company-roles", {})
    otto.refresh_from_db()
    assert not is_fleet_operator(otto)
    assert not otto.is_staff
    assert audited() == [("otto", [], ["operator"]), ("otto", ["operator"], [])]


def test_roles_of_the_company_over_rest() -> None:
    root, team = factories.user("root", admin=True), factories.team()
    otto = factories.user("otto", team=team, role=TeamRole.ADMINISTRATOR)
    address = f"{API}/company-roles/{otto.uid}"
    client = caller(root, Scope.ADMIN)
    body = client.put(address, {"roles": ["operator"]}).json()
    assert body == {
        "uid": otto.uid,
        "username": "otto",
        "roles": ["operator"],
        "roles_by_sign_on": [],
    }
    assert client.get(f"{API}/company-roles").json()["results"] == [body]
    assert caller(otto).get(f"{API}/me").json()["company_roles"] == ["operator"]
    assert caller(otto, team=team).get(f"{API}/me").json()["company_roles"] == []
    refused = problem(caller(otto).put(address, {"roles": []}), 403, "permission-refused")
    assert "administrator of the company" in refused["detail"]
    problem(caller(otto).get(f"{API}/company-roles"), 403, "permission-refused")
    assert client.put(address, {"roles": ["viewer"]}).status_code == 400
    assert client.put(address, {"roles": []}).json()["roles"] == []


def test_the_command_grants_and_revokes() -> None:
    otto = factories.user("otto")
    call_command("company_role", "otto", "operator")
    assert set(company_roles_of(otto)) == {"operator"}
    call_command("company_role", "otto", "operator", "--revoke")
    assert not company_roles_of(otto)
    assert audited() == [("otto", [], ["operator"]), ("otto", ["operator"], [])]
    with pytest.raises(CommandError, match="no active person with the user name 'nobody'"):
        call_command("company_role", "nobody", "operator")


def test_a_row_that_an_earlier_version_writes_during_the_upgrade_grants_nothing() -> None:
    team = factories.team()
    otto = factories.user("otto")
    Membership.objects.create(user=otto, team=team, role="operator")
    client = browser(otto)
    assert client.get("/").status_code == 200
    assert client.get(f"/teams/{team.slug}").status_code == 200
    assert client.get("/profile").status_code == 200
    assert not is_fleet_operator(otto)


def test_the_refusal_says_which_role_is_missing_and_who_grants_it() -> None:
    factories.cluster(cards=1)
    team = factories.team()
    lead = factories.user("lead", team=team, role=TeamRole.ADMINISTRATOR)
    operator = factories.user("olga", team=team, operator=True)
    address = f"{API}/isolations"
    body = {"nodes": [Node.objects.get().uid], "reason": "why"}
    refused = problem(caller(lead).post(address, body), 403, "permission-refused")
    assert "requires the company role operator" in refused["detail"]
    refused = problem(caller(operator, team=team).post(address, body), 403, "permission-refused")
    assert f"the token is confined to team {team.name}" in refused["detail"]


def test_the_page_of_a_node_names_the_teams_whose_workloads_would_stop() -> None:
    cluster = factories.cluster(cards=4)
    for name, count in (("maps", 1), ("search", 2)):
        team = factories.team(name)
        owner = factories.user(f"{name}-maker", team=team)
        queue = factories.queue(name=f"{name}-queue", team=team)
        for number in range(count):
            job = factories.job(
                actor=owner,
                team=team,
                queue=queue,
                kind=JobKind.SCRIPT,
                name=f"{name} {number}",
            )
            factories.running(job, cluster=cluster)
    node = Node.objects.get()
    page = f"/fleet/clusters/{cluster.uid}/nodes/{node.name}"
    shown = browser(factories.user("olga", operator=True)).get(page).text
    assert "team maps: workloads 1, cards 1" in shown
    assert "team search: workloads 2, cards 2" in shown
    hidden = browser(factories.user("vera", team=factories.team("voice"))).get(page).text
    assert "workloads 2" not in hidden
