"""ms-swift's arguments: what each field of a spec is called there, from version 4 on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from controlplane.adapters.engines import deepspeed, sequence
from controlplane.adapters.engines.ms_swift import families
from controlplane.adapters.engines.trainers import Order

#: Relative to ``{work}``: where checkpoints and logs go; where the merged model goes.
CHECKPOINTS, MERGED = "checkpoints", "merged"
COMMANDS = {"sft": "sft", "dpo": "rlhf", "grpo": "rlhf", "pretrain": "pt"}
#: Objectives whose rows are rewritten, and into which shape; preferences only need a column's name.
SHAPES = {"grpo": "prompts", "pretrain": "spoken"}
#: Fused operators that are Liger kernels here; asking for one takes them all.
LIGER = frozenset({"rms_norm", "rotary_embedding", "swiglu", "cross_entropy"})
_MODEL = "{inputs}/model"


def training(order: Order) -> dict[str, Any]:
    """What ``swift sft``, ``swift pt`` or ``swift rlhf`` is told."""
    spec = order.spec
    return {
        "model": _MODEL,
        **_family(order),
        "torch_dtype": order.precision,
        **({"attn_impl": "flash_attn"} if "flash_attention" in order.fused else {}),
        **({"use_liger_kernel": True} if order.fused & LIGER else {}),
        **_objective(order),
        **_method(order),
        "dataset": [_rows(order, spec["train_split"])],
        **_validation(order),
        "max_length": order.max_length,
        "output_dir": CHECKPOINTS,
        "add_version": False,
        "num_train_epochs": spec["epochs"],
        "max_steps": spec["max_steps"] or -1,
        "learning_rate": spec["learning_rate"],
        "per_device_train_batch_size": spec["batch_size"],
        "gradient_accumulation_steps": spec["gradient_accumulation"],
        "lr_scheduler_type": _schedule(spec),
        "warmup_ratio": spec["warmup_ratio"],
        "weight_decay": spec["weight_decay"],
        "seed": spec["seed"],
        "data_seed": spec["seed"],
        "optim": _optimizer(order),
        "gradient_checkpointing": order.recompute,
        **({"deepspeed": deepspeed.FILE} if deepspeed.wanted(order) else {}),
        **({"sequence_parallel_size": order.plan.context} if order.plan.context > 1 else {}),
        "logging_steps": spec["log_every_steps"],
        "save_strategy": "steps",
        "save_steps": spec["checkpoint_every_steps"],
        "save_total_limit": spec["keep_checkpoints"],
        "dataset_num_proc": 4,
        "report_to": ["none"],
    }


def merging(order: Order) -> tuple[str, ...]:
    """Puts the adapter of the newest checkpoint into the weights as they were, unquantized."""
    return (
        *("swift", "export", "--adapters", "{newest}", "--merge_lora", "true"),
        *("--model", _MODEL, *_family_words(order)),
        *("--torch_dtype", order.precision, "--output_dir", MERGED),
    )


def shaping(order: Order) -> tuple[sequence.Run, ...]:
    """The steps that rewrite rows, where the objective needs it."""
    shape = SHAPES.get(order.objective)
    splits = [order.spec["train_split"], order.validation_split]
    return tuple(sequence.shaped(shape, split=split) for split in splits if shape and split)


def as_json(values: Mapping[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2) + "\n"


def _family(order: Order) -> dict[str, Any]:
    if order.model is None:
        return {}
    family = families.family(order.model)
    return {"model_type": family.model_type, "template": family.template}


def _family_words(order: Order) -> tuple[str, ...]:
    return tuple(word for name, value in _family(order).items() for word in (f"--{name}", value))


def _rows(order: Order, split: str) -> str:
    folder = "{work}/rows" if order.objective in SHAPES else "{inputs}/dataset"
    return f"{folder}/{split}.jsonl"


def _objective(order: Order) -> dict[str, Any]:
    if order.objective == "dpo":
        return {
            "rlhf_type": "dpo",
            "beta": order.spec["dpo"]["beta"],
            "columns": {"rejected": "rejected_response"},
        }
    if order.objective == "grpo":
        grpo = order.spec["grpo"]
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


def _method(order: Order) -> dict[str, Any]:
    if order.method == "full":
        return {"tuner_type": "full"}
    lora = order.spec["lora"]
    values: dict[str, Any] = {
        "tuner_type": "lora",
        "lora_rank": lora["rank"],
        "lora_alpha": int(lora["alpha"]),
        "lora_dropout": lora["dropout"],
        "target_modules": lora["target_modules"] or ["all-linear"],
    }
    if order.method == "qlora":
        qlora = order.spec["qlora"]
        values |= {"quant_method": "bnb", "quant_bits": qlora["bits"]}
        if qlora["bits"] == 4:
            values |= {
                "bnb_4bit_compute_dtype": order.precision,
                "bnb_4bit_use_double_quant": qlora["double_quantization"] == "on",
            }
    return values


def _optimizer(order: Order) -> str:
    """torch has a fused kernel for each kind of device; the one for NPUs has a name of its own."""
    if "adamw" not in order.fused:
        return "adamw_torch"
    npu = order.chip.torch_device == "npu"
    return "adamw_torch_npu_fused" if npu else "adamw_torch_fused"


def _schedule(spec: Mapping[str, Any]) -> str:
    """``constant`` would leave the warm-up out."""
    schedule = str(spec["scheduler"])
    return "constant_with_warmup" if schedule == "constant" else schedule


def _validation(order: Order) -> dict[str, Any]:
    # A prompt and a reward have no loss to validate.
    if not order.validation_split or order.objective == "grpo":
        return {"eval_strategy": "no"}
    return {
        "val_dataset": [_rows(order, order.validation_split)],
        "eval_strategy": "steps",
        "eval_steps": order.spec["checkpoint_every_steps"],
        "per_device_eval_batch_size": order.spec["batch_size"],
    }
