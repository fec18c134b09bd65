"""Whether the product says that it answers, and that it can work."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from threading import Event

import pytest
from django.db.migrations.recorder import MigrationRecorder
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from apps.console.web.prometheus_metrics import READINESS
from controlplane.adapters.artifacts.filesystem import FilesystemArtifacts
from controlplane.ports.artifacts import Blob
from controlplane.web import health_checks
from tests.functional.operations.caches import expire


def parts(client: Client, *, status: int) -> dict[str, str]:
    expire(READINESS.parts)
    answer = client.get("/readyz")
    assert answer.status_code == status, answer.content
    found: dict[str, str] = answer.json()["parts"]
    return found


@pytest.mark.django_db
def test_a_product_with_all_its_parts_is_ready(client: Client, home: Path) -> None:
    found = parts(client, status=200)
    assert found == dict.fromkeys(
        ("database", "migrations", "broker", "artifacts", "encryption_key"), "ok"
    )


@pytest.mark.django_db
def test_the_check_leaves_nothing_in_the_artifact_store(client: Client, home: Path) -> None:
    parts(client, status=200)
    assert [path for path in (home / "artifacts").rglob("*") if path.is_file()] == []


@pytest.mark.django_db
def test_a_migration_that_is_missing_is_counted(client: Client, home: Path) -> None:
    MigrationRecorder.Migration.objects.filter(app="quotas", name="0009_names").delete()
    assert parts(client, status=503)["migrations"] == "1 not applied; run: manage.py migrate"


@pytest.mark.django_db
def test_an_unreachable_broker_is_reported_without_its_address(
    client: Client, home: Path, broker_folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(broker_folder)
    found = parts(client, status=503)
    assert found["broker"] == "does not answer; the log says why"
    assert str(broker_folder) in caplog.text
    assert found["database"] == "ok"


@pytest.mark.django_db
def test_an_unwritable_artifact_store_is_reported(client: Client, home: Path) -> None:
    (home / "artifacts").write_text("a file where the folder should be")
    assert parts(client, status=503)["artifacts"] == "does not answer; the log says why"


@pytest.mark.django_db
@pytest.mark.parametrize("keys", [[], ["no key at all"]])
def test_an_invalid_encryption_key_is_reported(
    client: Client, home: Path, settings: Settings, keys: list[str]
) -> None:
    settings.NINEFOLD_ENCRYPTION_KEYS = keys
    word = parts(client, status=503)["encryption_key"]
    assert word == "NINEFOLD_ENCRYPTION_KEY has no key that can be used"


@pytest.mark.django_db
def test_frequent_requests_run_the_checks_once(
    client: Client, home: Path, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    parts(client, status=200)
    with django_assert_num_queries(0):
        for _ in range(20):
            assert client.get("/readyz").status_code == 200


def test_checks_run_again_after_the_cache_time() -> None:
    seconds = [0.0]
    answers = iter(["ok", "ok"])
    readiness = health_checks.Readiness({"part": lambda: next(answers)}, clock=lambda: seconds[0])
    assert readiness.answer().status_code == 200
    seconds[0] += health_checks.CACHE_SECONDS
    assert readiness.answer().status_code == 200
    seconds[0] += health_checks.CACHE_SECONDS
    assert readiness.answer().status_code == 503


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
@pytest.mark.django_db
def test_what_answers_for_health_is_never_cached_and_takes_no_posts(
    client: Client, home: Path, path: str
) -> None:
    assert "no-store" in client.get(path)["Cache-Control"]
    assert client.post(path).status_code == 405


def test_an_artifact_store_that_does_not_respond_is_given_up(tmp_path: Path) -> None:
    class UnresponsiveStore(FilesystemArtifacts):
        def put(self, chunks: Iterable[bytes], *, expected: str | None = None) -> Blob:
            answered.wait()
            return super().put(chunks, expected=expected)

    answered = Event()
    store = UnresponsiveStore(tmp_path)
    try:
        for _ in range(3):
            with pytest.raises(
                health_checks.HealthCheckFailed, match=r"no response within 0\.01 s"
            ):
                health_checks.check_artifact_store(store, seconds=0.01)
    finally:
        answered.set()
    health_checks.check_artifact_store(store)
