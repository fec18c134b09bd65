"""The engine ``mindspeed_llm``: Ascend's MindSpeed-LLM on Megatron (https://gitcode.com/Ascend/MindSpeed-LLM).

Megatron's parallelism on Ascend, with weights converted there and back. Its arguments are Megatron's and
Ascend's additions. It does not read ``config.json``, so the model is described by arguments, written after its
example scripts (``examples/mcore/{qwen3,qwen25,llama3}``) for dense models of three families.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from controlplane.adapters.engines import container_commands, container_engine
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
    RenderRefused,
)

_NEEDED = (
    "num_hidden_layers",
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "max_position_embeddings",
    "vocab_size",
    "rms_norm_eps",
)
#: Vocabularies above this are Llama 3's, whose conversations are written in another way than Llama 2's.
_LLAMA_3_FROM = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class MindSpeedFamily:
    """How one family is called there, and the flags that all its models need."""

    model_type: str
    prompt_type: str
    model_flags: tuple[str, ...] = ()


FAMILIES: Mapping[str, MindSpeedFamily] = {
    "Qwen2ForCausalLM": MindSpeedFamily(
        model_type="qwen25", prompt_type="qwen", model_flags=("--add-qkv-bias",)
    ),
    "Qwen3ForCausalLM": MindSpeedFamily(
        model_type="qwen3",
        prompt_type="qwen3",
        model_flags=(
            *("--spec", "mindspeed_llm.tasks.models.spec.qwen3_spec", "layer_spec"),
            "--qk-layernorm",
        ),
    ),
    "LlamaForCausalLM": MindSpeedFamily(model_type="llama2", prompt_type="llama2"),
}


def check_architecture(model: ModelFacts) -> Iterator[FieldFinding]:
    """Why MindSpeed-LLM has no configuration for the model."""
    if model.architecture not in FAMILIES:
        yield field_finding(
            "model",
            "engine.mindspeed_llm.architecture_not_supported",
            "{model} is a {architecture}, which is not supported with MindSpeed-LLM; "
            "supported are {architectures}",
            model=model.name,
            architecture=model.architecture or "model of unknown architecture",
            architectures=", ".join(FAMILIES),
        )
        return
    missing = [name for name in _NEEDED if not isinstance(model.config.get(name), (int, float))]
    if missing or _rope_base(model.config) is None:
        names = ", ".join([*missing, *(() if _rope_base(model.config) else ("rope_theta",))])
        yield field_finding(
            "model",
            "engine.mindspeed_llm.config_field_missing",
            "the config.json of {model} lacks {fields}, which MindSpeed-LLM requires",
            model=model.name,
            fields=names,
        )
    scaling = _rope_scaling(model.config)
    if scaling:
        yield field_finding(
            "model",
            "engine.mindspeed_llm.rope_scaling_not_supported",
            "{model} uses RoPE scaling ({scaling}), which is not supported with "
            "MindSpeed-LLM; choose another engine",
            model=model.name,
            scaling=scaling,
        )


def prompt_type(model: ModelFacts) -> str:
    """The name of the way in which conversations are written."""
    if model.architecture == "LlamaForCausalLM" and model.config["vocab_size"] > _LLAMA_3_FROM:
        return "llama3"
    return FAMILIES[model.architecture].prompt_type


def model_flags(model: ModelFacts) -> list[str]:
    """The arguments that describe the model."""
    config, heads = model.config, model.config["num_attention_heads"]
    groups = config.get("num_key_value_heads") or heads
    argv = [
        "--use-mcore-models",
        *FAMILIES[model.architecture].model_flags,
        *("--num-layers", str(config["num_hidden_layers"])),
        *("--hidden-size", str(config["hidden_size"])),
        *("--ffn-hidden-size", str(config["intermediate_size"])),
        *("--num-attention-heads", str(heads)),
        *("--kv-channels", str(config.get("head_dim") or config["hidden_size"] // heads)),
        *("--max-position-embeddings", str(config["max_position_embeddings"])),
        *("--make-vocab-size-divisible-by", "1"),
        *("--padded-vocab-size", str(config["vocab_size"])),
        *("--position-embedding-type", "rope", "--use-rotary-position-embeddings"),
        *("--rotary-base", str(int(_rope_base(config) or 0))),
        *("--normalization", "RMSNorm", "--norm-epsilon", f"{config['rms_norm_eps']:g}"),
        *("--swiglu", "--disable-bias-linear"),
        *("--hidden-dropout", "0", "--attention-dropout", "0"),
    ]
    if groups != heads:
        argv += ["--group-query-attention", "--num-query-groups", str(groups)]
    if not config.get("tie_word_embeddings", False):
        argv.append("--untie-embeddings-and-output-weights")
    return argv


def _rope_base(config: Mapping[str, Any]) -> float | None:
    """``rope_theta``, which transformers moved into a group of its own."""
    base = config.get("rope_theta") or _rope_settings(config).get("rope_theta")
    return base if isinstance(base, (int, float)) else None


def _rope_scaling(config: Mapping[str, Any]) -> str:
    rope = _rope_settings(config) or config.get("rope_scaling") or {}
    kind = str(rope.get("rope_type") or rope.get("type") or "default")
    return "" if kind == "default" else kind


def _rope_settings(config: Mapping[str, Any]) -> Mapping[str, Any]:
    rope = config.get("rope_parameters")
    return rope if isinstance(rope, Mapping) else {}


#: Below ``{work}``: checkpoints of Megatron; among them, where all replicas of a gang see them, the first weights
#: in its form and the rows as it reads them, which one process of the gang writes for all.
CHECKPOINTS = "checkpoints"
_SAVED = f"{{work}}/{CHECKPOINTS}"
_CONVERTED, _ROWS = f"{_SAVED}/megatron", f"{_SAVED}/rows/train"
#: The model in the form in which it came.
MERGED = "{work}/merged"
#: Where the image has the source, and the copy that runs. Training compiles helpers beside Megatron's source and
#: starts ``preprocess_data.py`` of the working directory, so it needs both to be one writable folder.
HOME, COPY = "/workspace/MindSpeed-LLM", "MindSpeed-LLM"
_SOURCE = f"{{work}}/{COPY}"
_MODEL = "{inputs}/model"
_PROGRAMS = {"sft": "posttrain_gpt.py", "pretrain": "pretrain_gpt.py"}
#: Layers by their usual names → the fused layers of Megatron that contain them.
JOINT_LAYERS: Mapping[str, frozenset[str]] = {
    "linear_qkv": frozenset({"q_proj", "k_proj", "v_proj"}),
    "linear_proj": frozenset({"o_proj"}),
    "linear_fc1": frozenset({"gate_proj", "up_proj"}),
    "linear_fc2": frozenset({"down_proj"}),
}
_FUSED = {
    "flash_attention": "--use-flash-attn",
    "rms_norm": "--use-fused-rmsnorm",
    "rotary_embedding": "--use-fused-rotary-pos-emb",
    "swiglu": "--use-fused-swiglu",
}
_MESSAGES = {
    "messages": "messages",
    "tags": {
        "role_tag": "role",
        "content_tag": "content",
        "user_tag": "user",
        "assistant_tag": "assistant",
        "system_tag": "system",
    },
}
_PRECISIONS = {"bfloat16": ("--bf16",), "float16": ("--fp16",), "float32": ()}


def copy_command() -> tuple[str, ...]:
    """The command that copies the source to where it can be written."""
    return ("cp", "--recursive", "--no-target-directory", HOME, _SOURCE)


def training_command(
    settings: TrainingSettings, model: ModelFacts, *, resumes: bool
) -> tuple[str, ...]:
    """The command that trains; ``resumes`` from Megatron's own checkpoints."""
    return (
        "torchrun",
        *container_commands.TORCHRUN_ARGUMENTS,
        f"{_SOURCE}/{_PROGRAMS[settings.objective]}",
        *model_flags(model),
        *_parallel_arguments(settings),
        *_optimizer_arguments(settings),
        *_data_arguments(settings, model),
        *_adapter_arguments(settings),
        *_weight_arguments(settings, model, resumes=resumes),
        *("--save", _SAVED, "--save-interval", str(settings.spec["checkpoint_every_steps"])),
        *("--log-interval", str(settings.spec["log_every_steps"]), "--log-throughput"),
        *("--eval-interval", str(settings.spec["checkpoint_every_steps"]), "--eval-iters", "0"),
        *("--ckpt-format", "torch", "--transformer-impl", "local"),
        *("--distributed-backend", "nccl"),
    )


