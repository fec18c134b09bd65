"""Our mark on a node that is out of use: a taint that keeps new pods away, and an annotation with whose and why.

The list of taints is one field that several write. It is changed as of the version that was read, and read anew
when somebody else was quicker: nobody's taint is ever lost or put back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.api import ApiRefused, KubernetesApi
from controlplane.ports.clusters import ClusterUnavailable

Object = Mapping[str, Any]

ISOLATION_TAINT: Final = f"{object_names.DOMAIN}/isolated"
EFFECT: Final = "NoSchedule"
_CONFLICT: Final = 409
_TRIES: Final = 5
_LONGEST: Final = 1000


def add_isolation_taint(api: KubernetesApi, node: str, *, installation: str, reason: str) -> bool:
    """Add it; returns whether it is present. Not if the node is deleted or has another installation's taint.

    :raises ClusterError: if the cluster does not answer, refuses, or others change the node all the time.
    """
    taint = {"key": ISOLATION_TAINT, "value": installation, "effect": EFFECT}
    content = json.dumps({"installation": installation, "reason": reason[:_LONGEST]})
    for _ in range(_TRIES):
        found = api.found(f"/api/v1/nodes/{node}")
        if found is None:
            return False
        taints = _node_taints(found)
        there = next((each for each in taints if _is_isolation_taint(each)), None)
        if there is not None and there.get("value") != installation:
            return False
        annotation = (found["metadata"].get("annotations") or {}).get(ISOLATION_TAINT)
        if there is not None and annotation == content:
            return True
        wanted = taints if there is not None else [*taints, taint]
        if _update_node(api, found, taints=wanted, annotation=content):
            return True
    raise _conflict_error(node)


def remove_isolation_taint(api: KubernetesApi, node: str, *, installation: str) -> None:
    """Take ours away; what is not ours stays.

    :raises ClusterError: if the cluster does not answer, refuses, or others change the node all the time.
    """
    for _ in range(_TRIES):
        found = api.found(f"/api/v1/nodes/{node}")
        if found is None:
            return
        taints = _node_taints(found)
        left = [
            each
            for each in taints
            if not (_is_isolation_taint(each) and each.get("value") == installation)
        ]
        annotation = (found["metadata"].get("annotations") or {}).get(ISOLATION_TAINT)
        ours = annotation is not None and _parse_installation(annotation) == installation
        if len(left) == len(taints) and not ours:
            return
        if _update_node(api, found, taints=left, annotation=None if ours else annotation):
            return
    raise _conflict_error(node)


def isolation_toleration(installation: str) -> dict[str, str]:
    """For pods that we bind to the node ourselves: to its other cards, and to test the isolated ones."""
    return {"key": ISOLATION_TAINT, "operator": "Equal", "value": installation, "effect": EFFECT}


def is_own_isolation_taint(taint: Object, *, installation: str) -> bool:
    """Whether that taint is our own: the inventory knows precisely which cards of the node are isolated."""
    return _is_isolation_taint(taint) and bool(taint.get("value") == installation)


def _is_isolation_taint(taint: Object) -> bool:
    return bool(taint.get("key") == ISOLATION_TAINT and taint.get("effect") == EFFECT)


def _node_taints(node: Object) -> list[Object]:
    return list((node.get("spec") or {}).get("taints") or ())


def _parse_installation(annotation: str) -> str:
    """Whose it is; empty if it is not one of ours to read."""
    try:
        content = json.loads(annotation)
    except ValueError:
        return ""
    return str(content.get("installation", "")) if isinstance(content, Mapping) else ""


def _update_node(
    api: KubernetesApi, node: Object, *, taints: list[Object], annotation: str | None
) -> bool:
    """Whether it could be written: not if the node is another than was read, or no more."""
    metadata = node["metadata"]
    body = {
        "metadata": {
            "resourceVersion": metadata["resourceVersion"],
            "annotations": {ISOLATION_TAINT: annotation},
        },
        "spec": {"taints": taints or None},
    }
    try:
        api.merge(f"/api/v1/nodes/{metadata['name']}", body)
    except ApiRefused as refusal:
        if refusal.status == _CONFLICT or refusal.missing:
            return False
        raise
    return True


def _conflict_error(node: str) -> ClusterUnavailable:
    return ClusterUnavailable(
        f"the node {node} was changed by others {_TRIES} times while its mark was being written; "
        "it is tried again"
    )
