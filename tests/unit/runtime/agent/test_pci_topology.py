"""The agent reads from sysfs where cards are attached: NUMA node and nearest network adapters."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, cast

import pytest

from ninefold_runtime.agent.__main__ import send_periodically
from ninefold_runtime.agent.card_samples import SampleBatch
from ninefold_runtime.agent.pci_topology import card_topology_samples, normalized_pci_address
from ninefold_runtime.agent.readers.vendor_tools import AscendReader, NvidiaReader, VendorTool
from tests.unit.runtime.agent.test_readers import A3, NVIDIA

#: Two sockets. On the first, a switch with a card and an adapter, and another card behind a root port of its own.
SWITCH = "pci0000:16/0000:16:02.0/0000:17:00.0"
CARDS = {
    f"{SWITCH}/0000:18:00.0/0000:1b:00.0": 0,
    "pci0000:30/0000:30:01.0/0000:31:00.0": 0,
    "pci0000:9c/0000:9c:01.0/0000:9d:00.0": 1,
    "pci0000:b0/0000:b0:01.0/0000:b1:00.0": -1,
}
PRINTED = {0: "00000000:1B:00.0", 1: "00000000:31:00.0", 2: "0000:9D:00.0", 3: "0000:B1:00.0"}


class Host:
    """A tree like that below /sys, with relative links as the kernel makes them."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def device(self, path: str, *, numa_node: int) -> Path:
        folder = self.root / "sys/devices" / path
        folder.mkdir(parents=True)
        (folder / "numa_node").write_text(f"{numa_node}\n")
        self._link(self.root / "sys/bus/pci/devices" / folder.name, folder)
        return folder

    def nic(self, device: Path, *names: str) -> None:
        """``names`` as class/name, such as ``infiniband/mlx5_0``."""
        for name in names:
            folder = device / name
            folder.mkdir(parents=True)
            self._link(folder / "device", device)
            self._link(self.root / "sys/class" / name, folder)

    def _link(self, link: Path, target: Path) -> None:
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(os.path.relpath(target, link.parent))


@pytest.fixture
def host(tmp_path: Path) -> Host:
    host = Host(tmp_path)
    for path, numa_node in CARDS.items():
        host.device(path, numa_node=numa_node)
    return host


def found(host: Host) -> dict[str, dict[str, str]]:
    samples = card_topology_samples(PRINTED, root=host.root)
    assert {(sample.name, sample.value) for sample in samples} <= {("ninefold_agent_card_info", 1)}
    return {sample.labels["card"]: dict(sample.labels) for sample in samples}


def test_cards_bear_their_address_and_numa_node_and_none_where_the_kernel_knows_none(
    host: Host,
) -> None:
    assert found(host) == {
        "0": {"card": "0", "pci_address": "0000:1b:00.0", "numa_node": "0"},
        "1": {"card": "1", "pci_address": "0000:31:00.0", "numa_node": "0"},
        "2": {"card": "2", "pci_address": "0000:9d:00.0", "numa_node": "1"},
        "3": {"card": "3", "pci_address": "0000:b1:00.0"},
    }


def test_an_adapter_on_the_same_switch_is_nearer_than_one_of_the_same_numa_node(host: Host) -> None:
    near = host.device(f"{SWITCH}/0000:19:00.0/0000:1a:00.0", numa_node=0)
    host.nic(near, "infiniband/mlx5_0", "net/ens1np0")
    host.nic(host.device("pci0000:40/0000:40:01.0/0000:41:00.0", numa_node=0), "infiniband/mlx5_1")
    cards = found(host)

    assert cards["0"]["nics_same_switch"] == "mlx5_0"
    assert cards["0"]["nics_same_numa"] == "mlx5_1"
    assert "nics_same_switch" not in cards["1"]
    assert cards["1"]["nics_same_numa"] == "mlx5_0,mlx5_1"
    assert cards["2"].keys() == cards["2"].keys() - {"nics_same_switch", "nics_same_numa"}


def test_devices_directly_on_a_host_bridge_share_no_switch(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.device("pci0000:00/0000:00:05.0", numa_node=-1)
    host.nic(host.device("pci0000:00/0000:00:06.0", numa_node=-1), "infiniband/mlx5_0")

    (sample,) = card_topology_samples({0: "0000:00:05.0"}, root=tmp_path)

    assert sample.labels == {"card": "0", "pci_address": "0000:00:05.0"}


def test_virtual_functions_and_interfaces_without_pci_are_no_adapters_and_virtio_is_one(
    host: Host,
) -> None:
    physical = host.device("pci0000:9c/0000:9c:02.0/0000:9e:00.0", numa_node=1)
    virtual = host.device("pci0000:9c/0000:9c:02.0/0000:9e:00.1", numa_node=1)
    (virtual / "physfn").symlink_to(os.path.relpath(physical, virtual))
    host.nic(physical, "net/ens2")
    host.nic(virtual, "net/ens2v0")
    virtio = host.device("pci0000:9c/0000:9c:03.0", numa_node=1) / "virtio0"
    host.nic(virtio, "net/eth0")
    (host.root / "sys/class/net/lo").mkdir()

    assert found(host)["2"]["nics_same_numa"] == "ens2,eth0"


def test_without_sysfs_the_address_is_all_that_is_known(tmp_path: Path) -> None:
    (sample,) = card_topology_samples({0: "0000:1B:00.0"}, root=tmp_path)
    assert sample.labels == {"card": "0", "pci_address": "0000:1b:00.0"}


@pytest.mark.parametrize(
    ("printed", "address"),
    [("00000000:1B:00.0", "0000:1b:00.0"), ("00010000:E1:00.1", "10000:e1:00.1"), ("NA", "")],
)
def test_addresses_are_named_as_sysfs_names_them(printed: str, address: str) -> None:
    assert normalized_pci_address(printed) == address


def test_readers_report_the_pci_address_of_each_card(tmp_path: Path) -> None:
    for name, text in (("nvidia", NVIDIA), ("ascend", A3)):
        (tmp_path / name).write_text(text)
    nvidia = NvidiaReader(node="n0", tool=VendorTool(("cat", str(tmp_path / "nvidia"))))
    ascend = AscendReader(tool=VendorTool(("cat", str(tmp_path / "ascend"))))

    assert nvidia.read().addresses == {0: "00000000:1B:00.0", 1: "00000000:3D:00.0"}
    assert ascend.read().addresses == {2: "0000:99:00.0", 3: "0000:9B:00.0"}


class Collected(Exception):
    """Ends the agent's loop after its first batch."""


class Sender:
    """Keeps what the loop would send."""

    waiting = dropped = refused = untaken = 0

    def __init__(self) -> None:
        self.text = ""

    def add(self, batch: SampleBatch) -> None:
        self.text = batch.text

    def pause(self, seconds: float) -> None:
        raise Collected


def test_each_batch_says_where_the_cards_are_attached(tmp_path: Path) -> None:
    printed, sender = tmp_path / "printed", Sender()
    printed.write_text(NVIDIA)
    reader = NvidiaReader(node="n0", tool=VendorTool(("cat", str(printed))))

    with pytest.raises(Collected):
        send_periodically(reader, sender=cast("Any", sender), every_seconds=1)

    info = [
        line for line in sender.text.splitlines() if line.startswith("ninefold_agent_card_info")
    ]
    assert [line.partition(",numa_node")[0].partition("}")[0] for line in info] == [
        'ninefold_agent_card_info{card="0",pci_address="0000:1b:00.0"',
        'ninefold_agent_card_info{card="1",pci_address="0000:3d:00.0"',
    ]
