"""What each training engine makes of each kind of job on each chip, as somebody last looked at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from controlplane.domain.common.accelerators import ChipKind
from controlplane.domain.specs.training import METHODS, OBJECTIVES
from controlplane.ports.adapter_registry import all_chips, engine_by_name
from controlplane.ports.engines import EngineTask
from controlplane.ports.launches import (
    DifferencePart,
    LaunchDifference,
    launch_differences,
)
from tests.golden.launches import compare
from tests.unit.engines.training_requests import QWEN3_8B, rendered

ENGINES = ("llamafactory", "ms_swift", "mindspeed_llm")
CHIPS = ("nvidia-h800", "ascend-910b3", "cpu")
#: One more field than the two that a case is about, where an engine asks for it or a value would be refused.
STEPS = {"max_steps": 500}


def spec_of(objective: str, method: str) -> dict[str, Any]:
    return {"objective": objective, "method": method, "parallel": {"zero_stage": 1}, **STEPS}


def possible(name: str, spec: Mapping[str, Any], chip: str) -> bool:
    found = all_chips()[chip]
    return not engine_by_name(name).unsupported_reason(
        EngineTask.FINETUNE, found
    ) and not engine_by_name(name).check(EngineTask.FINETUNE, spec, chip=found, model=QWEN3_8B)


def cases() -> Iterator[Any]:
    for name in ENGINES:
        for objective in OBJECTIVES:
            for method in METHODS:
                for chip in CHIPS:
                    if possible(name, spec_of(objective, method), chip):
                        yield pytest.param(name, objective, method, chip)


@pytest.mark.parametrize(("name", "objective", "method", "chip"), list(cases()))
def test_a_job_is_rendered_as_before(name: str, objective: str, method: str, chip: str) -> None:
    launch = rendered(name, spec_of(objective, method), chip=chip)
    compare(launch, engine=name, case=f"{chip}-{objective}-{method}")


def test_what_can_be_asked_of_which_engine_is_as_before() -> None:
    """Otherwise a refusal too many would only take golden files away."""
    found = {
        (name, chip): [
            f"{objective} {method}"
            for objective in OBJECTIVES
            for method in METHODS
            if possible(name, spec_of(objective, method), chip)
        ]
        for name in ENGINES
        for chip in CHIPS
    }
    trained = ["full", "lora"]
    on_cuda = ["full", "lora", "qlora"]

    def each(objectives: str, methods: list[str]) -> list[str]:
        return [f"{objective} {method}" for objective in objectives.split() for method in methods]

    assert found == {
        ("llamafactory", "nvidia-h800"): each("sft dpo pretrain", on_cuda),
        ("llamafactory", "ascend-910b3"): each("sft dpo pretrain", trained),
        ("llamafactory", "cpu"): [],
        ("ms_swift", "nvidia-h800"): each("sft dpo grpo pretrain", on_cuda),
        ("ms_swift", "ascend-910b3"): each("sft dpo grpo pretrain", trained),
        ("ms_swift", "cpu"): [],
        ("mindspeed_llm", "nvidia-h800"): [],
        ("mindspeed_llm", "ascend-910b3"): each("sft pretrain", trained),
        ("mindspeed_llm", "cpu"): [],
    }


@pytest.mark.parametrize("name", ENGINES)
def test_two_nodes_with_checkpoints_to_continue_from_are_rendered_as_before(name: str) -> None:
    chip = "ascend-910b3"
    parallel = {"tensor": 8} if name == "mindspeed_llm" else {"zero_stage": 3}
    spec = {"method": "lora", "recompute": "off", "parallel": parallel, **STEPS}
    launch = rendered(name, spec, chip=chip, nodes=2, continues="attempt-0")
    compare(launch, engine=name, case=f"{chip}-2-nodes-continued")


def both_kinds() -> list[str]:
    """Training engines that run on some GPU and on some NPU."""

    def runs(name: str, kind: ChipKind) -> bool:
        return any(
            not engine_by_name(name).unsupported_reason(EngineTask.FINETUNE, chip)
            for chip in all_chips().values()
            if chip.kind is kind
        )

    return [name for name in ENGINES if runs(name, ChipKind.GPU) and runs(name, ChipKind.NPU)]


def test_two_engines_train_on_both_kinds_of_chips() -> None:
    assert both_kinds() == ["llamafactory", "ms_swift"]


def compared(name: str, spec: Mapping[str, Any]) -> tuple[LaunchDifference, ...]:
    return launch_differences(
        rendered(name, spec, chip="nvidia-h800"), rendered(name, spec, chip="ascend-910b3")
    )


@pytest.mark.parametrize("name", both_kinds())
@pytest.mark.parametrize("method", ["full", "lora"])
def test_one_spec_on_a_gpu_and_an_npu_differs_in_what_the_chip_gives_only(
    name: str, method: str
) -> None:
    objectives = ["sft", "dpo", "pretrain"] + ["grpo"] * (name == "ms_swift")
    for objective in objectives:
        found = compared(name, spec_of(objective, method))
        assert {each.part for each in found} == {DifferencePart.IMAGE, DifferencePart.ENVIRONMENT}
        assert {each.path for each in found} == {
            "image",
            "environment.CUDA_DEVICE_ORDER",
            "environment.CUDA_VISIBLE_DEVICES",
            "environment.ASCEND_RT_VISIBLE_DEVICES",
            "environment.NINEFOLD_SET_ENV",
        }


@pytest.mark.parametrize("name", both_kinds())
def test_the_fused_optimizer_has_another_name_on_an_npu_and_nothing_else_has(name: str) -> None:
    spec = {"fused_operators": ["adamw", "flash_attention"], **STEPS}
    found = [each for each in compared(name, spec) if each.part is DifferencePart.ARGUMENTS]
    assert [(each.left or "").strip(' ,"').partition(":")[0].strip('"') for each in found] == [
        "optim"
    ]
    assert "adamw_torch_fused" in (found[0].left or "")
    assert "adamw_torch_npu_fused" in (found[0].right or "")


def test_a_changed_field_of_the_spec_shows_as_an_argument() -> None:
    """The same comparison sees what a person changes, so its silence above means something."""
    left = rendered("ms_swift", {"learning_rate": 1e-5}, chip="nvidia-h800")
    right = rendered("ms_swift", {"learning_rate": 2e-5}, chip="nvidia-h800")
    found = launch_differences(left, right)
    assert [each.part for each in found] == [DifferencePart.ARGUMENTS]
    assert "1e-05" in (found[0].left or "")
