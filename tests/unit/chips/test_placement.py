"""The scheduler over nodes whose cards hang together: rings stay whole, pairs unbroken, refusals say why."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.topology import Geometry, parse_card_groups
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import PendingReasonCode, SchedulingPolicy
from controlplane.domain.scheduling.snapshots import NodeSnapshot, SchedulingSnapshot
from tests.properties import examples
from tests.unit.domain.scheduling.fleets import AT, claim, node, role, snapshot

CHIP = "ascend-910b3"
RINGS = Geometry(sizes=(1, 2, 4, 8), rings=parse_card_groups("0-3_4-7"))
PAIRS = Geometry(sizes=(1, *range(2, 17, 2)), aligned_to=2)


def linked(
    name: str, geometry: Geometry, *, cards: int = 8, held: tuple[int, ...] = ()
) -> NodeSnapshot:
    plain = node(name, cards)
    return replace(
        plain,
        geometries={CHIP: geometry},
        cards=tuple(
            replace(card, held_by="somebody" if card.index in held else None)
            for card in plain.cards
        ),
    )


def cards_of(seen: SchedulingSnapshot) -> list[tuple[str, ...]]:
    decided = plan_cycle(seen, SchedulingPolicy(), AT)
    return [replica.cards for one in decided.placements for replica in one.replicas]


@given(
    st.sampled_from([RINGS, PAIRS]),
    st.sets(st.integers(0, 7)).map(lambda held: tuple(sorted(held))),
    st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=6),
)
@settings(max_examples=examples(200), deadline=None)
def test_every_replica_is_whole_pairs_or_inside_a_ring(
    geometry: Geometry, held: tuple[int, ...], sizes: list[int]
) -> None:
    claims = tuple(claim(f"c{place}", role(size), minute=place) for place, size in enumerate(sizes))
    given_out = cards_of(snapshot(linked("n", geometry, held=held), claims=claims))

    for cards in given_out:
        indices = {int(card.partition("/")[2]) for card in cards}
        if geometry is PAIRS and len(indices) > 1:
            assert {index ^ 1 for index in indices} == indices
        if geometry is RINGS and len(indices) <= 4:
            assert len({index // 4 for index in indices}) == 1
    every = [card for cards in given_out for card in cards]
    assert len(every) == len(set(every))


def test_a_claim_passes_a_node_whose_free_cards_are_in_two_rings() -> None:
    seen = snapshot(
        linked("a", RINGS, held=(0, 1, 4, 5)), linked("b", RINGS), claims=(claim("x", role(4)),)
    )
    assert cards_of(seen) == [("b/0", "b/1", "b/2", "b/3")]


def test_a_refusal_says_that_the_free_cards_do_not_hang_together() -> None:
    seen = snapshot(linked("a", RINGS, held=(0, 1, 4, 5)), claims=(claim("x", role(4)),))
    (refusal,) = plan_cycle(seen, SchedulingPolicy(), AT).pending

    assert refusal.code is PendingReasonCode.NOT_TOGETHER
    assert refusal.reason == (
        "needs 4 × ascend-910b3 with direct links on one node; 4 are free on "
        "the best node, but not in one ring or in whole pairs"
    )


def test_a_number_that_no_node_gives_out_never_fits() -> None:
    seen = snapshot(linked("a", RINGS), claims=(claim("x", role(3)),))
    (refusal,) = plan_cycle(seen, SchedulingPolicy(), AT).pending

    assert refusal.code is PendingReasonCode.NEVER_FITS
    assert refusal.reason == "needs 3 × ascend-910b3 on one node; the nodes support 1, 2, 4, 8"


def test_a_broken_card_breaks_its_ring_and_its_pair() -> None:
    whole = linked("a", PAIRS)
    broken = replace(
        whole,
        cards=tuple(
            replace(card, state=CardState.ISOLATED) if card.index == 0 else card
            for card in whole.cards
        ),
    )
    assert cards_of(snapshot(broken, claims=(claim("x", role(2)),))) == [("a/2", "a/3")]


def test_a_claim_without_cards_has_a_place_beside_linked_ones() -> None:
    assert cards_of(snapshot(linked("a", RINGS), claims=(claim("x", role(0)),))) == [()]
