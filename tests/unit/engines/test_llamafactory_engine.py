"""LLaMA-Factory: what it refuses and why, and what its file says."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from controlplane.ports.adapter_registry import all_chips, engine_by_name
from controlplane.ports.engines import EngineTask
from tests.engine import published
from tests.unit.engines.training_requests import QWEN3_8B, findings, rendered

NAME = "llamafactory"


def argument(launch: Any, name: str, *, file: str = "train.yaml") -> str | None:
    """The value of a line of the file; None where it has none of that name."""
    lines = (line.partition(": ") for line in launch.files[file].splitlines())
    return next((value for key, _, value in lines if key == name), None)


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({"objective": "grpo"}, "objective", "supports reinforcement learning with PPO only"),
        ({"parallel": {"tensor": 2}}, "parallel.tensor", "by ZeRO stages only"),
        ({"parallel": {"sequence": "on"}}, "parallel.sequence", "by ZeRO stages only"),
        (
            {"fused_operators": ["grouped_matmul"]},
            "fused_operators",
            "does not support this kernel",
        ),
        ({"method": "qlora", "qlora": {"bits": 5}}, "qlora.bits", "must be 4 or 8"),
        (
            {"method": "qlora", "qlora": {"bits": 8}, "parallel": {"zero_stage": 3}},
            "parallel.zero_stage",
            "3 requires qlora.bits 4, got 8",
        ),
        ({"method": "lora", "lora": {"alpha": 1.5}}, "lora.alpha", "whole number"),
        (
            {"engine_version": "0.8.0"},
            "engine_version",
            ">=0.9.4,<0.10, for example 0.9.5, got '0.8.0'",
        ),
        ({"train_split": "my rows"}, "train_split", "got 'my rows'"),
        ({"validation_split": "../secrets"}, "validation_split", "got '../secrets'"),
        (
            {"method": "lora", "lora": {"target_modules": ["${oc.env:HOME}"]}},
            "lora.target_modules",
            "names of layers such as 'q_proj'",
        ),
        (
            {"max_length": 50_000},
            "max_length",
            "≤ 40960, the context length of qwen3-8b, got 50000",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_with_the_field_and_what_would_be_right(
    spec: dict[str, Any], field: str, message: str
) -> None:
    assert message in findings(NAME, spec)[field]


def test_few_bit_weights_are_refused_on_an_npu_and_nowhere_else() -> None:
    assert "bitsandbytes" in findings(NAME, {"method": "qlora"}, chip="ascend-910b3")["method"]
    assert findings(NAME, {"method": "qlora"}) == {}


def test_liger_kernels_are_refused_on_an_npu_and_flash_attention_is_not() -> None:
    spec = {"fused_operators": ["flash_attention", "rms_norm"]}
    assert list(findings(NAME, spec, chip="ascend-910b3")) == ["fused_operators"]
    assert findings(NAME, {"fused_operators": ["flash_attention"]}, chip="ascend-910b3") == {}


def test_a_chip_that_lacks_bfloat16_is_given_float16() -> None:
    v100 = all_chips()["nvidia-v100-32gb"]
    assert (
        "does not support bfloat16"
        in findings(NAME, {"precision": "bfloat16"}, chip=v100.name)["precision"]
    )
    launch = rendered(NAME, {}, chip=v100.name)
    assert (argument(launch, "bf16"), argument(launch, "fp16")) == ("false", "true")


def test_it_needs_an_accelerator_and_an_image() -> None:
    found = engine_by_name(NAME)
    assert (
        found.unsupported_reason(EngineTask.FINETUNE, all_chips()["cpu"])
        == "LLaMA-Factory requires an accelerator"
    )
    assert "no image" in found.unsupported_reason(EngineTask.FINETUNE, all_chips()["ascend-310p"])


def test_a_version_goes_into_the_image() -> None:
    launch = rendered(NAME, {"engine_version": "0.9.4"}, chip="nvidia-h800")
    assert launch.image == "hiyouga/llamafactory:0.9.4"


def test_floats_are_floats_to_every_reader_of_yaml() -> None:
    """YAML 1.1 takes ``2e-05`` for a string."""
    launch = rendered(NAME, {"learning_rate": 2e-5}, chip="nvidia-h800")
    assert argument(launch, "learning_rate") == "2.0e-05"


def test_the_learning_rate_is_the_methods_unless_it_is_given() -> None:
    assert (
        argument(rendered(NAME, {"method": "lora"}, chip="nvidia-h800"), "learning_rate")
        == "0.0002"
    )


@pytest.mark.parametrize(
    ("spec", "parameters", "off"),
    [
        ({}, 8_000_000_000, "false"),
        ({}, 500_000_000, "true"),
        ({"recompute": "off"}, 8_000_000_000, "true"),
        ({"recompute": "on"}, 500_000_000, "false"),
    ],
)
def test_activations_are_computed_again_where_the_model_is_large_or_the_spec_says_so(
    spec: dict[str, Any], parameters: int, off: str
) -> None:
    model = replace(QWEN3_8B, parameters=parameters)
    launch = rendered(NAME, spec, chip="nvidia-h800", model=model)
    assert argument(launch, "disable_gradient_checkpointing") == off


def test_a_dataset_without_the_validation_split_is_not_validated_on() -> None:
    launch = rendered(NAME, {"validation_split": "test"}, chip="nvidia-h800")
    assert argument(launch, "eval_dataset") is None


@pytest.mark.parametrize(
    ("spec", "fragment"),
    [
        ({"parallel": {"zero_stage": 3}}, '"stage": 3'),
        ({"communication_dtype": "float32"}, '"communication_data_type": "fp32"'),
    ],
)
def test_zero_and_the_dtype_of_communication_are_deepspeeds(
    spec: dict[str, Any], fragment: str
) -> None:
    launch = rendered(NAME, spec, chip="nvidia-h800")
    assert fragment in launch.files["deepspeed.json"]
    assert argument(launch, "deepspeed") == '"deepspeed.json"'


def test_plain_copies_need_no_deepspeed() -> None:
    launch = rendered(NAME, {}, chip="nvidia-h800")
    assert "deepspeed.json" not in launch.files
    assert launch.roles[0].environment["FORCE_TORCHRUN"] == "1"


def test_it_says_which_parser_read_the_arguments_and_which_tags_float() -> None:
    profile = engine_by_name("llamafactory").profile()
    read, floating = profile.remarks
    assert published.LLAMAFACTORY[0].partition("==")[2] in read
    assert ("floating" in floating) == any(":latest" in image for image in profile.images.values())
