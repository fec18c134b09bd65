"""Blobs that nothing names go; whatever somebody stores, reads or names at the same time stays."""

from __future__ import annotations

import os
import threading
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from django.apps import apps
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from apps.jobs.models import Attempt, AttemptUpload
from apps.models.models import Artifact, ArtifactKind, StorageRun, StoreSize
from apps.models.selectors import artifact_store
from apps.models.selectors.storage import digests_referenced
from apps.models.services import storage_cleanup
from apps.models.services.artifact_storage import artifact_create
from apps.models.services.storage_cleanup import (
    GARBAGE_GRACE,
    garbage_collect,
    measure_artifact_storage,
)
from controlplane.persistence.advisory_locks import AdvisoryLock, session_lock
from controlplane.ports.artifacts import ArtifactStore
from tests.integration.company import Company
from tests.integration.mortality import Killed, Mortal, Worker
from tests.integration.threads import at_once


def later(amount: timedelta = GARBAGE_GRACE) -> datetime:
    return timezone.now() + amount + timedelta(seconds=1)


def twice() -> None:
    """Two rounds, each after the grace."""
    garbage_collect(at=later())
    garbage_collect(at=later(2 * GARBAGE_GRACE))


def digests(store: ArtifactStore) -> set[str]:
    return {blob.digest for blob in store.blobs()}


def test_an_unreferenced_blob_is_removed_in_two_runs(company: Company) -> None:
    store = artifact_store()
    leaked = store.put([b"uploaded and never listed"]).digest
    named = set(digests_referenced())
    first = garbage_collect(at=later())
    assert first is not None
    assert (first.set_aside, first.removed) == (1, 0)
    assert leaked in digests(store)
    second = garbage_collect(at=later(2 * GARBAGE_GRACE))
    assert second is not None
    assert (second.set_aside, second.removed) == (0, 1)
    assert digests(store) == named


def test_young_blobs_are_kept(company: Company) -> None:
    fresh = artifact_store().put([b"its row is about to be written"]).digest
    garbage_collect(at=timezone.now() + GARBAGE_GRACE / 2)
    twice_young = {blob.digest for blob in artifact_store().blobs() if not blob.set_aside}
    assert fresh in twice_young


def test_a_blob_referenced_while_set_aside_is_restored(company: Company) -> None:
    store = artifact_store()
    blob = store.put([b"needed after all"])
    garbage_collect(at=later())
    artifact_create(
        team=company.team, kind=ArtifactKind.CODE, files=[("a", blob.digest, blob.size)]
    )
    garbage_collect(at=later(2 * GARBAGE_GRACE))
    assert [one.set_aside for one in store.blobs() if one.digest == blob.digest] == [False]


def test_a_blob_stored_again_while_set_aside_is_kept(
    company: Company,
) -> None:
    store = artifact_store()
    digest = store.put([b"twice"]).digest
    garbage_collect(at=later())
    store.put([b"twice"])
    garbage_collect(at=timezone.now())
    with store.open(digest) as stream:
        assert stream.read() == b"twice"


def test_uploads_of_a_running_attempt_are_kept(company: Company) -> None:
    _, attempt = company.running()
    company.report_outputs(attempt)
    handed = set(attempt.uploads.values_list("digest", flat=True))
    twice()
    assert handed <= digests(artifact_store())


def test_logs_are_kept(company: Company) -> None:
    _, attempt = company.running()
    company.cluster.write_log(attempt.launch_name, b"a line\n")
    company.cluster.finish(attempt.launch_name, exit_code=1)
    company.turn_jobs()
    attempt.refresh_from_db()
    twice()
    assert attempt.log_digest in digests(artifact_store())


def test_a_dry_run_reports_without_changes(company: Company) -> None:
    store = artifact_store()
    store.put([b"leaked"])
    before = list(store.blobs())
    run = garbage_collect(at=later(), dry_run=True)
    assert run is not None
    assert run.set_aside == 1
    assert list(store.blobs()) == before


def test_runs_with_a_small_limit_reach_all_blobs(company: Company) -> None:
    store = artifact_store()
    leaked = {store.put([f"leaked {n}".encode()]).digest for n in range(10)}
    runs = 0
    while {blob.digest for blob in store.blobs() if blob.set_aside} != leaked:
        garbage_collect(at=later(), limit=3)
        runs += 1
        assert runs <= 10


