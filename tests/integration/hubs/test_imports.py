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
from apps.models.reconcilers import hub_imports_turn, models_import
from apps.models.selectors import artifact_store, hubs
from apps.models.selectors.hubs import hub_place
from apps.models.selectors.storage import digests_referenced
from apps.models.services import hub_imports
from apps.models.services.hub_imports import (
    KEEP_PARTS,
    PAUSES,
    hub_import_cancel,
    hub_import_request,
    hub_look_up,
)
from apps.models.services.versions import model_version_retry
from config.settings.outbound import HubAccess
from controlplane.domain.common.resources import MIB
from controlplane.domain.hubs import HubRefused
from controlplane.domain.models import ModelState
from controlplane.domain.outbound.egress import EgressPolicy, EgressRefused
from controlplane.domain.storage.usage import StorageQuotaExceeded
from controlplane.ports.hubs import HubUnreachable
from tests.hubs import COMMIT, LocalHub, local_hub
from tests.integration.company import Company, model_contents, safetensors

pytestmark = pytest.mark.django_db(transaction=True)
REPOSITORY = "Maker/Small-Model"


def _large(size: int) -> bytes:
    """Weights that need several pieces: a valid header, and bytes that it does not count."""
    return safetensors(embed=(8, 4)) + bytes(range(256)) * (size // 256)


@pytest.fixture
def hub(settings: Settings, tmp_path: Path) -> Iterator[LocalHub]:
    with local_hub() as found:
        found.repositories[REPOSITORY] = {
            **model_contents(),
            "model.safetensors": _large(3 * MIB),
            "tokenizer.json": json.dumps({"model": {}}).encode(),
            "pytorch_model.bin": b"code",
            "modeling.py": b"code",
            "original/params.safetensors": safetensors(other=(2, 2)),
        }
        settings.NINEFOLD_HOME = tmp_path
        settings.NINEFOLD_EGRESS = EgressPolicy.parse(
            allow=["127.0.0.1"], deny=[], schemes=["http"], ports=[found.port]
        )
        settings.NINEFOLD_HUBS = {
            "huggingface": HubAccess(address=found.url),
            "modelscope": HubAccess(address=found.url),
        }
        yield found


def _requested(company: Company, hub: str = "huggingface") -> ModelVersion:
    revision = hub_place(hub).hub.default_revision
    return hub_import_request(
        actor=company.engineer,
        team=company.team,
        name="small",
        found=hub_look_up(hub=hub, repository=REPOSITORY, revision=revision),
    )


def _turn(*, later: timedelta = timedelta()) -> int:
    return hub_imports_turn(at=timezone.now() + later)


@pytest.mark.parametrize("name", ["huggingface", "modelscope"])
def test_a_repository_becomes_a_version_with_the_files_that_are_wanted(
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
    assert not hubs.parts_folder().joinpath(version.uid).exists()


def test_what_would_come_is_told_before_anything_is_fetched(
    company: Company, hub: LocalHub
) -> None:
    found = hub_look_up(hub="huggingface", repository=REPOSITORY, revision="main")
    assert [file.path for file in found.listing.files] == [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
    ]
    assert hub.sent == 0
    assert not HubImport.objects.exists()


def test_a_cut_line_costs_one_piece_and_is_tried_again_later(
    company: Company, hub: LocalHub
) -> None:
    version = _requested(company)
    hub.cuts = 1
    assert _turn() == 0
    row = HubImport.objects.get(version=version)
    assert row.failures == 1
    assert "connection broke" in row.trouble or "no whole answer" in row.trouble
    assert _turn() == 0, "its time has not come"
    assert _turn(later=PAUSES[0]) == 1
    row.refresh_from_db()
    assert (row.failures, row.trouble) == (0, "")
    assert hub.sent == row.size, "no byte came twice"


def test_a_worker_that_dies_between_pieces_costs_nothing_that_has_arrived(
    company: Company, hub: LocalHub
) -> None:
    version = _requested(company)

    class Killed(BaseException):
        pass

    pieces = 0

    def die_after_two() -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 3:
            raise Killed

    row = hubs.imports_due(at=timezone.now()).get()
    with pytest.raises(Killed):
        hub_imports.hub_import_turn(row, at=timezone.now(), progressed=die_after_two)
    before = hub.sent
    assert 0 < before < row.size
    assert _turn() == 1
    version.refresh_from_db()
    assert version.state == ModelState.READY
    assert hub.sent == row.size


def test_bytes_that_are_here_already_are_not_fetched_again(company: Company, hub: LocalHub) -> None:
    _requested(company)
    assert _turn() == 1
    before = hub.sent
    version = _requested(company)
    assert hub_look_up(hub="huggingface", repository=REPOSITORY, revision="main").here > 3 * MIB
    assert _turn() == 1
    row = HubImport.objects.get(version=version)
    assert row.spared > 3 * MIB
    assert hub.sent - before == row.size - row.spared


def test_garbage_collection_spares_what_has_arrived_of_an_import(
    company: Company, hub: LocalHub
) -> None:
    version = _requested(company)
    hub.store_status = 503
    assert _turn() == 0
    hub.store_status = 200
    row = HubImport.objects.get(version=version)
    content = hub.repositories[REPOSITORY]["config.json"]
    blob = artifact_store().put([content])
    HubImport.objects.filter(pk=row.pk).update(stored=[["config.json", blob.digest, blob.size]])
    assert blob.digest in set(digests_referenced())


def test_a_damaged_file_is_never_kept(company: Company, hub: LocalHub) -> None:
    version = _requested(company)
    good = hub.repositories[REPOSITORY]["model.safetensors"]
    hub.damaged["model.safetensors"] = good[:-1] + b"?"
    assert _turn() == 0
    version.refresh_from_db()
    assert version.state == ModelState.FAILED
    last = version.transitions.last()
    assert last is not None
    assert "model.safetensors arrived damaged" in last.reason
    hub.damaged.clear()
    model_version_retry(version=version, actor=company.engineer, at=timezone.now())
    assert _turn() == 1
    version.refresh_from_db()
    assert version.state == ModelState.READY


def test_a_hub_that_stays_away_ends_the_import_after_all_pauses(
    company: Company, hub: LocalHub
) -> None:
    version = _requested(company)
    hub.store_status = 503
    for _ in range(len(PAUSES) + 1):
        assert _turn(later=timedelta(days=1)) == 0
        HubImport.objects.filter(version=version).update(retry_at=None)
    version.refresh_from_db()
    assert version.state == ModelState.FAILED
    last = version.transitions.last()
    assert last is not None
    assert "503" in last.reason
    assert "tried 7 times" in last.reason


def test_a_cancelled_import_stops_and_can_go_on(company: Company, hub: LocalHub) -> None:
    version = _requested(company)
    row = hubs.imports_due(at=timezone.now()).get()
    pieces = 0

    def cancel() -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 2:
            hub_import_cancel(version=version, actor=company.engineer, at=timezone.now())

    assert not hub_imports.hub_import_turn(row, at=timezone.now(), progressed=cancel)
    version.refresh_from_db()
    assert version.state == ModelState.FAILED
    assert hub.sent < row.size
    assert _turn() == 0
    model_version_retry(version=version, actor=company.engineer, at=timezone.now())
    assert _turn() == 1
    assert hub.sent == row.size


def test_the_import_of_folders_leaves_versions_of_hubs_alone(
    company: Company, hub: LocalHub
) -> None:
    version = _requested(company)
    assert models_import(at=timezone.now()) == 0
    version.refresh_from_db()
    assert version.state == ModelState.IMPORTING


def test_a_token_goes_to_the_hub_and_not_to_where_it_redirects(
    company: Company, hub: LocalHub, settings: Settings
) -> None:
    hub.token = "s3cret"
    with pytest.raises(HubRefused, match="does not let us read"):
        _requested(company)
    settings.NINEFOLD_HUBS = {"huggingface": HubAccess(address=hub.url, token="s3cret")}
    _requested(company)
    assert _turn() == 1


@pytest.mark.parametrize(
    ("repository", "revision", "words"),
    [
        ("no-owner", "main", "a repository is owner/name"),
        ("a/../b", "main", "a repository is owner/name"),
        (REPOSITORY, "main branch", "a revision is a branch"),
        ("Maker/Nothing", "main", "knows no Maker/Nothing at main"),
        (REPOSITORY, "v9", "knows no Maker/Small-Model at v9"),
    ],
)
def test_what_does_not_exist_is_refused_by_name(
    company: Company, hub: LocalHub, repository: str, revision: str, words: str
) -> None:
    with pytest.raises(HubRefused, match=words):
        hub_look_up(hub="huggingface", repository=repository, revision=revision)


def test_a_repository_without_safetensors_is_refused_before_anything_is_fetched(
    company: Company, hub: LocalHub
) -> None:
    del hub.repositories[REPOSITORY]["model.safetensors"]
    del hub.repositories[REPOSITORY]["original/params.safetensors"]
    with pytest.raises(HubRefused, match=r"no \.safetensors weights"):
        _requested(company)
    assert hub.sent == 0


def test_an_address_that_the_policy_forbids_is_not_called(
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


def test_more_than_the_team_may_store_is_not_begun(company: Company, hub: LocalHub) -> None:
    StorageQuota.objects.create(team=company.team, limit=MIB)
    with pytest.raises(StorageQuotaExceeded):
        _requested(company)
    assert not HubImport.objects.exists()


def test_what_is_on_its_way_counts_as_stored(company: Company, hub: LocalHub) -> None:
    StorageQuota.objects.create(team=company.team, limit=5 * MIB)
    _requested(company)
    with pytest.raises(StorageQuotaExceeded):
        _requested(company)


def test_parts_of_an_import_that_failed_long_ago_are_thrown_away(
    company: Company, hub: LocalHub
) -> None:
    version = _requested(company)
    row = hubs.imports_due(at=timezone.now()).get()
    pieces = 0

    def cancel() -> None:
        nonlocal pieces
        pieces += 1
        if pieces == 2:
            hub_import_cancel(version=version, actor=company.engineer, at=timezone.now())

    hub_imports.hub_import_turn(row, at=timezone.now(), progressed=cancel)
    folder = hubs.parts_folder() / version.uid
    _turn()
    assert folder.exists(), "it may be tried again"
    _turn(later=KEEP_PARTS + timedelta(hours=1))
    assert not folder.exists()
