"""Where gangs go: all of one or nothing of it, in the smallest piece of the network that holds it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from itertools import combinations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from controlplane.domain.common.topology import Geometry, choose_cards
from controlplane.domain.scheduling.node_table import NodeTable
from controlplane.domain.scheduling.placement import MOST_DOMAINS, PlacementFinder
from controlplane.domain.scheduling.snapshots import (
    CardSelection,
    ClaimSnapshot,
    NodeSnapshot,
    ReplicaPlacement,
)
from controlplane.domain.scheduling.typical_requests import typical_requests
from tests.properties import examples
from tests.unit.domain.scheduling.fleets import (
    GPU,
    NPU,
    RINGS,
    claim,
    free_cards,
    node,
    role,
    running,
    snapshot,
)

Replicas = tuple[ReplicaPlacement, ...] | None

EVEN = Geometry(rings=((0, 1, 2, 3), (4, 5, 6, 7)), split_evenly=True)
PAIRS = Geometry(aligned_to=2)


def placed(nodes: Iterable[NodeSnapshot], wanted: ClaimSnapshot, *, chip: str = NPU) -> Replicas:
    seen = snapshot(*nodes, claims=[wanted])
    return PlacementFinder(NodeTable(seen), typical_requests(seen)).place(wanted, chip)


def where(replicas: Replicas) -> Counter[str]:
    assert replicas is not None
    return Counter(replica.node for replica in replicas)


def leaves(*free: int, geometry: Geometry | None = None) -> list[NodeSnapshot]:
    """Nodes of eight with so many free, two of them under each leaf, four under each spine."""
    return [
        node(
            f"n{place}",
            busy=range(count, 8),
            geometry=geometry,
            domains={"spine": f"s{place // 4}", "leaf": f"l{place // 2}"},
        )
        for place, count in enumerate(free)
    ]


def test_a_gang_that_one_node_holds_goes_to_one_node() -> None:
    found = placed(leaves(8, 8), claim("c", role(2, 4)))
    assert list(where(found).values()) == [4]


def test_of_the_nodes_that_hold_it_the_fullest_is_taken() -> None:
    assert where(placed(leaves(8, 6, 4, 7), claim("c", role(2, 2)))) == {"n2": 2}


def test_a_larger_gang_takes_the_smallest_domain_with_room() -> None:
    # Leaf l0 has 9, leaf l1 has 12, the spine has both.
    assert set(where(placed(leaves(8, 1, 4, 8), claim("c", role(4, 3))))) == {"n2", "n3"}


def test_only_a_gang_that_no_leaf_holds_spreads_over_the_spine() -> None:
    found = where(placed(leaves(8, 1, 4, 8, 8, 8), claim("c", role(4, 5))))
    assert found == {"n0": 2, "n2": 1, "n3": 2}


def test_a_required_level_is_never_left() -> None:
    nodes = leaves(8, 0, 8, 0)
    assert placed(nodes, claim("c", role(8, 2), within="leaf")) is None
    assert set(where(placed(nodes, claim("c", role(8, 2), within="spine")))) == {"n0", "n2"}


def test_a_wished_level_is_where_the_search_begins() -> None:
    nodes = leaves(8, 8, 3, 3)
    apart = claim("c", role(2, 4), near="leaf")
    assert len(where(placed(nodes, apart))) >= 1
    # Without room under one leaf the wish gives way.
    assert placed(leaves(2, 0, 2, 0), claim("c", role(2, 2), near="leaf")) is not None


def test_a_wish_that_is_wider_than_what_is_required_asks_for_nothing_more() -> None:
    wanted = claim("c", role(8, 2), within="leaf", near="spine")
    assert set(where(placed(leaves(3, 8, 8, 8), wanted))) == {"n2", "n3"}


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_level_that_no_node_has_is_never_found(replicas: int) -> None:
    assert placed(leaves(8, 8), claim("c", role(1, replicas), within="rack")) is None


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_node_outside_of_every_leaf_is_under_no_leaf(replicas: int) -> None:
    nodes = [node("apart"), node("inside", domains={"leaf": "l"})]
    assert set(where(placed(nodes, claim("c", role(1, replicas), within="leaf")))) == {"inside"}


@pytest.mark.parametrize("what", ["memory", "cpu", "cards"])
def test_domains_that_hold_each_role_but_not_all_of_them_are_not_tried(what: str) -> None:
    """The only leaf that holds both roles is the last of many, and the others are fuller."""
    many = 2 * MOST_DOMAINS
    nodes = [
        node(
            f"n{place}",
            7 if place == many and what == "cards" else 4,
            memory=100 if place == many else 64,
            cpu=100 if place == many else 64,
            owns_cpu=True,
            domains={"leaf": f"l{place}"},
        )
        for place in range(many + 1)
    ]
    asked = {"memory": {"memory": 40}, "cpu": {"cpu": 40}, "cards": {}}[what]
    cards = 3 if what == "cards" else 2
    wanted = claim(
        "c", role(cards, name="a", **asked), role(cards, name="b", **asked), within="leaf"
    )
    assert set(where(placed(nodes, wanted))) == {f"n{many}"}


def test_no_gang_spans_clusters() -> None:
    nodes = [node("a", 4), node("b", 4, cluster="c2")]
    assert placed(nodes, claim("c", role(4, 2))) is None
    assert placed(nodes, claim("c", role(4, 1))) is not None


def test_nothing_stays_taken_when_the_gang_does_not_fit() -> None:
    fleet = NodeTable(snapshot(node("a", 4), node("b", 3)))
    placer = PlacementFinder(fleet)
    assert placer.place(claim("c", role(4, 2)), NPU) is None
    assert free_cards(fleet, NPU) == 7
    assert fleet.mark() == 0


def test_no_role_grows_before_all_have_started() -> None:
    wanted = claim("c", role(2, 4, name="workers", least=1), role(1, name="head"))
    found = placed([node("a")], wanted)
    assert found is not None
    assert sorted((one.role, one.index) for one in found) == [
        ("head", 0),
        ("workers", 0),
        ("workers", 1),
        ("workers", 2),
    ]


def test_an_elastic_gang_gets_as_many_as_fit_but_not_fewer_than_its_least() -> None:
    nodes = leaves(8, 6)
    found = placed(nodes, claim("c", role(4, 8, least=2)))
    assert sum(where(found).values()) == 3
    assert placed(nodes, claim("c", role(4, 8, least=4))) is None


def test_roles_of_a_gang_stand_under_one_domain_together() -> None:
    gang = claim("c", role(4, 2, name="train"), role(1, 3, name="rollout"), within="leaf")
    found = placed(leaves(8, 0, 6, 6), gang)
    assert set(where(found)) == {"n2", "n3"}
    assert found is not None
    assert Counter(replica.role for replica in found) == {"train": 2, "rollout": 3}


def test_a_replica_without_cards_stands_beside_the_others() -> None:
    gang = claim("c", role(4), role(0, name="master", memory=4))
    found = placed([node("a"), node("b", memory=1)], gang)
    assert where(found) == {"a": 2}
    assert found is not None
    master = next(replica for replica in found if replica.role == "master")
    assert (master.cards, master.count) == ((), 0)


def test_memory_of_a_node_limits_how_many_replicas_it_takes() -> None:
    found = placed([node("a", memory=10), node("b", memory=10)], claim("c", role(1, 4, memory=4)))
    assert where(found) == {"a": 2, "b": 2}


def test_rows_to_avoid_are_avoided() -> None:
    fleet = NodeTable(snapshot(node("a"), node("b", 4)))
    placer = PlacementFinder(fleet)
    assert where(placer.place(claim("c", role(2)), NPU, avoid=fleet.mask(["b"]))) == {"a": 1}
    assert placer.place(claim("d", role(2)), NPU, avoid=fleet.mask(["a", "b"])) is None
    assert where(placer.place(claim("d", role(2)), NPU)) == {"b": 1}


def test_shares_fill_a_broken_card_before_they_break_a_whole_one() -> None:
    fleet = NodeTable(snapshot(node("a", 2), node("b", 2)))
    placer = PlacementFinder(fleet)
    for name in ("x", "y", "z"):
        assert placer.place(claim(name, role(1, share=300)), NPU)
    assert free_cards(fleet, NPU) == 3


def test_a_claim_takes_only_cards_of_the_chip_that_was_asked_for() -> None:
    npu, gpu = node("a", 2), node("a", 2, chip=GPU)
    both = replace(
        npu,
        cards=(*npu.cards, *(replace(card, uid=f"g{card.index}") for card in gpu.cards)),
    )
    found = placed([both], claim("c", role(2), chips=(GPU,)), chip=GPU)
    assert found is not None
    assert found[0].cards == ("g0", "g1")
    assert placed([both], claim("c", role(3), chips=(GPU,)), chip=GPU) is None


def test_where_the_node_chooses_only_the_number_of_cards_is_told() -> None:
    found = placed([node("a", binding=CardSelection.NODE)], claim("c", role(3)))
    assert found is not None
    assert (found[0].cards, found[0].count) == ((), 3)


def test_labels_are_kept_to() -> None:
    nodes = [node("a"), node("b", labels={"pool": "fast"})]
    assert where(placed(nodes, claim("c", role(8), selector={"pool": "fast"}))) == {"b": 1}
    assert placed(nodes, claim("c", role(8), selector={"pool": "slow"})) is None
    assert set(where(placed(nodes, claim("c", role(8, 2))))) == {"a", "b"}


def test_the_same_gang_is_looked_for_again_only_after_something_was_given_back() -> None:
    work = running("r", {"a": (0, 1)})
    fleet = NodeTable(snapshot(node("a", 2), running=[work]))
    placer = PlacementFinder(fleet)
    assert placer.place(claim("one"), NPU) is None
    assert placer.place(claim("two"), NPU) is None
    mark = fleet.mark()
    fleet.free(work)
    assert placer.place(claim("three"), NPU) is not None
    fleet.undo(mark)
    assert placer.place(claim("four"), NPU) is None


# -- For every fleet --


@st.composite
def fleets(draw: st.DrawFn, *, chip: str = NPU) -> list[NodeSnapshot]:
    """Up to four nodes of up to eight cards, worn in any way."""
    geometry = draw(st.sampled_from([None, RINGS, EVEN, PAIRS]))
    return [
        node(
            f"n{place}",
            8,
            chip=chip,
            busy=draw(st.sets(st.integers(0, 7), max_size=8)),
            geometry=geometry,
            memory=draw(st.sampled_from([4, 16])),
            domains={"leaf": f"l{place // 2}"},
            cluster=f"c{place // 3}",
        )
        for place in range(draw(st.integers(1, 4)))
    ]


@cache
def groups(free: tuple[int, ...], cards: int, geometry: Geometry) -> tuple[frozenset[int], ...]:
    """Every set of free cards that the hardware would give out together."""
    return tuple(
        frozenset(chosen)
        for chosen in combinations(free, cards)
        if choose_cards(chosen, cards, geometry) is not None
    )


@cache
def most(free: tuple[int, ...], cards: int, geometry: Geometry) -> int:
    """The most such sets that can be had beside each other: every combination is tried."""
    best = 0
    for chosen in groups(free, cards, geometry):
        # Any solution that uses the first free card, or does without it.
        rest = tuple(index for index in free if index not in chosen and index > min(chosen))
        best = max(best, 1 + most(rest, cards, geometry))
    return best


def holds(nodes: Sequence[NodeSnapshot], cards: int, memory: int) -> int:
    """Replicas that those nodes hold, by trying everything."""
    total = 0
    for each in nodes:
        free = tuple(card.index for card in each.cards if card.free)
        replica_counts = most(free, cards, each.geometries.get(NPU, Geometry()))
        total += (
            min(replica_counts, each.capacity.memory // (memory << 30))
            if memory
            else replica_counts
        )
    return total


def domains(nodes: Sequence[NodeSnapshot], within: str) -> list[list[NodeSnapshot]]:
    """The pieces of the network under one of which the gang has to stand."""
    grouped: dict[tuple[str, str], list[NodeSnapshot]] = {}
    for each in nodes:
        grouped.setdefault((each.cluster, each.domains.get(within, "")), []).append(each)
    return list(grouped.values())


@settings(max_examples=examples(300))
@given(
    nodes=fleets(),
    cards=st.sampled_from([1, 2, 4, 8]),
    replicas=st.integers(1, 8),
    memory=st.sampled_from([0, 3]),
    within=st.sampled_from(["", "leaf"]),
)
def test_a_gang_of_equal_replicas_is_placed_whenever_that_is_possible(
    nodes: list[NodeSnapshot], cards: int, replicas: int, memory: int, within: str
) -> None:
    wanted = claim("c", role(cards, replicas, memory=memory), within=within)
    possible = any(holds(piece, cards, memory) >= replicas for piece in domains(nodes, within))
    found = placed(nodes, wanted)
    assert (found is not None) == possible
    if found is not None:
        assert sum(where(found).values()) == replicas


@settings(max_examples=examples(200))
@given(
    nodes=fleets(),
    roles=st.lists(
        st.tuples(st.sampled_from([1, 2, 4, 8]), st.integers(1, 3)), min_size=1, max_size=3
    ),
    within=st.sampled_from(["", "leaf"]),
)
def test_what_is_placed_is_whole_free_and_hangs_together(
    nodes: list[NodeSnapshot], roles: list[tuple[int, int]], within: str
) -> None:
    gang = claim(
        "c",
        *(role(cards, count, name=f"r{place}") for place, (cards, count) in enumerate(roles)),
        within=within,
    )
    found = placed(nodes, gang)
    assume(found is not None)
    assert found is not None
    by_name = {each.uid: each for each in nodes}
    free = {card.uid: card.index for each in nodes for card in each.cards if card.free}
    given_out = [card for replica in found for card in replica.cards]
    assert len(given_out) == len(set(given_out)) == gang.shape.cards
    assert set(given_out) <= set(free)
    for replica in found:
        geometry = by_name[replica.node].geometries.get(NPU, Geometry())
        indices = [free[card] for card in replica.cards]
        assert choose_cards(indices, len(indices), geometry) is not None
    hosts = [by_name[replica.node] for replica in found]
    assert len({each.cluster for each in hosts}) == 1
    if within:
        assert len({each.domains[within] for each in hosts}) == 1


@settings(max_examples=examples(100))
@given(data=st.data())
def test_fleets_of_equal_shape_give_equal_places_whatever_the_chip(data: st.DataObject) -> None:
    nodes = data.draw(fleets())
    cards = data.draw(st.sampled_from([1, 2, 4, 8]))
    replicas = data.draw(st.integers(1, 5))
    twins = [
        replace(
            each,
            cards=tuple(replace(card, chip=GPU) for card in each.cards),
            geometries={GPU: each.geometries[NPU]} if each.geometries else {},
        )
        for each in nodes
    ]
    first = placed(nodes, claim("c", role(cards, replicas)))
    second = placed(twins, claim("c", role(cards, replicas), chips=(GPU,)), chip=GPU)
    assert first == second


@pytest.mark.parametrize("cards", [2, 4])
def test_no_replica_crosses_a_ring_that_could_stay_inside_one(cards: int) -> None:
    """Four cards are free, two of each ring: no four together, but two."""
    found = placed([node("a", busy=(0, 1, 4, 5), geometry=RINGS)], claim("c", role(cards)))
    assert (found is not None) == (cards == 2)