def merge_command(settings: TrainingSettings, model: ModelFacts) -> tuple[str, ...]:
    """The command that writes the weights, adapter included, in the form in which they came."""
    command = [
        *("{python}", f"{_SOURCE}/convert_ckpt_v2.py"),
        *("--load-model-type", "mg", "--save-model-type", "hf"),
        *("--load-dir", _CONVERTED if settings.adapter else _SAVED),
        *("--save-dir", MERGED, "--hf-cfg-dir", _MODEL),
        *("--model-type-hf", FAMILIES[model.architecture].model_type),
    ]
    if settings.adapter:
        command += [*_lora_arguments(settings), "--lora-load", _SAVED]
    return tuple(command)


def lora_target_layers(names: list[str] | None) -> list[str]:
    """Megatron's names of the layers to adapt; all of them where none is named."""
    requested = set(names or ())
    return [joint for joint, parts in JOINT_LAYERS.items() if not requested or parts <= requested]


def _parallel_arguments(settings: TrainingSettings) -> list[str]:
    plan = settings.plan
    argv = [
        *("--tensor-model-parallel-size", str(plan.tensor)),
        *("--pipeline-model-parallel-size", str(plan.pipeline)),
    ]
    if plan.context > 1:
        argv += ["--context-parallel-size", str(plan.context)]
        argv += ["--context-parallel-algo", "megatron_cp_algo"]
    # What lies between the matrices is shared for free, so only a refusal keeps it whole.
    if plan.tensor > 1 and settings.spec["parallel"]["sequence"] != "off":
        argv.append("--sequence-parallel")
    if plan.zero_stage == 1:
        argv.append("--use-distributed-optimizer")
    return argv


