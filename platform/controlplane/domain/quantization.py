"""Quantized models: schemes, what fits a model, what an engine loads, and whether the loss is tolerable.

A *scheme* says how many bits weights and activations keep; a *format* says how they are written. An engine that
does not read the format cannot load the model, whatever the scheme. A quantized version is measured beside
the one that it was made from, on the same rows; it is accepted if no figure is worse than its tolerance::

    perplexity   (after - before) / before   ≤ perplexity_increase
    any other    before - after              ≤ accuracy_drop
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.models import Acceptance

#: What weights are written as by llm-compressor, and read by vLLM, SGLang and transformers.
COMPRESSED_TENSORS = "compressed-tensors"
#: Sizes of groups that serving engines have kernels for, the usual one first.
GROUP_SIZES = (128, 64, 32, 16)
#: Rounding of a difference between two floats must not decide a verdict.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class Scheme:
    """One way to quantize, as a spec asks for it."""

    name: str
    #: What a version that was made by it is called, for example ``w8a8``.
    short: str
    weight_bits: int
    activation_bits: int
    #: Rows of a dataset are run through the model to find the scales.
    calibrated: bool


SCHEMES: Mapping[str, Scheme] = {
    scheme.name: scheme
    for scheme in (
        Scheme(
            name="w8a8-smoothquant",
            short="w8a8",
            weight_bits=8,
            activation_bits=8,
            calibrated=True,
        ),
        Scheme(name="w4a16-awq", short="w4a16", weight_bits=4, activation_bits=16, calibrated=True),
        Scheme(name="fp8-dynamic", short="fp8", weight_bits=8, activation_bits=8, calibrated=False),
    )
}


def is_calibrated(scheme: Any) -> bool:
    """Whether the scheme runs rows through the model; False for what is none."""
    known = SCHEMES.get(scheme) if isinstance(scheme, str) else None
    return known is not None and known.calibrated


def check_plain(*, name: str, scheme: str, why: str) -> tuple[FieldFinding, ...]:
    """A finding if the model called ``name`` is quantized; ``why`` says what wants plain weights."""
    if not scheme:
        return ()
    message = (
        f"{name} is quantized to {scheme} already; {why}: choose the version that it was made from"
    )
    return (FieldFinding(field="model", message=message),)


def check_loadable(
    *, name: str, scheme: str, written: str, engine: str, formats: Collection[str]
) -> tuple[FieldFinding, ...]:
    """A finding if weights that are written so cannot be loaded by an engine that reads those formats."""
    if not written or written in formats:
        return ()
    reads = ", ".join(sorted(formats)) or "plain weights only"
    message = (
        f"{name} is quantized to {scheme or 'a scheme of its own'} and written as {written}; "
        f"{engine} reads {reads}: choose another engine, or a version that it reads"
    )
    return (FieldFinding(field="model", message=message),)


def widths_of(config: Mapping[str, Any]) -> tuple[int, ...]:
    """Input widths of the linear layers of a decoder, as far as its ``config.json`` tells."""
    nested = config.get("text_config")
    text = {**config, **nested} if isinstance(nested, Mapping) else config

    def count(name: str) -> int | None:
        value = text.get(name)
        whole = isinstance(value, int) and not isinstance(value, bool) and value > 0
        return value if whole else None

    hidden, heads = count("hidden_size"), count("num_attention_heads")
    head = count("head_dim") or (hidden // heads if hidden and heads else None)
    attention = heads * head if heads and head else None
    known = (hidden, attention, count("intermediate_size"), count("moe_intermediate_size"))
    return tuple(sorted({width for width in known if width is not None}))


def check_group_size(
    *, scheme: str, group_size: int | None, config: Mapping[str, Any]
) -> tuple[FieldFinding, ...]:
    """A finding if the layers of that ``config.json`` cannot be divided into groups of that size.

    Without a size the largest usual one that fits is meant.
    """
    widths = widths_of(config)
    if scheme != "w4a16-awq" or not widths:
        return ()
    fitting = [size for size in GROUP_SIZES if all(width % size == 0 for width in widths)]
    in_words = ", ".join(map(str, widths))
    right = ", ".join(map(str, fitting))
    if group_size is None:
        if fitting:
            return ()
        message = (
            f"no group size of {', '.join(map(str, GROUP_SIZES))} divides the widths {in_words} of the "
            "model's layers; use a scheme without groups"
        )
        return (FieldFinding(field="group_size", message=message),)
    odd = [width for width in widths if width % group_size]
    if not odd:
        return ()
    message = (
        f"group_size must divide the widths of the model's layers ({in_words}), got {group_size}; "
        f"{right or 'none of the usual sizes'} would"
    )
    return (FieldFinding(field="group_size", message=message),)


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """One figure before and after, against its tolerance."""

    metric: str
    before: float
    after: float | None
    #: How much worse it became: relative for perplexity, in points for any other; negative is better.
    loss: float | None
    #: None asks for nothing.
    tolerance: float | None

    @property
    def relative(self) -> bool:
        return self.metric == "perplexity"

    @property
    def tolerable(self) -> bool:
        if self.tolerance is None:
            return True
        return self.loss is not None and self.loss <= self.tolerance + _SLACK


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a quantized version lost no more than it may."""

    judged: tuple[Judged, ...]

    @property
    def acceptance(self) -> Acceptance:
        tolerable = bool(self.judged) and all(each.tolerable for each in self.judged)
        return Acceptance.ACCEPTED if tolerable else Acceptance.REJECTED

    @property
    def reason(self) -> str:
        """Which figure against which tolerance, in words."""
        if not self.judged:
            return "nothing was measured, so nothing says what it lost"
        worse = [each for each in self.judged if not each.tolerable]
        return "; ".join(_in_words(each) for each in worse or self.judged)


