"""Outputs that attempts upload straight to an S3 server: the real client and views, injected faults."""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from botocore.retries.standard import ExponentialBackoff
from django.db import connection
from pytest_django import Settings
from rest_framework.test import APIClient

from apps.jobs.models import Attempt, AttemptUpload, Job, UnfinishedUpload
from apps.jobs.services.attempt_reports import CONCURRENT_VERIFICATIONS, unfinished_uploads_abort
from apps.models import selectors as registry
from controlplane.domain.common.resources import format_bytes
from controlplane.persistence.advisory_locks import AdvisoryLock
from ninefold_runtime import direct_uploads
from ninefold_runtime.direct_uploads import DirectUploadRefused, DirectUploads
from tests import s3_servers
from tests.functional.api.callers import API, problem
from tests.functional.api.test_attempts import Reporter, described, ran
from tests.integration.company import Company, model_contents
from tests.s3_servers import PART, FaultyProxy, s3_url

__all__ = ["ran", "s3_url"]

PART_NOT_STORED = (direct_uploads._PartFailed, direct_uploads._PartInterrupted)
CONTENT = os.urandom(2 * PART + 1000)


def sha256_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


class Uploader:
    """The runtime's client of one attempt; its requests to the web are calls of the views."""

    def __init__(self, attempt: Attempt, *, bucket: str, proxy: FaultyProxy, folder: Path) -> None:
        self.reporter = Reporter(attempt)
        self.attempt = attempt
        self.bucket, self.proxy = bucket, proxy
        self.server = s3_servers.client(proxy.target.geturl())
        self.file = folder / "file"
        self.said: list[str] = []
        #: Whether each answer of the web gets lost once.
        self.loses_answers = False

    def post(self, path: str, body: Mapping[str, Any], _timeout: float = 0) -> Mapping[str, Any]:
        for _ in range(2 if self.loses_answers else 1):
            answer = self.reporter.client.post(f"{self.reporter.address}{path}", body)
        if answer.status_code != 200:
            raise DirectUploadRefused(str(answer.content), status=answer.status_code)
        found: Mapping[str, Any] = answer.json()
        return found

    def upload(self, content: bytes, *, path: str = "model.safetensors", sha256: str = "") -> bool:
        self.file.write_bytes(content)
        uploads = DirectUploads(
            self.post, log=self.said.append, first_pause_seconds=0.01, smallest=1
        )
        sha256 = sha256 or sha256_of(content)
        return uploads.upload(self.file, path=path, size=len(content), sha256=sha256)

    def keys(self) -> list[str]:
        listed = self.server.list_objects_v2(Bucket=self.bucket).get("Contents", ())
        return [each["Key"] for each in listed]

    def unfinished(self) -> int:
        return len(self.server.list_multipart_uploads(Bucket=self.bucket).get("Uploads", ()))


@pytest.fixture
def uploader(
    ran: tuple[Job, Attempt],
    s3_url: str,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Uploader]:
    """Artifacts are on the S3 server from now on; every request to it passes the proxy."""
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0.01)
    monkeypatch.setattr(direct_uploads, "_SEND_SECONDS", 1.0)
    with FaultyProxy(s3_url) as proxy:
        bucket = s3_servers.new_bucket(s3_url)
        settings.NINEFOLD_ARTIFACTS = "s3"
        settings.NINEFOLD_S3 = s3_servers.store_options(proxy.url, bucket)
        yield Uploader(ran[1], bucket=bucket, proxy=proxy, folder=tmp_path)


