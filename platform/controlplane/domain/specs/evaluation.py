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
        help="Metrics to compute.",
        kind=FieldKind.CHOICES,
        default=["exact_match"],
        choices=METRICS,
    ),
    SpecField(
        name="split",
        label="Dataset split",
        help="Dataset split to evaluate.",
        kind=FieldKind.TEXT,
        default="test",
    ),
    SpecField(
        name="limit",
        label="Max examples",
        help="Maximum number of examples, from the start of the split. Empty: all.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=1,
        most=10_000_000,
    ),
    SpecField(
        name="max_new_tokens",
        label="Max answer length",
        help="Maximum number of tokens per answer.",
        kind=FieldKind.INTEGER,
        default=128,
        least=1,
        most=131_072,
    ),
    SpecField(
        name="batch_size",
        label="Batch size",
        help="Prompts per batch on the card.",
        kind=FieldKind.INTEGER,
        default=32,
        least=1,
        most=4096,
    ),
    SpecField(
        name="seed",
        label="Seed",
        help="Random seed; answers are decoded greedily.",
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
        help="Maximum relative increase; 0.05 is 5 percent. Empty: no limit.",
        kind=FieldKind.NUMBER,
        default=0.05,
        optional=True,
        least=0,
        most=10,
    ),
    SpecField(
        name="accuracy_drop",
        label="Accuracy",
        help="Maximum absolute decrease of any other metric; 0.01 is one percentage point. Empty: no limit.",
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
        _METRICS,
        help="Metrics to compute before and after quantization.",
        default=["perplexity", "exact_match"],
    ),
    replace(_SPLIT, help="Dataset split to evaluate."),
    replace(
        _LIMIT,
        help="Maximum number of examples, from the start of the split. Empty: all.",
        default=256,
    ),
    _LENGTH,
    _BATCH,
)

QUANTIZE = (
    SpecField(
        name="scheme",
        label="Quantization scheme",
        help="Bit width of weights and activations, and the quantization method.",
        kind=FieldKind.CHOICE,
        default="w8a8-smoothquant",
        choices=SCHEMES,
    ),
    SpecField(
        name="calibration_split",
        label="Calibration split",
        help="Dataset split that sets the activation ranges.",
        kind=FieldKind.TEXT,
        default="train",
    ),
    SpecField(
        name="calibration_rows",
        label="Calibration examples",
        help="Number of calibration examples; 128 to 512 is typical.",
        kind=FieldKind.INTEGER,
        default=128,
        least=1,
        most=16_384,
    ),
    SpecField(
        name="max_length",
        label="Max example length",
        help="Tokens per example; longer examples are truncated.",
        kind=FieldKind.INTEGER,
        default=512,
        least=8,
        most=131_072,
    ),
    SpecField(
        name="smoothing_strength",
        label="Smoothing strength",
        help="Share of the activation range that is moved into the weights; used by w8a8-smoothquant.",
        kind=FieldKind.NUMBER,
        default=0.8,
        least=0,
        most=1,
    ),
    SpecField(
        name="group_size",
        label="Group size",
        help="Weights per scale; used by w4a16-awq. Empty: 128, or the largest that fits.",
        kind=FieldKind.INTEGER,
        default=None,
        optional=True,
        least=16,
        most=1024,
    ),
    SpecField(
        name="ignore",
        label="Excluded layers",
        help="Names of modules that are not quantized.",
        kind=FieldKind.TEXTS,
        default=["lm_head"],
    ),
    *_MEASURED,
    SpecField(
        name="tolerance",
        label="Tolerance",
        help="Maximum loss of quality for the quantized model to be accepted.",
        kind=FieldKind.GROUP,
        fields=_TOLERANCE,
    ),
    replace(_SEED, help="Random seed for the selection of calibration examples."),
)
