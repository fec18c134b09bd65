"""The network that labels tell as Volcano's HyperNodes: a tree, the tightest level first."""

from __future__ import annotations

import re
from typing import Any

from controlplane.adapters.clusters.volcano.object_sync import (
    ChangeAction,
    hyper_nodes,
    network_tiers,
    plan_hyper_nodes,
)
from tests.golden.manifests import compare
from tests.unit.adapters.volcano.schemas import assert_valid
from tests.unit.adapters.volcano.trees import OURS

NODES = {
    "n1": {"superpod": "sp1", "spine": "s1", "leaf": "l1"},
    "n2": {"superpod": "sp1", "spine": "s1", "leaf": "l2"},
    "n3": {"superpod": "sp1", "spine": "s2", "leaf": "l1"},
    "n4": {"superpod": "sp1", "spine": "s2"},
    "n5": {},
}


def members(node: dict[str, Any]) -> list[tuple[str, str]]:
    return [(one["type"], one["selector"]["exactMatch"]["name"]) for one in node["spec"]["members"]]


def test_a_network_is_what_the_file_says_and_fits_the_schema() -> None:
    manifests = hyper_nodes(NODES, installation=OURS)
    compare(manifests, case="volcano/hyper-nodes")
    assert_valid(manifests)


def test_every_node_that_is_somewhere_stands_in_exactly_one_leaf_and_every_domain_below_one_other() -> (
    None
):
    manifests = hyper_nodes(NODES, installation=OURS)
    every = [member for one in manifests for member in members(one)]
    assert len(set(every)) == len(every)
    assert {name for kind, name in every if kind == "Node"} == {"n1", "n2", "n3", "n4"}
    below = {name for kind, name in every if kind == "HyperNode"}
    (top,) = [one for one in manifests if one["metadata"]["name"] not in below]
    assert top["spec"]["tier"] == 3
    for one in manifests:
        assert len({kind for kind, _ in members(one)}) == 1
        assert re.fullmatch(r"[a-z0-9][a-z0-9-]{0,61}[a-z0-9]", one["metadata"]["name"])
    tier = {one["metadata"]["name"]: one["spec"]["tier"] for one in manifests}
    for one in manifests:
        assert all(
            tier[name] < one["spec"]["tier"] for kind, name in members(one) if kind == "HyperNode"
        )


def test_domains_of_one_name_in_different_outer_ones_are_different() -> None:
    leaves = [
        one
        for one in hyper_nodes(NODES, installation=OURS)
        if one["spec"].get("tierName") == "leaf"
    ]
    assert sorted(members(one) for one in leaves) == [
        [("Node", "n1")],
        [("Node", "n2")],
        [("Node", "n3")],
    ]


def test_the_tightest_level_that_is_known_is_the_first() -> None:
    assert network_tiers(NODES.values()) == {"leaf": 1, "spine": 2, "superpod": 3}
    assert network_tiers([{"spine": "s1"}]) == {"spine": 1}
    assert network_tiers([{}]) == {}


def test_only_what_changed_and_what_is_ours_is_touched() -> None:
    before = hyper_nodes(NODES, installation=OURS)
    foreign = {"metadata": {"name": "discovered", "labels": {}}, "spec": {"tier": 1, "members": []}}
    after = hyper_nodes(
        {**NODES, "n4": {"superpod": "sp1", "spine": "s1", "leaf": "l2"}}, installation=OURS
    )
    changes = plan_hyper_nodes(after, [*before, foreign], installation=OURS)
    assert plan_hyper_nodes(before, [*before, foreign], installation=OURS) == ()
    assert {change.action for change in changes} == {ChangeAction.APPLY, ChangeAction.DELETE}
    names = {change.manifest["metadata"]["name"] for change in changes}
    assert "discovered" not in names
