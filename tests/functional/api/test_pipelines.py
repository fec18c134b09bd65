"""Pipelines by REST."""

from __future__ import annotations

from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.jobs.models import Job
from apps.workflows.models import Pipeline
from controlplane.domain.common.permissions import Scope
from tests.cases import for_each_case
from tests.functional.api.callers import API, caller, problem, wrong_fields
from tests.integration.company import ENGINE, Company
from tests.integration.workflows.pipeline_requests import drive, gated, submit

PIPELINES = f"{API}/pipelines"


@pytest.fixture
def body(company: Company) -> dict[str, Any]:
    data = company.dataset.uid
    return {
        "name": "the whole way",
        "model_version": company.model.uid,
        "steps": [
            {"kind": "finetune", "engine": ENGINE, "dataset_version": data, "output_name": "p"},
            {
                "kind": "evaluate",
                "engine": ENGINE,
                "dataset_version": data,
                "spec": {"metrics": ["exact_match"]},
                "gate": {"metric": "exact_match", "threshold": 0.8},
            },
            {
                "kind": "quantize",
                "engine": ENGINE,
                "dataset_version": data,
                "output_name": "p-small",
                "gate": {"metric": "accepted", "otherwise": "skip"},
            },
            {"kind": "deploy", "engine": ENGINE, "deployment_name": "parser"},
        ],
    }


def test_a_pipeline_is_submitted_followed_and_ends(
    engineer: APIClient, company: Company, body: dict[str, Any]
) -> None:
    answer = engineer.post(PIPELINES, body, format="json")
    assert answer.status_code == 201, answer.content
    created = answer.json()
    assert (created["state"], created["queue"]) == ("running", "default")
    assert [step["kind"] for step in created["steps"]] == [
        "finetune",
        "evaluate",
        "quantize",
        "deploy",
    ]
    assert created["steps"][1]["gate"] == {
        "metric": "exact_match",
        "threshold": 0.8,
        "otherwise": "stop",
    }
    drive(company, Pipeline.objects.get())
    ended = engineer.get(f"{PIPELINES}/{created['uid']}").json()
    assert ended["state"] == "succeeded"
    tuned, measured, small, served = ended["steps"]
    assert tuned["output_version"] == measured["model_version"]
    assert small["output_version"] == served["model_version"]
    assert measured["metrics"]["exact_match"] == 0.9
    assert measured["gate_verdict"]["message"] == "exact_match is 0.9; the gate requires ≥ 0.8"
    assert served["deployment"]["name"] == "parser"
    events = engineer.get(f"{PIPELINES}/{created['uid']}/events").json()
    assert (events[0]["step"], events[0]["event"]) == (None, "succeed")
    assert (events[1]["step"], events[1]["event"]) == (4, "succeed")


def test_the_same_submission_sent_again_makes_one_pipeline(
    engineer: APIClient, body: dict[str, Any]
) -> None:
    headers = {"Idempotency-Key": "once"}
    first = engineer.post(PIPELINES, body, format="json", headers=headers)
    second = engineer.post(PIPELINES, body, format="json", headers=headers)
    assert first.json() == second.json()
    assert Pipeline.objects.count() == 1


def test_everything_that_is_wrong_is_said_at_once_and_kept_by_nobody(
    engineer: APIClient, body: dict[str, Any]
) -> None:
    body["steps"][0]["spec"] = {"refuse": "no"}
    body["steps"][1]["gate"]["metric"] = "bleu"
    body["steps"][3]["deployment_name"] = ""
    refused = wrong_fields(engineer.post(PIPELINES, body, format="json"))
    assert refused == {"steps.3.deployment_name": "This field may not be blank."}
    del body["steps"][3]["deployment_name"]
    wrong = wrong_fields(engineer.post(PIPELINES, body, format="json"), 422, "spec-refused")
    assert set(wrong) == {"steps.1.refuse", "steps.2.gate", "steps.4.deployment_name"}
    checked = engineer.post(f"{PIPELINES}/check", body, format="json").json()
    assert checked["accepted"] is False
    assert {finding["field"] for finding in checked["findings"]} == set(wrong)
    assert not Pipeline.objects.exists()


