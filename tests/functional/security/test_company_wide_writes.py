"""What belongs to every team is changed by a company role only, by no role of a team and no confined token.

The addresses come from the URL configuration: one that is not classified below fails the test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Any

import pytest
from django.contrib import admin
from django.db import connection
from django.test import Client, RequestFactory
from django.urls import get_resolver

from apps.accounts import services
from apps.accounts.admin import ScopedAdmin
from apps.accounts.models import User
from apps.models.models import ModelVersion
from apps.quotas.models import Queue
from controlplane.domain.common.permissions import Scope, TeamRole
from tests import factories
from tests.functional.roles.conftest import Undone, World
from tests.functional.roles.permission_rules import MEMBERS, Outcome, PermissionRow, Whose
from tests.functional.roles.permission_table import PAGES, REST
from tests.functional.roles.role_requests import outcome_of, send_request
from tests.functional.roles.test_permission_table import _methods, _route_of, _routes

pytestmark = [pytest.mark.django_db, pytest.mark.slow]


class Owner(StrEnum):
    """To whom belongs what is changed."""

    #: Clusters, nodes, cards and what watches them: operators of the company.
    FLEET = "fleet"
    #: Everything else of the company: its administrators.
    COMPANY = "company"
    TEAM = "team"
    USER = "person"
    #: Called with a key of its own by a process, not by people.
    MACHINE = "machine"


#: By the longest prefix of the address; ``{}`` is any name.
OWNERS = {
    "": Owner.USER,
    "api/v1/alert-receivers": Owner.FLEET,
    "api/v1/alert-routes": Owner.FLEET,
    "api/v1/alert-rules": Owner.FLEET,
    "api/v1/alert-silences": Owner.FLEET,
    "api/v1/clusters": Owner.FLEET,
    "api/v1/faults": Owner.FLEET,
    "api/v1/health-policy": Owner.FLEET,
    "api/v1/health-rules": Owner.FLEET,
    "api/v1/held-back": Owner.FLEET,
    "api/v1/isolations": Owner.FLEET,
    "api/v1/node-tokens": Owner.FLEET,
    "api/v1/rollouts": Owner.FLEET,
    "api/v1/telemetry-sources": Owner.FLEET,
    "fleet": Owner.FLEET,
    "api/v1/company-roles": Owner.COMPANY,
    "api/v1/priority-classes": Owner.COMPANY,
    "api/v1/queue-tree": Owner.COMPANY,
    "api/v1/queues": Owner.COMPANY,
    "api/v1/storage/quotas": Owner.COMPANY,
    "api/v1/usage/rates": Owner.COMPANY,
    "forecast": Owner.COMPANY,
    "people": Owner.COMPANY,
    "storage/quotas": Owner.COMPANY,
    "teams/new": Owner.COMPANY,
    "teams/{}/rename": Owner.COMPANY,
    "api/v1/apply-sets": Owner.TEAM,
    "api/v1/claims": Owner.TEAM,
    "api/v1/code": Owner.TEAM,
    "api/v1/datasets": Owner.TEAM,
    "api/v1/defragmentation-plans": Owner.TEAM,
    "api/v1/deliveries": Owner.TEAM,
    "api/v1/deployments": Owner.TEAM,
    "api/v1/jobs": Owner.TEAM,
    "api/v1/keys": Owner.TEAM,
    "api/v1/model-versions": Owner.TEAM,
    "api/v1/models": Owner.TEAM,
    "api/v1/pipelines": Owner.TEAM,
    "api/v1/queue-changes": Owner.TEAM,
    "api/v1/routes": Owner.TEAM,
    "api/v1/sizing": Owner.TEAM,
    "api/v1/storage": Owner.TEAM,
    "api/v1/teams": Owner.TEAM,
    "api/v1/webhooks": Owner.TEAM,
    "api/v1/weight-downloads": Owner.TEAM,
    "audit": Owner.TEAM,
    "claims": Owner.TEAM,
    "datasets": Owner.TEAM,
    "defragmentation-plans": Owner.TEAM,
    "deployments": Owner.TEAM,
    "design": Owner.USER,
    "docs/problems": Owner.USER,
    "engines": Owner.USER,
    "jobs": Owner.TEAM,
    "keys": Owner.TEAM,
    "models": Owner.TEAM,
    "pipelines": Owner.TEAM,
    "playground": Owner.TEAM,
    "queues": Owner.TEAM,
    "reports": Owner.TEAM,
    "storage": Owner.TEAM,
    "teams": Owner.TEAM,
    "topology": Owner.TEAM,
    "webhooks": Owner.TEAM,
    "what-ifs": Owner.TEAM,
    "api/v1/notifications": Owner.USER,
    "api/v1/tokens": Owner.USER,
    "device": Owner.USER,
    "i18n": Owner.USER,
    "login": Owner.USER,
    "logout": Owner.USER,
    "notifications": Owner.USER,
    "password": Owner.USER,
    "profile": Owner.USER,
    "search": Owner.USER,
    "sign-on": Owner.USER,
    "status": Owner.USER,
    "api/v1/attempts": Owner.MACHINE,
    "api/v1/telemetry/push": Owner.MACHINE,
    "healthz": Owner.MACHINE,
    "internal": Owner.MACHINE,
    "metrics": Owner.MACHINE,
    "oauth": Owner.MACHINE,
    "readyz": Owner.MACHINE,
}
#: One method of an address whose others belong to somebody else.
METHODS = {
    ("POST", "api/v1/teams"): Owner.COMPANY,
    # A team's queue admin sets the description, the limits per user and the state of the team's own queue.
    ("PATCH", "api/v1/queues/{}"): Owner.TEAM,
}
#: Addresses of a team's things that also lead to those of the whole company, by what is named in them.
COMPANY_NAMES = (
    PermissionRow(method="PUT", path="/api/v1/storage/rules/others", body={"rules": []}),
    PermissionRow(method="DELETE", path="/api/v1/storage/rules/others"),
    PermissionRow(method="POST", path="/storage/rules/others", may=frozenset()),
    PermissionRow(method="POST", path="/storage/rules/others/forget", may=frozenset()),
    PermissionRow(
        method="PATCH", path="/api/v1/queues/{queue.company}", body={"description": "anew"}
    ),
    PermissionRow(method="DELETE", path="/api/v1/queues/{queue.company}"),
)
WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_NAMED = re.compile(r"\(\?P<\w+>(?:[^()]|\([^()]*\))*\)|<[^>]*>")


def _plain(route: str) -> str:
    return _NAMED.sub("{}", route).replace("^", "").replace("$", "").replace("\\Z", "")


def _owner(method: str, route: str) -> Owner | None:
    plain = _plain(route)
    if found := METHODS.get((method, plain)):
        return found
    parts = plain.split("/") if plain else []
    prefixes = ("/".join(parts[:length]) for length in range(len(parts), 0, -1))
    return next((OWNERS[one] for one in prefixes if one in OWNERS), None if parts else OWNERS[""])


def _writes() -> Iterator[tuple[str, str]]:
    """Method and route of everything that may change something; any page may take a POST."""
    for route, pattern in _routes(get_resolver()):
        if route.startswith("admin/"):
            continue
        methods = _methods(pattern) & WRITES if route.startswith("api/") else {"POST"}
        for method in sorted(methods):
            yield method, route


def _requests(owner: Owner) -> Iterator[PermissionRow]:
    """One request for each such write; the role matrix says which body it takes."""
    for method, route in _writes():
        if _owner(method, route) is not owner:
            continue
        rows = [row for row in (*REST, *PAGES) if _route_of(row.path) == route]
        exact = [row for row in rows if row.method == method]
        if route.startswith("api/"):
            assert exact, f"{method} {route} has no row in tests/functional/roles/rows"
        first = (exact or rows)[0]
        yield PermissionRow(method=method, path=first.path, body=first.body, may=first.may)


def _bearer(user: User, *scopes: Scope, team: Any = None) -> Client:
    _token, text = services.token_create(
        user=user, name=f"{user.username} {scopes} {team}"[:80], scopes=frozenset(scopes), team=team
    )
    return Client(headers={"Authorization": f"Bearer {text}"})


def _session(user: User) -> Client:
    client = Client()
    client.force_login(user)
    return client


@contextmanager
def _written() -> Iterator[list[str]]:
    """The statements that changed a table other than the session's."""
    changed: list[str] = []

    def noticed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(("INSERT", "UPDATE", "DELETE")) and "django_session" not in sql:
            changed.append(sql)
        return execute(sql, params, many, context)

    with connection.execute_wrapper(noticed):
        yield changed


