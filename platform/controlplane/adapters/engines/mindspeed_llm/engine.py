"""MindSpeed-LLM: Megatron's parallelism on Ascend, with weights converted there and back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.adapters.engines import ascend, sequence
from controlplane.adapters.engines.mindspeed_llm import architectures, arguments
from controlplane.adapters.engines.precisions import no_bfloat16
from controlplane.adapters.engines.trainers import ContainerTrainer, Order, Translation
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldFinding, FieldLimit
from controlplane.ports.engines import EngineProfile, FlagsChecked, ModelFacts, Task

PROFILE = EngineProfile(
    title="MindSpeed-LLM",
    versions=">=26.0,<26.2",
    default_version="26.0.0",
    # The project publishes how its images are made and named, but not the images: a company builds them.
    images=ascend.images(
        a2="mindspeed-llm:v{version}-cann9.0.0-torch_npu2.7.1-910b-ubuntu22.04-py3.11-aarch64",
        a3="mindspeed-llm:v{version}-cann9.0.0-torch_npu2.7.1-a3-ubuntu22.04-py3.11-aarch64",
    ),
    flags=FlagsChecked.UNVERIFIED,
    sources=(
        "https://gitcode.com/Ascend/MindSpeed-LLM/tree/master/examples/mcore",
        "https://gitcode.com/Ascend/MindSpeed-LLM/blob/master/docs/zh/pytorch/training/pretrain/"
        "mcore/train_from_hf.md",
        "https://gitcode.com/Ascend/MindSpeed-LLM/blob/master/docker/OVERVIEW.md",
    ),
)
_LIMITS = (
    FieldLimit(
        field="objective",
        values=("dpo", "grpo"),
        reason="this product renders answers and plain text for MindSpeed-LLM",
    ),
    FieldLimit(
        field="method",
        values=("qlora",),
        reason="this product does not render few-bit weights for MindSpeed-LLM",
    ),
    FieldLimit(field="lora.dropout", reason="MindSpeed-LLM's adapters have none"),
    FieldLimit(
        field="parallel.expert", reason="this product renders dense models for MindSpeed-LLM"
    ),
    FieldLimit(
        field="parallel.zero_stage",
        values=(2, 3),
        reason="Megatron shares the optimizer's states only, which is stage 1",
    ),
    FieldLimit(
        field="communication_dtype",
        values=("bfloat16", "float16"),
        reason="Megatron's default or float32 is what the documentation of MindSpeed-LLM shows",
    ),
    FieldLimit(
        field="fused_operators",
        values=("cross_entropy", "adamw", "grouped_matmul"),
        reason="MindSpeed-LLM chooses these kernels itself",
    ),
)
_ENVIRONMENT = {
    "HCCL_CONNECT_TIMEOUT": "3600",
    "HCCL_EXEC_TIMEOUT": "3600",
    "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
    "TASK_QUEUE_ENABLE": "2",
}


class MindSpeedLlmEngine(ContainerTrainer):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "mindspeed_llm"

    def profile(self) -> EngineProfile:
        return PROFILE

    def runs_on(self, task: Task, chip: Chip) -> str:
        if chip.torch_device != "npu":
            return f"MindSpeed-LLM runs on Ascend only, not on {chip.label}"
        return super().runs_on(task, chip)

    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return (*_LIMITS, *no_bfloat16(chip))

    def check_further(
        self, spec: Mapping[str, Any], *, model: ModelFacts | None
    ) -> Iterator[FieldFinding]:
        if spec["max_steps"] is None:
            yield FieldFinding(
                field="max_steps",
                message="max_steps is required: MindSpeed-LLM counts steps, not epochs; one epoch is "
                "rows ÷ (batch_size × gradient_accumulation × copies)",
            )
        if spec["method"] == "lora":
            yield from _check_lora(spec["lora"])
        if model is not None:
            yield from architectures.check(model)

    def translated(self, order: Order) -> Translation:
        model = order.model
        if model is None:
            raise ValueError("MindSpeed-LLM cannot be rendered without a model")
        resumes = order.continues
        steps: tuple[sequence.Run | sequence.Collect, ...] = (
            *arguments.shaping(order),
            sequence.Run(argv=arguments.copying()),
            sequence.Run(
                argv=arguments.training(order, model, resumes=False),
                newest=f"{arguments.CHECKPOINTS}/latest_checkpointed_iteration.txt"
                if resumes
                else "",
                resumed=arguments.training(order, model, resumes=True) if resumes else (),
                folder=arguments.COPY,
            ),
            sequence.Run(
                argv=arguments.merging(order, model), leader_only=True, folder=arguments.COPY
            ),
            sequence.Collect(source=arguments.MERGED),
        )
        files: dict[str, str] = {}
        if order.objective in arguments.SHAPES:
            files["shape_rows.py"] = sequence.program("shape_rows")
        return Translation(
            steps=steps, files=files, environment=_ENVIRONMENT, shares_checkpoints=True
        )


def _check_lora(lora: Mapping[str, Any]) -> Iterator[FieldFinding]:
    if lora["alpha"] != int(lora["alpha"]):
        yield FieldFinding(
            field="lora.alpha",
            message=f"lora.alpha must be a whole number for MindSpeed-LLM, got {lora['alpha']:g}",
        )
    asked = set(lora["target_modules"] or ())
    joint = [arguments.JOINT_LAYERS[name] for name in arguments.joint_layers(sorted(asked))]
    beyond = sorted(asked - frozenset().union(*joint))
    if beyond:
        groups = "; ".join(", ".join(sorted(parts)) for parts in arguments.JOINT_LAYERS.values())
        yield FieldFinding(
            field="lora.target_modules",
            message="lora.target_modules must be whole groups for MindSpeed-LLM, which joins layers "
            f"({groups}); got {', '.join(beyond)}",
        )
