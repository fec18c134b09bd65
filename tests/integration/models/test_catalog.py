"""The catalog's rows follow the data, and versions find the entry that they are of."""

from __future__ import annotations

import json
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db.models import ProtectedError
from django.utils import timezone
from pytest_django import Settings

from apps.models import reconcilers
from apps.models.models import CatalogCell, CatalogModel, ModelVersion
from apps.models.selectors import catalog as selectors
from apps.models.selectors import (
    engine_model_facts,
    served_model_facts,
)
from apps.models.services import model_versions
from apps.models.services.catalog import CatalogLoadChanges, catalog_load
from apps.models.services.job_outputs import OutputOrigin, model_version_register
from controlplane.domain.catalog import CatalogEntry, SupportLevel
from controlplane.domain.catalog.parsing import Catalog
from controlplane.domain.registry.versions import ModelState
from tests.integration.company import Company, model_contents, safetensors, stored

pytestmark = pytest.mark.django_db
QWEN = {
    "architectures": ["Qwen2ForCausalLM"],
    "model_type": "qwen2",
    "num_hidden_layers": 28,
    "hidden_size": 3584,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "intermediate_size": 18944,
    "vocab_size": 152064,
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
}


def load(catalog: Catalog | None = None) -> CatalogLoadChanges:
    return catalog_load(catalog=catalog or selectors.published_catalog(), at=timezone.now())


def changed(**entries: CatalogEntry | None) -> Catalog:
    """The published catalog with some entries replaced, by key with ``_`` for ``-`` and ``.``; None drops one."""
    catalog = selectors.published_catalog()
    left = dict(catalog.entries)
    for key in catalog.entries:
        name = key.replace("-", "_").replace(".", "_")
        if name in entries:
            new = entries[name]
            if new is None:
                del left[key]
            else:
                left[key] = new
    return replace(catalog, entries=left)


@pytest.fixture
def root(installation: Path, settings: Settings) -> Path:
    root = installation / "models"
    root.mkdir()
    settings.NINEFOLD_MODEL_ROOTS = [str(root)]
    return root


