"""What an engine is asked for in a step."""

from __future__ import annotations

from controlplane.domain.pipelines import StepKind
from controlplane.ports.engines import Task


def task_of(kind: StepKind) -> Task:
    """What an engine is asked to do in a step of that kind."""
    return Task.SERVE if kind is StepKind.DEPLOY else Task(kind.value)