def _optimizer_arguments(settings: TrainingSettings) -> list[str]:
    spec = settings.spec
    rows = spec["batch_size"] * spec["gradient_accumulation"] * settings.plan.data
    argv = [
        *("--micro-batch-size", str(spec["batch_size"]), "--global-batch-size", str(rows)),
        *("--seq-length", str(settings.max_length), "--train-iters", str(spec["max_steps"])),
        *("--lr", f"{spec['learning_rate']:g}", "--min-lr", "0"),
        *("--lr-decay-style", spec["scheduler"]),
        *("--lr-warmup-fraction", f"{spec['warmup_ratio']:g}"),
        *("--weight-decay", f"{spec['weight_decay']:g}", "--clip-grad", "1.0"),
        *("--adam-beta1", "0.9", "--adam-beta2", "0.999"),
        *("--initial-loss-scale", "4096", "--seed", str(spec["seed"])),
        *_PRECISIONS[settings.precision],
        "--attention-softmax-in-fp32",
        "--no-gradient-accumulation-fusion",
        "--no-masked-softmax-fusion",
        *_fused_kernel_arguments(settings),
    ]
    if settings.recompute:
        argv += ["--recompute-granularity", "full", "--recompute-method", "uniform"]
        argv += ["--recompute-num-layers", "1"]
    if spec["communication_dtype"] == "float32":
        argv.append("--accumulate-allreduce-grads-in-fp32")
    return argv


def _fused_kernel_arguments(settings: TrainingSettings) -> Iterator[str]:
    """Megatron's own kernels are the default of the program, and those of the examples are the fused ones."""
    requested = settings.fused if settings.spec["fused_operators"] is not None else _FUSED.keys()
    return (flag for name, flag in _FUSED.items() if name in requested)


