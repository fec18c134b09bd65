"""Rendering of specs into Launches for the ``transformers`` engine: its fields, its limits and what it trains.

``ninefold_runtime.specs`` mirrors the names and types of the fields; a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from controlplane.adapters.engines import runtime_launches
from controlplane.domain.common import spec_fields
from controlplane.domain.common.accelerators import Chip, ChipKind
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import Bytes
from controlplane.domain.common.spec_fields import (
    FieldFinding,
    FieldLimit,
    SpecField,
    field_finding,
    fields_named,
    integer_field,
    texts_field,
    variables_field,
)
from controlplane.domain.quantization import schemes as quantization
from controlplane.domain.serving.model_kinds import LOGIT_SCORE_MODULE, ModelKind, Operation
from controlplane.domain.sizing import EngineMemory, MixedPrecision, ServingTraits
from controlplane.domain.specs import training
from controlplane.domain.specs.evaluation import EVALUATE
from controlplane.domain.specs.serving import SERVE
from controlplane.domain.specs.training import FINETUNE
from controlplane.ports.engines import (
    ArgumentVerification,
    EngineProfile,
    EngineTask,
    LoraSupport,
    ModelFacts,
    RenderRequest,
)
from controlplane.ports.launches import EngineEnvironment, Launch

SCRIPT = (
    texts_field(
        "argv",
        "Command",
        'Program and arguments, such as ["python", "train.py"]; python is that of the engine.',
    ),
    variables_field(
        "environment", "Environment", "Environment variables of the program.", default={}
    ),
    integer_field(
        "maximum_run_time_seconds",
        "Maximum run time",
        "Seconds after which the program is terminated.",
        default=3600,
        within=(1, 30 * 24 * 3600),
    ),
)

FIELDS: Mapping[EngineTask, tuple[SpecField, ...]] = {
    # It is part of this product, so there is no version to choose.
    EngineTask.FINETUNE: tuple(field for field in FINETUNE if field.name != "engine_version"),
    EngineTask.EVALUATE: EVALUATE,
    EngineTask.SCRIPT: SCRIPT,
    EngineTask.SERVE: fields_named(SERVE, "model_name", "queue_size", "precision"),
}

#: Handled by the product before the runtime starts, or unsupported by the runtime.
_PRODUCT_FIELDS = frozenset(
    {
        "qlora",
        "parallel",
        "communication_dtype",
        "fused_operators",
        "out_of_memory_retries",
        "engine_version",
    }
)

_ONE_PROCESS = Reason(
    "engine.transformers.single_process", "this engine runs one process on one node"
)
_PARALLEL = ("tensor", "pipeline", "data", "context", "expert", "zero_stage")

LIMITS: Mapping[EngineTask, tuple[FieldLimit, ...]] = {
    EngineTask.FINETUNE: (
        FieldLimit.of(
            "precision",
            ("float16",),
            "engine.transformers.loss_scaling_required",
            "training in this precision requires loss scaling",
        ),
        *(FieldLimit(field=f"parallel.{name}", reason=_ONE_PROCESS) for name in _PARALLEL),
        FieldLimit(field="parallel.sequence", values=("on",), reason=_ONE_PROCESS),
        FieldLimit.of(
            "communication_dtype",
            ("float32", "bfloat16", "float16"),
            "engine.transformers.no_communication",
            "{reason}, so there is no communication between processes",
            reason=_ONE_PROCESS,
        ),
        FieldLimit.of(
            "fused_operators",
            (),
            "engine.transformers.kernels_not_configurable",
            "this engine uses the kernels of PyTorch",
        ),
    ),
}


def qlora_method_limit(chip: Chip | None) -> FieldLimit:
    """Why weights cannot be loaded in 4 bits there."""
    reason = Reason(
        "engine.bitsandbytes.not_installed",
        "bitsandbytes, which QLoRA requires, is not among the packages of this engine",
    )
    if chip is not None and chip.kind is not ChipKind.GPU:
        reason = Reason(
            "engine.bitsandbytes.chip_not_supported",
            "bitsandbytes, which QLoRA requires, does not run on {chip}",
            chip=chip.label,
        )
    return FieldLimit(field="method", values=("qlora",), reason=reason)


#: Causal language models that this engine trains: dense text models whose layers LoRA and TRL support.
TRAINABLE = frozenset(
    {
        "Gemma2ForCausalLM",
        "Gemma3ForCausalLM",
        "GemmaForCausalLM",
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "OlmoForCausalLM",
        "Olmo2ForCausalLM",
        "Phi3ForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
        "SmolLM3ForCausalLM",
    }
)


def supports_image_input(model: ModelFacts) -> bool:
    """Whether it is a vision-language model that the server loads: chats with images."""
    return (
        model.kind is ModelKind.TEXT
        and model.architecture.endswith("ForConditionalGeneration")
        and "vision_config" in model.config
    )


def _check_reranker(model: ModelFacts) -> Iterator[FieldFinding]:
    """A causal language model is a reranker by its module of sentence-transformers, which has its prompt too."""
    if model.architecture.endswith("ForCausalLM") and not any(
        LOGIT_SCORE_MODULE in path for path in model.files
    ):
        yield field_finding(
            "model",
            "engine.transformers.reranker_without_module",
            "{model} is a {architecture} without the files of sentence-transformers "
            "(modules.json with LogitScore), which this engine requires of a reranker; import a "
            "revision that has them, or serve it with vLLM",
            model=model.name,
            architecture=model.architecture,
        )


def runtime_spec(spec: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a complete spec that ``ninefold_runtime`` reads."""
    return {name: value for name, value in spec.items() if name not in _PRODUCT_FIELDS}


