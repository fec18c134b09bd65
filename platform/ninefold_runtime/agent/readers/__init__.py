"""How cards of one kind are read on their node. Each reader prints the names of the vendor's usual exporter."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from typing import Protocol

from ninefold_runtime.agent.batches import Reading
from ninefold_runtime.agent.readers.ascend import AscendReader
from ninefold_runtime.agent.readers.cpu import CpuReader
from ninefold_runtime.agent.readers.nvidia import NvidiaReader


class Reader(Protocol):
    @property
    def vendor(self) -> str:
        """The chip plug-in whose names it prints."""
        ...

    def read(self) -> Reading:
        """What the cards say now, in bounded time; never raises for what is wrong with a card or its tool."""
        ...


#: The program whose presence says that cards of that kind are here.
_PROGRAMS: Mapping[str, str] = {"nvidia": "nvidia-smi", "ascend": "npu-smi"}
CHOICES = ("auto", "cpu", *_PROGRAMS)


def choose(
    kind: str,
    *,
    node: str,
    cards: int,
    which: Callable[[str], str | None] = shutil.which,
) -> Reader:
    """The reader of that kind; ``auto`` takes the first whose program is here, else the processor's.

    ``cards`` is how many the processor is shown as, 0 for one a core.
    """
    if kind == "auto":
        kind = next((name for name, program in _PROGRAMS.items() if which(program)), "cpu")
    if kind == "nvidia":
        return NvidiaReader(node=node)
    if kind == "ascend":
        return AscendReader()
    return CpuReader(node=node, cards=cards)
