"""What was backed up comes back whole, elsewhere; what is damaged changes nothing."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, transaction
from django.db.migrations.executor import MigrationExecutor
from pytest_django import Settings

from apps.accounts.models import User
from apps.jobs.models import Attempt
from apps.models.models import Artifact
from apps.models.selectors import artifact_store
from apps.models.selectors.storage import digests_referenced
from apps.models.services.storage_cleanup import garbage_collect
from apps.serving.models import GatewaySnapshot
from apps.telemetry.models import CardHistory
from apps.telemetry.services.metric_storage import history_partitions_create
from controlplane.persistence.backups import BackupManifest, BackupRefused, back_up
from controlplane.persistence.backups.manifest import NAME, _manifest_digest
from controlplane.persistence.backups.restorer import _check_version, _newest_migrations
from controlplane.persistence.encryption import encrypt
from controlplane.ports.artifacts import Blob, StorageFull
from tests import factories
from tests.functional.sample_rows import EmptyCompany, fill
from tests.integration.backups.databases import Elsewhere, elsewhere, rows_of
from tests.integration.threads import at_once

A_PAST_DAY = datetime(2026, 3, 1, 12, tzinfo=UTC)
OTHER_KEY = "YW5vdGhlci1rZXktb2YtMzItYnl0ZXMtbG9uZy0hISE="


@pytest.fixture
def product(transactional_db: None, settings: Settings, tmp_path: Path) -> Iterator[EmptyCompany]:
    """Something in every state, and a secret."""
    settings.NINEFOLD_HOME = tmp_path / "home"
    team = factories.team()
    company = EmptyCompany(team=team, user=factories.user(team=team), queue=factories.queue())
    with transaction.atomic():
        fill(company)
    GatewaySnapshot.objects.create(
        digest="d" * 64, body=encrypt(b"the engine's key"), issued_at=company.team.created_at
    )
    # A day that no migration creates a partition of any more.
    history_partitions_create(days=[A_PAST_DAY.date()])
    CardHistory.objects.create(card_id=1, at=A_PAST_DAY, utilization=40)
    yield company
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE telemetry_history_20260301")


@pytest.fixture
def backup(product: EmptyCompany, tmp_path: Path) -> Path:
    folder = tmp_path / "backups" / "monday"
    call_command("backup", out=folder, verbosity=0)
    return folder


@pytest.fixture
def other(product: EmptyCompany, tmp_path: Path) -> Iterator[Elsewhere]:
    with elsewhere("restored", tmp_path / "other-home") as place:
        yield place


def test_the_manifest_of_version_0_1_0_is_read(backup: Path, tmp_path: Path) -> None:
    body = json.loads((backup / NAME).read_text(encoding="utf-8"))
    del body["seal"]
    body["made_at"] = body.pop("created_at")
    body["seal"] = _manifest_digest(body)
    (tmp_path / NAME).write_text(json.dumps(body), encoding="utf-8")
    assert BackupManifest.read(tmp_path) == BackupManifest.read(backup)


LOGS_IN = """
from django.test import Client
from apps.accounts.models import User
from apps.jobs.models import Attempt
from apps.serving.models import GatewaySnapshot
from controlplane.persistence.encryption import decrypt
client = Client(headers={"host": "localhost"})
there = client.post("/login", {"username": "ada", "password": "open sesame"}).status_code
pages = [client.get(page).status_code for page in ("/", "/models", "/jobs", "/storage")]
before = max(User.objects.values_list("pk", flat=True))
new = User.objects.create_user("new").pk > before
print(there, pages, decrypt(GatewaySnapshot.objects.get(digest="d" * 64).body).decode(), new)
"""


@pytest.mark.slow
def test_everything_comes_back_and_works(backup: Path, other: Elsewhere) -> None:
    known = Attempt.objects.latest("pk").launch_name
    for name in (known, "attempt-begun-since"):
        (other.home / "jobs" / name).mkdir(parents=True)
    done = other.manage("restore", "--from", str(backup), "--into-empty")
    assert done.returncode == 0, done.stderr
    # A run that began after the backup: no clean-up finds what no row tells of.
    assert "cluster here has attempt-begun-since, of a run that the backup does not know" in (
        done.stderr
    )
    assert known not in done.stderr
    here, there = rows_of(connection.settings_dict["NAME"]), other.rows()
    assert {name: len(rows) for name, rows in there.items()} == {
        name: len(rows) for name, rows in here.items()
    }
    assert there == here
    manifest = BackupManifest.read(backup)
    restored_rows = sum(table.rows for table in manifest.tables)
    assert f"{restored_rows} rows and {manifest.blob_count} artifact files" in done.stdout
    assert {table.name: table.rows for table in manifest.tables if table.name in here} == {
        name: len(rows) for name, rows in here.items()
    }
    assert here["telemetry_history_20260301"]
    store = artifact_store()
    for artifact in Artifact.objects.all():
        for digest in artifact.tree.values():
            restored = other.home / "artifacts" / "sha256" / digest[7:9] / digest[9:]
            with store.open(digest) as original:
                assert restored.read_bytes() == original.read()
    assert other.python(LOGS_IN).splitlines()[-1] == (
        "302 [200, 200, 200, 200] the engine's key True"
    )


def test_no_key_is_in_it(backup: Path, settings: Settings) -> None:
    for path in backup.rglob("*"):
        if path.is_file():
            content = (
                gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
            )
            for key in settings.NINEFOLD_ENCRYPTION_KEYS:
                assert key.encode() not in content


@pytest.mark.slow
def test_a_database_that_holds_something_is_left_alone_until_told_otherwise(
    backup: Path, other: Elsewhere
) -> None:
    assert other.manage("restore", "--from", str(backup)).returncode == 0
    expected = other.rows()
    other.execute("UPDATE accounts_team SET name = 'changed since'")
    again = other.manage("restore", "--from", str(backup))
    assert again.returncode == 1
    assert "the database is not empty" in again.stderr
    assert other.rows() != expected
    done = other.manage("restore", "--from", str(backup), "--overwrite", key=OTHER_KEY)
    assert done.returncode == 0, done.stderr
    assert other.rows() == expected
    assert "none of the encryption keys of the backup is here" in done.stderr
    assert "serving.GatewaySnapshot.body: 2 of 2 cannot be decrypted" in done.stderr


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-7])


def _flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))


DAMAGES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "a table that was cut off": ("tables/accounts_user.gz", _cut, "instead of"),
    "a table that changed": ("tables/jobs_job.gz", _flip, "has changed"),
    "a table that is missing": ("tables/registry_artifact.gz", Path.unlink, "is missing"),
    "a manifest that was cut off": ("manifest.json", _cut, "cannot be read"),
    "a manifest that changed": ("manifest.json", _flip, "damaged|cannot be read"),
    "no manifest": ("manifest.json", Path.unlink, "is no backup"),
    "a list of blobs that changed": ("blobs.gz", _flip, "has changed"),
    "a blob that changed": ("blobs/*/*", _flip, "has changed"),
    "a blob that is missing": ("blobs/*/*", Path.unlink, "is missing"),
}


def test_a_damaged_backup_changes_nothing(
    backup: Path, tmp_path: Path, settings: Settings, subtests: pytest.Subtests
) -> None:
    before = rows_of(connection.settings_dict["NAME"])
    settings.NINEFOLD_HOME = tmp_path / "untouched"
    for number, (damage, (pattern, spoil, message)) in enumerate(DAMAGES.items()):
        with subtests.test(damage):
            spoilt = shutil.copytree(backup, tmp_path / f"spoilt-{number}")
            spoil(sorted(spoilt.glob(pattern))[0])
            with pytest.raises(CommandError, match=message):
                call_command("restore", source=spoilt, overwrite=True)
            assert rows_of(connection.settings_dict["NAME"]) == before
            assert not (tmp_path / "untouched").exists()


def test_a_backup_of_a_newer_version_is_refused(backup: Path) -> None:
    manifest = BackupManifest.read(backup)
    newer = {**manifest.migrations, "jobs": (*manifest.migrations["jobs"], "0999_later")}
    object.__setattr__(manifest, "migrations", newer)
    manifest.write(backup)
    with pytest.raises(CommandError, match=r"newer than this one: jobs\.0999_later"):
        call_command("restore", source=backup, overwrite=True)


def test_a_backup_with_the_names_of_former_squashes_is_restored_to_the_same_schema(
    backup: Path,
) -> None:
    manifest = BackupManifest.read(backup)
    # As builds before recorded them.
    squashes = {
        "fleet": "0002_remote_clusters_and_node_locality",
        "jobs": "0002_filters_quantization_variables_and_retries",
        "quotas": "0004_defragmentations_what_ifs_and_phases",
        "registry": "0002_storage_quantization_catalog_and_imports",
    }
    migrations = {
        app: tuple(sorted((*manifest.migrations[app], name))) for app, name in squashes.items()
    }
    earlier = replace(manifest, migrations={**manifest.migrations, **migrations})
    _check_version(earlier)
    leaves = MigrationExecutor(connection).loader.graph.leaf_nodes()
    assert set(leaves) == set(_newest_migrations(earlier)) == set(_newest_migrations(manifest))


def test_a_backup_from_between_two_migrations_that_are_one_now_is_refused(backup: Path) -> None:
    manifest = BackupManifest.read(backup)
    older = {**manifest.migrations, "jobs": ("0001_initial", "0002_saved_filters")}
    object.__setattr__(manifest, "migrations", older)
    manifest.write(backup)
    with pytest.raises(CommandError, match=r"too old: the migration jobs\.0003_quantize_kind"):
        call_command("restore", source=backup, overwrite=True)


def test_a_full_disk_leaves_no_backup(
    product: EmptyCompany, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("controlplane.persistence.backups.blobs.os.fsync", full)
    with pytest.raises(CommandError, match="no room is left"):
        call_command("backup", out=tmp_path / "backups" / "monday")
    assert list((tmp_path / "backups").iterdir()) == []


def test_an_interrupted_one_is_not_taken_for_a_backup(
    product: EmptyCompany, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed: not even its clean-up runs."""

    class Killed(BaseException):
        pass

    def die(*_: object, **__: object) -> None:
        raise Killed

    monkeypatch.setattr("controlplane.persistence.backups.manifest.BackupManifest.write", die)
    monkeypatch.setattr("controlplane.persistence.backups.writer.shutil.rmtree", lambda *a, **k: 0)
    with pytest.raises(Killed):
        call_command("backup", out=tmp_path / "backups" / "monday")
    (left,) = (tmp_path / "backups").iterdir()
    assert not (tmp_path / "backups" / "monday").exists()
    with pytest.raises(CommandError, match="is no backup"):
        call_command("restore", source=left, overwrite=True)


