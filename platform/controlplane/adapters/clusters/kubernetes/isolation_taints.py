"""The taint of an isolated node, which repels new pods, and an annotation with installation and reason.

The list of taints is one field with several writers. It is changed as of the version that was read, and read
again after a conflict: no foreign taint is ever lost or restored.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Final

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.api import (
    ApiRefused,
    KubernetesApi,
    Object,
    annotations_of,
    nested_field,
)
from controlplane.ports.clusters import ClusterUnavailable

ISOLATION_TAINT: Final = f"{object_names.DOMAIN}/isolated"
EFFECT: Final = "NoSchedule"
_TRIES: Final = 5
_LONGEST: Final = 1000


def write_isolation_taint(
    api: KubernetesApi, name: str, *, installation: str, reason: str | None
) -> bool:
    """Add the taint to the node, or remove it if ``reason`` is None; taints of others stay.

    :return: whether the node is as wanted. Not if it is deleted or has another installation's taint.
    :raises ClusterError: if the cluster does not respond, refuses, or the node changes all the time.
    """
    path = f"/api/v1/nodes/{name}"
    for _ in range(_TRIES):
        node = api.found(path)
        if node is None:
            return False
        taints = list(nested_field(node, "spec", "taints"))
        others = [
            one for one in taints if not is_own_isolation_taint(one, installation=installation)
        ]
        annotation = written = annotations_of(node).get(ISOLATION_TAINT)
        if reason is None:
            wanted = others
            if annotation is not None and _parse_installation(annotation) == installation:
                written = None
        elif any(map(_is_isolation_taint, others)):
            return False
        else:
            taint = {"key": ISOLATION_TAINT, "value": installation, "effect": EFFECT}
            wanted = taints if len(others) < len(taints) else [*taints, taint]
            written = json.dumps({"installation": installation, "reason": reason[:_LONGEST]})
        if (wanted, written) == (taints, annotation):
            return True
        metadata = {
            "resourceVersion": node["metadata"]["resourceVersion"],
            "annotations": {ISOLATION_TAINT: written},
        }
        try:
            api.merge(path, {"metadata": metadata, "spec": {"taints": wanted or None}})
        except ApiRefused as refusal:
            # The node is another than was read, or no more.
            if refusal.status != HTTPStatus.CONFLICT and not refusal.missing:
                raise
        else:
            return True
    raise ClusterUnavailable(
        "node.taint.conflict",
        "the taint of node {node} could not be written because the node was changed {count} times "
        "meanwhile; the update is retried",
        node=name,
        count=_TRIES,
    )


def isolation_toleration(installation: str) -> dict[str, str]:
    """For pods that we bind to the node ourselves: to its other cards, and to test the isolated ones."""
    return {"key": ISOLATION_TAINT, "operator": "Equal", "value": installation, "effect": EFFECT}


def is_own_isolation_taint(taint: Object, *, installation: str) -> bool:
    """Whether that taint is our own: the inventory knows precisely which cards of the node are isolated."""
    return _is_isolation_taint(taint) and bool(taint.get("value") == installation)


def _is_isolation_taint(taint: Object) -> bool:
    return bool(taint.get("key") == ISOLATION_TAINT and taint.get("effect") == EFFECT)


def _parse_installation(annotation: str) -> str:
    """The installation that it belongs to; empty if it cannot be read."""
    try:
        content = json.loads(annotation)
    except ValueError:
        return ""
    return str(content.get("installation", "")) if isinstance(content, Mapping) else ""
