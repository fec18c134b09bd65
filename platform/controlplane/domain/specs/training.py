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

from controlplane.domain.common.spec_fields import (
    FieldFinding,
    choice_field,
    choices_field,
    field_finding,
    group_field,
    integer_field,
    number_field,
    text_field,
    texts_field,
)

LORA = (
    integer_field(
        "rank",
        "LoRA rank",
        "Rank of the adapter matrices; 8 to 64 is typical.",
        default=16,
        within=(1, 1024),
    ),
    number_field(
        "alpha",
        "LoRA alpha",
        "Scaling factor of the adapter; typically twice the rank.",
        default=32.0,
        within=(0, 4096),
        above_least=True,
    ),
    number_field(
        "dropout",
        "LoRA dropout",
        "Dropout probability of the inputs of the adapter.",
        default=0.0,
        within=(0, 0.9),
    ),
    texts_field(
        "target_modules",
        "LoRA target modules",
        "Names of the modules to adapt. Empty: every linear layer except the output head.",
        default=None,
    ),
)

QLORA = (
    integer_field(
        "bits",
        "Bits per weight",
        "Bits per weight of the frozen model; used by the method qlora.",
        default=4,
        within=(4, 8),
    ),
    choice_field(
        "double_quantization",
        "Double quantization",
        "Quantizes the scales as well; saves about 0.4 bits per weight.",
        default="on",
        choices=("on", "off"),
    ),
)

DPO = (
    number_field(
        "beta",
        "KL penalty (beta)",
        "Strength of the penalty for a deviation from the reference model.",
        default=0.1,
        within=(0, 10),
        above_least=True,
    ),
)

GRPO = (
    integer_field(
        "generations",
        "Completions per prompt",
        "Number of completions per prompt; batch size × gradient accumulation must be a "
        "multiple of it.",
        default=8,
        within=(2, 256),
    ),
    integer_field(
        "max_new_tokens",
        "Max answer length",
        "Maximum number of tokens per answer.",
        default=256,
        within=(1, 131_072),
    ),
    number_field(
        "beta",
        "KL penalty (beta)",
        "Weight of the KL penalty for a deviation from the reference model; 0 disables it.",
        default=0.0,
        within=(0, 10),
    ),
    number_field(
        "temperature",
        "Temperature",
        "Sampling temperature of the answers.",
        default=1.0,
        within=(0, 4),
        above_least=True,
    ),
    choice_field(
        "reward",
        "Reward",
        "Function that scores an answer against the answer of the example.",
        default="exact_match",
        choices=("exact_match", "label_accuracy"),
    ),
)

