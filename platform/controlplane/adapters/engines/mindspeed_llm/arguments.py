"""MindSpeed-LLM's arguments: Megatron's, and what Ascend added to them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.adapters.engines import sequence, torchrun
from controlplane.adapters.engines.mindspeed_llm import architectures
from controlplane.adapters.engines.trainers import Order
from controlplane.ports.engines import ModelFacts

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
#: Objectives whose rows are rewritten, and into which shape.
SHAPES = {"pretrain": "texts"}
#: Layers by the names that people know → the joint layers of Megatron that hold them.
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


def copying() -> tuple[str, ...]:
    """The command that copies the source to where it can be written."""
    return ("cp", "--recursive", "--no-target-directory", HOME, _SOURCE)


def training(order: Order, model: ModelFacts, *, resumes: bool) -> tuple[str, ...]:
    """The command that trains; ``resumes`` from Megatron's own checkpoints."""
    return (
        "torchrun",
        *torchrun.ARGUMENTS,
        f"{_SOURCE}/{_PROGRAMS[order.objective]}",
        *architectures.flags(model),
        *_plan(order),
        *_optimisation(order),
        *_data(order, model),
        *_adapter(order),
        *_beginning(order, model, resumes=resumes),
        *("--save", _SAVED, "--save-interval", str(order.spec["checkpoint_every_steps"])),
        *("--log-interval", str(order.spec["log_every_steps"]), "--log-throughput"),
        *("--eval-interval", str(order.spec["checkpoint_every_steps"]), "--eval-iters", "0"),
        *("--ckpt-format", "torch", "--transformer-impl", "local"),
        *("--distributed-backend", "nccl"),
    )


def merging(order: Order, model: ModelFacts) -> tuple[str, ...]:
    """The command that writes the weights, adapter included, in the form in which they came."""
    command = [
        *("{python}", f"{_SOURCE}/convert_ckpt_v2.py"),
        *("--load-model-type", "mg", "--save-model-type", "hf"),
        *("--load-dir", _CONVERTED if order.adapter else _SAVED),
        *("--save-dir", MERGED, "--hf-cfg-dir", _MODEL),
        *("--model-type-hf", architectures.FAMILIES[model.architecture].model_type),
    ]
    if order.adapter:
        command += [*_lora(order), "--lora-load", _SAVED]
    return tuple(command)


def shaping(order: Order) -> tuple[sequence.Run, ...]:
    """The step that rewrites rows, where the objective needs it."""
    shape = SHAPES.get(order.objective)
    return (sequence.shaped(shape, split=order.spec["train_split"]),) if shape else ()


def joint_layers(names: list[str] | None) -> list[str]:
    """Megatron's names of the layers to adapt; all of them where none is named."""
    asked = set(names or ())
    return [joint for joint, parts in JOINT_LAYERS.items() if not asked or parts <= asked]


def _plan(order: Order) -> list[str]:
    plan = order.plan
    told = [
        *("--tensor-model-parallel-size", str(plan.tensor)),
        *("--pipeline-model-parallel-size", str(plan.pipeline)),
    ]
    if plan.context > 1:
        told += ["--context-parallel-size", str(plan.context)]
        told += ["--context-parallel-algo", "megatron_cp_algo"]
    # What lies between the matrices is shared for free, so only a refusal keeps it whole.
    if plan.tensor > 1 and order.spec["parallel"]["sequence"] != "off":
        told.append("--sequence-parallel")
    if plan.zero_stage == 1:
        told.append("--use-distributed-optimizer")
    return told


def _optimisation(order: Order) -> list[str]:
    spec = order.spec
    rows = spec["batch_size"] * spec["gradient_accumulation"] * order.plan.data
    told = [
        *("--micro-batch-size", str(spec["batch_size"]), "--global-batch-size", str(rows)),
        *("--seq-length", str(order.max_length), "--train-iters", str(spec["max_steps"])),
        *("--lr", f"{spec['learning_rate']:g}", "--min-lr", "0"),
        *("--lr-decay-style", spec["scheduler"]),
        *("--lr-warmup-fraction", f"{spec['warmup_ratio']:g}"),
        *("--weight-decay", f"{spec['weight_decay']:g}", "--clip-grad", "1.0"),
        *("--adam-beta1", "0.9", "--adam-beta2", "0.999"),
        *("--initial-loss-scale", "4096", "--seed", str(spec["seed"])),
        *_PRECISIONS[order.precision],
        "--attention-softmax-in-fp32",
        "--no-gradient-accumulation-fusion",
        "--no-masked-softmax-fusion",
        *_fused(order),
    ]
    if order.recompute:
        told += ["--recompute-granularity", "full", "--recompute-method", "uniform"]
        told += ["--recompute-num-layers", "1"]
    if spec["communication_dtype"] == "float32":
        told.append("--accumulate-allreduce-grads-in-fp32")
    return told


def _fused(order: Order) -> Iterator[str]:
    """Megatron's own kernels are the default of the program, and those of the examples are the fused ones."""
    asked = order.fused if order.spec["fused_operators"] is not None else _FUSED.keys()
    return (flag for name, flag in _FUSED.items() if name in asked)


def _data(order: Order, model: ModelFacts) -> list[str]:
    folder = "{work}/rows" if order.objective in SHAPES else "{inputs}/dataset"
    told = [
        *("--tokenizer-type", "PretrainedFromHF", "--tokenizer-name-or-path", _MODEL),
        *("--data-path", f"{folder}/{order.spec['train_split']}.jsonl"),
        *("--output-prefix", _ROWS, "--split", "100,0,0", "--workers", "4"),
    ]
    if order.objective == "pretrain":
        return [*told, "--handler-name", "GeneralPretrainHandler", "--json-keys", "text"]
    return [
        *told,
        *("--handler-name", "SharegptStyleInstructionHandler"),
        *("--map-keys", _compact(_MESSAGES)),
        *("--stage", "sft", "--is-instruction-dataset", "--no-pad-to-seq-lengths"),
        *("--prompt-type", architectures.prompt(model)),
    ]


def _adapter(order: Order) -> list[str]:
    return _lora(order) if order.adapter else []


def _lora(order: Order) -> list[str]:
    lora = order.spec["lora"]
    return [
        *("--lora-r", str(lora["rank"]), "--lora-alpha", str(int(lora["alpha"]))),
        *("--lora-target-modules", *joint_layers(lora["target_modules"])),
    ]


def _beginning(order: Order, model: ModelFacts, *, resumes: bool) -> list[str]:
    """Where the weights come from."""
    if resumes and not order.adapter:
        return ["--load", _SAVED]
    if resumes:
        return ["--load", _CONVERTED, "--lora-load", _SAVED]
    family = architectures.FAMILIES[model.architecture]
    return [
        *("--finetune", "--no-load-optim", "--no-load-rng"),
        *("--load", _MODEL, "--enable-hf2mg-convert", "--mg-save-dir", _CONVERTED),
        *("--model-type-hf", family.model_type),
    ]


def _compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
