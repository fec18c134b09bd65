"""The spec file as the runtime reads it, and that the adapter writes exactly that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters.engines.transformers import TransformersEngine
from controlplane.adapters.engines.transformers.engine import runtime_spec
from controlplane.ports.engines import EngineTask
from ninefold_runtime import specs
from ninefold_runtime.exit_codes import InvalidTaskInput

KINDS: dict[EngineTask, Any] = {
    EngineTask.FINETUNE: specs.FinetuneSpec,
    EngineTask.EVALUATE: specs.EvaluateSpec,
    EngineTask.SCRIPT: specs.ScriptSpec,
    EngineTask.SERVE: specs.ServeSpec,
}
GIVEN: dict[EngineTask, dict[str, Any]] = {EngineTask.SCRIPT: {"argv": ["python", "main.py"]}}


@pytest.mark.parametrize("task", list(KINDS))
def test_what_the_adapter_completes_is_what_the_runtime_reads(task: EngineTask) -> None:
    complete = runtime_spec(TransformersEngine().normalise(task, GIVEN.get(task, {})))
    parsed = specs.parse_spec(json.loads(json.dumps(complete)), KINDS[task])
    assert isinstance(parsed, KINDS[task])


def _finetune(**changes: Any) -> dict[str, Any]:
    return runtime_spec(TransformersEngine().normalise(EngineTask.FINETUNE, {})) | changes


def test_a_missing_field_is_named() -> None:
    incomplete = _finetune()
    del incomplete["seed"]
    with pytest.raises(InvalidTaskInput, match="lacks seed"):
        specs.parse_spec(incomplete, specs.FinetuneSpec)


def test_an_unknown_field_inside_a_group_is_named_with_its_group() -> None:
    lora = dict(_finetune()["lora"]) | {"rnak": 4}
    with pytest.raises(InvalidTaskInput, match=r"unknown fields: lora\.rnak"):
        specs.parse_spec(_finetune(lora=lora), specs.FinetuneSpec)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("batch_size", "8", "batch_size must be a whole number, not '8'"),
        ("batch_size", True, "batch_size must be a whole number"),
        ("max_steps", 1.5, "max_steps must be a whole number or null"),
        ("method", "magic", "method must be one of full, lora"),
        ("lora", [], "lora must be an object"),
    ],
)
def test_a_value_of_another_type_is_named(field: str, value: Any, message: str) -> None:
    with pytest.raises(InvalidTaskInput, match=message):
        specs.parse_spec(_finetune(**{field: value}), specs.FinetuneSpec)


def test_a_file_that_is_no_spec_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text("{", encoding="utf-8")
    with pytest.raises(InvalidTaskInput, match=r"spec\.json cannot be read"):
        specs.load_spec(path, specs.ServeSpec)
