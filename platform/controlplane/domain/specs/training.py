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

from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding, FieldKind, SpecField

LORA = (
    SpecField(
        name="rank",
        label="LoRA rank",
        help="Rank of the adapter matrices; 8 to 64 is typical.",
        kind=FieldKind.INTEGER,
        default=16,
        least=1,
        most=1024,
    ),
    SpecField(
        name="alpha",
        label="LoRA alpha",
        help="Scaling factor of the adapter; typically twice the rank.",
        kind=FieldKind.NUMBER,
        default=32.0,
        least=0,
        above_least=True,
        most=4096,
    ),
    SpecField(
        name="dropout",
        label="LoRA dropout",
        help="Dropout probability of the inputs of the adapter.",
        kind=FieldKind.NUMBER,
        default=0.0,
        least=0,
        most=0.9,
    ),
    SpecField(
        name="target_modules",
        label="LoRA target modules",
        help="Names of the modules to adapt. Empty: every linear layer except the output head.",
        kind=FieldKind.TEXTS,
        default=None,
        optional=True,
    ),
)

QLORA = (
    SpecField(
        name="bits",
        label="Bits per weight",
        help="Bits per weight of the frozen model; used by the method qlora.",
        kind=FieldKind.INTEGER,
        default=4,
        least=4,
        most=8,
    ),
    SpecField(
        name="double_quantization",
        label="Double quantization",
        help="Quantizes the scales as well; saves about 0.4 bits per weight.",
        kind=FieldKind.CHOICE,
        default="on",
        choices=("on", "off"),
    ),
)

DPO = (
    SpecField(
        name="beta",
        label="KL penalty (beta)",
        help="Strength of the penalty for a deviation from the reference model.",
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
        label="Completions per prompt",
        help="Number of completions per prompt; batch size × gradient accumulation must be a "
        "multiple of it.",
        kind=FieldKind.INTEGER,
        default=8,
        least=2,
        most=256,
    ),
    SpecField(
        name="max_new_tokens",
        label="Max answer length",
        help="Maximum number of tokens per answer.",
        kind=FieldKind.INTEGER,
        default=256,
        least=1,
        most=131_072,
    ),
    SpecField(
        name="beta",
        label="KL penalty (beta)",
        help="Weight of the KL penalty for a deviation from the reference model; 0 disables it.",
        kind=FieldKind.NUMBER,
        default=0.0,
        least=0,
        most=10,
    ),
    SpecField(
        name="temperature",
        label="Temperature",
        help="Sampling temperature of the answers.",
        kind=FieldKind.NUMBER,
        default=1.0,
        least=0,
        above_least=True,
        most=4,
    ),
    SpecField(
        name="reward",
        label="Reward",
        help="Function that scores an answer against the answer of the example.",
        kind=FieldKind.CHOICE,
        default="exact_match",
        choices=("exact_match", "label_accuracy"),
    ),
)

