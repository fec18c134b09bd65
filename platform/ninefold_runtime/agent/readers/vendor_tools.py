"""Readers of NVIDIA's and Huawei's cards, by the vendors' tools ``nvidia-smi`` and ``npu-smi info``.

A tool hangs when a card falls off the bus. A process that waits for a lost device cannot be killed: it is left
behind rather than waited for, and until it is gone no second one is started, or a dead card would fill the node
with them.
"""

from __future__ import annotations

import contextlib
import csv
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ninefold_runtime.agent.card_samples import CardReading, CardSample

_TIMEOUT_SECONDS = 4.0
_REAP_SECONDS = 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    #: What it printed, also where it failed.
    text: str = ""
    #: In words; empty where it ended well.
    error: str = ""


class VendorTool:
    """One program with fixed arguments."""

    def __init__(self, command: Sequence[str], *, limit_seconds: float = _TIMEOUT_SECONDS) -> None:
        self._command = tuple(command)
        self._limit_seconds = limit_seconds
        self._stuck: subprocess.Popen[str] | None = None

    def run(self) -> ToolOutput:
        """The output of the tool, within the time limit."""
        name = self._command[0]
        if self._stuck is not None and self._stuck.poll() is None:
            return ToolOutput(
                error=f"an earlier {name} (process {self._stuck.pid}) does not end; "
                "a card may have fallen off the bus"
            )
        self._stuck = None
        try:
            process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                # What a signal to the agent's group does is the agent's business.
                start_new_session=True,
            )
        except OSError as error:
            return ToolOutput(error=f"{name} cannot be run: {error.strerror or error}")
        try:
            text, _ = process.communicate(timeout=self._limit_seconds)
        except subprocess.TimeoutExpired:
            return ToolOutput(error=f"{name} did not answer in {self._limit_seconds:g} s")
        finally:
            self._end_process(process)
        if process.returncode != 0:
            last = text.strip().splitlines()[-1:] or ["without a word"]
            return ToolOutput(
                text=text, error=f"{name} ended with {process.returncode}: {last[0]:.200}"
            )
        return ToolOutput(text=text)

    def _end_process(self, process: subprocess.Popen[str]) -> None:
        if process.poll() is not None:
            return
        process.kill()
        if process.stdout is not None:
            process.stdout.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_REAP_SECONDS)
            return
        self._stuck = process


