"""The chip port: what one vendor's accelerators are. One plug-in per vendor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol, runtime_checkable

from controlplane.domain.accelerators import Chip


@runtime_checkable
class ChipPlugin(Protocol):
    @property
    def vendor(self) -> str: ...

    def chips(self) -> tuple[Chip, ...]:
        """Every chip of this vendor that the product knows."""
        ...

    def environment(self, chip: Chip, *, cards: tuple[int, ...]) -> Mapping[str, str]:
        """Variables that restrict a process to those cards of its node."""
        ...
