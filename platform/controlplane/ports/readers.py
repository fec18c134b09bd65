"""Who reads which exporter's text.

Apart from the registry of everything, which a cluster's helpers read with the standard library alone: figures
are read by columns, and that takes numpy.
"""

from __future__ import annotations

from functools import cache

from controlplane.ports import registry
from controlplane.ports.readings import Reader


@cache
def telemetry_reader(vendor: str) -> Reader:
    """What reads texts with that vendor's names.

    :raises UnknownAdapter: if no plug-in is of that vendor, or none of its exporter's names are known.
    """
    plugin = registry.chip_plugins().get(vendor)
    exporter = plugin.profile().exporter if plugin is not None else None
    if exporter is None or not exporter.series:
        known = ", ".join(registry.telemetry_vendors()) or "none"
        raise registry.UnknownAdapter(
            f"no exporter of {vendor!r} is known; known are those of {known}"
        )
    return Reader(exporter, vendor=vendor)
