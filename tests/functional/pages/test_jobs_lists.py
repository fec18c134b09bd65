"""The list of jobs: questions in its address, several jobs at once, filters that people keep."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import translation

from apps.jobs.models import Job, SavedFilter
from apps.jobs.services.saved_filters import MAX_SAVED_FILTERS
from controlplane.domain.jobs.lifecycle import JobState
from controlplane.domain.quotas.claims import NOT_EVALUATED_REASON
from controlplane.web.reasons import render_reason
from tests import factories
from tests.cases import for_each_case
from tests.functional.sample_rows import EmptyCompany, FilledCompany

HTMX = {"HX-Request": "true"}


def names(client: Client, query: str) -> set[str]:
    return {row.job.name for row in client.get(f"/jobs?{query}").context["rows"]}


@for_each_case(
    ("query", "expected"),
    [
        ("state=failed", {"ran out of disk"}),
        ("state=waiting", {"needs many"}),
        ("kind=script", {"count lines"}),
        ("text=TEACH", {"teach addresses"}),
        ("model=nothing-like-that", set()),
        ("dataset=addresses&state=running", {"teach addresses"}),
        ("until=2020-01-01", set()),
        ("since=2020-01-01&kind=script", {"count lines"}),
        ("mine=on&state=failed", {"ran out of disk"}),
        # What is no state narrows nothing.
        (
            "state=nonsense",
            {"went well", "count lines", "ran out of disk", "teach addresses", "needs many"},
        ),
    ],
)
def test_each_condition_narrows_the_list(
    browser: Client, filled: FilledCompany, query: str, expected: set[str]
) -> None:
    assert names(browser, query) == expected


def test_mine_leaves_out_what_colleagues_submitted(browser: Client, filled: FilledCompany) -> None:
    colleague = factories.user("cyd", team=filled.team)
    client = Client()
    client.force_login(colleague)
    assert names(client, "mine=on") == set()
    assert "teach addresses" in names(client, "")


def test_an_invalid_filter_is_ignored_with_a_hint(browser: Client, filled: FilledCompany) -> None:
    response = browser.get("/jobs?since=yesterday&state=failed")
    assert response.status_code == 200
    assert "Submitted on or after" in response.context["table"].ignored[0]
    assert {row.job.name for row in response.context["rows"]} == {"ran out of disk"}


def test_the_tabs_count_jobs_that_match_the_other_filters(
    browser: Client, filled: FilledCompany
) -> None:
    tabs = browser.get("/jobs?kind=finetune&state=failed").context["tabs"]
    counted = {str(tab.label): tab.count for tab in tabs}
    assert counted == {
        "all": "4",
        "waiting": "1",
        "running": "1",
        "succeeded": "1",
        "failed": "1",
        "cancelled": "0",
    }
    assert [str(tab.label) for tab in tabs if tab.current] == ["failed"]
    assert all("kind=finetune" in tab.href for tab in tabs)


def test_the_rows_show_progress_or_pending_reason(browser: Client, filled: FilledCompany) -> None:
    text = browser.get("/jobs").text
    assert "25 % · step 10 of 40" in text
    assert "needs 1 × 4 cards of cpu; 2 of 5 are free" in text
    assert "ended with exit code 28: the disk is full" in text


def test_a_refresh_brings_rows_and_counts_alone(browser: Client, filled: FilledCompany) -> None:
    text = browser.get("/jobs", headers=HTMX).text
    assert '<div id="job-states" hx-swap-oob="true">' in text
    assert 'hx-trigger="every 4s"' in text
    assert 'role="search"' not in text


def test_the_list_comes_as_csv(browser: Client, filled: FilledCompany) -> None:
    response = browser.get("/jobs?state=running&format=csv")
    head, *lines = b"".join(response).decode("utf-8-sig").splitlines()
    assert head.startswith("Name,State,Kind,")
    assert len(lines) == 1
    assert lines[0].startswith("teach addresses,running,finetune,10/40,ada,")


def test_several_are_cancelled_and_each_refusal_has_its_reason(
    browser: Client, filled: FilledCompany
) -> None:
    chosen = [filled.waiting.uid, filled.running.uid, filled.succeeded.uid]
    text = browser.post("/jobs/cancel", {"uid": chosen}, follow=True).text
    assert "Cancelling 2 jobs: " in text
    assert "went well: a job that is succeeded cannot cancel" in text
    assert Job.objects.filter(cancel_requested_at=None).count() == 3


def test_jobs_of_others_are_neither_cancelled_nor_named(
    filled: FilledCompany, outsider: Client
) -> None:
    text = outsider.post("/jobs/cancel", {"uid": [filled.waiting.uid]}, follow=True).text
    assert "Select at least one job" in text
    assert "needs many" not in text
    filled.waiting.refresh_from_db()
    assert filled.waiting.cancel_requested_at is None


def test_a_viewer_sees_why_no_job_is_cancelled(filled: FilledCompany, viewer: Client) -> None:
    text = viewer.post("/jobs/cancel", {"uid": [filled.waiting.uid]}, follow=True).text
    assert (
        "needs many: this requires the permission to run in team maps; your role there: viewer."
        in text
    )
    filled.waiting.refresh_from_db()
    assert filled.waiting.cancel_requested_at is None


def save(client: Client, name: str, query: str = "state=failed") -> SavedFilter:
    client.post("/jobs/filters", {"name": name, "query": query})
    return SavedFilter.objects.get(name=name)


def test_a_saved_filter_has_no_page_parameters(browser: Client, empty: EmptyCompany) -> None:
    saved = save(browser, "my failures", "state=failed&mine=on&after=abc&filter=x&format=csv")
    assert saved.query == "state=failed&mine=on"
    text = browser.get("/jobs").text
    assert f"/jobs?state=failed&amp;mine=on&amp;filter={saved.uid}" in text


def test_the_list_opens_with_the_default_filter_which_can_be_cleared(
    browser: Client, filled: FilledCompany
) -> None:
    saved = save(browser, "failures")
    browser.post(f"/jobs/filters/{saved.uid}", {"act": "default"})
    opened = browser.get("/jobs")
    assert opened.status_code == 302
    assert opened["Location"] == f"/jobs?state=failed&filter={saved.uid}"
    page = browser.get(opened["Location"])
    assert {row.job.name for row in page.context["rows"]} == {"ran out of disk"}
    # The tab of all states leads out of it.
    everything = page.context["tabs"][0].href
    assert len(browser.get(f"/jobs{everything}").context["rows"]) == 5
    browser.post(f"/jobs/filters/{saved.uid}", {"act": "no-default"})
    assert browser.get("/jobs").status_code == 200


def test_only_one_filter_is_the_default(browser: Client, empty: EmptyCompany) -> None:
    one, other = save(browser, "one"), save(browser, "other")
    for saved in (one, other):
        browser.post(f"/jobs/filters/{saved.uid}", {"act": "default"})
    assert list(SavedFilter.objects.filter(is_default=True)) == [other]


def test_saving_under_an_existing_name_replaces_the_query(
    browser: Client, empty: EmptyCompany
) -> None:
    save(browser, "mine", "mine=on")
    assert save(browser, "mine", "mine=on&state=running").query == "mine=on&state=running"
    assert SavedFilter.objects.count() == 1


def test_filters_are_renamed_and_deleted(browser: Client, empty: EmptyCompany) -> None:
    one, other = save(browser, "one"), save(browser, "other")
    address = f"/jobs/filters/{one.uid}"
    assert (
        "you already have a filter named other; choose another name"
        in browser.post(address, {"act": "rename", "name": "other"}, follow=True).text
    )
    browser.post(address, {"act": "rename", "name": " first "})
    one.refresh_from_db()
    assert one.name == "first"
    browser.post(address, {"act": "delete"})
    assert list(SavedFilter.objects.all()) == [other]


@for_each_case(
    ("name", "query", "message"),
    [
        ("", "state=failed", "name of 1 to 60 characters"),
        ("x" * 61, "state=failed", "name of 1 to 60 characters"),
        ("a\0b", "state=failed", "U+0000 is not allowed in a name"),
        ("all", "", "the list is not filtered; set a filter, then save it"),
        ("long", f"text={'x' * 1000}", "the filter is too long to be saved; use fewer conditions"),
    ],
)
def test_an_invalid_filter_is_refused_with_a_message(
    browser: Client, empty: EmptyCompany, name: str, query: str, message: str
) -> None:
    text = browser.post("/jobs/filters", {"name": name, "query": query}, follow=True).text
    assert message in text
    assert not SavedFilter.objects.exists()


def test_the_number_of_saved_filters_is_limited(browser: Client, empty: EmptyCompany) -> None:
    SavedFilter.objects.bulk_create(
        SavedFilter(owner=empty.user, name=f"filter {number}", query="mine=on")
        for number in range(MAX_SAVED_FILTERS)
    )
    form = {"name": "one more", "query": "mine=on"}
    assert "delete one first" in browser.post("/jobs/filters", form, follow=True).text
    assert SavedFilter.objects.count() == MAX_SAVED_FILTERS


def test_saved_filters_belong_to_one_user(
    browser: Client, viewer: Client, empty: EmptyCompany
) -> None:
    saved = save(browser, "failures of ours")
    assert "failures of ours" not in viewer.get("/jobs").text
    assert viewer.post(f"/jobs/filters/{saved.uid}", {"act": "delete"}).status_code == 404
    assert SavedFilter.objects.exists()


@pytest.mark.usefixtures("filled")
def test_the_home_page_gives_pending_reasons_in_the_language_of_the_reader(browser: Client) -> None:
    waiting = Job.objects.get(state=JobState.WAITING)
    waiting.attempts.update(message=NOT_EVALUATED_REASON)
    english = browser.get("/").text
    chinese = browser.get("/", headers={"accept-language": "zh-hans"}).text
    assert NOT_EVALUATED_REASON in english
    assert NOT_EVALUATED_REASON not in chinese
    with translation.override("zh-hans"):
        assert render_reason(NOT_EVALUATED_REASON) in chinese
