"""What the engines that this product installs itself make of each kind of work, as somebody last looked at it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest

from controlplane.domain.specs.evaluation import SCHEMES
from controlplane.domain.specs.training import METHODS, OBJECTIVES
from controlplane.ports.adapter_registry import all_chips, engine_by_name, engine_names
from controlplane.ports.engines import EngineTask, RenderRequest
from controlplane.ports.launches import Launch, LaunchPlacement
from tests.golden.launches import compare
from tests.unit.engines.training_requests import DATASET, MODEL_TREE, QWEN3_8B

CHIPS = ("nvidia-h800", "cpu")
MODEL = replace(QWEN3_8B, config={**QWEN3_8B.config, "architectures": ["Qwen3ForCausalLM"]})

#: Task → what is asked, by the name of the golden file.
SPECS: Mapping[EngineTask, Mapping[str, Mapping[str, Any]]] = {
    EngineTask.FINETUNE: {
        f"{objective}-{method}": {"objective": objective, "method": method}
        for objective in OBJECTIVES
        for method in METHODS
    },
    EngineTask.EVALUATE: {
        "default": {},
        "chosen": {"split": "validation", "limit": 100, "max_new_tokens": 32, "batch_size": 8},
    },
    EngineTask.QUANTIZE: {scheme: {"scheme": scheme} for scheme in SCHEMES},
    EngineTask.SCRIPT: {
        "default": {"argv": ["python", "main.py"]},
        "bounded": {"argv": ["python", "main.py", "--once"], "maximum_run_time_seconds": 600},
    },
    EngineTask.SERVE: {
        "default": {"model_name": "assistant"},
        "chosen": {"model_name": "assistant", "queue_size": 8, "precision": "float32"},
    },
}


def own_engines() -> list[str]:
    """Installed engines that bring an environment, so that they run without an image."""
    return [name for name in engine_names() if engine_by_name(name).environment() is not None]


def findings(name: str, task: EngineTask, spec: Mapping[str, Any], *, chip: str) -> dict[str, str]:
    """What is wrong with that work, by field; where the engine does not run on the chip that alone."""
    if reason := engine_by_name(name).unsupported_reason(task, all_chips()[chip]):
        return {"engine": reason}
    found = engine_by_name(name).check(task, spec, chip=all_chips()[chip], model=MODEL)
    return {each.field: each.message for each in found}


def possible(name: str, chip: str) -> dict[EngineTask, list[str]]:
    """The cases of each task that the engine takes on the chip."""
    return {
        task: [case for case, spec in specs.items() if not findings(name, task, spec, chip=chip)]
        for task, specs in SPECS.items()
        if task in engine_by_name(name).tasks
    }


def cases() -> Iterator[Any]:
    for name in own_engines():
        for chip in CHIPS:
            for task, taken in possible(name, chip).items():
                for case in taken:
                    yield pytest.param(name, chip, task, case, id=f"{name}-{chip}-{task}-{case}")


def rendered(
    name: str, task: EngineTask, spec: Mapping[str, Any], *, chip: str, **changes: Any
) -> Launch:
    """What the engine makes of that work on one card, with everything that a task could be given."""
    values: dict[str, Any] = {
        "task": task,
        "name": "attempt-1",
        "spec": spec,
        "chip": all_chips()[chip],
        "placements": (LaunchPlacement(node="n0", cards=(0,)),),
        "inputs": (MODEL_TREE, DATASET),
        "report_url": "https://ninefold.example/api/v1/attempts/1",
        "token": "s3cret",
        "model": MODEL,
    }
    return engine_by_name(name).render(RenderRequest(**(values | changes)))


@pytest.mark.parametrize(("name", "chip", "task", "case"), list(cases()))
def test_work_is_rendered_as_before(name: str, chip: str, task: EngineTask, case: str) -> None:
    launch = rendered(name, task, SPECS[task][case], chip=chip)
    compare(launch, engine=name, case=f"{chip}-{task}-{case}")


def test_an_attempt_that_goes_on_is_rendered_as_before() -> None:
    spec = SPECS[EngineTask.FINETUNE]["sft-lora"]
    launch = rendered(
        "transformers", EngineTask.FINETUNE, spec, chip="nvidia-h800", continues="attempt-0"
    )
    compare(launch, engine="transformers", case="nvidia-h800-finetune-sft-lora-continued")


@pytest.mark.parametrize("chip", CHIPS)
def test_what_can_be_asked_of_which_engine_is_as_before(chip: str) -> None:
    """Otherwise a refusal too many would only take golden files away."""
    learnt = [f"{objective}-{method}" for objective in OBJECTIVES for method in ("full", "lora")]
    assert {name: possible(name, chip) for name in own_engines()} == {
        "llm_compressor": {EngineTask.QUANTIZE: list(SCHEMES)},
        "transformers": {
            EngineTask.FINETUNE: learnt,
            EngineTask.EVALUATE: ["default", "chosen"],
            EngineTask.SCRIPT: ["default", "bounded"],
            EngineTask.SERVE: ["default", "chosen"],
        },
    }


@pytest.mark.parametrize("name", own_engines())
def test_a_gpu_and_the_processor_differ_in_the_environment_alone(name: str) -> None:
    """Programs, files and inputs of one spec are the same wherever it runs."""
    for task, taken in possible(name, "cpu").items():
        for case in taken:
            gpu, cpu = (rendered(name, task, SPECS[task][case], chip=chip) for chip in CHIPS)
            assert gpu.files == cpu.files
            assert gpu.roles[0].argv == cpu.roles[0].argv
            assert gpu.engine == cpu.engine
            assert gpu.roles[0].environment != cpu.roles[0].environment
