"""Inputs of the sizing calculator: one table for the page and for REST."""

from __future__ import annotations

from controlplane.domain.common.spec_fields import (
    choice_field,
    group_field,
    integer_field,
    number_field,
)
from controlplane.domain.sizing.weights import WEIGHT_SCHEMES
from controlplane.domain.specs.training import FINETUNE, METHODS

TASKS = ("serve", "train")
STORED = "stored"

_PLAN = next(field for field in FINETUNE if field.name == "parallel").fields

SIZING = (
    choice_field("task", "Task", "Serving or training.", default="serve", choices=TASKS),
    choice_field(
        "scheme",
        "Weights",
        "Weight format when serving; stored is the format of the model.",
        default=STORED,
        choices=(STORED, *sorted(WEIGHT_SCHEMES)),
    ),
    integer_field(
        "context",
        "Context",
        "Maximum length in tokens: of prompt and answer when serving, of an example when training.",
        default=4096,
        within=(1, 10_485_760),
    ),
    integer_field(
        "concurrency",
        "Concurrent requests",
        "Concurrent requests; used when serving.",
        default=16,
        within=(1, 65_536),
    ),
    choice_field(
        "kv_precision",
        "Precision of the KV cache",
        "fp8 stores twice as many tokens; used when serving.",
        default="auto",
        choices=("auto", "fp8"),
    ),
    number_field(
        "memory_fraction",
        "Share of memory",
        "Share of the memory of each card that is available to serving.",
        default=0.9,
        within=(0.1, 0.98),
    ),
    choice_field(
        "method",
        "Method",
        "Train all weights or an adapter; qlora stores the frozen weights in 4 bits.",
        default="full",
        choices=METHODS,
    ),
    integer_field(
        "rank",
        "LoRA rank",
        "Size of an adapter; used by the methods lora and qlora, and by LoRA adapters when serving.",
        default=16,
        within=(1, 1024),
    ),
    integer_field(
        "adapters",
        "LoRA adapters",
        "LoRA adapters that are served beside the model; used when serving.",
        default=0,
        within=(0, 16),
    ),
    integer_field(
        "batch",
        "Batch size",
        "Examples per batch and card; used when training.",
        default=1,
        within=(1, 4096),
    ),
    integer_field(
        "gradient_accumulation",
        "Gradient accumulation",
        "Batches per optimizer step; used when training.",
        default=1,
        within=(1, 4096),
    ),
    choice_field(
        "precision",
        "Precision",
        "Precision of the computation.",
        default="bfloat16",
        choices=("bfloat16", "float16", "float32"),
    ),
    choice_field(
        "recompute",
        "Recompute activations",
        "Recompute activations instead of storing them; used when training.",
        default="on",
        choices=("on", "off"),
    ),
    integer_field(
        "cards",
        "Cards",
        "Cards of one replica or of the run. Empty: the fewest that fit.",
        default=None,
        within=(1, 65_536),
    ),
    group_field(
        "parallel", "Parallel plan", "Parallel degrees; empty ones are proposed.", fields=_PLAN
    ),
)
