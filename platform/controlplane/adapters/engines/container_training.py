"""Base class of engines that train in their own image.

A subclass declares which fields it cannot honour (``limits``) and translates one checked spec into files and
steps (``translate``); choosing the image, the rendezvous variables, the chip's variables, merging and
collecting outputs are the same for all of them. What a chip contributes to a rendering is in one place: the
image, ``torchrun.chip_variables``, and the few values of ``TrainingSettings`` that follow from its
``torch_device`` and number formats.

DeepSpeed's configuration file for a ZeRO stage follows https://www.deepspeed.ai/docs/config-json/; ``auto`` is
filled in by the engine from its own arguments.
"""

from __future__ import annotations

import json
import re
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, ClassVar

from controlplane.adapters.engines import container_commands, container_engine
from controlplane.adapters.engines.container_engine import ContainerEngine, resolve_precision
from controlplane.domain.common import spec_fields
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldFinding, SpecField, field_finding
from controlplane.domain.jobs.parallelism import ParallelPlan
from controlplane.domain.specs import training
from controlplane.ports.engines import EngineTask, ModelFacts, RenderRequest
from controlplane.ports.launches import Launch

#: Time to end the current step; these engines save at their checkpoints, not when they are stopped.
_GRACE = timedelta(minutes=2)
#: The longest row where a spec leaves it open and the model allows it, in tokens.
_DEFAULT_LENGTH = 2048
#: Above so many parameters activation checkpointing is on, unless the spec overrides it.
_RECOMPUTE_FROM = 1_000_000_000
#: What may stand in a file's name or the name of a layer: engines read lists, placeholders and spaces in others.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
_LAYER_NAME = re.compile(r"[A-Za-z0-9_.]+")

