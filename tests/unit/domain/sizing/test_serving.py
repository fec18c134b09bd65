"""Memory of serving, against cases worked out by hand and figures that others published."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from controlplane.domain.architectures import parse_architecture
from controlplane.domain.common.resources import GIB, Bytes
from controlplane.domain.jobs.parallelism import ParallelPlan
from controlplane.domain.sizing import (
    WEIGHT_SCHEMES,
    ServingWorkload,
    UnknownScheme,
    bytes_per_token,
    kv_cache_bytes,
    largest_concurrency,
    largest_context,
    plan_replicas,
    serving_memory,
    serving_plan,
    weight_bytes,
    weight_scheme,
)
from tests.benchmarks.sizing.comparing import estimated_gib
from tests.benchmarks.sizing.published import PUBLISHED, Published
from tests.cases import for_each_case
from tests.unit.domain.sizing.model_configs import (
    CARD,
    DEEPSEEK_V3,
    EVERY,
    FALCON_7B,
    GEMMA3_27B,
    LLAMA3_8B,
    QWEN2_7B,
    QWEN3_NEXT,
    QWEN15_7B,
    TWO_RINGS,
)

HALF = weight_scheme("bfloat16")
WANTED = ServingWorkload(scheme=HALF, context=4096, concurrency=4)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # 2 · 32 layers · 32 heads · 128 · 2 bytes.
        (QWEN15_7B, 524_288),
        # 2 · 28 layers · 4 heads · 128 · 2 bytes.
        (QWEN2_7B, 57_344),
        # 61 layers · (512 + 64) · 2 bytes.
        (DEEPSEEK_V3, 70_272),
        # 2 · 32 layers · 1 head · 64 · 2 bytes.
        (FALCON_7B, 8_192),
        # 2 · 12 of 48 layers · 2 heads · 256 · 2 bytes.
        (QWEN3_NEXT, 24_576),
    ],
)
def test_bytes_of_the_kv_cache_for_one_token_at_sixteen_bits(
    config: Mapping[str, Any], expected: int
) -> None:
    assert bytes_per_token(parse_architecture(config)) == expected


def test_eight_bits_halve_the_cache() -> None:
    assert bytes_per_token(parse_architecture(QWEN2_7B), value_bytes=1) == 28_672


def test_windowed_layers_cache_at_most_the_window() -> None:
    gemma = parse_architecture(GEMMA3_27B)
    layer = 2 * 16 * 128 * 2
    held = kv_cache_bytes(gemma, context=32_768, sequences=3)
    assert held == 3 * layer * (10 * 32_768 + 52 * 1024)
    assert kv_cache_bytes(gemma, context=512, sequences=1) == layer * 62 * 512


def test_recurrent_state_does_not_grow_with_the_sequence() -> None:
    hybrid = parse_architecture(QWEN3_NEXT)
    # 36 layers: 32 heads · 128 · 128 in float32, and a convolution over 4 tokens of 8,192 values in 16 bits.
    state = 36 * (32 * 128 * 128 * 4 + 8192 * 4 * 2)
    for context in (1, 1000, 100_000):
        assert kv_cache_bytes(hybrid, context=context, sequences=1) == state + 24_576 * context


def test_cards_beyond_the_heads_of_keys_and_values_hold_copies() -> None:
    qwen = parse_architecture(QWEN2_7B)
    assert bytes_per_token(qwen, tensor=2) == 57_344 / 2
    assert bytes_per_token(qwen, tensor=4) == bytes_per_token(qwen, tensor=14) == 57_344 / 4


def test_what_mla_compresses_is_on_every_card_unless_the_engine_unpacks_it() -> None:
    deepseek = parse_architecture(DEEPSEEK_V3)
    assert bytes_per_token(deepseek, tensor=8) == 70_272
    # 61 layers · 128 heads · (192 + 128) · 2 bytes.
    assert bytes_per_token(deepseek, latent=False) == 61 * 128 * 320 * 2


@pytest.mark.parametrize(
    ("scheme", "bits"),
    [
        ("w4a16-awq", 4 + (16 + 4) / 128),
        ("nf4", 4.5),
        ("nf4-double", 4 + 8 / 64 + 32 / (64 * 256)),
        ("fp8-block", 8 + 32 / 128**2),
        ("mxfp4", 4.25),
        ("bfloat16", 16),
    ],
)
def test_bits_of_a_weight_with_its_scales(scheme: str, bits: float) -> None:
    assert weight_scheme(scheme).bits_per_weight(row=4096) == pytest.approx(bits)


def test_embeddings_stay_in_sixteen_bits() -> None:
    llama = parse_architecture(LLAMA3_8B)
    embedding = 2 * 128_256 * 4096
    body = llama.parameters - embedding
    assert weight_bytes(llama, HALF) == 2 * llama.parameters
    assert weight_bytes(llama, weight_scheme("w4a16-awq")) == pytest.approx(
        embedding * 2 + body * 4.15625 / 8, abs=1
    )


def test_an_unknown_scheme_is_refused_with_those_that_are_known() -> None:
    with pytest.raises(UnknownScheme, match=r"scheme 'w3a3' is not known; known are .*w8a8"):
        weight_scheme("w3a3")


@pytest.mark.parametrize(
    "published",
    [each for each in PUBLISHED if each.what == "weights"],
    ids=lambda each: each.source,
)
def test_weights_are_within_one_percent_of_what_was_published(published: Published) -> None:
    assert estimated_gib(published) == pytest.approx(published.gib, rel=0.01)


@for_each_case("published", [each for each in PUBLISHED if each.what == "serve"])
def test_serving_is_within_five_percent_of_what_was_published(published: Published) -> None:
    assert estimated_gib(published) == pytest.approx(published.gib, rel=0.05)


def test_the_largest_that_fits_fits_and_one_more_does_not() -> None:
    qwen = parse_architecture(QWEN15_7B)
    wanted = replace(WANTED, concurrency=16)
    limit = CARD.memory * wanted.memory_fraction
    context = largest_context(qwen, wanted, chip=CARD)
    concurrency = largest_concurrency(qwen, wanted, chip=CARD)
    for fits, beyond in (
        (replace(wanted, context=context), replace(wanted, context=context + 16)),
        (replace(wanted, concurrency=concurrency), replace(wanted, concurrency=concurrency + 1)),
    ):
        assert serving_memory(qwen, fits).total <= limit < serving_memory(qwen, beyond).total


def test_a_model_that_fits_on_one_card_is_given_one() -> None:
    assert serving_plan(parse_architecture(QWEN2_7B), WANTED, chip=CARD) == ParallelPlan()


def test_a_large_model_is_shared_inside_of_a_ring_before_it_is_cut_into_stages() -> None:
    # 140 GiB of weights on cards of 29 GiB that share links by four.
    large = parse_architecture({**LLAMA3_8B, "num_hidden_layers": 160, "hidden_size": 6144})
    plan = serving_plan(large, WANTED, chip=TWO_RINGS)
    assert plan == ParallelPlan(tensor=4, pipeline=2)


def test_more_requests_than_one_replica_holds_are_spread_over_several() -> None:
    found = plan_replicas(
        parse_architecture(QWEN15_7B), replace(WANTED, concurrency=100), chip=CARD
    )
    assert found is not None
    assert found.replicas * found.concurrency >= 100
    assert found.memory.total <= CARD.memory * WANTED.memory_fraction


def test_a_model_too_large_for_all_cards_has_no_plan() -> None:
    huge = replace(parse_architecture(LLAMA3_8B), parameters=500 * GIB, active_parameters=500 * GIB)
    assert serving_memory(huge, WANTED).weights == 1000 * GIB
    assert largest_context(huge, WANTED, chip=CARD) == 0
    assert largest_concurrency(huge, WANTED, chip=CARD) == 0
    assert serving_plan(huge, WANTED, chip=CARD, most=8) is None


requests = some.builds(
    ServingWorkload,
    scheme=some.sampled_from(list(WEIGHT_SCHEMES.values())),
    context=some.integers(1, 200_000),
    concurrency=some.integers(1, 512),
    cache_value_bytes=some.sampled_from([1, 2, 4]),
    plan=some.builds(
        ParallelPlan, tensor=some.sampled_from([1, 2, 4]), pipeline=some.integers(1, 4)
    ),
)
builds = some.sampled_from([parse_architecture(config) for config in EVERY.values()])


@given(builds, requests, some.integers(1, 100_000))
def test_serving_memory_is_monotonic(built: Any, wanted: ServingWorkload, more: int) -> None:
    total = serving_memory(built, wanted).total
    longer = replace(wanted, context=wanted.context + more)
    assert serving_memory(built, longer).total >= total
    busier = replace(wanted, concurrency=wanted.concurrency + more)
    assert serving_memory(built, busier).total > total
    larger = replace(built, parameters=built.parameters + 1000 * more)
    assert serving_memory(larger, wanted).total >= total


@given(builds, requests)
def test_more_cards_never_make_one_hold_more_weights(built: Any, wanted: ServingWorkload) -> None:
    weights = serving_memory(built, wanted).weights
    shared = replace(wanted, plan=replace(wanted.plan, tensor=wanted.plan.tensor * 2))
    # Padding of the vocabulary may add a few rows.
    assert serving_memory(built, shared).weights <= weights + Bytes(128 * built.hidden * 4)


def test_adapters_take_memory_for_the_greatest_rank_of_each() -> None:
    """Qwen2-7B, every linear matrix of rank 16 in 16 bits: 40,370,176 values, as PEFT prints."""
    qwen = parse_architecture(QWEN2_7B)
    adapted = replace(WANTED, adapters=4, adapter_rank=16)
    alone, beside = serving_memory(qwen, WANTED), serving_memory(qwen, adapted)
    assert alone.adapters == 0
    assert beside.adapters == 4 * 40_370_176 * 2
    assert beside.total - alone.total == beside.adapters
    halved = serving_memory(qwen, replace(adapted, plan=ParallelPlan(tensor=4)))
    assert halved.adapters == round(beside.adapters * 5 / 8), "one of two matrices is divided"
