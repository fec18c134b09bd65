"""Nodes and the pods of others become nodes with cards, and what others leave of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes.inventory import (
    cards_of_node,
    observed_nodes,
    unrecognized_card_resources,
    untolerated_taints,
)
from controlplane.domain.common.accelerators import Chip
from controlplane.domain.common.resources import GIB
from controlplane.domain.common.topology import network_domains
from controlplane.ports import adapter_registry
from controlplane.ports.chips import ChipPlugin, VendorPodSettings, VendorProfile
from controlplane.ports.clusters import ObservedNode
from tests.unit.adapters.kubernetes.api_objects import ASCEND_910A, H800, OURS, READY, node, pod

GPU, NPU = "nvidia.com/gpu", "huawei.com/Ascend910"
PLUGINS = tuple(adapter_registry.chip_plugins().values())


def inventory_of(
    seen: Mapping[str, Any],
    *pods: Mapping[str, Any],
    cpu_cards: int = 0,
    plugins: Sequence[ChipPlugin] = PLUGINS,
) -> ObservedNode:
    (found,) = observed_nodes([seen], pods, installation=OURS, plugins=plugins, cpu_cards=cpu_cards)
    return found


class Writing:
    """Chips whose device plug-in writes into each pod which devices it has."""

    vendor = "ascend"

    def profile(self) -> VendorProfile:
        profile = adapter_registry.chip_plugins()["ascend"].profile()
        extras = VendorPodSettings(device_annotation=NPU, device_name="Ascend910-{index}")
        return replace(profile, pods=extras)

    def chips(self) -> tuple[Chip, ...]:
        return adapter_registry.chip_plugins()["ascend"].chips()

    def environment(self, chip: Chip, *, cards: tuple[int, ...]) -> Mapping[str, str]:
        return adapter_registry.chip_plugins()["ascend"].environment(chip, cards=cards)


def taken(found: ObservedNode) -> list[int]:
    return [card.index for card in found.cards if card.taken]


def ill(found: ObservedNode) -> list[int]:
    return [card.index for card in found.cards if not card.healthy]


def test_cards_are_counted_over_resources_in_the_order_of_their_names() -> None:
    found = inventory_of(node("n1", {GPU: 2, NPU: 4}, labels={**H800, **ASCEND_910A}))
    assert [(card.index, card.chip) for card in found.cards] == [
        *((index, "ascend-910a") for index in range(4)),
        *((index, "nvidia-h800") for index in (4, 5)),
    ]


def test_cards_have_the_memory_and_the_rings_of_their_chip() -> None:
    found = inventory_of(node("n1", {NPU: 8}, labels=ASCEND_910A))
    assert found.rings == ((0, 1, 2, 3), (4, 5, 6, 7))
    assert {card.memory for card in found.cards} == {
        adapter_registry.all_chips()["ascend-910a"].memory
    }


def test_nodes_come_in_name_order() -> None:
    nodes = [node("b"), node("a"), node("c")]
    found = observed_nodes(nodes, (), installation=OURS, plugins=PLUGINS)
    assert [each.name for each in found] == ["a", "b", "c"]


def test_a_chip_that_no_plug_in_knows_is_left_out_and_named() -> None:
    seen = node("n1", {GPU: 2}, labels={"nvidia.com/gpu.product": "NVIDIA-X9000"})
    assert inventory_of(seen).cards == ()
    assert unrecognized_card_resources([seen], plugins=PLUGINS) == ("2 × nvidia.com/gpu on n1",)


def test_slices_are_cards_of_their_own_behind_the_cards_that_they_are_parts_of() -> None:
    resources = {GPU: 2, "nvidia.com/mig-1g.10gb": 4, "nvidia.com/mig-3g.40gb": 2}
    found = inventory_of(node("n1", resources, labels={**H800, "nvidia.com/gpu.count": "4"}))

    assert [(card.index, card.chip, card.parent) for card in found.cards] == [
        (0, "nvidia-h800", None),
        (1, "nvidia-h800", None),
        (2, "nvidia-h800", None),
        (3, "nvidia-h800", None),
        *((index, "nvidia-h800-mig-1g-10gb", 2) for index in (4, 5)),
        *((index, "nvidia-h800-mig-1g-10gb", 3) for index in (6, 7)),
        (8, "nvidia-h800-mig-3g-40gb", 2),
        (9, "nvidia-h800-mig-3g-40gb", 3),
    ]
    assert [card.index for card in found.cards if card.partitioned] == [2, 3]


@pytest.mark.parametrize(
    ("count", "parents"), [("", [0] * 7), ("none", [0] * 7), ("2", [0] * 4 + [1] * 3)]
)
def test_every_slice_has_a_parent_whatever_the_node_says(count: str, parents: list[int]) -> None:
    labels = {**H800, "nvidia.com/gpu.count": count}
    cards = inventory_of(node("n1", {"nvidia.com/mig-1g.10gb": 7}, labels=labels)).cards

    assert [card.parent for card in cards if not card.partitioned] == parents
    assert {card.index for card in cards if card.partitioned} == set(parents)


def test_slices_that_pods_of_others_hold_are_taken() -> None:
    slices = "huawei.com/Ascend310P-2c"
    seen = node("n1", {slices: 4}, labels={"node.kubernetes.io/npu.chip.name": "310P3"})
    found = inventory_of(seen, pod("theirs", requests={slices: "1"}))
    assert [card.chip for card in found.cards] == ["ascend-310p", *["ascend-310p-vir02"] * 4]
    assert taken(found) == [4]


def test_a_taint_that_is_named_like_whole_cards_keeps_no_slice_out() -> None:
    seen = node(
        "n1",
        {"nvidia.com/mig-1g.10gb": 7},
        labels=H800,
        taints=[{"key": GPU, "value": "present", "effect": "NoSchedule"}],
    )
    assert inventory_of(seen).ready
    slices = [card for card in cards_of_node(seen, plugins=PLUGINS, cpu_cards=0) if card.resource]
    assert {card.card_resource for card in slices} == {GPU}


def test_slices_of_an_unknown_profile_are_left_out() -> None:
    assert inventory_of(node("n1", {"nvidia.com/mig-9g.99gb": 7}, labels=H800)).cards == ()


def test_processors_are_cards_only_where_the_profile_says_so() -> None:
    assert inventory_of(node("n1")).cards == ()
    assert [card.chip for card in inventory_of(node("n1"), cpu_cards=2).cards] == ["cpu", "cpu"]
    both = inventory_of(node("n1", {GPU: 1}, labels=H800), cpu_cards=2)
    assert [card.chip for card in both.cards] == ["nvidia-h800"]


def test_what_others_asked_for_is_not_ours_to_give() -> None:
    found = inventory_of(
        node("n1"),
        pod("theirs", requests={"cpu": "1500m", "memory": "12Gi"}),
        pod("ended", requests={"cpu": "32"}, phase="Succeeded"),
        pod("ours", requests={"cpu": "8", "memory": "64Gi"}, ours=True),
        pod("elsewhere", on="n2", requests={"cpu": "16"}),
    )
    assert (found.capacity.cpu, found.capacity.memory) == (62_500, 500 * GIB)


def test_a_node_on_which_others_asked_for_more_than_there_is_has_nothing_left() -> None:
    assert inventory_of(node("n1"), pod("theirs", requests={"cpu": "100"})).capacity.cpu == 0


def test_cards_that_others_hold_are_taken_from_the_end_beside_those_that_we_have() -> None:
    eight = node("n1", {GPU: 8}, labels=H800)
    theirs = pod("theirs", requests={GPU: "2"})
    assert taken(inventory_of(eight, theirs)) == [6, 7]
    assert taken(
        inventory_of(eight, theirs, pod("ours", requests={GPU: "3"}, ours=True, cards="5,6,7"))
    ) == [
        3,
        4,
    ]
    # What we had is free again once our pod has ended, finalizer or not.
    ended = pod("ours", requests={GPU: "3"}, ours=True, cards="5,6,7", phase="Failed")
    assert taken(inventory_of(eight, theirs, ended)) == [6, 7]


def test_cards_of_another_installation_are_taken_as_well() -> None:
    other = pod("theirs", requests={GPU: "1"}, ours=True)
    other["metadata"]["labels"]["ninefold.io/installation"] = "another"
    assert taken(inventory_of(node("n1", {GPU: 2}, labels=H800), other)) == [1]


def test_where_the_plug_in_writes_down_its_devices_the_true_ones_are_taken() -> None:
    known = pod("theirs", requests={NPU: "2"}, annotations={NPU: "Ascend910-0,Ascend910-3"})
    unsaid = pod("more", requests={NPU: "1"})
    found = inventory_of(
        node("n1", {NPU: 8}, labels=ASCEND_910A), known, unsaid, plugins=[Writing()]
    )
    assert taken(found) == [0, 3, 7]


def test_devices_that_the_plug_in_took_out_are_not_healthy_and_keep_their_index() -> None:
    found = inventory_of(
        node("n1", {GPU: 8}, usable={GPU: 6}, labels=H800), pod("t", requests={GPU: "1"})
    )
    assert (len(found.cards), ill(found), taken(found)) == (8, [6, 7], [5])


@pytest.mark.parametrize(
    ("more", "ready"),
    [
        ({}, True),
        ({"unschedulable": True}, False),
        ({"conditions": ({**READY, "status": "False"},)}, False),
        ({"conditions": ({**READY, "status": "Unknown"},)}, False),
        ({"conditions": ()}, False),
        ({"taints": ({"key": "team", "value": "a", "effect": "NoSchedule"},)}, False),
        ({"taints": ({"key": "team", "effect": "NoExecute"},)}, False),
        ({"taints": ({"key": "team", "effect": "PreferNoSchedule"},)}, True),
        ({"taints": ({"key": GPU, "value": "present", "effect": "NoSchedule"},)}, True),
    ],
)
def test_a_node_is_ready_if_our_pods_may_come_and_it_runs_them(
    more: Mapping[str, Any], *, ready: bool
) -> None:
    assert inventory_of(node("n1", {GPU: 8}, labels=H800, **more)).ready is ready


def test_taints_that_keep_us_away_are_said_as_kubectl_writes_them() -> None:
    taints = [{"key": "team", "value": "a", "effect": "NoSchedule"}]
    assert untolerated_taints(node("n1", taints=taints), resources=()) == ("team=a:NoSchedule",)


def test_labels_hold_the_place_in_the_network_and_what_the_operator_annotated() -> None:
    found = inventory_of(
        node(
            "n1",
            {GPU: 4},
            labels={**H800, "topology.kubernetes.io/rack": "r7"},
            annotations={"ninefold.io/rings": "0-1_2-3", "somebody.else/says": "much"},
        )
    )
    assert found.labels is not None
    assert network_domains(found.labels) == {"rack": "r7"}
    assert found.labels["ninefold.io/rings"] == "0-1_2-3"
    assert "somebody.else/says" not in found.labels
    assert found.rings == ((0, 1), (2, 3))


def test_a_word_on_rings_that_cannot_be_read_leaves_what_is_usual() -> None:
    seen = node("n1", {GPU: 8}, labels=H800, annotations={"ninefold.io/rings": "all of them"})
    assert inventory_of(seen).rings == adapter_registry.all_chips()["nvidia-h800"].rings


def test_a_card_is_launched_through_the_resource_that_it_was_seen_by() -> None:
    seen = node("n1", {GPU: 2, NPU: 1}, labels={**H800, **ASCEND_910A})
    cards = cards_of_node(seen, plugins=PLUGINS, cpu_cards=0)
    observed = inventory_of(seen).cards
    assert [(card.index, card.chip) for card in cards] == [
        (card.index, card.chip) for card in observed
    ]
    assert [card.resource for card in cards] == [NPU, GPU, GPU]