PARALLEL = (
    SpecField(
        name="tensor",
        label="Tensor parallel",
        help="Number of cards that share each layer. Empty: automatic.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=64,
    ),
    SpecField(
        name="pipeline",
        label="Pipeline parallel",
        help="Number of stages that the layers are divided into. Empty: automatic.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=128,
    ),
    SpecField(
        name="data",
        label="Data parallel",
        help="Number of model copies that train on different examples. Empty: cards / (tensor × pipeline × "
        "context).",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=8192,
    ),
    SpecField(
        name="context",
        label="Context parallel",
        help="Number of cards that share the tokens of an example. Empty: automatic.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=64,
    ),
    SpecField(
        name="expert",
        label="Expert parallel",
        help="Number of cards that share the experts of a mixture-of-experts model. Empty: automatic.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=256,
    ),
    SpecField(
        name="sequence",
        label="Sequence parallel",
        help="Distributes the activations between tensor-parallel layers over the tensor-parallel cards.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=("auto", "on", "off"),
    ),
    SpecField(
        name="zero_stage",
        label="ZeRO stage",
        help="State that the data-parallel copies share. 0: none, 1: optimizer states, 2: also gradients, 3: "
        "also weights. Empty: automatic.",
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
        label="Training objective",
        help="sft trains on answers, dpo on preferences, grpo on rewards, pretrain on plain text.",
        kind=FieldKind.CHOICE,
        default="sft",
        choices=OBJECTIVES,
    ),
    SpecField(
        name="method",
        label="Method",
        help="full trains all weights. lora trains an adapter that is merged at the end. qlora also quantizes "
        "the frozen weights.",
        kind=FieldKind.CHOICE,
        default="full",
        choices=METHODS,
    ),
    SpecField(
        name="epochs",
        label="Epochs",
        help="Number of passes over the training examples.",
        kind=FieldKind.NUMBER,
        default=3.0,
        least=0,
        above_least=True,
        most=1000,
    ),
    SpecField(
        name="max_steps",
        label="Max steps",
        help="Number of steps after which training ends, regardless of epochs. Empty: no limit.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=100_000_000,
    ),
    SpecField(
        name="learning_rate",
        label="Learning rate",
        help="Peak learning rate. Typical: 2e-5 for full fine-tuning, 2e-4 for LoRA, 2e-3 for tiny models.",
        kind=FieldKind.NUMBER,
        default=LEARNING_RATES["full"],
        least=0,
        above_least=True,
        most=1,
    ),
    SpecField(
        name="batch_size",
        label="Batch size",
        help="Number of examples per batch on each card.",
        kind=FieldKind.INTEGER,
        default=8,
        least=1,
        most=4096,
    ),
    SpecField(
        name="gradient_accumulation",
        label="Gradient accumulation",
        help="Number of batches whose gradients are accumulated before each optimizer step.",
        kind=FieldKind.INTEGER,
        default=1,
        least=1,
        most=4096,
    ),
    SpecField(
        name="max_length",
        label="Max example length",
        help="Maximum number of tokens per example; longer examples are truncated. Empty: the context length of "
        "the model, at most 2,048.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=8,
        most=1_048_576,
    ),
    SpecField(
        name="warmup_ratio",
        label="Warm-up fraction",
        help="Fraction of the steps in which the learning rate rises.",
        kind=FieldKind.NUMBER,
        default=0.05,
        least=0,
        most=0.9,
    ),
    SpecField(
        name="weight_decay",
        label="Weight decay",
        help="Coefficient of the weight decay of the optimizer.",
        kind=FieldKind.NUMBER,
        default=0.0,
        least=0,
        most=1,
    ),
    SpecField(
        name="seed",
        label="Seed",
        help="Random seed; the same seed gives the same order of examples.",
        kind=FieldKind.INTEGER,
        default=42,
        least=0,
        most=LARGEST_SEED,
    ),
    SpecField(
        name="scheduler",
        label="Learning rate schedule",
        help="Course of the learning rate after the warm-up.",
        kind=FieldKind.CHOICE,
        default="cosine",
        choices=("cosine", "linear", "constant"),
    ),
    SpecField(
        name="checkpoint_every_steps",
        label="Checkpoint interval",
        help="Number of steps between checkpoints, and between validations.",
        kind=FieldKind.INTEGER,
        default=200,
        least=1,
        most=1_000_000,
    ),
    SpecField(
        name="log_every_steps",
        label="Logging interval",
        help="Number of steps between points of the loss curve.",
        kind=FieldKind.INTEGER,
        default=10,
        least=1,
        most=100_000,
    ),
    SpecField(
        name="keep_checkpoints",
        label="Checkpoints to keep",
        help="Number of newest checkpoints that are kept; older ones are deleted.",
        kind=FieldKind.INTEGER,
        default=2,
        least=1,
        most=100,
    ),
    SpecField(
        name="lora",
        label="LoRA",
        help="Adapter; used by the methods lora and qlora.",
        kind=FieldKind.GROUP,
        fields=LORA,
    ),
    SpecField(
        name="qlora",
        label="QLoRA",
        help="Quantization of the frozen weights; used by the method qlora.",
        kind=FieldKind.GROUP,
        fields=QLORA,
    ),
    SpecField(
        name="dpo",
        label="DPO",
        help="Preference optimization; used by the objective dpo.",
        kind=FieldKind.GROUP,
        fields=DPO,
    ),
    SpecField(
        name="grpo",
        label="GRPO",
        help="Policy optimization; used by the objective grpo.",
        kind=FieldKind.GROUP,
        fields=GRPO,
    ),
    SpecField(
        name="parallel",
        label="Parallel plan",
        help="Distribution of the training over the cards; tensor × pipeline × context × data is the number of "
        "cards.",
        kind=FieldKind.GROUP,
        fields=PARALLEL,
    ),
    SpecField(
        name="recompute",
        label="Recompute activations",
        help="Recomputes activations in the backward pass instead of storing them. auto: on an accelerator, for "
        "models above one billion parameters.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=("auto", "on", "off"),
    ),
    SpecField(
        name="communication_dtype",
        label="Communication data type",
        help="Data type of gradients between cards. auto: the precision of the computation.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=("auto", "float32", "bfloat16", "float16"),
    ),
    SpecField(
        name="fused_operators",
        label="Fused operators",
        help="Fused kernels that the engine must use. Empty: the choice of the engine.",
        kind=FieldKind.CHOICES,
        default=None,
        optional=True,
        choices=FUSED_OPERATORS,
    ),
    SpecField(
        name="out_of_memory_retries",
        label="Retries after out of memory",
        help="Number of retries, each with half the batch size and twice the gradient accumulation.",
        kind=FieldKind.INTEGER,
        default=1,
        least=0,
        most=3,
    ),
    SpecField(
        name="precision",
        label="Precision",
        help="Data type of the computation. auto: bfloat16 on an accelerator, otherwise float32.",
        kind=FieldKind.CHOICE,
        default="auto",
        choices=PRECISIONS,
    ),
    SpecField(
        name="train_split",
        label="Training split",
        help="Dataset split to train on.",
        kind=FieldKind.TEXT,
        default="train",
    ),
    SpecField(
        name="validation_split",
        label="Validation split",
        help="Dataset split to validate on, if the dataset has it. Empty: no validation.",
        kind=FieldKind.TEXT,
        default="validation",
        optional=True,
    ),
    SpecField(
        name="engine_version",
        label="Engine version",
        help="Version of the engine image. Empty: the version that the rendered arguments are written for.",
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
            message=Reason(
                "spec.batch_size.not_a_multiple_of_generations",
                "batch_size × gradient_accumulation must be a multiple of grpo.generations, which is "
                "{generations}, got {batch_size} × {accumulation} = {step}; the next multiple is "
                "{multiple}",
                generations=group,
                batch_size=spec["batch_size"],
                accumulation=spec["gradient_accumulation"],
                step=step,
                multiple=-(-step // group) * group,
            ),
        )


def default_learning_rate(*, objective: str, method: str) -> float:
    """The default learning rate."""
    if method == "full" and objective in OBJECTIVE_RATES:
        return OBJECTIVE_RATES[objective]
    return LEARNING_RATES[method]
