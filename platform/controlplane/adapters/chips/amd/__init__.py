"""The chips of this vendor: ``profile.toml`` beside this file."""

from __future__ import annotations

from controlplane.adapters.chips.profiles import DataChips


def plugin() -> DataChips:
    return DataChips.beside(__file__)
