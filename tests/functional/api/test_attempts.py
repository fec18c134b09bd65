"""What running work reports, by its own token."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from apps.jobs.models import Attempt, Job, ProgressPoint
from apps.jobs.selectors import attempt_token
from apps.models import selectors as registry
from controlplane.ports.artifacts import StorageFull
from tests.cases import for_each_case
from tests.functional.api.callers import API, problem, wrong_fields
from tests.integration.company import Company, model_contents


class Reporter:
    """An attempt's process, as the control plane meets it."""

    def __init__(self, attempt: Attempt, *, token: str | None = None) -> None:
        self.address = f"{API}/attempts/{attempt.uid}"
        self.client = APIClient()
        text = attempt_token(attempt) if token is None else token
        self.client.credentials(HTTP_AUTHORIZATION=f"Bearer {text}")

    def progress(self, *points: dict[str, Any]) -> Any:
        return self.client.post(f"{self.address}/progress", {"points": points})

    def file(self, path: str, content: bytes, *, sha256: str | None = None) -> Any:
        digest = hashlib.sha256(content).hexdigest() if sha256 is None else sha256
        return self.client.put(
            f"{self.address}/files/{path}",
            content,
            content_type="application/octet-stream",
            # The test client leaves the length of an empty body out; no real client may.
            headers={"X-Content-SHA256": digest, "Content-Length": str(len(content))},
        )

    def manifest(self, **body: Any) -> Any:
        return self.client.put(f"{self.address}/manifest", body)


