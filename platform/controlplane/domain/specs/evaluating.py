"""What an evaluation can be asked for."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from controlplane.domain.datasets.schemas import Schema
from controlplane.domain.datasets.splits import Split
from controlplane.domain.fields import Field, Kind
from controlplane.domain.specs.training import LARGEST_SEED

METRICS = ("exact_match", "label_accuracy", "perplexity")
#: Whoever answers in more characters than these hardly ever says the same in the same words.
_LONGEST_EXACT = 200
#: ``value_LABEL,value_LABEL,…``, as the evaluation takes it apart.
_LABELLED = re.compile(r"(?:.*?_[0-9A-Za-z][0-9A-Za-z-]*(?:[,，]|$))+", re.DOTALL)

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


def split_to_answer(rows: Mapping[str, int]) -> Split:
    """Rows that no model has learned from, where the dataset has any."""
    return next((split for split in (Split.TEST, Split.VALIDATION) if rows.get(split)), Split.TRAIN)


def fitting_metrics(schema: str, answers: Sequence[str], *, median: float) -> tuple[str, ...]:
    """What says most about a model on such rows.

    :param answers: some of the dataset's answers.
    :param median: characters of an answer.
    """
    if schema == Schema.TEXT or median > _LONGEST_EXACT:
        return ("perplexity",)
    if answers and all(_LABELLED.fullmatch("".join(answer.split())) for answer in answers):
        return ("exact_match", "label_accuracy")
    return ("exact_match",)
