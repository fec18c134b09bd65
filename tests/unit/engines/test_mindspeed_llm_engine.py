"""MindSpeed-LLM: what it refuses and why, and what its command says."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from controlplane.ports.adapter_registry import all_chips, engine_by_name
from controlplane.ports.engines import EngineTask
from tests.unit.engines.training_requests import QWEN3_8B, findings, rendered

NAME = "mindspeed_llm"
NPU = "ascend-910b3"


def command(spec: dict[str, Any], **changes: Any) -> list[str]:
    """The arguments that train."""
    launch = rendered(NAME, {"max_steps": 100, **spec}, chip=NPU, **changes)
    steps = json.loads(launch.files["steps.json"])["steps"]
    found: list[str] = next(step["run"] for step in steps if step["run"][0] == "torchrun")
    return found


def value(arguments: list[str], flag: str) -> str | None:
    return arguments[arguments.index(flag) + 1] if flag in arguments else None


@pytest.mark.parametrize(
    ("spec", "field", "message"),
    [
        ({}, "max_steps", "counts steps, not epochs"),
        ({"objective": "dpo"}, "objective", "only SFT and continued pre-training are supported"),
        ({"method": "qlora"}, "method", "QLoRA is not supported with MindSpeed-LLM"),
        ({"lora": {"dropout": 0.1}}, "lora.dropout", "does not support LoRA dropout"),
        ({"parallel": {"zero_stage": 3}}, "parallel.zero_stage", "stage 1"),
        ({"parallel": {"expert": 2}}, "parallel.expert", "dense models"),
        (
            {"method": "lora", "lora": {"target_modules": ["q_proj", "o_proj"]}},
            "lora.target_modules",
            "got q_proj",
        ),
        (
            {"engine_version": "2.0"},
            "engine_version",
            ">=26.0,<26.2, for example 26.0.0, got '2.0'",
        ),
    ],
)
def test_what_it_cannot_do_is_refused_with_the_field_and_what_would_be_right(
    spec: dict[str, Any], field: str, message: str
) -> None:
    assert message in findings(NAME, spec, chip=NPU)[field]


def test_nothing_of_what_it_writes_depends_on_the_folder_that_a_program_runs_in() -> None:
    """Weights are converted by a program that MindSpeed-LLM starts in its own folder."""
    for spec in ({}, {"method": "lora"}):
        launch = rendered(NAME, {"max_steps": 100, **spec}, chip=NPU)
        steps = json.loads(launch.files["steps.json"])["steps"]
        flags = ("--save", "--load-dir", "--save-dir", "--output-prefix", "--mg-save-dir")
        places = [
            arguments[arguments.index(flag) + 1]
            for arguments in (step["run"] for step in steps if "run" in step)
            for flag in flags
            if flag in arguments
        ]
        assert len(places) == len(flags)
        assert all(place.startswith("{work}/") for place in places)
        assert launch.shares_checkpoints
        converted = value(command(spec), "--mg-save-dir")
        assert converted is not None
        assert converted.startswith("{work}/checkpoints/")


def test_the_fused_kernels_of_its_examples_are_the_default_and_a_list_takes_their_place() -> None:
    fused = {
        "--use-flash-attn",
        "--use-fused-rmsnorm",
        "--use-fused-rotary-pos-emb",
        "--use-fused-swiglu",
    }
    assert fused <= set(command({}))
    assert fused & set(command({"fused_operators": ["swiglu"]})) == {"--use-fused-swiglu"}
    assert not fused & set(command({"fused_operators": []}))


def test_it_runs_on_ascend_only() -> None:
    reason = engine_by_name(NAME).unsupported_reason(
        EngineTask.FINETUNE, all_chips()["nvidia-h800"]
    )
    assert reason == f"MindSpeed-LLM runs on Ascend only, not on {all_chips()['nvidia-h800'].label}"
    assert engine_by_name(NAME).unsupported_reason(EngineTask.FINETUNE, all_chips()[NPU]) == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"architecture": "Gemma2ForCausalLM"},
            "is a Gemma2ForCausalLM, which is not supported with MindSpeed-LLM",
        ),
        ({"config": {}}, "lacks num_hidden_layers"),
        (
            {"config": {**QWEN3_8B.config, "rope_scaling": {"rope_type": "yarn"}}},
            "uses RoPE scaling (yarn)",
        ),
    ],
)
def test_a_model_that_it_cannot_be_told_of_is_refused(
    changes: dict[str, Any], message: str
) -> None:
    model = replace(QWEN3_8B, **changes)
    assert message in findings(NAME, {"max_steps": 1}, chip=NPU, model=model)["model"]


def test_the_model_is_described_by_its_config() -> None:
    arguments = command({})
    assert value(arguments, "--num-layers") == "36"
    assert value(arguments, "--kv-channels") == "128"
    assert value(arguments, "--num-query-groups") == "8"
    assert value(arguments, "--rotary-base") == "1000000"
    assert value(arguments, "--model-type-hf") == "qwen3"
    assert "--untie-embeddings-and-output-weights" in arguments


def test_the_base_of_positions_is_found_where_newer_configs_keep_it() -> None:
    config = {key: each for key, each in QWEN3_8B.config.items() if key != "rope_theta"}
    config["rope_parameters"] = {"rope_theta": 500_000.0, "rope_type": "default"}
    model = replace(QWEN3_8B, config=config)
    assert findings(NAME, {"max_steps": 1}, chip=NPU, model=model) == {}
    assert value(command({}, model=model), "--rotary-base") == "500000"


def test_the_plan_becomes_megatrons() -> None:
    arguments = command({"parallel": {"tensor": 4, "pipeline": 2, "zero_stage": 1}}, nodes=2)
    assert value(arguments, "--tensor-model-parallel-size") == "4"
    assert value(arguments, "--pipeline-model-parallel-size") == "2"
    # Sixteen cards leave two copies, which see two times eight rows a step.
    assert value(arguments, "--global-batch-size") == "16"
    assert "--sequence-parallel" in arguments
    assert "--use-distributed-optimizer" in arguments
    whole = command({"parallel": {"tensor": 4, "pipeline": 2, "sequence": "off"}}, nodes=2)
    assert "--sequence-parallel" not in whole


def test_every_replica_is_told_its_own_rank() -> None:
    assert command({}, nodes=2)[:11] == [
        "torchrun",
        *("--nnodes", "$NNODES", "--node_rank", "$NODE_RANK"),
        *("--nproc_per_node", "$NPROC_PER_NODE"),
        *("--master_addr", "$MASTER_ADDR", "--master_port", "$MASTER_PORT"),
    ]


def test_layers_that_megatron_joins_are_adapted_together() -> None:
    spec = {"method": "lora", "lora": {"target_modules": ["q_proj", "k_proj", "v_proj"]}}
    arguments = command(spec)
    at = arguments.index("--lora-target-modules")
    assert arguments[at + 1 : at + 3] == ["linear_qkv", "--finetune"]


def test_weights_come_back_in_the_form_in_which_they_came() -> None:
    launch = rendered(NAME, {"max_steps": 10, "method": "lora"}, chip=NPU)
    *_, convert, collect = json.loads(launch.files["steps.json"])["steps"]
    assert value(convert["run"], "--save-model-type") == "hf"
    assert value(convert["run"], "--lora-load") == "{work}/checkpoints"
    assert convert["leader_only"]
    assert collect["collect"] == value(convert["run"], "--save-dir")


def test_an_earlier_attempt_is_continued_from_megatrons_own_checkpoints() -> None:
    launch = rendered(NAME, {"max_steps": 10}, chip=NPU, continues="attempt-0")
    [_, step, *_] = json.loads(launch.files["steps.json"])["steps"]
    assert step["newest"] == "checkpoints/latest_checkpointed_iteration.txt"
    assert value(step["resumed"], "--load") == "{work}/checkpoints"
    assert "--enable-hf2mg-convert" not in step["resumed"]
    assert value(step["run"], "--load") == "{inputs}/model"


def test_it_trains_in_a_copy_of_its_source_that_can_be_written() -> None:
    """It compiles helpers beside Megatron's source and starts ``preprocess_data.py`` of the working directory."""
    launch = rendered(NAME, {"max_steps": 10, "objective": "pretrain"}, chip=NPU)
    _, copy, train, convert, _ = json.loads(launch.files["steps.json"])["steps"]
    assert copy["run"][-2:] == ["/workspace/MindSpeed-LLM", "{work}/MindSpeed-LLM"]
    assert "leader_only" not in copy
    for step, program in ((train, "pretrain_gpt.py"), (convert, "convert_ckpt_v2.py")):
        assert f"{{work}}/MindSpeed-LLM/{program}" in step["run"]
        assert step["folder"] == "MindSpeed-LLM"