PARALLEL = (
    integer_field(
        "tensor",
        "Tensor parallel",
        "Number of cards that share each layer. Empty: automatic.",
        default=None,
        within=(1, 64),
    ),
    integer_field(
        "pipeline",
        "Pipeline parallel",
        "Number of stages that the layers are divided into. Empty: automatic.",
        default=None,
        within=(1, 128),
    ),
    integer_field(
        "data",
        "Data parallel",
        "Number of model copies that train on different examples. Empty: cards / (tensor × pipeline × "
        "context).",
        default=None,
        within=(1, 8192),
    ),
    integer_field(
        "context",
        "Context parallel",
        "Number of cards that share the tokens of an example. Empty: automatic.",
        default=None,
        within=(1, 64),
    ),
    integer_field(
        "expert",
        "Expert parallel",
        "Number of cards that share the experts of a mixture-of-experts model. Empty: automatic.",
        default=None,
        within=(1, 256),
    ),
    choice_field(
        "sequence",
        "Sequence parallel",
        "Distributes the activations between tensor-parallel layers over the tensor-parallel cards.",
        default="auto",
        choices=("auto", "on", "off"),
    ),
    integer_field(
        "zero_stage",
        "ZeRO stage",
        "State that the data-parallel copies share. 0: none, 1: optimizer states, 2: also gradients, 3: "
        "also weights. Empty: automatic.",
        default=None,
        within=(0, 3),
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

ENGINE_VERSION = text_field(
    "engine_version",
    "Engine version",
    "Version of the engine image. Empty: the version that the rendered arguments are written for.",
    default=None,
)

FINETUNE = (
    choice_field(
        "objective",
        "Training objective",
        "sft trains on answers, dpo on preferences, grpo on rewards, pretrain on plain text.",
        default="sft",
        choices=OBJECTIVES,
    ),
    choice_field(
        "method",
        "Method",
        "full trains all weights. lora trains an adapter that is merged at the end. qlora also quantizes "
        "the frozen weights.",
        default="full",
        choices=METHODS,
    ),
    number_field(
        "epochs",
        "Epochs",
        "Number of passes over the training examples.",
        default=3.0,
        within=(0, 1000),
        above_least=True,
    ),
    integer_field(
        "max_steps",
        "Max steps",
        "Number of steps after which training ends, regardless of epochs. Empty: no limit.",
        default=None,
        within=(1, 100_000_000),
    ),
    number_field(
        "learning_rate",
        "Learning rate",
        "Peak learning rate. Typical: 2e-5 for full fine-tuning, 2e-4 for LoRA, 2e-3 for tiny models.",
        default=LEARNING_RATES["full"],
        within=(0, 1),
        above_least=True,
    ),
    integer_field(
        "batch_size",
        "Batch size",
        "Number of examples per batch on each card.",
        default=8,
        within=(1, 4096),
    ),
    integer_field(
        "gradient_accumulation",
        "Gradient accumulation",
        "Number of batches whose gradients are accumulated before each optimizer step.",
        default=1,
        within=(1, 4096),
    ),
    integer_field(
        "max_length",
        "Max example length",
        "Maximum number of tokens per example; longer examples are truncated. Empty: the context length of "
        "the model, at most 2,048.",
        default=None,
        within=(8, 1_048_576),
    ),
    number_field(
        "warmup_ratio",
        "Warm-up fraction",
        "Fraction of the steps in which the learning rate rises.",
        default=0.05,
        within=(0, 0.9),
    ),
    number_field(
        "weight_decay",
        "Weight decay",
        "Coefficient of the weight decay of the optimizer.",
        default=0.0,
        within=(0, 1),
    ),
    integer_field(
        "seed",
        "Seed",
        "Random seed; the same seed gives the same order of examples.",
        default=42,
        within=(0, LARGEST_SEED),
    ),
    choice_field(
        "scheduler",
        "Learning rate schedule",
        "Course of the learning rate after the warm-up.",
        default="cosine",
        choices=("cosine", "linear", "constant"),
    ),
    integer_field(
        "checkpoint_every_steps",
        "Checkpoint interval",
        "Number of steps between checkpoints, and between validations.",
        default=200,
        within=(1, 1_000_000),
    ),
    integer_field(
        "log_every_steps",
        "Logging interval",
        "Number of steps between points of the loss curve.",
        default=10,
        within=(1, 100_000),
    ),
    integer_field(
        "keep_checkpoints",
        "Checkpoints to keep",
        "Number of newest checkpoints that are kept; older ones are deleted.",
        default=2,
        within=(1, 100),
    ),
    group_field("lora", "LoRA", "Adapter; used by the methods lora and qlora.", fields=LORA),
    group_field(
        "qlora",
        "QLoRA",
        "Quantization of the frozen weights; used by the method qlora.",
        fields=QLORA,
    ),
    group_field("dpo", "DPO", "Preference optimization; used by the objective dpo.", fields=DPO),
    group_field("grpo", "GRPO", "Policy optimization; used by the objective grpo.", fields=GRPO),
    group_field(
        "parallel",
        "Parallel plan",
        "Distribution of the training over the cards; tensor × pipeline × context × data is the number of "
        "cards.",
        fields=PARALLEL,
    ),
    choice_field(
        "recompute",
        "Recompute activations",
        "Recomputes activations in the backward pass instead of storing them. auto: on an accelerator, for "
        "models above one billion parameters.",
        default="auto",
        choices=("auto", "on", "off"),
    ),
    choice_field(
        "communication_dtype",
        "Communication data type",
        "Data type of gradients between cards. auto: the precision of the computation.",
        default="auto",
        choices=("auto", "float32", "bfloat16", "float16"),
    ),
    choices_field(
        "fused_operators",
        "Fused operators",
        "Fused kernels that the engine must use. Empty: the choice of the engine.",
        default=None,
        choices=FUSED_OPERATORS,
    ),
    integer_field(
        "out_of_memory_retries",
        "Retries after out of memory",
        "Number of retries, each with half the batch size and twice the gradient accumulation.",
        default=1,
        within=(0, 3),
    ),
    choice_field(
        "precision",
        "Precision",
        "Data type of the computation. auto: bfloat16 on an accelerator, otherwise float32.",
        default="auto",
        choices=PRECISIONS,
    ),
    text_field("train_split", "Training split", "Dataset split to train on.", default="train"),
    text_field(
        "validation_split",
        "Validation split",
        "Dataset split to validate on, if the dataset has it. Empty: no validation.",
        default="validation",
        optional=True,
    ),
    ENGINE_VERSION,
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
        yield field_finding(
            "batch_size",
            "spec.batch_size.not_a_multiple_of_generations",
            "batch_size × gradient_accumulation must be a multiple of grpo.generations, which is "
            "{generations}, got {batch_size} × {accumulation} = {step}; the next multiple is "
            "{multiple}",
            generations=group,
            batch_size=spec["batch_size"],
            accumulation=spec["gradient_accumulation"],
            step=step,
            multiple=-(-step // group) * group,
        )


def default_learning_rate(*, objective: str, method: str) -> float:
    if method == "full" and objective in OBJECTIVE_RATES:
        return OBJECTIVE_RATES[objective]
    return LEARNING_RATES[method]
