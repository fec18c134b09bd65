"""The objects and events of a Launch on a cluster, and the details of one node.

Values of secrets never leave this module, nor the bookkeeping of the API (``managedFields``, the copy that
kubectl keeps in an annotation).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

import yaml

from controlplane.adapters.clusters.kubernetes import inventory, object_names
from controlplane.adapters.clusters.kubernetes.api import (
    KubernetesApi,
    Object,
    labels_of,
    nested_field,
    object_name,
    parse_time,
)
from controlplane.adapters.clusters.kubernetes.node_conditions import cluster_event, involved_object
from controlplane.ports.clusters import (
    ClusterEvent,
    ClusterObject,
    NodeCondition,
    NodeInspection,
    NodePod,
)

#: Most entries reported for one object.
MOST_EVENTS = 200
MOST_OBJECTS = 300
#: Most pods whose events are read one by one; beyond that, all events of the namespace are read.
_ONE_BY_ONE = 8
_LONGEST_TEXT = 4096
_LEFT_OUT: Final = "(left out)"
_COPIES = "kubectl.kubernetes.io/last-applied-configuration"
#: Conditions that should be True; any other condition that is True signals a problem.
_GOOD_WHEN_TRUE = ("Ready",)
_PROGRAMS: Mapping[str, str] = {
    "kubeletVersion": "kubelet",
    "containerRuntimeVersion": "container runtime",
    "kernelVersion": "kernel",
    "osImage": "operating system",
    "architecture": "architecture",
}
#: Plural → kind; in the order in which they are shown.
_KINDS: Mapping[str, str] = {
    "configmaps": "ConfigMap",
    "secrets": "Secret",
    "services": "Service",
    "pods": "Pod",
}


def launch_objects(
    api: KubernetesApi, *, name: str, namespace: str, installation: str
) -> tuple[ClusterObject, ...]:
    """The record of the Launch and its objects; those that may not be read are left out."""
    query = object_names.owned_objects_query(installation=installation, launch=name)
    found = [
        displayed_object(each, kind=kind)
        for plural, kind in _KINDS.items()
        for each in api.list_visible(f"/api/v1/namespaces/{namespace}/{plural}", query=query)
    ]
    return tuple(found[:MOST_OBJECTS])


def launch_events(
    api: KubernetesApi, *, name: str, namespace: str, installation: str
) -> tuple[ClusterEvent, ...]:
    """Events of the Launch's pods and its record, newest first."""
    query = object_names.owned_objects_query(installation=installation, launch=name)
    pods = api.list_visible(f"/api/v1/namespaces/{namespace}/pods", query=query)
    about = {name, *map(object_name, pods)}
    path = f"/api/v1/namespaces/{namespace}/events"
    if len(about) <= _ONE_BY_ONE:
        found = [
            event
            for one in sorted(about)
            for event in api.list(path, query={"fieldSelector": f"involvedObject.name={one}"})
        ]
    else:
        found = [each for each in api.list(path) if involved_object(each).get("name") in about]
    return _newest_first(found)


def node_view(api: KubernetesApi, *, name: str, installation: str) -> NodeInspection | None:
    """One node with its pods and events; None if there is no such node."""
    node = api.found(f"/api/v1/nodes/{name}")
    if node is None:
        return None
    pods = api.list("/api/v1/pods", query={"fieldSelector": f"spec.nodeName={name}"})
    event_query = {"fieldSelector": f"involvedObject.kind=Node,involvedObject.name={name}"}
    node_events = api.list("/api/v1/events", query=event_query)
    inspected = (_node_pod(pod, installation=installation) for pod in pods)
    return NodeInspection(
        name=name,
        conditions=tuple(map(_node_condition, nested_field(node, "status", "conditions"))),
        pods=tuple(sorted(inspected, key=lambda pod: (not pod.launch, pod.namespace, pod.name))),
        events=_newest_first(node_events),
        labels=dict(sorted(labels_of(node).items())),
        taints=tuple(map(inventory.taint_text, nested_field(node, "spec", "taints"))),
        facts=dict(_node_system_info(nested_field(node, "status"))),
    )


# -- Objects --


def displayed_object(thing: Object, *, kind: str) -> ClusterObject:
    """As a page shows it: without values of secrets and the bookkeeping of the API."""
    metadata = {key: value for key, value in thing["metadata"].items() if key != "managedFields"}
    annotations = dict(metadata.get("annotations") or {})
    if annotations.pop(_COPIES, None) is not None:
        metadata["annotations"] = annotations
    # Lists leave both out of their items.
    whole: dict[str, Any] = {"apiVersion": "v1", "kind": kind, **thing, "metadata": metadata}
    if kind == "Secret":
        for part in ("data", "stringData"):
            if whole.get(part):
                whole[part] = dict.fromkeys(sorted(whole[part]), _LEFT_OUT)
    text = yaml.safe_dump(_shorten_texts(whole), sort_keys=False, allow_unicode=True, width=120)
    return ClusterObject(
        kind=kind, namespace=metadata["namespace"], name=metadata["name"], text=text
    )


def _shorten_texts(value: Any) -> Any:
    """Long texts are cut: a page shows what an object is, not the files that it carries."""
    if isinstance(value, dict):
        return {key: _shorten_texts(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shorten_texts(each) for each in value]
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}… ({len(value) - _LONGEST_TEXT} more characters)"
    return value


# -- Events --


def _newest_first(found: Iterable[Object]) -> tuple[ClusterEvent, ...]:
    ordered = sorted(
        (cluster_event(each) for each in found), key=lambda event: event.at, reverse=True
    )
    return tuple(ordered[:MOST_EVENTS])


# -- Nodes --


def _node_condition(condition: Object) -> NodeCondition:
    kind, status = str(condition.get("type", "")), condition.get("status")
    # Unknown: the kubelet has stopped reporting.
    known = status in ("True", "False")
    return NodeCondition(
        name=kind,
        holds=status == "True",
        good=known and (status == "True") is (kind in _GOOD_WHEN_TRUE),
        reason=str(condition.get("reason") or ""),
        message=str(condition.get("message") or ""),
        since=parse_time(condition.get("lastTransitionTime")),
    )


def _node_pod(pod: Object, *, installation: str) -> NodePod:
    metadata, status = pod["metadata"], nested_field(pod, "status")
    ours = object_names.is_managed_by_installation(pod, installation=installation)
    requested: dict[str, str] = {}
    for container in nested_field(pod, "spec", "containers"):
        limits, requests = (
            nested_field(container, "resources", each) for each in ("limits", "requests")
        )
        for name, text in {**limits, **requests}.items():
            requested[name] = f"{requested[name]} + {text}" if name in requested else str(text)
    return NodePod(
        namespace=str(metadata.get("namespace", "")),
        name=str(metadata["name"]),
        phase=str(status.get("phase", "")),
        launch=str(labels_of(pod).get(object_names.LAUNCH, "")) if ours else "",
        requests=requested,
        started_at=parse_time(status.get("startTime")),
    )


def _node_system_info(status: Object) -> Iterator[tuple[str, str]]:
    node_info = status.get("nodeInfo") or {}
    for word, program in _PROGRAMS.items():
        if node_info.get(word):
            yield program, str(node_info[word])
    for kind in status.get("addresses") or ():
        yield f"address ({kind.get('type', '')})", str(kind.get("address", ""))
    allocatable, capacity = status.get("allocatable") or {}, status.get("capacity") or {}
    for name, there in sorted(capacity.items()):
        usable = allocatable.get(name, "0")
        yield name, str(usable) if usable == there else f"{usable} of {there}"
