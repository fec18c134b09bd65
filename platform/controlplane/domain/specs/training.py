"""What a fine-tune can be asked for, whatever engine and chip do it.

One table holds for every engine, so that one spec can be rendered for any of them; what an engine or a chip
cannot do of it, its ``limits`` say. *Objective* is what the model learns from; *method* is which weights
change::

    objective   sft · dpo · grpo · pretrain      ×      method   full · lora · qlora

A field of ``parallel`` that is null is proposed from the model, the cards and their memory when the job is
submitted, and written out then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.domain.fields import Field, Finding, Kind
from controlplane.domain.specs.training_groups import DPO, GRPO, LORA, PARALLEL, QLORA

LARGEST_SEED = 2**31 - 1
PRECISIONS = ("auto", "float32", "bfloat16", "float16")
OBJECTIVES = ("sft", "dpo", "grpo", "pretrain")
METHODS = ("full", "lora", "qlora")
#: Fused kernels that some engine knows, by engine-neutral names.
FUSED_OPERATORS = (
    "flash_attention",
    "rms_norm",
    "rotary_embedding",
    "swiglu",
    "cross_entropy",
    "adamw",
    "grouped_matmul",
)

#: Learning rates that suit a pretrained model, by method; an adapter bears ten times more.
LEARNING_RATES: Mapping[str, float] = {"full": 2e-5, "lora": 2e-4, "qlora": 2e-4}
#: By objective, where it differs: a preference is learnt with smaller steps than an answer.
OBJECTIVE_RATES: Mapping[str, float] = {"dpo": 5e-6, "grpo": 1e-6}

FINETUNE = (
    Field(
        name="objective",
        label="Objective",
        help="What to learn from: answers, preferences, rewards, or plain text.",
        kind=Kind.CHOICE,
        default="sft",
        choices=OBJECTIVES,
    ),
    Field(
        name="method",
        label="Method",
        help="Train every weight, or a small adapter that is merged in the end; qlora keeps the rest in 4 bits.",
        kind=Kind.CHOICE,
        default="full",
        choices=METHODS,
    ),
    Field(
        name="epochs",
        label="Epochs",
        help="How often each row is seen.",
        kind=Kind.NUMBER,
        default=3.0,
        least=0,
        above_least=True,
        most=1000,
    ),
    Field(
        name="max_steps",
        label="Most steps",
        help="End after this many steps, whatever the epochs; empty means no such end.",
        kind=Kind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=100_000_000,
    ),
    Field(
        name="learning_rate",
        label="Learning rate",
        help="Peak step size; 2e-5 for a whole pretrained model, 2e-4 for LoRA, 2e-3 for a tiny one.",
        kind=Kind.NUMBER,
        default=LEARNING_RATES["full"],
        least=0,
        above_least=True,
        most=1,
    ),
    Field(
        name="batch_size",
        label="Batch size",
        help="Rows at once on the card.",
        kind=Kind.INTEGER,
        default=8,
        least=1,
        most=4096,
    ),
    Field(
        name="gradient_accumulation",
        label="Gradient accumulation",
        help="Batches that make one step.",
        kind=Kind.INTEGER,
        default=1,
        least=1,
        most=4096,
    ),
    Field(
        name="max_length",
        label="Longest example",
        help="In tokens; the rest is cut off. Empty means the model's context, up to 2,048.",
        kind=Kind.INTEGER,
        default=None,
        optional=True,
        least=8,
        most=1_048_576,
    ),
    Field(
        name="warmup_ratio",
        label="Warm-up",
        help="Share of the steps in which the learning rate rises.",
        kind=Kind.NUMBER,
        default=0.05,
        least=0,
        most=0.9,
    ),
    Field(
        name="weight_decay",
        label="Weight decay",
        help="Pull of the weights towards zero.",
        kind=Kind.NUMBER,
        default=0.0,
        least=0,
        most=1,
    ),
    Field(
        name="seed",
        label="Seed",
        help="The same seed gives the same order of rows.",
        kind=Kind.INTEGER,
        default=42,
        least=0,
        most=LARGEST_SEED,
    ),
    Field(
        name="scheduler",
        label="Schedule",
        help="How the learning rate falls after the warm-up.",
        kind=Kind.CHOICE,
        default="cosine",
        choices=("cosine", "linear", "constant"),
    ),
    Field(
        name="checkpoint_every_steps",
        label="Checkpoint every",
        help="Steps between checkpoints, and between validations.",
        kind=Kind.INTEGER,
        default=200,
        least=1,
        most=1_000_000,
    ),
    Field(
        name="log_every_steps",
        label="Log every",
        help="Steps between points of the loss curve.",
        kind=Kind.INTEGER,
        default=10,
        least=1,
        most=100_000,
    ),
    Field(
        name="keep_checkpoints",
        label="Checkpoints to keep",
        help="The newest ones; older ones are removed.",
        kind=Kind.INTEGER,
        default=2,
        least=1,
        most=100,
    ),
    Field(
        name="lora",
        label="LoRA",
        help="The adapter; used by the methods lora and qlora.",
        kind=Kind.GROUP,
        fields=LORA,
    ),
    Field(
        name="qlora",
        label="QLoRA",
        help="How the frozen weights are kept; used by the method qlora.",
        kind=Kind.GROUP,
        fields=QLORA,
    ),
    Field(
        name="dpo",
        label="DPO",
        help="Used by the objective dpo.",
        kind=Kind.GROUP,
        fields=DPO,
    ),
    Field(
        name="grpo",
        label="GRPO",
        help="Used by the objective grpo.",
        kind=Kind.GROUP,
        fields=GRPO,
    ),
    Field(
        name="parallel",
        label="Parallel plan",
        help="How the cards share the work; tensor × pipeline × context × data is the number of cards.",
        kind=Kind.GROUP,
        fields=PARALLEL,
    ),
    Field(
        name="recompute",
        label="Recompute activations",
        help="Compute them again instead of keeping them; auto does so above a billion parameters on "
        "an accelerator.",
        kind=Kind.CHOICE,
        default="auto",
        choices=("auto", "on", "off"),
    ),
    Field(
        name="communication_dtype",
        label="Communication",
        help="Of gradients between cards; auto is the precision of the computation.",
        kind=Kind.CHOICE,
        default="auto",
        choices=("auto", "float32", "bfloat16", "float16"),
    ),
    Field(
        name="fused_operators",
        label="Fused operators",
        help="Kernels to insist on; empty leaves it to the engine.",
        kind=Kind.CHOICES,
        default=None,
        optional=True,
        choices=FUSED_OPERATORS,
    ),
    Field(
        name="out_of_memory_retries",
        label="Retries after out of memory",
        help="Each with half the batch and twice the accumulation, so that a step sees as many rows.",
        kind=Kind.INTEGER,
        default=1,
        least=0,
        most=3,
    ),
    Field(
        name="precision",
        label="Precision",
        help="Of the computation; auto is bfloat16 on an accelerator and float32 elsewhere.",
        kind=Kind.CHOICE,
        default="auto",
        choices=PRECISIONS,
    ),
    Field(
        name="train_split",
        label="Training split",
        help="The split to learn from.",
        kind=Kind.TEXT,
        default="train",
    ),
    Field(
        name="validation_split",
        label="Validation split",
        help="The split to validate on, if the dataset has it; empty means none.",
        kind=Kind.TEXT,
        default="validation",
        optional=True,
    ),
    Field(
        name="engine_version",
        label="Engine version",
        help="Of the image that runs; empty is the one that the renderer was written for.",
        kind=Kind.TEXT,
        default=None,
        optional=True,
    ),
)

#: Models below this size know nothing that a high learning rate could spoil.
_TINY_PARAMETERS = 20_000_000
#: What teaches a tiny model to take addresses apart; measured in ``tests/benchmarks``.
TINY_RECIPE: Mapping[str, Any] = {
    "method": "full",
    "epochs": 6.0,
    "learning_rate": 2e-3,
    "batch_size": 16,
    "max_length": 256,
    "warmup_ratio": 0.1,
    "checkpoint_every_steps": 250,
}


def recommended(*, parameters: int) -> Mapping[str, Any]:
    """Values that suit a model of that size better than the defaults, to fill a form with."""
    return dict(TINY_RECIPE) if 0 < parameters < _TINY_PARAMETERS else {}


def laid_over(recommended: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked for, over what suits the model.

    Rates and rows that suit learning from answers do not suit learning from preferences or rewards.
    """
    rates = ("learning_rate",) if spec.get("objective") in OBJECTIVE_RATES else ()
    return {**{key: value for key, value in recommended.items() if key not in rates}, **spec}


def check_groups(spec: Mapping[str, Any]) -> Iterator[Finding]:
    """Whether the batches of a complete spec hold whole groups of answers, which ``grpo`` compares."""
    if spec["objective"] != "grpo":
        return
    step = spec["batch_size"] * spec["gradient_accumulation"]
    group = spec["grpo"]["generations"]
    if step % group:
        yield Finding(
            field="batch_size",
            message=f"batch_size × gradient_accumulation must be a multiple of grpo.generations, which is "
            f"{group}, got {spec['batch_size']} × {spec['gradient_accumulation']} = {step}; "
            f"{-(-step // group) * group} rows a step would be right",
        )


def default_rate(*, objective: str, method: str) -> float:
    """The learning rate where a spec gives none."""
    if method == "full" and objective in OBJECTIVE_RATES:
        return OBJECTIVE_RATES[objective]
    return LEARNING_RATES[method]
