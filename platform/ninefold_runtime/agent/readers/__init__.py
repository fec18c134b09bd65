"""How cards of one kind are read on their node. Each reader prints the names of the vendor's usual exporter."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import Protocol

from ninefold_runtime.agent.card_samples import CardReading
from ninefold_runtime.agent.readers.cpu import CpuReader
from ninefold_runtime.agent.readers.vendor_tools import AscendReader, NvidiaReader


class CardReader(Protocol):
    @property
    def vendor(self) -> str:
        """The chip plug-in whose series names it uses."""

    def read(self) -> CardReading:
        """The cards' current samples, in bounded time; never raises for a failing card or tool."""


#: The program whose presence indicates cards of that kind.
_PROGRAMS: Mapping[str, str] = {"nvidia": "nvidia-smi", "ascend": "npu-smi"}
CHOICES = ("auto", "cpu", *_PROGRAMS)


def choose_reader(
    kind: str,
    *,
    node: str,
    cards: int,
    which: Callable[[str], str | None] = shutil.which,
) -> CardReader:
    """The reader of that kind; ``auto`` takes the first whose program is installed, else the CPU reader.

    ``cards`` is how many the processor is shown as, 0 for one a core.
    """
    if kind == "auto":
        kind = next((name for name, program in _PROGRAMS.items() if which(program)), "cpu")
    if kind == "nvidia":
        return NvidiaReader(node=node)
    if kind == "ascend":
        return AscendReader()
    return CpuReader(node=node, cards=cards)
