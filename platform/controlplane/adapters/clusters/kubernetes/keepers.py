"""Who acts on faults of a node beside us.

Where somebody does we only watch: two that drain and reset the same node do each other harm.
"""

from __future__ import annotations

from collections.abc import Mapping
from fnmatch import fnmatchcase
from typing import Any

from controlplane.adapters.clusters.kubernetes.sign_tables import table
from controlplane.ports.diagnoses import KEEPER

Object = Mapping[str, Any]


def keeper_labels(node: Object) -> dict[str, str]:
    """The label that says so; none where nobody does, or the node bears one of its administrator."""
    labels = node["metadata"].get("labels") or {}
    own = table("nvsentinel")
    if KEEPER in labels or labels.get(own["opt_out"]["label"]) == own["opt_out"]["value"]:
        return {}
    conditions = (node.get("status") or {}).get("conditions") or ()
    # Healthy ones, too, are written only where it runs.
    writes = any(is_check_of_nvsentinel(str(each.get("type", ""))) for each in conditions)
    acts = any(label in labels for label in own["acting"])
    return {KEEPER: str(own["name"])} if writes or acts else {}


def is_check_of_nvsentinel(kind: str) -> bool:
    """Whether a condition or event of that type is its own."""
    return any(fnmatchcase(kind, pattern) for pattern in table("nvsentinel")["checks"])