def _refusal_missing(client: Client, row: PermissionRow, names: dict[str, str]) -> str:
    """What is wrong with the answer to somebody who must not change it; empty if nothing is."""
    with Undone(), _written() as changed:
        answer = send_request(client, row, names)
        if answer.status_code in (403, 404, 405):
            return ""
        # Every member reads these pages; posted to, they still change nothing.
        if row.may >= MEMBERS and not row.path.startswith("/api/") and not changed:
            return ""
        return f"{answer.status_code}, {len(changed)} statements"


def test_every_write_is_classified() -> None:
    unknown = {f"{method} {route}" for method, route in _writes() if _owner(method, route) is None}
    assert unknown == set(), "say in OWNERS to whom it belongs"
    assert sum(1 for _ in _requests(Owner.FLEET)) > 60


@pytest.mark.parametrize("owner", [Owner.FLEET, Owner.COMPANY])
def test_no_team_role_and_no_confined_token_changes_what_belongs_to_every_team(
    undone: World, owner: Owner
) -> None:
    team = undone.own.team
    operator = factories.user("olga", team=team, role=TeamRole.VIEWER, operator=True)
    root = factories.user("rita", team=team, role=TeamRole.ADMINISTRATOR, admin=True)
    users = {role: User.objects.get(username=f"maps-{role}") for role in TeamRole}
    programs = {
        "operator's token of one team": _bearer(operator, Scope.ALL, team=team),
        "operator's token for jobs": _bearer(operator, Scope.JOBS),
        "operator's token to read": _bearer(operator, Scope.READ),
        "company administrator's token of one team": _bearer(root, Scope.ALL, team=team),
        **{f"{role}'s token": _bearer(user, Scope.ALL) for role, user in users.items()},
    }
    browsers = {f"{role}": _session(user) for role, user in users.items()}
    if owner is Owner.COMPANY:
        browsers["operator of the company"] = _session(operator)
    company_queue = Queue.objects.filter(team=None, parent=None).latest("id")
    names = {**undone.names(Whose.OWN), "queue.company": company_queue.uid}
    allowed = []
    for row in (*_requests(owner), *(COMPANY_NAMES if owner is Owner.COMPANY else ())):
        # A page takes no tokens: a program is anonymous there, as the role matrix covers.
        callers = {**browsers, **programs} if row.path.startswith("/api/") else browsers
        for who, client in callers.items():
            if wrong := _refusal_missing(client, row, names):
                allowed.append(f"{row} as {who}: {wrong}")
    assert allowed == []


