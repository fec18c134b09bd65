"""The engine ``llm_compressor``: quantizes causal language models to compressed-tensors, and measures the loss.

It runs ``ninefold_runtime`` in the environment of the ``transformers`` engine. This adapter renders; it
never imports torch.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.adapters.engines import runtime_launches
from controlplane.domain.common import spec_fields
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import (
    FieldFinding,
    FieldLimit,
    SpecField,
    field_finding,
)
from controlplane.domain.quantization import schemes as quantization
from controlplane.domain.specs.evaluation import QUANTIZE, SCHEMES
from controlplane.ports.engines import (
    ArgumentVerification,
    EngineProfile,
    EngineTask,
    ModelFacts,
    RenderRequest,
)
from controlplane.ports.launches import EngineEnvironment, Launch

#: Dense causal language models for which both SmoothQuant and AWQ have layer mappings; a test compares
#: with the library's own tables.
QUANTIZABLE = frozenset(
    {
        "Cohere2ForCausalLM",
        "CohereForCausalLM",
        "Gemma2ForCausalLM",
        "Gemma3ForCausalLM",
        "GraniteForCausalLM",
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "Phi3ForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
        "SeedOssForCausalLM",
    }
)
#: Settled by the product after the run.
_PRODUCT_FIELDS = frozenset({"tolerance", "engine_version"})


class LlmCompressorEngine:
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "llm_compressor"
    tasks = frozenset({EngineTask.QUANTIZE})

    def profile(self) -> EngineProfile:
        return EngineProfile(
            title="LLM Compressor",
            flags=ArgumentVerification.RUN,
            formats=frozenset({quantization.COMPRESSED_TENSORS}),
            sources=("https://github.com/vllm-project/llm-compressor",),
        )

    def unsupported_reason(self, task: EngineTask, chip: Chip) -> str:
        return runtime_launches.missing_torch_reason(chip)

    def environment(self) -> EngineEnvironment:
        return runtime_launches.runtime_environment()

    def fields(self, task: EngineTask) -> tuple[SpecField, ...]:
        return QUANTIZE

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        if chip is not None and (reason := runtime_launches.missing_torch_reason(chip)):
            return (FieldLimit(field="scheme", values=SCHEMES, reason=reason),)
        if model is None:
            return ()
        wrong = quantization.check_group_size(
            scheme="w4a16-awq", group_size=None, config=model.config
        )
        return tuple(
            FieldLimit(field="scheme", values=("w4a16-awq",), reason=finding.message)
            for finding in wrong
        )

    def check(
        self,
        task: EngineTask,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> tuple[FieldFinding, ...]:
        """Everything wrong with the spec; empty means that it can be rendered."""
        limits = self.limits(task, chip=chip, model=model)
        wrong = [
            *spec_fields.check_fields(QUANTIZE, spec),
            *spec_fields.check_limits(QUANTIZE, spec, limits),
        ]
        if model is not None:
            wrong += _check_model(spec, model=model)
        return tuple(wrong)

    def recommended_values(
        self, task: EngineTask, *, model: ModelFacts | None
    ) -> Mapping[str, Any]:
        """Rows no longer than the model's context."""
        default = spec_fields.default_at_path(QUANTIZE, "max_length")
        if model is None or not 0 < model.context_length < default:
            return {}
        return {"max_length": model.context_length}

    def normalise(self, task: EngineTask, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        """The spec with every default written out."""
        return spec_fields.with_defaults(QUANTIZE, spec)

    def render(self, request: RenderRequest) -> Launch:
        """The Launch of one process.

        :raises ValueError: unless there is exactly one placement; this engine does not cross nodes.
        """
        spec = self.normalise(request.task, request.spec)
        known = {name: value for name, value in spec.items() if name not in _PRODUCT_FIELDS}
        return runtime_launches.runtime_launch(request, spec=known)


def _check_model(spec: Mapping[str, Any], *, model: ModelFacts) -> Iterator[FieldFinding]:
    yield from quantization.check_not_quantized(
        name=model.name,
        scheme=model.scheme or model.format,
        reason=Reason(
            "engine.quantization.repeated",
            "quantizing a quantized model again would only reduce its quality",
        ),
    )
    scheme = spec.get("scheme", spec_fields.default_at_path(QUANTIZE, "scheme"))
    if not model.architecture.endswith("ForCausalLM"):
        yield field_finding(
            "model",
            "engine.quantization.not_causal_lm",
            "{model} is a {architecture}; this engine quantizes causal language "
            "models (…ForCausalLM)",
            model=model.name,
            architecture=model.architecture or "model of unknown architecture",
        )
    elif quantization.is_calibrated(scheme):
        yield from _check_architecture_supported(scheme, model=model)
    yield from _check_sizes(spec, scheme=scheme, model=model)


def _check_architecture_supported(scheme: str, *, model: ModelFacts) -> Iterator[FieldFinding]:
    if model.architecture not in QUANTIZABLE:
        yield field_finding(
            "scheme",
            "engine.quantization.layer_mapping_unknown",
            "{scheme} requires the layer mapping of the architecture, which is not "
            "known for {architecture}; use fp8-dynamic, or a model of {architectures}",
            scheme=scheme,
            architecture=model.architecture,
            architectures=", ".join(sorted(QUANTIZABLE)),
        )


def _check_sizes(
    spec: Mapping[str, Any], *, scheme: Any, model: ModelFacts
) -> Iterator[FieldFinding]:
    size = _positive_integer(spec.get("group_size"))
    if size is not None:
        yield from quantization.check_group_size(
            scheme=scheme, group_size=size, config=model.config
        )
    yield from model.check_length(spec, "max_length")


def _positive_integer(value: Any) -> int | None:
    """What is no whole number above 0 the table of fields refuses."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    return value if whole and value > 0 else None