#: Field of the query → series of dcgm-exporter. Percent, MiB, degrees Celsius, watts, MHz, counts: the same units.
_DCGM_SERIES_BY_FIELD: Mapping[str, str] = {
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
_NVIDIA_LABEL_FIELDS = ("index", "uuid", "pci.bus_id", "name")
_NVIDIA_QUERY_FIELDS = (*_NVIDIA_LABEL_FIELDS, *_DCGM_SERIES_BY_FIELD)
NVIDIA_SMI_COMMAND = (
    "nvidia-smi",
    f"--query-gpu={','.join(_NVIDIA_QUERY_FIELDS)}",
    "--format=csv,noheader,nounits",
)


class NvidiaReader:
    """Implements ``CardReader`` under the names of dcgm-exporter.

    What needs the kernel's log or DCGM itself (Xids, NVLink's counters) is not to be had here: where those matter,
    run dcgm-exporter and let the product read that.
    """

    vendor = "nvidia"

    def __init__(self, *, node: str, tool: VendorTool | None = None) -> None:
        self._node = node
        self._tool = tool or VendorTool(NVIDIA_SMI_COMMAND)

    def read(self) -> CardReading:
        answer = self._tool.run()
        samples, unresponsive = parse_nvidia_smi(answer.text, node=self._node)
        error = answer.error
        if not error and unresponsive:
            error = f"cards that do not answer: {', '.join(unresponsive)}"
        if not error and not samples:
            error = "nvidia-smi lists no card"
        addresses = {int(one.labels["gpu"]): one.labels["pci_bus_id"] for one in samples}
        return CardReading(samples=samples, addresses=addresses, error=error)


def parse_nvidia_smi(text: str, *, node: str) -> tuple[tuple[CardSample, ...], tuple[str, ...]]:
    """The samples of all cards, and the indices of those without any value.

    What a card does not have is printed in words, ``[N/A]`` or ``[Not Supported]``, and what is lost as
    ``[GPU is lost]`` or ``[Unknown Error]``; lines that are no row of the table are the tool's complaints.
    """
    samples: list[CardSample] = []
    unresponsive = []
    for row in csv.reader(text.splitlines(), skipinitialspace=True):
        if len(row) != len(_NVIDIA_QUERY_FIELDS) or not row[0].strip().isdecimal():
            continue
        values = dict(zip(_NVIDIA_QUERY_FIELDS, (cell.strip() for cell in row), strict=True))
        card = tuple(_nvidia_card_samples(values, node=node))
        samples += card
        if not card:
            unresponsive.append(values["index"])
    return tuple(samples), tuple(unresponsive)


def _nvidia_card_samples(values: Mapping[str, str], *, node: str) -> Iterator[CardSample]:
    index = values["index"]
    labels = {"gpu": index, "UUID": values["uuid"], "device": f"nvidia{index}"}
    labels |= {"pci_bus_id": values["pci.bus_id"], "modelName": values["name"], "Hostname": node}
    if not values["uuid"].startswith("GPU-"):
        del labels["UUID"]
    for field, name in _DCGM_SERIES_BY_FIELD.items():
        try:
            value = float(values[field])
        except ValueError:
            continue
        yield CardSample(name=name, value=value, labels=labels)


NPU_SMI_COMMAND = ("npu-smi", "info")
_NPU_SMI_NUMBER = r"(\d+(?:\.\d+)?|-|NA)"
_NPU_SMI_FIRST_LINE = re.compile(
    rf"^\| *(\d+) +(\S+) *\| *([A-Za-z]+) *\| *{_NPU_SMI_NUMBER} +{_NPU_SMI_NUMBER} "
)
_NPU_SMI_SECOND_LINE = re.compile(
    rf"^\| *(\d+)(?: +(\d+))? *\| *([0-9A-Fa-f]+:[0-9A-Fa-f:.]+) *\| *{_NPU_SMI_NUMBER} +(\d+) */ *(\d+)"
    r"(?: +(\d+) */ *(\d+))?"
)
#: Usable, though it needs attention: the exporter calls no other state healthy.
_HEALTHY_ASCEND_STATES = frozenset({"OK"})


class AscendReader:
    """Implements ``CardReader`` under the names of npu-exporter. Not run on such a card yet.

    ::

        | NPU   Name      | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
        | Chip  Phy-ID    | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
        +=================+===============+====================================================+
        | 0     Ascend910 | OK            | 178.5       36                0    / 0             |
        | 0     1         | 0000:9D:00.0  | 0           0    / 0          3416 / 65536         |

    Two lines a chip. Where a card has several, a second number says which of the node's it is (``Phy-ID``,
    ``Device``); else the card's own is that. The die's number (``vdie_id``) is not printed there, so a card that
    was replaced is noticed only by npu-exporter.
    """

    vendor = "ascend"

    def __init__(self, *, tool: VendorTool | None = None) -> None:
        self._tool = tool or VendorTool(NPU_SMI_COMMAND)

    def read(self) -> CardReading:
        answer = self._tool.run()
        samples = tuple(parse_npu_smi(answer.text))
        error = answer.error or ("" if samples else "npu-smi lists no card")
        addresses = {int(one.labels["id"]): one.labels["pcie_bus_info"] for one in samples}
        return CardReading(samples=samples, addresses=addresses, error=error)


def parse_npu_smi(text: str) -> Iterator[CardSample]:
    """The samples of all chips; what is printed as ``-`` or ``NA`` is left out."""
    first = None
    for line in text.splitlines():
        second = _NPU_SMI_SECOND_LINE.match(line)
        if second is not None and first is not None:
            yield from _ascend_card_samples(first, second)
            first = None
        else:
            first = _NPU_SMI_FIRST_LINE.match(line)


def _ascend_card_samples(first: re.Match[str], second: re.Match[str]) -> Iterator[CardSample]:
    card, model, health, power, temperature = first.groups()
    _, number, bus, load, used, total, hbm_used, hbm_total = second.groups()
    labels = {"id": number or card, "model_name": model, "pcie_bus_info": bus}
    metrics = {"utilization": load, "temperature": temperature, "power": power}
    if int(hbm_total or 0):
        metrics |= {"hbm_used_memory": hbm_used, "hbm_total_memory": hbm_total}
    elif int(total):
        metrics |= {"used_memory": used, "total_memory": total}
    yield CardSample(
        name="npu_chip_info_health_status",
        value=float(health in _HEALTHY_ASCEND_STATES),
        labels=labels,
    )
    for name, shown in metrics.items():
        if shown not in ("-", "NA"):
            yield CardSample(name=f"npu_chip_info_{name}", value=float(shown), labels=labels)
