"""NVIDIA's cards by ``nvidia-smi``, under the names of dcgm-exporter.

What needs the kernel's log or DCGM itself (Xids, NVLink's counters) is not to be had here: where those matter, run
dcgm-exporter and let the product read that.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping

from ninefold_runtime.agent.readers.vendor_tool import VendorTool
from ninefold_runtime.agent.samples import CardReading, CardSample

#: Field of the query → series of dcgm-exporter. Percent, MiB, degrees Celsius, watts, MHz, counts: the same units.
_SERIES: Mapping[str, str] = {
    "utilization.gpu": "DCGM_FI_DEV_GPU_UTIL",
    "memory.used": "DCGM_FI_DEV_FB_USED",
    "memory.free": "DCGM_FI_DEV_FB_FREE",
    "temperature.gpu": "DCGM_FI_DEV_GPU_TEMP",
    "temperature.memory": "DCGM_FI_DEV_MEMORY_TEMP",
    "power.draw": "DCGM_FI_DEV_POWER_USAGE",
    "clocks.sm": "DCGM_FI_DEV_SM_CLOCK",
    "clocks.mem": "DCGM_FI_DEV_MEM_CLOCK",
    "ecc.errors.corrected.volatile.total": "DCGM_FI_DEV_ECC_SBE_VOL_TOTAL",
    "ecc.errors.uncorrected.volatile.total": "DCGM_FI_DEV_ECC_DBE_VOL_TOTAL",
}
_LABELS = ("index", "uuid", "pci.bus_id", "name")
_FIELDS = (*_LABELS, *_SERIES)
COMMAND = ("nvidia-smi", f"--query-gpu={','.join(_FIELDS)}", "--format=csv,noheader,nounits")


class NvidiaReader:
    """Implements ``Reader``."""

    vendor = "nvidia"

    def __init__(self, *, node: str, tool: VendorTool | None = None) -> None:
        self._node = node
        self._tool = tool or VendorTool(COMMAND)

    def read(self) -> CardReading:
        answer = self._tool.run()
        samples, unresponsive = parse(answer.text, node=self._node)
        error = answer.error
        if not error and unresponsive:
            error = f"cards that do not answer: {', '.join(unresponsive)}"
        if not error and not samples:
            error = "nvidia-smi lists no card"
        addresses = {int(one.labels["gpu"]): one.labels["pci_bus_id"] for one in samples}
        return CardReading(samples=samples, addresses=addresses, error=error)


def parse(text: str, *, node: str) -> tuple[tuple[CardSample, ...], tuple[str, ...]]:
    """The samples of all cards, and the indices of those without any value.

    What a card does not have is printed in words, ``[N/A]`` or ``[Not Supported]``, and what is lost as
    ``[GPU is lost]`` or ``[Unknown Error]``; lines that are no row of the table are the tool's complaints.
    """
    samples: list[CardSample] = []
    unresponsive = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != len(_FIELDS) or not row[0].strip().isdecimal():
            continue
        values = dict(zip(_FIELDS, (cell.strip() for cell in row), strict=True))
        card = tuple(_of_card(values, node=node))
        samples += card
        if not card:
            unresponsive.append(values["index"])
    return tuple(samples), tuple(unresponsive)


def _of_card(values: Mapping[str, str], *, node: str) -> Iterator[CardSample]:
    index = values["index"]
    labels = {"gpu": index, "UUID": values["uuid"], "device": f"nvidia{index}"}
    labels |= {"pci_bus_id": values["pci.bus_id"], "modelName": values["name"], "Hostname": node}
    if not values["uuid"].startswith("GPU-"):
        del labels["UUID"]
    for field, name in _SERIES.items():
        try:
            value = float(values[field])
        except ValueError:
            continue
        yield CardSample(name=name, value=value, labels=labels)