def described(contents: dict[str, bytes]) -> list[dict[str, Any]]:
    return [
        {"path": path, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        for path, content in contents.items()
    ]


@pytest.fixture
def ran(company: Company) -> tuple[Job, Attempt]:
    return company.running()


def test_what_is_handed_over_becomes_a_model_version(
    company: Company, engineer: APIClient, ran: tuple[Job, Attempt]
) -> None:
    job, attempt = ran
    reporter = Reporter(attempt)
    for path, content in model_contents().items():
        stored = reporter.file(path, content)
        assert stored.status_code == 200, stored.content
    files = described(model_contents())
    done = reporter.manifest(kind="model", files=files, metrics={"loss": 0.25})
    assert done.status_code == 204, done.content
    company.cluster.finish(attempt.launch_name)
    company.turn_jobs()
    company.turn_jobs()
    version = engineer.get(f"{API}/jobs/{job.uid}").json()["outputs"]["model_version"]
    shown = engineer.get(f"{API}/model-versions/{version['uid']}").json()
    assert (shown["metrics"], shown["job_uid"]) == ({"loss": 0.25}, job.uid)


def test_the_same_step_counts_once_and_the_last_report_wins(
    ran: tuple[Job, Attempt],
) -> None:
    _, attempt = ran
    reporter = Reporter(attempt)
    first = reporter.progress({"step": 1, "loss": 2.0}, {"step": 2, "loss": 1.5})
    assert first.status_code == 204, first.content
    reporter.progress({"step": 2, "loss": 1.25}, {"checkpoint": {"step": 2}})
    points = ProgressPoint.objects.filter(attempt=attempt).values_list("step", "values")
    assert list(points) == [(1, {"loss": 2.0}), (2, {"loss": 1.25, "checkpoint": {"step": 2}})]
    attempt.refresh_from_db()
    assert attempt.progress["checkpoint"] == {"step": 2}


@for_each_case(
    "body",
    [
        {},
        {"points": 7},
        {"points": [7]},
        {"points": [{"step": 2**40}]},
        {"points": [{"step": 1, "total_steps": "many"}]},
        {"points": [{"step": 1, "total_steps": -4}]},
        {"points": [], "more": 1},
    ],
)
def test_progress_of_another_form_is_refused(
    ran: tuple[Job, Attempt], body: dict[str, Any]
) -> None:
    reporter = Reporter(ran[1])
    assert wrong_fields(reporter.client.post(f"{reporter.address}/progress", body))


def test_a_point_without_a_step_is_refused(ran: tuple[Job, Attempt]) -> None:
    refused = Reporter(ran[1]).progress({"loss": 1.0})
    assert "step" in problem(refused, 422, "report-refused")["detail"]


@for_each_case("value", ["oops", True, [1], 10**400])
def test_a_figure_that_is_no_number_is_refused(ran: tuple[Job, Attempt], value: object) -> None:
    refused = Reporter(ran[1]).progress({"step": 1, "eval_loss": value})
    assert "eval_loss must be a number or null" in problem(refused, 422, "report-refused")["detail"]


def test_nothing_but_the_attempts_own_token_is_taken(
    company: Company, engineer: APIClient, ran: tuple[Job, Attempt]
) -> None:
    _, attempt = ran
    _, other = company.running(name="another")
    for token in ("", "nonsense", "töken", attempt_token(other)):
        reporter = Reporter(attempt, token=token)
        problem(reporter.progress({"step": 1}), 401, "authentication-failed")
        problem(reporter.file("config.json", b"{}"), 401, "authentication-failed")
        problem(reporter.manifest(kind="model", files=[]), 401, "authentication-failed")
    response = engineer.post(f"{API}/attempts/{attempt.uid}/progress", {"points": []})
    problem(response, 401, "authentication-failed")
    own = Reporter(attempt)
    problem(own.client.get(f"{API}/jobs"), 401, "authentication-failed")


def test_an_attempt_that_has_ended_reports_no_more(
    company: Company, ran: tuple[Job, Attempt]
) -> None:
    _, attempt = ran
    company.cluster.finish(attempt.launch_name, exit_code=1)
    company.turn_jobs()
    problem(Reporter(attempt).progress({"step": 1}), 401, "authentication-failed")


@for_each_case(
    "path",
    [
        "../config.json",
        "a/../../b",
        "/etc/passwd",
        "a//b",
        "./a",
        "a/.",
        "a\\b",
        "a%00b",
        "a%0ab",
        "x" * 301,
    ],
)
def test_a_path_that_may_leave_its_folder_is_refused(ran: tuple[Job, Attempt], path: str) -> None:
    refused = Reporter(ran[1]).file(path, b"content")
    assert refused.status_code in (404, 422), refused.content
    assert not ran[1].uploads.exists()


def test_a_path_may_be_long_and_chinese(ran: tuple[Job, Attempt]) -> None:
    assert Reporter(ran[1]).file("文件夹/" + "x" * 290, b"content").status_code == 200


def test_content_with_another_digest_is_refused(ran: tuple[Job, Attempt]) -> None:
    refused = Reporter(ran[1]).file("config.json", b"content", sha256="0" * 64)
    assert "is incomplete: digest mismatch" in problem(refused, 422, "report-refused")["detail"]
    assert not ran[1].uploads.exists()
    for digest in ("", "xyz"):
        refused = Reporter(ran[1]).file("config.json", b"content", sha256=digest)
        assert set(wrong_fields(refused)) == {"X-Content-SHA256"}


def test_an_empty_file_is_a_file(ran: tuple[Job, Attempt]) -> None:
    stored = Reporter(ran[1]).file("empty", b"")
    assert (stored.status_code, stored.json()["size"]) == (200, 0)


def test_a_file_without_a_length_is_refused(ran: tuple[Job, Attempt]) -> None:
    reporter = Reporter(ran[1])
    refused = reporter.client.put(
        f"{reporter.address}/files/empty", headers={"X-Content-SHA256": "0" * 64}
    )
    problem(refused, 411, "length-required")


def test_a_large_file_arrives_whole(ran: tuple[Job, Attempt]) -> None:
    content = bytes(range(256)) * 4096 * 20
    stored = Reporter(ran[1]).file("model.safetensors", content)
    assert stored.json()["size"] == len(content) == 20 * 1024 * 1024
    with registry.artifact_store().open(stored.json()["digest"]) as stream:
        assert stream.read() == content


def test_a_full_store_is_said(ran: tuple[Job, Attempt], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise StorageFull("no space left for artifacts in the store")

    store = "controlplane.adapters.artifacts.filesystem.FilesystemArtifacts.put"
    monkeypatch.setattr(store, full)
    problem(Reporter(ran[1]).file("config.json", b"{}"), 507, "storage-full")


def test_a_manifest_lists_only_what_arrived(ran: tuple[Job, Attempt]) -> None:
    reporter = Reporter(ran[1])
    reporter.file("config.json", b"{}")
    files = described({"config.json": b"{}"})
    missing = described({"other.json": b"{}"})
    refused = reporter.manifest(kind="model", files=[*files, *missing])
    assert "other.json" in problem(refused, 422, "report-refused")["detail"]
    other = described({"config.json": b"[]"})
    problem(reporter.manifest(kind="model", files=other), 422, "report-refused")
    twice = reporter.manifest(kind="model", files=[*files, *files])
    assert "twice" in json.dumps(wrong_fields(twice))
    assert reporter.manifest(kind="model", files=files).status_code == 204


@for_each_case(
    "body",
    [
        {"kind": "poem", "files": []},
        {"kind": "model"},
        {"kind": "model", "files": [{"path": "a", "size": -1, "sha256": "0" * 64}]},
        {"kind": "model", "files": [{"path": "a", "size": 1, "sha256": "0"}]},
    ],
)
def test_a_manifest_of_another_form_is_refused(
    ran: tuple[Job, Attempt], body: dict[str, Any]
) -> None:
    assert wrong_fields(Reporter(ran[1]).manifest(**body))
