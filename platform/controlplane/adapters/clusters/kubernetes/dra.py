"""Dynamic Resource Allocation (DRA): devices that a driver publishes, instead of a device plug-in.

A driver lists its devices in ResourceSlices. The option ``device_classes`` maps them to extended resources; they
are counted on their nodes under its name, so that inventory, quotas and placement treat all accelerators alike.
Pods get them through a ResourceClaimTemplate of their role, which requests a number of devices of a
DraDeviceClass::

    ResourceSlice gpu.nvidia.com, node n1: gpu-0 … gpu-7  →  node n1: nvidia.com/gpu 8
    role of a Launch with 4 cards of nvidia.com/gpu       →  ResourceClaimTemplate: 4 × gpu.nvidia.com

Which devices of its node a pod gets is decided by the cluster's scheduler, as with a device plug-in. Fields:
https://kubernetes.io/docs/reference/kubernetes-api/workload-resources/resource-claim-template-v1/
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.api import (
    KubernetesApi,
    Object,
    Query,
    nested_field,
    object_name,
)
from controlplane.adapters.clusters.kubernetes.cluster_profile import DraDeviceClass
from controlplane.adapters.clusters.kubernetes.launch_plans import PlannedReplica
from controlplane.ports.clusters import LaunchRefused

GROUP: Final = "resource.k8s.io"
#: Of the API; the newest first. 1.32 serves the last one.
VERSIONS: Final = ("v1", "v1beta2", "v1beta1")
_TEMPLATES: Final = "resourceclaimtemplates"
#: Of a role's claim, in its pods.
CLAIM: Final = "cards"
_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")


class DraDevice(NamedTuple):
    """One device, by the names under which claims hold it."""

    driver: str
    pool: str
    name: str


class _PublishedDevice(NamedTuple):
    node: str
    resource: str
    usable: bool


class DraDevices:
    """What drivers publish on one cluster; nothing is read where no device class is named."""

    def __init__(
        self, api: KubernetesApi, classes: Sequence[DraDeviceClass], *, installation: str
    ) -> None:
        self._api = api
        self._classes = classes
        self._installation = installation
        self._version = ""

    @property
    def version(self) -> str:
        """The newest API version that both support; empty where the cluster serves none."""
        if not self._version:
            group = self._api.found(f"/apis/{GROUP}") or {}
            served = {str(each.get("version")) for each in group.get("versions") or ()}
            self._version = next((each for each in VERSIONS if each in served), "")
        return self._version

    def claim_api_version(self, replicas: Iterable[PlannedReplica]) -> str:
        """The version by which their cards are claimed; empty where a device plug-in offers them.

        :raises LaunchRefused: if the cluster has no such API.
        """
        resources = {card.resource for replica in replicas for card in replica.cards}
        if not any(each.resource in resources for each in self._classes):
            return ""
        if not self.version:
            raise LaunchRefused(
                "cluster.dra.required",
                "the cluster does not support Dynamic Resource Allocation; upgrade it to "
                "Kubernetes 1.32 or newer, or remove its option device_classes",
            )
        return self.version

    def on(self, nodes: Sequence[Object]) -> Sequence[Object]:
        """The nodes with their devices among their extended resources."""
        return nodes_with_devices(nodes, self._published_devices()) if self._classes else nodes

    def inventory(self, nodes: Sequence[Object]) -> tuple[Sequence[Object], Sequence[Object]]:
        """The nodes with their devices, and placeholder pods for claims of other workloads."""
        if not self._classes:
            return nodes, ()
        found, claims = self._published_devices(), self._list_objects("resourceclaims")
        return nodes_with_devices(nodes, found), placeholder_pods_of_claims(
            claims, found, installation=self._installation
        )

    def templates(self, namespace: str, launch: str) -> Sequence[Object]:
        """The claims that exist for a Launch."""
        if not self._classes:
            return ()
        ours = object_names.owned_objects_query(installation=self._installation, launch=launch)
        found = self._list_objects(_TEMPLATES, within=f"/namespaces/{namespace}", query=ours)
        return [{"apiVersion": f"{GROUP}/{self.version}", **each} for each in found]

    def remove(self, namespace: str, launch: str) -> None:
        """Delete the templates; the cluster would do so later, with their owner."""
        path = f"/apis/{GROUP}/{self.version}/namespaces/{namespace}/{_TEMPLATES}"
        for each in self.templates(namespace, launch):
            self._api.delete(f"{path}/{object_name(each)}")

    def _published_devices(self) -> Mapping[DraDevice, _PublishedDevice]:
        return published_devices(self._list_objects("resourceslices"), self._classes)

    def _list_objects(
        self, plural: str, *, within: str = "", query: Query | None = None
    ) -> Sequence[Object]:
        """None where the cluster has no such API or denies access: the checks report it."""
        if not self.version:
            return ()
        return self._api.list_visible(f"/apis/{GROUP}/{self.version}{within}/{plural}", query=query)


def published_devices(
    slices: Iterable[Object], classes: Sequence[DraDeviceClass]
) -> Mapping[DraDevice, _PublishedDevice]:
    """Devices of nodes that belong to one of the classes; of each pool the newest generation alone."""
    found: dict[DraDevice, _PublishedDevice] = {}
    for spec in _newest_pool_generations(each["spec"] for each in slices):
        driver, pool = str(spec["driver"]), str(spec["pool"]["name"])
        for device in spec.get("devices") or ():
            # v1beta1 has what describes a device one level further in.
            device_spec = device.get("basic") or device
            node = device_spec.get("nodeName") or spec.get("nodeName")
            kind = next(
                (each for each in classes if _matches_device_class(device_spec, driver, each)), None
            )
            if node and kind:
                taints = device_spec.get("taints") or ()
                usable = not any(taint.get("effect") in _BLOCKING_EFFECTS for taint in taints)
                key = DraDevice(driver, pool, str(device["name"]))
                found[key] = _PublishedDevice(str(node), kind.resource, usable)
    return found


def _newest_pool_generations(specs: Iterable[Object]) -> Iterator[Object]:
    specs = list(specs)
    newest: dict[tuple[str, str], int] = {}
    for spec in specs:
        key = spec["driver"], spec["pool"]["name"]
        newest[key] = max(newest.get(key, 0), int(spec["pool"].get("generation", 0)))
    for spec in specs:
        if int(spec["pool"].get("generation", 0)) == newest[spec["driver"], spec["pool"]["name"]]:
            yield spec


def _matches_device_class(device: Object, driver: str, kind: DraDeviceClass) -> bool:
    """Attributes without a domain are the driver's own."""
    attributes = device.get("attributes") or {}
    return driver == kind.driver and all(
        _attribute_text(attributes.get(name) or attributes.get(f"{driver}/{name}") or {}) == wanted
        for name, wanted in kind.attributes.items()
    )


