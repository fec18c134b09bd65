"""Which cards of a node a request gets: rings, pairs, even halves, and memory of the host."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.common.accelerators import Chip, ChipKind, check_cards_per_node
from controlplane.domain.common.resources import Bytes
from controlplane.domain.common.topology import (
    Geometry,
    InvalidCardGroups,
    choose_cards,
    format_card_groups,
    parse_card_groups,
)
from tests.properties import examples

TWO_RINGS = Geometry(sizes=(1, 2, 4, 8), rings=parse_card_groups("0-3_4-7"))
BOX16 = Geometry(
    sizes=(1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16),
    rings=parse_card_groups("0-7_8-15"),
    split_evenly=True,
)
PAIRS = Geometry(sizes=(1, *range(2, 17, 2)), aligned_to=2)
MESH = Geometry(rings=parse_card_groups("0-7"))
NUMA = Geometry(numa=parse_card_groups("0-3_4-7"))
NICS = Geometry(numa=parse_card_groups("0-3_4-7"), nics=parse_card_groups("0-1_2-3_4-5_6-7"))
GEOMETRIES = (TWO_RINGS, BOX16, PAIRS, MESH, NUMA, NICS, Geometry())

free_cards = st.sets(st.integers(0, 15)).map(sorted)


@given(free_cards, st.integers(0, 17), st.sampled_from(GEOMETRIES))
@settings(max_examples=examples(500), deadline=None)
def test_a_choice_is_so_many_free_cards_in_order_and_the_same_each_time(
    free: list[int], count: int, geometry: Geometry
) -> None:
    chosen = choose_cards(free, count, geometry)

    assert chosen == choose_cards(free, count, geometry)
    if chosen is not None:
        assert len(chosen) == count
        assert list(chosen) == sorted(set(chosen))
        assert set(chosen) <= set(free)
        assert geometry.allows(count)


@given(free_cards, st.integers(1, 8))
@settings(max_examples=examples(300), deadline=None)
def test_what_fits_into_a_ring_stays_inside_one(free: list[int], count: int) -> None:
    free = [card for card in free if card < 8]
    chosen = choose_cards(free, count, TWO_RINGS)
    room = [len([card for card in ring if card in free]) for ring in TWO_RINGS.rings]

    if count not in TWO_RINGS.sizes:
        assert chosen is None
    elif count <= 4:
        assert (chosen is not None) == (max(room) >= count)
        if chosen is not None:
            assert any(set(chosen) <= set(ring) for ring in TWO_RINGS.rings)
    else:
        assert (chosen is not None) == (len(free) == 8)


@given(free_cards, st.integers(9, 16))
@settings(max_examples=examples(300), deadline=None)
def test_box16_takes_the_same_positions_of_both_halves(free: list[int], count: int) -> None:
    chosen = choose_cards(free, count, BOX16)
    both = [card for card in range(8) if card in free and card + 8 in free]

    assert (chosen is not None) == (count % 2 == 0 and len(both) >= count // 2)
    if chosen is not None:
        assert [card for card in chosen if card < 8] == [card - 8 for card in chosen if card >= 8]


@given(free_cards, st.integers(1, 16))
@settings(max_examples=examples(300), deadline=None)
def test_dies_of_a_pair_are_given_out_together(free: list[int], count: int) -> None:
    chosen = choose_cards(free, count, PAIRS)
    whole = [card for card in free if card % 2 == 0 and card + 1 in free]

    if count == 1:
        assert (chosen is not None) == bool(free)
    else:
        assert (chosen is not None) == (count % 2 == 0 and len(whole) >= count // 2)
        assert chosen is None or {card ^ 1 for card in chosen} == set(chosen)


@pytest.mark.parametrize(
    ("free", "count", "geometry", "chosen"),
    [
        ([0, 2, 3, 4], 2, PAIRS, (2, 3)),
        ([0, 2, 3, 4], 1, PAIRS, (0,)),
        ([2, 3, 4, 5], 1, PAIRS, (2,)),
        ([0, 1, 2, 3, 4, 5], 2, TWO_RINGS, (4, 5)),
        ([0, 1, 4, 5, 6], 4, TWO_RINGS, None),
        ([0, 1, 2, 3, 4, 5, 6, 7], 3, TWO_RINGS, None),
        ([2, 3, 4, 5, 6, 7], 3, NUMA, (4, 5, 6)),
        ([0, 1, 4, 5], 3, NUMA, (0, 1, 4)),
        ([0, 1, 2, 3], 3, Geometry(aligned_to=2), (0, 1, 2)),
        ([1, 2, 3], 3, Geometry(aligned_to=2), (1, 2, 3)),
        ([0, 1, 2, 3, 4, 5], 3, Geometry(rings=parse_card_groups("0-1_2-3_4-5")), (0, 1, 2)),
        ([0, 1, 8, 9], 2, MESH, (0, 1)),
        ([0, 8, 9], 2, MESH, (8, 9)),
    ],
)
def test_the_choice_keeps_whole_what_larger_requests_will_want(
    free: list[int], count: int, geometry: Geometry, chosen: tuple[int, ...] | None
) -> None:
    assert choose_cards(free, count, geometry) == chosen


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "'' is not a list of card groups"),
        ("a-b", "'a-b' is not a list of card groups"),
        ("0-3,4-7", "'0-3,4-7' is not a list of card groups"),
        ("0-3_", "'0-3_' is not a list of card groups"),
        ("0-3_3-5", "'0-3_3-5' contains the same card more than once"),
        ("0-3_3-1", "'3-1' in '0-3_3-1' is not a range of cards"),
        ("0-9999", "'0-9999' in '0-9999' is not a range of cards"),
    ],
)
def test_invalid_card_groups_are_refused_with_the_text(text: str, reason: str) -> None:
    with pytest.raises(InvalidCardGroups, match=reason):
        parse_card_groups(text)


def test_groups_are_written_as_they_are_read() -> None:
    for text in ("0.1.2.3_4.5.6.7", "5", "0.2_1"):
        assert format_card_groups(parse_card_groups(text)) == text


def test_groups_may_name_single_cards() -> None:
    assert parse_card_groups("0.2.4-5_1") == ((0, 2, 4, 5), (1,))


@pytest.mark.parametrize(
    ("cards", "said"),
    [
        (
            3,
            "3 cards of ascend-910a cannot be allocated on one node, which supports 1, 2, 4, 8; request 4",
        ),
        (
            16,
            "16 cards of ascend-910a cannot be allocated on one node, which supports 1, 2, 4, 8; request 8",
        ),
        (4, None),
    ],
)
def test_an_invalid_number_of_cards_is_refused_with_valid_values(
    cards: int, said: str | None
) -> None:
    chip = Chip(
        name="ascend-910a",
        vendor="ascend",
        kind=ChipKind.NPU,
        memory=Bytes(0),
        torch_device="npu",
        legal_request_sizes=(1, 2, 4, 8),
    )
    found = check_cards_per_node(chip, cards)
    assert (found.message if found else None) == said
    assert found is None or found.field == "cards"
