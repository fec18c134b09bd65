"""Checkpoints in the artifact store: the runtime against a served web and an S3 server, with injected faults."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.retries.standard import ExponentialBackoff
from django.test import Client
from django.utils import timezone
from pytest_django import Settings
from pytest_django.live_server_helper import LiveServer

from apps.jobs.models import Attempt, AttemptCheckpoint, AttemptUpload, Job
from apps.jobs.reconcilers.launches import launches_clean_up
from apps.jobs.selectors import attempt_token, latest_attempt
from apps.jobs.services.secret_variables import RETRY_RETENTION
from apps.models.selectors import artifact_store
from apps.models.selectors.storage import digests_referenced, storage_usage_by_team
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.common.reasons import Reason
from controlplane.domain.jobs.lifecycle import AttemptState
from controlplane.domain.storage.team_storage import StorageKind
from controlplane.ports.artifacts import BlobMissing
from ninefold_runtime import checkpoints, direct_uploads
from ninefold_runtime.checkpoints import CheckpointStore
from ninefold_runtime.exit_codes import TaskStopped
from ninefold_runtime.report import ReportAddress, Reporter
from ninefold_runtime.weight_cache import InputUnavailable
from tests import s3_servers
from tests.contract.waiting import until
from tests.functional.api import test_attempts
from tests.functional.api.callers import API, problem
from tests.functional.api.test_attempts import described
from tests.integration.company import Company
from tests.s3_servers import FaultyProxy, s3_url

__all__ = ["s3_url"]

#: Large enough for a direct upload, in several parts.
WEIGHTS = os.urandom(direct_uploads.SMALLEST + 1000)
#: Seconds within which a checkpoint is stored or refused here.
WITHIN = 60.0


class Site:
    """A job of a company whose cluster has no folder for checkpoints, and the bucket of its artifacts."""

    def __init__(
        self, company: Company, server: LiveServer, proxy: FaultyProxy, bucket: str, folder: Path
    ) -> None:
        self.company, self.server, self.proxy = company, server, proxy
        self.bucket, self.folder = bucket, folder
        self.job, self.attempt = company.running()
        self.said: list[str] = []

    def process(self, name: str = "work") -> Process:
        """A training process of the newest attempt, with a folder of that name."""
        return Process(self, self.folder / name)

    def lose_and_run_again(self) -> None:
        """The cluster loses the attempt; the job runs again."""
        self.company.cluster.lose(self.attempt.launch_name)
        self.company.turn_jobs()
        self.company.schedule()
        self.company.turn_jobs()
        self.attempt = latest_attempt(self.job)
        self.company.cluster.run(self.attempt.launch_name)
        self.company.turn_jobs()
        self.attempt.refresh_from_db()
        assert self.attempt.state == AttemptState.RUNNING

    def message(self) -> str:
        self.attempt.refresh_from_db()
        return str(self.attempt.message)


class Process:
    """What the runtime does of a training: saving, uploading, downloading."""

    def __init__(self, site: Site, root: Path) -> None:
        self.site, self.root = site, root
        self.address = ReportAddress(
            url=f"{site.server.url}{API}/attempts/{site.attempt.uid}",
            token=attempt_token(site.attempt),
        )

    @contextmanager
    def training(
        self, *, keep: int = 2, interval: float = 0.0, stopped: bool = False
    ) -> Iterator[CheckpointStore]:
        """A training, which ends by a stop request or with success."""
        reporter = Reporter(
            self.address,
            log=self.site.said.append,
            first_pause_seconds=0.01,
            patience_seconds=10.0,
        )
        store = CheckpointStore(
            self.root,
            reporter=reporter,
            keep=keep,
            interval_seconds=interval,
            retry_seconds=0.05,
        )
        with reporter, suppress(TaskStopped), store:
            yield store
            if stopped:
                raise TaskStopped("stopped")

    def save(self, step: int, *, content: bytes = WEIGHTS) -> Path:
        """Write a complete checkpoint, as the trainer does."""
        folder = self.root / f"checkpoint-{step}"
        (folder / "adapter").mkdir(parents=True)
        (folder / "weights.safetensors").write_bytes(content)
        (folder / "adapter" / "state.json").write_text(f'{{"step": {step}}}')
        (folder / "empty").touch()
        checkpoints.mark_checkpoint_complete(folder)
        return folder

    def upload(self, step: int, *, keep: int = 2, content: bytes = WEIGHTS) -> None:
        """Save a checkpoint and end by a stop request, which stores it."""
        with self.training(keep=keep, stopped=True) as store:
            self.save(step, content=content)
            store.saved(step=step)

    def download(self) -> int | None:
        """The step from which the training continues."""
        reporter = Reporter(self.address, log=self.site.said.append, first_pause_seconds=0.01)
        CheckpointStore(self.root, reporter=reporter, keep=2, interval_seconds=0.0).download()
        newest = checkpoints.newest_checkpoint(self.root)
        return None if newest is None else newest.step


@pytest.fixture
def site(
    committed_company: Company,
    live_server: LiveServer,
    s3_url: str,
    settings: Settings,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[Site]:
    monkeypatch.setattr(ExponentialBackoff, "delay_amount", lambda *_: 0.01)
    monkeypatch.setattr(direct_uploads, "_SEND_SECONDS", 5.0)
    monkeypatch.setattr(checkpoints, "_DOWNLOAD_ATTEMPTS", 3)
    monkeypatch.setattr(FakeCluster, "loses_checkpoints", True, raising=False)
    with FaultyProxy(s3_url) as proxy:
        bucket = s3_servers.new_bucket(s3_url)
        settings.NINEFOLD_ARTIFACTS = "s3"
        settings.NINEFOLD_S3 = s3_servers.store_options(proxy.url, bucket)
        yield Site(committed_company, live_server, proxy, bucket, tmp_path)


def steps() -> list[int]:
    return list(AttemptCheckpoint.objects.order_by("step").values_list("step", flat=True))


def test_the_next_attempt_continues_from_the_newest_checkpoint_with_an_empty_folder(
    site: Site,
) -> None:
    process = site.process("first")
    for step in (10, 20):
        process.upload(step)
    assert steps() == [10, 20]
    # Uploads became checkpoints; nothing but the checkpoint is left in the folder.
    assert not AttemptUpload.objects.exists()
    assert {path.name for path in process.root.iterdir()} == {"checkpoint-10", "checkpoint-20"}

    site.lose_and_run_again()
    assert site.attempt.continues is not None
    again = site.process("second")
    assert again.download() == 20
    restored = again.root / "checkpoint-20"
    assert (restored / "weights.safetensors").read_bytes() == WEIGHTS
    assert (restored / "adapter" / "state.json").read_text() == '{"step": 20}'
    assert (restored / "empty").read_bytes() == b""
    assert {path.name for path in again.root.iterdir()} == {"checkpoint-20"}
    # A checkpoint that is as new is not downloaded again.
    site.proxy.requests.clear()
    assert again.download() == 20
    assert not any(method == "GET" for method, _, _ in site.proxy.requests)
    # An attempt that was lost before it had one of its own is no obstacle.
    site.lose_and_run_again()
    assert site.process("third").download() == 20


def test_older_checkpoints_of_the_job_are_deleted_as_in_the_folder(site: Site) -> None:
    first = site.process("first")
    for step in (10, 20):
        first.upload(step, keep=2)
    site.lose_and_run_again()
    site.process("second").upload(30, keep=2)
    assert steps() == [20, 30]
    site.process("second").upload(40, keep=1)
    assert steps() == [40]


#: Name → fault, method and part of the path of the request that fails once.
PASSING: Mapping[str, tuple[str, str, str]] = {
    "a connection cut inside a part": ("cut-request", "PUT", "partNumber=2"),
    "an error of a part": ("500", "PUT", "partNumber=1"),
    "a part arrives changed": ("corrupt-request", "PUT", "partNumber=3"),
    "an expired URL of a part": ("403", "PUT", "partNumber=2"),
    "an error of the completion": ("500", "POST", "uploadId"),
}


def test_an_upload_survives_faults_that_pass(site: Site) -> None:
    process, failures = site.process(), []
    for number, (name, (kind, method, part)) in enumerate(PASSING.items(), start=1):
        site.proxy.inject(kind, method=method, part=part)
        process.upload(number, keep=1)
        if not any(fault for _, _, fault in site.proxy.requests):
            failures.append(f"{name}: the fault was not injected")
        if steps() != [number]:
            failures.append(f"{name}: {steps()} are stored; {site.said[-3:]}")
    assert not failures, "\n".join(failures)


def test_a_failed_upload_warns_and_the_next_one_takes_the_newest(site: Site) -> None:
    process = site.process()
    process.upload(10)
    site.proxy.inject("500", method="PUT", part="partNumber=2", times=-1)
    with process.training() as store:
        process.save(20)
        store.saved(step=20)
        until(
            lambda: "step 20 was not uploaded" in site.message(), what="the warning", within=WITHIN
        )
        warning = Attempt.objects.get(pk=site.attempt.pk).message
        assert isinstance(warning, Reason)
        assert "answered 500" in warning
        assert "X-Amz-Signature" not in warning + "".join(site.said)
        client = Client()
        client.force_login(site.company.engineer)
        for page in (f"/jobs/{site.job.uid}?tab=events", f"{API}/jobs/{site.job.uid}/attempts"):
            assert "step 20 was not uploaded" in client.get(page).content.decode(), page
        assert steps() == [10]
        process.save(30)
        store.saved(step=30)
        site.proxy.inject("", method="")
        until(lambda: steps()[-1] == 30, what="the upload of the newest", within=WITHIN)
        assert site.message() == "running"
    # An attempt that was cut off while it uploaded has not changed what the next one finds.
    site.lose_and_run_again()
    assert site.process("next").download() == 30


def test_bytes_that_are_cut_or_changed_are_never_used(site: Site) -> None:
    process = site.process()
    process.upload(10)
    for kind, method, part in (
        ("cut-request", "PUT", "partNumber"),
        ("corrupt-request", "PUT", "partNumber=1"),
        ("403", "PUT", "partNumber=3"),
    ):
        content = os.urandom(len(WEIGHTS))
        site.proxy.inject(kind, method=method, part=part, times=-1)
        process.upload(20, content=content)
        assert steps() == [10], kind
        with pytest.raises(BlobMissing):
            artifact_store().size(f"sha256:{hashlib.sha256(content).hexdigest()}")
        site.proxy.inject("", method="")
        site.lose_and_run_again()
        assert site.process(f"after {kind} {part}").download() == 10
        process = site.process(f"again {kind} {part}")


def test_a_download_is_verified_continued_and_renews_expired_urls(site: Site) -> None:
    site.process("first").upload(10)
    site.lose_and_run_again()
    for number, kind in enumerate(("cut-response", "500", "corrupt-response")):
        site.proxy.inject(kind, method="GET", part="sha256")
        process = site.process(f"passing {number}")
        assert process.download() == 10, kind
        found = process.root / "checkpoint-10" / "weights.safetensors"
        assert found.read_bytes() == WEIGHTS, kind

    weights = hashlib.sha256(WEIGHTS).hexdigest()[2:]

    def cut_then_denied(method: str, path: str, number: int) -> str:
        # Only bytes that have arrived justify new URLs, and files are downloaded in parallel.
        if method != "GET" or weights not in path:
            return ""
        earlier = sum(weights in requested for _, requested, _ in site.proxy.requests)
        return {0: "cut-response", 1: "cut-response", 2: "403"}.get(earlier, "")

    site.proxy.fault = cut_then_denied
    site.proxy.requests.clear()
    assert site.process("expired").download() == 10
    assert "403" in [fault for _, _, fault in site.proxy.requests]
    # Training does not begin again while the work of days is in the store.
    for kind in ("500", "corrupt-response"):
        site.proxy.inject(kind, method="GET", part="sha256", times=-1)
        process = site.process(f"lasting {kind}")
        with pytest.raises(InputUnavailable):
            process.download()
        assert checkpoints.newest_checkpoint(process.root) is None


def test_a_checkpoint_that_has_lost_a_file_is_passed_over(site: Site) -> None:
    process = site.process("first")
    process.upload(10)
    process.upload(20, content=WEIGHTS[::-1])
    assert steps() == [10, 20]
    artifact_store().delete(f"sha256:{hashlib.sha256(WEIGHTS[::-1]).hexdigest()}")
    site.lose_and_run_again()
    assert site.process("second").download() == 10


def test_uploads_are_not_more_frequent_than_their_interval_and_a_success_ends_them(
    site: Site,
) -> None:
    process = site.process()
    with process.training(interval=3600.0) as store:
        process.save(10)
        store.saved(step=10)
        until(lambda: steps() == [10], what="the first upload", within=WITHIN)
        process.save(20)
        store.saved(step=20)
        process.save(30)
        store.saved(step=30)
    assert steps() == [10]
    # A stop request does not wait for the interval.
    process = site.process("stopped")
    with process.training(interval=3600.0, stopped=True) as store:
        process.save(40)
        store.saved(step=40)
        until(lambda: steps() == [10, 40], what="the first upload", within=WITHIN)
        process.save(50)
        store.saved(step=50)
    assert steps() == [40, 50]


def test_training_may_delete_the_checkpoint_that_is_uploaded(site: Site) -> None:
    process = site.process()
    held: list[str] = []

    def delete_meanwhile(method: str, path: str, number: int) -> str:
        if method == "PUT" and not held:
            held.append(path)
            process.save(20)
            checkpoints.delete_older_checkpoints(process.root, count=1)
        return ""

    site.proxy.fault = delete_meanwhile
    with process.training() as store:
        process.save(10)
        store.saved(step=10)
        until(lambda: steps() == [10], what="the upload", within=WITHIN)
    assert not (process.root / "checkpoint-10").exists()


def test_the_first_launch_and_those_after_it_are_told_to_store_checkpoints(
    site: Site, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    def variables() -> Mapping[str, str]:
        (role,) = site.company.cluster.launched(site.attempt.launch_name).roles
        return role.environment

    assert variables()["NINEFOLD_CHECKPOINT_UPLOAD_SECONDS"] == "600"
    monkeypatch.setattr(FakeCluster, "loses_checkpoints", False, raising=False)
    settings.NINEFOLD_CHECKPOINT_UPLOAD_SECONDS = 30
    site.lose_and_run_again()
    assert "NINEFOLD_CHECKPOINT_UPLOAD_SECONDS" not in variables()
    # A job with a stored checkpoint goes on storing them wherever it runs.
    site.process().upload(10)
    site.lose_and_run_again()
    assert variables()["NINEFOLD_CHECKPOINT_UPLOAD_SECONDS"] == "30"


def test_checkpoints_are_deleted_when_the_job_has_succeeded(site: Site) -> None:
    site.process("first").upload(10)
    site.lose_and_run_again()
    site.process("second").upload(20)
    wanted = {f"sha256:{hashlib.sha256(WEIGHTS).hexdigest()}"}
    assert set(digests_referenced()) >= wanted
    key = site.company.team.pk
    assert storage_usage_by_team([key])[key].by_kind[StorageKind.CHECKPOINTS] > 2 * len(WEIGHTS)
    site.company.finish(site.attempt)
    site.company.turn_jobs()
    site.company.turn_jobs()
    site.job.refresh_from_db()
    assert site.job.state == "succeeded"
    assert steps() == []
    assert not set(digests_referenced()) & wanted


def test_checkpoints_of_an_ended_job_are_deleted_with_its_folder(site: Site) -> None:
    site.process().upload(10)
    site.company.cluster.finish(site.attempt.launch_name, exit_code=1)
    site.company.turn_jobs()
    site.job.refresh_from_db()
    assert site.job.state == "failed"
    # Also where the cluster has forgotten the launch.
    site.company.cluster.remove(site.attempt.launch_name)
    launches_clean_up(at=timezone.now())
    assert steps() == [10]
    launches_clean_up(at=timezone.now() + RETRY_RETENTION + timedelta(minutes=1))
    assert steps() == []
    site.attempt.refresh_from_db()
    assert site.attempt.removed_at is not None


CheckpointFiles = list[dict[str, Any]]


@pytest.fixture
def ran(company: Company) -> tuple[Job, Attempt]:
    return company.running()


def _stored(reporter: test_attempts.Reporter, files: CheckpointFiles, **more: Any) -> Any:
    body = {"step": 10, "keep": 1, "files": files, **more}
    return reporter.client.put(f"{reporter.address}/checkpoint", body)


def test_only_files_that_were_uploaded_with_their_digest_become_a_checkpoint(
    ran: tuple[Job, Attempt],
) -> None:
    reporter, contents = test_attempts.Reporter(ran[1]), {"a": b"1", "deep/b": b"2"}
    reporter.file(".checkpoints/10/a", b"1")
    refused = _stored(reporter, described(contents))
    assert "'deep/b', which was not uploaded" in problem(refused, 422, "report-refused")["detail"]
    reporter.file(".checkpoints/10/deep/b", b"other")
    refused = _stored(reporter, described(contents))
    assert "differs from the manifest" in problem(refused, 422, "report-refused")["detail"]
    reporter.file(".checkpoints/11/deep/b", b"2")
    problem(_stored(reporter, described(contents)), 422, "report-refused")
    assert not AttemptCheckpoint.objects.exists()
    reporter.file(".checkpoints/10/deep/b", b"2")
    # The answer to the first call is lost.
    for _ in range(2):
        assert _stored(reporter, described(contents)).status_code == 204
    assert AttemptCheckpoint.objects.get().size == 2
    assert not ran[1].uploads.exists()


def test_requests_for_checkpoints_are_checked(ran: tuple[Job, Attempt]) -> None:
    reporter = test_attempts.Reporter(ran[1])
    file = described({"a": b"1"})
    for listed in ([], [*file, *file], [{**file[0], "sha256": "x"}]):
        problem(_stored(reporter, listed), 400, "invalid")
    for wrong in ({"step": -1}, {"keep": 0}, {"more": 1}):
        problem(_stored(reporter, file, **wrong), 400, "invalid")
    # A folder signs no URLs: nothing is there to download.
    reporter.file(".checkpoints/10/a", b"1")
    assert _stored(reporter, file).status_code == 204
    answer = reporter.client.get(f"{reporter.address}/checkpoint")
    assert answer.json() == {"step": None, "files": []}


def test_checkpoints_are_stored_and_read_by_the_attempts_own_token_only(
    company: Company, ran: tuple[Job, Attempt], s3_url: str, settings: Settings
) -> None:
    settings.NINEFOLD_ARTIFACTS = "s3"
    settings.NINEFOLD_S3 = s3_servers.store_options(s3_url, s3_servers.new_bucket(s3_url))
    _, other = company.running(name="another")
    own, foreign = test_attempts.Reporter(ran[1]), test_attempts.Reporter(other)
    own.file(".checkpoints/10/a", b"1")
    assert _stored(own, described({"a": b"1"})).status_code == 204
    stranger = test_attempts.Reporter(ran[1], token=attempt_token(other))
    problem(stranger.client.get(f"{stranger.address}/checkpoint"), 401, "authentication-failed")
    problem(_stored(stranger, described({"a": b"1"})), 401, "authentication-failed")
    assert own.client.get(f"{own.address}/checkpoint").json()["step"] == 10
    assert foreign.client.get(f"{foreign.address}/checkpoint").json()["step"] is None
