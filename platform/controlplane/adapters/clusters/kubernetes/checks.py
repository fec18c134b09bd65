"""What a connection needs, looked at one by one, each with what an administrator of the cluster does about it.

Nothing is changed there: what we may do is asked of the cluster's own authorizer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.adapters.clusters.kubernetes import inventory, object_names
from controlplane.adapters.clusters.kubernetes.api import ApiRefused, KubernetesApi, Object
from controlplane.adapters.clusters.kubernetes.cluster_profile import DeviceClass
from controlplane.adapters.clusters.kubernetes.dra import GROUP, DraDevices
from controlplane.ports.chips import ChipPlugin, VendorProfile
from controlplane.ports.clusters import CheckVerdict, ClusterCheck, ClusterError

#: The oldest release on which the API versions in use are stable, and the newest that the client supports.
OLDEST, NEWEST = (1, 20), (1, 36)
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_VOLCANO = "/apis/batch.volcano.sh"
#: Names that one sentence lists.
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class RequiredPermission:
    """Verbs on one kind of object."""

    resource: str
    verbs: tuple[str, ...]
    group: str = ""
    #: Says what is lost without it; empty where nothing can run.
    message: str = ""


#: Everything that we do there. The role that the documentation proposes has the same.
PERMISSIONS: Final = (
    RequiredPermission(resource="nodes", verbs=("get", "list", "watch")),
    RequiredPermission(resource="namespaces", verbs=("list",)),
    RequiredPermission(
        resource="namespaces",
        verbs=("patch",),
        message="The account may not label namespaces: those that exist get no Pod Security level",
    ),
    RequiredPermission(
        resource="pods", verbs=("get", "list", "watch", "create", "patch", "delete")
    ),
    RequiredPermission(
        resource="pods/log",
        verbs=("get",),
        message="The account may not read logs of pods: the output of running work is not seen",
    ),
    RequiredPermission(resource="configmaps", verbs=("get", "list", "create", "patch", "delete")),
    RequiredPermission(resource="secrets", verbs=("get", "list", "create", "delete")),
    RequiredPermission(resource="services", verbs=("get", "list", "create", "delete")),
    RequiredPermission(
        resource="networkpolicies", verbs=("create", "patch"), group="networking.k8s.io"
    ),
    RequiredPermission(
        resource="events",
        verbs=("list",),
        message="The account may not list events: what happened to pods and nodes is not seen",
    ),
    RequiredPermission(
        resource="nodes",
        verbs=("patch",),
        message="The account may not mark nodes: work of others still comes to those out of use",
    ),
)
#: Only where a DRA driver offers the cards.
DEVICE_PERMISSIONS: Final = (
    RequiredPermission(resource="resourceslices", verbs=("list",), group=GROUP),
    RequiredPermission(
        resource="resourceclaims",
        verbs=("list",),
        group=GROUP,
        message="The account may not list claims of devices: those that others hold are taken for free",
    ),
    RequiredPermission(
        resource="resourceclaimtemplates", verbs=("list", "create", "delete"), group=GROUP
    ),
)
#: Only where Volcano places the work.
VOLCANO_PERMISSIONS: Final = (
    RequiredPermission(
        resource="jobs",
        verbs=("get", "list", "watch", "create", "patch", "delete"),
        group="batch.volcano.sh",
    ),
    RequiredPermission(
        resource="podgroups",
        verbs=("get", "list", "watch", "create", "delete"),
        group="scheduling.volcano.sh",
    ),
    RequiredPermission(
        resource="queues",
        verbs=("get", "list", "create", "patch", "delete"),
        group="scheduling.volcano.sh",
    ),
    RequiredPermission(resource="commands", verbs=("create",), group="bus.volcano.sh"),
    RequiredPermission(
        resource="hypernodes",
        verbs=("list", "create", "patch", "delete"),
        group="topology.volcano.sh",
        message="The account may not keep HyperNodes: Volcano does not know where nodes stand in the network",
    ),
    RequiredPermission(
        resource="priorityclasses",
        verbs=("list", "create", "patch", "delete"),
        group="scheduling.k8s.io",
    ),
)


def connection_checks(
    api: KubernetesApi,
    *,
    installation: str,
    prefix: str,
    plugins: Sequence[ChipPlugin],
    cpu_cards: int = 0,
    volcano: bool = False,
    device_classes: Sequence[DeviceClass] = (),
) -> tuple[ClusterCheck, ...]:
    """All of them in a fixed order; where the API does not answer, that alone.

    :param prefix: of the namespaces that work runs in.
    :param volcano: whether Volcano has to place the work.
    :param device_classes: by which a DRA driver offers cards.
    """
    devices = DraDevices(api, device_classes, installation=installation)
    wanted = (
        *PERMISSIONS,
        *(VOLCANO_PERMISSIONS if volcano else ()),
        *(DEVICE_PERMISSIONS if device_classes else ()),
    )
    try:
        found = [_version_check(api)]
        found += _permission_checks(api, wanted)
        found.append(_namespace_check(api, installation=installation, prefix=prefix))
        nodes = devices.on(_list_nodes(api))
        found += _node_checks(nodes)
        if device_classes:
            found.append(_dra_check(devices))
        found += _device_plugins(nodes, plugins=plugins, cpu_cards=cpu_cards)
        found.append(_volcano_check(api, wanted=volcano))
    except ClusterError as error:
        return (_unreachable_check(error),)
    return tuple(found)


def _unreachable_check(error: ClusterError) -> ClusterCheck:
    return ClusterCheck(
        name="api",
        verdict=CheckVerdict.FAILED,
        message=str(error),
        remedy="Check the server's address in the kubeconfig, that this machine reaches it, "
        "that the authority in the kubeconfig signed its certificate, and that the credential is valid",
    )


def _version_check(api: KubernetesApi) -> ClusterCheck:
    version_info = api.get("/version")
    written = str(version_info.get("gitVersion", ""))
    numbers = (version_info.get("major", ""), version_info.get("minor", ""))
    # Some distributions write 20+.
    release = tuple(int(found[0]) for part in numbers if (found := re.match(r"\d+", str(part))))
    oldest, newest = (".".join(map(str, one)) for one in (OLDEST, NEWEST))
    if release < OLDEST:
        return ClusterCheck(
            name="api",
            verdict=CheckVerdict.FAILED,
            message=f"Kubernetes {written} is older than {oldest}",
            remedy=f"Upgrade the cluster to {oldest} or newer",
        )
    if release > NEWEST:
        return ClusterCheck(
            name="api",
            verdict=CheckVerdict.LACKING,
            message=f"Kubernetes {written} is newer than {newest}, the newest that is known to work",
            remedy="Upgrade Ninefold; until then try one small job before others rely on the cluster",
        )
    return ClusterCheck(
        name="api", verdict=CheckVerdict.PASSED, message=f"Kubernetes {written} answers"
    )


# -- What we may do --


def _permission_checks(
    api: KubernetesApi, wanted: Sequence[RequiredPermission]
) -> list[ClusterCheck]:
    missing = [
        _missing_permission_check(permission, verb)
        for permission in wanted
        for verb in permission.verbs
        if not _is_allowed(api, verb, resource=permission.resource, group=permission.group)
    ]
    if missing:
        return missing
    count = sum(len(permission.verbs) for permission in wanted)
    message = f"The account may do all {count} things that are needed"
    return [ClusterCheck(name="permissions", verdict=CheckVerdict.PASSED, message=message)]


def _is_allowed(
    api: KubernetesApi, verb: str, *, resource: str, group: str, namespace: str = ""
) -> bool:
    """:param namespace: empty means in every one."""
    kind, _, part = resource.partition("/")
    requested = {"verb": verb, "group": group, "resource": kind, "subresource": part}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**requested, "namespace": namespace}},
    }
    return bool(api.create(_REVIEWS, review)["status"].get("allowed"))


def _missing_permission_check(permission: RequiredPermission, verb: str) -> ClusterCheck:
    kind = f"{permission.resource}.{permission.group}".rstrip(".")
    rule = f"{{apiGroups: [{permission.group!r}], resources: [{permission.resource!r}], verbs: [{verb}]}}"
    return ClusterCheck(
        name="permissions",
        verdict=CheckVerdict.LACKING if permission.message else CheckVerdict.FAILED,
        message=permission.message or f"The account may not {verb} {kind}",
        remedy=f"Bind a ClusterRole to the account with this rule: {rule}",
    )


def _namespace_check(api: KubernetesApi, *, installation: str, prefix: str) -> ClusterCheck:
    """They are created for each team with its first Launch, or beforehand by an administrator."""
    if _is_allowed(api, "create", resource="namespaces", group=""):
        return ClusterCheck(
            name="namespaces",
            verdict=CheckVerdict.PASSED,
            message=f"A namespace {prefix}-… is made for each team when its first work comes",
        )
    try:
        listing = api.list("/api/v1/namespaces")
    except ApiRefused:
        listing = ()
    there = sorted(
        each["metadata"]["name"]
        for each in listing
        if each["metadata"]["name"].startswith(f"{prefix}-")
    )
    labels = object_names.owner_labels(installation=installation)
    remedy = (
        "Let the account create namespaces, or make one for each team yourself, "
        f"called {prefix}-<team> with the labels {object_names.format_label_selector(labels)}"
    )
    if not there:
        message = f"The account may not create namespaces, and none is called {prefix}-…"
        return ClusterCheck(
            name="namespaces", verdict=CheckVerdict.FAILED, message=message, remedy=remedy
        )
    return ClusterCheck(
        name="namespaces",
        verdict=CheckVerdict.LACKING,
        message=f"Only teams whose namespace exists can work here: {_shortened_list(there)}",
        remedy=remedy,
    )


# -- Nodes --


def _list_nodes(api: KubernetesApi) -> Sequence[Object]:
    """None without permission to read them, which the permission check has reported by then."""
    try:
        return api.list("/api/v1/nodes")
    except ApiRefused:
        return ()


def _node_checks(nodes: Sequence[Object]) -> Iterator[ClusterCheck]:
    unhealthy = [_node_name(node) for node in nodes if not inventory.is_ready(node)]
    cordoned = [_node_name(node) for node in nodes if inventory.is_cordoned(node)]
    tainted = [
        f"{_node_name(node)} ({', '.join(taints)})"
        for node in nodes
        if (taints := _untolerated_taints(node))
    ]
    closed = {*unhealthy, *cordoned, *(each.partition(" ")[0] for each in tainted)}
    count = len(nodes) - len(closed)
    yield ClusterCheck(
        name="nodes",
        verdict=CheckVerdict.PASSED if count else CheckVerdict.FAILED,
        message=f"{count} of {len(nodes)} nodes take work",
        remedy=""
        if count
        else "Let a node take work: see `kubectl describe node` for what keeps it away",
    )
    if unhealthy:
        yield ClusterCheck(
            name="nodes",
            verdict=CheckVerdict.LACKING,
            message=f"Not ready: {_shortened_list(unhealthy)}",
            remedy="See `kubectl describe node` for what they wait for",
        )
    if cordoned:
        yield ClusterCheck(
            name="nodes",
            verdict=CheckVerdict.PASSED,
            message=f"Cordoned: {_shortened_list(cordoned)}",
        )
    if tainted:
        yield ClusterCheck(
            name="nodes",
            verdict=CheckVerdict.PASSED,
            message=f"Kept for others by a taint: {_shortened_list(tainted)}",
            remedy="To use them, take it away; only taints named like the resource of a card are put up with",
        )


def _untolerated_taints(node: Object) -> tuple[str, ...]:
    offered = (node.get("status") or {}).get("allocatable") or {}
    return inventory.untolerated_taints(node, resources=offered)


def _device_plugins(
    nodes: Sequence[Object], *, plugins: Sequence[ChipPlugin], cpu_cards: int
) -> Iterator[ClusterCheck]:
    """Whether cards are offered, and by every node that has some."""
    counts = [
        len(inventory.cards_of_node(node, plugins=plugins, cpu_cards=cpu_cards)) for node in nodes
    ]
    offering = sum(count > 0 for count in counts)
    yield ClusterCheck(
        name="device-plugins",
        verdict=CheckVerdict.PASSED if offering else CheckVerdict.FAILED,
        message=f"Cards that nodes offer: {sum(counts)}, on {offering} of {len(nodes)} nodes",
        remedy=""
        if offering
        else "Install the device plug-in of the accelerators' maker; for work on processors, "
        "set the option cpu_cards of the cluster",
    )
    if without_plugin := list(_nodes_without_device_plugin(nodes, plugins)):
        yield ClusterCheck(
            name="device-plugins",
            verdict=CheckVerdict.LACKING,
            message="Labels say that there are accelerators, and no resource counts them: "
            f"{_shortened_list(without_plugin)}",
            remedy="Install the maker's device plug-in, or see why its pod does not run on those nodes",
        )
    if unknown := inventory.unknown_cards(nodes, plugins=plugins):
        yield ClusterCheck(
            name="device-plugins",
            verdict=CheckVerdict.LACKING,
            message=f"Nothing says which chip this is: {_shortened_list(unknown)}",
            remedy="Let the maker's feature discovery label those nodes, or add the chip as "
            "docs/adding-a-chip.md says",
        )


def _nodes_without_device_plugin(
    nodes: Sequence[Object], plugins: Sequence[ChipPlugin]
) -> Iterator[str]:
    """Names of the nodes whose labels name a vendor's chip but whose status lists none of its resources."""
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        offered = {name for name, count in allocatable.items() if str(count) != "0"}
        if any(
            _is_labelled(plugin, labels) and not _offers_resource(plugin, offered)
            for plugin in plugins
        ):
            yield _node_name(node)


