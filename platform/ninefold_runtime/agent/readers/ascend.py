"""Huawei's cards by ``npu-smi info``, under the names of npu-exporter. Not run on such a card yet.

::

    | NPU   Name      | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
    | Chip  Phy-ID    | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
    +=================+===============+====================================================+
    | 0     Ascend910 | OK            | 178.5       36                0    / 0             |
    | 0     1         | 0000:9D:00.0  | 0           0    / 0          3416 / 65536         |

Two lines a chip. Where a card has several, a second number says which of the node's it is (``Phy-ID``,
``Device``); else the card's own is that. The die's number (``vdie_id``) is not printed there, so a card that was
replaced is noticed only by npu-exporter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ninefold_runtime.agent.readers.vendor_tool import VendorTool
from ninefold_runtime.agent.samples import CardReading, CardSample

COMMAND = ("npu-smi", "info")
_NUMBER = r"(\d+(?:\.\d+)?|-|NA)"
_FIRST = re.compile(rf"^\| *(\d+) +(\S+) *\| *([A-Za-z]+) *\| *{_NUMBER} +{_NUMBER} ")
_SECOND = re.compile(
    rf"^\| *(\d+)(?: +(\d+))? *\| *([0-9A-Fa-f]+:[0-9A-Fa-f:.]+) *\| *{_NUMBER} +(\d+) */ *(\d+)"
    r"(?: +(\d+) */ *(\d+))?"
)
#: Usable, though it needs attention: the exporter calls no other state healthy.
_HEALTHY = frozenset({"OK"})


class AscendReader:
    """Implements ``Reader``."""

    vendor = "ascend"

    def __init__(self, *, tool: VendorTool | None = None) -> None:
        self._tool = tool or VendorTool(COMMAND)

    def read(self) -> CardReading:
        answer = self._tool.run()
        samples = tuple(parse(answer.text))
        error = answer.error or ("" if samples else "npu-smi lists no card")
        addresses = {int(one.labels["id"]): one.labels["pcie_bus_info"] for one in samples}
        return CardReading(samples=samples, addresses=addresses, error=error)


def parse(text: str) -> Iterator[CardSample]:
    """The samples of all chips; what is printed as ``-`` or ``NA`` is left out."""
    first = None
    for line in text.splitlines():
        second = _SECOND.match(line)
        if second is not None and first is not None:
            yield from _of_chip(first, second)
            first = None
        else:
            first = _FIRST.match(line)


def _of_chip(first: re.Match[str], second: re.Match[str]) -> Iterator[CardSample]:
    card, model, health, power, temperature = first.groups()
    _, number, bus, load, used, total, hbm_used, hbm_total = second.groups()
    labels = {"id": number or card, "model_name": model, "pcie_bus_info": bus}
    metrics = {"utilization": load, "temperature": temperature, "power": power}
    if int(hbm_total or 0):
        metrics |= {"hbm_used_memory": hbm_used, "hbm_total_memory": hbm_total}
    elif int(total):
        metrics |= {"used_memory": used, "total_memory": total}
    yield CardSample(
        name="npu_chip_info_health_status", value=float(health in _HEALTHY), labels=labels
    )
    for name, shown in metrics.items():
        if shown not in ("-", "NA"):
            yield CardSample(name=f"npu_chip_info_{name}", value=float(shown), labels=labels)
