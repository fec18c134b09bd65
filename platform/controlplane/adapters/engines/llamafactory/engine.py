"""LLaMA-Factory: one YAML file for training, one for merging."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.adapters.engines import ascend, deepspeed, sequence
from controlplane.adapters.engines.llamafactory import arguments
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
    title="LLaMA-Factory",
    versions=">=0.9.4,<0.10",
    default_version="0.9.5",
    images={
        "nvidia": "hiyouga/llamafactory:{version}",
        **ascend.images(
            a2="quay.io/ascend/llamafactory:latest-910b-ubuntu",
            a3="quay.io/ascend/llamafactory:latest-a3-ubuntu",
        ),
    },
    progress=ProgressFormat(
        path=f"{arguments.CHECKPOINTS}/trainer_log.jsonl",
        keys={
            "step": "current_steps",
            "total_steps": "total_steps",
            "loss": "loss",
            "eval_loss": "eval_loss",
            "learning_rate": "lr",
            "tokens_per_second": "throughput",
        },
    ),
    flags=FlagsChecked.PARSED,
    remarks=(
        "The parser of LLaMA-Factory 0.9.5 reads the arguments for NVIDIA H800 and Ascend 910B3 in this project's "
        "tests. That of other versions has read nothing.",
        "The images for Ascend have floating tags (latest-…): a rerun may get another version than the first run. "
        "An image of your own, named by its version in the chip's plug-in, stays the same.",
    ),
    sources=(
        "https://github.com/hiyouga/LLaMA-Factory/tree/v0.9.5",
        "https://llamafactory.readthedocs.io/en/latest/",
    ),
)

_ZERO_ONLY = "LLaMA-Factory divides the work by ZeRO stages only"
_LIMITS = (
    FieldLimit(
        field="objective", values=("grpo",), reason="LLaMA-Factory learns by rewards in PPO only"
    ),
    FieldLimit(field="parallel.tensor", reason=_ZERO_ONLY),
    FieldLimit(field="parallel.pipeline", reason=_ZERO_ONLY),
    FieldLimit(field="parallel.context", reason=_ZERO_ONLY),
    FieldLimit(field="parallel.expert", reason=_ZERO_ONLY),
    FieldLimit(field="parallel.sequence", values=("on",), reason=_ZERO_ONLY),
    FieldLimit(
        field="fused_operators",
        values=("grouped_matmul",),
        reason="LLaMA-Factory has no such kernel",
    ),
)
#: Numbers of bits that bitsandbytes knows.
_BITS = (4, 8)


class LlamaFactoryEngine(ContainerTrainer):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "llamafactory"

    def profile(self) -> EngineProfile:
        return PROFILE

    def limits(
        self, task: Task, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return (*_LIMITS, *no_bfloat16(chip), *_of_chip(chip))

    def check_further(
        self, spec: Mapping[str, Any], *, model: ModelFacts | None
    ) -> Iterator[FieldFinding]:
        bits, alpha = spec["qlora"]["bits"], spec["lora"]["alpha"]
        if spec["method"] == "qlora" and bits not in _BITS:
            yield FieldFinding(
                field="qlora.bits",
                message=f"qlora.bits must be 4 or 8 for bitsandbytes, got {bits}",
            )
        if spec["method"] == "qlora" and spec["parallel"]["zero_stage"] == 3 and bits != 4:
            yield FieldFinding(
                field="parallel.zero_stage",
                message=f"parallel.zero_stage 3 needs qlora.bits 4, got {bits}; choose stage 2 or 4 bits",
            )
        if spec["method"] != "full" and alpha != int(alpha):
            yield FieldFinding(
                field="lora.alpha",
                message=f"lora.alpha must be a whole number for LLaMA-Factory, got {alpha:g}",
            )

    def translated(self, order: Order) -> Translation:
        train = ("llamafactory-cli", "train", "train.yaml")
        steps: list[sequence.Run | sequence.Collect] = list(arguments.shaping(order))
        newest = f"{arguments.CHECKPOINTS}/checkpoint-*/trainer_state.json"
        steps.append(
            sequence.Run(
                argv=train,
                newest=newest if order.continues else "",
                resumed=(*train, "resume_from_checkpoint={newest}") if order.continues else (),
            )
        )
        files = {
            "train.yaml": arguments.yaml(arguments.training(order)),
            "data/dataset_info.json": arguments.datasets(order),
        }
        if order.objective in arguments.SHAPES:
            files["shape_rows.py"] = sequence.program("shape_rows")
        if deepspeed.wanted(order):
            files[deepspeed.FILE] = deepspeed.configuration(order)
        source = arguments.CHECKPOINTS
        if order.adapter:
            source = arguments.MERGED
            files["merge.yaml"] = arguments.yaml(arguments.merging(order))
            steps.append(
                sequence.Run(argv=("llamafactory-cli", "export", "merge.yaml"), leader_only=True)
            )
        steps.append(sequence.Collect(source=source))
        # With one card the launcher would start no torchrun, and DeepSpeed asks for it.
        return Translation(
            steps=tuple(steps),
            files=files,
            environment={"FORCE_TORCHRUN": "1"},
        )


def _of_chip(chip: Chip | None) -> Iterator[FieldLimit]:
    if chip is None or chip.torch_device == "cuda":
        return
    yield FieldLimit(
        field="method",
        values=("qlora",),
        reason=f"bitsandbytes, which keeps the weights in few bits, does not run on {chip.label}",
    )
    yield FieldLimit(
        field="fused_operators",
        values=tuple(sorted(arguments.LIGER)),
        reason=f"these are Liger kernels, which do not run on {chip.label}",
    )
