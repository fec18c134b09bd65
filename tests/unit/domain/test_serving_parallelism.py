"""Parallelism of one replica."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.architectures import Architecture
from controlplane.domain.serving.parallelism import (
    architecture_from_config,
    check_replica_parallelism,
    replica_parallelism,
)
from controlplane.ports.adapter_registry import all_chips

QWEN2_7B = {
    "architectures": ["Qwen2ForCausalLM"],
    "num_hidden_layers": 28,
    "hidden_size": 3584,
    "intermediate_size": 18_944,
    "num_attention_heads": 28,
    "num_key_value_heads": 4,
    "max_position_embeddings": 32_768,
    "vocab_size": 152_064,
}
CARDS = st.integers(min_value=1, max_value=256)


def read() -> Architecture:
    found = architecture_from_config(QWEN2_7B)
    assert found is not None
    return found


def said(
    values: dict[str, Any], *, cards: int, chip: str = "nvidia-h800", nodes: int = 1
) -> dict[str, str]:
    found = check_replica_parallelism(
        values, cards=cards, architecture=read(), chip=all_chips()[chip], nodes=nodes
    )
    return {each.field: each.message for each in found}


@given(cards=CARDS, pipeline=st.integers(1, 8), data=st.integers(1, 8))
def test_a_plan_multiplies_out_or_is_refused(cards: int, pipeline: int, data: int) -> None:
    values = {"tensor": None, "pipeline": pipeline, "data": data}
    if cards % (pipeline * data):
        with pytest.raises(ValueError, match="does not divide"):
            replica_parallelism(values, cards=cards)
    else:
        plan = replica_parallelism(values, cards=cards)
        assert plan.tensor * plan.pipeline * plan.data == cards


@given(cards=CARDS)
def test_unset_sizes_are_one_and_tensor_uses_remaining_cards(cards: int) -> None:
    plan = replica_parallelism({}, cards=cards)
    assert (plan.tensor, plan.pipeline, plan.data, plan.expert) == (cards, 1, 1, 1)


@given(nodes=st.sampled_from([1, 2, 4]), each=st.sampled_from([1, 2, 4, 8]))
def test_stages_are_nodes_and_tensor_uses_the_cards_of_one(nodes: int, each: int) -> None:
    plan = replica_parallelism({"pipeline": 1, "data": 1}, cards=nodes * each, nodes=nodes)
    assert (plan.tensor, plan.pipeline, plan.data) == (each, nodes, 1)


def test_a_plan_of_the_spec_holds_on_several_nodes() -> None:
    for values, degrees in (
        ({"tensor": 16}, (16, 1, 1)),
        ({"pipeline": 4}, (4, 4, 1)),
        ({"data": 2}, (8, 1, 2)),
    ):
        plan = replica_parallelism(values, cards=16, nodes=2)
        assert (plan.tensor, plan.pipeline, plan.data) == degrees


def test_shared_experts_are_shared_by_every_card_of_a_stage() -> None:
    assert replica_parallelism({"tensor": 2, "data": 4, "expert": "on"}, cards=8).expert == 8


@pytest.mark.parametrize(
    ("values", "cards", "field", "message"),
    [
        (
            {"tensor": 2},
            8,
            "parallel",
            "tensor 2 × pipeline 1 × data 1 is 2; it must equal the number of cards of a replica, 8",
        ),
        (
            {"pipeline": 3},
            8,
            "parallel",
            "is 3, which does not divide the number of cards of a replica, 8",
        ),
        ({"tensor": 8}, 8, "parallel.tensor", "must divide the 28 heads, got 8"),
        (
            {},
            8,
            "cards",
            "must divide the 28 heads, got 8; valid values: 1, 2, 4, 7, 14, 28; 8 cards",
        ),
        ({"tensor": 1, "pipeline": 32}, 32, "parallel.pipeline", "at most 28"),
        ({"tensor": 4, "expert": "on"}, 4, "parallel.expert", "has no experts"),
        ({"tensor": 7}, 7, "parallel.tensor", "the 4 KV heads or be a multiple of them"),
    ],
)
def test_impossible_plan_is_refused_with_fix(
    values: dict[str, Any], cards: int, field: str, message: str
) -> None:
    assert message in said(values, cards=cards)[field]


@pytest.mark.parametrize("tensor", [1, 2, 4])
def test_a_plan_that_divides_the_heads_is_right(tensor: int) -> None:
    assert said({"tensor": tensor}, cards=tensor) == {}


def test_layers_need_not_be_divided_evenly() -> None:
    assert said({"tensor": 1, "pipeline": 3}, cards=3) == {}


@pytest.mark.parametrize("config", [{}, {"architectures": ["NobodyKnows"]}])
def test_unknown_architecture_is_not_checked(config: dict[str, Any]) -> None:
    assert architecture_from_config(config) is None
    assert check_replica_parallelism({}, cards=3, architecture=None, chip=None) == ()
