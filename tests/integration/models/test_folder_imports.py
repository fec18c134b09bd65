"""Folders that become models, and folders that must not."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from datetime import timedelta
from pathlib import Path

import pytest
from django.utils import timezone
from pytest_django import Settings

from apps.accounts.models import AuditEntry
from apps.models import reconcilers, selectors
from apps.models.models import Artifact, ModelVersion
from apps.models.services import model_versions
from apps.models.services.artifact_storage import RegistrationRefused, code_archive_name
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.registry.versions import ModelRefused, ModelState
from controlplane.persistence.models import Lease
from controlplane.ports.artifacts import Blob, StorageFull
from tests.integration.company import CONFIG, Company, safetensors, write_model
from tests.integration.threads import at_once


@pytest.fixture
def root(installation: Path, settings: Settings) -> Path:
    root = installation / "models"
    root.mkdir()
    settings.NINEFOLD_MODEL_ROOTS = [str(root)]
    return root


def register(company: Company, folder: Path, name: str = "qwen") -> ModelVersion:
    return model_versions.model_version_import(
        actor=company.engineer, team=company.team, name=name, path=str(folder)
    )


def test_a_registered_folder_is_copied_and_becomes_ready(company: Company, root: Path) -> None:
    folder = write_model(root / "qwen")
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer" / "vocab.json").write_bytes(b"{}")
    version = register(company, folder)
    assert (version.state, version.artifact, version.number) == (ModelState.IMPORTING, None, 1)
    assert version.architecture == "Qwen2ForCausalLM"

    assert reconcilers.folder_imports_reconcile(at=company.at) == 1

    version.refresh_from_db()
    assert version.state == ModelState.READY
    assert (version.parameters, version.context_length) == (64, 512)
    assert version.artifact is not None
    assert set(version.artifact.tree) == {
        "config.json",
        "model.safetensors",
        "tokenizer/vocab.json",
    }
    (move,) = version.transitions.all()
    assert (move.event, move.reason) == ("import", "files copied: 3")
    assert AuditEntry.objects.filter(action="model.import", object_uid=version.uid).exists()
    assert version in selectors.model_versions_usable(company.engineer)
    assert version not in selectors.model_versions_usable(company.stranger)
    assert reconcilers.folder_imports_reconcile(at=company.at) == 0


def test_what_was_copied_does_not_change_with_its_source(company: Company, root: Path) -> None:
    folder = write_model(root / "qwen")
    version = register(company, folder)
    reconcilers.folder_imports_reconcile(at=company.at)
    (folder / "config.json").write_text("{}")

    version.refresh_from_db()
    assert version.artifact is not None
    digest = version.artifact.tree["config.json"]
    with selectors.artifact_store().open(digest) as stream:
        assert stream.read() == CONFIG


def test_files_that_can_execute_code_are_not_imported(company: Company, root: Path) -> None:
    folder = write_model(root / "qwen")
    for name in ("modeling.py", "training_args.bin", "optimizer.pt"):
        (folder / name).write_bytes(b"import os")
    version = register(company, folder)

    reconcilers.folder_imports_reconcile(at=company.at)

    version.refresh_from_db()
    assert version.artifact is not None
    assert set(version.artifact.tree) == {"config.json", "model.safetensors"}


def test_remote_code_is_not_stored(company: Company, root: Path) -> None:
    folder = write_model(root / "deepseek")
    config = {**json.loads(CONFIG), "model_type": "deepseek_v3"}
    named = {**config, "auto_map": {"AutoModelForCausalLM": "modeling.DeepseekV3ForCausalLM"}}
    (folder / "config.json").write_text(json.dumps(named))
    version = register(company, folder)

    reconcilers.folder_imports_reconcile(at=company.at)

    version.refresh_from_db()
    assert version.artifact is not None
    with selectors.artifact_store().open(version.artifact.tree["config.json"]) as stream:
        assert json.load(stream) == version.config == config


def tokenizer_with_code(folder: Path) -> None:
    (folder / "tokenizer_config.json").write_text(
        '{"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", null]}}'
    )


def no_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(b"pickle")


def no_config(folder: Path) -> None:
    (folder / "config.json").unlink()


def broken_config(folder: Path) -> None:
    (folder / "config.json").write_text("{")


def deep_config(folder: Path) -> None:
    (folder / "config.json").write_text("[" * 100_000)


def huge_config(folder: Path) -> None:
    with (folder / "config.json").open("ab") as stream:
        stream.truncate(17 * 1024 * 1024)


def config_with_code(folder: Path) -> None:
    (folder / "config.json").write_text(
        '{"architectures": ["A"], "auto_map": {"AutoModel": "m.M"}}'
    )


def nameless_config(folder: Path) -> None:
    (folder / "config.json").write_text("{}")


def truncated_weights(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\x01")


def weights_with_a_boundless_header(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\xff" * 64)


def weights_without_shapes(folder: Path) -> None:
    (folder / "model.safetensors").write_bytes(b"\x02" + b"\0" * 7 + b"[]")


def link_that_leaves(folder: Path) -> None:
    (folder / "passwd.json").symlink_to("/etc/passwd")


def weights_that_leave(folder: Path) -> None:
    outside = folder.parent.parent / "elsewhere.safetensors"
    outside.write_bytes(safetensors(w=(1,)))
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").symlink_to(outside)


def a_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe.json")


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (no_weights, r"no \.safetensors weights .*; pytorch_model\.bin can run code"),
        (no_config, r"no config\.json"),
        (broken_config, r"config\.json is not valid JSON"),
        (deep_config, r"config\.json is nested too deeply"),
        (huge_config, r"config\.json is larger than 16(\.0)? MiB"),
        (config_with_code, "config.json requires custom code"),
        (tokenizer_with_code, "tokenizer_config.json requires custom code"),
        (nameless_config, "must name the architecture"),
        (truncated_weights, r"model\.safetensors is not a safetensors file"),
        (weights_with_a_boundless_header, r"model\.safetensors is not a safetensors file"),
        (weights_without_shapes, r"the header of model\.safetensors has no tensor shapes"),
        (link_that_leaves, r"passwd\.json is a link to a target outside the folder"),
        (weights_that_leave, r"model\.safetensors is a link to a target outside the folder"),
        (a_pipe, r"pipe\.json is not a regular file"),
    ],
)
def test_a_folder_that_is_no_safe_model_is_refused_at_once_and_after_a_change(
    company: Company, root: Path, spoil: Callable[[Path], None], message: str
) -> None:
    folder = write_model(root / "qwen")
    version = register(company, folder)
    spoil(folder)

    with pytest.raises(ModelRefused, match=message):
        register(company, folder)
    assert reconcilers.folder_imports_reconcile(at=company.at) == 0

    version.refresh_from_db()
    assert (version.state, version.artifact) == (ModelState.FAILED, None)
    assert version.transitions.get().event == "fail"
    assert ModelVersion.objects.filter(line__name="qwen").count() == 1


def test_only_folders_under_the_model_roots_can_be_registered(company: Company, root: Path) -> None:
    outside = write_model(root.parent / "secret")
    (root / "link").symlink_to(outside)

    for path in (outside, root / ".." / "secret", root / "link"):
        with pytest.raises(ModelRefused, match="is outside the model roots"):
            register(company, path)
    with pytest.raises(ModelRefused, match="is not a folder"):
        register(company, root / "absent")
    with pytest.raises(ModelRefused, match="contains a NUL character"):
        register(company, root / "a\0b")


def test_a_sibling_folder_with_the_same_prefix_is_outside_the_root(
    company: Company, root: Path
) -> None:
    neighbour = write_model(root.parent / "models-of-others" / "qwen")

    with pytest.raises(ModelRefused, match="is outside the model roots"):
        register(company, neighbour)


def test_without_model_roots_nothing_can_be_registered(
    company: Company, root: Path, settings: Settings
) -> None:
    folder = write_model(root / "qwen")
    settings.NINEFOLD_MODEL_ROOTS = []

    with pytest.raises(ModelRefused, match="NINEFOLD_MODEL_ROOTS"):
        register(company, folder)


def test_a_full_disk_fails_the_import_which_can_be_retried(
    company: Company, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = register(company, write_model(root / "qwen"))
    store = selectors.artifact_store()

    def full(*args: object, **kwargs: object) -> None:
        raise StorageFull("no space is left on the device")

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", full)
        assert reconcilers.folder_imports_reconcile(at=company.at) == 0
    version.refresh_from_db()
    assert version.state == ModelState.FAILED
    assert version.transitions.get().reason == "no space is left on the device"

    model_versions.model_version_retry(version=version, actor=company.engineer, at=company.at)
    assert reconcilers.folder_imports_reconcile(at=company.at) == 1
    version.refresh_from_db()
    assert version.state == ModelState.READY
    with pytest.raises(IllegalTransition, match="a model version that is ready cannot retry"):
        model_versions.model_version_retry(version=version, actor=company.engineer, at=company.at)


def test_concurrent_imports_number_versions_without_gaps(
    committed_company: Company, root: Path
) -> None:
    company = committed_company
    folder = write_model(root / "qwen")

    outcomes = at_once(*[lambda: register(company, folder) for _ in range(5)])

    numbers = [one.number for one in outcomes if isinstance(one, ModelVersion)]
    assert sorted(numbers) == [1, 2, 3, 4, 5]


def test_two_concurrent_controllers_copy_a_model_once(
    committed_company: Company, root: Path
) -> None:
    company = committed_company
    version = register(company, write_model(root / "qwen"))

    def turn() -> int:
        return reconcilers.folder_imports_reconcile(at=company.at)

    outcomes = at_once(turn, turn, turn)

    assert sum(one for one in outcomes if isinstance(one, int)) == 1
    assert version.transitions.count() == 1
    assert Artifact.objects.filter(modelversion=version).count() == 1


def test_a_long_copy_keeps_its_lease(
    company: Company, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcilers, "RENEW_EVERY", timedelta())
    version = register(company, write_model(root / "qwen"))
    ends: set[object] = set()
    store = selectors.artifact_store()
    put = store.put

    def slow_put(pieces: Iterable[bytes]) -> Blob:
        Lease.objects.update(expires_at=timezone.now() + timedelta(seconds=5))
        blob: Blob = put(pieces)
        ends.add(Lease.objects.get().expires_at > timezone.now() + timedelta(seconds=60))
        return blob

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", slow_put)
        assert reconcilers.folder_imports_reconcile(at=company.at) == 1

    assert ends == {True}
    version.refresh_from_db()
    assert version.state == ModelState.READY


def test_a_copy_that_lost_its_lease_leaves_the_version_to_its_successor(
    company: Company, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reconcilers, "RENEW_EVERY", timedelta())
    version = register(company, write_model(root / "qwen"))
    store = selectors.artifact_store()
    put = store.put

    def overtaken_put(pieces: Iterable[bytes]) -> Blob:
        Lease.objects.update(token=99)
        blob: Blob = put(pieces)
        return blob

    with monkeypatch.context() as patch:
        patch.setattr(store, "put", overtaken_put)
        assert reconcilers.folder_imports_reconcile(at=company.at) == 0

    version.refresh_from_db()
    assert version.state == ModelState.IMPORTING
    Lease.objects.update(expires_at=timezone.now())
    assert reconcilers.folder_imports_reconcile(at=company.at) == 1


def test_importable_folders_are_those_with_a_configuration(company: Company, root: Path) -> None:
    write_model(root / "b")
    write_model(root / "a")
    (root / "empty").mkdir()

    assert selectors.importable_folders() == [
        {"name": "a", "path": str(root / "a")},
        {"name": "b", "path": str(root / "b")},
    ]


@pytest.mark.parametrize(
    ("filename", "stored_name"),
    [
        ("Code.TAR.GZ", "code.tar.gz"),
        ("x.tgz", "code.tar.gz"),
        ("a.tar", "code.tar"),
        ("../../a.zip", "code.zip"),
    ],
)
def test_an_archive_is_stored_under_a_standard_name(filename: str, stored_name: str) -> None:
    assert code_archive_name(filename) == stored_name


def test_a_file_that_is_no_archive_is_refused() -> None:
    with pytest.raises(
        RegistrationRefused, match=r"'run\.sh' is not a supported archive; upload \.tar\.gz"
    ):
        code_archive_name("run.sh")
