"""The levels of the network, as the nodes tell them."""

from __future__ import annotations

import numpy as np

from controlplane.domain.scheduling.network_topology import CLUSTER, NODE, OUTSIDE, NetworkTopology
from tests.unit.domain.scheduling.fleets import node


def names(topology: NetworkTopology) -> list[str]:
    return [level.name for level in topology.levels]


def test_levels_go_from_the_node_out_to_the_cluster() -> None:
    topology = NetworkTopology([node("a", domains={"spine": "s1", "leaf": "l1"})])
    assert names(topology) == [NODE, "leaf", "spine", CLUSTER]


def test_clusters_with_other_levels_keep_the_order_of_each() -> None:
    topology = NetworkTopology(
        [
            node("a", domains={"superpod": "p1", "leaf": "l1"}),
            node("b", cluster="c2", domains={"spine": "s1", "superpod": "p2", "rack": "r1"}),
        ]
    )
    found = names(topology)
    assert found.index("leaf") < found.index("superpod") < found.index("spine")
    assert found.index("rack") < found.index("superpod")
    assert (found[0], found[-1]) == (NODE, CLUSTER)


def test_domains_of_the_same_name_in_two_clusters_are_two() -> None:
    topology = NetworkTopology(
        [node("a", domains={"leaf": "l1"}), node("b", cluster="c2", domains={"leaf": "l1"})]
    )
    (leaf,) = topology.between("leaf", "leaf")
    assert leaf.domain.tolist() == [0, 1]


def test_a_node_that_stands_in_no_domain_of_a_level_counts_in_none() -> None:
    topology = NetworkTopology([node("a", domains={"leaf": "l1"}), node("b")])
    (leaf,) = topology.between("leaf", "leaf")
    assert leaf.domain.tolist() == [0, OUTSIDE]
    assert leaf.totals(np.array([3, 5], dtype=np.int64)).tolist() == [3]
    assert leaf.rows(0).tolist() == [True, False]


def test_a_wish_for_a_level_that_nobody_knows_starts_at_the_node_and_a_demand_finds_none() -> None:
    topology = NetworkTopology([node("a", domains={"leaf": "l1"})])
    assert [level.name for level in topology.between("moon", "leaf")] == [NODE, "leaf"]
    assert topology.between(NODE, "moon") == ()


def test_a_wish_for_a_wider_level_than_the_demand_is_the_demand() -> None:
    topology = NetworkTopology([node("a", domains={"spine": "s1", "leaf": "l1"})])
    assert [level.name for level in topology.between("spine", "leaf")] == ["leaf"]


def test_two_rows_of_one_node_are_in_one_domain() -> None:
    both = node("a")
    assert NetworkTopology([both, both]).levels[0].domain.tolist() == [0, 0]
