"""Pages, filters and what a list costs."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from apps.jobs.services import job_cancel
from apps.models.services.datasets import dataset_upload
from apps.serving.services import gateways
from tests.cases import for_each_case
from tests.functional.api.callers import API, wrong_fields
from tests.integration.company import Company, ready_model, rows

LISTS = (
    "tokens",
    "teams",
    "datasets",
    "dataset-versions",
    "models",
    "model-versions",
    "evaluations",
    "jobs",
    "pipelines",
    "queues",
    "claims",
    "clusters",
    "nodes",
    "cards",
    "deployments",
    "keys",
    "usage",
    "usage/records",
    "usage/days",
)


def names(page: Any) -> list[str]:
    return [each["name"] for each in page["results"]]


def test_rows_that_are_added_meanwhile_neither_repeat_nor_hide_a_row(
    engineer: APIClient, company: Company
) -> None:
    for number in range(5):
        company.submit(name=f"job {number}")
    first = engineer.get(f"{API}/jobs?page_size=2").json()
    company.submit(name="job 5")
    second = engineer.get(first["next"]).json()
    third = engineer.get(second["next"]).json()
    assert [names(page) for page in (first, second, third)] == [
        ["job 4", "job 3"],
        ["job 2", "job 1"],
        ["job 0"],
    ]
    assert third["next"] is None
    assert names(engineer.get(second["previous"]).json()) == ["job 4", "job 3"]


def test_filters_stay_in_the_links(engineer: APIClient, company: Company) -> None:
    for number in range(3):
        company.submit(name=f"job {number}")
    page = engineer.get(f"{API}/jobs?state=waiting&page_size=1").json()
    assert "state=waiting" in page["next"]


@for_each_case(
    "cursor", ["x", "cD1hYmM=", "cD05OTk5OTk5OTk5OTk5OTk5OTk5OTk=", "cD05" + "OTk5" * 1500]
)
def test_a_cursor_that_is_none_is_refused(engineer: APIClient, cursor: str) -> None:
    assert "next" in wrong_fields(engineer.get(f"{API}/jobs?cursor={cursor}"))["cursor"]


@for_each_case("size", ["0", "201", "ten", "-1", "9" * 5000])
def test_a_size_that_is_none_is_refused(engineer: APIClient, size: str) -> None:
    assert size[:40] in wrong_fields(engineer.get(f"{API}/jobs?page_size={size}"))["page_size"]


def test_jobs_are_found_by_state_kind_author_model_and_text(
    engineer: APIClient, viewer: APIClient, company: Company
) -> None:
    company.submit(name="tune the parser")
    cancelled = company.submit(name="another one")
    job_cancel(job=cancelled, actor=company.engineer, at=company.at)
    company.turn_jobs()
    found = {
        "state=cancelled": ["another one"],
        "state=waiting&state=running": ["tune the parser"],
        "kind=evaluate": [],
        "text=PARSER": ["tune the parser"],
        "model=tiny": ["another one", "tune the parser"],
        "model=other": [],
        "created_by=me": ["another one", "tune the parser"],
    }
    for query, expected in found.items():
        assert names(engineer.get(f"{API}/jobs?{query}").json()) == expected, query
    assert names(viewer.get(f"{API}/jobs?created_by=me").json()) == []
    assert len(names(viewer.get(f"{API}/jobs?created_by=mei").json())) == 2


def fill(company: Company, count: int) -> None:
    for number in range(count):
        company.running(name=f"job {number}") if number < 2 else company.submit(
            name=f"job {number}"
        )
        ready_model(team=company.team, name=f"model-{number}")
        dataset_upload(
            actor=company.engineer,
            team=company.team,
            name=f"set-{number}",
            stream=rows(10 + number),
            filename="rows.jsonl",
        )
        gateways.api_key_create(
            actor=company.engineer, team=company.team, name=f"key {number}", at=company.at
        )


#: What a queue borrows and lends is worked out over all queues, cards and what is held.
MOST = {"queues": 8}


def test_a_list_costs_the_same_whatever_is_on_the_page(
    engineer: APIClient, company: Company
) -> None:
    fill(company, 8)
    for path in LISTS:
        with CaptureQueriesContext(
            connection,
        ) as small:
            assert engineer.get(f"{API}/{path}?page_size=1").status_code == 200
        with CaptureQueriesContext(connection) as large:
            assert engineer.get(f"{API}/{path}?page_size=100").status_code == 200
        most = MOST.get(path, 4)
        assert len(large) <= max(len(small), most), (path, [query["sql"] for query in large])
        assert len(large) <= most, (path, [query["sql"] for query in large])


def test_the_fleet_is_shown_to_everybody_who_is_logged_in(
    stranger: APIClient, company: Company
) -> None:
    cluster = stranger.get(f"{API}/clusters").json()["results"][0]
    assert (cluster["nodes"], cluster["cards"]) == (1, 2)
    node = stranger.get(f"{API}/nodes?cluster={cluster['uid']}&ready=true").json()["results"][0]
    cards = stranger.get(f"{API}/cards?node={node['uid']}&state=usable&chip=cpu").json()["results"]
    assert [card["index"] for card in cards] == [1, 0]
    assert stranger.get(f"{API}/cards?state=isolated").json()["results"] == []
    chips = {chip["name"]: chip for chip in stranger.get(f"{API}/chips").json()}
    assert (chips["cpu"]["cards"], chips["cpu"]["usable_cards"]) == (2, 2)


def test_claims_of_other_teams_are_not_shown(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    company.running()
    claim = engineer.get(f"{API}/claims?state=admitted").json()["results"][0]
    assert (claim["card_count"], claim["chip"]) == (1, "cpu")
    assert claim["placement"][0]["cards"] == [0]
    assert stranger.get(f"{API}/claims").json()["results"] == []
    assert stranger.get(f"{API}/claims/{claim['uid']}").status_code == 404
    queue = engineer.get(f"{API}/queues").json()["results"][0]
    assert (queue["name"], queue["running"], queue["waiting"]) == ("default", 1, 0)


@for_each_case(
    ("path", "parameter"),
    [
        ("jobs", "team"),
        ("jobs", "model_version"),
        ("pipelines", "team"),
        ("deployments", "team"),
        ("keys", "team"),
        ("usage", "team"),
        ("usage", "key"),
        ("claims", "team"),
        ("datasets", "team"),
        ("dataset-versions", "team"),
        ("dataset-versions", "dataset"),
        ("models", "team"),
        ("model-versions", "team"),
        ("evaluations", "model_version"),
        ("evaluations", "dataset_version"),
        ("storage/artifacts", "team"),
        ("nodes", "cluster"),
        ("cards", "cluster"),
        ("cards", "node"),
        ("faults", "node"),
        ("faults", "card"),
        ("isolations", "node"),
    ],
)
@for_each_case("named", ["f" * 32, "no uid"])
def test_a_filter_by_something_that_is_not_there_is_refused(
    engineer: APIClient, path: str, parameter: str, named: str
) -> None:
    """An empty list would say that there is nothing, where the caller has misspelt a name."""
    message = wrong_fields(engineer.get(f"{API}/{path}", {parameter: named}))[parameter]
    assert named in message


def test_a_filter_by_another_teams_things_is_refused_alike(
    stranger: APIClient, company: Company
) -> None:
    answer = stranger.get(f"{API}/jobs", {"team": company.team.uid})
    assert company.team.uid in wrong_fields(answer)["team"]
