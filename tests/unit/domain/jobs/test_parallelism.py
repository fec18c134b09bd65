"""Plans multiply out, divide what they share, and stay inside of what the hardware gives."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from controlplane.domain.architectures import parse_architecture
from controlplane.domain.jobs.parallelism import (
    ParallelPlan,
    allocatable_card_counts,
    check_card_count,
    check_cards_on_nodes,
    check_plan,
    node_and_card_counts,
    padded_vocabulary,
    parse_parallel_plan,
    propose_plan,
    smallest_plan,
)
from controlplane.ports.adapter_registry import all_chips
from tests.unit.domain.sizing.model_configs import (
    CARD,
    DEEPSEEK_V3,
    EVERY,
    PAIRS,
    QWEN2_7B,
    TWO_RINGS,
)

QWEN = parse_architecture(QWEN2_7B)


@pytest.mark.parametrize(
    ("plan", "cards", "field", "message"),
    [
        (
            ParallelPlan(tensor=2, data=3),
            8,
            "parallel",
            "is 6, but the number of cards is 8; parallel.data must be 4",
        ),
        (
            ParallelPlan(tensor=3, data=1),
            8,
            "parallel",
            "3 does not divide 8, so parallel.data has no valid value",
        ),
        (
            ParallelPlan(tensor=8),
            8,
            "parallel.tensor",
            "divide the 28 heads, got 8; valid values: 1, 2, 4, 7, 14, 28",
        ),
        (ParallelPlan(pipeline=8), 8, "parallel.pipeline", "must divide the 28 layers, got 8"),
        (
            ParallelPlan(pipeline=64),
            64,
            "parallel.pipeline",
            "at most the number of layers, 28, got 64",
        ),
        (
            ParallelPlan(expert=2, data=2),
            2,
            "parallel.expert",
            "Qwen2ForCausalLM has no experts, got 2",
        ),
        (
            ParallelPlan(tensor=14),
            14,
            "parallel.tensor",
            "at most 8, the number of cards of card-80 with a direct link",
        ),
        (
            ParallelPlan(pipeline=2, zero_stage=2, data=2),
            4,
            "parallel.zero_stage",
            "0 or 1 with 2 pipeline",
        ),
        (ParallelPlan(tensor=0), 1, "parallel.tensor", "must be 1 to 65536, got 0"),
        (ParallelPlan(zero_stage=7), 1, "parallel.zero_stage", "must be 0 to 3, got 7"),
    ],
)
def test_an_illegal_plan_is_refused_with_legal_values(
    plan: ParallelPlan, cards: int, field: str, message: str
) -> None:
    found = {
        each.field: each.message
        for each in check_plan(plan, cards=cards, architecture=QWEN, chip=CARD)
    }
    assert message in found[field]


def test_key_value_heads_are_sharded_or_replicated() -> None:
    # 28 heads and 4 of keys and values: 7 cards would cut through one.
    found = check_plan(ParallelPlan(tensor=7), cards=7, architecture=QWEN)
    assert [each.field for each in found] == ["parallel.tensor"]
    assert check_plan(ParallelPlan(tensor=4), cards=4, architecture=QWEN, chip=CARD) == ()


def test_experts_must_divide() -> None:
    deepseek = parse_architecture(DEEPSEEK_V3)
    found = check_plan(ParallelPlan(data=24, expert=24), cards=24, architecture=deepseek)
    assert "must divide the 256 experts, got 24" in found[0].message
    found = check_plan(ParallelPlan(data=4, expert=8), cards=4, architecture=deepseek)
    assert "must divide data × context, which is 4, got 8" in found[0].message
    assert check_plan(ParallelPlan(data=8, expert=8), cards=8, architecture=deepseek) == ()


@pytest.mark.parametrize(
    ("chip", "cards", "message"),
    [
        (TWO_RINGS, 3, "two-rings supports requests of 1, 2, 4, 8 cards on a node, got 3"),
        (TWO_RINGS, 12, "a multiple of 8, the cards of a node, got 12; valid values: 8, 16"),
        (PAIRS, 5, "pairs supports requests of 1 card or a multiple of 2, got 5"),
        (CARD, 0, "cards must be 1 to 65536, got 0"),
    ],
)
def test_an_illegal_number_of_cards_is_refused_with_legal_numbers(
    chip: Any, cards: int, message: str
) -> None:
    assert message in check_card_count(cards, chip=chip)[0].message


def test_more_cards_than_a_node_has_are_those_of_whole_nodes() -> None:
    chips = all_chips()
    h800, a910c, l4 = chips["nvidia-h800"], chips["ascend-910c"], chips["nvidia-l4"]
    for requested, cards, counts in (
        ([h800], 8, (1, 8)),
        ([h800], 16, (2, 8)),
        ([h800], 12, (1, 12)),
        ([a910c], 16, (1, 16)),
        ([a910c, h800], 32, (4, 8)),
        ([l4], 16, (1, 16)),
    ):
        assert node_and_card_counts(requested, cards) == counts
    for requested, cards, message in (
        ([h800], 16, ""),
        ([h800], 12, "must be a multiple of 8, the cards of a node, got 12; valid values: 8, 16"),
        ([a910c, h800], 24, ""),
        ([a910c], 24, "must be a multiple of 16"),
        ([a910c], 3, "3 cards of ascend-910c cannot be allocated on one node"),
    ):
        found = check_cards_on_nodes(requested, cards)
        assert message in found[0].message if message else found == (), found


def test_card_counts_are_those_that_can_be_allocated() -> None:
    assert allocatable_card_counts(TWO_RINGS, most=32) == (1, 2, 4, 8, 16, 32)
    assert allocatable_card_counts(PAIRS, most=8) == (1, 2, 4, 6, 8)


@pytest.mark.parametrize(
    ("vocabulary", "tensor", "padded"),
    [(151_936, 8, 151_936), (50_257, 1, 50_257), (50_257, 2, 50_304), (32_001, 6, 32_064)],
)
def test_the_vocabulary_is_padded_to_equal_shards(
    vocabulary: int, tensor: int, padded: int
) -> None:
    assert padded_vocabulary(vocabulary, tensor=tensor) == padded
    assert padded % tensor == 0


def test_cards_without_a_plan_are_data_parallel() -> None:
    assert parse_parallel_plan({"tensor": 2, "pipeline": None}, cards=8) == ParallelPlan(
        tensor=2, data=4
    )


builds = some.sampled_from([parse_architecture(config) for config in EVERY.values()])
chips = some.sampled_from([CARD, TWO_RINGS, PAIRS])


@given(builds, chips, some.integers(1, 64), some.integers(1, 64))
def test_proposed_plans_are_legal_for_the_number_of_cards(
    built: Any, chip: Any, cards: int, shared: int
) -> None:
    plan = propose_plan(
        cards=cards,
        architecture=built,
        chip=chip,
        fits=lambda each: (
            each.tensor * each.pipeline * (each.data if each.zero_stage else 1)
            >= min(shared, cards)
        ),
    )
    if plan is not None:
        assert plan.tensor * plan.pipeline * plan.context * plan.data == cards
        assert check_plan(plan, cards=cards, architecture=built, chip=chip) == ()


@given(builds, chips, some.integers(1, 32))
def test_the_smallest_plan_uses_the_fewest_cards(built: Any, chip: Any, needed: int) -> None:
    plan = smallest_plan(
        architecture=built, chip=chip, fits=lambda each: each.cards >= needed, most=64
    )
    assert plan is not None
    assert all(
        count < needed for count in allocatable_card_counts(chip, most=64) if count < plan.cards
    )
