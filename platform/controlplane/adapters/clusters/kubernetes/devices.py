"""Dynamic Resource Allocation (DRA): devices that a driver publishes, instead of a device plug-in.

A driver lists its devices in ResourceSlices. The option ``device_classes`` says which of them stand for which
extended resource; they are counted on their nodes under its name, so that inventory, quotas and placement know one
kind of accelerator. Pods get them through a ResourceClaimTemplate of their role, which asks for so many devices of
a DeviceClass::

    ResourceSlice gpu.nvidia.com, node n1: gpu-0 … gpu-7  →  node n1: nvidia.com/gpu 8
    role of a Launch with 4 cards of nvidia.com/gpu       →  ResourceClaimTemplate: 4 × gpu.nvidia.com

Which devices of its node a pod gets is decided by the cluster's scheduler, as a device plug-in would. Fields:
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-claim-template-v1/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from controlplane.adapters.clusters.kubernetes import names
from controlplane.adapters.clusters.kubernetes.api import Api, ApiRefused, Object
from controlplane.adapters.clusters.kubernetes.plans import Manifest, Plan, Replica
from controlplane.adapters.clusters.kubernetes.profiles import DeviceClass
from controlplane.ports.clusters import LaunchRefused
from controlplane.ports.launches import Role

GROUP: Final = "resource.k8s.io"
#: Of the API; the newest first. 1.32 serves the last one.
VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
TEMPLATES: Final = "resourceclaimtemplates"
#: Of a role's claim, in its pods.
CLAIM: Final = "cards"
_KEEPS_AWAY = ("NoSchedule", "NoExecute")


class Device(NamedTuple):
    """One device, by the names under which claims hold it."""

    driver: str
    pool: str
    name: str


class _Published(NamedTuple):
    node: str
    resource: str
    usable: bool


class Devices:
    """What drivers publish on one cluster; nothing is asked for where no device class is named."""

    def __init__(self, api: Api, classes: Sequence[DeviceClass], *, installation: str) -> None:
        self._api = api
        self._classes = classes
        self._installation = installation
        self._version = ""

    @property
    def version(self) -> str:
        """The newest version of the API that both know; empty where the cluster has none."""
        if not self._version:
            group = self._api.found(f"/apis/{GROUP}") or {}
            served = {str(each.get("version")) for each in group.get("versions") or ()}
            self._version = next((each for each in VERSIONS if each in served), "")
        return self._version

    def version_for(self, replicas: Iterable[Replica]) -> str:
        """The version by which their cards are asked for; empty where a device plug-in offers them.

        :raises LaunchRefused: if the cluster has no such API.
        """
        resources = {card.resource for replica in replicas for card in replica.cards}
        if not any(each.resource in resources for each in self._classes):
            return ""
        if not self.version:
            raise LaunchRefused(
                "this cluster has no Dynamic Resource Allocation: upgrade it to Kubernetes 1.32 or newer, or "
                "remove its option device_classes"
            )
        return self.version

    def on(self, nodes: Sequence[Object]) -> Sequence[Object]:
        """The nodes with their devices among their extended resources."""
        return with_devices(nodes, self._published()) if self._classes else nodes

    def inventory(self, nodes: Sequence[Object]) -> tuple[Sequence[Object], Sequence[Object]]:
        """The nodes with their devices, and stand-ins for the pods of others that claim some."""
        if not self._classes:
            return nodes, ()
        found, claims = self._published(), self._listed("resourceclaims")
        return with_devices(nodes, found), holders(claims, found, installation=self._installation)

    def templates(self, namespace: str, launch: str) -> Sequence[Manifest]:
        """What stands of a Launch."""
        if not self._classes:
            return ()
        ours = names.selector(names.marks(installation=self._installation, launch=launch))
        found = self._listed(TEMPLATES, namespace=namespace, selector=ours)
        return [{"apiVersion": f"{GROUP}/{self.version}", **each} for each in found]

    def remove(self, namespace: str, launch: str) -> None:
        """Take away what ``templates`` finds; the cluster would do so later, after its owner."""
        path = f"/apis/{GROUP}/{self.version}/namespaces/{namespace}/{TEMPLATES}"
        for each in self.templates(namespace, launch):
            self._api.delete(f"{path}/{each['metadata']['name']}")

    def _published(self) -> Mapping[Device, _Published]:
        return published(self._listed("resourceslices"), self._classes)

    def _listed(self, plural: str, *, namespace: str = "", selector: str = "") -> Sequence[Object]:
        """None where the cluster has no such API, or keeps them from us: its checks say so."""
        if not self.version:
            return ()
        within = f"/namespaces/{namespace}" if namespace else ""
        query = {"labelSelector": selector} if selector else {}
        try:
            return self._api.list(
                f"/apis/{GROUP}/{self.version}{within}/{plural}", query=query
            ).items
        except ApiRefused:
            return ()


def published(
    slices: Iterable[Object], classes: Sequence[DeviceClass]
) -> Mapping[Device, _Published]:
    """Devices of nodes that belong to one of the classes; of each pool the newest generation alone."""
    found: dict[Device, _Published] = {}
    for spec in _newest(each["spec"] for each in slices):
        driver, pool = str(spec["driver"]), str(spec["pool"]["name"])
        for device in spec.get("devices") or ():
            # v1beta1 has what describes a device one level further in.
            said = device.get("basic") or device
            node = said.get("nodeName") or spec.get("nodeName")
            kind = next((each for each in classes if _belongs(said, driver, each)), None)
            if node and kind:
                taints = said.get("taints") or ()
                usable = not any(taint.get("effect") in _KEEPS_AWAY for taint in taints)
                key = Device(driver, pool, str(device["name"]))
                found[key] = _Published(str(node), kind.resource, usable)
    return found


def _newest(specs: Iterable[Object]) -> Iterator[Object]:
    specs = list(specs)
    newest: dict[tuple[str, str], int] = {}
    for spec in specs:
        key = spec["driver"], spec["pool"]["name"]
        newest[key] = max(newest.get(key, 0), int(spec["pool"].get("generation", 0)))
    for spec in specs:
        if int(spec["pool"].get("generation", 0)) == newest[spec["driver"], spec["pool"]["name"]]:
            yield spec


def _belongs(device: Object, driver: str, kind: DeviceClass) -> bool:
    """Attributes without a domain are the driver's own."""
    attributes = device.get("attributes") or {}
    return driver == kind.driver and all(
        _value(attributes.get(name) or attributes.get(f"{driver}/{name}") or {}) == wanted
        for name, wanted in kind.attributes.items()
    )