def verdict(
    metrics: Mapping[str, Any], *, wanted: Sequence[str], tolerance: Mapping[str, float | None]
) -> Verdict:
    """Judge ``<name>_before`` and ``<name>_after`` of each wanted metric that was measured before.

    A figure that is missing or not finite afterwards is lost altogether.
    """
    return Verdict(judged=tuple(_judged(metrics, wanted, tolerance)))


def _judged(
    metrics: Mapping[str, Any], wanted: Sequence[str], tolerance: Mapping[str, float | None]
) -> Iterator[Judged]:
    for name in wanted:
        before, after = _finite(metrics, f"{name}_before"), _finite(metrics, f"{name}_after")
        if before is None:
            continue
        relative = name == "perplexity"
        yield Judged(
            metric=name,
            before=before,
            after=after,
            loss=_loss(before, after, relative=relative),
            tolerance=tolerance.get("perplexity_increase" if relative else "accuracy_drop"),
        )


def _loss(before: float, after: float | None, *, relative: bool) -> float | None:
    if after is None:
        return None
    if not relative:
        return before - after
    return (after - before) / before if before > 0 else None


def _finite(metrics: Mapping[str, Any], name: str) -> float | None:
    value = metrics.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _in_words(each: Judged) -> str:
    name, before = each.metric.replace("_", " "), f"{each.before:.4g}"
    if each.after is None or each.loss is None:
        return f"{name} was {before} and cannot be told any more"
    after = f"{each.after:.4g}"
    if each.relative:
        rise = f"{each.loss:+.2%}"
        if each.tolerance is None:
            return f"{name} went from {before} to {after}, {rise}"
        return f"{name} went from {before} to {after}, {rise}; +{each.tolerance:.2%} is tolerated"
    points = f"{-each.loss * 100:+.2f}"
    if each.tolerance is None:
        return f"{name} went from {before} to {after}, {points} points"
    allowed = f"{each.tolerance * 100:.2f}"
    return (
        f"{name} went from {before} to {after}, {points} points; a fall of {allowed} is tolerated"
    )
