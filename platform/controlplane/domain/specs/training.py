"""The spec of a fine-tune, for every engine and chip.

One table holds for every engine, so that one spec can be rendered for any of them; the ``limits`` of an engine are
what it or a chip does not support. *Objective* is the training objective; *method* is which weights are trained::

    objective   sft · dpo · grpo · pretrain      ×      method   full · lora · qlora

A field of ``parallel`` that is null is proposed from the model, the cards and their memory when the job is
submitted, and stored in the spec then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from controlplane.domain.common.spec_fields import FieldFinding, FieldKind, SpecField

LORA = (
    SpecField(
        name="rank",
        label="Rank",
        help="Size of the adapter; 8 to 64 is usual.",
        kind=FieldKind.INTEGER,
        default=16,
        least=1,
        most=1024,
    ),
    SpecField(
        name="alpha",
        label="Alpha",
        help="Strength of the adapter; often twice the rank.",
        kind=FieldKind.NUMBER,
        default=32.0,
        least=0,
        above_least=True,
        most=4096,
    ),
    SpecField(
        name="dropout",
        label="Dropout",
        help="Share of the adapter's inputs that is left out at each step.",
        kind=FieldKind.NUMBER,
        default=0.0,
        least=0,
        most=0.9,
    ),
    SpecField(
        name="target_modules",
        label="Target modules",
        help="Names of the layers to adapt; empty means every linear layer but the output head.",
        kind=FieldKind.TEXTS,
        default=None,
        optional=True,
    ),
)

QLORA = (
    SpecField(
        name="bits",
        label="Bits",
        help="Of a weight of the frozen model; used by the method qlora.",
        kind=FieldKind.INTEGER,
        default=4,
        least=4,
        most=8,
    ),
    SpecField(
        name="double_quantization",
        label="Double quantization",
        help="Quantize the scales as well; saves about 0.4 bits a weight.",
        kind=FieldKind.CHOICE,
        default="on",
        choices=("on", "off"),
    ),
)

DPO = (
    SpecField(
        name="beta",
        label="Beta",
        help="How hard DPO holds the model to the one that it began as.",
        kind=FieldKind.NUMBER,
        default=0.1,
        least=0,
        above_least=True,
        most=10,
    ),
)

GRPO = (
    SpecField(
        name="generations",
        label="Answers a prompt",
        help="Compared with each other; batch size × accumulation must be a multiple of it.",
        kind=FieldKind.INTEGER,
        default=8,
        least=2,
        most=256,
    ),
    SpecField(
        name="max_new_tokens",
        label="Longest answer",
        help="In tokens.",
        kind=FieldKind.INTEGER,
        default=256,
        least=1,
        most=131_072,
    ),
    SpecField(
        name="beta",
        label="Beta",
        help="Weight of the distance from the model that it began as; 0 leaves it out.",
        kind=FieldKind.NUMBER,
        default=0.0,
        least=0,
        most=10,
    ),
    SpecField(
        name="temperature",
        label="Temperature",
        help="Of the answers that are tried.",
        kind=FieldKind.NUMBER,
        default=1.0,
        least=0,
        above_least=True,
        most=4,
    ),
    SpecField(
        name="reward",
        label="Reward",
        help="What an answer earns when it is compared with the row's.",
        kind=FieldKind.CHOICE,
        default="exact_match",
        choices=("exact_match", "label_accuracy"),
    ),
)

PARALLEL = (
    SpecField(
        name="tensor",
        label="Tensor parallel",
        help="Cards that share each layer's matrices; empty is proposed.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=64,
    ),
    SpecField(
        name="pipeline",
        label="Pipeline parallel",
        help="Stages that the layers are divided into; empty is proposed.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=128,
    ),
    SpecField(
        name="data",
        label="Data parallel",
        help="Copies that each learn from other rows; empty is what the others leave.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=8192,
    ),
    SpecField(
        name="context",
        label="Context parallel",
        help="Cards that share a row's tokens; empty is proposed.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=64,
    ),
    SpecField(
        name="expert",
        label="Expert parallel",
        help="Cards that share the experts of a mixture; empty is proposed.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=256,
    ),
    SpecField(
        name="sequence",
        label="Sequence parallel",
        help="Whether tensor-parallel cards also share what lies between their matrices.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=("auto", "on", "off"),
    ),
    SpecField(
        name="zero_stage",
        label="ZeRO stage",
        help="What copies share: 1 the optimizer's states, 2 also gradients, 3 also weights; 0 is nothing.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=0,
        most=3,
    ),
)


LARGEST_SEED = 2**31 - 1
PRECISIONS = ("auto", "float32", "bfloat16", "float16")
OBJECTIVES = ("sft", "dpo", "grpo", "pretrain")
METHODS = ("full", "lora", "qlora")
#: Engine-neutral names of fused kernels that some engines support.
FUSED_OPERATORS = (
    "flash_attention",
    "rms_norm",
    "rotary_embedding",
    "swiglu",
    "cross_entropy",
    "adamw",
    "grouped_matmul",
)

#: Default learning rates for a pretrained model by method; adapters allow ten times higher ones.
LEARNING_RATES: Mapping[str, float] = {"full": 2e-5, "lora": 2e-4, "qlora": 2e-4}
#: Default learning rates of objectives that need lower ones than supervised fine-tuning.
OBJECTIVE_RATES: Mapping[str, float] = {"dpo": 5e-6, "grpo": 1e-6}

FINETUNE = (
    SpecField(
        name="objective",
        label="Objective",
        help="What to learn from: answers, preferences, rewards, or plain text.",
        kind=FieldKind.CHOICE,
        default="sft",
        choices=OBJECTIVES,
    ),
    SpecField(
        name="method",
        label="Method",
        help="Train every weight, or a small adapter that is merged in the end; qlora keeps the rest in 4 bits.",
        kind=FieldKind.CHOICE,
        default="full",
        choices=METHODS,
    ),
    SpecField(
        name="epochs",
        label="Epochs",
        help="How often each row is seen.",
        kind=FieldKind.NUMBER,
        default=3.0,
        least=0,
        above_least=True,
        most=1000,
    ),
    SpecField(
        name="max_steps",
        label="Most steps",
        help="End after this many steps, whatever the epochs; empty means no such end.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=100_000_000,
    ),
    SpecField(
        name="learning_rate",
        label="Learning rate",
        help="Peak step size; 2e-5 for a whole pretrained model, 2e-4 for LoRA, 2e-3 for a tiny one.",
        kind=FieldKind.NUMBER,
        default=LEARNING_RATES["full"],
        least=0,
        above_least=True,
        most=1,
    ),
    SpecField(
        name="batch_size",
        label="Batch size",
        help="Rows at once on the card.",
        kind=FieldKind.INTEGER,
        default=8,
        least=1,
        most=4096,
    ),
    SpecField(
        name="gradient_accumulation",
        label="Gradient accumulation",
        help="Batches that make one step.",
        kind=FieldKind.INTEGER,
        default=1,
        least=1,
        most=4096,
    ),
    SpecField(
        name="max_length",
        label="Longest example",
        help="In tokens; the rest is cut off. Empty means the model's context, up to 2,048.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=8,
        most=1_048_576,
    ),
    SpecField(
        name="warmup_ratio",
        label="Warm-up",
        help="Share of the steps in which the learning rate rises.",
        kind=FieldKind.NUMBER,
        default=0.05,
        least=0,
        most=0.9,
    ),
    SpecField(
        name="weight_decay",
        label="Weight decay",
        help="Pull of the weights towards zero.",
        kind=FieldKind.NUMBER,
        default=0.0,
        least=0,
        most=1,
    ),
    SpecField(
        name="seed",
        label="Seed",
        help="The same seed gives the same order of rows.",
        kind=FieldKind.INTEGER,
        default=42,
        least=0,
        most=LARGEST_SEED,
    ),
    SpecField(
        name="scheduler",
        label="Schedule",
        help="How the learning rate falls after the warm-up.",
        kind=FieldKind.CHOICE,
        default="cosine",
        choices=("cosine", "linear", "constant"),
    ),
    SpecField(
        name="checkpoint_every_steps",
        label="Checkpoint every",
        help="Steps between checkpoints, and between validations.",
        kind=FieldKind.INTEGER,
        default=200,
        least=1,
        most=1_000_000,
    ),
    SpecField(
        name="log_every_steps",
        label="Log every",
        help="Steps between points of the loss curve.",
        kind=FieldKind.INTEGER,
        default=10,
        least=1,
        most=100_000,
    ),
    SpecField(
        name="keep_checkpoints",
        label="Checkpoints to keep",
        help="The newest ones; older ones are removed.",
        kind=FieldKind.INTEGER,
        default=2,
        least=1,
        most=100,
    ),
    SpecField(
        name="lora",
        label="LoRA",
        help="The adapter; used by the methods lora and qlora.",
        kind=FieldKind.GROUP,
        fields=LORA,
    ),
    SpecField(
        name="qlora",
        label="QLoRA",
        help="How the frozen weights are kept; used by the method qlora.",
        kind=FieldKind.GROUP,
        fields=QLORA,
    ),
    SpecField(
        name="dpo",
        label="DPO",
        help="Used by the objective dpo.",
        kind=FieldKind.GROUP,
        fields=DPO,
    ),
    SpecField(
        name="grpo",
        label="GRPO",
        help="Used by the objective grpo.",
        kind=FieldKind.GROUP,
        fields=GRPO,
    ),
    SpecField(
        name="parallel",
        label="Parallel plan",
        help="How the cards share the work; tensor × pipeline × context × data is the number of cards.",
        kind=FieldKind.GROUP,
        fields=PARALLEL,
    ),
    SpecField(
        name="recompute",
        label="Recompute activations",
        help="Compute them again instead of keeping them; auto does so above a billion parameters on "
        "an accelerator.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=("auto", "on", "off"),
    ),
    SpecField(
        name="communication_dtype",
        label="Communication",
        help="Of gradients between cards; auto is the precision of the computation.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=("auto", "float32", "bfloat16", "float16"),
    ),
    SpecField(
        name="fused_operators",
        label="Fused operators",
        help="Kernels to insist on; empty leaves it to the engine.",
        kind=FieldKind.CHOICES,
        default=None,
        optional=True,
        choices=FUSED_OPERATORS,
    ),
    SpecField(
        name="out_of_memory_retries",
        label="Retries after out of memory",
        help="Each with half the batch and twice the accumulation, so that a step sees as many rows.",
        kind=FieldKind.INTEGER,
        default=1,
        least=0,
        most=3,
    ),
    SpecField(
        name="precision",
        label="Precision",
        help="Of the computation; auto is bfloat16 on an accelerator and float32 elsewhere.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=PRECISIONS,
    ),
    SpecField(
        name="train_split",
        label="Training split",
        help="The split to learn from.",
        kind=FieldKind.TEXT,
        default="train",
    ),
    SpecField(
        name="validation_split",
        label="Validation split",
        help="The split to validate on, if the dataset has it; empty means none.",
        kind=FieldKind.TEXT,
        default="validation",
        optional=True,
    ),
    SpecField(
        name="engine_version",
        label="Engine version",
        help="Of the image that runs; empty is the one that the renderer was written for.",
        kind=FieldKind.TEXT,
        default=None,
        optional=True,
    ),
)

#: Number of parameters below which a high learning rate does no harm.
_TINY_PARAMETERS = 20_000_000
#: Recommended values for tiny models; measured on an address parser in ``tests/benchmarks``.
TINY_RECIPE: Mapping[str, Any] = {
    "method": "full",
    "epochs": 6.0,
    "learning_rate": 2e-3,
    "batch_size": 16,
    "max_length": 256,
    "warmup_ratio": 0.1,
    "checkpoint_every_steps": 250,
}


def recommended_values(*, parameters: int) -> Mapping[str, Any]:
    """Recommended values for a model of that size where they differ from the defaults."""
    return dict(TINY_RECIPE) if 0 < parameters < _TINY_PARAMETERS else {}


def merge_recommended(recommended: Mapping[str, Any], spec: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a spec over recommended values.

    A recommended learning rate applies to supervised fine-tuning only, not to preferences or rewards.
    """
    rates = ("learning_rate",) if spec.get("objective") in OBJECTIVE_RATES else ()
    return {**{key: value for key, value in recommended.items() if key not in rates}, **spec}


def check_grpo_batches(spec: Mapping[str, Any]) -> Iterator[FieldFinding]:
    """Check that the batches of a complete spec hold whole groups of answers, as ``grpo`` requires."""
    if spec["objective"] != "grpo":
        return
    step = spec["batch_size"] * spec["gradient_accumulation"]
    group = spec["grpo"]["generations"]
    if step % group:
        yield FieldFinding(
            field="batch_size",
            message=f"batch_size × gradient_accumulation must be a multiple of grpo.generations, which is "
            f"{group}, got {spec['batch_size']} × {spec['gradient_accumulation']} = {step}; "
            f"{-(-step // group) * group} rows a step would be right",
        )


def default_learning_rate(*, objective: str, method: str) -> float:
    """The default learning rate."""
    if method == "full" and objective in OBJECTIVE_RATES:
        return OBJECTIVE_RATES[objective]
    return LEARNING_RATES[method]
