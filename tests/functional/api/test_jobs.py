from __future__ import annotations

import io
import tarfile
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from pytest_django import Settings
from rest_framework.test import APIClient

from apps.jobs.models import Job
from apps.jobs.services import attempt_progress_store
from apps.models.models import ModelVersion
from apps.quotas.models import PriorityClass
from tests.cases import for_each_case
from tests.functional.api.callers import API, body_of, problem, wrong_fields
from tests.integration.company import Company


def finetune(company: Company, **changes: Any) -> dict[str, Any]:
    return {
        "kind": "finetune",
        "name": "tune the parser",
        "model_version": company.model.uid,
        "dataset_version": company.dataset.uid,
        "output_name": "parser",
        "spec": {"learning_rate": 0.001, "epochs": 2},
        **changes,
    }


def test_a_submitted_job_has_every_default_in_its_spec(
    engineer: APIClient, company: Company
) -> None:
    created = engineer.post(f"{API}/jobs", finetune(company))
    assert created.status_code == 201, created.content
    body = created.json()
    assert (body["state"], body["queue"], body["chips"]) == ("waiting", "default", ["cpu"])
    assert body["spec"]["learning_rate"] == 0.001
    assert body["spec"]["scheduler"] == "cosine"
    assert (body["attempt"]["number"], body["attempt"]["state"]) == (1, "pending")
    assert body["pending_reason"]["explanation"]
    assert engineer.get(f"{API}/jobs/{body['uid']}").json() == body


def test_a_learning_rate_of_minus_one_is_refused_with_the_valid_range(
    engineer: APIClient, company: Company
) -> None:
    refused = engineer.post(f"{API}/jobs", finetune(company, spec={"learning_rate": -1}))
    errors = wrong_fields(refused, 422, "spec-refused")
    assert errors == {"learning_rate": "learning_rate must be > 0, ≤ 1, got -1"}
    assert not Job.objects.exists()


def test_a_job_beyond_the_pending_claims_of_its_user_is_refused(
    engineer: APIClient, company: Company, settings: Settings
) -> None:
    settings.NINEFOLD_PENDING_PER_USER = 1
    assert engineer.post(f"{API}/jobs", finetune(company)).status_code == 201

    refused = engineer.post(f"{API}/jobs", finetune(company, name="one too many"))

    user = company.engineer.username
    assert wrong_fields(refused, 422, "spec-refused")["queue"].startswith(
        f"user {user} has 1 pending claims and submits 1 more; the limit is 1"
    )
    assert Job.objects.count() == 1


@for_each_case("split", [[], {"test": 1}, 7])
def test_a_split_that_is_not_a_string_is_refused(
    engineer: APIClient, company: Company, split: object
) -> None:
    body = finetune(company, kind="evaluate", spec={"split": split})
    del body["output_name"]
    refused = engineer.post(f"{API}/jobs", body)
    assert "split" in wrong_fields(refused, 422, "spec-refused")


def test_all_findings_are_reported_at_once(engineer: APIClient, company: Company) -> None:
    body = finetune(
        company, spec={"learning_rat": 1, "epochs": "many"}, chips=["abacus"], output_name=""
    )
    del body["output_name"], body["dataset_version"]
    errors = wrong_fields(engineer.post(f"{API}/jobs", body), 422, "spec-refused")
    assert set(errors) == {"learning_rat", "epochs", "chips", "output_name", "dataset_version"}


def test_a_model_that_the_engine_cannot_train_is_refused(
    engineer: APIClient, company: Company
) -> None:
    ModelVersion.objects.update(architecture="MambaForCausalLM")
    errors = wrong_fields(engineer.post(f"{API}/jobs", finetune(company)), 422, "spec-refused")
    assert "MambaForCausalLM" in errors["model"]


def test_a_check_returns_the_findings_and_submits_nothing(
    engineer: APIClient, company: Company
) -> None:
    good = engineer.post(f"{API}/jobs/check", finetune(company)).json()
    assert (good["accepted"], good["findings"]) == (True, [])
    assert good["spec"]["scheduler"] == "cosine"
    bad = engineer.post(f"{API}/jobs/check", finetune(company, spec={"learning_rate": -1})).json()
    assert (bad["accepted"], bad["spec"]) == (False, None)
    assert [finding["field"] for finding in bad["findings"]] == ["learning_rate"]
    assert not Job.objects.exists()


def test_a_viewer_may_not_submit_cancel_or_retry(viewer: APIClient, company: Company) -> None:
    job = company.submit()
    for path, body in (
        ("jobs", finetune(company)),
        (f"jobs/{job.uid}/cancel", None),
        (f"jobs/{job.uid}/retry", None),
    ):
        refused = problem(viewer.post(f"{API}/{path}", body), 403, "permission-refused")
        assert "your role there: viewer" in refused["detail"]
    assert viewer.get(f"{API}/jobs/{job.uid}").json()["state"] == "waiting"


