"""The engine port: renders a spec into a Launch for a chip. One plug-in per engine.

An engine that cannot run a spec reports it before anything is queued (``check``), with a message
that names the field; the reconciler calls ``render`` only after that. One spec (``controlplane.domain.specs``)
serves every engine: ``render`` translates it, and what two chips make of it differs only in what the chip gives.

Processes that span replicas learn of each other by five names, whatever the cluster::

    NNODES  NODE_RANK  NPROC_PER_NODE  MASTER_ADDR  MASTER_PORT
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import ReasonedError
from controlplane.domain.common.spec_fields import (
    FieldFinding,
    FieldLimit,
    SpecField,
    field_finding,
)
from controlplane.domain.serving.model_kinds import ModelKind, Operation, model_kind
from controlplane.domain.sizing import DEFAULT_ENGINE_MEMORY, EngineMemory
from controlplane.ports.launches import EngineEnvironment, InputArtifact, Launch, LaunchPlacement


class EngineTask(StrEnum):
    """Tasks of engines."""

    FINETUNE = "finetune"
    EVALUATE = "evaluate"
    QUANTIZE = "quantize"
    SCRIPT = "script"
    SERVE = "serve"


#: The one role of each task's Launch, by which its log is read.
ROLES: Mapping[EngineTask, str] = {
    EngineTask.FINETUNE: "trainer",
    EngineTask.EVALUATE: "evaluator",
    EngineTask.QUANTIZE: "quantizer",
    EngineTask.SCRIPT: "script",
    EngineTask.SERVE: "server",
}


class ArgumentVerification(StrEnum):
    """How far the rendered arguments are known to be right."""

    #: The engine runs in this project's tests.
    RUN = "run"
    #: The engine's own published parser reads them in this project's tests.
    PARSED = "parsed"
    #: Written from its documentation; the page shows that.
    UNVERIFIED = "unverified"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressFormat:
    """Where an engine that is not ours writes how far it is: one JSON object a line."""

    #: Relative to ``{work}``; may hold ``*``.
    path: str
    #: The product's name (``step``, ``total_steps``, ``loss``, ``learning_rate``, ``eval_loss``,
    #: ``tokens_per_second``) → the key of the line. ``a/b`` in one value is written ``key#0`` and ``key#1``.
    keys: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedAdapter:
    """A LoRA adapter that is served beside its base model."""

    #: Model name in requests to the server.
    name: str
    #: Name of the input with ``adapter_config.json`` and its weights.
    input: str
    #: Greatest rank of its matrices.
    rank: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoraSupport:
    """Which LoRA adapters an engine serves beside a model."""

    #: Kinds of models that can have adapters.
    kinds: frozenset[ModelKind] = frozenset({ModelKind.TEXT})
    #: Greatest rank; None for no limit.
    max_rank: int | None = None
    #: Variants of LoRA beside the plain one (``controlplane.domain.registry.lora_configs``).
    variants: frozenset[str] = frozenset()
    #: How requests to the server name an adapter; ``{model}`` is the name of the base model.
    request_name: str = "{adapter}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineProfile:
    """Properties of an engine that hold for every task."""

    #: Display name.
    title: str
    #: Versions that the renderer was written for, as a PEP 440 specifier such as ``>=0.20,<0.34``; empty
    #: where the engine is part of this product.
    versions: str = ""
    #: The version that runs unless a spec names another.
    default_version: str = ""
    #: Image for each chip or vendor, the chip's own name first; ``{version}`` is filled in.
    images: Mapping[str, str] = field(default_factory=dict)
    #: The product's metric names → the engine's series on its ``/metrics``.
    metrics: Mapping[str, str] = field(default_factory=dict)
    progress: ProgressFormat | None = None
    flags: ArgumentVerification = ArgumentVerification.UNVERIFIED
    #: Formats of quantized weights that it loads or writes, for example ``compressed-tensors``.
    formats: frozenset[str] = frozenset()
    #: Kinds of models that it serves → the operations that it offers for them.
    operations: Mapping[ModelKind, frozenset[Operation]] = field(default_factory=dict)
    #: None if it serves no LoRA adapters.
    lora: LoraSupport | None = None
    #: How it uses memory, for sizing.
    memory: EngineMemory = DEFAULT_ENGINE_MEMORY
    #: Notes for operators, such as what it answers without a key.
    remarks: tuple[str, ...] = ()
    #: Where its arguments were read.
    sources: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFacts:
    """The model properties by which an engine checks a spec."""

    name: str
    #: ``architectures[0]`` of its ``config.json``.
    architecture: str
    #: Positions that the model supports.
    context_length: int
    parameters: int
    #: Schemes of quantized weights, for example ``w8a8``; empty for plain ones.
    scheme: str = ""
    #: How quantized weights are written, for example ``compressed-tensors``; empty for plain ones.
    format: str = ""
    #: ``config.json`` as far as it is known; what is sized and divided is read from it.
    config: Mapping[str, Any] = field(default_factory=dict)
    #: Names of its files as far as they are known; an embedding model is told by them.
    files: frozenset[str] = frozenset()
    #: Key of its entry in the catalog, which a fine-tuned model has from its base; empty if it has none.
    catalog_key: str = ""
    #: Its chat template as far as it was read; what it writes tells how the model calls tools.
    chat_template: str = ""

    @property
    def kind(self) -> ModelKind | None:
        """None if it is of no kind that is served."""
        return model_kind(self.architecture, files=self.files, name=self.catalog_key or self.name)

    def check_length(self, spec: Mapping[str, Any], field: str) -> Iterator[FieldFinding]:
        """A finding if the field of the spec is a number of tokens above the context length of the model."""
        length = spec.get(field)
        if not isinstance(length, int) or isinstance(length, bool):
            return
        if 0 < self.context_length < length:
            yield field_finding(
                field,
                "engine.length.too_long",
                "{field} must be ≤ {limit}, the context length of {model}, got {value}",
                field=field,
                limit=self.context_length,
                model=self.name,
                value=length,
            )


class RenderRefused(ReasonedError, ValueError):
    """A spec cannot be rendered for these placements or this model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RenderRequest:
    """A checked spec with everything that it refers to."""

    task: EngineTask
    #: The name that the Launch must bear.
    name: str
    spec: Mapping[str, Any]
    chip: Chip
    placements: tuple[LaunchPlacement, ...]
    inputs: tuple[InputArtifact, ...]
    #: Where the process reports; the token goes beside it, as a secret.
    report_url: str = ""
    token: str = ""
    continues: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    #: What is trained, evaluated, quantized or served; None for scripts.
    model: ModelFacts | None = None
    #: LoRA adapters to serve beside the model; their inputs are among ``inputs``.
    adapters: tuple[ServedAdapter, ...] = ()


