"""Quantization: what fits, what loads, and what loss is tolerable."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.quantization import schemes as quantization
from controlplane.domain.quantization.schemes import SCHEMES, compare_metrics
from controlplane.domain.registry.versions import GateDecision
from controlplane.domain.specs import evaluation

TOLERANCE = {"perplexity_increase": 0.05, "accuracy_drop": 0.01}
WANTED = ["perplexity", "exact_match"]


def _metrics(**metrics: Any) -> dict[str, Any]:
    unchanged = {
        "perplexity_before": 10.0,
        "perplexity_after": 10.0,
        "exact_match_before": 0.9,
        "exact_match_after": 0.9,
    }
    return unchanged | metrics


def _verdict(**metrics: Any) -> quantization.QuantizationVerdict:
    return compare_metrics(_metrics(**metrics), metric_names=WANTED, tolerance=TOLERANCE)


def test_every_scheme_of_a_spec_is_known_here() -> None:
    assert tuple(SCHEMES) == evaluation.SCHEMES


@pytest.mark.parametrize(
    "metrics",
    [
        {},
        {"perplexity_after": 10.5},
        {"perplexity_after": 2.0},
        {"exact_match_after": 0.89},
        {"exact_match_after": 1.0},
    ],
)
def test_a_loss_up_to_its_tolerance_is_accepted(metrics: dict[str, Any]) -> None:
    assert _verdict(**metrics).acceptance is GateDecision.ACCEPTED


@pytest.mark.parametrize(
    ("metrics", "reason"),
    [
        (
            {"perplexity_after": 10.51},
            "perplexity changed from 10 to 10.51, +5.10%; the tolerance is +5.00%",
        ),
        (
            {"exact_match_after": 0.8},
            "exact match changed from 0.9 to 0.8, -10.00 points; the tolerance is a decrease of 1.00 points",
        ),
        ({"perplexity_after": None}, "perplexity was 10 and is not available after quantization"),
        (
            {"perplexity_after": float("inf")},
            "perplexity was 10 and is not available after quantization",
        ),
        (
            {"perplexity_after": float("nan")},
            "perplexity was 10 and is not available after quantization",
        ),
        (
            {"exact_match_after": "0.9"},
            "exact match was 0.9 and is not available after quantization",
        ),
    ],
)
def test_a_larger_loss_is_rejected_with_the_metric_and_its_tolerance(
    metrics: dict[str, Any], reason: str
) -> None:
    found = _verdict(**metrics)
    assert (found.acceptance, found.reason) == (GateDecision.REJECTED, reason)


def test_both_metrics_beyond_tolerance_are_named() -> None:
    reason = _verdict(perplexity_after=20.0, exact_match_after=0.0).reason
    assert reason.startswith("perplexity changed from 10 to 20, +100.00%")
    assert "; exact match changed from 0.9 to 0, -90.00 points" in reason


def test_a_missing_metric_is_not_accepted() -> None:
    found = compare_metrics({"loss": 0.5}, metric_names=WANTED, tolerance=TOLERANCE)
    assert found.acceptance is GateDecision.REJECTED
    assert found.reason == "no metric was measured, so the quality loss is unknown"


def test_without_a_tolerance_any_loss_is_tolerable() -> None:
    nothing = {"perplexity_increase": None, "accuracy_drop": None}
    metrics = _metrics(perplexity_after=1000.0, exact_match_after=0.0)
    found = compare_metrics(metrics, metric_names=WANTED, tolerance=nothing)
    assert found.acceptance is GateDecision.ACCEPTED


_VALUE = st.floats(min_value=1.0, max_value=1e6)


@given(before=_VALUE, after=_VALUE, worse=st.floats(min_value=1.0, max_value=10.0))
def test_acceptance_is_monotonic_in_the_metric(before: float, after: float, worse: float) -> None:
    better = _verdict(perplexity_before=before, perplexity_after=after)
    other = _verdict(perplexity_before=before, perplexity_after=after * worse)
    if better.acceptance is GateDecision.REJECTED:
        assert other.acceptance is GateDecision.REJECTED


@given(limit=st.floats(min_value=0, max_value=10), more=st.floats(min_value=0, max_value=10))
def test_a_looser_tolerance_never_rejects_what_a_stricter_one_accepts(
    limit: float, more: float
) -> None:
    metrics = _metrics(perplexity_after=17.0)

    def comparisons(allowed: float) -> GateDecision:
        tolerance = {"perplexity_increase": allowed, "accuracy_drop": 0.0}
        return compare_metrics(metrics, metric_names=WANTED, tolerance=tolerance).acceptance

    if comparisons(limit) is GateDecision.ACCEPTED:
        assert comparisons(limit + more) is GateDecision.ACCEPTED


QWEN = {"hidden_size": 896, "num_attention_heads": 14, "intermediate_size": 4864}


def test_the_widths_are_those_of_the_layers_inputs() -> None:
    assert quantization.input_widths(QWEN) == (896, 4864)
    nested = {"text_config": {**QWEN, "head_dim": 128}}
    assert quantization.input_widths(nested) == (896, 14 * 128, 4864)
    assert quantization.input_widths({"hidden_size": "x", "intermediate_size": True}) == ()


@pytest.mark.parametrize("size", [None, 16, 32, 64, 128])
def test_a_group_size_that_divides_every_width_is_right(size: int | None) -> None:
    config = {"hidden_size": 896, "intermediate_size": 4864, "num_attention_heads": 14}
    found = quantization.check_group_size(scheme="w4a16-awq", group_size=size, config=config)
    assert found == ()


def test_a_group_size_that_does_not_divide_is_refused_with_those_that_would() -> None:
    config = QWEN | {"intermediate_size": 4896}
    (finding,) = quantization.check_group_size(scheme="w4a16-awq", group_size=64, config=config)
    assert finding.field == "group_size"
    assert finding.message == (
        "group_size must divide the layer widths of the model (896, 4896), got 64; valid values: 32, 16"
    )
    assert not quantization.check_group_size(
        scheme="w8a8-smoothquant", group_size=64, config=config
    )


def test_a_model_without_a_valid_group_size_needs_another_scheme() -> None:
    (finding,) = quantization.check_group_size(
        scheme="w4a16-awq", group_size=None, config={"hidden_size": 100}
    )
    assert "none of the group sizes 128, 64, 32, 16 divides the layer widths 100" in finding.message


def test_an_engine_refuses_weights_that_it_cannot_read_and_says_what_it_reads() -> None:
    (finding,) = quantization.check_weight_format_loadable(
        name="small v2",
        scheme="w8a8",
        written="modelslim",
        engine="transformers",
        formats={"compressed-tensors"},
    )
    assert finding.field == "model"
    assert finding.message == (
        "small v2 is quantized to w8a8 in the format modelslim; transformers "
        "supports compressed-tensors: choose another engine, or a version in a "
        "supported format"
    )
    assert not quantization.check_weight_format_loadable(
        name="small v2", scheme="", written="", engine="transformers", formats=()
    )
