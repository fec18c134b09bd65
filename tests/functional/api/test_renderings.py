"""One spec as two chips would run it, by REST."""

from __future__ import annotations

import pytest
from rest_framework.test import APIClient

from apps.jobs.models import Job
from controlplane.ports import adapter_registry
from tests.functional.api.callers import API, wrong_fields
from tests.functional.api.test_jobs import finetune
from tests.integration.company import Company

ON = ["nvidia-h800", "ascend-910b3"]
REAL_ENGINE, REAL_NAMES = adapter_registry.engine_by_name, adapter_registry.engine_names


@pytest.fixture(autouse=True)
def real_engines(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adapter_registry, "engine_by_name", REAL_ENGINE)
    monkeypatch.setattr(adapter_registry, "engine_names", REAL_NAMES)


def test_what_differs_is_what_the_chips_give(engineer: APIClient, company: Company) -> None:
    body = finetune(company, engine="ms_swift", on=ON, spec={"method": "lora"})
    found = engineer.post(f"{API}/jobs/render", body)
    assert found.status_code == 200, found.content
    said = found.json()
    assert said["changed_fields"] == []
    assert {each["part"] for each in said["differences"]} == {"image", "environment"}
    assert [each["chip"] for each in said["renderings"]] == ON
    left, right = said["renderings"]
    assert left["image"] != right["image"]
    assert left["argv"] == right["argv"]
    assert left["files"] == right["files"]
    assert not Job.objects.exists()


def test_a_chip_that_cannot_do_it_says_why(engineer: APIClient, company: Company) -> None:
    body = finetune(company, engine="ms_swift", on=ON, spec={"method": "qlora"})
    left, right = engineer.post(f"{API}/jobs/render", body).json()["renderings"]
    assert (left["findings"], bool(left["argv"])) == ([], True)
    assert [finding["field"] for finding in right["findings"]] == ["method"]
    assert right["argv"] == []


def test_two_chips_that_are_known_have_to_be_named(engineer: APIClient, company: Company) -> None:
    wrong = engineer.post(f"{API}/jobs/render", finetune(company, on=["abacus", "cpu"]))
    assert wrong_fields(wrong)["on"].startswith("unknown chip 'abacus'; known chips: cpu, ")
    assert "on" in wrong_fields(engineer.post(f"{API}/jobs/render", finetune(company, on=["cpu"])))


def test_an_unknown_engine_is_refused(engineer: APIClient, company: Company) -> None:
    wrong = engineer.post(f"{API}/jobs/render", finetune(company, engine="steam", on=ON))
    assert wrong_fields(wrong, 422, "spec-refused")["engine"].startswith(
        "engine 'steam' does not exist; use "
    )


def test_any_chip_is_expanded_and_what_was_asked_for_is_kept(
    engineer: APIClient, company: Company
) -> None:
    created = engineer.post(f"{API}/jobs", finetune(company, chips=["any"])).json()
    assert (created["chips"], created["asked_chips"]) == (["cpu"], ["any"])
    checked = engineer.post(f"{API}/jobs/check", finetune(company, chips=["any"])).json()
    assert checked["chips"] == ["cpu"]