def _data_arguments(settings: TrainingSettings, model: ModelFacts) -> list[str]:
    argv = [
        *("--tokenizer-type", "PretrainedFromHF", "--tokenizer-name-or-path", _MODEL),
        *("--data-path", f"{settings.rows_folder}/{settings.spec['train_split']}.jsonl"),
        *("--output-prefix", _ROWS, "--split", "100,0,0", "--workers", "4"),
    ]
    if settings.objective == "pretrain":
        return [*argv, "--handler-name", "GeneralPretrainHandler", "--json-keys", "text"]
    return [
        *argv,
        *("--handler-name", "SharegptStyleInstructionHandler"),
        *("--map-keys", _compact_json(_MESSAGES)),
        *("--stage", "sft", "--is-instruction-dataset", "--no-pad-to-seq-lengths"),
        *("--prompt-type", prompt_type(model)),
    ]


def _adapter_arguments(settings: TrainingSettings) -> list[str]:
    return _lora_arguments(settings) if settings.adapter else []


def _lora_arguments(settings: TrainingSettings) -> list[str]:
    lora = settings.spec["lora"]
    return [
        *("--lora-r", str(lora["rank"]), "--lora-alpha", str(int(lora["alpha"]))),
        *("--lora-target-modules", *lora_target_layers(lora["target_modules"])),
    ]


def _weight_arguments(settings: TrainingSettings, model: ModelFacts, *, resumes: bool) -> list[str]:
    """Where the weights come from."""
    if resumes and not settings.adapter:
        return ["--load", _SAVED]
    if resumes:
        return ["--load", _CONVERTED, "--lora-load", _SAVED]
    family = FAMILIES[model.architecture]
    return [
        *("--finetune", "--no-load-optim", "--no-load-rng"),
        *("--load", _MODEL, "--enable-hf2mg-convert", "--mg-save-dir", _CONVERTED),
        *("--model-type-hf", family.model_type),
    ]


def _compact_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


PROFILE = EngineProfile(
    title="MindSpeed-LLM",
    versions=">=26.0,<26.2",
    default_version="26.0.0",
    # The project publishes its Dockerfiles and image names, but not the images: each company builds them.
    images=container_engine.ascend_images(
        a2="mindspeed-llm:v{version}-cann9.0.0-torch_npu2.7.1-910b-ubuntu22.04-py3.11-aarch64",
        a3="mindspeed-llm:v{version}-cann9.0.0-torch_npu2.7.1-a3-ubuntu22.04-py3.11-aarch64",
    ),
    flags=ArgumentVerification.UNVERIFIED,
    sources=(
        "https://gitcode.com/Ascend/MindSpeed-LLM/tree/master/examples/mcore",
        "https://gitcode.com/Ascend/MindSpeed-LLM/blob/master/docs/zh/pytorch/training/pretrain/"
        "mcore/train_from_hf.md",
        "https://gitcode.com/Ascend/MindSpeed-LLM/blob/master/docker/OVERVIEW.md",
    ),
)
_LIMITS = (
    FieldLimit.of(
        "objective",
        ("dpo", "grpo"),
        "engine.mindspeed_llm.objective_not_supported",
        "only SFT and continued pre-training are supported with MindSpeed-LLM",
    ),
    FieldLimit.of(
        "method",
        ("qlora",),
        "engine.mindspeed_llm.qlora_not_supported",
        "QLoRA is not supported with MindSpeed-LLM",
    ),
    FieldLimit.of(
        "lora.dropout",
        (),
        "engine.mindspeed_llm.dropout_not_supported",
        "MindSpeed-LLM does not support LoRA dropout",
    ),
    FieldLimit.of(
        "parallel.expert",
        (),
        "engine.mindspeed_llm.dense_models_only",
        "only dense models are supported with MindSpeed-LLM",
    ),
    FieldLimit.of(
        "parallel.zero_stage",
        (2, 3),
        "engine.mindspeed_llm.zero_stage_not_supported",
        "Megatron shards the optimizer states only, which is ZeRO stage 1",
    ),
    FieldLimit.of(
        "communication_dtype",
        ("bfloat16", "float16"),
        "engine.mindspeed_llm.communication_dtype_not_supported",
        "MindSpeed-LLM documents only float32 and Megatron's default",
    ),
    FieldLimit.of(
        "fused_operators",
        ("cross_entropy", "adamw", "grouped_matmul"),
        "engine.mindspeed_llm.kernels_not_configurable",
        "MindSpeed-LLM selects these kernels automatically",
    ),
)
_ENVIRONMENT = {
    "HCCL_CONNECT_TIMEOUT": "3600",
    "HCCL_EXEC_TIMEOUT": "3600",
    "CUDA_DEVICE_MAX_CONNECTIONS": "1",
    "PYTORCH_NPU_ALLOC_CONF": "expandable_segments:True",
    "TASK_QUEUE_ENABLE": "2",
}


