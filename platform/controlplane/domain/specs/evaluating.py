"""What an evaluation can be asked for."""

from __future__ import annotations

from controlplane.domain.fields import Field, Kind
from controlplane.domain.specs.training import LARGEST_SEED

METRICS = ("exact_match", "label_accuracy", "perplexity")

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
        most=LARGEST_SEED,
    ),
)
