"""The catalog that this release ships: whole, true to where it was taken from, and what it promises."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

from controlplane.domain.architectures import ConfigRefused, architecture_from_catalog
from controlplane.domain.catalog import (
    CatalogEntry,
    CatalogTask,
    Modality,
    SupportCaveat,
    SupportLevel,
)
from controlplane.domain.catalog.entries import architecture_facts
from controlplane.domain.catalog.parsing import Catalog, read_catalog

ROOT = Path(__file__).resolve().parents[4]
DATA = ROOT / "platform" / "controlplane" / "catalog"
TAKEN_FROM = ROOT.parent / "shared" / "data" / "catalog.yaml"
CHIP_KINDS = {"nvidia": "GPU", "ascend": "NPU"}
#: Our names of engines that are called otherwise where the facts were taken from.
NAMES = {
    "llama-factory": "llamafactory",
    "ms-swift": "ms_swift",
    "mindspeed-llm": "mindspeed_llm",
    "mindspeed-mm": "mindspeed_mm",
    "diffsynth-studio": "diffsynth_studio",
    "FunASR": "funasr",
    "FlagEmbedding": "flag_embedding",
}
#: Our figures → theirs.
DIMENSIONS = {
    "layers": "layers",
    "hidden": "hidden_size",
    "heads": "attention_heads",
    "kv_heads": "kv_heads",
    "head_dim": "head_dim",
    "intermediate": "intermediate_size",
    "context_length": "context_length",
    "context_extended": "context_length_extended",
    "kv_bytes_per_token": "kv_cache_bytes_per_token_16bit",
}
#: Entries with a source of their own, which are not in that collection.
ADDED = frozenset(
    {"qwen3-tts-1.7b-customvoice", "qwen3-tts-1.7b-voicedesign", "qwen3-tts-1.7b-base"}
)
#: Of cells and facts that the collection lacks or has otherwise: the tables of models of vLLM-Omni and of Text
#: Embeddings Inference, and the product's own tests.
ADDED_SOURCES = frozenset({"S13", "S14", "S15"})
CORRECTED: dict[str, dict[str, Any]] = {
    "sdxl-base-1.0": {"components": {"pipeline": "StableDiffusionXLPipeline"}},
    **{
        f"wan{name.lower()}": {
            "hf_repo": f"Wan-AI/Wan{name}-Diffusers",
            "modelscope_id": f"Wan-AI/Wan{name}-Diffusers",
            "confidence": {"ids": "medium"},
        }
        for name in ("2.1-T2V-1.3B", "2.1-T2V-14B", "2.2-T2V-A14B")
    },
}
#: What the tests of the product's own server serve: the architecture and the modality.
SERVED_IN_TESTS = {
    ("BertForSequenceClassification", Modality.RERANK),
    ("BertModel", Modality.EMBEDDING),
    ("LlavaForConditionalGeneration", Modality.VLM),
    ("Qwen2ForCausalLM", Modality.LLM),
    ("WhisperForConditionalGeneration", Modality.ASR),
}
TEXTS = {
    "title": "display_name",
    "family": "family",
    "architecture": "architecture",
    "attention": "attention",
    "dtype": "dtype",
    "licence": "license",
    "hf_repo": "hf_repo",
    "modelscope_id": "modelscope_id",
}


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return read_catalog({file.name: file.read_text() for file in DATA.glob("*.toml")})


@pytest.fixture(scope="module")
def origin() -> dict[str, dict[str, Any]]:
    if not TAKEN_FROM.exists():
        pytest.skip("the collection of facts that the catalog was taken from is not here")
    yaml = pytest.importorskip("yaml")
    document = yaml.load(TAKEN_FROM.read_text(encoding="utf-8"), Loader=yaml.CSafeLoader)
    return {model["id"]: model for model in document["models"]}


def collected_entries(catalog: Catalog) -> dict[str, CatalogEntry]:
    """The entries that were taken from the collection."""
    return {key: entry for key, entry in catalog.entries.items() if key not in ADDED}


def engines_of_this_release() -> frozenset[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return frozenset(project["entry-points"]["ninefold.engines"])


def test_all_entries_are_there(catalog: Catalog) -> None:
    assert len(catalog.entries) == 169


def on_both(entries: Iterable[CatalogEntry], task: CatalogTask) -> list[str]:
    """Keys of those that a source supports on a GPU and on an NPU, by engines of this release."""
    engines = engines_of_this_release()
    return [
        entry.key
        for entry in entries
        if all(
            any(
                claim.status is SupportLevel.SUPPORTED
                for claim in entry.claims(task, vendor=vendor, engines=engines)
            )
            for vendor in CHIP_KINDS
        )
    ]


def test_sources_name_forty_models_as_trainable_on_both_kinds_of_chips(catalog: Catalog) -> None:
    assert len(on_both(catalog.entries.values(), CatalogTask.TRAIN)) >= 40


def test_sources_name_twenty_models_as_deployable_on_both_kinds_of_chips(catalog: Catalog) -> None:
    assert len(on_both(catalog.entries.values(), CatalogTask.SERVE)) >= 20


def test_every_language_model_but_one_can_be_sized(catalog: Catalog) -> None:
    unsized = []
    for entry in catalog.entries.values():
        if entry.modality is Modality.LLM:
            try:
                architecture_from_catalog(architecture_facts(entry))
            except ConfigRefused:
                unsized.append(entry.key)
    assert unsized == ["joyai-llm-flash"]


def test_the_kv_cache_follows_from_the_other_figures(catalog: Catalog) -> None:
    for entry in catalog.entries.values():
        if entry.mla or not entry.kv_bytes_per_token or not entry.attention.isalpha():
            continue
        dimensions = (entry.layers, entry.kv_heads, entry.head_dim)
        known = [dimension for dimension in dimensions if dimension is not None]
        assert entry.kv_bytes_per_token == 4 * math.prod(known), entry.key


def test_the_catalog_speaks_of_chips_only_by_names_of_plug_ins(catalog: Catalog) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    vendors = {cell.vendor for entry in catalog.entries.values() for cell in entry.cells}
    assert vendors <= set(project["entry-points"]["ninefold.chips"])


def test_facts_are_those_that_were_collected(
    catalog: Catalog, origin: dict[str, dict[str, Any]]
) -> None:
    assert set(catalog.entries) == set(origin) | ADDED
    for key, entry in collected_entries(catalog).items():
        theirs, corrected = origin[key], CORRECTED.get(key, {})
        for name, other in DIMENSIONS.items():
            assert getattr(entry, name) == theirs[other], f"{key}: {name}"
        for name, other in TEXTS.items():
            assert getattr(entry, name) == corrected.get(name, theirs[other] or ""), (
                f"{key}: {name}"
            )
        assert entry.modality == theirs["modality"]
        assert list(entry.tasks) == theirs["tasks"]
        assert [one for one in entry.evidence if one not in ADDED_SOURCES] == theirs["evidence"]
        assert list(entry.prequantized) == theirs["quantization"]["prequantized_repos"]
        components = theirs.get("components", {}) | corrected.get("components", {})
        assert dict(entry.components) == components
        for name in ("parameters", "active_parameters"):
            billions = theirs[name.replace("parameters", "params_b")]
            assert getattr(entry, name) == (billions and round(billions * 1e9)), f"{key}: {name}"
        for name in ("mla", "moe", "confidence"):
            known = {what: value for what, value in (theirs[name] or {}).items() if value}
            known |= corrected.get(name, {})
            ours = {what: value for what, value in (getattr(entry, name) or {}).items() if value}
            assert ours == known, f"{key}: {name}"


def test_no_claim_about_serving_is_stronger_than_the_collected_one(
    catalog: Catalog, origin: dict[str, dict[str, Any]]
) -> None:
    for key, entry in collected_entries(catalog).items():
        cells = {
            (cell.vendor, cell.engine): cell
            for cell in entry.claims(CatalogTask.SERVE)
            if ADDED_SOURCES.isdisjoint(cell.evidence)
        }
        collected = {
            (vendor, engine): status
            for vendor, engines in origin[key]["engines"].items()
            for engine, status in engines.items()
        }
        assert set(cells) == set(collected), key
        for place, status in collected.items():
            said = SupportLevel.UNKNOWN if status == "likely" else SupportLevel(status)
            assert cells[place].status.rank >= said.rank, f"{key}: {place}"


def test_unverified_claims_are_unknown(catalog: Catalog, origin: dict[str, dict[str, Any]]) -> None:
    likely = [
        (key, vendor, engine)
        for key, model in origin.items()
        for vendor, engines in model["engines"].items()
        for engine, status in engines.items()
        if status == "likely"
    ]
    assert len(likely) > 90
    for key, vendor, engine in likely:
        (cell,) = [
            cell
            for cell in catalog.entries[key].claims(CatalogTask.SERVE, vendor=vendor)
            if cell.engine == engine
        ]
        assert (cell.status, cell.caveat) == (SupportLevel.UNKNOWN, SupportCaveat.HEARSAY)


def test_training_is_claimed_as_it_was_collected(
    catalog: Catalog, origin: dict[str, dict[str, Any]]
) -> None:
    for key, entry in collected_entries(catalog).items():
        cells = {(cell.vendor, cell.engine): cell for cell in entry.claims(CatalogTask.TRAIN)}
        seen = set()
        for vendor, collected in origin[key]["training"].items():
            for toolkit in collected["toolkits"]:
                name, _, mark = toolkit.partition("(")
                place = (vendor, NAMES.get(name, name))
                seen.add(place)
                cell = cells[place]
                assert list(cell.methods) == collected["methods"], f"{key}: {place}"
                older = mark[:1] == "v" and mark[1:2].isdigit()
                assert cell.status is not SupportLevel.SUPPORTED or not older, f"{key}: {place}"
                assert cell.status is SupportLevel.UNKNOWN or not older or cell.versions
        assert seen == set(cells), key


def test_the_own_server_is_claimed_for_what_its_tests_serve_only(catalog: Catalog) -> None:
    """On CPU, where they run, and by architecture, because they serve no published weights."""
    claimed, served = set(), set()
    for key, entry in catalog.entries.items():
        if (entry.architecture, entry.modality) in SERVED_IN_TESTS:
            served.add(key)
        for cell in entry.claims(CatalogTask.SERVE):
            if cell.engine != "transformers":
                continue
            claimed.add(key)
            assert cell.vendor == "cpu", key
            assert cell.status is SupportLevel.EXPERIMENTAL, key
            assert cell.evidence == ("S15",), key
            assert cell.caveat is SupportCaveat.ARCHITECTURE, key
    assert claimed == served
    built = "".join(
        (ROOT / file).read_text(encoding="utf-8")
        for file in (
            "tests/engine/build_served_models.py",
            "platform/ninefold_runtime/samples/tiny_models.py",
        )
    )
    assert [name for name, _ in sorted(SERVED_IN_TESTS) if name not in built] == []


def test_every_engine_without_a_plug_in_has_its_reason_in_the_decision(catalog: Catalog) -> None:
    decision = (ROOT / "docs" / "decisions" / "0024-model-catalog.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in decision.splitlines() if line.startswith("| `")]
    explained = [name.strip(" `") for row in rows for name in row.split(",")]
    named = {cell.engine for entry in catalog.entries.values() for cell in entry.cells}
    assert sorted(explained) == sorted(named - engines_of_this_release())
    assert named <= set(catalog.engines)


def test_schemes_that_follow_from_layers_only_are_no_support(catalog: Catalog) -> None:
    generic = [
        cell
        for entry in catalog.entries.values()
        for cell in entry.claims(CatalogTask.QUANTIZE, vendor="nvidia")
    ]
    assert len(generic) > 100
    assert {cell.status for cell in generic} == {SupportLevel.UNKNOWN}


def test_schemes_on_npus_are_those_that_were_verified(
    catalog: Catalog, origin: dict[str, dict[str, Any]]
) -> None:
    for key, entry in collected_entries(catalog).items():
        schemes = [
            scheme
            for cell in entry.claims(CatalogTask.QUANTIZE, vendor="ascend")
            for scheme in cell.methods
        ]
        assert schemes == origin[key]["quantization"]["ascend"], key
