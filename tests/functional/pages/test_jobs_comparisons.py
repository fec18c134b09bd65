"""Runs side by side."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from apps.jobs import services
from apps.jobs.models import Attempt, Job
from tests import factories
from tests.functional.sample_rows import EmptyCompany, FilledCompany


@pytest.fixture
def runs(filled: FilledCompany) -> list[Job]:
    """Three runs on the same rows that differ in their learning rate, and in how well they learned."""
    jobs = []
    for number, rate in enumerate((0.001, 0.002, 0.004)):
        job = factories.job(
            actor=filled.user,
            team=filled.team,
            queue=filled.queue,
            model=filled.base,
            dataset=filled.dataset,
            name=f"rate {rate:g}",
            spec={"learning_rate": rate},
        )
        attempt = job.attempts.get()
        at = timezone.now()
        Attempt.objects.filter(pk=attempt.pk).update(
            started_at=at - timedelta(minutes=10 + number), ended_at=at
        )
        points = [
            {"step": step, "loss": 2 / step + number, "tokens_per_second": 100.0 * (number + 1)}
            for step in range(1, 6)
        ]
        services.attempt_progress_store(attempt=attempt, points=points, at=at)
        jobs.append(job)
    return jobs


def address(jobs: Sequence[Job], more: str = "", path: str = "/jobs/compare") -> str:
    return f"{path}?{'&'.join(f'job={job.uid}' for job in jobs)}{more}"


def test_differences_come_first_and_equal_values_are_collapsed(
    browser: Client, runs: list[Job]
) -> None:
    context = browser.get(address(runs)).context
    assert [row.name for row in context["differing"]] == ["learning_rate"]
    assert context["differing"][0].values == (0.001, 0.002, 0.004)
    assert {"model", "dataset", "batch_size", "chip"} <= {row.name for row in context["same"]}


def test_the_best_value_of_each_metric_is_marked(browser: Client, runs: list[Job]) -> None:
    rows = {row.name: row for _label, row in browser.get(address(runs)).context["outcomes"]}
    assert rows["final_loss"].values == (0.4, 1.4, 2.4)
    assert rows["final_loss"].best == {0}
    assert rows["mean_tokens_per_second"].best == {2}
    assert rows["duration"].values == (600.0, 660.0, 720.0)
    assert rows["duration"].best == {0}
    assert rows["steps"].best == frozenset()


def test_curves_are_compared_by_step_or_by_time(browser: Client, runs: list[Job]) -> None:
    path = "/jobs/compare/curve"
    by_step = browser.get(address(runs, "&metric=loss&by=step", path)).json()
    assert [line["name"] for line in by_step["series"]] == [
        "rate 0.001",
        "rate 0.002",
        "rate 0.004",
    ]
    assert by_step["series"][0] == {
        "name": "rate 0.001",
        "kind": "line",
        "x": [1, 2, 3, 4, 5],
        "y": [2.0, 1.0, 2 / 3, 0.5, 0.4],
    }
    by_time = browser.get(address(runs, "&metric=tokens_per_second&by=time", path)).json()
    assert by_time["x"]["unit"] == "min"
    assert by_time["series"][2]["x"] == pytest.approx([12.0] * 5)
    assert by_time["series"][2]["y"] == [300.0] * 5


def test_jobs_of_equal_name_are_distinguished_by_uid(browser: Client, runs: list[Job]) -> None:
    Job.objects.update(name="again")
    lines = browser.get(address(runs, path="/jobs/compare/curve")).json()["series"]
    assert [line["name"] for line in lines] == [f"again {job.uid[:8]}" for job in runs]


def test_six_jobs_are_refused_with_the_limit(
    browser: Client, runs: list[Job], filled: FilledCompany
) -> None:
    six = [*runs, filled.running, filled.failed, filled.succeeded]
    response = browser.get(address(six))
    assert response.status_code == 422
    assert "6 runs are selected; at most 5 can be compared. Remove 1 run." in response.text
    # Each can be taken out by a press.
    assert address(six[1:]).replace("&", "&amp;") in response.text
    assert browser.get(address(six, path="/jobs/compare/curve")).status_code == 404
    assert browser.get(address(six[:5])).status_code == 200


def test_a_job_of_another_team_cannot_be_compared(
    browser: Client, outsider: Client, runs: list[Job]
) -> None:
    assert outsider.get(address(runs)).status_code == 404
    assert outsider.get(address(runs, path="/jobs/compare/curve")).status_code == 404
    assert browser.get("/jobs/compare?job=0123").status_code == 404


def test_a_job_is_offered_others_with_the_same_dataset_or_model(
    browser: Client, runs: list[Job], filled: FilledCompany
) -> None:
    offered = browser.get(address(runs[:1])).context["offered"]
    assert set(offered) == {
        *runs[1:],
        filled.waiting,
        filled.running,
        filled.failed,
        filled.succeeded,
    }


def test_selected_jobs_of_the_list_open_the_comparison(browser: Client, runs: list[Job]) -> None:
    response = browser.post("/jobs/compare", {"uid": [job.uid for job in runs]})
    assert response["Location"] == address(runs)


def test_unknown_chart_options_have_defaults(browser: Client, runs: list[Job]) -> None:
    curve = browser.get(address(runs, "&metric=../secret&by=moon", "/jobs/compare/curve")).json()
    assert curve["y"]["label"] == "training loss"
    assert curve["x"]["label"] == "step"


def test_evaluations_on_the_datasets_of_the_jobs_are_compared(
    browser: Client, filled: FilledCompany, empty: EmptyCompany
) -> None:
    rows = browser.get(address([filled.succeeded, filled.failed])).context["outcomes"]
    metrics = {row.name: row.values for _label, row in rows}
    assert metrics["exact_match"] == (0.75, None)


def test_an_invalid_uid_is_not_found(browser: Client, runs: list[Job]) -> None:
    for path in ("/jobs/compare", "/jobs/compare/curve"):
        assert browser.get(path, {"job": "a\0b"}).status_code == 404