def test_blobs_of_an_earlier_backup_are_linked(backup: Path, tmp_path: Path) -> None:
    tuesday = backup.parent / "tuesday"
    call_command("backup", out=tuesday, incremental_artifacts=True, verbosity=0)
    for blob in tuesday.glob("blobs/*/*"):
        assert blob.stat().st_ino == (backup / blob.relative_to(tuesday)).stat().st_ino
    assert BackupManifest.read(tuesday).blob_count == BackupManifest.read(backup).blob_count


def test_a_damaged_blob_of_an_earlier_backup_is_copied_anew(backup: Path) -> None:
    spoilt = sorted(backup.glob("blobs/*/*"))[0]
    _flip(spoilt)
    tuesday = backup.parent / "tuesday"
    call_command("backup", out=tuesday, incremental_artifacts=True, verbosity=0)
    fresh = tuesday / spoilt.relative_to(backup)
    assert fresh.stat().st_ino != spoilt.stat().st_ino


def test_without_artifacts_they_must_be_in_the_store(
    product: EmptyCompany, tmp_path: Path, settings: Settings
) -> None:
    folder = tmp_path / "backups" / "light"
    call_command("backup", out=folder, without_artifacts=True, verbosity=0)
    assert not (folder / "blobs").exists()
    settings.NINEFOLD_HOME = tmp_path / "empty-home"
    with pytest.raises(CommandError, match="put back the folder of artifacts first"):
        call_command("restore", source=folder, overwrite=True)


