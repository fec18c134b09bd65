"""The engine port: renders a spec into a Launch for a chip.

An engine that cannot do what is asked says so before anything is queued (``check``), with a message
that names the field; the reconciler calls ``render`` only after that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from controlplane.domain.accelerators import Chip
from controlplane.ports.launches import EngineEnvironment, InputTree, Launch, Placement


class Task(StrEnum):
    """What an engine can be asked to do."""

    FINETUNE = "finetune"
    EVALUATE = "evaluate"
    SCRIPT = "script"
    SERVE = "serve"


#: The one role of each task's Launch, by which its log is read.
ROLES: Mapping[Task, str] = {
    Task.FINETUNE: "trainer",
    Task.EVALUATE: "evaluator",
    Task.SCRIPT: "script",
    Task.SERVE: "server",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing wrong with a spec."""

    #: Dotted path of the field, for example ``learning_rate``.
    field: str
    #: What was wrong with which value, and what would be right.
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """What an engine needs to know of a model to judge it."""

    name: str
    #: ``architectures[0]`` of its ``config.json``.
    architecture: str
    #: Positions that the model supports.
    context_length: int
    parameters: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderRequest:
    """A checked spec with everything that it refers to."""

    task: Task
    #: The name that the Launch must bear.
    name: str
    spec: Mapping[str, Any]
    chip: Chip
    placements: tuple[Placement, ...]
    inputs: tuple[InputTree, ...]
    #: Where the process reports; the token goes beside it, as a secret.
    report_url: str = ""
    token: str = ""
    continues: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)


@runtime_checkable
class Engine(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def tasks(self) -> frozenset[Task]: ...

    def environment(self) -> EngineEnvironment: ...

    def check(
        self, task: Task, spec: Mapping[str, Any], *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[Finding, ...]:
        """Everything wrong with the spec; empty means that it can be rendered."""
        ...

    def recommended(self, task: Task, *, model: ModelFacts | None) -> Mapping[str, Any]:
        """Values that suit this model better than the defaults; they hold where a spec says nothing."""
        ...

    def normalise(self, task: Task, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The spec with every default written out. The result is what a job keeps and shows."""
        ...

    def render(self, request: RenderRequest) -> Launch: ...