#: Name → fault, method and part of the path of the request that fails once.
PASSING: Mapping[str, tuple[str, str, str]] = {
    "nothing": ("", "PUT", "partNumber=1"),
    "an error of a part": ("500", "PUT", "partNumber=2"),
    "a time-out of a part": ("hang", "PUT", "partNumber=3"),
    "a connection cut inside a part": ("cut-request", "PUT", "partNumber=1"),
    "a part arrives changed": ("corrupt-request", "PUT", "partNumber=2"),
    "a lost response of a part": ("lost-response", "PUT", "partNumber=2"),
    "an expired URL of a part": ("403", "PUT", "partNumber=2"),
    "an error of the start": ("503", "POST", "uploads"),
    "an error of the completion": ("500", "POST", "uploadId"),
    "a lost response of the completion": ("lost-response", "POST", "uploadId"),
    "an error of the verification": ("503", "GET", "incoming"),
    "a response cut in the verification": ("cut-response", "GET", "incoming"),
    "an error of the copy": ("500", "PUT", "artifacts/sha256"),
    "a lost response of the copy": ("lost-response", "PUT", "artifacts/sha256"),
}


def test_a_fault_that_passes_costs_a_repetition_and_nothing_else(uploader: Uploader) -> None:
    failures = []
    for number, (name, (kind, method, part)) in enumerate(PASSING.items()):
        content = CONTENT + bytes([number])
        uploader.proxy.inject(kind, method=method, part=part)
        uploader.loses_answers = number % 2 == 1
        if not uploader.upload(content):
            failures.append(f"{name}: not stored: {uploader.said}")
            continue
        if kind and not any(fault for _, _, fault in uploader.proxy.requests):
            failures.append(f"{name}: the fault was not injected")
        uploader.proxy.inject("", method="")
        digest = f"sha256:{sha256_of(content)}"
        with registry.artifact_store().open(digest) as stored:
            if stored.read() != content:
                failures.append(f"{name}: other bytes are stored")
        if AttemptUpload.objects.get(attempt=uploader.attempt).digest != digest:
            failures.append(f"{name}: not recorded")
        registry.artifact_store().delete(digest)
        if left := uploader.keys():
            failures.append(f"{name}: {left} stays behind")
    assert not failures, "\n".join(failures)


def test_what_does_not_arrive_is_not_visible_and_goes_through_the_web(uploader: Uploader) -> None:
    for kind, method, part in (
        ("503", "POST", "uploads"),
        ("500", "PUT", "partNumber=2"),
        ("403", "PUT", "partNumber=1"),
        ("cut-request", "PUT", "partNumber=3"),
    ):
        uploader.proxy.inject(kind, method=method, part=part, times=-1)
        assert not uploader.upload(CONTENT), (kind, part)
        assert "is sent to the control plane instead" in uploader.said[-1]
        assert "X-Amz-Signature" not in "".join(uploader.said)
        assert uploader.keys() == []
        assert not AttemptUpload.objects.exists()
    uploader.proxy.inject("", method="")
    # Starting the file again has aborted the uploads before.
    assert uploader.unfinished() == 1
    stored = uploader.reporter.file("model.safetensors", CONTENT)
    assert stored.status_code == 200, stored.content
    soon = datetime.now(UTC) + timedelta(minutes=1)
    registry.artifact_store().delete_unfinished_writes(before=soon)
    assert uploader.unfinished() == 0


def test_bytes_of_another_digest_never_get_its_name(uploader: Uploader) -> None:
    other = sha256_of(b"weights of another team")
    assert not uploader.upload(CONTENT, sha256=other)
    assert "is uploaded again" in uploader.said[0]
    assert (uploader.keys(), uploader.unfinished()) == ([], 0)
    assert not AttemptUpload.objects.exists()
    listed = {"path": "model.safetensors", "size": len(CONTENT), "sha256": other}
    refused = uploader.reporter.manifest(kind="model", files=[listed])
    assert "was not uploaded" in problem(refused, 422, "report-refused")["detail"]