def test_another_teams_job_is_not_found(stranger: APIClient, company: Company) -> None:
    job = company.submit()
    address = f"{API}/jobs/{job.uid}"
    for path in ("", "/curve", "/log", "/events", "/attempts"):
        problem(stranger.get(address + path), 404, "not-found")
    for path in ("/cancel", "/retry"):
        problem(stranger.post(address + path), 404, "not-found")
    assert stranger.get(f"{API}/jobs").json()["results"] == []


def test_another_teams_model_cannot_be_used(stranger: APIClient, company: Company) -> None:
    errors = wrong_fields(stranger.post(f"{API}/jobs", finetune(company)))
    assert "visible to you" in errors["model_version"]
    assert "visible to you" in errors["dataset_version"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queue", "nowhere"),
        ("kind", "dance"),
        ("priority", 2**40),
        ("model_version", 7),
        ("run_seconds", 0),
        ("output_name", "Not A Slug"),
    ],
)
def test_a_field_of_another_kind_is_named(
    engineer: APIClient, company: Company, field: str, value: object
) -> None:
    refused = engineer.post(f"{API}/jobs", finetune(company, **{field: value}))
    assert set(wrong_fields(refused)) == {field}


def test_only_an_ended_job_can_be_retried(engineer: APIClient, company: Company) -> None:
    job = company.submit()
    address = f"{API}/jobs/{job.uid}"
    problem(engineer.post(f"{address}/retry"), 409, "illegal-transition")
    asked = engineer.post(f"{address}/cancel").json()
    assert asked["cancel_requested_by"] == "mei"
    assert engineer.post(f"{address}/cancel").status_code == 200
    company.turn_jobs()
    assert engineer.get(address).json()["state"] == "cancelled"
    problem(engineer.post(f"{address}/cancel"), 409, "illegal-transition")
    again = engineer.post(f"{address}/retry").json()
    assert (again["state"], again["attempt"]["number"]) == ("waiting", 2)
    problem(engineer.post(f"{address}/retry"), 409, "illegal-transition")
    events = engineer.get(f"{address}/events").json()
    assert [event["event"] for event in events] == ["cancel", "retry"]
    assert [attempt["number"] for attempt in engineer.get(f"{address}/attempts").json()] == [1, 2]


def test_the_curve_continues_after_a_step(engineer: APIClient, company: Company) -> None:
    job, attempt = company.running()
    points = [{"step": step, "loss": 10.0 / step} for step in (1, 2, 3)]
    attempt_progress_store(attempt=attempt, points=points, at=company.at)
    curve = engineer.get(f"{API}/jobs/{job.uid}/curve").json()
    assert curve == {"state": "running", "points": points}
    later = engineer.get(f"{API}/jobs/{job.uid}/curve?after=2").json()
    assert later["points"] == points[2:]


def test_a_job_shows_its_outputs(engineer: APIClient, company: Company) -> None:
    job, attempt = company.running()
    company.finish(attempt)
    company.turn_jobs()
    company.turn_jobs()
    shown = engineer.get(f"{API}/jobs/{job.uid}").json()
    assert shown["state"] == "succeeded"
    assert shown["outputs"]["model_version"]["name"] == "parser v1"
    found = engineer.get(f"{API}/model-versions?job={job.uid}").json()["results"]
    assert [version["uid"] for version in found] == [shown["outputs"]["model_version"]["uid"]]


def archive() -> bytes:
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w:gz") as tar:
        content = b"print('hello')\n"
        entry = tarfile.TarInfo("main.py")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return stream.getvalue()


def test_code_is_uploaded_and_run_by_a_script_job(
    engineer: APIClient, stranger: APIClient, company: Company
) -> None:
    sent = archive()
    form = {"file": SimpleUploadedFile("project.tgz", sent)}
    code = engineer.post(f"{API}/code", form, format="multipart").json()
    assert [file["path"] for file in code["files"]] == ["code.tar.gz"]
    body = {
        "kind": "script",
        "name": "hello",
        "code": code["uid"],
        "spec": {"argv": ["python", "main.py"]},
    }
    created = engineer.post(f"{API}/jobs", body).json()
    assert (created["code"], created["spec"]["maximum_run_time_seconds"]) == (code["uid"], 3600)
    assert "visible to you" in wrong_fields(stranger.post(f"{API}/jobs", body))["code"]
    content = engineer.get(f"{API}/artifacts/{code['uid']}/files/code.tar.gz")
    assert body_of(content) == sent


def test_a_file_that_is_not_an_archive_is_refused(engineer: APIClient) -> None:
    form = {"file": SimpleUploadedFile("main.py", b"print()")}
    refused = engineer.post(f"{API}/code", form, format="multipart")
    assert ".zip" in problem(refused, 422, "registration-refused")["detail"]


