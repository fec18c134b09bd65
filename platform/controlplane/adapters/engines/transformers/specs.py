"""The fields of each task of the ``transformers`` engine, with their limits and defaults.

``ninefold_runtime.specs`` mirrors the names and types; a test holds the two together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from controlplane.adapters.engines.transformers.fields import Field, Kind
from controlplane.ports.engines import ModelFacts, Task

METRICS = ("exact_match", "label_accuracy", "perplexity")
PRECISIONS = ("auto", "float32", "bfloat16")
_LARGEST_SEED = 2**31 - 1

#: Learning rates that suit a pretrained model, by method; an adapter bears ten times more.
LEARNING_RATES: Mapping[str, float] = {"full": 2e-5, "lora": 2e-4}

_LORA = (
    Field(
        name="rank",
        label="Rank",
        help="Size of the adapter; 8 to 64 is usual.",
        kind=Kind.INTEGER,
        default=16,
        least=1,
        most=1024,
    ),
    Field(
        name="alpha",
        label="Alpha",
        help="Strength of the adapter; often twice the rank.",
        kind=Kind.NUMBER,
        default=32.0,
        least=0,
        above_least=True,
        most=4096,
    ),
    Field(
        name="dropout",
        label="Dropout",
        help="Share of the adapter's inputs that is left out at each step.",
        kind=Kind.NUMBER,
        default=0.0,
        least=0,
        most=0.9,
    ),
    Field(
        name="target_modules",
        label="Target modules",
        help="Names of the layers to adapt; empty means every linear layer but the output head.",
        kind=Kind.TEXTS,
        default=None,
        optional=True,
    ),
)

FINETUNE = (
    Field(
        name="method",
        label="Method",
        help="Train every weight, or a small adapter that is merged in the end.",
        kind=Kind.CHOICE,
        default="full",
        choices=("full", "lora"),
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
        most=_LARGEST_SEED,
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
        help="The adapter; used by the method lora.",
        kind=Kind.GROUP,
        fields=_LORA,
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
)

EVALUATE = (
    Field(
        name="metrics",
        label="Metrics",
        help="What to measure.",
        kind=Kind.CHOICES,
        default=["exact_match"],
        choices=METRICS,
    ),
    Field(
        name="split",
        label="Split",
        help="The split to answer.",
        kind=Kind.TEXT,
        default="test",
    ),
    Field(
        name="limit",
        label="Most rows",
        help="Use the first rows only; empty means all.",
        kind=Kind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=10_000_000,
    ),
    Field(
        name="max_new_tokens",
        label="Longest answer",
        help="In tokens.",
        kind=Kind.INTEGER,
        default=128,
        least=1,
        most=131_072,
    ),
    Field(
        name="batch_size",
        label="Batch size",
        help="Prompts at once on the card.",
        kind=Kind.INTEGER,
        default=32,
        least=1,
        most=4096,
    ),
    Field(
        name="seed",
        label="Seed",
        help="For what is random in the model; answers are the likeliest ones.",
        kind=Kind.INTEGER,
        default=42,
        least=0,
        most=_LARGEST_SEED,
    ),
)

SCRIPT = (
    Field(
        name="argv",
        label="Command",
        help='The program and its arguments, such as ["python", "train.py"]; python is the engine\'s.',
        kind=Kind.TEXTS,
    ),
    Field(
        name="environment",
        label="Environment",
        help="Variables for the program.",
        kind=Kind.VARIABLES,
        default={},
    ),
    Field(
        name="maximum_run_time_seconds",
        label="Maximum run time",
        help="In seconds; the program is ended after it.",
        kind=Kind.INTEGER,
        default=3600,
        least=1,
        most=30 * 24 * 3600,
    ),
)

SERVE = (
    Field(
        name="model_name",
        label="Model name",
        help="The name by which the server knows its model.",
        kind=Kind.TEXT,
        default="model",
    ),
    Field(
        name="queue_size",
        label="Queue",
        help="Requests that may wait beside the one that runs; more are told to come back.",
        kind=Kind.INTEGER,
        default=64,
        least=0,
        most=10_000,
    ),
    Field(
        name="precision",
        label="Precision",
        help="Of the weights; auto is bfloat16 on an accelerator and float32 elsewhere.",
        kind=Kind.CHOICE,
        default="auto",
        choices=PRECISIONS,
    ),
)

FIELDS: Mapping[Task, tuple[Field, ...]] = {
    Task.FINETUNE: FINETUNE,
    Task.EVALUATE: EVALUATE,
    Task.SCRIPT: SCRIPT,
    Task.SERVE: SERVE,
}

#: Causal language models that this engine trains: dense text models whose layers LoRA and TRL know.
TRAINABLE = frozenset(
    {
        "Gemma2ForCausalLM",
        "Gemma3ForCausalLM",
        "GemmaForCausalLM",
        "LlamaForCausalLM",
        "MistralForCausalLM",
        "OlmoForCausalLM",
        "Olmo2ForCausalLM",
        "Phi3ForCausalLM",
        "Qwen2ForCausalLM",
        "Qwen3ForCausalLM",
        "SmolLM3ForCausalLM",
    }
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


def recommended(task: Task, *, model: ModelFacts | None) -> Mapping[str, Any]:
    """Values that suit the model better than the defaults, to fill a form with."""
    tiny = model is not None and 0 < model.parameters < _TINY_PARAMETERS
    return dict(TINY_RECIPE) if task is Task.FINETUNE and tiny else {}
