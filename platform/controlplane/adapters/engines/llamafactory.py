"""The engine ``llamafactory``: LLaMA-Factory in its own image (https://github.com/hiyouga/LLaMA-Factory).

One YAML file configures training, one merging. Paths are relative to the working folder, or absolute in a file;
none of them is an argument of a command, because the launcher of LLaMA-Factory splits its arguments at spaces.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from controlplane.adapters.engines import container_commands, container_engine, container_training
from controlplane.adapters.engines.container_training import (
    ContainerTrainingEngine,
    TrainingSettings,
    TrainingSteps,
)
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, FieldLimit, field_finding
from controlplane.ports.engines import (
    ArgumentVerification,
    EngineProfile,
    EngineTask,
    ModelFacts,
    ProgressFormat,
)

#: Relative to ``{work}``: where checkpoints, logs and the last weights go; where the merged model goes.
CHECKPOINTS, MERGED = "checkpoints", "merged"
#: Fused operators that are Liger kernels here; asking for one takes them all.
LIGER = frozenset({"rms_norm", "rotary_embedding", "swiglu", "cross_entropy"})
_STAGES = {"sft": "sft", "dpo": "dpo", "pretrain": "pt"}
_MODEL = "{inputs}/model"
_TAGS = {
    "role_tag": "role",
    "content_tag": "content",
    "user_tag": "user",
    "assistant_tag": "assistant",
    "system_tag": "system",
}
_COLUMNS: Mapping[str, dict[str, Any]] = {
    "sft": {"formatting": "sharegpt", "columns": {"messages": "messages"}, "tags": _TAGS},
    "dpo": {
        "formatting": "sharegpt",
        "ranking": True,
        "columns": {"messages": "messages", "chosen": "chosen", "rejected": "rejected"},
        "tags": _TAGS,
    },
    "pretrain": {"columns": {"prompt": "text"}},
}
#: Gigabytes of one file of weights.
_SHARD = 5


def training_arguments(settings: TrainingSettings) -> dict[str, Any]:
    """The configuration of ``llamafactory-cli train``."""
    spec = settings.spec
    return {
        "model_name_or_path": _MODEL,
        "trust_remote_code": False,
        **_attention_arguments(settings),
        "stage": _STAGES[settings.objective],
        "do_train": True,
        **_method_arguments(settings),
        **({"pref_beta": spec["dpo"]["beta"]} if settings.objective == "dpo" else {}),
        "dataset_dir": "data",
        "dataset": "train",
        "cutoff_len": settings.max_length,
        "preprocessing_num_workers": 4,
        "output_dir": CHECKPOINTS,
        "overwrite_output_dir": False,
        "per_device_train_batch_size": spec["batch_size"],
        "gradient_accumulation_steps": spec["gradient_accumulation"],
        "learning_rate": spec["learning_rate"],
        "num_train_epochs": spec["epochs"],
        "max_steps": spec["max_steps"] or -1,
        "lr_scheduler_type": container_training.scheduler_name(spec),
        "warmup_ratio": spec["warmup_ratio"],
        "weight_decay": spec["weight_decay"],
        "seed": spec["seed"],
        "bf16": settings.precision == "bfloat16",
        "fp16": settings.precision == "float16",
        "optim": container_training.optimizer_name(settings),
        "disable_gradient_checkpointing": not settings.recompute,
        **container_training.deepspeed_argument(settings),
        "logging_steps": spec["log_every_steps"],
        "save_strategy": "steps",
        "save_steps": spec["checkpoint_every_steps"],
        "save_total_limit": spec["keep_checkpoints"],
        **_validation_arguments(settings),
        "include_num_input_tokens_seen": True,
        "ddp_timeout": 180_000_000,
        "plot_loss": False,
        "report_to": "none",
    }


def merge_arguments(settings: TrainingSettings) -> dict[str, Any]:
    """The configuration of ``llamafactory-cli export``: merges the adapter into the unquantized weights."""
    return {
        "model_name_or_path": _MODEL,
        "adapter_name_or_path": CHECKPOINTS,
        "finetuning_type": "lora",
        "trust_remote_code": False,
        "export_dir": MERGED,
        "export_size": _SHARD,
        "export_device": "cpu",
        "export_legacy_format": False,
        "infer_dtype": settings.precision,
    }


def dataset_info(settings: TrainingSettings) -> str:
    """``dataset_info.json``: the splits under fixed names."""
    splits = {"train": settings.spec["train_split"]}
    if settings.validation_split:
        splits["validation"] = settings.validation_split
    content = {
        # An absolute name is taken as it is, a relative one from ``data``, the folder of the file that names it.
        name: {
            "file_name": f"{settings.rows_folder}/{split}.jsonl",
            **_COLUMNS[settings.objective],
        }
        for name, split in splits.items()
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def as_yaml(values: Mapping[str, Any]) -> str:
    """One ``name: value`` a line. JSON's scalars are YAML's, but for a float without a point."""
    return "".join(f"{name}: {_yaml_scalar(value)}\n" for name, value in values.items())


def _yaml_scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "." not in text:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa}.0e{exponent}"
    return text


def _method_arguments(settings: TrainingSettings) -> dict[str, Any]:
    if settings.method == "full":
        return {"finetuning_type": "full"}
    lora = settings.spec["lora"]
    values: dict[str, Any] = {
        "finetuning_type": "lora",
        "lora_rank": lora["rank"],
        "lora_alpha": int(lora["alpha"]),
        "lora_dropout": lora["dropout"],
        "lora_target": ",".join(lora["target_modules"] or ("all",)),
    }
    if settings.method == "qlora":
        qlora = settings.spec["qlora"]
        values |= {
            "quantization_method": "bnb",
            "quantization_bit": qlora["bits"],
            "double_quantization": qlora["double_quantization"] == "on",
        }
    return values


def _attention_arguments(settings: TrainingSettings) -> dict[str, Any]:
    return {
        "flash_attn": "fa2" if "flash_attention" in settings.fused else "auto",
        **({"enable_liger_kernel": True} if settings.fused & LIGER else {}),
    }


def _validation_arguments(settings: TrainingSettings) -> dict[str, Any]:
    if not settings.validation_split:
        return {}
    return {
        "eval_dataset": "validation",
        "eval_strategy": "steps",
        "eval_steps": settings.spec["checkpoint_every_steps"],
        "per_device_eval_batch_size": settings.spec["batch_size"],
    }


PROFILE = EngineProfile(
    title="LLaMA-Factory",
    versions=">=0.9.4,<0.10",
    default_version="0.9.5",
    images={
        "nvidia": "hiyouga/llamafactory:{version}",
        **container_engine.ascend_images(
            a2="quay.io/ascend/llamafactory:latest-910b-ubuntu",
            a3="quay.io/ascend/llamafactory:latest-a3-ubuntu",
        ),
    },
    progress=ProgressFormat(
        path=f"{CHECKPOINTS}/trainer_log.jsonl",
        keys={
            "step": "current_steps",
            "total_steps": "total_steps",
            "loss": "loss",
            "eval_loss": "eval_loss",
            "learning_rate": "lr",
            "tokens_per_second": "throughput",
        },
    ),
    flags=ArgumentVerification.PARSED,
    remarks=(
        Reason(
            "engine.llamafactory.verified_versions",
            "The arguments for NVIDIA H800 and Ascend 910B3 are verified with the "
            "argument parser of LLaMA-Factory 0.9.5. Other versions are not verified.",
        ),
        Reason(
            "engine.llamafactory.floating_image_tags",
            "The images for Ascend have floating tags (latest-…), so a rerun may use "
            "another version than the first run. To pin the version, enter an image "
            "of your own with a version tag in the chip's plug-in.",
        ),
    ),
    sources=(
        "https://github.com/hiyouga/LLaMA-Factory/tree/v0.9.5",
        "https://llamafactory.readthedocs.io/en/latest/",
    ),
)

_ZERO_ONLY = Reason(
    "engine.llamafactory.parallelism_not_supported",
    "LLaMA-Factory supports parallelism by ZeRO stages only",
)
_LIMITS = (
    FieldLimit.of(
        "objective",
        ("grpo",),
        "engine.llamafactory.grpo_not_supported",
        "LLaMA-Factory supports reinforcement learning with PPO only",
    ),
    FieldLimit(field="parallel.tensor", reason=_ZERO_ONLY),
    FieldLimit(field="parallel.pipeline", reason=_ZERO_ONLY),
    FieldLimit(field="parallel.context", reason=_ZERO_ONLY),
    FieldLimit(field="parallel.expert", reason=_ZERO_ONLY),
    FieldLimit(field="parallel.sequence", values=("on",), reason=_ZERO_ONLY),
    FieldLimit.of(
        "fused_operators",
        ("grouped_matmul",),
        "engine.llamafactory.kernel_not_supported",
        "LLaMA-Factory does not support this kernel",
    ),
)


class LlamaFactoryEngine(ContainerTrainingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "llamafactory"
    engine_profile = PROFILE
    field_limits = _LIMITS
    row_shapes: ClassVar = {"dpo": "pairs", "pretrain": "texts"}

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return (*super().limits(task, chip=chip, model=model), *_chip_field_limits(chip))

    def check_engine_rules(
        self, spec: Mapping[str, Any], *, model: ModelFacts | None
    ) -> Iterator[FieldFinding]:
        bits, alpha = spec["qlora"]["bits"], spec["lora"]["alpha"]
        yield from container_training.check_bitsandbytes(spec)
        if spec["method"] == "qlora" and spec["parallel"]["zero_stage"] == 3 and bits != 4:
            yield field_finding(
                "parallel.zero_stage",
                "engine.qlora.unsupported_zero_stage",
                "parallel.zero_stage 3 requires qlora.bits 4, got {bits}; choose stage 2 or 4 bits",
                bits=bits,
            )
        if spec["method"] != "full" and alpha != int(alpha):
            yield field_finding(
                "lora.alpha",
                "engine.llamafactory.alpha_not_integer",
                "lora.alpha must be a whole number for LLaMA-Factory, got {alpha}",
                alpha=f"{alpha:g}",
            )

    def translate(self, settings: TrainingSettings) -> TrainingSteps:
        train = ("llamafactory-cli", "train", "train.yaml")
        newest = f"{CHECKPOINTS}/checkpoint-*/trainer_state.json"
        steps: list[container_commands.CommandStep | container_commands.CollectModelFilesStep] = [
            container_commands.CommandStep(
                argv=train,
                newest=newest if settings.continues else "",
                resumed=(*train, "resume_from_checkpoint={newest}") if settings.continues else (),
            )
        ]
        files = {
            "train.yaml": as_yaml(training_arguments(settings)),
            "data/dataset_info.json": dataset_info(settings),
            **container_training.deepspeed_files(settings),
        }
        source = CHECKPOINTS
        if settings.adapter:
            source = MERGED
            files["merge.yaml"] = as_yaml(merge_arguments(settings))
            steps.append(
                container_commands.CommandStep(
                    argv=("llamafactory-cli", "export", "merge.yaml"), leader_only=True
                )
            )
        steps.append(container_commands.CollectModelFilesStep(source=source))
        # With one card the launcher would start no torchrun, and DeepSpeed requires it.
        return TrainingSteps(
            steps=tuple(steps),
            files=files,
            environment={"FORCE_TORCHRUN": "1"},
        )


def _chip_field_limits(chip: Chip | None) -> Iterator[FieldLimit]:
    if chip is None or chip.torch_device == "cuda":
        return
    yield FieldLimit.of(
        "method",
        ("qlora",),
        "engine.bitsandbytes.chip_not_supported",
        "bitsandbytes, which QLoRA requires, does not run on {chip}",
        chip=chip.label,
    )
    yield FieldLimit.of(
        "fused_operators",
        tuple(sorted(LIGER)),
        "engine.liger.chip_not_supported",
        "Liger kernels do not run on {chip}",
        chip=chip.label,
    )