_ENVIRONMENT: Mapping[str, str] = {
    **container_engine.OFFLINE_ENVIRONMENT,
    "HF_DATASETS_CACHE": "{work}/tmp/datasets",
    "HF_DATASETS_OFFLINE": "1",
    "MODELSCOPE_CACHE": "{work}/tmp/modelscope",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """A spec with nothing left open."""

    spec: Mapping[str, Any]
    chip: Chip
    plan: ParallelPlan
    model: ModelFacts | None
    #: ``bfloat16``, ``float16`` or ``float32``.
    precision: str
    #: In tokens.
    max_length: int
    recompute: bool
    #: Empty if there is nothing to validate on.
    validation_split: str
    #: Where the rows of a split are, as ``<split>.jsonl``.
    rows_folder: str
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
class TrainingSteps:
    """An engine's steps for a training spec."""

    steps: tuple[container_commands.CommandStep | container_commands.CollectModelFilesStep, ...]
    #: Text files by path relative to ``{work}``.
    files: Mapping[str, str] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    #: Whether its replicas read what one of them writes beside the checkpoints.
    shares_checkpoints: bool = False


class ContainerTrainingEngine(ContainerEngine):
    """Implements ``controlplane.ports.engines.Engine`` but for ``name``, ``profile`` and the translation."""

    tasks = frozenset({EngineTask.FINETUNE})
    #: Objectives whose rows are rewritten before training → the shape (``programs/shape_rows.py``).
    row_shapes: ClassVar[Mapping[str, str]] = {}
    #: Whether it validates during training.
    validates = True

    @abstractmethod
    def translate(self, settings: TrainingSettings) -> TrainingSteps:
        """Files, steps and variables of a checked spec, none of them the chip's."""

    def fields(self, task: EngineTask) -> tuple[SpecField, ...]:
        return training.FINETUNE

    def recommended_values(
        self, task: EngineTask, *, model: ModelFacts | None
    ) -> Mapping[str, Any]:
        return training.recommended_values(parameters=model.parameters) if model else {}

    def normalise(self, task: EngineTask, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        complete = spec_fields.with_defaults(self.fields(task), spec)
        if "learning_rate" not in spec:
            complete["learning_rate"] = training.default_learning_rate(
                objective=complete["objective"], method=complete["method"]
            )
        return complete

    def check(
        self,
        task: EngineTask,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> tuple[FieldFinding, ...]:
        table = self.fields(task)
        wrong = spec_fields.check_fields(table, spec)
        if wrong:
            return wrong
        limits = self.limits(task, chip=chip, model=model)
        return (
            *spec_fields.check_limits(table, spec, limits),
            *self.check_version(spec, chip=chip),
            *_check_names(spec),
            *(model.check_length(spec, "max_length") if model else ()),
            *self.check_engine_rules(self.normalise(task, spec), model=model),
        )

    def check_engine_rules(
        self, spec: Mapping[str, Any], *, model: ModelFacts | None
    ) -> Iterator[FieldFinding]:
        """What else is wrong with a complete spec for this engine alone."""
        yield from ()

    def render(self, request: RenderRequest) -> Launch:
        """The Launch of one gang of equal replicas.

        :raises InvalidParallelPlan: if the parallel plan does not multiply out to the cards, or replicas differ in
            their number.
        """
        spec = self.normalise(request.task, request.spec)
        settings = self._training_settings(request, spec)
        translation = self.translate(settings)
        shape = self.row_shapes.get(settings.objective)
        splits = filter(None, (spec["train_split"], settings.validation_split))
        rewriting = [
            container_commands.shape_rows_step(shape, split=split) for split in splits if shape
        ]
        programs = ("shape_rows",) if shape else ()
        shared, differing = container_commands.chip_variables(request.chip, request.placements)
        return self.step_launch(
            request,
            spec=spec,
            files={
                **container_commands.render_step_files(
                    [*rewriting, *translation.steps], replicas=differing
                ),
                **translation.files,
                **{
                    f"{each}.py": container_commands.read_bundled_program(each) for each in programs
                },
            },
            environment={
                **_ENVIRONMENT,
                **translation.environment,
                **shared,
                **container_commands.rendezvous_variables(request.placements, launch=request.name),
            },
            grace=_GRACE,
            shares_checkpoints=translation.shares_checkpoints,
        )

    def _training_settings(
        self, request: RenderRequest, spec: Mapping[str, Any]
    ) -> TrainingSettings:
        placements, model = request.placements, request.model
        cards = container_commands.processes_per_replica(placements) * len(placements)
        context = model.context_length if model else 0
        parameters = model.parameters if model else 0
        reshapes = spec["objective"] in self.row_shapes
        return TrainingSettings(
            spec=spec,
            chip=request.chip,
            plan=container_commands.parallel_plan(spec["parallel"], cards=cards),
            model=model,
            precision=resolve_precision(spec, chip=request.chip),
            max_length=spec["max_length"] or min(_DEFAULT_LENGTH, context or _DEFAULT_LENGTH),
            recompute=spec["recompute"] == "on"
            or (spec["recompute"] == "auto" and parameters > _RECOMPUTE_FROM),
            validation_split=_validation_split(request, spec) if self.validates else "",
            rows_folder="{work}/rows" if reshapes else "{inputs}/dataset",
            continues=request.continues is not None,
        )


def _validation_split(request: RenderRequest, spec: Mapping[str, Any]) -> str:
    """The split to validate on; empty if none is requested or the dataset lacks it."""
    requested = spec["validation_split"] or ""
    found = {path for tree in request.inputs if tree.name == "dataset" for path in tree.files}
    return requested if f"{requested}.jsonl" in found else ""


def _check_names(spec: Mapping[str, Any]) -> Iterator[FieldFinding]:
    for name in ("train_split", "validation_split"):
        split = spec.get(name)
        if split is not None and not _PLAIN_NAME.fullmatch(split):
            yield field_finding(
                name,
                "engine.split_name.invalid",
                "{field} must be letters, digits, '.', '-' and '_', because it is used "
                "as a file name; got {name}",
                field=name,
                name=repr(split),
            )
    for layer in spec_fields.value_at_path(spec, "lora.target_modules") or ():
        if not _LAYER_NAME.fullmatch(layer):
            yield field_finding(
                "lora.target_modules",
                "engine.lora.invalid_layer_name",
                "lora.target_modules must be names of layers such as 'q_proj' (letters, "
                "digits, '.' and '_'), got {layer}",
                layer=repr(layer),
            )


#: Relative to ``{work}``.
DEEPSPEED_FILE = "deepspeed.json"
#: DeepSpeed's names of number formats.
_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def deepspeed_argument(settings: TrainingSettings) -> dict[str, str]:
    """The argument that names the file; none where ``deepspeed_files`` is empty."""
    return dict.fromkeys(("deepspeed",) if deepspeed_files(settings) else (), DEEPSPEED_FILE)


def deepspeed_files(settings: TrainingSettings) -> dict[str, str]:
    """The file, where the plan or the communication needs DeepSpeed; plain data parallelism does not."""
    stage, dtype = settings.plan.zero_stage, settings.spec["communication_dtype"]
    if stage == 0 and dtype == "auto":
        return {}
    zero: dict[str, Any] = {
        "stage": stage,
        "overlap_comm": False,
        "contiguous_gradients": True,
    }
    if stage == 3:
        zero |= {
            "reduce_bucket_size": "auto",
            "stage3_prefetch_bucket_size": "auto",
            "stage3_param_persistence_threshold": "auto",
            "stage3_gather_16bit_weights_on_model_save": True,
        }
    else:
        zero |= {"allgather_partitions": True, "reduce_scatter": True}
    content: dict[str, Any] = {
        "train_batch_size": "auto",
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "zero_allow_untested_optimizer": True,
        "fp16": {"enabled": "auto", "loss_scale": 0},
        "bf16": {"enabled": "auto"},
        "zero_optimization": zero,
    }
    if dtype != "auto":
        content["communication_data_type"] = _DTYPES[dtype]
    return {DEEPSPEED_FILE: json.dumps(content, indent=2) + "\n"}


# -- Values that several engines name alike --


def optimizer_name(settings: TrainingSettings) -> str:
    """torch has a fused kernel for each kind of device; the one for NPUs has a name of its own."""
    if "adamw" not in settings.fused:
        return "adamw_torch"
    return "adamw_torch_npu_fused" if settings.chip.torch_device == "npu" else "adamw_torch_fused"


def scheduler_name(spec: Mapping[str, Any]) -> str:
    """``constant`` would leave the warm-up out."""
    schedule = str(spec["scheduler"])
    return "constant_with_warmup" if schedule == "constant" else schedule


def check_bitsandbytes(spec: Mapping[str, Any]) -> Iterator[FieldFinding]:
    bits = spec["qlora"]["bits"]
    if spec["method"] == "qlora" and bits not in (4, 8):
        yield field_finding(
            "qlora.bits",
            "engine.qlora.unsupported_bits",
            "qlora.bits must be 4 or 8 for bitsandbytes, got {bits}",
            bits=bits,
        )
