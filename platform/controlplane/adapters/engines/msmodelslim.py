"""The engine ``msmodelslim``: quantizes to W8A8 with SmoothQuant on Ascend, for vLLM Ascend, SGLang and MindIE."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any

from controlplane.adapters.engines import container_commands
from controlplane.adapters.engines.container_engine import ContainerEngine
from controlplane.domain.common import spec_fields
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import (
    FieldFinding,
    FieldLimit,
    SpecField,
    field_finding,
    fields_named,
)
from controlplane.domain.specs.evaluation import QUANTIZE
from controlplane.ports.engines import (
    ArgumentVerification,
    EngineProfile,
    EngineTask,
    ModelFacts,
    RenderRefused,
    RenderRequest,
)
from controlplane.ports.launches import Launch

PROFILE = EngineProfile(
    title="msModelSlim",
    default_version="26.0.0",
    flags=ArgumentVerification.UNVERIFIED,
    formats=frozenset({"modelslim"}),
    remarks=(
        Reason(
            "engine.msmodelslim.image_not_published",
            "No image is published: install msModelSlim from source in an image of "
            "vLLM Ascend, and enter that image under images in the vendor profile of "
            "the chips.",
        ),
        Reason(
            "engine.msmodelslim.quality_not_measured",
            "Does not measure quality: the quantized model is not compared with its "
            "base model, so evaluate both and accept it manually.",
        ),
    ),
    sources=(
        "Ascend/msmodelslim: docs/zh/api_reference/cli, config/config.ini and msmodelslim/infra",
    ),
)

#: The supported settings; those of the evaluation afterwards are not its own.
FIELDS = fields_named(
    QUANTIZE,
    "scheme",
    "calibration_split",
    "calibration_rows",
    "max_length",
    "smoothing_strength",
    "ignore",
    "seed",
)
_LIMITS = (
    FieldLimit.of(
        "scheme",
        ("w4a16-awq",),
        "engine.msmodelslim.w4a16_unverified",
        "w4a16 on Ascend is not verified by the developers of msModelSlim; use w8a8-smoothquant",
    ),
    FieldLimit.of(
        "scheme",
        ("fp8-dynamic",),
        "engine.msmodelslim.fp8_not_supported",
        "msModelSlim supports fp8 for chips of the 950 series only; "
        "w8a8-smoothquant is supported on all chips",
    ),
)
#: Architecture → a name by which it finds the adapter that takes that architecture apart.
MODEL_TYPES: Mapping[str, str] = {
    "Qwen2ForCausalLM": "Qwen2.5-7B-Instruct",
    "Qwen3ForCausalLM": "Qwen3-8B",
    "Qwen3MoeForCausalLM": "Qwen3-30B",
    "DeepseekV3ForCausalLM": "DeepSeek-V3",
    "Glm4MoeForCausalLM": "GLM-4.5",
}
_RECIPE, _CALIBRATION = "recipe.yaml", "calibration.json"
_GRACE = timedelta(seconds=30)
_ENVIRONMENT: Mapping[str, str] = {
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "PYTHONUNBUFFERED": "1",
}


class MsModelSlimEngine(ContainerEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "msmodelslim"
    engine_profile = PROFILE
    field_limits = _LIMITS
    checks_bfloat16 = False
    tasks = frozenset({EngineTask.QUANTIZE})

    def fields(self, task: EngineTask) -> tuple[SpecField, ...]:
        return FIELDS

    def unsupported_reason(self, task: EngineTask, chip: Chip) -> str:
        if chip.torch_device != "npu":
            return Reason(
                "engine.msmodelslim.chip_not_supported",
                "msModelSlim runs on Ascend only; use llm_compressor for other chips",
            )
        if self.missing_image_reason(chip):
            return Reason(
                "engine.msmodelslim.image_missing",
                "no image of msModelSlim is known for {chip}, and none is published; "
                "build one and enter it under images in the vendor profile of the chip",
                chip=chip.label,
            )
        return ""

    def recommended_values(
        self, task: EngineTask, *, model: ModelFacts | None
    ) -> Mapping[str, Any]:
        return {}

    def normalise(self, task: EngineTask, spec: Mapping[str, Any]) -> Mapping[str, Any]:
        return spec_fields.with_defaults(FIELDS, spec)

    def check(
        self,
        task: EngineTask,
        spec: Mapping[str, Any],
        *,
        chip: Chip | None,
        model: ModelFacts | None,
    ) -> tuple[FieldFinding, ...]:
        found = [
            *spec_fields.check_fields(FIELDS, spec),
            *spec_fields.check_limits(FIELDS, spec, _LIMITS),
        ]
        if model is not None:
            found += _check_model(model)
        return tuple(found)

    def render(self, request: RenderRequest) -> Launch:
        """The Launch of one process, on one node.

        It is given its recipe as a file, never as a scheme's name: without a recipe that suits exactly it would
        ask on its standard input whether another will do.

        :raises RenderRefused: unless there is exactly one placement and the model's architecture is known.
        """
        if len(request.placements) != 1:
            raise RenderRefused(
                "engine.msmodelslim.multi_node_not_supported",
                "msModelSlim must run on one node, got {nodes}",
                nodes=len(request.placements),
            )
        architecture = request.model.architecture if request.model else ""
        if architecture not in MODEL_TYPES:
            raise RenderRefused(
                "engine.msmodelslim.adapter_missing",
                "msModelSlim has no adapter for {architecture}",
                architecture=architecture or "an unknown model",
            )
        spec = self.normalise(request.task, request.spec)
        shared, differing = container_commands.chip_variables(request.chip, request.placements)
        cards = container_commands.processes_per_replica(request.placements)
        steps = _quantization_steps(spec, model_type=MODEL_TYPES[architecture], cards=cards)
        return self.step_launch(
            request,
            spec=spec,
            files={
                **container_commands.render_step_files(steps, replicas=differing),
                "calibration_rows.py": container_commands.read_bundled_program("calibration_rows"),
                _RECIPE: _quantization_recipe(spec),
            },
            environment={**_ENVIRONMENT, **shared},
            grace=_GRACE,
        )


def _quantization_steps(
    spec: Mapping[str, Any], *, model_type: str, cards: int
) -> tuple[container_commands.CommandStep, ...]:
    source = f"{{inputs}}/dataset/{spec['calibration_split']}.jsonl"
    size = [str(spec[name]) for name in ("calibration_rows", "max_length", "seed")]
    device = "npu" if cards == 1 else f"npu:{','.join(str(index) for index in range(cards))}"
    return (
        container_commands.CommandStep(
            argv=("{python}", "calibration_rows.py", "{inputs}/model", source, _CALIBRATION, *size)
        ),
        container_commands.CommandStep(
            argv=(
                *("msmodelslim", "quant", "--model_path", "{inputs}/model"),
                *("--save_path", f"{{work}}/{container_commands.OUTPUTS}", "--device", device),
                *("--model_type", model_type, "--config_path", f"{{work}}/{_RECIPE}"),
                *("--trust_remote_code", "False"),
            )
        ),
    )


def _quantization_recipe(spec: Mapping[str, Any]) -> str:
    """YAML, of which JSON is a part: SmoothQuant, then 8 bit for weights and activations."""
    left = [f"*{name}" for name in spec["ignore"]]
    recipe = {
        "apiversion": "modelslim_v1",
        "spec": {
            "process": [
                {
                    "type": "smooth_quant",
                    "alpha": spec["smoothing_strength"],
                    "symmetric": True,
                    "include": ["*"],
                    "exclude": left,
                },
                {
                    "type": "linear_quant",
                    "qconfig": {
                        "act": _int8_quantizer("per_token"),
                        "weight": _int8_quantizer("per_channel"),
                    },
                    "include": ["*"],
                    # The router of a mixture decides too much to be rounded.
                    "exclude": [*left, "*.gate"],
                },
            ],
            "save": [{"type": "ascendv1_saver", "part_file_size": 4}],
            "dataset": f"{{work}}/{_CALIBRATION}",
        },
    }
    return json.dumps(recipe, indent=2, ensure_ascii=False) + "\n"


def _int8_quantizer(scope: str) -> dict[str, Any]:
    return {"scope": scope, "dtype": "int8", "symmetric": True, "method": "minmax"}


def _check_model(model: ModelFacts) -> Iterator[FieldFinding]:
    if model.format:
        yield field_finding(
            "model_version",
            "engine.msmodelslim.already_quantized",
            "{model} is already quantized ({scheme}); choose the version from which "
            "it was quantized",
            model=model.name,
            scheme=model.scheme or "unknown scheme",
        )
    if model.architecture not in MODEL_TYPES:
        known = ", ".join(sorted(MODEL_TYPES))
        yield field_finding(
            "model_version",
            "engine.msmodelslim.architecture_not_supported",
            "{model} is a {architecture}, for which msModelSlim has no adapter; "
            "supported are {architectures}",
            model=model.name,
            architecture=model.architecture or "model of unknown architecture",
            architectures=known,
        )
