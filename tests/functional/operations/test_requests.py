"""Ids of requests, and the line that each leaves in the log."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Any

import pytest
from django.http import HttpResponse
from django.test import Client, RequestFactory
from django.urls import ResolverMatch

from apps.accounts.services import token_create
from apps.console.web.prometheus_metrics import READINESS
from controlplane.domain.common.permissions import Scope
from controlplane.web import logs
from controlplane.web.middleware import RequestLoggingMiddleware, url_pattern_of_request
from tests import factories
from tests.functional.api.callers import caller

ACCESS = "controlplane.web.access"


def access_lines(caplog: pytest.LogCaptureFixture) -> list[Any]:
    """With their fields as attributes."""
    return [record for record in caplog.records if record.name == ACCESS]


@pytest.mark.django_db
def test_a_response_has_a_request_id(client: Client) -> None:
    first, second = client.get("/healthz"), client.get("/healthz")
    assert len(first["X-Request-ID"]) == 16
    assert first["X-Request-ID"] != second["X-Request-ID"]


@pytest.mark.django_db
@pytest.mark.parametrize("given", ["a", "5f0c-2a1b", "proxy.7_x", "x" * 64])
def test_a_valid_id_of_the_client_is_used(client: Client, given: str) -> None:
    assert client.get("/healthz", headers={"X-Request-ID": given})["X-Request-ID"] == given


@pytest.mark.django_db
@pytest.mark.parametrize("given", ["", "x" * 65, "two words", "a\tb", "<b>", "-a", "Ä", "a=b"])
def test_any_other_is_replaced(client: Client, given: str) -> None:
    answer = client.get("/healthz", headers={"X-Request-ID": given})
    assert answer["X-Request-ID"] != given


@pytest.mark.django_db
def test_problem_details_have_the_request_id(client: Client) -> None:
    refused = client.get("/api/v1/jobs", headers={"X-Request-ID": "abc"})
    assert refused.status_code == 401
    assert refused.json()["request_id"] == "abc"


@pytest.mark.django_db
def test_the_500_page_and_its_log_line_have_the_request_id(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken() -> HttpResponse:
        raise RuntimeError("the password is swordfish")

    monkeypatch.setattr(READINESS, "answer", broken)
    caplog.set_level(logging.INFO)
    context = logs.LogContextFilter()
    caplog.handler.addFilter(context)
    client = Client(raise_request_exception=False)
    answer = client.get("/readyz", headers={"X-Request-ID": "abc-500"})
    caplog.handler.removeFilter(context)
    assert answer.status_code == 500
    assert "<code>abc-500</code>" in answer.text
    assert "swordfish" not in answer.text
    (line,) = access_lines(caplog)
    assert (line.status, line.route) == (500, "/readyz")
    assert {vars(record)["request_id"] for record in caplog.records} == {"abc-500"}


@pytest.mark.parametrize("address", ["/jobs/%00", "/people/%00"])
def test_a_url_with_a_nul_character_is_a_bad_request(db: None, address: str) -> None:
    client = Client()
    client.force_login(factories.user("root", admin=True))
    assert client.get(address).status_code == 400


Lines = list[Any]
Answered = Callable[..., Lines]


@pytest.fixture
def answered(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> Answered:
    """The access lines of one request that took so long, at INFO and above."""

    def answer(*, status: int = 200, seconds: float = 0.0, route: str = "jobs") -> Lines:
        ticks = iter([100.0, 100.0 + seconds])
        monkeypatch.setattr(time, "perf_counter", lambda: next(ticks))
        request = RequestFactory().get(f"/{route}?text=secret")
        request.resolver_match = ResolverMatch(HttpResponse, (), {}, route=route)
        caplog.clear()
        caplog.set_level(logging.INFO)
        RequestLoggingMiddleware(lambda _: HttpResponse(status=status))(request)
        return access_lines(caplog)

    return answer


def test_only_slow_and_failed_requests_are_logged_by_default(answered: Answered) -> None:
    assert answered(seconds=0.9) == []
    assert answered(status=404) == []
    (slow,) = answered(seconds=1.2)
    assert (slow.duration_ms, slow.status, slow.method, slow.route) == (1200.0, 200, "GET", "/jobs")
    (failed,) = answered(status=503)
    assert failed.status == 503


def test_long_polls_are_not_logged_as_slow(answered: Answered) -> None:
    assert answered(seconds=25.0, route="internal/gateway/snapshot") == []
    assert len(answered(seconds=25.0, status=500, route="internal/gateway/snapshot")) == 1


def test_a_line_has_no_query(answered: Answered) -> None:
    (line,) = answered(status=500)
    assert "secret" not in logs.WebTextFormatter().format(line)
    assert line.path == "/jobs"


@pytest.mark.django_db
def test_a_line_names_whoever_asked_by_session_or_by_token(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, logger=ACCESS)
    user = factories.user("mei", team=factories.team())
    client.force_login(user)
    client.get("/profile")
    caller(user).get("/api/v1/me")
    Client().get("/login")
    lines = access_lines(caplog)
    assert [(line.route, line.user) for line in lines] == [
        ("/profile", "mei"),
        ("/api/v1/me", "mei"),
        ("/login", ""),
    ]


@pytest.mark.django_db
def test_a_token_that_was_sent_is_in_no_line(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    user = factories.user("mei", team=factories.team())
    _, token = token_create(user=user, name="test", scopes=frozenset({Scope.ALL}))
    for path in ("/api/v1/me", "/api/v1/nothing"):
        Client().get(path, headers={"Authorization": f"Bearer {token}"})
    text = "\n".join(logs.WebJsonFormatter().format(record) for record in caplog.records)
    assert "a request was answered" in text
    assert token not in text


@pytest.mark.parametrize(
    ("route", "pattern"),
    [
        ("jobs/<str:uid>", "/jobs/<uid>"),
        ("teams/<slug:slug>/webhooks", "/teams/<slug>/webhooks"),
        ("api/v1/^jobs/(?P<uid>[0-9a-f]{32})$", "/api/v1/jobs/<uid>"),
        (
            r"api/v1/^jobs/(?P<uid>[0-9a-f]{32})/files/(?P<path>(a|b)+)\Z",
            "/api/v1/jobs/<uid>/files/<path>",
        ),
        ("", "/"),
    ],
)
def test_a_pattern_is_the_same_for_every_object(route: str, pattern: str) -> None:
    request = RequestFactory().get("/whatever")
    request.resolver_match = ResolverMatch(HttpResponse, (), {}, route=route)
    assert url_pattern_of_request(request) == pattern


def test_what_leads_nowhere_has_one_pattern() -> None:
    assert url_pattern_of_request(RequestFactory().get("/wp-login.php")) == "unmatched"
    assert url_pattern_of_request(RequestFactory().get("/static/css/x.css")) == "static"
