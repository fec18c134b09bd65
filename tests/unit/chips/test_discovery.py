"""Labels and resources of a node become cards of a known chip, with rings and memory."""

from __future__ import annotations

import pytest

from controlplane.domain.common.resources import GIB, MIB
from controlplane.domain.common.topology import Geometry, InvalidCardGroups, parse_card_groups
from controlplane.ports import adapter_registry
from controlplane.ports.chips import DiscoveredCards, discover_cards


def found_on(
    allocatable: dict[str, str],
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> DiscoveredCards:
    (found,) = discover_cards(
        adapter_registry.chip_plugins().values(),
        labels=labels or {},
        annotations=annotations or {},
        allocatable={"cpu": "64", "memory": "1056Gi", "pods": "110", **allocatable},
    )
    return found


@pytest.mark.parametrize(
    ("label", "name"),
    [
        ("NVIDIA-H800", "nvidia-h800"),
        ("NVIDIA-A100-SXM4-80GB", "nvidia-a100-80gb"),
        ("NVIDIA-A100-SXM4-40GB", "nvidia-a100-40gb"),
        ("NVIDIA-H100-80GB-HBM3", "nvidia-h100"),
        ("Tesla-T4", "nvidia-t4"),
        ("NVIDIA-GeForce-RTX-4090", "nvidia-rtx-4090"),
    ],
)
def test_a_product_label_names_the_chip(label: str, name: str) -> None:
    found = found_on({"nvidia.com/gpu": "8"}, {"nvidia.com/gpu.product": label})
    assert found.chip is not None
    assert (found.chip.name, found.count) == (name, 8)


def test_memory_is_what_the_node_says() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-L40S", "nvidia.com/gpu.memory": "46068"}
    assert found_on({"nvidia.com/gpu": "4"}, labels).memory == 46068 * MIB
    labels = {
        "node.kubernetes.io/npu.chip.name": "910B4",
        "mind-cluster/npu-chip-memory": "64G",
    }
    assert found_on({"huawei.com/Ascend910": "8"}, labels).memory == 64 * GIB


@pytest.mark.parametrize(
    ("chip", "kind", "rings", "sizes", "aligned"),
    [
        ("910A", "module", "0-3_4-7", (1, 2, 4, 8), 1),
        ("910A", "half", "0-3", (1, 2, 4), 1),
        ("910B3", "module-910b-8", "0-7", (), 1),
        ("910B1", "module-910b-16", "0-7_8-15", (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16), 1),
        ("910C", "module-a3-16-super-pod", "", (1, 2, 4, 6, 8, 10, 12, 14, 16), 2),
        ("910C", "something new", "", (1, 2, 4, 6, 8, 10, 12, 14, 16), 2),
    ],
)
def test_the_kind_of_server_says_how_cards_hang_together(
    chip: str, kind: str, rings: str, sizes: tuple[int, ...], aligned: int
) -> None:
    labels = {"node.kubernetes.io/npu.chip.name": chip, "accelerator-type": kind}
    geometry = found_on({"huawei.com/Ascend910": "8"}, labels).geometry
    assert geometry.rings == (parse_card_groups(rings) if rings else ())
    assert geometry.sizes == sizes
    assert geometry.aligned_to == aligned


def test_an_operators_word_goes_before_all_others() -> None:
    found = found_on(
        {"nvidia.com/gpu": "4"},
        {"nvidia.com/gpu.product": "NVIDIA-A100-80GB-PCIe"},
        {"ninefold.io/rings": "0-1_2-3", "ninefold.io/numa": "0-3", "ninefold.io/nics": "0.2_1.3"},
    )
    assert found.geometry == Geometry(
        rings=((0, 1), (2, 3)), numa=((0, 1, 2, 3),), nics=((0, 2), (1, 3))
    )


def test_a_word_that_cannot_be_read_is_refused_and_passed_over_by_the_scheduler() -> None:
    said = {"ninefold.io/rings": "all of them"}
    with pytest.raises(InvalidCardGroups, match="all of them"):
        found_on({"nvidia.com/gpu": "4"}, {}, said)
    default = adapter_registry.all_chips()["nvidia-h800"].geometry
    assert adapter_registry.geometries_on_node(said, ["nvidia-h800", "cpu", "nobody"]) == {
        "nvidia-h800": default
    }


def test_a_chip_that_nobody_knows_keeps_its_vendor_and_count() -> None:
    found = found_on({"nvidia.com/gpu": "2"}, {"nvidia.com/gpu.product": "NVIDIA-X9000"})
    assert (found.chip, found.vendor, found.count) == (None, "nvidia", 2)


def test_the_only_chip_of_a_resource_needs_no_label() -> None:
    found = found_on({"alibabacloud.com/ppu": "16"})
    assert found.chip is not None
    assert found.chip.name == "thead-ppu"


def test_slices_are_chips_of_their_own_with_the_memory_of_their_profile() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H800", "nvidia.com/gpu.memory": "81559"}
    found = found_on({"nvidia.com/mig-1g.10gb": "7", "nvidia.com/gpu": "0"}, labels)
    assert found.chip is not None
    assert (found.chip.name, found.chip.slice_of) == ("nvidia-h800-mig-1g-10gb", "nvidia-h800")
    assert (found.resource, found.count) == ("nvidia.com/mig-1g.10gb", 7)
    assert found.memory == found.chip.memory == 9728 * MIB
    # What is said of the node's whole cards does not hold for their slices.
    said = {**labels, "ninefold.io/numa": "0-3_4-7"}
    assert adapter_registry.geometries_on_node(said, [found.chip.name]) == {
        found.chip.name: Geometry(sizes=(1,))
    }


def test_a_slice_profile_that_no_plug_in_knows_has_no_memory_of_a_whole_card() -> None:
    labels = {"nvidia.com/gpu.product": "NVIDIA-H800"}
    found = found_on({"nvidia.com/mig-9g.99gb": "7"}, labels)
    assert (found.count, found.memory) == (7, 0)
