"""From a few lines to nodes, and what is no fleet."""

from __future__ import annotations

import tomllib
from collections import Counter
from typing import Any

import pytest

from controlplane.domain.simulation.fleets import FleetDescriptionRefused, parse_simulated_fleet
from controlplane.ports.adapter_registry import all_chips

GPUS = """
[[groups]]
name = "h800"
chip = "nvidia-h800"
nodes = 128
levels = { leaf = 16, spine = 64 }
"""
GROUP: dict[str, Any] = {"name": "a", "chip": "nvidia-h800", "nodes": 8}


def described(**values: Any) -> dict[str, Any]:
    return {"groups": [{**GROUP, **values}]}


def test_a_short_description_makes_a_thousand_cards() -> None:
    fleet = parse_simulated_fleet(tomllib.loads(GPUS), chips=all_chips())
    nodes = list(fleet.nodes())
    assert fleet.cards == 1024
    assert [node.name for node in nodes] == sorted({node.name for node in nodes})
    assert list(nodes[0].domains) == ["spine", "leaf"]
    leaves = Counter(node.domains["leaf"] for node in nodes)
    assert set(leaves.values()) == {16}
    assert len({node.domains["spine"] for node in nodes}) == 2


def test_each_leaf_belongs_to_one_spine() -> None:
    nodes = list(parse_simulated_fleet(tomllib.loads(GPUS), chips=all_chips()).nodes())
    pairs = {(node.domains["leaf"], node.domains["spine"]) for node in nodes}
    assert len(pairs) == len({leaf for leaf, _ in pairs})


@pytest.mark.parametrize(
    ("chip", "rings", "numa"),
    [
        ("nvidia-h800", [tuple(range(8))], [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ("ascend-910a", [(0, 1, 2, 3), (4, 5, 6, 7)], [(0, 1, 2, 3), (4, 5, 6, 7)]),
        ("ascend-910c", [], [tuple(range(8)), tuple(range(8, 16))]),
        ("nvidia-l4", [], [(0, 1, 2, 3), (4, 5, 6, 7)]),
    ],
)
def test_cards_have_the_rings_of_their_chip(
    chip: str, rings: list[tuple[int, ...]], numa: list[tuple[int, ...]]
) -> None:
    (group,) = parse_simulated_fleet(described(chip=chip), chips=all_chips()).groups
    assert (list(group.rings), list(group.numa)) == (rings, numa)


def test_half_a_node_has_the_rings_of_its_cards() -> None:
    (group,) = parse_simulated_fleet(
        described(chip="ascend-910a", cards=4), chips=all_chips()
    ).groups
    assert group.rings == ((0, 1, 2, 3),)


REFUSED = [
    ({}, "at least one group"),
    ({"groups": []}, "at least one group"),
    ({"groups": ["h800"]}, "a group is a table"),
    ({"groups": [GROUP], "nodes": 3}, "groups and nothing else, got nodes"),
    ({"groups": [GROUP, GROUP]}, "two groups are called 'a'"),
    (described(name="Big one"), "a group's name is 1 to 40 of a-z"),
    (described(chip="nvidia-h8000"), "did you mean nvidia-h800"),
    (described(chip="abacus"), "Known: .*ascend-910b3.*nvidia-h800"),
    (described(nodes=0), "nodes is a whole number from 1 to 20000, got 0"),
    (described(nodes=-3), "got -3"),
    (described(nodes=True), "got True"),
    (described(nodes="many"), "got 'many'"),
    (described(cards=9), "a node of nvidia-h800 has at most 8 cards, got 9"),
    (described(chip="ascend-910c", cards=3), "in groups of 2, got 3"),
    (described(cores=0), "cores is a whole number"),
    (described(levels={"aisle": 2}), "no level is called 'aisle'; levels are superpod, spine"),
    (described(levels={"leaf": 3}), "the 8 nodes of the group do not divide into a leaf of 3"),
    (described(levels={"leaf": 4, "spine": 2}), "the 2 nodes of spine do not divide into a leaf"),
    (described(levels=16), "levels are names and nodes of each"),
    (described(numa="0-3_4-9"), "numa names card 8; a node's last card is 7"),
    (described(numa="all"), "'all' is not a list of card groups"),
    (described(labels={"rack": 7}), "labels are names and texts"),
    (described(node=1), "unknown 'node'; known: cards, chip"),
    ({"groups": [{**GROUP, "name": n, "nodes": 15_000} for n in "ab"]}, "at most 20000 nodes"),
]


@pytest.mark.parametrize(
    ("description", "message"), REFUSED, ids=[message for _, message in REFUSED]
)
def test_an_invalid_description_is_refused_with_the_value(
    description: dict[str, Any], message: str
) -> None:
    with pytest.raises(FleetDescriptionRefused, match=message):
        parse_simulated_fleet(description, chips=all_chips())
