"""The engine ``ms_swift``: ModelScope's SWIFT in its own image (https://github.com/modelscope/ms-swift).

One JSON file configures training, a command merges; arguments are those from version 4 on. ms-swift cannot tell
a model's family from ``config.json`` alone where several of its families share an architecture, and then
requires ``--model_type`` and ``--template``. The values are those of its own tables; a test looks each of them
up there.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
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

#: Vocabularies above this are Llama 3's, whose conversations are written in another way than Llama 2's.
_LLAMA_3_FROM = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SwiftFamily:
    #: ``--model_type``.
    model_type: str
    #: ``--template``.
    template: str


LLAMA_3 = SwiftFamily(model_type="llama", template="llama3")
FAMILIES: Mapping[str, SwiftFamily] = {
    "DeepseekV3ForCausalLM": SwiftFamily(model_type="deepseek_v3", template="deepseek_v2_5"),
    "Gemma2ForCausalLM": SwiftFamily(model_type="gemma2", template="gemma"),
    "Gemma3ForCausalLM": SwiftFamily(model_type="gemma3_text", template="gemma3_text"),
    "GemmaForCausalLM": SwiftFamily(model_type="gemma", template="gemma"),
    "Glm4MoeForCausalLM": SwiftFamily(model_type="glm4_moe", template="glm4_5"),
    "GptOssForCausalLM": SwiftFamily(model_type="gpt_oss", template="gpt_oss"),
    "HunYuanDenseV1ForCausalLM": SwiftFamily(model_type="hunyuan_v1_dense", template="hunyuan"),
    "InternLM2ForCausalLM": SwiftFamily(model_type="internlm2", template="internlm2"),
    "InternLM3ForCausalLM": SwiftFamily(model_type="internlm3", template="internlm2"),
    "LlamaForCausalLM": SwiftFamily(model_type="llama", template="llama"),
    "MistralForCausalLM": SwiftFamily(model_type="mistral", template="llama"),
    "MixtralForCausalLM": SwiftFamily(model_type="mixtral", template="llama"),
    "Phi3ForCausalLM": SwiftFamily(model_type="phi3", template="phi3"),
    "Qwen2ForCausalLM": SwiftFamily(model_type="qwen2", template="qwen2_5"),
    "Qwen2MoeForCausalLM": SwiftFamily(model_type="qwen2_moe", template="qwen"),
    "Qwen3ForCausalLM": SwiftFamily(model_type="qwen3", template="qwen3"),
    "Qwen3MoeForCausalLM": SwiftFamily(model_type="qwen3_moe", template="qwen3"),
    "SeedOssForCausalLM": SwiftFamily(model_type="seed_oss", template="seed_oss"),
}


def swift_family(model: ModelFacts) -> SwiftFamily:
    """:raises KeyError: if ms-swift does not support such models; ``check_family`` reports it before."""
    vocabulary = model.config.get("vocab_size", 0)
    if model.architecture == "LlamaForCausalLM" and vocabulary > _LLAMA_3_FROM:
        return LLAMA_3
    return FAMILIES[model.architecture]


def check_family(model: ModelFacts) -> Iterator[FieldFinding]:
    """Why ms-swift cannot, or must not, train the model."""
    if model.architecture not in FAMILIES:
        yield field_finding(
            "model",
            "engine.ms_swift.architecture_not_supported",
            "{model} is a {architecture}, which is not supported with ms-swift; "
            "supported are {architectures}",
            model=model.name,
            architecture=model.architecture or "model of unknown architecture",
            architectures=", ".join(FAMILIES),
        )
    if model.config.get("auto_map"):
        yield field_finding(
            "model",
            "engine.ms_swift.custom_code",
            "{model} contains custom code (auto_map in its config.json), which "
            "ms-swift would execute without confirmation; choose another engine or a "
            "model without custom code",
            model=model.name,
        )


#: Relative to ``{work}``: where checkpoints and logs go; where the merged model goes.
CHECKPOINTS, MERGED = "checkpoints", "merged"
COMMANDS = {"sft": "sft", "dpo": "rlhf", "grpo": "rlhf", "pretrain": "pt"}
#: Fused operators that are Liger kernels here; asking for one takes them all.
LIGER = frozenset({"rms_norm", "rotary_embedding", "swiglu", "cross_entropy"})
_MODEL = "{inputs}/model"


def training_arguments(settings: TrainingSettings) -> dict[str, Any]:
    """The configuration of ``swift sft``, ``swift pt`` or ``swift rlhf``."""
    spec = settings.spec
    return {
        "model": _MODEL,
        **_model_type_arguments(settings),
        "torch_dtype": settings.precision,
        **({"attn_impl": "flash_attn"} if "flash_attention" in settings.fused else {}),
        **({"use_liger_kernel": True} if settings.fused & LIGER else {}),
        **_objective_arguments(settings),
        **_method_arguments(settings),
        "dataset": [f"{settings.rows_folder}/{spec['train_split']}.jsonl"],
        **_validation_arguments(settings),
        "max_length": settings.max_length,
        "output_dir": CHECKPOINTS,
        "add_version": False,
        "num_train_epochs": spec["epochs"],
        "max_steps": spec["max_steps"] or -1,
        "learning_rate": spec["learning_rate"],
        "per_device_train_batch_size": spec["batch_size"],
        "gradient_accumulation_steps": spec["gradient_accumulation"],
        "lr_scheduler_type": container_training.scheduler_name(spec),
        "warmup_ratio": spec["warmup_ratio"],
        "weight_decay": spec["weight_decay"],
        "seed": spec["seed"],
        "data_seed": spec["seed"],
        "optim": container_training.optimizer_name(settings),
        "gradient_checkpointing": settings.recompute,
        **container_training.deepspeed_argument(settings),
        **({"sequence_parallel_size": settings.plan.context} if settings.plan.context > 1 else {}),
        "logging_steps": spec["log_every_steps"],
        "save_strategy": "steps",
        "save_steps": spec["checkpoint_every_steps"],
        "save_total_limit": spec["keep_checkpoints"],
        "dataset_num_proc": 4,
        "report_to": ["none"],
    }


def merge_command(settings: TrainingSettings) -> tuple[str, ...]:
    """Puts the adapter of the newest checkpoint into the weights as they were, unquantized."""
    return (
        *("swift", "export", "--adapters", "{newest}", "--merge_lora", "true"),
        *("--model", _MODEL, *_model_type_flags(settings)),
        *("--torch_dtype", settings.precision, "--output_dir", MERGED),
    )


def as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2) + "\n"


def _model_type_arguments(settings: TrainingSettings) -> dict[str, Any]:
    if settings.model is None:
        return {}
    family = swift_family(settings.model)
    return {"model_type": family.model_type, "template": family.template}


def _model_type_flags(settings: TrainingSettings) -> tuple[str, ...]:
    return tuple(
        word
        for name, value in _model_type_arguments(settings).items()
        for word in (f"--{name}", value)
    )


def _objective_arguments(settings: TrainingSettings) -> dict[str, Any]:
    if settings.objective == "dpo":
        return {
            "rlhf_type": "dpo",
            "beta": settings.spec["dpo"]["beta"],
            "columns": {"rejected": "rejected_response"},
        }
    if settings.objective == "grpo":
        grpo = settings.spec["grpo"]
        return {
            "rlhf_type": "grpo",
            "num_generations": grpo["generations"],
            "max_completion_length": grpo["max_new_tokens"],
            "beta": grpo["beta"],
            "temperature": grpo["temperature"],
            "external_plugins": ["plugins/ninefold_rewards.py"],
            "reward_funcs": [f"ninefold_{grpo['reward']}"],
        }
    return {}


def _method_arguments(settings: TrainingSettings) -> dict[str, Any]:
    if settings.method == "full":
        return {"tuner_type": "full"}
    lora = settings.spec["lora"]
    values: dict[str, Any] = {
        "tuner_type": "lora",
        "lora_rank": lora["rank"],
        "lora_alpha": int(lora["alpha"]),
        "lora_dropout": lora["dropout"],
        "target_modules": lora["target_modules"] or ["all-linear"],
    }
    if settings.method == "qlora":
        qlora = settings.spec["qlora"]
        values |= {"quant_method": "bnb", "quant_bits": qlora["bits"]}
        if qlora["bits"] == 4:
            values |= {
                "bnb_4bit_compute_dtype": settings.precision,
                "bnb_4bit_use_double_quant": qlora["double_quantization"] == "on",
            }
    return values


def _validation_arguments(settings: TrainingSettings) -> dict[str, Any]:
    # A prompt and a reward have no loss to validate.
    if not settings.validation_split or settings.objective == "grpo":
        return {"eval_strategy": "no"}
    return {
        "val_dataset": [f"{settings.rows_folder}/{settings.validation_split}.jsonl"],
        "eval_strategy": "steps",
        "eval_steps": settings.spec["checkpoint_every_steps"],
        "per_device_eval_batch_size": settings.spec["batch_size"],
    }


PROFILE = EngineProfile(
    title="ms-swift",
    versions=">=4.3,<4.7",
    default_version="4.4.3",
    images={
        "nvidia": "modelscope-registry.cn-hangzhou.cr.aliyuncs.com/modelscope-repo/modelscope:"
        "ubuntu22.04-cuda13.0.3-py312-torch2.11.0-vllm0.25.1-modelscope1.39.0-swift4.4.3",
        **container_engine.ascend_images(
            a2="quay.io/ascend/ms-swift:v4.3.0-A2-py311-CANN9.0.0-ubuntu22.04",
            a3="quay.io/ascend/ms-swift:v4.3.0-A3-py311-CANN9.0.0-ubuntu22.04",
        ),
    },
    progress=ProgressFormat(
        path=f"{CHECKPOINTS}/logging.jsonl",
        keys={
            "step": "global_step/max_steps#0",
            "total_steps": "global_step/max_steps#1",
            "loss": "loss",
            "eval_loss": "eval_loss",
            "learning_rate": "learning_rate",
        },
    ),
    flags=ArgumentVerification.PARSED,
    remarks=(
        Reason(
            "engine.ms_swift.verified_versions",
            "The arguments for NVIDIA H800 and Ascend 910B3 are verified with the "
            "argument parsers of ms-swift 4.3.0, the version in the image for "
            "Ascend, and 4.6.0; earlier they were also verified with 4.4.2 and "
            "4.5.3. Version 4.4.3, the one in the image for NVIDIA, is not verified, "
            "because no package registry has it.",
        ),
    ),
    sources=(
        "https://github.com/modelscope/ms-swift/tree/v4.6.0",
        "https://swift.readthedocs.io/en/latest/Instruction/Command-line-parameters.html",
        "https://swift.readthedocs.io/en/latest/BestPractices/NPU-support.html",
    ),
)

_MEGATRON = Reason(
    "engine.ms_swift.parallelism_not_supported",
    "only the Megatron backend of ms-swift supports this parallelism, and "
    "Ninefold uses the other backend",
)
_LIMITS = (
    FieldLimit(field="parallel.tensor", reason=_MEGATRON),
    FieldLimit(field="parallel.pipeline", reason=_MEGATRON),
    FieldLimit(field="parallel.expert", reason=_MEGATRON),
    FieldLimit(field="parallel.sequence", values=("on",), reason=_MEGATRON),
    FieldLimit.of(
        "fused_operators",
        ("grouped_matmul",),
        "engine.ms_swift.kernel_not_supported",
        "ms-swift does not support this kernel",
    ),
)


class MsSwiftEngine(ContainerTrainingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "ms_swift"
    engine_profile = PROFILE
    field_limits = _LIMITS
    # Preferences only need a column's name.
    row_shapes: ClassVar = {"grpo": "prompts", "pretrain": "spoken"}

    def limits(
        self, task: EngineTask, *, chip: Chip | None, model: ModelFacts | None
    ) -> tuple[FieldLimit, ...]:
        return (*super().limits(task, chip=chip, model=model), *_chip_field_limits(chip))

    def check_engine_rules(
        self, spec: Mapping[str, Any], *, model: ModelFacts | None
    ) -> Iterator[FieldFinding]:
        if model is not None:
            yield from check_family(model)
        alpha = spec["lora"]["alpha"]
        if spec["method"] != "full" and alpha != int(alpha):
            yield field_finding(
                "lora.alpha",
                "engine.ms_swift.alpha_not_integer",
                "lora.alpha must be a whole number for ms-swift before 4.5, got {alpha}",
                alpha=f"{alpha:g}",
            )
        yield from container_training.check_bitsandbytes(spec)
        if spec["objective"] != "grpo":
            return
        group = spec["batch_size"] * spec["gradient_accumulation"]
        if group % spec["grpo"]["generations"]:
            yield field_finding(
                "grpo.generations",
                "engine.ms_swift.generations_not_a_divisor",
                "grpo.generations must divide batch_size × gradient_accumulation, "
                "{product}, got {generations}",
                product=group,
                generations=spec["grpo"]["generations"],
            )

    def translate(self, settings: TrainingSettings) -> TrainingSteps:
        train = ("swift", COMMANDS[settings.objective], "train.json")
        newest = f"{CHECKPOINTS}/checkpoint-*/trainer_state.json"
        resumed = (*train, "--resume_from_checkpoint", "{newest}") if settings.continues else ()
        steps: list[container_commands.CommandStep | container_commands.CollectModelFilesStep] = [
            container_commands.CommandStep(
                argv=train, newest=newest if settings.continues else "", resumed=resumed
            ),
        ]
        files = {
            "train.json": as_json(training_arguments(settings)),
            **container_training.deepspeed_files(settings),
        }
        if settings.objective == "grpo":
            files["plugins/ninefold_rewards.py"] = container_commands.read_bundled_program(
                "ninefold_rewards"
            )
            files["plugins/ninefold_scoring.py"] = container_commands.scoring_text()
        if settings.adapter:
            steps.append(
                container_commands.CommandStep(
                    argv=merge_command(settings), newest=newest, leader_only=True
                )
            )
            steps.append(container_commands.CollectModelFilesStep(source=MERGED))
        else:
            steps.append(container_commands.CollectModelFilesStep(source="{newest}", newest=newest))
        return TrainingSteps(steps=tuple(steps), files=files)


def _chip_field_limits(chip: Chip | None) -> Iterator[FieldLimit]:
    if chip is None or chip.torch_device == "cuda":
        return
    yield FieldLimit.of(
        "method",
        ("qlora",),
        "engine.ms_swift.qlora_not_supported",
        "bitsandbytes, which QLoRA requires, does not run on {chip}; ms-swift "
        "documents QLoRA as not supported there",
        chip=chip.label,
    )
    yield FieldLimit.of(
        "fused_operators",
        tuple(sorted(LIGER)),
        "engine.ms_swift.liger_not_supported",
        "ms-swift documents Liger kernels as not supported on {chip}",
        chip=chip.label,
    )
