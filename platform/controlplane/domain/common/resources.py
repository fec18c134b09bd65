"""Amounts with units.

Amounts are types rather than bare integers so that bytes are never added to millicores. Each is an
``int`` underneath, which keeps them cheap, ordered and JSON-ready.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NewType, Self

Millicpu = NewType("Millicpu", int)
"""Thousandths of one CPU core."""

Bytes = NewType("Bytes", int)

KIB = 1024
MIB = 1024 * KIB
GIB = 1024 * MIB


@dataclass(frozen=True, slots=True, kw_only=True)
class Resources:
    """Resources that a process requests in addition to cards."""

    #: Thousandths of a core; 0 means no request.
    cpu: Millicpu = Millicpu(0)
    #: Resident memory of the whole process group; 0 means no limit.
    memory: Bytes = Bytes(0)

    def plus(self, other: Resources) -> Self:
        return type(self)(
            cpu=Millicpu(self.cpu + other.cpu), memory=Bytes(self.memory + other.memory)
        )

    def times(self, count: int) -> Self:
        return type(self)(cpu=Millicpu(self.cpu * count), memory=Bytes(self.memory * count))


def format_bytes(amount: int) -> str:
    """``1536 MiB`` style text with three significant digits: ``"1.5 GiB"``."""
    size = float(amount)
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024 or unit == "TiB":
            return f"{size:.0f} {unit}" if unit == "B" or size >= 100 else f"{size:.1f} {unit}"
        size /= 1024
    raise AssertionError("unreachable")
