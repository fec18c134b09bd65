"""Where the cards of a node are attached: PCI address, NUMA node and nearest network adapters, read from sysfs.

::

    /sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/…/0000:1b:00.0     card
    /sys/devices/pci0000:16/0000:16:02.0/0000:17:00.0/…/0000:1a:00.0     network adapter
                 host bridge   root port   switch

Two devices are on the same switch if their paths share a bridge below the host bridge (``PIX`` and ``PXB`` of
``nvidia-smi topo -m``). The result is one information series per card, as Prometheus exporters publish constants::

    ninefold_agent_card_info{card="0",pci_address="0000:1b:00.0",numa_node="0",nics_same_switch="mlx5_0",…} 1
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ninefold_runtime.agent.card_samples import CardSample

SERIES = "ninefold_agent_card_info"
_ADDRESS = re.compile(r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])", re.IGNORECASE)
_HOST_BRIDGE = re.compile(r"pci[0-9a-f]+:[0-9a-f]+")
#: InfiniBand and RoCE devices first: a port with both names is known by the one that NCCL uses.
_NIC_CLASSES = ("infiniband", "net")


@dataclass(frozen=True, slots=True, kw_only=True)
class _PciDevice:
    """A PCI function."""

    address: str
    #: None where the kernel reports -1, unknown.
    numa_node: int | None
    #: Bridges between the host bridge and it, the outermost first.
    bridges: tuple[str, ...]


def card_topology_samples(
    addresses: Mapping[int, str], *, root: Path = Path("/")
) -> tuple[CardSample, ...]:
    """One sample per card, without values that sysfs lacks.

    :param addresses: PCI address by the card's index, as the vendor's tool prints it.
    :param root: where sys is mounted.
    """
    nics = dict(_pci_network_adapters(root))
    samples = []
    for index, printed in sorted(addresses.items()):
        address = normalized_pci_address(printed)
        if address:
            card = _read_pci_device(root / "sys/bus/pci/devices" / address)
            samples.append(CardSample(name=SERIES, value=1, labels=_card_labels(index, card, nics)))
    return tuple(samples)


def normalized_pci_address(address: str) -> str:
    """``00000000:1B:00.0`` as sysfs names it, ``0000:1b:00.0``; empty where it is no PCI address."""
    found = _ADDRESS.fullmatch(address.strip())
    if found is None:
        return ""
    return f"{int(found[1], 16):04x}:{found[2]}:{found[3]}.{found[4]}".lower()


def _card_labels(index: int, card: _PciDevice, nics: Mapping[str, _PciDevice]) -> dict[str, str]:
    labels = {"card": str(index), "pci_address": card.address}
    if card.numa_node is not None:
        labels["numa_node"] = str(card.numa_node)
    same_switch = [name for name, nic in nics.items() if card.bridges[:1] == nic.bridges[:1] != ()]
    same_numa = [
        name
        for name, nic in nics.items()
        if name not in same_switch and card.numa_node == nic.numa_node is not None
    ]
    for name, found in (("nics_same_switch", same_switch), ("nics_same_numa", same_numa)):
        if found:
            labels[name] = ",".join(found)
    return labels


def _pci_network_adapters(root: Path) -> Iterator[tuple[str, _PciDevice]]:
    """Physical network adapters on PCI by name, each once."""
    seen = set()
    for kind in _NIC_CLASSES:
        for entry in sorted((root / "sys/class" / kind).glob("*")):
            path = (entry / "device").resolve()
            # The interface of a virtio adapter hangs below its PCI function.
            path = path if _ADDRESS.fullmatch(path.name) else path.parent
            is_virtual_function = (path / "physfn").exists()
            if _ADDRESS.fullmatch(path.name) and path not in seen and not is_virtual_function:
                seen.add(path)
                yield entry.name, _read_pci_device(path)


def _read_pci_device(path: Path) -> _PciDevice:
    path = path.resolve()
    hosts = [place for place, part in enumerate(path.parts) if _HOST_BRIDGE.fullmatch(part)]
    return _PciDevice(
        address=path.name,
        numa_node=_numa_node(path),
        bridges=path.parts[hosts[-1] + 1 : -1] if hosts else (),
    )


def _numa_node(path: Path) -> int | None:
    try:
        number = int((path / "numa_node").read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    return number if number >= 0 else None