def _value(attribute: Object) -> str:
    """``{"string": "gpu"}`` → ``gpu``; ``{"bool": True}`` → ``true``."""
    value = next(iter(attribute.values()), "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def with_devices(nodes: Sequence[Object], devices: Mapping[Device, _Published]) -> Sequence[Object]:
    """Copies of the nodes; a tainted device is there and cannot be had."""
    there: dict[str, Counter[str]] = {}
    usable: dict[str, Counter[str]] = {}
    for each in devices.values():
        there.setdefault(each.node, Counter())[each.resource] += 1
        usable.setdefault(each.node, Counter())[each.resource] += each.usable
    return [_with(node, there, usable) for node in nodes]


def _with(
    node: Object, there: Mapping[str, Counter[str]], usable: Mapping[str, Counter[str]]
) -> Object:
    name, status = node["metadata"]["name"], node.get("status") or {}
    if name not in there:
        return node
    counted = {
        "capacity": {**(status.get("capacity") or {}), **_texts(there[name])},
        "allocatable": {**(status.get("allocatable") or {}), **_texts(usable[name])},
    }
    return {**node, "status": {**status, **counted}}


def _texts(counts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}


def holders(
    claims: Iterable[Object], devices: Mapping[Device, _Published], *, installation: str
) -> list[Object]:
    """For each claim that is not ours and node a pod that asks for the devices which the claim has there."""
    pods: list[Object] = []
    for claim in claims:
        labels = claim["metadata"].get("labels") or {}
        if labels.get(names.INSTALLATION) == installation:
            continue
        allocation = (claim.get("status") or {}).get("allocation") or {}
        held: dict[str, Counter[str]] = {}
        for result in (allocation.get("devices") or {}).get("results") or ():
            device = devices.get(Device(result["driver"], result["pool"], result["device"]))
            # Whoever has administrative access looks at a device and keeps it from nobody.
            if device is not None and not result.get("adminAccess"):
                held.setdefault(device.node, Counter())[device.resource] += 1
        for node, counts in held.items():
            requests = {"resources": {"requests": _texts(counts)}}
            pods.append(
                {
                    "metadata": claim["metadata"],
                    "spec": {"nodeName": node, "containers": [requests]},
                }
            )
    return pods


# -- What a role asks for --


def template_name(plan: Plan, role: Role) -> str:
    return f"{plan.launch.name}-{role.name}"


def collection(plan: Plan) -> str:
    """The path of the templates in the namespace of the Launch."""
    return f"/apis/{GROUP}/{plan.devices}/namespaces/{plan.namespace}/{TEMPLATES}"


def claim_template(plan: Plan, role: Role, *, metadata: Manifest) -> Manifest | None:
    """For all replicas of the role, which have as many cards each; None if a device plug-in offers these."""
    counts = plan.claimed(plan.replicas[role.name][0])
    if not counts:
        return None
    requests: list[dict[str, Any]] = []
    for number, (device_class, count) in enumerate(counts.items()):
        asked = {
            "deviceClassName": device_class,
            "allocationMode": "ExactCount",
            "count": count,
        }
        name = {"name": f"{CLAIM}-{number}"}
        requests.append({**name, **(asked if plan.devices == "v1beta1" else {"exactly": asked})})
    return {
        "apiVersion": f"{GROUP}/{plan.devices}",
        "kind": "ResourceClaimTemplate",
        "metadata": metadata,
        # Claims made of it bear the labels, by which they are told from those of others.
        "spec": {
            "metadata": {"labels": dict(metadata["labels"])},
            "spec": {"devices": {"requests": requests}},
        },
    }
