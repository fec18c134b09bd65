"""LLaMA-Factory's arguments: what each field of a spec is called there.

Paths are relative to the working folder, or absolute in a file; none of them is an argument of a command,
because the launcher of LLaMA-Factory divides its arguments at spaces.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from controlplane.adapters.engines import deepspeed, sequence
from controlplane.adapters.engines.trainers import Order

#: Relative to ``{work}``: where checkpoints, logs and the last weights go; where the merged model goes.
CHECKPOINTS, MERGED = "checkpoints", "merged"
#: Objectives whose rows are rewritten, and into which shape.
SHAPES = {"dpo": "pairs", "pretrain": "texts"}
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


def training(order: Order) -> dict[str, Any]:
    """What ``llamafactory-cli train`` is told."""
    spec = order.spec
    return {
        "model_name_or_path": _MODEL,
        "trust_remote_code": False,
        **_attention(order),
        "stage": _STAGES[order.objective],
        "do_train": True,
        **_method(order),
        **({"pref_beta": spec["dpo"]["beta"]} if order.objective == "dpo" else {}),
        "dataset_dir": "data",
        "dataset": "train",
        "cutoff_len": order.max_length,
        "preprocessing_num_workers": 4,
        "output_dir": CHECKPOINTS,
        "overwrite_output_dir": False,
        "per_device_train_batch_size": spec["batch_size"],
        "gradient_accumulation_steps": spec["gradient_accumulation"],
        "learning_rate": spec["learning_rate"],
        "num_train_epochs": spec["epochs"],
        "max_steps": spec["max_steps"] or -1,
        "lr_scheduler_type": _schedule(spec),
        "warmup_ratio": spec["warmup_ratio"],
        "weight_decay": spec["weight_decay"],
        "seed": spec["seed"],
        "bf16": order.precision == "bfloat16",
        "fp16": order.precision == "float16",
        **_optimizer(order),
        "disable_gradient_checkpointing": not order.recompute,
        **({"deepspeed": deepspeed.FILE} if deepspeed.wanted(order) else {}),
        "logging_steps": spec["log_every_steps"],
        "save_strategy": "steps",
        "save_steps": spec["checkpoint_every_steps"],
        "save_total_limit": spec["keep_checkpoints"],
        **_validation(order),
        "include_num_input_tokens_seen": True,
        "ddp_timeout": 180_000_000,
        "plot_loss": False,
        "report_to": "none",
    }


def merging(order: Order) -> dict[str, Any]:
    """What ``llamafactory-cli export`` is told: the adapter goes into the weights as they were, unquantized."""
    return {
        "model_name_or_path": _MODEL,
        "adapter_name_or_path": CHECKPOINTS,
        "finetuning_type": "lora",
        "trust_remote_code": False,
        "export_dir": MERGED,
        "export_size": _SHARD,
        "export_device": "cpu",
        "export_legacy_format": False,
        "infer_dtype": order.precision,
    }


def datasets(order: Order) -> str:
    """``dataset_info.json``: the splits under fixed names."""
    splits = {"train": order.spec["train_split"]}
    if order.validation_split:
        splits["validation"] = order.validation_split
    content = {
        name: {"file_name": _rows(order, split), **_COLUMNS[order.objective]}
        for name, split in splits.items()
    }
    return json.dumps(content, ensure_ascii=False, indent=2) + "\n"


def shaping(order: Order) -> tuple[sequence.Run, ...]:
    """The steps that rewrite rows, where the objective needs it."""
    shape = SHAPES.get(order.objective)
    splits = [order.spec["train_split"], order.validation_split]
    return tuple(sequence.shaped(shape, split=split) for split in splits if shape and split)


def yaml(values: Mapping[str, Any]) -> str:
    """One ``name: value`` a line. JSON's scalars are YAML's, but for a float without a point."""
    return "".join(f"{name}: {_scalar(value)}\n" for name, value in values.items())


def _scalar(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    if isinstance(value, float) and "." not in text:
        mantissa, _, exponent = text.partition("e")
        return f"{mantissa}.0e{exponent}"
    return text


def _rows(order: Order, split: str) -> str:
    # An absolute name is taken as it is, a relative one from ``data``, the folder of the file that names it.
    folder = "{work}/rows" if order.objective in SHAPES else "{inputs}/dataset"
    return f"{folder}/{split}.jsonl"


def _method(order: Order) -> dict[str, Any]:
    if order.method == "full":
        return {"finetuning_type": "full"}
    lora = order.spec["lora"]
    values: dict[str, Any] = {
        "finetuning_type": "lora",
        "lora_rank": lora["rank"],
        "lora_alpha": int(lora["alpha"]),
        "lora_dropout": lora["dropout"],
        "lora_target": ",".join(lora["target_modules"] or ("all",)),
    }
    if order.method == "qlora":
        qlora = order.spec["qlora"]
        values |= {
            "quantization_method": "bnb",
            "quantization_bit": qlora["bits"],
            "double_quantization": qlora["double_quantization"] == "on",
        }
    return values


def _attention(order: Order) -> dict[str, Any]:
    return {
        "flash_attn": "fa2" if "flash_attention" in order.fused else "auto",
        **({"enable_liger_kernel": True} if order.fused & LIGER else {}),
    }


def _optimizer(order: Order) -> dict[str, Any]:
    """torch has a fused kernel for each kind of device; the one for NPUs has a name of its own."""
    if "adamw" not in order.fused:
        return {"optim": "adamw_torch"}
    npu = order.chip.torch_device == "npu"
    return {"optim": "adamw_torch_npu_fused" if npu else "adamw_torch_fused"}


def _schedule(spec: Mapping[str, Any]) -> str:
    """``constant`` would leave the warm-up out."""
    schedule = str(spec["scheduler"])
    return "constant_with_warmup" if schedule == "constant" else schedule


def _validation(order: Order) -> dict[str, Any]:
    if not order.validation_split:
        return {}
    return {
        "eval_dataset": "validation",
        "eval_strategy": "steps",
        "eval_steps": order.spec["checkpoint_every_steps"],
        "per_device_eval_batch_size": order.spec["batch_size"],
    }
