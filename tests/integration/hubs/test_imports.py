"""Fetching a model from a hub: whole, in pieces, after faults, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.models.models import HubImport, ModelVersion, StorageQuota
from apps.models.reconcilers import folder_imports_reconcile, hub_imports_reconcile
from apps.models.selectors import artifact_store
from apps.models.selectors.model_versions import (
    due_hub_imports,
    hub_endpoint,
    partial_downloads_folder,
)
from apps.models.selectors.storage import digests_referenced
from apps.models.services import hub_imports
from apps.models.services.hub_imports import (
    PARTIAL_DOWNLOAD_RETENTION,
    RETRY_DELAYS,
    hub_import_cancel,
    hub_import_request,
    hub_lookup,
)
from apps.models.services.model_versions import model_version_retry
from config.settings.outbound import HubAccess
from controlplane.domain.common.resources import MIB
from controlplane.domain.outbound.egress import EgressPolicy, EgressRefused
from controlplane.domain.registry.model_hubs import HubImportRefused
from controlplane.domain.registry.versions import ModelState
from controlplane.domain.storage.team_storage import StorageQuotaExceeded
from controlplane.ports.model_hubs import HubUnreachable
from tests.cases import for_each_case
from tests.hubs import COMMIT, LocalHub, configured_hub
from tests.integration.company import Company, model_contents, safetensors

pytestmark = pytest.mark.django_db(transaction=True)
REPOSITORY = "Maker/Small-Model"


def _large(size: int) -> bytes:
    """Weights that need several pieces: a valid header, and bytes that it does not count."""
    return safetensors(embed=(8, 4)) + bytes(range(256)) * (size // 256)


@pytest.fixture
def hub(settings: Settings, tmp_path: Path) -> Iterator[LocalHub]:
    with configured_hub(settings) as found:
        found.repositories[REPOSITORY] = {
            **model_contents(),
            "model.safetensors": _large(3 * MIB),
            "tokenizer.json": json.dumps({"model": {}}).encode(),
            "pytorch_model.bin": b"code",
            "modeling.py": b"code",
            "original/params.safetensors": safetensors(other=(2, 2)),
        }
        settings.NINEFOLD_HOME = tmp_path
        yield found


def _requested(company: Company, hub: str = "huggingface") -> ModelVersion:
    revision = hub_endpoint(hub).hub.default_revision
    return hub_import_request(
        actor=company.engineer,
        team=company.team,
        name="small",
        lookup=hub_lookup(hub=hub, repository=REPOSITORY, revision=revision),
    )


def _turn(*, later: timedelta = timedelta()) -> int:
    return hub_imports_reconcile(at=timezone.now() + later)


@pytest.mark.parametrize("name", ["huggingface", "modelscope"])
def test_a_repository_becomes_a_version_with_its_importable_files(
    company: Company, hub: LocalHub, name: str
) -> None:
    version = _requested(company, name)
    assert version.state == ModelState.IMPORTING
    assert _turn() == 1
    version.refresh_from_db()
    assert version.state == ModelState.READY
    assert version.architecture == "Qwen2ForCausalLM"
    assert version.artifact is not None
    assert set(version.artifact.tree) == {"config.json", "model.safetensors", "tokenizer.json"}
    with artifact_store().open(version.artifact.tree["model.safetensors"]) as stream:
        assert stream.read() == hub.repositories[REPOSITORY]["model.safetensors"]
    row = version.hub_import
    assert (row.received, row.spared) == (row.size, 0)
    assert row.commit == (COMMIT if name == "huggingface" else "master")
    assert not partial_downloads_folder().joinpath(version.uid).exists()


def test_a_lookup_lists_the_files_before_the_download(company: Company, hub: LocalHub) -> None:
    found = hub_lookup(hub="huggingface", repository=REPOSITORY, revision="main")
    assert [file.path for file in found.listing.files] == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert hub.sent == 0
    assert not HubImport.objects.exists()


def test_a_broken_connection_costs_one_range_and_is_retried(
    company: Company, hub: LocalHub
) -> None:
    version = _requested(company)
    hub.cuts = 1
    assert _turn() == 0
    row = HubImport.objects.get(version=version)
    assert row.failures == 1
    assert row.error.code == "egress.response.interrupted"
    assert _turn() == 0, "its time has not come"
    assert _turn(later=RETRY_DELAYS[0]) == 1
    row.refresh_from_db()
    assert (row.failures, row.error) == (0, "")
    assert hub.sent == row.size, "no byte came twice"


def test_a_worker_killed_between_ranges_loses_nothing(company: Company, hub: LocalHub) -> None:
    version = _requested(company)

    class Killed(BaseException):
        pass

    pieces = 0

    def die_after_two() -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 3:
            raise Killed

    row = due_hub_imports(at=timezone.now()).get()
    with pytest.raises(Killed):
        hub_imports.hub_import_fetch(row, at=timezone.now(), on_progress=die_after_two)
    before = hub.sent
    assert 0 < before < row.size
    assert _turn() == 1
    version.refresh_from_db()
    assert version.state == ModelState.READY
    assert hub.sent == row.size


def test_stored_files_are_not_downloaded_again(company: Company, hub: LocalHub) -> None:
    _requested(company)
    assert _turn() == 1
    before = hub.sent
    version = _requested(company)
    assert (
        hub_lookup(hub="huggingface", repository=REPOSITORY, revision="main").stored_bytes > 3 * MIB
    )
    assert _turn() == 1
    row = HubImport.objects.get(version=version)
    assert row.spared > 3 * MIB
    assert hub.sent - before == row.size - row.spared


def test_garbage_collection_keeps_files_of_running_imports(company: Company, hub: LocalHub) -> None:
    version = _requested(company)
    hub.store_status = 503
    assert _turn() == 0
    hub.store_status = 200
    row = HubImport.objects.get(version=version)
    content = hub.repositories[REPOSITORY]["config.json"]
    blob = artifact_store().put([content])
    HubImport.objects.filter(pk=row.pk).update(stored=[["config.json", blob.digest, blob.size]])
    assert blob.digest in set(digests_referenced())


def test_a_damaged_file_is_never_stored(company: Company, hub: LocalHub) -> None:
    version = _requested(company)
    good = hub.repositories[REPOSITORY]["model.safetensors"]
    hub.damaged["model.safetensors"] = good[:-1] + b"?"
    assert _turn() == 0
    version.refresh_from_db()
    assert version.state == ModelState.FAILED
    last = version.transitions.last()
    assert last is not None
    assert "model.safetensors is damaged" in last.reason
    hub.damaged.clear()
    model_version_retry(version=version, actor=company.engineer, at=timezone.now())
    assert _turn() == 1
    version.refresh_from_db()
    assert version.state == ModelState.READY


def test_an_unreachable_hub_fails_the_import_after_all_retries(
    company: Company, hub: LocalHub
) -> None:
    version = _requested(company)
    hub.store_status = 503
    for _ in range(len(RETRY_DELAYS) + 1):
        assert _turn(later=timedelta(days=1)) == 0
        HubImport.objects.filter(version=version).update(retry_at=None)
    version.refresh_from_db()
    assert version.state == ModelState.FAILED
    last = version.transitions.last()
    assert last is not None
    assert "503" in last.reason
    assert "attempts: 7" in last.reason


def test_a_cancelled_import_stops_and_can_be_resumed(company: Company, hub: LocalHub) -> None:
    version = _requested(company)
    row = due_hub_imports(at=timezone.now()).get()
    pieces = 0

    def cancel() -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 2:
            hub_import_cancel(version=version, actor=company.engineer, at=timezone.now())

    assert not hub_imports.hub_import_fetch(row, at=timezone.now(), on_progress=cancel)
    version.refresh_from_db()
    assert version.state == ModelState.FAILED
    assert hub.sent < row.size
    assert _turn() == 0
    model_version_retry(version=version, actor=company.engineer, at=timezone.now())
    assert _turn() == 1
    assert hub.sent == row.size


def test_the_folder_controller_ignores_hub_imports(company: Company, hub: LocalHub) -> None:
    version = _requested(company)
    assert folder_imports_reconcile(at=timezone.now()) == 0
    version.refresh_from_db()
    assert version.state == ModelState.IMPORTING


def test_a_token_is_sent_to_the_hub_but_not_to_redirect_targets(
    company: Company, hub: LocalHub, settings: Settings
) -> None:
    hub.token = "s3cret"
    with pytest.raises(HubImportRefused, match="refuses access to"):
        _requested(company)
    settings.NINEFOLD_HUBS = {"huggingface": HubAccess(address=hub.url, token="s3cret")}
    _requested(company)
    assert _turn() == 1


@for_each_case(
    ("repository", "revision", "message"),
    [
        ("no-owner", "main", "a repository must be owner/name"),
        ("a/../b", "main", "a repository must be owner/name"),
        (REPOSITORY, "main branch", "a revision must be a branch"),
        ("Maker/Nothing", "main", "has no Maker/Nothing at main"),
        (REPOSITORY, "v9", "has no Maker/Small-Model at v9"),
    ],
)
def test_an_unknown_repository_is_refused_by_name(
    company: Company, hub: LocalHub, repository: str, revision: str, message: str
) -> None:
    with pytest.raises(HubImportRefused, match=message):
        hub_lookup(hub="huggingface", repository=repository, revision=revision)


def test_a_repository_without_safetensors_is_refused_before_anything_is_fetched(
    company: Company, hub: LocalHub
) -> None:
    del hub.repositories[REPOSITORY]["model.safetensors"]
    del hub.repositories[REPOSITORY]["original/params.safetensors"]
    with pytest.raises(HubImportRefused, match=r"no \.safetensors weights"):
        _requested(company)
    assert hub.sent == 0


def test_a_forbidden_address_is_not_called(
    company: Company, hub: LocalHub, settings: Settings
) -> None:
    settings.NINEFOLD_EGRESS = EgressPolicy.parse(
        allow=[], deny=[], schemes=["http"], ports=[hub.port]
    )
    with pytest.raises(EgressRefused):
        _requested(company)
    assert hub.requests == []


def test_a_hub_that_does_not_answer_is_named(
    company: Company, hub: LocalHub, settings: Settings
) -> None:
    settings.NINEFOLD_EGRESS = EgressPolicy.parse(
        allow=["127.0.0.1"], deny=[], schemes=["http"], ports=[1]
    )
    settings.NINEFOLD_HUBS = {"huggingface": HubAccess(address="http://127.0.0.1:1")}
    with pytest.raises(HubUnreachable, match="cannot be reached"):
        _requested(company)


def test_an_import_beyond_the_quota_is_not_started(company: Company, hub: LocalHub) -> None:
    StorageQuota.objects.create(team=company.team, limit=MIB)
    with pytest.raises(StorageQuotaExceeded):
        _requested(company)
    assert not HubImport.objects.exists()


def test_running_imports_count_towards_the_quota(company: Company, hub: LocalHub) -> None:
    StorageQuota.objects.create(team=company.team, limit=5 * MIB)
    _requested(company)
    with pytest.raises(StorageQuotaExceeded):
        _requested(company)


def test_partial_downloads_of_old_failed_imports_are_removed(
    company: Company, hub: LocalHub
) -> None:
    version = _requested(company)
    row = due_hub_imports(at=timezone.now()).get()
    pieces = 0

    def cancel() -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 2:
            hub_import_cancel(version=version, actor=company.engineer, at=timezone.now())

    hub_imports.hub_import_fetch(row, at=timezone.now(), on_progress=cancel)
    folder = partial_downloads_folder() / version.uid
    _turn()
    assert folder.exists(), "it may be tried again"
    _turn(later=PARTIAL_DOWNLOAD_RETENTION + timedelta(hours=1))
    assert not folder.exists()