def test_an_upload_whose_parts_are_missing_is_refused(company: Company, uploader: Uploader) -> None:
    announced = {"path": "a", "size": len(CONTENT), "sha256": sha256_of(CONTENT)}
    started = uploader.post("/uploads", announced)
    assert [part["size"] for part in started["parts"]] == [PART, PART, 1000]
    uploader.file.write_bytes(CONTENT)
    direct_uploads._put(uploader.file, direct_uploads._Part(**started["parts"][0]))
    _, other = company.running(name="another")
    for caller in (Reporter(other), uploader.reporter):
        for text in (f"{started['upload']}x", "nonsense"):
            answer = caller.client.post(f"{caller.address}/uploads/complete", {"upload": text})
            assert "does not belong" in problem(answer, 422, "report-refused")["detail"]
    foreign = Reporter(other)
    answer = foreign.client.post(
        f"{foreign.address}/uploads/complete", {"upload": started["upload"]}
    )
    problem(answer, 422, "report-refused")
    with pytest.raises(DirectUploadRefused, match=r"of \d+ bytes were uploaded") as refusal:
        uploader.post("/uploads/complete", {"upload": started["upload"]})
    assert refusal.value.status == 409
    assert (uploader.keys(), uploader.unfinished()) == ([], 0)


def test_urls_that_expire_again_and_again_are_renewed_while_parts_arrive(
    uploader: Uploader,
) -> None:
    denied: set[int] = set()

    def every_part_once(method: str, path: str, _number: int) -> str:
        for part in (1, 2, 3):
            if method == "PUT" and f"partNumber={part}&" in path and part not in denied:
                denied.add(part)
                return "403"
        return ""

    uploader.proxy.fault = every_part_once
    assert uploader.upload(CONTENT), uploader.said
    assert denied == {1, 2, 3}
    assert UnfinishedUpload.objects.count() == 0


def test_one_upload_of_an_attempt_is_verified_at_a_time(uploader: Uploader) -> None:
    announced = {"path": "a", "size": len(CONTENT), "sha256": sha256_of(CONTENT)}
    started = uploader.post("/uploads", announced)
    uploader.file.write_bytes(CONTENT)
    for part in started["parts"]:
        direct_uploads._put(uploader.file, direct_uploads._Part(**part))
    turn = zlib.crc32(uploader.attempt.uid.encode()) % CONCURRENT_VERIFICATIONS
    with psycopg.connect(**connection.get_connection_params()) as another:
        another.execute("SELECT pg_advisory_lock(%s, %s)", [AdvisoryLock.VERIFY_UPLOAD, turn])
        address = f"{uploader.reporter.address}/uploads/complete"
        answer = uploader.reporter.client.post(address, {"upload": started["upload"]})
        problem(answer, 503, "upload-verification-busy")
        assert answer.headers["Retry-After"] == "5"
    assert not AttemptUpload.objects.exists()
    uploader.post("/uploads/complete", {"upload": started["upload"]})
    assert AttemptUpload.objects.get(attempt=uploader.attempt).size == len(CONTENT)


def test_a_repeated_start_continues_an_upload_and_another_file_replaces_it(
    uploader: Uploader,
) -> None:
    announced = {"path": "a", "size": len(CONTENT), "sha256": sha256_of(CONTENT)}
    first, again = (uploader.post("/uploads", announced) for _ in range(2))
    assert again["upload"] == first["upload"]
    assert uploader.unfinished() == 1
    uploader.file.write_bytes(CONTENT)
    # A part that was sent before the URLs expired stays.
    for part in (first["parts"][0], *again["parts"][1:]):
        direct_uploads._put(uploader.file, direct_uploads._Part(**part))
    uploader.post("/uploads/complete", {"upload": first["upload"]})
    assert (uploader.unfinished(), UnfinishedUpload.objects.count()) == (0, 0)

    replaced = uploader.post("/uploads", announced)
    other = uploader.post("/uploads", {**announced, "sha256": "0" * 64})
    assert other["upload"] != replaced["upload"]
    assert uploader.unfinished() == 1
    with pytest.raises(PART_NOT_STORED):
        direct_uploads._put(uploader.file, direct_uploads._Part(**replaced["parts"][0]))