def _is_labelled(plugin: ChipPlugin, labels: Object) -> bool:
    profile: VendorProfile = plugin.profile()
    return any(labels.get(name) for name in profile.model_labels) or any(
        labels.get(name) == value
        for chip in plugin.chips()
        for name, value in chip.node_labels.items()
    )


def _offers_resource(plugin: ChipPlugin, offered: set[str]) -> bool:
    """Slices count as well: the plug-in runs."""
    if offered & {chip.resource for chip in plugin.chips()}:
        return True
    patterns = plugin.profile().resource_patterns
    return any(re.fullmatch(pattern, name) for pattern in patterns for name in offered)


def _dra_check(devices: DraDevices) -> ClusterCheck:
    if devices.version:
        message = f"Dynamic Resource Allocation is served as {GROUP}/{devices.version}"
        return ClusterCheck(name="device-classes", verdict=CheckVerdict.PASSED, message=message)
    return ClusterCheck(
        name="device-classes",
        verdict=CheckVerdict.FAILED,
        message="The option device_classes is set, and the cluster has no Dynamic Resource Allocation",
        remedy="Upgrade the cluster to Kubernetes 1.32 or newer, or remove the option",
    )


def _volcano_check(api: KubernetesApi, *, wanted: bool) -> ClusterCheck:
    group = api.found(_VOLCANO)
    if group is not None:
        return ClusterCheck(
            name="volcano", verdict=CheckVerdict.PASSED, message="Volcano is installed"
        )
    if not wanted:
        message = "Volcano is not installed, and not needed: Ninefold places the work itself"
        return ClusterCheck(name="volcano", verdict=CheckVerdict.PASSED, message=message)
    return ClusterCheck(
        name="volcano",
        verdict=CheckVerdict.LACKING,
        message="Volcano is not installed, and this cluster is to place work through it",
        remedy="Install Volcano, or register the cluster with the kind kubernetes",
    )


def _node_name(node: Object) -> str:
    return str(node["metadata"]["name"])


def _shortened_list(listed: Sequence[str]) -> str:
    """``a, b, c (+4)``."""
    shown, more = ", ".join(listed[:_SHOWN]), len(listed) - _SHOWN
    return f"{shown} (+{more})" if more > 0 else shown
