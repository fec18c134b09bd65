"""The specs of an evaluation and of a quantization, which evaluates a model before and after.

A quantized model is measured beside its base model on the same examples; beyond a tolerance it is created and
stored, but not accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from controlplane.domain.common.spec_fields import (
    choice_field,
    choices_field,
    fields_named,
    group_field,
    integer_field,
    number_field,
    text_field,
    texts_field,
)
from controlplane.domain.datasets.schemas import Schema
from controlplane.domain.datasets.splits import Split
from controlplane.domain.specs.training import LARGEST_SEED

METRICS = ("exact_match", "label_accuracy", "perplexity")
#: Characters above which an answer hardly ever matches another one exactly.
_LONGEST_EXACT = 200
#: ``value_LABEL,value_LABEL,…``, as the evaluation parses it.
_LABELLED = re.compile(r"(?:.*?_[0-9A-Za-z][0-9A-Za-z-]*(?:[,，]|$))+", re.DOTALL)

EVALUATE = (
    choices_field(
        "metrics", "Metrics", "Metrics to compute.", default=["exact_match"], choices=METRICS
    ),
    text_field("split", "Dataset split", "Dataset split to evaluate.", default="test"),
    integer_field(
        "limit",
        "Max examples",
        "Maximum number of examples, from the start of the split. Empty: all.",
        default=None,
        within=(1, 10_000_000),
    ),
    integer_field(
        "max_new_tokens",
        "Max answer length",
        "Maximum number of tokens per answer.",
        default=128,
        within=(1, 131_072),
    ),
    integer_field(
        "batch_size", "Batch size", "Prompts per batch on the card.", default=32, within=(1, 4096)
    ),
    integer_field(
        "seed",
        "Seed",
        "Random seed; answers are decoded greedily.",
        default=42,
        within=(0, LARGEST_SEED),
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
    number_field(
        "perplexity_increase",
        "Perplexity",
        "Maximum relative increase; 0.05 is 5 percent. Empty: no limit.",
        default=0.05,
        optional=True,
        within=(0, 10),
    ),
    number_field(
        "accuracy_drop",
        "Accuracy",
        "Maximum absolute decrease of any other metric; 0.01 is one percentage point. Empty: no limit.",
        default=0.01,
        optional=True,
        within=(0, 1),
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
    _SPLIT,
    replace(_LIMIT, default=256),
    _LENGTH,
    _BATCH,
)

QUANTIZE = (
    choice_field(
        "scheme",
        "Quantization scheme",
        "Bit width of weights and activations, and the quantization method.",
        default="w8a8-smoothquant",
        choices=SCHEMES,
    ),
    text_field(
        "calibration_split",
        "Calibration split",
        "Dataset split that sets the activation ranges.",
        default="train",
    ),
    integer_field(
        "calibration_rows",
        "Calibration examples",
        "Number of calibration examples; 128 to 512 is typical.",
        default=128,
        within=(1, 16_384),
    ),
    integer_field(
        "max_length",
        "Max example length",
        "Tokens per example; longer examples are truncated.",
        default=512,
        within=(8, 131_072),
    ),
    number_field(
        "smoothing_strength",
        "Smoothing strength",
        "Share of the activation range that is moved into the weights; used by w8a8-smoothquant.",
        default=0.8,
        within=(0, 1),
    ),
    integer_field(
        "group_size",
        "Group size",
        "Weights per scale; used by w4a16-awq. Empty: 128, or the largest that fits.",
        default=None,
        within=(16, 1024),
    ),
    texts_field(
        "ignore", "Excluded layers", "Names of modules that are not quantized.", default=["lm_head"]
    ),
    *_MEASURED,
    group_field(
        "tolerance",
        "Tolerance",
        "Maximum loss of quality for the quantized model to be accepted.",
        fields=_TOLERANCE,
    ),
    replace(_SEED, help="Random seed for the selection of calibration examples."),
)