@runtime_checkable
class Engine(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def tasks(self) -> frozenset[EngineTask]: ...

    def profile(self) -> EngineProfile: ...

    def environment(self) -> EngineEnvironment | None:
        """Software that a cluster without images installs; None where the engine comes as an image only."""

    def fields(self, task: EngineTask) -> tuple[SpecField, ...]:
        """What can be set, with labels, limits and defaults, for forms and API descriptions."""

    def unsupported_reason(self, task: EngineTask, chip: Chip) -> str:
        """Empty if it runs that task on the chip; otherwise the reason why not."""

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        """Choices of the fields that this engine, chip or model cannot honour, with the reason of each."""

    def check(
        self,
        task: EngineTask,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> tuple[FieldFinding, ...]:
        """Everything wrong with the spec, its limits included; empty means that it can be rendered."""

    def recommended_values(
        self, task: EngineTask, *, model: ModelFacts | None
    ) -> Mapping[str, Any]:
        """Values that suit this model better than the defaults; used where a spec sets none."""

    def normalise(self, task: EngineTask, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The spec with every default written out. The result is what a job keeps and shows."""

    def render(self, request: RenderRequest) -> Launch:
        """The Launch of a checked spec. The same request gives the same Launch."""


@runtime_checkable
class MultiNodeEngine(Protocol):
    """An engine whose replicas may span nodes: one process on each, of which the first serves the requests.

    The others answer the readiness probe, too.
    """

    def check_nodes(
        self, spec: Mapping[str, Any], *, nodes: int, model: ModelFacts | None
    ) -> tuple[FieldFinding, ...]:
        """Why a replica with the spec cannot span that many nodes, two or more; empty if it can."""


@runtime_checkable
class VersionedEngine(Protocol):
    """An engine whose earlier releases ignore parameters of requests without an error."""

    def ignored_parameters(
        self, spec: Mapping[str, Any], *, chip: Chip
    ) -> Mapping[Operation, Mapping[str, str]]:
        """Operation → parameter, as ``text.format`` → the first release that reads it.

        :param spec: the spec of a replica, whose image for the chip has an earlier release.
        """
