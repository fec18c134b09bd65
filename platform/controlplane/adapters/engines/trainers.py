"""What every engine has in common that trains in an image of its own.

A subclass says which fields it cannot honour (``limits``) and translates one checked spec into files and steps
(``translated``); choosing the image, the five names, the chip's variables, merging and handing over are the
same for all of them. What a chip gives to a rendering is in one place: the image, ``torchrun.of_chip``, and
the few values of ``Order`` that follow from its ``torch_device`` and number formats.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from controlplane.adapters.engines import images, sequence, torchrun
from controlplane.domain import fields
from controlplane.domain.accelerators import Chip, ChipKind, Dtype
from controlplane.domain.fields import Field, Finding, Limit
from controlplane.domain.parallel import Plan
from controlplane.domain.specs import training
from controlplane.ports.engines import ROLES, EngineProfile, ModelFacts, RenderRequest, Task
from controlplane.ports.launches import EngineEnvironment, Launch, Role

#: Time to end the current step; these engines save at their checkpoints, not when they are stopped.
_GRACE = timedelta(minutes=2)
#: The longest row where a spec leaves it open and the model allows it, in tokens.
_USUAL_LENGTH = 2048
#: Above so many parameters activations are computed again, unless the spec says otherwise.
_RECOMPUTE_FROM = 1_000_000_000
#: What may stand in a file's name or the name of a layer: engines read lists, placeholders and spaces in others.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_LAYER_NAME = re.compile(r"[A-Za-z0-9_.]+")

_ENVIRONMENT: Mapping[str, str] = {
    "HF_HOME": "{work}/tmp/huggingface",
    "HF_DATASETS_CACHE": "{work}/tmp/datasets",
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "MODELSCOPE_CACHE": "{work}/tmp/modelscope",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "PYTHONUNBUFFERED": "1",
    "TOKENIZERS_PARALLELISM": "false",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """A spec with nothing left open."""

    spec: Mapping[str, Any]
    chip: Chip
    plan: Plan
    model: ModelFacts | None
    #: ``bfloat16``, ``float16`` or ``float32``.
    precision: str
    #: In tokens.
    max_length: int
    recompute: bool
    #: Empty if there is nothing to validate on.
    validation_split: str
    #: Whether an earlier attempt's checkpoints may lie in the working folder.
    continues: bool

    @property
    def objective(self) -> str:
        return str(self.spec["objective"])

    @property
    def method(self) -> str:
        return str(self.spec["method"])

    @property
    def adapter(self) -> bool:
        """Whether an adapter is trained, which has to be merged."""
        return self.method != "full"

    @property
    def fused(self) -> frozenset[str]:
        """Kernels that the spec insists on."""
        return frozenset(self.spec["fused_operators"] or ())


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """What an engine makes of an order."""

    steps: tuple[sequence.Run | sequence.Collect, ...]
    #: Text files by path relative to ``{work}``.
    files: Mapping[str, str]
    environment: Mapping[str, str] = field(default_factory=dict)


class ContainerTrainer(ABC):
    """Implements ``controlplane.ports.engines.Engine`` but for ``name``, ``profile`` and the translation."""

    name: str
    tasks = frozenset({Task.FINETUNE})

    @abstractmethod
    def profile(self) -> EngineProfile: ...

    @abstractmethod
    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[Limit, ...]: ...

    @abstractmethod
    def translated(self, order: Order) -> Translation:
        """Files, steps and variables of a checked spec, none of them the chip's."""

    def environment(self) -> EngineEnvironment | None:
        """None: it comes as an image only."""
        return None

    def fields(self, task: Task) -> tuple[Field, ...]:
        return training.FINETUNE

    def runs_on(self, task: Task, chip: Chip) -> str:
        if chip.kind is ChipKind.CPU:
            return f"{self.profile().title} needs an accelerator"
        return images.no_image(self.profile(), engine=self.name, chip=chip)

    def recommended(self, task: Task, *, model: ModelFacts | None) -> Mapping[str, Any]:
        return training.recommended(parameters=model.parameters) if model else {}

    def normalise(self, task: Task, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        complete = fields.with_defaults(self.fields(task), spec)
        if "learning_rate" not in spec:
            complete["learning_rate"] = training.default_rate(
                objective=complete["objective"], method=complete["method"]
            )
        return complete

    def check(
        self,
        task: Task,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> tuple[Finding, ...]:
        table = self.fields(task)
        wrong = fields.check(table, spec)
        if wrong:
            return wrong
        limits = self.limits(task, chip=chip, model=model)
        return (
            *fields.check_limits(table, spec, limits),
            *images.check_version(self.profile(), spec, engine=self.name, chip=chip),
            *_check_names(spec),
            *_check_length(spec, model=model),
            *self.check_further(self.normalise(task, spec), model=model),
        )

    def check_further(
        self, spec: Mapping[str, Any], *, model: ModelFacts | None
    ) -> Iterator[Finding]:
        """What else is wrong with a complete spec for this engine alone."""
        yield from ()

    def render(self, request: RenderRequest) -> Launch:
        """The Launch of one gang of equal replicas.

        :raises controlplane.adapters.engines.torchrun.PlanRefused: if the parallel plan does not multiply
            out to the cards, or replicas differ in their number.
        """
        spec = self.normalise(request.task, request.spec)
        translation = self.translated(_order(request, spec))
        shared, differing = torchrun.of_chip(request.chip, request.placements)
        environment = {
            **_ENVIRONMENT,
            **translation.environment,
            **shared,
            **torchrun.names(request.placements, launch=request.name),
        }
        if request.report_url:
            environment["NINEFOLD_REPORT_URL"] = request.report_url
        return Launch(
            name=request.name,
            roles=(
                Role(
                    name=ROLES[request.task],
                    argv=sequence.ARGV,
                    placements=request.placements,
                    environment=environment,
                ),
            ),
            files={
                **sequence.rendered(translation.steps, replicas=differing),
                **translation.files,
            },
            inputs=request.inputs,
            image=images.image(self.profile(), engine=self.name, chip=request.chip, spec=spec),
            secrets={"NINEFOLD_ATTEMPT_TOKEN": request.token} if request.token else {},
            grace=_GRACE,
            continues=request.continues,
            labels=request.labels,
        )


def precision(spec: Mapping[str, Any], *, chip: Chip) -> str:
    """The number format of the computation: ``auto`` is bfloat16 wherever the chip is not known to lack it."""
    asked = str(spec["precision"])
    if asked != "auto":
        return asked
    lacks = bool(chip.peak_rates) and Dtype.BFLOAT16 not in chip.peak_rates
    return "float16" if lacks else "bfloat16"


def no_bfloat16(chip: Chip | None) -> tuple[Limit, ...]:
    """The limit of a chip that is known to lack the format."""
    if chip is None or not chip.peak_rates or Dtype.BFLOAT16 in chip.peak_rates:
        return ()
    return (
        Limit(
            field="precision", values=("bfloat16",), reason=f"{chip.label} computes in float16 only"
        ),
    )


def _order(request: RenderRequest, spec: Mapping[str, Any]) -> Order:
    cards = torchrun.processes(request.placements) * len(request.placements)
    model = request.model
    context = model.context_length if model else 0
    parameters = model.parameters if model else 0
    return Order(
        spec=spec,
        chip=request.chip,
        plan=torchrun.planned(spec["parallel"], cards=cards),
        model=model,
        precision=precision(spec, chip=request.chip),
        max_length=spec["max_length"] or min(_USUAL_LENGTH, context or _USUAL_LENGTH),
        recompute=spec["recompute"] == "on"
        or (spec["recompute"] == "auto" and parameters > _RECOMPUTE_FROM),
        validation_split=_validation(request, spec),
        continues=request.continues is not None,
    )


def _validation(request: RenderRequest, spec: Mapping[str, Any]) -> str:
    """The split to validate on; empty if none is asked for or the dataset lacks it."""
    asked = spec["validation_split"] or ""
    found = {path for tree in request.inputs if tree.name == "dataset" for path in tree.files}
    return asked if f"{asked}.jsonl" in found else ""


def _check_names(spec: Mapping[str, Any]) -> Iterator[Finding]:
    for name in ("train_split", "validation_split"):
        split = spec.get(name)
        if split is not None and not _PLAIN_NAME.fullmatch(split):
            yield Finding(
                field=name,
                message=f"{name} must be letters, digits, '.', '-' and '_', got {split!r}; it becomes "
                "the name of a file, and a space would end it",
            )
    for layer in fields.at_path(spec, "lora.target_modules") or ():
        if not _LAYER_NAME.fullmatch(layer):
            yield Finding(
                field="lora.target_modules",
                message="lora.target_modules must be names of layers such as 'q_proj' (letters, "
                f"digits, '.' and '_'), got {layer!r}",
            )


def _check_length(spec: Mapping[str, Any], *, model: ModelFacts | None) -> Iterator[Finding]:
    length = spec.get("max_length")
    if model is not None and length is not None and 0 < model.context_length < length:
        yield Finding(
            field="max_length",
            message=f"max_length must be ≤ {model.context_length}, the context of {model.name}, "
            f"got {length}",
        )
