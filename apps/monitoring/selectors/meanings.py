"""What the vendors' plug-ins know of their fault codes."""

from __future__ import annotations

from functools import lru_cache

from controlplane.domain.faults import Meaning
from controlplane.ports import registry


@lru_cache(maxsize=4096)
def meaning_of(vendor: str, code: str) -> Meaning | None:
    """What a vendor's code stands for; None where the code is nobody's in particular."""
    plugin = registry.chip_plugins().get(vendor)
    return plugin.profile().faults.meaning(code) if plugin else None
