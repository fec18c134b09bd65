"""The specs of an evaluation and of a quantization, which evaluates a model before and after.

A quantized model is measured beside its base model on the same examples; beyond a tolerance it is created and
stored, but not accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from controlplane.domain.common.spec_fields import FieldKind, SpecField, fields_named
from controlplane.domain.datasets.schemas import Schema
from controlplane.domain.datasets.splits import Split
from controlplane.domain.specs.training import LARGEST_SEED

METRICS = ("exact_match", "label_accuracy", "perplexity")
#: Characters above which an answer hardly ever matches another one exactly.
_LONGEST_EXACT = 200
#: ``value_LABEL,value_LABEL,…``, as the evaluation parses it.
_LABELLED = re.compile(r"(?:.*?_[0-9A-Za-z][0-9A-Za-z-]*(?:[,，]|$))+", re.DOTALL)

EVALUATE = (
    SpecField(
        name="metrics",
        label="Metrics",
        help="What to measure.",
        kind=FieldKind.CHOICES,
        default=["exact_match"],
        choices=METRICS,
    ),
    SpecField(
        name="split",
        label="Split",
        help="The split to answer.",
        kind=FieldKind.TEXT,
        default="test",
    ),
    SpecField(
        name="limit",
        label="Most rows",
        help="Use the first rows only; empty means all.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=10_000_000,
    ),
    SpecField(
        name="max_new_tokens",
        label="Longest answer",
        help="In tokens.",
        kind=FieldKind.INTEGER,
        default=128,
        least=1,
        most=131_072,
    ),
    SpecField(
        name="batch_size",
        label="Batch size",
        help="Prompts at once on the card.",
        kind=FieldKind.INTEGER,
        default=32,
        least=1,
        most=4096,
    ),
    SpecField(
        name="seed",
        label="Seed",
        help="For what is random in the model; answers are the likeliest ones.",
        kind=FieldKind.INTEGER,
        default=42,
        least=0,
        most=LARGEST_SEED,
    ),
)


def default_evaluation_split(rows: Mapping[str, int]) -> Split:
    """The test or validation split, if the dataset has one; else the training split."""
    return next((split for split in (Split.TEST, Split.VALIDATION) if rows.get(split)), Split.TRAIN)


def recommended_metrics(schema: str, answers: Sequence[str], *, median: float) -> tuple[str, ...]:
    """Metrics that suit a dataset.

    :param answers: a sample of the dataset's answers.
    :param median: median number of characters of an answer.
    """
    if schema == Schema.TEXT or median > _LONGEST_EXACT:
        return ("perplexity",)
    if answers and all(_LABELLED.fullmatch("".join(answer.split())) for answer in answers):
        return ("exact_match", "label_accuracy")
    return ("exact_match",)


#: Precision of weights and activations, and the calibration algorithm.
SCHEMES = ("w8a8-smoothquant", "w4a16-awq", "fp8-dynamic")

_TOLERANCE = (
    SpecField(
        name="perplexity_increase",
        label="Perplexity",
        help="Largest relative rise; 0.05 is five percent. Empty asks for nothing.",
        kind=FieldKind.NUMBER,
        default=0.05,
        optional=True,
        least=0,
        most=10,
    ),
    SpecField(
        name="accuracy_drop",
        label="Accuracy",
        help="Largest fall of any other metric, in points; 0.01 is one percent. Empty asks for nothing.",
        kind=FieldKind.NUMBER,
        default=0.01,
        optional=True,
        least=0,
        most=1,
    ),
)

_METRICS, _SPLIT, _LIMIT, _LENGTH, _BATCH, _SEED = fields_named(
    EVALUATE, "metrics", "split", "limit", "max_new_tokens", "batch_size", "seed"
)
#: Fields of an evaluation, with defaults for the comparison of two models.
_MEASURED = (
    replace(
        _METRICS, help="What to measure before and after.", default=["perplexity", "exact_match"]
    ),
    replace(_SPLIT, help="The split to measure on."),
    replace(_LIMIT, help="Measure on the first rows only; empty means all.", default=256),
    _LENGTH,
    _BATCH,
)

QUANTIZE = (
    SpecField(
        name="scheme",
        label="Scheme",
        help="How many bits weights and activations keep, and how that is found.",
        kind=FieldKind.CHOICE,
        default="w8a8-smoothquant",
        choices=SCHEMES,
    ),
    SpecField(
        name="calibration_split",
        label="Calibration split",
        help="Rows that show what activations look like.",
        kind=FieldKind.TEXT,
        default="train",
    ),
    SpecField(
        name="calibration_rows",
        label="Calibration rows",
        help="128 to 512 are usual.",
        kind=FieldKind.INTEGER,
        default=128,
        least=1,
        most=16_384,
    ),
    SpecField(
        name="max_length",
        label="Longest row",
        help="In tokens; the rest is cut off.",
        kind=FieldKind.INTEGER,
        default=512,
        least=8,
        most=131_072,
    ),
    SpecField(
        name="smoothing_strength",
        label="Smoothing strength",
        help="How much of an activation's range moves into the weights; used by w8a8-smoothquant.",
        kind=FieldKind.NUMBER,
        default=0.8,
        least=0,
        most=1,
    ),
    SpecField(
        name="group_size",
        label="Group size",
        help="Weights that share a scale; used by w4a16-awq. Empty is 128, or the largest that fits.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=16,
        most=1024,
    ),
    SpecField(
        name="ignore",
        label="Layers to leave",
        help="Names of modules that keep their precision.",
        kind=FieldKind.TEXTS,
        default=["lm_head"],
    ),
    *_MEASURED,
    SpecField(
        name="tolerance",
        label="Tolerance",
        help="What the quantized model may lose and still be accepted.",
        kind=FieldKind.GROUP,
        fields=_TOLERANCE,
    ),
    replace(_SEED, help="For the choice of calibration rows."),
)