def test_garbage_waits_for_a_backup(product: EmptyCompany, tmp_path: Path) -> None:
    """From another connection: the lock is of a session."""
    collected: list[object] = []

    class Watched:
        """The store, asked by the backup while it holds the lock."""

        def __init__(self) -> None:
            self._store = artifact_store()

        def __getattr__(self, name: str) -> object:
            if name == "open" and not collected:
                collected.extend(at_once(lambda: garbage_collect(at=product.team.created_at)))
            return getattr(self._store, name)

    back_up(
        tmp_path / "monday",
        product="1",
        digests=digests_referenced,
        store=Watched(),  # type: ignore[arg-type]  # it hands every call on
    )
    assert collected == [None]


def test_rows_that_come_while_it_is_made_are_not_in_it(
    product: EmptyCompany, tmp_path: Path
) -> None:
    """All tables are of one instant, though they are read one after the other."""

    def late() -> list[str]:
        at_once(lambda: User.objects.create_user("late"))
        return list(digests_referenced())

    back_up(tmp_path / "monday", product="1", digests=late, store=artifact_store())
    stored = gzip.decompress((tmp_path / "monday" / "tables" / "accounts_user.gz").read_bytes())
    assert b"\tada\t" in stored
    assert b"\tlate\t" not in stored
    assert User.objects.filter(username="late").exists()


