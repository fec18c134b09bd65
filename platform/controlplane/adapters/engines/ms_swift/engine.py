"""ms-swift: one JSON file for training, a command for merging."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.adapters.engines import ascend, deepspeed, sequence
from controlplane.adapters.engines.ms_swift import arguments, families
from controlplane.adapters.engines.precisions import no_bfloat16
from controlplane.adapters.engines.trainers import ContainerTrainer, Order, Translation
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.spec_fields import FieldFinding, FieldLimit
from controlplane.ports.engines import (
    EngineProfile,
    FlagsChecked,
    ModelFacts,
    ProgressFormat,
    Task,
)

PROFILE = EngineProfile(
    title="ms-swift",
    versions=">=4.3,<4.7",
    default_version="4.4.3",
    images={
        "nvidia": "modelscope-registry.cn-hangzhou.cr.aliyuncs.com/modelscope-repo/modelscope:"
        "ubuntu22.04-cuda13.0.3-py312-torch2.11.0-vllm0.25.1-modelscope1.39.0-swift4.4.3",
        **ascend.images(
            a2="quay.io/ascend/ms-swift:v4.3.0-A2-py311-CANN9.0.0-ubuntu22.04",
            a3="quay.io/ascend/ms-swift:v4.3.0-A3-py311-CANN9.0.0-ubuntu22.04",
        ),
    },
    progress=ProgressFormat(
        path=f"{arguments.CHECKPOINTS}/logging.jsonl",
        keys={
            "step": "global_step/max_steps#0",
            "total_steps": "global_step/max_steps#1",
            "loss": "loss",
            "eval_loss": "eval_loss",
            "learning_rate": "learning_rate",
        },
    ),
    flags=FlagsChecked.PARSED,
    remarks=(
        "The parsers of ms-swift 4.3.0, which the image for Ascend holds, and 4.6.0 read the arguments for NVIDIA "
        "H800 and Ascend 910B3 in this project's tests, and those of 4.4.2 and 4.5.3 did once. 4.4.3, which the "
        "image for NVIDIA holds, is published in no registry of packages: its parser has read nothing.",
    ),
    sources=(
        "https://github.com/modelscope/ms-swift/tree/v4.6.0",
        "https://swift.readthedocs.io/en/latest/Instruction/Command-line-parameters.html",
        "https://swift.readthedocs.io/en/latest/BestPractices/NPU-support.html",
    ),
)

_MEGATRON = (
    "only ms-swift's Megatron half divides a model so, and this product renders the other one"
)
_LIMITS = (
    FieldLimit(field="parallel.tensor", reason=_MEGATRON),
    FieldLimit(field="parallel.pipeline", reason=_MEGATRON),
    FieldLimit(field="parallel.expert", reason=_MEGATRON),
    FieldLimit(field="parallel.sequence", values=("on",), reason=_MEGATRON),
    FieldLimit(
        field="fused_operators", values=("grouped_matmul",), reason="ms-swift has no such kernel"
    ),
)
#: Numbers of bits that bitsandbytes knows.
_BITS = (4, 8)


class MsSwiftEngine(ContainerTrainer):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "ms_swift"

    def profile(self) -> EngineProfile:
        return PROFILE

    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return (*_LIMITS, *no_bfloat16(chip), *_of_chip(chip))

    def check_further(
        self, spec: Mapping[str, Any], *, model: ModelFacts | None
    ) -> Iterator[FieldFinding]:
        if model is not None:
            yield from families.check(model)
        alpha = spec["lora"]["alpha"]
        if spec["method"] != "full" and alpha != int(alpha):
            yield FieldFinding(
                field="lora.alpha",
                message=f"lora.alpha must be a whole number for ms-swift before 4.5, got {alpha:g}",
            )
        bits = spec["qlora"]["bits"]
        if spec["method"] == "qlora" and bits not in _BITS:
            yield FieldFinding(
                field="qlora.bits",
                message=f"qlora.bits must be 4 or 8 for bitsandbytes, got {bits}",
            )
        if spec["objective"] != "grpo":
            return
        group = spec["batch_size"] * spec["gradient_accumulation"]
        if group % spec["grpo"]["generations"]:
            yield FieldFinding(
                field="grpo.generations",
                message=f"grpo.generations must divide batch_size × gradient_accumulation, {group}, "
                f"got {spec['grpo']['generations']}",
            )

    def translated(self, order: Order) -> Translation:
        train = ("swift", arguments.COMMANDS[order.objective], "train.json")
        newest = f"{arguments.CHECKPOINTS}/checkpoint-*/trainer_state.json"
        resumed = (*train, "--resume_from_checkpoint", "{newest}") if order.continues else ()
        steps: list[sequence.Run | sequence.Collect] = [
            *arguments.shaping(order),
            sequence.Run(argv=train, newest=newest if order.continues else "", resumed=resumed),
        ]
        files = {"train.json": arguments.as_json(arguments.training(order))}
        if order.objective in arguments.SHAPES:
            files["shape_rows.py"] = sequence.program("shape_rows")
        if order.objective == "grpo":
            files["plugins/ninefold_rewards.py"] = sequence.program("ninefold_rewards")
            files["plugins/ninefold_scoring.py"] = sequence.scoring()
        if deepspeed.wanted(order):
            files[deepspeed.FILE] = deepspeed.configuration(order)
        if order.adapter:
            steps.append(
                sequence.Run(argv=arguments.merging(order), newest=newest, leader_only=True)
            )
            steps.append(sequence.Collect(source=arguments.MERGED))
        else:
            steps.append(sequence.Collect(source="{newest}", newest=newest))
        return Translation(steps=tuple(steps), files=files)


def _of_chip(chip: Chip | None) -> Iterator[FieldLimit]:
    if chip is None or chip.torch_device == "cuda":
        return
    yield FieldLimit(
        field="method",
        values=("qlora",),
        reason=f"bitsandbytes, which keeps the weights in few bits, does not run on {chip.label}; "
        "ms-swift lists QLoRA as not supported there",
    )
    yield FieldLimit(
        field="fused_operators",
        values=tuple(sorted(arguments.LIGER)),
        reason=f"these are Liger kernels, which ms-swift lists as not supported on {chip.label}",
    )
