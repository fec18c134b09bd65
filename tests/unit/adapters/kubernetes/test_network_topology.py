"""Nodes stand in the network where the operator, Volcano or labels say, in that order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes.network_topology import domains_of
from tests.unit.adapters.kubernetes.api_objects import node


def domains(labels: Mapping[str, str], **more: Any) -> Mapping[str, str]:
    return domains_of([node("n1", labels=labels)], **more)["n1"]


def hypernode(
    name: str, tier: int, *members: Mapping[str, Any], kind: str = "Node", called: str = ""
) -> dict[str, Any]:
    listed = [{"type": kind, "selector": member} for member in members]
    spec = {"tier": tier, "members": listed} | ({"tierName": called} if called else {})
    return {"metadata": {"name": name}, "spec": spec}


def exactly(name: str) -> dict[str, Any]:
    return {"exactMatch": {"name": name}}


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        ({}, {}),
        ({"topology.kubernetes.io/zone": "z1"}, {"spine": "z1"}),
        ({"topology.kubernetes.io/rack": "r7"}, {"rack": "r7"}),
        ({"topology.rook.io/rack": "r8"}, {"rack": "r8"}),
        ({"nvidia.com/gpu.clique": "0c5a.2"}, {"superpod": "0c5a.2"}),
        (
            {
                "network.topology.nvidia.com/leaf": "sw-11",
                "network.topology.nvidia.com/spine": "sw-2",
                "network.topology.nvidia.com/accelerator": "nvl-3",
            },
            {"superpod": "nvl-3", "spine": "sw-2", "leaf": "sw-11"},
        ),
        (
            {"huawei.com/topotree.superpodid": "3", "huawei.com/topotree.rackid": "0"},
            {"superpod": "3", "rack": "3-0"},
        ),
        ({"huawei.com/topotree.superpodid": "-1"}, {}),
    ],
)
def test_labels_of_makers_and_of_kubernetes_name_domains(
    labels: Mapping[str, str], found: Mapping[str, str]
) -> None:
    assert domains(labels) == found


def test_a_zone_is_a_spine_only_where_nothing_says_more() -> None:
    labels = {"topology.kubernetes.io/zone": "z1", "network.topology.nvidia.com/spine": "sw-2"}
    assert domains(labels) == {"spine": "sw-2"}


def test_levels_come_outermost_first() -> None:
    labels = {f"ninefold.io/{level}": level for level in ("rack", "leaf", "superpod", "spine")}
    assert list(domains(labels)) == ["superpod", "spine", "leaf", "rack"]


def test_the_operators_word_goes_before_hypernodes_and_labels() -> None:
    labels = {"network.topology.nvidia.com/leaf": "sw-11", "ninefold.io/leaf": "l1"}
    tree = [hypernode("s0", 1, exactly("n1"))]
    assert domains(labels, hypernodes=tree) == {"leaf": "l1"}
    assert domains({"topology.ninefold.dev/leaf": "l2"}, hypernodes=tree) == {"leaf": "l2"}


def test_tiers_are_leaf_spine_and_superpod_from_the_tightest_outwards() -> None:
    tree = [
        hypernode("top", 5, exactly("mid"), kind="HyperNode"),
        hypernode(
            "mid", 2, exactly("low-0"), {"regexMatch": {"pattern": "^low-1$"}}, kind="HyperNode"
        ),
        hypernode("low-0", 1, exactly("n1")),
        hypernode("low-1", 1, {"regexMatch": {"pattern": "^n[23]$"}}),
    ]
    found = domains_of([node("n1"), node("n2"), node("n9")], hypernodes=tree)
    assert found["n1"] == {"superpod": "top", "spine": "mid", "leaf": "low-0"}
    assert found["n2"] == {"superpod": "top", "spine": "mid", "leaf": "low-1"}
    assert found["n9"] == {}


def test_a_tier_whose_name_is_a_level_is_that_level() -> None:
    tree = [
        hypernode("pod-0", 1, exactly("n1"), called="Superpod"),
        hypernode("tor-0", 2, exactly("pod-0"), kind="HyperNode"),
    ]
    assert domains({}, hypernodes=tree) == {"superpod": "pod-0", "leaf": "tor-0"}


def test_members_are_chosen_by_labels_too() -> None:
    by_labels = {
        "labelMatch": {
            "matchLabels": {"pool": "a"},
            "matchExpressions": [
                {"key": "gen", "operator": "In", "values": ["3", "4"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }
    }
    tree = [hypernode("low", 1, by_labels)]
    assert domains({"pool": "a", "gen": "4"}, hypernodes=tree) == {"leaf": "low"}
    assert domains({"pool": "a", "gen": "5"}, hypernodes=tree) == {}
    assert domains({"pool": "a", "gen": "4", "old": "yes"}, hypernodes=tree) == {}


def test_a_circle_and_a_pattern_that_cannot_be_read_harm_nothing() -> None:
    tree = [
        hypernode("a", 1, exactly("n1")),
        hypernode("b", 2, exactly("a"), exactly("c"), kind="HyperNode"),
        hypernode("c", 3, exactly("b"), kind="HyperNode"),
        hypernode("d", 1, {"regexMatch": {"pattern": "(("}}),
    ]
    assert domains({}, hypernodes=tree) == {"superpod": "c", "spine": "b", "leaf": "a"}
