"""Which entry a model is of: by name first, else by figures that fit one entry only."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.domain.architectures import Architecture, parse_architecture
from controlplane.domain.catalog import CatalogEntry
from controlplane.domain.catalog.entries import match_entry
from tests.unit.domain.catalog.entry_factory import entry

ARCHITECTURE: dict[str, Any] = {
    "layers": 28,
    "hidden": 3584,
    "heads": 28,
    "kv_heads": 4,
    "intermediate": 18944,
    "parameters": 7_620_000_000,
}
INSTRUCT = entry(
    "qwen2-7b-instruct",
    hf_repo="Qwen/Qwen2-7B-Instruct",
    modelscope_id="qwen/Qwen2-7B-Instruct",
    **ARCHITECTURE,
)
OTHER = entry("other", hf_repo="Maker/Other", **(ARCHITECTURE | {"layers": 12}))


def built(**changes: Any) -> Architecture:
    config = {
        "architectures": ["Qwen2ForCausalLM"],
        "num_hidden_layers": 28,
        "hidden_size": 3584,
        "num_attention_heads": 28,
        "num_key_value_heads": 4,
        "intermediate_size": 18944,
        "vocab_size": 152064,
        "max_position_embeddings": 32768,
    }
    return parse_architecture({**config, **changes})


@pytest.mark.parametrize(
    "name",
    [
        "Qwen/Qwen2-7B-Instruct",
        "qwen/qwen2-7b-instruct",
        "Qwen2-7B-Instruct",
        "qwen2-7b-instruct/",
        "/models/hub/Qwen2-7B-Instruct",
    ],
)
def test_a_model_is_matched_by_its_repository_or_folder(name: str) -> None:
    assert match_entry([OTHER, INSTRUCT], names=[name], built=None) is INSTRUCT


def test_a_repository_of_another_owner_does_not_match() -> None:
    assert match_entry([INSTRUCT], names=["somebody/Qwen2-7B-Instruct"], built=None) is None


def test_the_name_takes_precedence_over_the_architecture() -> None:
    found = match_entry([OTHER, INSTRUCT], names=["Maker/Other"], built=built())
    assert found is OTHER


def test_without_a_name_a_unique_architecture_decides() -> None:
    assert match_entry([OTHER, INSTRUCT], names=["my-model"], built=built()) is INSTRUCT
    twin = entry("qwen2-7b", **ARCHITECTURE)
    assert match_entry([INSTRUCT, twin], names=["my-model"], built=built()) is None


@pytest.mark.parametrize(
    "change", [{"num_hidden_layers": 27}, {"num_key_value_heads": 28}, {"intermediate_size": 18000}]
)
def test_one_different_value_does_not_match(change: dict[str, int]) -> None:
    assert match_entry([INSTRUCT], names=[], built=built(**change)) is None


def test_an_entry_with_an_unknown_value_is_not_matched_by_architecture() -> None:
    vague: CatalogEntry = entry("vague", **(ARCHITECTURE | {"intermediate": None}))
    assert match_entry([vague], names=[""], built=built()) is None
