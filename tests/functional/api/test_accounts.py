from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from apps.accounts import services as accounts
from apps.accounts.models import PersonalToken
from controlplane.domain.common.permissions import Scope
from tests.functional.api.callers import API, caller, problem, wrong_fields
from tests.integration.company import Company


def test_me_names_the_caller_and_its_roles_by_team(company: Company, engineer: APIClient) -> None:
    body = engineer.get(f"{API}/me").json()
    assert (body["username"], body["administrator"]) == ("mei", False)
    assert [(team["slug"], team["roles"]) for team in body["teams"]] == [
        ("addresses", ["engineer"])
    ]


def test_an_administrator_of_the_company_sees_every_team(
    company: Company, engineer: APIClient
) -> None:
    company.engineer.is_superuser = True
    company.engineer.save()
    teams = engineer.get(f"{API}/teams").json()["results"]
    assert {team["slug"] for team in teams} == {"addresses", "routing"}
    assert all(team["roles"] == ["administrator"] for team in teams)


def test_a_new_token_is_shown_once_and_works(company: Company, engineer: APIClient) -> None:
    created = engineer.post(f"{API}/tokens", {"name": "nightly"})
    assert created.status_code == 201
    text = created.json()["text"]
    listed = engineer.get(f"{API}/tokens").content.decode()
    assert text not in listed
    assert created.json()["uid"] in listed
    other = APIClient()
    other.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")
    assert other.get(f"{API}/me").json()["username"] == "mei"


def test_a_revoked_token_is_refused_at_once(company: Company, engineer: APIClient) -> None:
    created = engineer.post(f"{API}/tokens", {"name": "nightly"}).json()
    for _ in range(2):
        assert engineer.delete(f"{API}/tokens/{created['uid']}").status_code == 204
    other = APIClient()
    other.credentials(HTTP_AUTHORIZATION=f"Bearer {created['text']}")
    refused = other.get(f"{API}/me")
    assert "revoked" in problem(refused, 401, "authentication-failed")["detail"]
    assert refused["WWW-Authenticate"] == "Bearer"


def test_an_expired_token_is_refused(company: Company) -> None:
    client = caller(company.engineer)
    assert client.get(f"{API}/me").status_code == 200
    PersonalToken.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    problem(client.get(f"{API}/me"), 401, "authentication-failed")


def test_a_token_cannot_be_made_to_expire_in_the_past(engineer: APIClient) -> None:
    past = (timezone.now() - timedelta(days=1)).isoformat()
    refused = engineer.post(f"{API}/tokens", {"name": "late", "expires_at": past})
    assert "future" in wrong_fields(refused)["expires_at"]


def test_somebody_elses_token_is_not_found(stranger: APIClient, company: Company) -> None:
    token, _ = accounts.token_create(
        user=company.engineer, name="mine", scopes=frozenset({Scope.READ})
    )
    problem(stranger.delete(f"{API}/tokens/{token.uid}"), 404, "not-found")


@pytest.mark.django_db
def test_nobody_gets_anything_without_a_token() -> None:
    for path in ("me", "jobs", "datasets", "models", "deployments", "keys", "usage", "cards"):
        problem(APIClient().get(f"{API}/{path}"), 401, "not-authenticated")


def test_a_browser_is_known_by_its_session_and_needs_the_csrf_token(company: Company) -> None:
    browser = Client(enforce_csrf_checks=True)
    browser.force_login(company.engineer)
    assert browser.get(f"{API}/me").json()["username"] == "mei"
    refused = browser.post(f"{API}/tokens", {"name": "x"}, content_type="application/json")
    assert "CSRF" in problem(refused, 403, "permission-denied")["detail"]
