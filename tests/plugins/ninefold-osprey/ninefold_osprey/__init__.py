"""The chips of Osprey, as ``profile.toml`` beside this file describes them."""

from __future__ import annotations

from controlplane.adapters.chips.profiles import DataChips


def plugin() -> DataChips:
    return DataChips.beside(__file__)