def test_engines_describe_the_fields_of_their_specs(engineer: APIClient) -> None:
    engines = {engine["name"]: engine for engine in engineer.get(f"{API}/engines").json()}
    fields = {field["name"]: field for field in engines["transformers"]["tasks"]["finetune"]}
    assert fields["learning_rate"]["most"] == 1
    assert fields["scheduler"]["choices"] == ["cosine", "linear", "constant"]
    assert fields["scheduler"]["default"] == "cosine"
    argv = engines["transformers"]["tasks"]["script"][0]
    assert (argv["name"], argv["required"]) == ("argv", True)
    assert engines["plain"]["tasks"]["finetune"] == []


def test_only_a_queue_admin_may_raise_the_priority(engineer: APIClient, company: Company) -> None:
    refused = engineer.post(f"{API}/jobs", finetune(company, priority=5))
    assert "queue admin" in wrong_fields(refused, 422, "spec-refused")["priority"]
    assert not Job.objects.exists()


def test_a_priority_class_can_be_requested_by_name(engineer: APIClient, company: Company) -> None:
    created = engineer.post(f"{API}/jobs", finetune(company, priority_class="low"))
    assert (created.json()["priority"], created.json()["priority_class"]) == (-10, "low")
    assert created.json()["output_shared"] is False
    # The job keeps the value that its class had.
    PriorityClass.objects.filter(name="low").update(value=-20)
    found = engineer.get(f"{API}/jobs/{created.json()['uid']}").json()
    assert (found["priority"], found["priority_class"]) == (-10, "low")
    without = engineer.post(f"{API}/jobs", finetune(company, priority=-11)).json()
    assert (without["priority"], without["priority_class"]) == (-11, None)
    both = engineer.post(f"{API}/jobs", finetune(company, priority=3, priority_class="low"))
    assert "got both 3 and low" in wrong_fields(both)["priority_class"]
    unknown = engineer.post(f"{API}/jobs", finetune(company, priority_class="now"))
    said = wrong_fields(unknown)["priority_class"]
    assert said == "no priority class is named 'now'; available classes: urgent, high, normal, low"


def test_a_job_has_the_default_retry_policy(engineer: APIClient, company: Company) -> None:
    body = engineer.post(f"{API}/jobs", finetune(company)).json()
    assert body["retry_policy"] == {
        "max_retries": 3,
        "backoff_seconds": 10,
        "max_backoff_seconds": 360,
        "retry_on": ["killed", "hardware_error", "environment_error"],
    }
    attempt = body["attempt"]
    assert (attempt["retries"], attempt["retry_cause"], attempt["starts_after"]) == (0, "", None)


def test_a_retry_policy_is_completed_and_returned(engineer: APIClient, company: Company) -> None:
    policy = {"max_retries": 1, "retry_on": ["killed", "user_error"]}
    created = engineer.post(f"{API}/jobs", finetune(company, retry_policy=policy))
    assert created.status_code == 201, created.content
    expected = {**policy, "backoff_seconds": 10, "max_backoff_seconds": 360}
    assert created.json()["retry_policy"] == expected
    (listed,) = engineer.get(f"{API}/jobs").json()["results"]
    assert listed["retry_policy"] == expected


def test_everything_wrong_with_a_retry_policy_is_refused_at_once(
    engineer: APIClient, company: Company
) -> None:
    policy = {"max_retries": 21, "retry_on": ["oom"], "attempts": 3}
    refused = engineer.post(f"{API}/jobs", finetune(company, retry_policy=policy))
    errors = wrong_fields(refused, 422, "spec-refused")
    assert errors["retry_policy.max_retries"].endswith("must be ≥ 0, ≤ 20, got 21")
    assert "must be one of killed, hardware_error" in errors["retry_policy.retry_on"]
    assert "known are backoff_seconds" in errors["retry_policy.attempts"]
    assert not Job.objects.exists()
    wrong_kind = engineer.post(f"{API}/jobs", finetune(company, retry_policy=3))
    assert "retry_policy" in wrong_fields(wrong_kind)


def test_a_retry_has_its_cause_and_start_time(engineer: APIClient, company: Company) -> None:
    job, attempt = company.running()
    company.cluster.finish(attempt.launch_name, exit_code=137, message="killed by SIGKILL")
    company.turn_jobs()

    first, second = engineer.get(f"{API}/jobs/{job.uid}/attempts").json()
    assert first["exit_cause"] == "killed"
    assert (second["retries"], second["retry_cause"]) == (1, "killed")
    assert second["starts_after"]
    body = engineer.get(f"{API}/jobs/{job.uid}").json()
    assert body["state_reason"]["message"] == "killed by SIGKILL; retry 1 of 3 starts in 10 s"
    assert body["pending_reason"] is None
    events = engineer.get(f"{API}/jobs/{job.uid}/events").json()
    assert "requeue" in [event["event"] for event in events]
