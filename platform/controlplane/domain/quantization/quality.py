"""Whether the quality loss of a quantized version is within its tolerances.

A quantized version is evaluated on the same rows as the version that it was made from. It is accepted if no
metric is worse than its tolerance::

    perplexity   (after - before) / before   ≤ perplexity_increase
    any other    before - after              ≤ accuracy_drop
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from controlplane.domain.common.reasons import Reason
from controlplane.domain.registry.versions import GateDecision

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