@for_each_case(
    ("changes", "field"),
    [
        ({"steps": []}, "steps"),
        ({"steps": [{"kind": "bake"}]}, "steps"),
        ({"steps": [{"kind": "deploy", "learning_rate": 1}]}, "steps"),
        ({"steps": "all"}, "steps"),
        ({"queue": "secret"}, "queue"),
        ({"model_version": "0" * 32}, "model_version"),
        ({"name": ""}, "name"),
        ({"speed": 9}, "speed"),
    ],
)
def test_what_is_no_pipeline_is_refused_with_its_field(
    engineer: APIClient, body: dict[str, Any], changes: dict[str, Any], field: str
) -> None:
    answer = engineer.post(PIPELINES, {**body, **changes}, format="json")
    status, code = (400, "invalid") if answer.status_code == 400 else (422, "spec-refused")
    assert any(name.startswith(field) for name in wrong_fields(answer, status, code))


def test_pipelines_are_retried_overridden_and_cancelled(
    engineer: APIClient, company: Company
) -> None:
    pipeline = drive(
        company, submit(company, gated(company), gated(company)), metrics={"exact_match": 0.1}
    )
    address = f"{PIPELINES}/{pipeline.uid}"
    assert engineer.get(f"{PIPELINES}?state=held").json()["results"][0]["uid"] == pipeline.uid
    problem(engineer.post(f"{address}/retry", format="json"), 409, "illegal-transition")
    wrong = engineer.post(f"{address}/gate-override", {"reason": " "}, format="json")
    assert "reason" in wrong_fields(wrong)
    overridden = engineer.post(
        f"{address}/gate-override", {"reason": "I looked at them"}, format="json"
    )
    assert overridden.status_code == 200, overridden.content
    assert overridden.json()["steps"][0]["override_reason"] == "I looked at them"
    assert overridden.json()["state"] == "running"
    cancelled = engineer.post(f"{address}/cancel", format="json").json()
    assert cancelled["cancel_requested_by"] == "mei"
    drive(company, pipeline)
    again = engineer.post(f"{address}/retry", format="json").json()
    assert (again["state"], again["cancel_requested_at"]) == ("running", None)


def test_a_token_for_jobs_alone_does_not_deploy(company: Company, body: dict[str, Any]) -> None:
    runner = caller(company.engineer, Scope.JOBS)
    refused = problem(runner.post(PIPELINES, body, format="json"), 403, "permission-refused")
    assert "scope serving" in refused["detail"]
    body["steps"].pop()
    assert runner.post(PIPELINES, body, format="json").status_code == 201
    both = caller(company.engineer, Scope.JOBS, Scope.SERVING)
    body["steps"] = [{"kind": "deploy", "engine": ENGINE, "deployment_name": "parser"}]
    assert both.post(PIPELINES, body, format="json").status_code == 201


def test_others_see_nothing_and_who_may_only_look_changes_nothing(
    stranger: APIClient, viewer: APIClient, company: Company, body: dict[str, Any]
) -> None:
    pipeline = submit(company, gated(company))
    assert stranger.get(PIPELINES).json()["results"] == []
    assert stranger.get(f"{PIPELINES}/{pipeline.uid}").status_code == 404
    assert viewer.get(f"{PIPELINES}/{pipeline.uid}").status_code == 200
    for action in ("cancel", "retry"):
        answer = viewer.post(f"{PIPELINES}/{pipeline.uid}/{action}", format="json")
        problem(answer, 403, "permission-refused")
    problem(viewer.post(PIPELINES, body, format="json"), 403, "permission-refused")
    assert not Job.objects.exists()
