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
        help="Serve answers, or train.",
        kind=FieldKind.CHOICE,
        default="serve",
        choices=TASKS,
    ),
    SpecField(
        name="scheme",
        label="Weights",
        help="What weights are kept in when serving; stored is as the model itself has them.",
        kind=FieldKind.CHOICE,
        default=STORED,
        choices=(STORED, *sorted(WEIGHT_SCHEMES)),
    ),
    SpecField(
        name="context",
        label="Context",
        help="Tokens of the longest prompt and answer together, or of the longest row.",
        kind=FieldKind.INTEGER,
        default=4096,
        least=1,
        most=10_485_760,
    ),
    SpecField(
        name="concurrency",
        label="Concurrency",
        help="Requests that run at once; used when serving.",
        kind=FieldKind.INTEGER,
        default=16,
        least=1,
        most=65_536,
    ),
    SpecField(
        name="kv_precision",
        label="Precision of the KV cache",
        help="fp8 holds twice as many tokens; used when serving.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=("auto", "fp8"),
    ),
    SpecField(
        name="memory_fraction",
        label="Share of memory",
        help="Of each card, that serving may use.",
        kind=FieldKind.NUMBER,
        default=0.9,
        least=0.1,
        most=0.98,
    ),
    SpecField(
        name="method",
        label="Method",
        help="Train every weight, or a small adapter; qlora keeps the rest in 4 bits.",
        kind=FieldKind.CHOICE,
        default="full",
        choices=METHODS,
    ),
    SpecField(
        name="rank",
        label="LoRA rank",
        help="Size of the adapter; used by the methods lora and qlora.",
        kind=FieldKind.INTEGER,
        default=16,
        least=1,
        most=1024,
    ),
    SpecField(
        name="batch",
        label="Batch size",
        help="Rows at once on a card; used when training.",
        kind=FieldKind.INTEGER,
        default=1,
        least=1,
        most=4096,
    ),
    SpecField(
        name="gradient_accumulation",
        label="Gradient accumulation",
        help="Batches that make one step; used when training.",
        kind=FieldKind.INTEGER,
        default=1,
        least=1,
        most=4096,
    ),
    SpecField(
        name="precision",
        label="Precision",
        help="Of the computation.",
        kind=FieldKind.CHOICE,
        default="bfloat16",
        choices=("bfloat16", "float16", "float32"),
    ),
    SpecField(
        name="recompute",
        label="Recompute activations",
        help="Compute them again instead of keeping them; used when training.",
        kind=FieldKind.CHOICE,
        default="on",
        choices=("on", "off"),
    ),
    SpecField(
        name="cards",
        label="Cards",
        help="Of one replica, or of the run; empty is the fewest that fit.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=65_536,
    ),
    SpecField(
        name="parallel",
        label="Parallel plan",
        help="How the cards share the work; what is empty is proposed.",
        kind=FieldKind.GROUP,
        fields=_PLAN,
    ),
)