def test_an_operator_of_the_company_operates_the_fleet_in_no_team_at_all(undone: World) -> None:
    operator = factories.user("olga", operator=True)
    browser, program = _session(operator), _bearer(operator, Scope.ADMIN)
    names = undone.names(Whose.OWN)
    refused = []
    for row in _requests(Owner.FLEET):
        for who, client in (("browser", browser), ("program", program)):
            if who == "program" and not row.path.startswith("/api/"):
                continue
            with Undone():
                outcome = outcome_of(send_request(client, row, names))
            if outcome is not Outcome.DONE and outcome != "answered 405":
                refused.append(f"{row} as {who}: {outcome}")
    assert refused == []


def test_the_admin_changes_nothing_of_the_company_for_a_team_role(undone: World) -> None:
    users = [User.objects.get(username=f"maps-{role}") for role in TeamRole]
    allowed = []
    for model, table in admin.site._registry.items():
        if isinstance(table, ScopedAdmin) and table.team_path:
            continue
        for user in users:
            request = RequestFactory().post("/admin/")
            request.user = user
            rights = (
                ("add", table.has_add_permission(request)),
                ("change", table.has_change_permission(request)),
                ("delete", table.has_delete_permission(request)),
            )
            allowed += [f"{user} may {verb} {model.__name__}" for verb, may in rights if may]
            seen = table.get_queryset(request) if table.has_view_permission(request) else ()
            if table.actions and seen:
                allowed.append(f"{user} may act on {model.__name__}")
    assert allowed == []


def test_a_confined_token_shares_no_model_with_every_team(undone: World) -> None:
    team = undone.own.team
    root = factories.user("rita", admin=True)
    names = undone.names(Whose.OWN)
    version = ModelVersion.objects.get(uid=names["version"])
    body = {
        "team": team.uid,
        "kind": "finetune",
        "name": "shared",
        "queue": names["queue.name"],
        "engine": "transformers",
        "model_version": version.base.uid if version.base else "",
        "dataset_version": names["dataset_version"],
        "output_name": "shared",
        "output_shared": True,
    }
    confined, free = _bearer(root, Scope.ALL, team=team), _bearer(root, Scope.ALL)
    with Undone():
        answer = confined.post("/api/v1/jobs", body, content_type="application/json")
    assert answer.status_code == 422, answer.content
    fields = [error["field"] for error in answer.json()["errors"]]
    assert fields == ["output_shared"], answer.json()
    with Undone():
        answer = free.post("/api/v1/jobs", body, content_type="application/json")
    assert answer.status_code == 201, answer.content
