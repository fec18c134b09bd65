"""The tables of states say what the rules of the hardware say, state by state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.common.topology import Geometry, choose_cards
from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.scheduling.card_states import CardStates
from controlplane.domain.scheduling.snapshots import CardLayout, ReplicaShape
from tests.properties import examples
from tests.unit.domain.scheduling.fleets import RINGS

GEOMETRIES = (
    Geometry(),
    RINGS,
    Geometry(rings=((0, 1, 2, 3), (4, 5, 6, 7)), split_evenly=True),
    Geometry(aligned_to=2),
    Geometry(aligned_to=2, rings=((0, 1, 2, 3), (4, 5, 6, 7)), numa=((0, 1, 2, 3), (4, 5, 6, 7))),
    Geometry(numa=((0, 2, 4, 6), (1, 3, 5, 7))),
)
EIGHT = tuple(range(8))


def whole(cards: int) -> ReplicaShape:
    return ReplicaShape(cards=cards, share=WHOLE_CARD, cpu=0, memory=0)


def part(share: int) -> ReplicaShape:
    return ReplicaShape(cards=1, share=share, cpu=0, memory=0)


def known(geometry: Geometry, lefts: list[tuple[int, ...]]) -> tuple[CardStates, list[int]]:
    states = CardStates(width=8)
    layout = states.layout(CardLayout(EIGHT, geometry))
    return states, [states.number(layout, left) for left in lefts]


LEFTS = st.tuples(*[st.sampled_from([0, 300, 700, WHOLE_CARD, WHOLE_CARD])] * 8)


@settings(max_examples=examples(150))
@given(left=LEFTS, geometry=st.sampled_from(GEOMETRIES), cards=st.integers(1, 8))
def test_whole_cards_are_given_as_the_hardware_gives_them(
    left: tuple[int, ...], geometry: Geometry, cards: int
) -> None:
    states, (state,) = known(geometry, [left])
    free = [index for index, rest in enumerate(left) if rest == WHOLE_CARD]
    chosen = choose_cards(free, cards, geometry)
    step = states.step(state, whole(cards))
    assert bool(states.fits(whole(cards))[state]) == (chosen is not None) == (step is not None)
    if step is not None:
        assert step.positions == chosen
        assert states.left(step.to) == tuple(
            0 if index in step.positions else rest for index, rest in enumerate(left)
        )


@settings(max_examples=examples(150))
@given(left=LEFTS, geometry=st.sampled_from(GEOMETRIES), cards=st.integers(1, 8))
def test_a_state_serves_as_many_requests_as_can_be_made_one_after_the_other(
    left: tuple[int, ...], geometry: Geometry, cards: int
) -> None:
    states, (state,) = known(geometry, [left])
    free = [index for index, rest in enumerate(left) if rest == WHOLE_CARD]
    replica_counts = 0
    while chosen := choose_cards(free, cards, geometry):
        free = [index for index in free if index not in chosen]
        replica_counts += 1
    assert states.replica_counts(np.array([state], dtype=np.int32), whole(cards)).tolist() == [
        replica_counts
    ]


@given(left=LEFTS, share=st.sampled_from([100, 300, 500, 999]))
def test_a_share_goes_to_the_fullest_card_that_holds_it(left: tuple[int, ...], share: int) -> None:
    states, (state,) = known(Geometry(), [left])
    fitting = [rest for rest in left if rest >= share]
    step = states.step(state, part(share))
    assert bool(states.fits(part(share))[state]) == bool(fitting) == (step is not None)
    if step is not None:
        (position,) = step.positions
        assert left[position] == min(fitting)
        assert states.left(step.to)[position] == left[position] - share


@settings(max_examples=examples(50))
@given(lefts=st.lists(LEFTS, min_size=1, max_size=200), cards=st.integers(1, 8))
def test_tables_answer_for_many_states_what_steps_answer_for_each(
    lefts: list[tuple[int, ...]], cards: int
) -> None:
    states, numbers = known(RINGS, lefts)
    after = states.after(np.array(numbers, dtype=np.int32), whole(cards))
    steps = [states.step(state, whole(cards)) for state in numbers]
    assert after.tolist() == [-1 if step is None else step.to for step in steps]
    assert [tuple(row) for row in states.lefts[numbers].tolist()] == lefts


def test_equal_states_have_one_number_and_kinds_of_nodes_keep_theirs_apart() -> None:
    states, (one, other) = known(RINGS, [(WHOLE_CARD,) * 8, (WHOLE_CARD,) * 8])
    assert one == other
    plain = states.layout(CardLayout(EIGHT, Geometry()))
    assert states.number(plain, (WHOLE_CARD,) * 8) != one
    assert len(states) == 2


def test_what_is_larger_than_every_node_fits_nowhere() -> None:
    states, _ = known(RINGS, [(WHOLE_CARD,) * 8])
    assert not states.fits(whole(9)).any()


def test_a_request_for_no_cards_changes_nothing_and_has_no_number_of_times() -> None:
    states, (state,) = known(RINGS, [(WHOLE_CARD,) * 8])
    step = states.step(state, whole(0))
    assert step is not None
    assert step.to == state
    with pytest.raises(ValueError, match="any number of replicas fits"):
        states.replica_counts(np.array([state], dtype=np.int32), whole(0))
