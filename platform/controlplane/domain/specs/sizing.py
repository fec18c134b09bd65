"""Inputs of the sizing calculator: one table for the page and for REST."""

from __future__ import annotations

from controlplane.domain.common.spec_fields import FieldKind, SpecField
from controlplane.domain.sizing.weights import WEIGHT_SCHEMES
from controlplane.domain.specs.training import FINETUNE, METHODS

TASKS = ("serve", "train")
STORED = "stored"

_PLAN = next(field for field in FINETUNE if field.name == "parallel").fields

SIZING = (
    SpecField(
        name="task",
        label="Task",
        help="Serving or training.",
        kind=FieldKind.CHOICE,
        default="serve",
        choices=TASKS,
    ),
    SpecField(
        name="scheme",
        label="Weights",
        help="Weight format when serving; stored is the format of the model.",
        kind=FieldKind.CHOICE,
        default=STORED,
        choices=(STORED, *sorted(WEIGHT_SCHEMES)),
    ),
    SpecField(
        name="context",
        label="Context",
        help="Maximum length in tokens: of prompt and answer when serving, of an example when training.",
        kind=FieldKind.INTEGER,
        default=4096,
        least=1,
        most=10_485_760,
    ),
    SpecField(
        name="concurrency",
        label="Concurrent requests",
        help="Concurrent requests; used when serving.",
        kind=FieldKind.INTEGER,
        default=16,
        least=1,
        most=65_536,
    ),
    SpecField(
        name="kv_precision",
        label="Precision of the KV cache",
        help="fp8 stores twice as many tokens; used when serving.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=("auto", "fp8"),
    ),
    SpecField(
        name="memory_fraction",
        label="Share of memory",
        help="Share of the memory of each card that is available to serving.",
        kind=FieldKind.NUMBER,
        default=0.9,
        least=0.1,
        most=0.98,
    ),
    SpecField(
        name="method",
        label="Method",
        help="Train all weights or an adapter; qlora stores the frozen weights in 4 bits.",
        kind=FieldKind.CHOICE,
        default="full",
        choices=METHODS,
    ),
    SpecField(
        name="rank",
        label="LoRA rank",
        help="Size of an adapter; used by the methods lora and qlora, and by LoRA adapters when serving.",
        kind=FieldKind.INTEGER,
        default=16,
        least=1,
        most=1024,
    ),
    SpecField(
        name="adapters",
        label="LoRA adapters",
        help="LoRA adapters that are served beside the model; used when serving.",
        kind=FieldKind.INTEGER,
        default=0,
        least=0,
        most=16,
    ),
    SpecField(
        name="batch",
        label="Batch size",
        help="Examples per batch and card; used when training.",
        kind=FieldKind.INTEGER,
        default=1,
        least=1,
        most=4096,
    ),
    SpecField(
        name="gradient_accumulation",
        label="Gradient accumulation",
        help="Batches per optimizer step; used when training.",
        kind=FieldKind.INTEGER,
        default=1,
        least=1,
        most=4096,
    ),
    SpecField(
        name="precision",
        label="Precision",
        help="Precision of the computation.",
        kind=FieldKind.CHOICE,
        default="bfloat16",
        choices=("bfloat16", "float16", "float32"),
    ),
    SpecField(
        name="recompute",
        label="Recompute activations",
        help="Recompute activations instead of storing them; used when training.",
        kind=FieldKind.CHOICE,
        default="on",
        choices=("on", "off"),
    ),
    SpecField(
        name="cards",
        label="Cards",
        help="Cards of one replica or of the run. Empty: the fewest that fit.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=65_536,
    ),
    SpecField(
        name="parallel",
        label="Parallel plan",
        help="Parallel degrees; empty ones are proposed.",
        kind=FieldKind.GROUP,
        fields=_PLAN,
    ),
)
