"""Which entry a model is of: by name first, else by figures that fit one entry only."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.domain.architectures import Architecture, read
from controlplane.domain.catalog import Entry
from controlplane.domain.catalog.matching import match
from tests.unit.domain.catalog.values import entry

FIGURES: dict[str, Any] = {
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
    **FIGURES,
)
OTHER = entry("other", hf_repo="Maker/Other", **(FIGURES | {"layers": 12}))


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
    return read({**config, **changes})


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
def test_a_model_is_known_by_its_repository_or_folder(name: str) -> None:
    assert match([OTHER, INSTRUCT], names=[name], built=None) is INSTRUCT


def test_somebody_elses_repository_of_that_name_is_not_the_entry() -> None:
    assert match([INSTRUCT], names=["somebody/Qwen2-7B-Instruct"], built=None) is None


def test_the_name_goes_before_the_figures_so_that_a_difference_shows() -> None:
    found = match([OTHER, INSTRUCT], names=["Maker/Other"], built=built())
    assert found is OTHER


def test_without_a_name_figures_decide_where_they_fit_one_entry_only() -> None:
    assert match([OTHER, INSTRUCT], names=["my-model"], built=built()) is INSTRUCT
    twin = entry("qwen2-7b", **FIGURES)
    assert match([INSTRUCT, twin], names=["my-model"], built=built()) is None


@pytest.mark.parametrize(
    "change", [{"num_hidden_layers": 27}, {"num_key_value_heads": 28}, {"intermediate_size": 18000}]
)
def test_one_figure_that_differs_is_another_model(change: dict[str, int]) -> None:
    assert match([INSTRUCT], names=[], built=built(**change)) is None


def test_an_entry_that_leaves_a_figure_open_is_not_recognised_by_figures() -> None:
    vague: Entry = entry("vague", **(FIGURES | {"intermediate": None}))
    assert match([vague], names=[""], built=built()) is None
