"""What surrounds every page: the sidebar, search, help, pages of errors, and the headers that protect them."""

from __future__ import annotations

import gzip
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.core.exceptions import PermissionDenied
from django.http.response import HttpResponseBase
from django.test import Client, RequestFactory
from django.urls import reverse
from django.views import defaults
from django.views.csrf import csrf_failure
from pytest_django import DjangoAssertNumQueries

from controlplane.web.templatetags.ninefold import ago
from tests import factories
from tests.functional.pages.test_every_page import OF_ONE, PLAIN, check
from tests.functional.sample_rows import EmptyCompany, FilledCompany

HTMX = {"hx-request": "true"}
MOST_BYTES = 250_000
#: People and session, then one query for jobs, models, datasets and deployments each.
SEARCH_QUERIES = 6


@pytest.mark.parametrize(
    ("address", "name"),
    [("/", "Home"), ("/jobs/new", "Jobs"), ("/models", "Models"), ("/fleet", "Fleet")],
)
def test_the_rail_says_where_one_is(browser: Client, address: str, name: str) -> None:
    sidebar = browser.get(address).text.partition("</aside>")[0]
    current = re.findall(r'aria-current="page">(?:<svg.*?</svg>)?([^<]+)</a>', sidebar)
    assert current == [name]


def test_the_rail_leads_to_the_admin_for_staff_only(browser: Client, empty: EmptyCompany) -> None:
    assert reverse("admin:index") not in browser.get("/").text
    staff = Client()
    staff.force_login(factories.user("root", admin=True))
    assert f'href="{reverse("admin:index")}"' in staff.get("/").text


def test_every_shortcut_leads_somewhere(browser: Client, filled: FilledCompany) -> None:
    links = re.findall(r'data-go="(\w)" href="([^"]+)"', browser.get("/").text)
    assert len({key for key, _ in links}) == len(links) >= 8
    assert {href: browser.get(href).status_code for _, href in links} == {
        href: 200 for _, href in links
    }


def test_search_finds_by_name_and_by_the_beginning_of_an_id(
    browser: Client, filled: FilledCompany
) -> None:
    by_name = browser.get("/search", {"q": "ADDRESSES"}, headers=HTMX).text
    assert reverse("job", args=[filled.running.uid]) in by_name
    by_id = browser.get("/search", {"q": filled.ready.uid[:10]}, headers=HTMX).text
    assert reverse("deployment", args=[filled.ready.uid]) in by_id


def test_search_finds_pages(browser: Client) -> None:
    assert 'href="/playground"' in browser.get("/search", {"q": "playg"}, headers=HTMX).text


def test_search_shows_nothing_of_other_teams(outsider: Client, filled: FilledCompany) -> None:
    for thing in (filled.running, filled.ready, filled.dataset, filled.tuned.line):
        for text in (thing.uid, str(thing)):
            found = outsider.get("/search", {"q": text}, headers=HTMX).text
            assert thing.uid not in found.replace(f"“{text}”", "")


def test_search_costs_one_query_a_kind(
    browser: Client, filled: FilledCompany, django_assert_max_num_queries: DjangoAssertNumQueries
) -> None:
    browser.get("/search")
    with django_assert_max_num_queries(SEARCH_QUERIES):
        browser.get("/search", {"q": "a"}, headers=HTMX)


def test_search_takes_any_text(
    browser: Client, filled: FilledCompany, subtests: pytest.Subtests
) -> None:
    for text in ("", "%", "_", "\0", "'", "x" * 500, "<script>", "无"):
        with subtests.test(text=text):
            response = browser.get("/search", {"q": text})
            assert response.status_code == 200
            assert "<script>alert" not in response.text
            check(response.text)


def test_search_is_a_page_without_scripts(browser: Client, filled: FilledCompany) -> None:
    assert "<h1>" in browser.get("/search", {"q": "teach"}).text
    assert "<h1>" not in browser.get("/search", {"q": "teach"}, headers=HTMX).text


@pytest.mark.slow
def test_no_page_allows_anything_inline_or_from_elsewhere(
    browser: Client, filled: FilledCompany, subtests: pytest.Subtests
) -> None:
    for address in (*PLAIN, *(address(filled) for address in OF_ONE.values())):
        with subtests.test(address):
            allows_nothing_inline_or_from_elsewhere(browser.get(address))


def allows_nothing_inline_or_from_elsewhere(response: HttpResponseBase) -> None:
    policy = dict(
        part.strip().split(" ", 1) for part in response["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == policy["script-src"] == policy["style-src"] == "'self'"
    assert policy["connect-src"] == policy["form-action"] == policy["base-uri"] == "'self'"
    assert policy["frame-ancestors"] == policy["object-src"] == "'none'"
    assert response["Cross-Origin-Opener-Policy"] == "same-origin"
    assert "camera=()" in response["Permissions-Policy"]
    assert response["X-Content-Type-Options"] == "nosniff"
    assert response["Referrer-Policy"] == "same-origin"


def test_only_the_admin_and_the_reference_of_rest_may_do_more(empty: EmptyCompany) -> None:
    staff = Client()
    staff.force_login(factories.user("root", admin=True))
    assert "'unsafe-eval'" in staff.get("/admin/")["Content-Security-Policy"]
    for address in ("/design", "/api/v1/me", "/healthz", "/static/nothing"):
        assert "unsafe" not in staff.get(address)["Content-Security-Policy"]


def test_the_pages_of_errors_need_no_database(client: Client) -> None:
    """They are shown when it is the database that fails: this test may not touch it."""
    assert client.get("/nothing-here").status_code == 404
    request = RequestFactory().get("/jobs")
    request.user = None  # type: ignore[assignment]
    assert defaults.server_error(request).status_code == 500
    assert defaults.permission_denied(request, PermissionDenied("no")).status_code == 403
    assert csrf_failure(request).status_code == 403


@pytest.mark.parametrize("address", ["/", "/jobs", "/models", "/deployments", "/jobs/new/finetune"])
def test_a_page_weighs_little_before_its_charts(
    browser: Client, filled: FilledCompany, address: str
) -> None:
    """What a first visit loads, as whitenoise sends it; the font is the reader's own."""
    text = browser.get(address).text
    weights = {"page": len(gzip.compress(text.encode()))}
    for name in re.findall(r'(?:href|src)="/static/([^"]+\.(?:css|js))"', text):
        path = finders.find(name)
        assert path, name
        weights[name] = len(gzip.compress(Path(path).read_bytes()))
    assert sum(weights.values()) <= MOST_BYTES, weights


@pytest.mark.parametrize("address", ["/nothing-here", "/jobs/0000"])
def test_a_page_that_is_not_there_says_what_next(browser: Client, address: str) -> None:
    response = browser.get(address)
    assert response.status_code == 404
    check(response.text)
    assert 'href="/"' in response.text


def test_a_form_that_is_too_old_says_what_next(empty: EmptyCompany) -> None:
    response = Client(enforce_csrf_checks=True).post("/login", {"username": "x"})
    assert response.status_code == 403
    check(response.text)
    assert "Nothing was changed" in response.text


def test_a_refusal_says_who_can_change_that(viewer: Client, filled: FilledCompany) -> None:
    response = viewer.post(f"/jobs/{filled.running.uid}/cancel")
    assert response.status_code == 403
    check(response.text)
    assert "administrator" in response.text


def test_times_are_in_utc_and_say_so() -> None:
    at = datetime(2026, 11, 24, 14, 20, 1, tzinfo=timezone(timedelta(hours=8)))
    assert 'title="2026-11-24 06:20:01 UTC"' in ago(at)
