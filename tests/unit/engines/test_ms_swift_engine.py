"""ms-swift: what it refuses and why, and what its file says."""

from __future__ import annotations

import importlib
import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from controlplane.ports.adapter_registry import engine_by_name
from tests.engine import published
from tests.unit.engines.training_requests import QWEN3_8B, findings, rendered

NAME = "ms_swift"


def arguments(spec: dict[str, Any], **changes: Any) -> dict[str, Any]:
    launch = rendered(NAME, spec, chip="nvidia-h800", **changes)
    found: dict[str, Any] = json.loads(launch.files["train.json"])
    return found


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        (
            {"parallel": {"tensor": 2}},
            "parallel.tensor",
            "only the Megatron backend of ms-swift supports this parallelism",
        ),
        (
            {"parallel": {"pipeline": 2}},
            "parallel.pipeline",
            "only the Megatron backend of ms-swift supports this parallelism",
        ),
        (
            {"parallel": {"expert": 2}},
            "parallel.expert",
            "only the Megatron backend of ms-swift supports this parallelism",
        ),
        (
            {"objective": "grpo", "batch_size": 6, "grpo": {"generations": 4}},
            "grpo.generations",
            "must divide batch_size × gradient_accumulation, 6, got 4",
        ),
        ({"method": "qlora", "qlora": {"bits": 6}}, "qlora.bits", "must be 4 or 8"),
        ({"engine_version": "3.9"}, "engine_version", ">=4.3,<4.7, for example 4.4.3, got '3.9'"),
        ({"engine_version": "4.5.0"}, "engine_version", "leave the field empty"),
    ],
)
def test_what_it_cannot_do_is_refused_with_the_field_and_what_would_be_right(
    spec: dict[str, Any], field: str, message: str
) -> None:
    assert message in findings(NAME, spec)[field]


def test_few_bit_weights_are_refused_on_an_npu_as_its_documentation_says() -> None:
    message = findings(NAME, {"method": "qlora"}, chip="ascend-910b3")["method"]
    assert "ms-swift documents QLoRA as not supported" in message


def test_a_family_that_it_cannot_be_told_of_is_refused() -> None:
    model = replace(QWEN3_8B, architecture="Olmo2ForCausalLM")
    assert (
        "Olmo2ForCausalLM, which is not supported with ms-swift"
        in findings(NAME, {}, model=model)["model"]
    )


def test_a_model_with_code_of_its_own_is_refused() -> None:
    """ms-swift loads every model with ``trust_remote_code``."""
    model = replace(QWEN3_8B, config={**QWEN3_8B.config, "auto_map": {"AutoModel": "m.Model"}})
    assert "contains custom code" in findings(NAME, {}, model=model)["model"]


@pytest.mark.parametrize(("vocabulary", "template"), [(32_000, "llama"), (128_256, "llama3")])
def test_the_generations_of_llama_speak_in_different_ways(vocabulary: int, template: str) -> None:
    model = replace(QWEN3_8B, architecture="LlamaForCausalLM", config={"vocab_size": vocabulary})
    assert arguments({}, model=model)["template"] == template


def test_rewards_come_along_with_what_they_compare_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spec = {"objective": "grpo", "grpo": {"reward": "label_accuracy"}}
    launch = rendered(NAME, spec, chip="nvidia-h800")
    configuration = json.loads(launch.files["train.json"])
    assert configuration["reward_funcs"] == ["ninefold_label_accuracy"]
    assert configuration["external_plugins"] == ["plugins/ninefold_rewards.py"]
    assert configuration["eval_strategy"] == "no"
    registered: dict[str, Any] = {}
    swift = SimpleNamespace(ORM=object, orms=registered)
    monkeypatch.setitem(sys.modules, "swift", SimpleNamespace(rewards=swift))
    monkeypatch.setitem(sys.modules, "swift.rewards", swift)
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("ninefold_scoring", "ninefold_rewards"):
        (tmp_path / f"{name}.py").write_text(launch.files[f"plugins/{name}.py"], encoding="utf-8")
        monkeypatch.delitem(sys.modules, name, raising=False)
    importlib.import_module("ninefold_rewards")
    answers, references = ["3_A,5_B", "3_A,4_B,"], ["3_A,4_B", "3_A,4_B"]
    assert registered["ninefold_label_accuracy"]()(answers, references) == [0.5, 1.0]
    assert registered["ninefold_exact_match"]()(answers, references) == [0.0, 1.0]


def test_context_parallelism_is_its_sequence_parallelism() -> None:
    assert arguments({"parallel": {"context": 4}})["sequence_parallel_size"] == 4
    assert "sequence_parallel_size" not in arguments({})


def test_preferences_are_read_from_the_datasets_own_columns() -> None:
    configuration = arguments({"objective": "dpo", "dpo": {"beta": 0.3}})
    assert (configuration["rlhf_type"], configuration["beta"]) == ("dpo", 0.3)
    assert configuration["dataset"] == ["{inputs}/dataset/train.jsonl"]


def test_a_whole_model_is_taken_from_the_newest_checkpoint_and_an_adapter_is_merged() -> None:
    steps = json.loads(rendered(NAME, {}, chip="nvidia-h800").files["steps.json"])["steps"]
    assert steps[-1]["collect"] == "{newest}"
    steps = json.loads(rendered(NAME, {"method": "lora"}, chip="nvidia-h800").files["steps.json"])[
        "steps"
    ]
    assert [step.get("collect") or step["run"][:2] for step in steps] == [
        ["swift", "sft"],
        ["swift", "export"],
        "merged",
    ]


def test_it_says_which_parser_read_the_arguments_and_what_the_images_hold() -> None:
    profile = engine_by_name("ms_swift").profile()
    (remark,) = profile.remarks
    assert all(version in remark for version in published.MS_SWIFT)
    for vendor, image in profile.images.items():
        held = re.search(r"swift(?::v)?(\d+\.\d+\.\d+)", image)
        assert held, image
        assert held[1] in remark, vendor


def test_a_fractional_alpha_is_refused_as_the_parsers_before_4_5_take_whole_numbers() -> None:
    spec = {"method": "lora", "lora": {"alpha": 12.5}}
    assert "whole number" in findings(NAME, spec, chip="nvidia-h800")["lora.alpha"]
    assert "lora.alpha" not in findings(NAME, {**spec, "method": "full"}, chip="nvidia-h800")
    launch = rendered(NAME, {"method": "lora"}, chip="nvidia-h800")
    assert type(json.loads(launch.files["train.json"])["lora_alpha"]) is int