def test_a_collector_killed_at_any_step_loses_nothing_and_is_resumed(
    company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = artifact_store()
    named = set(digests_referenced())
    leaked = {store.put([f"leaked {n}".encode()]).digest for n in range(3)}
    worker = Worker()
    monkeypatch.setattr(storage_cleanup, "artifact_store", lambda: Mortal(store, worker))
    for step in range(12):
        worker.steps, worker.dead, worker.dies_at, worker.at_work = 0, False, step, True
        try:
            garbage_collect(at=later(GARBAGE_GRACE * (step + 1)))
        except Killed:
            pass
        worker.at_work = False
        assert named <= digests(store), f"after a death at {worker.last_step}"
    garbage_collect(at=later(GARBAGE_GRACE * 20))
    garbage_collect(at=later(GARBAGE_GRACE * 30))
    assert not leaked & digests(store)
    assert named <= digests(store)


def test_it_waits_while_another_holds_the_lock(committed_company: Company) -> None:
    with session_lock(AdvisoryLock.COLLECT_GARBAGE) as held:
        assert held
        assert at_once(lambda: garbage_collect(at=later())) == [None]
        outcome = at_once(lambda: call_command("collect_garbage"))[0]
        assert isinstance(outcome, CommandError)
    assert at_once(lambda: garbage_collect(at=later()))[0] is not None


def test_uploads_that_race_the_collector_never_lose_a_byte(
    committed_company: Company, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same few contents are stored, named, forgotten and collected without any grace between
    storing and naming other than the product's own order: store, then name, both while rounds run.
    """
    company, store = committed_company, artifact_store()
    contents = [f"content {n}".encode() * 50 for n in range(4)]
    stop = threading.Event()
    # Old enough to be set aside at once when nothing names them.
    grace = timedelta(seconds=2)

    def collect() -> int:
        runs = 0
        while not stop.is_set():
            garbage_collect(at=timezone.now(), grace=grace)
            for path in Path(store.root, "sha256").glob("*/*"):  # type: ignore[attr-defined]
                os.utime(path, (1, 1)) if runs % 2 else None
            runs += 1
        return runs

    def upload(number: int) -> int:
        try:
            for turn in range(15):
                content = contents[(turn + number) % len(contents)]
                blob = store.put([content])
                artifact = artifact_create(
                    team=company.team,
                    kind=ArtifactKind.CODE,
                    files=[("a", blob.digest, blob.size)],
                )
                with store.open(blob.digest) as stream:
                    assert stream.read() == content
                Artifact.objects.filter(pk=artifact.pk).delete()
            return number
        finally:
            if number == 0:
                stop.set()

    outcomes = at_once(collect, *(lambda n=n: upload(n) for n in range(3)))
    assert all(isinstance(outcome, int) for outcome in outcomes), outcomes
    assert isinstance(outcomes[0], int)
    assert outcomes[0] > 1


def test_nothing_is_deleted_while_a_storage_source_cannot_be_imported(
    company: Company, settings: Settings
) -> None:
    artifact_store().put([b"leaked"])
    settings.NINEFOLD_STORAGE_CONSUMERS = ("apps.jobs.services.job_storage.Renamed",)
    with pytest.raises(ImportError, match="Renamed"):
        garbage_collect(at=later())
    assert not any(blob.set_aside for blob in artifact_store().blobs())


def test_every_column_with_blob_digests_is_referenced(company: Company) -> None:
    """A new column named ``…digest`` of an app must be added to what its source says."""
    asked = {(AttemptUpload, "digest"), (Attempt, "log_digest")}
    elsewhere = {
        "apikey.digest",
        "catalogmodel.digest",
        "deviceauthorization.digest",
        "gatewaysnapshot.digest",
        "nodetoken.digest",
        "personaltoken.digest",
    }
    found = {
        (model, field.name)
        for model in apps.get_models()
        for field in model._meta.concrete_fields
        if field.name.endswith("digest")
        and model._meta.app_label
        in ("registry", "jobs", "serving", "telemetry", "notifications", "monitoring", "accounts")
    }
    unknown = {f"{model._meta.model_name}.{name}" for model, name in found - asked} - elsewhere
    assert unknown == set()


def test_an_interrupted_run_is_recorded(company: Company) -> None:
    cut = StorageRun.objects.create(kind="garbage", started_at=company.at, cursor="sha256:8")
    run = garbage_collect(at=later())
    cut.refresh_from_db()
    assert "interrupted" in cut.error
    assert run is not None
    assert run.ended_at is not None


def test_a_failed_run_records_its_error(company: Company, monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: object, **__: object) -> None:
        raise OSError("the disk is read-only")

    monkeypatch.setattr(type(artifact_store()), "delete_unfinished_writes", damaged)
    with pytest.raises(OSError, match="read-only"):
        garbage_collect(at=later())
    run = StorageRun.objects.get()
    assert run.ended_at is not None
    assert run.error == "the run failed: the disk is read-only"


def test_a_store_is_counted_by_one_at_a_time(committed_company: Company) -> None:
    with session_lock(AdvisoryLock.MEASURE_STORAGE) as held:
        assert held
        assert at_once(lambda: measure_artifact_storage(at=committed_company.at)) == [False]
    assert not StoreSize.objects.exists()
    assert at_once(lambda: measure_artifact_storage(at=committed_company.at)) == [True]
    assert StoreSize.objects.get().blobs == len(list(artifact_store().blobs()))


def test_the_command_says_what_was_done(
    company: Company, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact_store().put([b"leaked"])
    call_command("collect_garbage", dry_run=True, grace_hours=-1)
    assert "1 would be set aside" in capsys.readouterr().out
    call_command("collect_garbage", grace_hours=-1)
    assert "1 were set aside" in capsys.readouterr().out


def test_unfinished_files_of_dead_writers_are_removed(company: Company) -> None:
    store = artifact_store()
    folder = Path(store.root, "incoming")  # type: ignore[attr-defined]
    folder.mkdir(exist_ok=True)
    (folder / "half").write_bytes(b"12345")
    garbage_collect(at=timezone.now())
    assert (folder / "half").exists()
    garbage_collect(at=later())
    assert not (folder / "half").exists()
