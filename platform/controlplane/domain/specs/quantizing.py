"""What a quantization can be asked for: the scheme, what to calibrate with, and what it may cost.

The quantized model is measured beside the one that it was made from, on the same rows; beyond a tolerance it
is made and kept, but not accepted.
"""

from __future__ import annotations

from dataclasses import replace

from controlplane.domain.fields import Field, Kind, subset
from controlplane.domain.specs.evaluating import EVALUATE

#: Precision of weights and activations, and the algorithm that finds the scales.
SCHEMES = ("w8a8-smoothquant", "w4a16-awq", "fp8-dynamic")

_TOLERANCE = (
    Field(
        name="perplexity_increase",
        label="Perplexity",
        help="Largest relative rise; 0.05 is five percent. Empty asks for nothing.",
        kind=Kind.NUMBER,
        default=0.05,
        optional=True,
        least=0,
        most=10,
    ),
    Field(
        name="accuracy_drop",
        label="Accuracy",
        help="Largest fall of any other metric, in points; 0.01 is one percent. Empty asks for nothing.",
        kind=Kind.NUMBER,
        default=0.01,
        optional=True,
        least=0,
        most=1,
    ),
)

_METRICS, _SPLIT, _LIMIT, _LENGTH, _BATCH, _SEED = subset(
    EVALUATE, "metrics", "split", "limit", "max_new_tokens", "batch_size", "seed"
)
#: As an evaluation asks for it, with what is usual where two models are compared.
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
    Field(
        name="scheme",
        label="Scheme",
        help="How many bits weights and activations keep, and how that is found.",
        kind=Kind.CHOICE,
        default="w8a8-smoothquant",
        choices=SCHEMES,
    ),
    Field(
        name="calibration_split",
        label="Calibration split",
        help="Rows that show what activations look like.",
        kind=Kind.TEXT,
        default="train",
    ),
    Field(
        name="calibration_rows",
        label="Calibration rows",
        help="128 to 512 are usual.",
        kind=Kind.INTEGER,
        default=128,
        least=1,
        most=16_384,
    ),
    Field(
        name="max_length",
        label="Longest row",
        help="In tokens; the rest is cut off.",
        kind=Kind.INTEGER,
        default=512,
        least=8,
        most=131_072,
    ),
    Field(
        name="smoothing_strength",
        label="Smoothing strength",
        help="How much of an activation's range moves into the weights; used by w8a8-smoothquant.",
        kind=Kind.NUMBER,
        default=0.8,
        least=0,
        most=1,
    ),
    Field(
        name="group_size",
        label="Group size",
        help="Weights that share a scale; used by w4a16-awq. Empty is 128, or the largest that fits.",
        kind=Kind.INTEGER,
        default=None,
        optional=True,
        least=16,
        most=1024,
    ),
    Field(
        name="ignore",
        label="Layers to leave",
        help="Names of modules that keep their precision.",
        kind=Kind.TEXTS,
        default=["lm_head"],
    ),
    *_MEASURED,
    Field(
        name="tolerance",
        label="Tolerance",
        help="What the quantized model may lose and still be accepted.",
        kind=Kind.GROUP,
        fields=_TOLERANCE,
    ),
    replace(_SEED, help="For the choice of calibration rows."),
)