def test_unfinished_uploads_and_bytes_of_an_attempt_are_limited(
    uploader: Uploader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("apps.jobs.services.attempt_reports.MAX_UNFINISHED_UPLOADS", 2)
    monkeypatch.setattr("apps.jobs.services.attempt_reports.MAX_OUTPUT_BYTES", 3 * PART)
    reporter = uploader.reporter

    def start(path: str, size: int) -> Any:
        body = {"path": path, "size": size, "sha256": "0" * 64}
        return reporter.client.post(f"{reporter.address}/uploads", body)

    assert start("a", 2 * PART).status_code == 200
    too_large = f"have a limit of {format_bytes(3 * PART)}; 'b' has"
    assert too_large in problem(start("b", 2 * PART), 422, "report-refused")["detail"]
    refused = reporter.file("b", CONTENT)
    assert "have a limit of" in problem(refused, 422, "report-refused")["detail"]
    assert start("b", PART).status_code == 200
    assert start("b", PART - 1).status_code == 200
    too_many = problem(start("c", 1), 422, "report-refused")["detail"]
    assert "has 2 unfinished uploads, which is the limit" in too_many
    assert uploader.unfinished() == 2


def test_unfinished_uploads_are_aborted_when_the_attempt_has_ended(
    company: Company, ran: tuple[Job, Attempt], uploader: Uploader
) -> None:
    job, attempt = ran
    contents = model_contents()
    for path, content in contents.items():
        assert uploader.upload(content, path=path), uploader.said
    announced = {"path": "left", "size": len(CONTENT), "sha256": sha256_of(CONTENT)}
    started = uploader.post("/uploads", announced)
    assert unfinished_uploads_abort() == 0
    done = uploader.reporter.manifest(kind="model", files=described(contents))
    assert done.status_code == 204, done.content
    company.cluster.finish(attempt.launch_name)
    company.turn_jobs()
    uploader.proxy.inject("503", method="DELETE", part="uploadId", times=-1)
    assert unfinished_uploads_abort() == 0
    assert (uploader.unfinished(), UnfinishedUpload.objects.count()) == (1, 1)

    uploader.proxy.inject("", method="")
    assert unfinished_uploads_abort() == 1
    assert (uploader.unfinished(), UnfinishedUpload.objects.count()) == (0, 0)
    uploader.file.write_bytes(CONTENT)
    with pytest.raises(PART_NOT_STORED):
        direct_uploads._put(uploader.file, direct_uploads._Part(**started["parts"][0]))
    company.turn_jobs()
    job.refresh_from_db()
    assert job.state == "succeeded"


def test_the_files_become_a_model_version(
    company: Company, engineer: APIClient, ran: tuple[Job, Attempt], uploader: Uploader
) -> None:
    job, attempt = ran
    contents = model_contents()
    for path, content in contents.items():
        assert uploader.upload(content, path=path), uploader.said
    done = uploader.reporter.manifest(kind="model", files=described(contents))
    assert done.status_code == 204, done.content
    company.cluster.finish(attempt.launch_name)
    company.turn_jobs()
    company.turn_jobs()
    version = engineer.get(f"{API}/jobs/{job.uid}").json()["outputs"]["model_version"]
    assert engineer.get(f"{API}/model-versions/{version['uid']}").json()["state"] == "ready"


def test_requests_are_checked_and_a_folder_signs_no_urls(ran: tuple[Job, Attempt]) -> None:
    reporter = Reporter(ran[1])
    body = {"path": "a", "size": 4, "sha256": "0" * 64}
    answer = reporter.client.post(f"{reporter.address}/uploads", body)
    assert answer.json() == {"upload": "", "parts": []}
    for wrong in ({"sha256": "x"}, {"size": -1}, {"size": 2**60}, {"more": 1}):
        answer = reporter.client.post(f"{reporter.address}/uploads", {**body, **wrong})
        problem(answer, 400, "invalid")
    answer = reporter.client.post(f"{reporter.address}/uploads", {**body, "path": "../a"})
    problem(answer, 422, "report-refused")
    answer = reporter.client.post(f"{reporter.address}/uploads/complete", {"upload": "made up"})
    problem(answer, 422, "report-refused")
    stranger = Reporter(ran[1], token="nonsense")
    for path in ("/uploads", "/uploads/complete"):
        answer = stranger.client.post(f"{stranger.address}{path}", body)
        problem(answer, 401, "authentication-failed")
