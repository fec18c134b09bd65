"""Estimates beside the tensors that real runs allocate: not the memory of the process, which says little."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from controlplane.domain.architectures import parse_architecture
from tests.benchmarks.sizing.running import (
    REAL,
    TINY,
    Run,
    compare,
    measure,
    measure_real,
    run_requests,
)

#: ``model_type`` → what a small build of it needs beside the usual fields.
_COUNTED: Mapping[str, Mapping[str, Any]] = {
    "qwen2_moe": {
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 96,
    },
    "qwen3": {"head_dim": 32},
    "qwen3_moe": {
        "head_dim": 32,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
    },
    "qwen3_next": {
        "head_dim": 32,
        "num_experts": 4,
        "num_experts_per_tok": 2,
        "moe_intermediate_size": 64,
        "shared_expert_intermediate_size": 64,
        "linear_num_key_heads": 2,
        "linear_num_value_heads": 4,
        "linear_key_head_dim": 16,
        "linear_value_head_dim": 16,
        "linear_conv_kernel_dim": 4,
    },
    "mistral": {},
    "gemma": {"head_dim": 32},
    "gemma2": {"head_dim": 32},
    "phi3": {"pad_token_id": 0},
    "glm4": {"head_dim": 32, "attention_bias": True, "pad_token_id": 0},
    "deepseek_v2": {
        "num_key_value_heads": 4,
        "kv_lora_rank": 32,
        "q_lora_rank": None,
        "qk_rope_head_dim": 8,
        "qk_nope_head_dim": 16,
        "v_head_dim": 16,
        "n_routed_experts": 4,
        "num_experts_per_tok": 2,
        "n_shared_experts": 2,
        "moe_intermediate_size": 48,
        "first_k_dense_replace": 1,
    },
    "gpt_oss": {
        "head_dim": 32,
        "num_local_experts": 4,
        "num_experts_per_tok": 2,
        "sliding_window": 16,
        "pad_token_id": 0,
    },
    "bloom": {"n_layer": 4, "n_head": 4, "pad_token_id": 0},
    "gpt2": {"n_embd": 64, "n_layer": 4, "n_head": 4, "n_positions": 128},
}
_DEFAULTS: Mapping[str, Any] = {
    "vocab_size": 256,
    "hidden_size": 64,
    "intermediate_size": 160,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
}
_OWN_NAMES = ("bloom", "gpt2")


@pytest.fixture(scope="session")
def runs(engine_python: Path) -> list[Run]:
    """Every tiny model, trained and served; the benchmark trains in more ways."""
    return list(measure(engine_python, titles=("train, bfloat16", "LoRA", "serve")))


def test_weights_and_cache_are_within_five_percent_of_what_is_allocated(runs: list[Run]) -> None:
    assert {run.model for run in runs} == set(TINY)
    found = {(run.model, run.title): compare(run) for run in runs}
    assert {key: error.weights for key, error in found.items() if abs(error.weights) > 0.05} == {}
    assert {key: error.cache for key, error in found.items() if abs(error.cache or 0) > 0.05} == {}
    assert sum(error.cache is not None for error in found.values()) == len(TINY)


def test_the_whole_is_within_twenty_percent_of_what_is_allocated(runs: list[Run]) -> None:
    found = {(run.model, run.title): compare(run).total for run in runs}
    assert {key: error for key, error in found.items() if abs(error) > 0.2} == {}


@pytest.mark.full
def test_real_shapes_are_within_twenty_percent_of_their_peak_without_allocating_it(
    engine_python: Path,
) -> None:
    for run in measure_real(engine_python, runs=[REAL[0], *REAL[-3:]]):
        found = compare(run)
        assert abs(found.weights) < 0.001
        assert abs(found.total) < 0.2


def test_parameters_are_counted_as_the_modelling_code_makes_them(engine_python: Path) -> None:
    asked = {
        family: {
            "does": "count",
            "attention": "eager",
            "family": family,
            "config": {
                **{key: value for key, value in _DEFAULTS.items() if family not in _OWN_NAMES},
                **({"vocab_size": 256} if family in _OWN_NAMES else {}),
                **({"hidden_size": 64} if family == "bloom" else {}),
                **own,
            },
        }
        for family, own in _COUNTED.items()
    }
    answers = dict(zip(asked, run_requests(engine_python, list(asked.values())), strict=True))
    wrong = {
        family: (parse_architecture(answer["config"]).parameters, answer["parameters"])
        for family, answer in answers.items()
        if parse_architecture(answer["config"]).parameters != answer["parameters"]
    }
    assert wrong == {}
