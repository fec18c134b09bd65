"""The chips of Osprey, as ``profile.toml`` beside this file describes them."""

from __future__ import annotations

from controlplane.adapters.chips.profiles import VendorFileChipPlugin


def plugin() -> VendorFileChipPlugin:
    return VendorFileChipPlugin.beside(__file__)
