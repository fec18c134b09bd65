"""Whoever was given cards works on them or not at all."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.ports.engines import EngineTask
from ninefold_runtime.exit_codes import ExitCode
from tests.engine.conftest import SMALL, Start, complete_spec


@pytest.mark.parametrize("task", [EngineTask.FINETUNE, EngineTask.EVALUATE])
def test_cards_that_torch_does_not_find_end_the_job_instead_of_the_processor_taking_over(
    start: Start, inputs: Path, task: EngineTask
) -> None:
    values = dict(SMALL) | {"max_steps": 1} if task is EngineTask.FINETUNE else {}
    spec = complete_spec(task, **values)
    run = start(task, spec, inputs=inputs, environment={"NINEFOLD_DEVICE": "npu"})
    assert run.finish() == ExitCode.BAD_INPUT, run.text()
    assert "cards of the device 'npu' were given, but torch " in run.text()


def test_a_job_on_the_processor_stays_there(start: Start, inputs: Path) -> None:
    spec = complete_spec(EngineTask.FINETUNE, **(dict(SMALL) | {"max_steps": 1}))
    run = start(EngineTask.FINETUNE, spec, inputs=inputs, environment={"NINEFOLD_DEVICE": "cpu"})
    assert run.finish() == ExitCode.FINISHED, run.text()
    assert "parameters on cpu;" in run.text()