class MindSpeedLlmEngine(ContainerTrainingEngine):
    """Implements ``controlplane.ports.engines.Engine``."""

    name = "mindspeed_llm"
    engine_profile = PROFILE
    field_limits = _LIMITS
    row_shapes: ClassVar = {"pretrain": "texts"}
    validates = False

    def unsupported_reason(self, task: EngineTask, chip: Chip) -> str:
        if chip.torch_device != "npu":
            return Reason(
                "engine.mindspeed_llm.chip_not_supported",
                "MindSpeed-LLM runs on Ascend only, not on {chip}",
                chip=chip.label,
            )
        return super().unsupported_reason(task, chip)

    def check_engine_rules(
        self, spec: Mapping[str, Any], *, model: ModelFacts | None
    ) -> Iterator[FieldFinding]:
        if spec["max_steps"] is None:
            yield field_finding(
                "max_steps",
                "engine.mindspeed_llm.max_steps_required",
                "max_steps is required: MindSpeed-LLM counts steps, not epochs; one "
                "epoch is examples ÷ (batch_size × gradient_accumulation × data-parallel "
                "size)",
            )
        if spec["method"] == "lora":
            yield from _check_lora(spec["lora"])
        if model is not None:
            yield from check_architecture(model)

    def translate(self, settings: TrainingSettings) -> TrainingSteps:
        model = settings.model
        if model is None:
            raise RenderRefused(
                "engine.mindspeed_llm.model_required", "MindSpeed-LLM requires a model"
            )
        resumes = settings.continues
        steps: tuple[
            container_commands.CommandStep | container_commands.CollectModelFilesStep, ...
        ] = (
            container_commands.CommandStep(argv=copy_command()),
            container_commands.CommandStep(
                argv=training_command(settings, model, resumes=False),
                newest=f"{CHECKPOINTS}/latest_checkpointed_iteration.txt" if resumes else "",
                resumed=training_command(settings, model, resumes=True) if resumes else (),
                folder=COPY,
            ),
            container_commands.CommandStep(
                argv=merge_command(settings, model), leader_only=True, folder=COPY
            ),
            container_commands.CollectModelFilesStep(source=MERGED),
        )
        return TrainingSteps(steps=steps, environment=_ENVIRONMENT, shares_checkpoints=True)


def _check_lora(lora: Mapping[str, Any]) -> Iterator[FieldFinding]:
    if lora["alpha"] != int(lora["alpha"]):
        yield field_finding(
            "lora.alpha",
            "engine.mindspeed_llm.alpha_not_integer",
            "lora.alpha must be a whole number for MindSpeed-LLM, got {alpha}",
            alpha=f"{lora['alpha']:g}",
        )
    requested = set(lora["target_modules"] or ())
    joint = [JOINT_LAYERS[name] for name in lora_target_layers(sorted(requested))]
    beyond = sorted(requested - frozenset().union(*joint))
    if beyond:
        groups = "; ".join(", ".join(sorted(parts)) for parts in JOINT_LAYERS.values())
        yield field_finding(
            "lora.target_modules",
            "engine.mindspeed_llm.incomplete_layer_group",
            "lora.target_modules must be complete groups of layers for "
            "MindSpeed-LLM, which fuses these layers: {groups}; got {layers}",
            groups=groups,
            layers=", ".join(beyond),
        )