def _attribute_text(attribute: Object) -> str:
    """``{"string": "gpu"}`` → ``gpu``; ``{"bool": True}`` → ``true``."""
    value = next(iter(attribute.values()), "")
    return str(value).lower() if isinstance(value, bool) else str(value)


def nodes_with_devices(
    nodes: Sequence[Object], devices: Mapping[DraDevice, _PublishedDevice]
) -> Sequence[Object]:
    """Copies of the nodes with devices; a tainted device is present but not allocatable."""
    counts: dict[str, dict[str, Counter[str]]] = {}
    for each in devices.values():
        of_node = counts.setdefault(each.node, {"capacity": Counter(), "allocatable": Counter()})
        of_node["capacity"][each.resource] += 1
        of_node["allocatable"][each.resource] += each.usable
    found = []
    for node in nodes:
        counted = {
            which: {**nested_field(node, "status", which), **_format_counts(amounts)}
            for which, amounts in counts.get(object_name(node), {}).items()
        }
        found.append({**node, "status": {**nested_field(node, "status"), **counted}})
    return found


def _format_counts(counts: Mapping[str, int]) -> dict[str, str]:
    return {name: str(count) for name, count in counts.items()}


def placeholder_pods_of_claims(
    claims: Iterable[Object], devices: Mapping[DraDevice, _PublishedDevice], *, installation: str
) -> list[Object]:
    """For each foreign claim and node, a pod that requests the devices of the claim there."""
    pods: list[Object] = []
    for claim in claims:
        if object_names.is_managed_by_installation(claim, installation=installation):
            continue
        allocated: dict[str, Counter[str]] = {}
        for result in nested_field(claim, "status", "allocation", "devices", "results"):
            device = devices.get(DraDevice(result["driver"], result["pool"], result["device"]))
            # A claim with administrative access monitors a device and does not allocate it.
            if device is not None and not result.get("adminAccess"):
                allocated.setdefault(device.node, Counter())[device.resource] += 1
        for node, counts in allocated.items():
            requests = {"resources": {"requests": _format_counts(counts)}}
            spec = {"nodeName": node, "containers": [requests]}
            pods.append({"metadata": claim["metadata"], "spec": spec})
    return pods
