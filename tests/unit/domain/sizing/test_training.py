"""Memory of training, against cases worked out by hand and figures that others published."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from controlplane.domain.architectures import Architecture, parse_architecture
from controlplane.domain.jobs.parallelism import ParallelPlan
from controlplane.domain.sizing import (
    LoraAdapter,
    MixedPrecision,
    TrainingWorkload,
    adapter_parameters,
    largest_batch,
    training_memory,
    training_plan,
    weight_scheme,
)
from controlplane.domain.sizing.training import layer_activations
from tests.benchmarks.sizing.comparing import estimated_gib
from tests.benchmarks.sizing.published import PUBLISHED, Published
from tests.unit.domain.sizing.model_configs import CARD, DEEPSEEK_V3, EVERY, LLAMA3_8B, QWEN2_7B

HALF = weight_scheme("bfloat16")
WANTED = TrainingWorkload(batch=1, length=512, mixed=MixedPrecision.MASTER_COPY)
LLAMA = parse_architecture(LLAMA3_8B)
#: LLaMA-7B: the model of the papers on LoRA and ZeRO that everybody can recount.
LLAMA_7B = parse_architecture(
    {
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "intermediate_size": 11_008,
        "vocab_size": 32_000,
    }
)


@pytest.mark.parametrize(
    ("mixed", "weights", "gradients", "optimizer"),
    [
        (MixedPrecision.FLOAT32, 4, 4, 8),
        (MixedPrecision.AUTOCAST, 6, 4, 8),
        # The 16 bytes of the ZeRO paper, section 3.1.
        (MixedPrecision.MASTER_COPY, 2, 2, 12),
    ],
)
def test_bytes_per_trained_parameter(
    mixed: MixedPrecision, weights: int, gradients: int, optimizer: int
) -> None:
    held = training_memory(LLAMA, replace(WANTED, mixed=mixed))
    size = LLAMA.parameters
    assert (held.weights, held.gradients, held.optimizer) == (
        weights * size,
        gradients * size,
        optimizer * size,
    )


def test_zero_divides_what_its_stage_says_as_in_figure_one_of_its_paper() -> None:
    # 7.5 billion parameters on 64 cards: 120, 31.4, 16.6 and 1.9 GB.
    built = replace(LLAMA, parameters=7_500_000_000, vocabulary=8)
    sizes = []
    for stage in range(4):
        held = training_memory(built, replace(WANTED, plan=ParallelPlan(data=64, zero_stage=stage)))
        sizes.append((held.weights + held.gradients + held.optimizer) / 1e9)
    assert sizes[:3] == pytest.approx([120, 31.4, 16.6], abs=0.05)
    # At stage 3 two layers are put together beside the 1.9 GB.
    layer = (built.parameters - built.embedding) // built.layers
    assert sizes[3] == pytest.approx(1.875 + 2 * layer * 2 / 1e9, abs=0.01)


def test_an_adapter_trains_only_itself() -> None:
    # 16 · 32 · (4 · 8,192 + 3 · 15,104): the 40 million that PEFT counts for such a model.
    assert adapter_parameters(LLAMA_7B, rank=16) == 39_976_960
    held = training_memory(LLAMA_7B, replace(WANTED, adapter=LoraAdapter(rank=16, base=HALF)))
    assert held.weights == 2 * LLAMA_7B.parameters + 4 * 39_976_960
    assert held.gradients == 4 * 39_976_960
    assert held.optimizer == 8 * 39_976_960


def test_qlora_keeps_the_frozen_weights_in_four_bits() -> None:
    frozen = LoraAdapter(rank=16, base=weight_scheme("nf4-double"))
    held = training_memory(LLAMA_7B, replace(WANTED, adapter=frozen))
    embedding = 2 * 32_000 * 4096
    body = LLAMA_7B.parameters - embedding
    expected = 2 * embedding + body * (4 + 0.125 + 32 / 16_384) / 8 + 4 * 39_976_960
    assert held.weights == pytest.approx(expected, rel=1e-6)


def test_a_plain_block_stores_about_34_bytes_as_in_korthikanti() -> None:
    # A feed-forward part four times as wide, without a gate, in 16 bits; they count dropout masks (2 of 34)
    # and norms without a copy in float32.
    plain = replace(LLAMA_7B, intermediate=4 * 4096, matrices=2)
    stored = layer_activations(plain, mixed=MixedPrecision.MASTER_COPY)
    assert (stored.whole + stored.divided) / 4096 == pytest.approx(34, rel=0.25)


def test_recomputing_keeps_the_input_of_each_layer_and_one_layer_whole() -> None:
    stored = layer_activations(LLAMA, mixed=MixedPrecision.MASTER_COPY)
    held = training_memory(LLAMA, replace(WANTED, recompute=True))
    layer = stored.whole + stored.divided
    assert held.activations == pytest.approx(512 * (32 * 4096 * 2 + layer), rel=1e-6)


def test_dropped_gradients_and_all_activations_are_not_allocated_together() -> None:
    held = training_memory(LLAMA, replace(WANTED, drops_gradients=True))
    stays = training_memory(LLAMA, WANTED)
    assert held.not_at_once == min(held.gradients, held.activations + held.logits)
    assert stays.not_at_once == 0
    assert held.total < stays.total


def test_tensor_parallel_cards_share_norms_only_with_sequence_parallelism() -> None:
    alone = training_memory(LLAMA, WANTED).activations
    plan = ParallelPlan(tensor=4)
    divided = training_memory(LLAMA, replace(WANTED, plan=plan)).activations
    shared = training_memory(LLAMA, replace(WANTED, plan=replace(plan, sequence=True))).activations
    assert alone / 4 == pytest.approx(shared, rel=1e-6)
    assert shared < divided < alone


def test_experts_are_divided_among_the_cards_that_share_them() -> None:
    deepseek = parse_architecture(DEEPSEEK_V3)
    plan = ParallelPlan(data=64, zero_stage=1)
    together = training_memory(deepseek, replace(WANTED, plan=plan))
    apart = training_memory(deepseek, replace(WANTED, plan=replace(plan, expert=64)))
    experts = deepseek.expert_parameters
    assert together.weights - apart.weights == pytest.approx(2 * experts * 63 / 64, rel=1e-6)


@pytest.mark.parametrize(
    "published",
    [each for each in PUBLISHED if each.what == "train"],
    ids=lambda each: f"{each.adapter_base}-{each.context}",
)
def test_training_is_within_a_quarter_of_what_was_published(published: Published) -> None:
    assert estimated_gib(published) == pytest.approx(published.gib, rel=0.25)


def test_the_largest_batch_fits_and_one_more_row_does_not() -> None:
    wanted = replace(WANTED, adapter=LoraAdapter(rank=16, base=HALF), recompute=True)
    rows = largest_batch(LLAMA, wanted, chip=CARD)
    limit = CARD.memory * 0.95
    assert training_memory(LLAMA, replace(wanted, batch=rows)).total <= limit
    assert training_memory(LLAMA, replace(wanted, batch=rows + 1)).total > limit


def test_the_plan_for_eight_cards_divides_states_before_matrices() -> None:
    plan = training_plan(
        parse_architecture(QWEN2_7B), replace(WANTED, recompute=True), chip=CARD, cards=8
    )
    assert plan == ParallelPlan(data=8, zero_stage=1)


trainings = some.builds(
    TrainingWorkload,
    batch=some.integers(1, 64),
    length=some.integers(8, 8192),
    accumulation=some.integers(1, 8),
    mixed=some.sampled_from(MixedPrecision),
    adapter=some.none()
    | some.builds(LoraAdapter, rank=some.integers(1, 256), base=some.just(HALF)),
    recompute=some.booleans(),
    drops_gradients=some.booleans(),
    fused_attention=some.booleans(),
    plan=some.builds(
        ParallelPlan,
        tensor=some.sampled_from([1, 2, 4]),
        data=some.sampled_from([1, 2, 8]),
        zero_stage=some.integers(0, 3),
    ),
)
builds = some.sampled_from([parse_architecture(config) for config in EVERY.values()])


@given(builds, trainings, some.integers(1, 64))
def test_training_memory_is_monotonic(
    built: Architecture, wanted: TrainingWorkload, more: int
) -> None:
    total = training_memory(built, wanted).total
    for larger in (
        replace(wanted, batch=wanted.batch + more),
        replace(wanted, length=wanted.length + more),
    ):
        assert training_memory(built, larger).total >= total
    bigger = replace(built, parameters=built.parameters + 1000 * more)
    assert training_memory(bigger, wanted).total >= total


@given(builds, trainings)
def test_the_parts_add_up(built: Any, wanted: TrainingWorkload) -> None:
    held = training_memory(built, wanted)
    parts = held.weights + held.gradients + held.optimizer + held.activations + held.logits
    assert held.total == parts - held.not_at_once + held.process
    assert 0 <= held.not_at_once < parts
