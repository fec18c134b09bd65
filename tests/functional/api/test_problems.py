"""What every address answers when something is wrong."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from apps.jobs.api.views import JobViewSet
from tests.cases import for_each_case
from tests.functional.api.callers import API, problem, wrong_fields
from tests.integration.company import Company


def test_an_address_that_is_none_is_a_problem_too(engineer: APIClient) -> None:
    for path in ("nothing", "jobs/nothing", "jobs/", "me/"):
        problem(engineer.get(f"{API}/{path}"), 404, "not-found")
    problem(engineer.post(f"{API}/nothing", {}), 404, "not-found")


def test_a_method_that_is_not_offered_is_refused_with_those_that_are(engineer: APIClient) -> None:
    refused = engineer.put(f"{API}/jobs", {})
    problem(refused, 405, "method-not-allowed")
    assert "POST" in refused["Allow"]


def test_another_kind_of_body_is_refused(engineer: APIClient) -> None:
    refused = engineer.post(f"{API}/jobs", "kind=finetune", content_type="text/plain")
    problem(refused, 415, "unsupported-media-type")


def test_broken_json_is_refused(engineer: APIClient) -> None:
    refused = engineer.post(f"{API}/jobs", b"{", content_type="application/json")
    problem(refused, 400, "parse-error")


@for_each_case("text", [r'"a\u0000b"', r'"\ud800"', r'{"deep": [{"a": "\u0000"}]}'])
def test_texts_that_the_database_cannot_keep_are_refused(engineer: APIClient, text: str) -> None:
    body = f'{{"name": "x", "kind": "finetune", "spec": {{"a": {text}}}}}'
    refused = engineer.post(f"{API}/jobs", body.encode(), content_type="application/json")
    assert "NUL" in problem(refused, 400, "parse-error")["detail"]


def test_a_number_that_json_does_not_know_is_refused(engineer: APIClient) -> None:
    body = b'{"name": "x", "kind": "finetune", "spec": {"deep": [{"a": -1e999}]}}'
    refused = engineer.post(f"{API}/jobs", body, content_type="application/json")
    assert "too large" in problem(refused, 400, "parse-error")["detail"]


def test_a_body_beyond_the_limit_is_refused(engineer: APIClient) -> None:
    body = b'{"name": "' + b"x" * (9 * 1024 * 1024) + b'"}'
    refused = engineer.post(f"{API}/tokens", body, content_type="application/json")
    problem(refused, 413, "too-large")


def test_an_unknown_field_is_named(engineer: APIClient) -> None:
    refused = engineer.post(f"{API}/tokens", {"name": "x", "expire_at": None})
    assert "known fields: name, scopes, expires_at, team" in wrong_fields(refused)["expire_at"]


def test_an_unknown_query_parameter_is_named(engineer: APIClient, company: Company) -> None:
    job = company.submit()
    for path in ("jobs", "me", f"jobs/{job.uid}", f"jobs/{job.uid}/curve"):
        assert "stat" in wrong_fields(engineer.get(f"{API}/{path}?stat=failed"))


def test_a_filter_with_a_wrong_value_is_refused(engineer: APIClient) -> None:
    assert "done" in wrong_fields(engineer.get(f"{API}/jobs?state=done"))["state"]
    twice = engineer.get(f"{API}/jobs?text=a&text=b")
    assert wrong_fields(twice) == {"text": "give it once"}


def test_a_fault_of_ours_is_logged_and_says_nothing(
    engineer: APIClient,
    company: Company,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(user: object) -> None:
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr(JobViewSet, "visible", staticmethod(broken))
    answer = engineer.get(f"{API}/jobs")
    assert "swordfish" not in problem(answer, 500, "internal")["detail"]
    assert "swordfish" in caplog.text


@pytest.mark.django_db
def test_health_needs_no_token() -> None:
    answer = APIClient().get("/healthz")
    assert answer.json() == {"status": "ok", "database": "answers"}


@for_each_case(
    ("path", "field", "given"),
    [
        ("jobs", "cards", "1"),
        ("jobs", "cards", True),
        ("jobs", "name", 8),
        ("jobs", "output_shared", "yes"),
        ("jobs", "output_shared", 1),
        ("jobs", "chips.0", 910),
        ("deployments", "replicas", "2"),
        ("deployments", "name", 1.5),
        ("keys", "concurrency", "4"),
    ],
)
def test_a_value_of_another_type_is_refused_and_not_coerced(
    engineer: APIClient, path: str, field: str, given: object
) -> None:
    name, _, place = field.partition(".")
    refused = engineer.post(f"{API}/{path}", {name: [given] if place else given})
    assert field in wrong_fields(refused)


def test_numbers_and_truth_values_in_an_address_are_text(engineer: APIClient) -> None:
    answer = engineer.get(f"{API}/nodes", {"page_size": "5"})
    assert answer.status_code == 200
    assert engineer.get(f"{API}/nodes", {"ready": "true"}).status_code == 200
