"""Tables of ``signals.toml``: which conditions, events and labels of a cluster mean which fault level.

Also detects another controller that remediates faults of a node, such as NVSentinel. Ninefold then only
observes: two controllers that drain and reset the same node interfere with each other.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from typing import Any

from controlplane.domain.health.faults import FaultLevel
from controlplane.ports.clusters import REMEDIATION_LABEL


@cache
def signal_table(*path: str) -> Mapping[str, Any]:
    """One table of the file."""
    found: Mapping[str, Any] = _load_tables()
    for part in path:
        found = found[part]
    return found


@cache
def signal_levels(*path: str) -> Mapping[str, FaultLevel]:
    """Word → level, of a table that lists words under levels."""
    lists: Mapping[str, Sequence[str]] = signal_table(*path)
    return {word: FaultLevel[level] for level, names in lists.items() for word in names}


@cache
def _load_tables() -> Mapping[str, Any]:
    return tomllib.loads(files(__package__).joinpath("signals.toml").read_text(encoding="utf-8"))


Object = Mapping[str, Any]


def remediation_labels(node: Object) -> dict[str, str]:
    """The label that claims the node; None without one, or where its administrator set one."""
    labels = node["metadata"].get("labels") or {}
    own = signal_table("nvsentinel")
    if (
        REMEDIATION_LABEL in labels
        or labels.get(own["opt_out"]["label"]) == own["opt_out"]["value"]
    ):
        return {}
    conditions = (node.get("status") or {}).get("conditions") or ()
    # Healthy ones, too, are written only where it runs.
    writes = any(is_nvsentinel_check(str(each.get("type", ""))) for each in conditions)
    is_acting = any(label in labels for label in own["acting"])
    return {REMEDIATION_LABEL: str(own["name"])} if writes or is_acting else {}


def is_nvsentinel_check(kind: str) -> bool:
    """Whether a condition or event of that type is its own."""
    return any(fnmatchcase(kind, pattern) for pattern in signal_table("nvsentinel")["checks"])