OPERATIONS = {
    ModelKind.TEXT: frozenset({Operation.CHAT, Operation.COMPLETIONS, Operation.RESPONSES}),
    ModelKind.EMBEDDING: frozenset({Operation.EMBEDDINGS}),
    ModelKind.RERANKER: frozenset({Operation.RERANK}),
    ModelKind.TRANSCRIPTION: frozenset({Operation.TRANSCRIPTIONS}),
    ModelKind.IMAGE: frozenset({Operation.IMAGES}),
}

#: Measured in ``tests/engine/test_sizing.py``: prompts go through whole, one request at a time, and nothing is
#: recorded; attention over a compressed cache writes its scores down.
_MEMORY = EngineMemory(
    serving=ServingTraits(
        step_tokens=None, concurrency=1, graphs=Bytes(0), fused_latent=False, block=1
    ),
    half=MixedPrecision.AUTOCAST,
    drops_gradients=True,
)


class TransformersEngine:
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "transformers"
    tasks = frozenset(FIELDS)

    def profile(self) -> EngineProfile:
        return EngineProfile(
            title="Transformers",
            flags=ArgumentVerification.RUN,
            formats=frozenset({quantization.COMPRESSED_TENSORS}),
            operations=OPERATIONS,
            lora=LoraSupport(variants=frozenset({"DoRA"})),
            memory=_MEMORY,
        )

    def unsupported_reason(self, task: EngineTask, chip: Chip) -> str:
        """What the runtime does itself needs a device of its torch; a script brings what it needs."""
        return "" if task is EngineTask.SCRIPT else runtime_launches.missing_torch_reason(chip)

    def environment(self) -> EngineEnvironment:
        """torch by itself, then everything else by the hashed lock."""
        return runtime_launches.runtime_environment()

    def fields(self, task: EngineTask) -> tuple[SpecField, ...]:
        """What can be set, with labels, limits and defaults, for forms and API descriptions."""
        return FIELDS[task]

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        limits = LIMITS.get(task, ())
        return (qlora_method_limit(chip), *limits) if task is EngineTask.FINETUNE else limits

    def recommended_values(
        self, task: EngineTask, *, model: ModelFacts | None
    ) -> Mapping[str, Any]:
        """Values that suit the model better than the defaults."""
        if task is not EngineTask.FINETUNE or model is None:
            return {}
        return training.recommended_values(parameters=model.parameters)

    def check(
        self,
        task: EngineTask,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> tuple[FieldFinding, ...]:
        """Everything wrong with the spec; empty means that it can be rendered."""
        table = FIELDS[task]
        limits = self.limits(task, chip=chip, model=model)
        wrong = (
            *spec_fields.check_fields(table, spec),
            *spec_fields.check_limits(table, spec, limits),
        )
        if task is EngineTask.FINETUNE and not wrong:
            wrong = tuple(training.check_grpo_batches(self.normalise(task, spec)))
        if model is None or task is EngineTask.SCRIPT:
            return wrong
        return (*wrong, *_check_model(task, spec, model=model))

    def normalise(self, task: EngineTask, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The spec with every default written out. LoRA has a default learning rate of its own."""
        complete = spec_fields.with_defaults(FIELDS[task], spec)
        if task is EngineTask.FINETUNE and "learning_rate" not in spec:
            complete["learning_rate"] = training.default_learning_rate(
                objective=complete["objective"], method=complete["method"]
            )
        return complete

    def render(self, request: RenderRequest) -> Launch:
        """The Launch of one process.

        :raises ValueError: unless there is exactly one placement; this engine does not cross nodes.
        """
        spec = self.normalise(request.task, request.spec)
        limited = request.task is EngineTask.SCRIPT
        rendered = runtime_spec(spec)
        if request.adapters:
            rendered["adapters"] = {each.name: each.input for each in request.adapters}
        return runtime_launches.runtime_launch(
            request,
            spec=rendered,
            run_within=timedelta(seconds=spec["maximum_run_time_seconds"]) if limited else None,
        )


def _check_model(
    task: EngineTask, spec: Mapping[str, Any], *, model: ModelFacts
) -> Iterator[FieldFinding]:
    if task is EngineTask.FINETUNE:
        yield from quantization.check_not_quantized(
            name=model.name,
            scheme=model.scheme or model.format,
            reason=Reason(
                "engine.training.unquantized_weights_required",
                "training requires unquantized weights",
            ),
        )
    else:
        yield from quantization.check_weight_format_loadable(
            name=model.name,
            scheme=model.scheme,
            written=model.format,
            engine="transformers",
            formats=frozenset({quantization.COMPRESSED_TENSORS}),
        )
    if task is EngineTask.FINETUNE and model.architecture not in TRAINABLE:
        yield field_finding(
            "model",
            "engine.transformers.architecture_not_supported",
            "{model} is a {architecture}, which this engine cannot train; it trains "
            "{architectures}",
            model=model.name,
            architecture=model.architecture or "model of unknown architecture",
            architectures=", ".join(sorted(TRAINABLE)),
        )
    elif task is EngineTask.SERVE and model.kind is ModelKind.RERANKER:
        yield from _check_reranker(model)
        return
    elif task is EngineTask.SERVE and (
        model.kind in OPERATIONS.keys() - {ModelKind.TEXT} or supports_image_input(model)
    ):
        return
    elif not model.architecture.endswith("ForCausalLM"):
        yield field_finding(
            "model",
            "engine.transformers.not_causal_lm",
            "{model} is a {architecture}; this engine runs causal language models (…ForCausalLM)",
            model=model.name,
            architecture=model.architecture or "model of unknown architecture",
        )
    name = {EngineTask.FINETUNE: "max_length", EngineTask.EVALUATE: "max_new_tokens"}.get(task, "")
    yield from model.check_length(spec, name)
