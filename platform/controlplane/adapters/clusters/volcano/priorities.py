"""From our priority classes to Kubernetes' PriorityClasses, which Volcano reads from the pods and PodGroups.

Preemption there works inside one queue and by these numbers; who gives cards back to another queue is decided by
what queues deserve, whatever the priority.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from controlplane.adapters.clusters.kubernetes import names as marking
from controlplane.adapters.clusters.volcano import names
from controlplane.adapters.clusters.volcano.changes import Act, Change
from controlplane.adapters.clusters.volcano.names import Manifest, Object
from controlplane.ports.clusters import LaunchRefused

#: What people may state on a cluster; above stand the system's own.
LARGEST: Final = 1_000_000_000


def priority_class(value: int, *, title: str, installation: str) -> Manifest:
    """Other pods of the cluster keep their own priority: ours is never the default.

    :raises LaunchRefused: if Kubernetes keeps that number for itself.
    """
    if abs(value) > LARGEST:
        raise LaunchRefused(
            f"a priority on Kubernetes is from {-LARGEST} to {LARGEST}, got {value}: choose another class"
        )
    name = names.priority_name(value, installation=installation)
    return {
        "apiVersion": names.PRIORITIES,
        "kind": "PriorityClass",
        "metadata": {
            "name": name,
            "labels": marking.marks(installation=installation),
            "annotations": {names.TITLE: title},
        },
        "value": value,
        "globalDefault": False,
        "preemptionPolicy": "PreemptLowerPriority",
        "description": f"Work of the priority {title} ({value})",
    }


def plan(
    classes: Mapping[str, int], theirs: Sequence[Object], *, installation: str
) -> tuple[Change, ...]:
    """What brings the cluster's classes up to date.

    One that we no longer have stays: pods that run may name it, and the name is its number.

    :param classes: value by what people call it.
    """
    there = {each["metadata"]["name"]: each for each in theirs}
    changes = []
    for title, value in sorted(classes.items()):
        manifest = priority_class(value, title=title, installation=installation)
        has = there.get(manifest["metadata"]["name"])
        if has is None:
            changes.append(Change(act=Act.CREATE, manifest=manifest))
        elif _title(has) != title:
            changes.append(Change(act=Act.APPLY, manifest=manifest))
    return tuple(changes)


def _title(thing: Object) -> str:
    return str((thing["metadata"].get("annotations") or {}).get(names.TITLE) or "")
