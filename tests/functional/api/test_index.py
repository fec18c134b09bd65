"""The index of the API lists what its caller may read, and nothing else."""

from __future__ import annotations

from urllib.parse import urlsplit

from rest_framework.test import APIClient

from apps.console.api import api_collections
from controlplane.domain.common.permissions import Scope
from tests import factories
from tests.functional.api.callers import API, caller, problem
from tests.integration.company import Company

REFUSED = frozenset({401, 403, 404})


def listed(client: APIClient) -> dict[str, str]:
    answer = client.get(f"{API}/")
    assert answer.status_code == 200, answer.content
    return {each["name"]: each["url"] for each in answer.json()["resources"]}


def test_the_index_leads_to_documentation_and_resources(engineer: APIClient) -> None:
    body = engineer.get(f"{API}/").json()
    assert (body["title"], body["version"]) == ("Ninefold", "1")
    assert body["openapi_url"] == "http://testserver/api/v1/schema"
    assert body["docs_url"] == "http://testserver/api/v1/docs"
    for url in (body["openapi_url"], body["problem_types_url"]):
        assert engineer.get(urlsplit(url).path).status_code in (200, 302), url
    jobs = next(each for each in body["resources"] if each["name"] == "jobs")
    assert jobs == {
        "name": "jobs",
        "title": "Jobs",
        "tag": "jobs",
        "url": "http://testserver/api/v1/jobs",
    }


def test_what_is_listed_can_be_read_and_what_is_not_listed_cannot(company: Company) -> None:
    paths = {each.path for each in api_collections()}
    assert len(paths) > 50
    callers = {
        "engineer": caller(company.engineer),
        "engineer's token to read": caller(company.engineer, Scope.READ),
        "operator": caller(factories.user("op", operator=True)),
        "administrator": caller(factories.user("root", admin=True)),
    }
    wrong = []
    for who, client in callers.items():
        found = {urlsplit(url).path for url in listed(client).values()}
        for path in sorted(paths):
            refused = client.get(path).status_code in REFUSED
            if refused is (path in found):
                wrong.append(f"{who} {path}")
    assert wrong == []
    assert "alerts" not in listed(callers["engineer"])
    assert {"alerts", "status"} <= set(listed(callers["operator"]))


def test_a_caller_without_credentials_gets_no_index(db: None) -> None:
    problem(APIClient().get(f"{API}/"), 401, "not-authenticated")
