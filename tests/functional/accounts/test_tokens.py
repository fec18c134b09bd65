"""Personal tokens: what they may be used for, where, and for how long."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.urls import URLPattern, URLResolver, get_resolver
from django.utils import timezone
from pytest_django import Settings
from rest_framework.permissions import AllowAny
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.test import APIClient, APIRequestFactory
from rest_framework.views import APIView

from apps.accounts import services
from apps.accounts.api.authentication import TokenScopePermission
from apps.accounts.models import PersonalToken
from controlplane.domain.common.permissions import (
    SCOPE_GRANTS,
    Permission,
    Scope,
    TeamRole,
    scopes_allow,
)
from tests.api_document import api_document
from tests.functional.accounts.conftest import Staffed, browser
from tests.functional.api.callers import API, caller, problem, wrong_fields

#: Schema and its page: they say nothing of anybody.
OPEN = {"schema", "docs"}


def rest_views() -> Iterator[tuple[str, Any]]:
    """Every address of REST with the class that answers there."""

    def walk(prefix: str, patterns: list[Any]) -> Iterator[tuple[str, Any]]:
        for pattern in patterns:
            path = f"{prefix}{pattern.pattern}"
            if isinstance(pattern, URLResolver):
                yield from walk(path, pattern.url_patterns)
            elif isinstance(pattern, URLPattern) and path.startswith("api/v1/"):
                answer: Any = pattern.callback
                yield path, answer.cls

    yield from walk("", get_resolver().url_patterns)


def test_every_address_of_rest_says_which_scope_it_belongs_to() -> None:
    views = {path: view for path, view in rest_views() if path.split("/")[2] not in OPEN}
    assert len(views) > 50
    for path, view in views.items():
        if AllowAny in view.permission_classes:
            # Not for people: they know tokens of their own, or nothing at all.
            assert "PersonalTokenAuthentication" not in {
                one.__name__ for one in view.authentication_classes
            }, path
            continue
        assert TokenScopePermission in view.permission_classes, path
        assert isinstance(getattr(view, "token_scope", None), Scope), path


class Undecided(APIView):
    """As somebody writes one who did not think of tokens."""

    def get(self, request: Request) -> Response:
        return Response("let in")


def test_a_view_that_names_no_scope_takes_no_tokens(staffed: Staffed) -> None:
    _token, text = services.token_create(
        user=staffed.root, name="all", scopes=frozenset({Scope.ALL})
    )
    request = APIRequestFactory().get("/", headers={"Authorization": f"Bearer {text}"})
    refused = Undecided.as_view()(request)
    assert refused.status_code == 403
    assert "this endpoint does not accept tokens" in refused.content.decode()


ATTEMPTS = (
    (Scope.MODELS, "model-versions/import"),
    (Scope.JOBS, "jobs"),
    (Scope.SERVING, "deployments"),
    (Scope.SERVING, "keys"),
    (Scope.ADMIN, "teams"),
    (Scope.ALL, "tokens"),
)


@pytest.mark.parametrize("scope", Scope)
def test_a_scope_opens_its_own_part_of_rest_and_no_other(staffed: Staffed, scope: Scope) -> None:
    client = caller(staffed.root, scope)
    for needed, path in (("me", "me"), ("jobs", "jobs"), ("audit", "audit")):
        assert client.get(f"{API}/{path}").status_code == 200, needed
    for needed, path in ATTEMPTS:
        answer = client.post(f"{API}/{path}", {})
        if scopes_allow(frozenset({scope}), needed):
            assert answer.status_code in (400, 422), (path, answer.content)
        else:
            body = problem(answer, 403, "permission-refused")
            assert f"a token with the scope {needed.value}" in body["detail"]


def test_all_scopes_together_grant_what_people_can_be_granted() -> None:
    parts = frozenset().union(*(SCOPE_GRANTS[one] for one in Scope if one is not Scope.ALL))
    assert parts | {Permission.VIEW} == SCOPE_GRANTS[Scope.ALL] == frozenset(Permission)


def test_without_scopes_a_new_token_only_reads(staffed: Staffed) -> None:
    created = caller(staffed.engineer).post(f"{API}/tokens", {"name": "plain"}).json()
    assert created["scopes"] == ["read"]


def test_a_scope_grants_nothing_that_its_owner_has_not(staffed: Staffed) -> None:
    viewer = caller(staffed.of[TeamRole.VIEWER], Scope.ALL)
    body = {"name": "x", "slug": "x"}
    problem(viewer.post(f"{API}/teams", body), 403, "permission-refused")


def test_a_token_confined_to_a_team_sees_no_other(staffed: Staffed) -> None:
    services.record_audit_entry(actor=staffed.root, action="node.cordon", name="node-1")
    root = caller(staffed.root, Scope.ALL, team=staffed.maps)
    assert [one["slug"] for one in root.get(f"{API}/teams").json()["results"]] == ["maps"]
    problem(root.get(f"{API}/teams/{staffed.search.uid}"), 404, "not-found")
    me = root.get(f"{API}/me").json()
    assert (me["administrator"], [one["slug"] for one in me["teams"]]) == (False, ["maps"])
    audit = root.get(f"{API}/audit").json()["results"]
    assert {one["team"] for one in audit} <= {staffed.maps.uid}
    body = {"name": "x", "slug": "x"}
    problem(root.post(f"{API}/teams", body), 403, "permission-refused")


def test_a_token_cannot_be_confined_to_a_team_of_others(staffed: Staffed) -> None:
    body = {"name": "sly", "team": staffed.search.uid}
    assert "team" in wrong_fields(caller(staffed.engineer).post(f"{API}/tokens", body))


def test_a_confined_token_neither_makes_nor_touches_wider_ones(staffed: Staffed) -> None:
    wide, _text = services.token_create(
        user=staffed.root, name="wide", scopes=frozenset({Scope.ALL})
    )
    confined = caller(staffed.root, Scope.ALL, team=staffed.maps)
    for team in ({}, {"team": None}):
        refused = confined.post(f"{API}/tokens", {"name": "wider", "scopes": ["all"], **team})
        assert "limited to team maps" in wrong_fields(refused, 422, "refused")["team"]
    elsewhere = {"name": "elsewhere", "team": staffed.search.uid}
    assert "team" in wrong_fields(confined.post(f"{API}/tokens", elsewhere))
    created = confined.post(f"{API}/tokens", {"name": "narrow", "team": staffed.maps.uid})
    assert created.status_code == 201
    listed = confined.get(f"{API}/tokens").json()["results"]
    assert {one["team"] for one in listed} == {staffed.maps.uid}
    problem(confined.delete(f"{API}/tokens/{wide.uid}"), 404, "not-found")


def test_names_are_unique_among_tokens_that_work(staffed: Staffed) -> None:
    client = caller(staffed.engineer)
    first = client.post(f"{API}/tokens", {"name": "nightly"}).json()
    again = client.post(f"{API}/tokens", {"name": "nightly"})
    assert "already" in wrong_fields(again, 422, "refused")["name"]
    client.delete(f"{API}/tokens/{first['uid']}")
    assert client.post(f"{API}/tokens", {"name": "nightly"}).status_code == 201
    PersonalToken.objects.filter(name="nightly").update(expires_at=timezone.now())
    page = browser(staffed.engineer).post(
        "/profile", {"name": "nightly", "scopes": ["read"], "expires": "30"}
    )
    assert page.context["text"].startswith("nfp-")


def test_an_installation_may_limit_how_long_tokens_live(
    staffed: Staffed, settings: Settings
) -> None:
    settings.NINEFOLD_TOKEN_MAX_DAYS = 60
    client = caller_with_end(staffed)
    for end in (None, timezone.now() + timedelta(days=61)):
        body = {"name": "long", "expires_at": end.isoformat() if end else None}
        refused = client.post(f"{API}/tokens", body)
        assert "at most 60 days" in wrong_fields(refused, 422, "refused")["expires_at"]
    page = browser(staffed.engineer).get("/profile").text
    assert re.findall(r'<option value="(\d*)"[^>]*>\d+ days', page) == ["30"]


def caller_with_end(staffed: Staffed) -> APIClient:
    _, text = services.token_create(
        user=staffed.engineer,
        name="short",
        scopes=frozenset({Scope.ALL}),
        expires_at=timezone.now() + timedelta(days=1),
    )
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    return client


def test_a_token_from_before_scopes_keeps_all_scopes(staffed: Staffed) -> None:
    text = services.generate_secret_token(services.TOKEN_PREFIX)
    with connection.cursor() as cursor:
        # As the version before this one writes it.
        cursor.execute(
            "INSERT INTO accounts_personaltoken (uid, created_at, user_id, name, prefix, digest) "
            "VALUES (%s, now(), %s, 'old', 'nfp-', %s)",
            ["f" * 32, staffed.engineer.pk, services.token_digest(text)],
        )
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    assert client.post(f"{API}/tokens", {"name": "new"}).status_code == 201


def test_invalid_tokens_are_throttled_and_valid_ones_are_not(
    staffed: Staffed, settings: Settings
) -> None:
    settings.NINEFOLD_TOKEN_FAILURES = 3
    guesser = APIClient()
    guesser.credentials(HTTP_AUTHORIZATION="Bearer nfp-guess")
    answers = [guesser.get(f"{API}/me") for _ in range(5)]
    assert [one.status_code for one in answers] == [401, 401, 401, 429, 429]
    assert answers[-1]["Retry-After"] == "61"
    assert caller(staffed.engineer).get(f"{API}/me").status_code == 200


def test_the_schema_says_which_scope_an_operation_needs() -> None:
    operations = api_document()["paths"]
    assert operations["/api/v1/jobs"]["post"]["x-token-scope"] == "jobs"
    assert operations["/api/v1/jobs"]["get"]["x-token-scope"] == "read"
    assert operations["/api/v1/tokens"]["post"]["x-token-scope"] == "all"


def test_the_profile_says_in_words_what_a_token_may_do(staffed: Staffed) -> None:
    browser(staffed.engineer).post(
        "/profile",
        {"name": "ci", "scopes": ["jobs", "serving"], "expires": "30", "team": staffed.maps.uid},
    )
    page = browser(staffed.engineer).get("/profile").text
    assert "only in maps" in page
    assert "create, change and stop deployments" in page