def test_missing_blobs_are_named_and_fail_the_backup_unless_accepted(
    product: EmptyCompany, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    artifact = Artifact.objects.latest("pk")
    lost = next(iter(artifact.tree.values()))
    artifact_store().delete(lost)
    with pytest.raises(CommandError, match="1 of the artifact files are lost"):
        call_command("backup", out=tmp_path / "monday", verbosity=0)
    assert f"the store has lost {lost}" in capsys.readouterr().err
    call_command("backup", out=tmp_path / "tuesday", accept_missing=True, verbosity=0)
    for day in ("monday", "tuesday"):
        assert BackupManifest.read(tmp_path / day).blobs_missing == (lost,)


@pytest.mark.slow
def test_into_empty_refuses_a_store_that_holds_anything(backup: Path, other: Elsewhere) -> None:
    blob = other.home / "artifacts" / "sha256" / "ab" / ("cd" * 31)
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"of another life")
    refused = other.manage("restore", "--from", str(backup), "--into-empty")
    assert refused.returncode == 1
    assert "the artifact store of this home is not empty" in refused.stderr
    assert other.rows() == {}


def test_a_backup_is_not_written_over(backup: Path) -> None:
    with pytest.raises(CommandError, match="is there already"):
        call_command("backup", out=backup)


def test_a_store_without_room_leaves_the_database_alone(
    backup: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = rows_of(connection.settings_dict["NAME"])

    def full(*_: object, **__: object) -> Blob:
        raise StorageFull("no room is left for artifacts")

    monkeypatch.setattr(type(artifact_store()), "put", full)
    with pytest.raises((CommandError, StorageFull, BackupRefused)):
        call_command("restore", source=backup, overwrite=True)
    assert rows_of(connection.settings_dict["NAME"]) == before
