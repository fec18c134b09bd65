"""Which engine does a step, where nobody says."""

from __future__ import annotations

from collections.abc import Sequence

from controlplane.domain.pipelines import StepKind
from controlplane.ports import registry
from controlplane.ports.engines import Task

#: It belongs to the product and does most tasks.
_PREFERRED = "transformers"


def task_of(kind: StepKind) -> Task:
    """What an engine is asked to do in a step of that kind."""
    return Task.SERVE if kind is StepKind.DEPLOY else Task(kind.value)


def engine_for(kind: StepKind, *, chips: Sequence[str]) -> str:
    """The engine of the product if it does that, else the first installed one that does.

    One that runs on the chip that is preferred comes before all others. Falls back to the product's
    own where none does it at all, so that the refusal names it.
    """
    task = task_of(kind)
    able = [name for name in registry.engine_names() if task in registry.engine(name).tasks]
    chip = registry.chip_called(chips[0]) if chips else None
    if chip is not None:
        running = [name for name in able if not registry.engine(name).runs_on(task, chip)]
        able = running or able
    if _PREFERRED in able or not able:
        return _PREFERRED
    return able[0]
