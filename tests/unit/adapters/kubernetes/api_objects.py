"""Nodes and pods as the API tells them, said in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from controlplane.adapters.clusters.kubernetes import object_names

OURS = "01hzinstallation"
H800 = {"nvidia.com/gpu.product": "NVIDIA-H800"}
#: Two rings of four, as in an Atlas 800 training server.
ASCEND_910A = {"node.kubernetes.io/npu.chip.name": "910A", "accelerator-type": "module"}
READY = {"type": "Ready", "status": "True"}


def node(
    name: str,
    cards: Mapping[str, int] | None = None,
    *,
    usable: Mapping[str, int] | None = None,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    conditions: Sequence[Mapping[str, str]] = (READY,),
    taints: Sequence[Mapping[str, str]] = (),
    unschedulable: bool = False,
) -> dict[str, Any]:
    """64 cores and 512 GiB; ``usable`` where a plug-in has fewer healthy cards than there are."""
    plain = {"cpu": "64", "memory": "512Gi", "pods": "110"}
    there = {name: str(count) for name, count in (cards or {}).items()}
    fewer = {name: str(count) for name, count in (usable or {}).items()}
    return {
        "metadata": {
            "name": name,
            "labels": {"kubernetes.io/hostname": name, **(labels or {})},
            "annotations": dict(annotations or {}),
        },
        "spec": {"taints": list(taints), "unschedulable": unschedulable},
        "status": {
            "capacity": {**plain, **there},
            "allocatable": {**plain, **there, **fewer},
            "conditions": list(conditions),
        },
    }


def pod(
    name: str,
    *,
    on: str = "n1",
    requests: Mapping[str, str] | None = None,
    ours: bool = False,
    cards: str = "",
    phase: str = "Running",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """:param cards: where one of ours was placed."""
    said = {**(annotations or {}), **({object_names.CARDS: cards} if cards else {})}
    labels = (
        object_names.owner_labels(installation=OURS, launch=f"launch-{name}")
        if ours
        else {"app": name}
    )
    return {
        "metadata": {
            "name": name,
            "namespace": "work",
            "labels": labels,
            "annotations": said,
        },
        "spec": {
            "nodeName": on,
            "containers": [{"name": "main", "resources": {"requests": dict(requests or {})}}],
            **spec,
        },
        "status": {"phase": phase},
    }