def write(folder: Path, config: dict[str, Any], *, parameters: int = 7_620_000_000) -> Path:
    """A folder that can be registered, with so many parameters by the header of its weights alone."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "model.safetensors").write_bytes(safetensors(w=(parameters // 10_000, 10_000)))
    return folder


def imported(company: Company, folder: Path) -> ModelVersion:
    version = model_versions.model_version_import(
        actor=company.engineer, team=company.team, name="ours", path=str(folder)
    )
    assert reconcilers.folder_imports_reconcile(at=company.at) == 1
    version.refresh_from_db()
    assert version.state == ModelState.READY
    return version


def test_loaded_rows_equal_the_data_files() -> None:
    diff = load()
    assert len(diff.added) == 169
    assert selectors.catalog_snapshot().entries == selectors.published_catalog().entries


def test_a_second_load_changes_nothing() -> None:
    load()
    cells = set(CatalogCell.objects.values_list("pk", flat=True))
    diff = load()
    assert (diff.added, dict(diff.changed), diff.withdrawn, diff.returned) == ((), {}, (), ())
    assert diff.unchanged == 169
    assert set(CatalogCell.objects.values_list("pk", flat=True)) == cells


def test_the_command_prints_what_changed() -> None:
    output = StringIO()
    call_command("catalog_load", stdout=output)
    assert "169 added, 0 changed, 0 withdrawn" in output.getvalue()
    again = StringIO()
    call_command("catalog_load", stdout=again)
    assert again.getvalue().splitlines() == [
        "0 added, 0 changed, 0 withdrawn, 0 returned, 169 unchanged; 0 versions linked"
    ]


def test_changes_are_reported_by_field_and_cell_and_visible_immediately() -> None:
    load()
    old = selectors.published_catalog().entries["qwen3-8b"]
    first = old.cells[0]
    weaker = replace(first, status=SupportLevel.UNKNOWN, evidence=())
    new = replace(old, layers=35, cells=(weaker, *old.cells[1:]))
    diff = load(changed(qwen3_8b=new))
    assert list(diff.changed) == ["qwen3-8b"]
    by_name = {change.what: (change.before, change.after) for change in diff.changed["qwen3-8b"]}
    assert by_name["layers"] == (36, 35)
    cell = f"{first.task}/{first.vendor}/{first.engine}"
    assert by_name[cell][0].startswith("supported")
    assert by_name[cell][1].startswith("unknown")
    assert "~ qwen3-8b: layers: 36 → 35" in diff.lines()
    assert selectors.catalog_snapshot().entries["qwen3-8b"] == new


def test_missing_entries_are_withdrawn_and_can_return() -> None:
    load()
    diff = load(changed(qwen3_8b=None))
    assert diff.withdrawn == ("qwen3-8b",)
    assert "qwen3-8b" not in selectors.catalog_snapshot().entries
    found = selectors.catalog_entry("qwen3-8b")
    assert found is not None
    assert found[1] is True
    assert load(changed(qwen3_8b=None)).withdrawn == ()
    assert load().returned == ("qwen3-8b",)
    assert "qwen3-8b" in selectors.catalog_snapshot().entries


def test_an_entry_that_versions_refer_to_cannot_be_deleted(company: Company) -> None:
    load()
    row = CatalogModel.objects.get(key="qwen3-8b")
    ModelVersion.objects.filter(pk=company.model.pk).update(catalog_model=row)
    with pytest.raises(ProtectedError):
        row.delete()


def test_an_imported_model_is_matched_by_its_folder_name(company: Company, root: Path) -> None:
    load()
    version = imported(company, write(root / "Qwen2-7B-Instruct", QWEN))
    assert version.catalog_model is not None
    assert version.catalog_model.key == "qwen2-7b-instruct"
    assert version.config == QWEN
    entry = selectors.catalog_snapshot().entries["qwen2-7b-instruct"]
    assert selectors.catalog_differences(version, entry=entry).contradictions == ()


def test_a_link_is_matched_by_the_name_of_the_folder_that_it_leads_to(
    company: Company, root: Path
) -> None:
    load()
    (root / "latest").symlink_to(write(root / "Qwen2-7B-Instruct", QWEN))
    version = imported(company, root / "latest")
    assert version.source_path == str(root / "latest")
    assert version.catalog_model is not None
    assert version.catalog_model.key == "qwen2-7b-instruct"


def test_each_field_that_contradicts_the_catalog_is_found(company: Company, root: Path) -> None:
    load()
    folder = write(
        root / "Qwen2-7B-Instruct", QWEN | {"num_key_value_heads": 7, "num_hidden_layers": 30}
    )
    version = imported(company, folder)
    entry = selectors.catalog_snapshot().entries["qwen2-7b-instruct"]
    found = selectors.catalog_differences(version, entry=entry).contradictions
    assert {(one.field, one.config, one.catalog) for one in found} == {
        ("layers", 30, 28),
        ("kv_heads", 7, 4),
    }


def test_a_model_without_a_known_name_is_matched_by_its_architecture(
    company: Company, root: Path
) -> None:
    load()
    dimensions = {
        "num_hidden_layers": 36,
        "hidden_size": 2048,
        "num_attention_heads": 16,
        "num_key_value_heads": 2,
        "intermediate_size": 11008,
    }
    folder = write(root / "merchant-assistant", QWEN | dimensions, parameters=3_090_000_000)
    version = imported(company, folder)
    assert version.catalog_model is not None
    assert version.catalog_model.key == "qwen2.5-3b-instruct"


def test_an_architecture_of_several_entries_matches_none(company: Company, root: Path) -> None:
    load()
    assert imported(company, write(root / "merchant-assistant", QWEN)).catalog_model is None


def test_an_unknown_model_has_no_entry(company: Company, root: Path) -> None:
    load()
    version = imported(company, write(root / "own-work", QWEN | {"num_hidden_layers": 2}))
    assert version.catalog_model is None


def test_a_later_load_links_existing_versions(company: Company, root: Path) -> None:
    version = imported(company, write(root / "Qwen2-7B-Instruct", QWEN))
    assert version.catalog_model is None
    assert load().linked == 1
    version.refresh_from_db()
    assert version.catalog_model is not None
    assert load().linked == 0


def test_a_trained_version_has_the_entry_of_its_base(company: Company) -> None:
    load()
    row = CatalogModel.objects.get(key="qwen3-8b")
    ModelVersion.objects.filter(pk=company.model.pk).update(catalog_model=row)
    company.model.refresh_from_db()
    tuned = model_version_register(
        origin=OutputOrigin(
            team=company.team, actor=company.engineer, job_uid="a" * 32, attempt_uid="b" * 32
        ),
        name="tuned",
        files=[stored(path, content) for path, content in model_contents().items()],
        base=company.model,
        dataset_version=None,
        metrics={},
    )
    assert tuned.catalog_model == row
    assert tuned.config == {"architectures": ["Qwen2ForCausalLM"], "max_position_embeddings": 512}


@pytest.mark.parametrize(
    ("quantization", "scheme", "written"),
    [
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {
                    "group_0": {
                        "weights": {"num_bits": 8, "type": "int"},
                        "input_activations": {"num_bits": 8, "type": "int"},
                    }
                },
            },
            "w8a8",
            "compressed-tensors",
        ),
        (
            {
                "quant_method": "compressed-tensors",
                "config_groups": {"group_0": {"weights": {"num_bits": 4, "type": "int"}}},
            },
            "w4a16",
            "compressed-tensors",
        ),
        ({"quant_method": "awq", "bits": 4}, "w4a16", "awq"),
        ({"quant_method": "fp8"}, "fp8", "fp8"),
    ],
)
def test_how_weights_are_quantized_is_read_on_import(
    company: Company, root: Path, quantization: dict[str, Any], scheme: str, written: str
) -> None:
    version = imported(company, write(root / "small", QWEN | {"quantization_config": quantization}))
    assert (version.scheme, version.format) == (scheme, written)


def registered(
    company: Company, *, base: ModelVersion | None = None, attempt: str, **files: bytes
) -> ModelVersion:
    """A version of the company with these files beside its weights, under a name that says nothing."""
    config = json.dumps(QWEN).encode()
    contents = {
        "config.json": config,
        "model.safetensors": safetensors(),
        **{name.replace("__", "."): content for name, content in files.items()},
    }
    return model_version_register(
        origin=OutputOrigin(
            team=company.team, actor=company.engineer, job_uid="", attempt_uid=attempt
        ),
        name="assistant",
        files=[stored(name, content) for name, content in contents.items()],
        base=base,
        dataset_version=None,
        metrics={},
    )


def test_an_engine_is_given_the_chat_template_and_the_entry_of_the_base(company: Company) -> None:
    load()
    written = json.dumps({"chat_template": "of the tokenizer", "model_max_length": 1}).encode()
    several = {"chat_template": [{"name": "default", "template": "a"}, {"template": "b"}, "no"]}
    base = registered(company, attempt="base", tokenizer_config__json=written)
    ModelVersion.objects.filter(pk=base.pk).update(
        catalog_model=CatalogModel.objects.get(key="qwen2.5-7b-instruct")
    )
    base.refresh_from_db()
    tuned = registered(
        company,
        attempt="tuned",
        base=base,
        tokenizer_config__json=written,
        chat_template__jinja=b"of its own",
    )
    listed = registered(
        company, attempt="listed", tokenizer_config__json=json.dumps(several).encode()
    )
    other = registered(company, attempt="other", tokenizer_config__json=b'{"chat_template": 7}')
    without = registered(company, attempt="without")

    found = {
        version.attempt_uid: served_model_facts(version)
        for version in (base, tuned, listed, other, without)
    }
    assert {name: facts.chat_template for name, facts in found.items()} == {
        "base": "of the tokenizer",
        "tuned": "of its own",
        "listed": "a\nb",
        "other": "",
        "without": "",
    }
    assert found["tuned"].catalog_key == "qwen2.5-7b-instruct"
    assert engine_model_facts(tuned).chat_template == "", "read only where it is needed"
    assert tuned.artifact is not None
    tuned.artifact.removed_at = timezone.now()
    assert served_model_facts(tuned).chat_template == ""
