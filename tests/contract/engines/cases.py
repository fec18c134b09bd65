"""Every installed engine, every task that it does, every chip that some plug-in knows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.adapters.engines.transformers.engine import SCRIPT
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import SpecField
from controlplane.domain.specs.evaluation import EVALUATE, QUANTIZE
from controlplane.domain.specs.serving import SERVE
from controlplane.domain.specs.training import FINETUNE
from controlplane.ports.adapter_registry import all_chips, engine_by_name, engine_names
from controlplane.ports.engines import Engine, EngineTask, RenderRequest
from controlplane.ports.launches import InputArtifact, LaunchPlacement
from tests.unit.engines.training_requests import DATASET, MODEL_TREE, QWEN3_8B

#: The product's tables: an engine takes fields from them and has none of its own.
TABLES: Mapping[EngineTask, tuple[SpecField, ...]] = {
    EngineTask.FINETUNE: FINETUNE,
    EngineTask.EVALUATE: EVALUATE,
    EngineTask.QUANTIZE: QUANTIZE,
    EngineTask.SCRIPT: SCRIPT,
    EngineTask.SERVE: SERVE,
}
#: The least that a person has to say.
SPECS: Mapping[EngineTask, Mapping[str, Any]] = {
    EngineTask.FINETUNE: {"max_steps": 100},
    EngineTask.EVALUATE: {},
    EngineTask.QUANTIZE: {},
    EngineTask.SCRIPT: {"argv": ["python", "main.py"]},
    EngineTask.SERVE: {"model_name": "assistant"},
}
TOKEN = "t0ken-of-the-attempt"


def engines() -> list[str]:
    return list(engine_names())


def doings() -> list[tuple[str, EngineTask]]:
    return [(name, task) for name in engine_names() for task in sorted(engine_by_name(name).tasks)]


def everywhere() -> list[tuple[str, EngineTask, str]]:
    return [(name, task, chip) for name, task in doings() for chip in sorted(all_chips())]


def where_it_runs() -> list[tuple[str, EngineTask, str]]:
    """Those of ``everywhere`` for which the least spec can be rendered."""
    return [
        (name, task, chip)
        for name, task, chip in everywhere()
        if not engine_by_name(name).unsupported_reason(task, all_chips()[chip])
        and not checked(engine_by_name(name), task, SPECS[task], chip=all_chips()[chip])
    ]


def checked(
    found: Engine, task: EngineTask, spec: Mapping[str, Any], *, chip: Chip | None
) -> dict[str, str]:
    """What is wrong, by field."""
    model = None if task is EngineTask.SCRIPT else QWEN3_8B
    wrong = found.check(task, spec, chip=chip, model=model)
    return {finding.field: finding.message for finding in wrong}


def request_of(
    task: EngineTask, chip: str, *, nodes: int = 1, cards: int = 1, **changes: Any
) -> RenderRequest:
    values: dict[str, Any] = {
        "task": task,
        "name": "attempt-1",
        "spec": SPECS[task],
        "chip": all_chips()[chip],
        "placements": tuple(
            LaunchPlacement(node=f"n{index}", cards=tuple(range(cards))) for index in range(nodes)
        ),
        "inputs": tuple(_trees(task)),
        "report_url": "https://ninefold.example/api/v1/attempts/1",
        "token": TOKEN,
        "labels": {"team": "vision"},
        "model": None if task is EngineTask.SCRIPT else QWEN3_8B,
    }
    return RenderRequest(**(values | changes))


def _trees(task: EngineTask) -> Iterator[InputArtifact]:
    if task is not EngineTask.SCRIPT:
        yield MODEL_TREE
    if task in (EngineTask.FINETUNE, EngineTask.EVALUATE, EngineTask.QUANTIZE):
        yield DATASET
