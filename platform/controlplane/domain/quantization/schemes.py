"""Quantization of models: schemes, formats and the accepted loss of quality.

A *scheme* says how many bits weights and activations keep; a *format* says how they are written. An engine that
does not read the format cannot load the model, whatever the scheme.

A quantized version is evaluated on the same rows as the version that it was made from. It is accepted if no
metric is worse than its tolerance::

    perplexity   (after - before) / before   ≤ perplexity_increase
    any other    before - after              ≤ accuracy_drop
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.domain.common.reasons import NONE, UNKNOWN, Reason
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.registry.versions import GateDecision

#: The format that llm-compressor writes and that vLLM, SGLang and transformers read.
COMPRESSED_TENSORS = "compressed-tensors"
#: Group sizes that serving engines have kernels for, the default first.
GROUP_SIZES = (128, 64, 32, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantizationScheme:
    """A quantization scheme as a spec requests it."""

    name: str
    #: Short name for quantized versions, for example ``w8a8``.
    short: str
    weight_bits: int
    activation_bits: int
    #: Whether calibration rows are run through the model to find the scales.
    calibrated: bool


SCHEMES: Mapping[str, QuantizationScheme] = {
    scheme.name: scheme
    for scheme in (
        QuantizationScheme(
            name="w8a8-smoothquant",
            short="w8a8",
            weight_bits=8,
            activation_bits=8,
            calibrated=True,
        ),
        QuantizationScheme(
            name="w4a16-awq", short="w4a16", weight_bits=4, activation_bits=16, calibrated=True
        ),
        QuantizationScheme(
            name="fp8-dynamic", short="fp8", weight_bits=8, activation_bits=8, calibrated=False
        ),
    )
}


def is_calibrated(scheme: Any) -> bool:
    """Whether the scheme needs calibration rows; False for an unknown scheme."""
    known = SCHEMES.get(scheme) if isinstance(scheme, str) else None
    return known is not None and known.calibrated


def check_not_quantized(*, name: str, scheme: str, reason: str) -> tuple[FieldFinding, ...]:
    """A finding if the model called ``name`` is quantized.

    :param reason: what requires weights that are not.
    """
    if not scheme:
        return ()
    message = Reason(
        "quantization.model.already_quantized",
        "{model} is already quantized to {scheme}; {reason}: choose the version "
        "before quantization",
        model=name,
        scheme=scheme,
        reason=reason,
    )
    return (FieldFinding(field="model", message=message),)


def check_weight_format_loadable(
    *, name: str, scheme: str, written: str, engine: str, formats: Collection[str]
) -> tuple[FieldFinding, ...]:
    """A finding if the engine does not read the weight format ``written``."""
    if not written or written in formats:
        return ()
    reads = ", ".join(sorted(formats)) or NONE
    message = Reason(
        "quantization.format.not_supported",
        "{model} is quantized to {scheme} in the format {format}; {engine} "
        "supports {formats}: choose another engine, or a version in a supported "
        "format",
        model=name,
        scheme=scheme or UNKNOWN,
        format=written,
        engine=engine,
        formats=reads,
    )
    return (FieldFinding(field="model", message=message),)


def input_widths(config: Mapping[str, Any]) -> tuple[int, ...]:
    """Input widths of the linear layers of a decoder, as far as its ``config.json`` states them."""
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
    """A finding if the layers of that ``config.json`` cannot be divided into groups of that size."""
    widths = input_widths(config)
    if scheme != "w4a16-awq" or not widths:
        return ()
    fitting = [size for size in GROUP_SIZES if all(width % size == 0 for width in widths)]
    formatted = ", ".join(map(str, widths))
    right = ", ".join(map(str, fitting))
    if group_size is None:
        if fitting:
            return ()
        message = Reason(
            "quantization.group_size.no_divisor",
            "none of the group sizes {sizes} divides the layer widths {widths} of "
            "the model; use a scheme without groups",
            sizes=", ".join(map(str, GROUP_SIZES)),
            widths=formatted,
        )
        return (FieldFinding(field="group_size", message=message),)
    odd = [width for width in widths if width % group_size]
    if not odd:
        return ()
    message = Reason(
        "quantization.group_size.not_a_divisor",
        "group_size must divide the layer widths of the model ({widths}), got "
        "{group_size}; valid values: {valid}",
        widths=formatted,
        group_size=group_size,
        valid=right or "none of the usual sizes",
    )
    return (FieldFinding(field="group_size", message=message),)


#: Floating-point rounding must not decide a verdict.
_SLACK = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricComparison:
    """One metric before and after quantization, with its tolerance."""

    metric: str
    before: float
    after: float | None
    #: How much worse it became: relative for perplexity, in points for any other; negative is better.
    loss: float | None
    #: None: no limit.
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
class QuantizationVerdict:
    """Whether the quality loss of a quantized version is within all tolerances."""

    comparisons: tuple[MetricComparison, ...]

    @property
    def acceptance(self) -> GateDecision:
        tolerable = bool(self.comparisons) and all(each.tolerable for each in self.comparisons)
        return GateDecision.ACCEPTED if tolerable else GateDecision.REJECTED

    @property
    def reason(self) -> str:
        """Message that names the metric, its values and the tolerance."""
        if not self.comparisons:
            return Reason(
                "quantization.quality.not_measured",
                "no metric was measured, so the quality loss is unknown",
            )
        worse = [each for each in self.comparisons if not each.tolerable]
        return "; ".join(_format_comparison(each) for each in worse or self.comparisons)


def compare_metrics(
    metrics: Mapping[str, Any],
    *,
    metric_names: Sequence[str],
    tolerance: Mapping[str, float | None],
) -> QuantizationVerdict:
    """Compare ``<name>_before`` with ``<name>_after`` for each named metric that was measured before."""
    return QuantizationVerdict(
        comparisons=tuple(_metric_comparisons(metrics, metric_names, tolerance))
    )


def _metric_comparisons(
    metrics: Mapping[str, Any], metric_names: Sequence[str], tolerance: Mapping[str, float | None]
) -> Iterator[MetricComparison]:
    for name in metric_names:
        before, after = (
            _finite_metric(metrics, f"{name}_before"),
            _finite_metric(metrics, f"{name}_after"),
        )
        if before is None:
            continue
        relative = name == "perplexity"
        yield MetricComparison(
            metric=name,
            before=before,
            after=after,
            loss=_metric_loss(before, after, relative=relative),
            tolerance=tolerance.get("perplexity_increase" if relative else "accuracy_drop"),
        )


def _metric_loss(before: float, after: float | None, *, relative: bool) -> float | None:
    if after is None:
        return None
    if not relative:
        return before - after
    return (after - before) / before if before > 0 else None


def _finite_metric(metrics: Mapping[str, Any], name: str) -> float | None:
    value = metrics.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def _format_comparison(each: MetricComparison) -> str:
    name, before = each.metric.replace("_", " "), f"{each.before:.4g}"
    if each.after is None or each.loss is None:
        return Reason(
            "quantization.quality.not_comparable",
            "{metric} was {before} and is not available after quantization",
            metric=name,
            before=before,
        )
    after = f"{each.after:.4g}"
    if each.relative:
        rise = f"{each.loss:+.2%}"
        if each.tolerance is None:
            return Reason(
                "quantization.quality.relative_change",
                "{metric} changed from {before} to {after}, {change}",
                metric=name,
                before=before,
                after=after,
                change=rise,
            )
        return Reason(
            "quantization.quality.relative_change_with_tolerance",
            "{metric} changed from {before} to {after}, {change}; the tolerance is +{tolerance}",
            metric=name,
            before=before,
            after=after,
            change=rise,
            tolerance=f"{each.tolerance:.2%}",
        )
    points = f"{-each.loss * 100:+.2f}"
    if each.tolerance is None:
        return Reason(
            "quantization.quality.point_change",
            "{metric} changed from {before} to {after}, {points} points",
            metric=name,
            before=before,
            after=after,
            points=points,
        )
    allowed = f"{each.tolerance * 100:.2f}"
    return Reason(
        "quantization.quality.point_change_with_tolerance",
        "{metric} changed from {before} to {after}, {points} points; the "
        "tolerance is a decrease of {tolerance} points",
        metric=name,
        before=before,
        after=after,
        points=points,
        tolerance=allowed,
    )
