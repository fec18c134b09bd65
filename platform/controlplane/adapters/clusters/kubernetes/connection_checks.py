"""Checks of a connection, each with a remedy for an administrator of the cluster.

Nothing is changed: permissions are checked with the cluster's own authorizer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

from controlplane.adapters.clusters.kubernetes import inventory, object_names
from controlplane.adapters.clusters.kubernetes.api import (
    KubernetesApi,
    Object,
    labels_of,
    nested_field,
    object_name,
)
from controlplane.adapters.clusters.kubernetes.cluster_profile import ClusterProfile
from controlplane.adapters.clusters.kubernetes.dra import GROUP, DraDevices
from controlplane.domain.common.reasons import Reason
from controlplane.ports.chips import ChipPlugin
from controlplane.ports.clusters import CheckVerdict, ClusterCheck, ClusterError

#: The oldest release on which the API versions in use are stable, and the newest that the client supports.
OLDEST, NEWEST = (1, 20), (1, 36)
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_VOLCANO = "/apis/batch.volcano.sh"
#: Names that one sentence lists.
_SHOWN = 3

SchedulerChecks = Callable[[KubernetesApi], Sequence[ClusterCheck]]

passed = partial(ClusterCheck, verdict=CheckVerdict.PASSED)
lacking = partial(ClusterCheck, verdict=CheckVerdict.LACKING)
failed = partial(ClusterCheck, verdict=CheckVerdict.FAILED)


class RequiredPermission(NamedTuple):
    """Verbs, separated by spaces, on one kind of object."""

    verbs: str
    resource: str
    group: str = ""
    #: What is unavailable without it; empty if nothing can run without it.
    message: str = ""


#: Everything that we do there. The role that the documentation proposes has the same.
PERMISSIONS: Final = (
    RequiredPermission("get list watch", "nodes"),
    RequiredPermission("list", "namespaces"),
    RequiredPermission(
        "patch",
        "namespaces",
        message=Reason(
            "cluster.permission.namespace_labels",
            "The account cannot patch namespaces: existing namespaces get no Pod Security level",
        ),
    ),
    RequiredPermission("get list watch create patch delete", "pods"),
    RequiredPermission(
        "get",
        "pods/log",
        message=Reason(
            "cluster.permission.pod_logs",
            "The account cannot read the logs of pods: the output of running workloads is not available",
        ),
    ),
    RequiredPermission("get list create patch delete", "configmaps"),
    RequiredPermission("get list create delete", "secrets"),
    RequiredPermission("get list create delete", "services"),
    RequiredPermission("create patch", "networkpolicies", group="networking.k8s.io"),
    RequiredPermission(
        "list",
        "events",
        message=Reason(
            "cluster.permission.events",
            "The account cannot list events: the events of pods and nodes are not available",
        ),
    ),
    RequiredPermission(
        "patch",
        "nodes",
        message=Reason(
            "cluster.permission.node_patch",
            "The account cannot patch nodes: workloads of other owners are still scheduled to cordoned nodes",
        ),
    ),
)
#: Only where a DRA driver offers the cards.
DEVICE_PERMISSIONS: Final = (
    RequiredPermission("list", "resourceslices", group=GROUP),
    RequiredPermission(
        "list",
        "resourceclaims",
        group=GROUP,
        message=Reason(
            "cluster.permission.resource_claims",
            "The account cannot list ResourceClaims: devices that are allocated to other owners "
            "are counted as free",
        ),
    ),
    RequiredPermission("list create delete", "resourceclaimtemplates", group=GROUP),
)
#: Only where Volcano places the work.
VOLCANO_PERMISSIONS: Final = (
    RequiredPermission("get list watch create patch delete", "jobs", group="batch.volcano.sh"),
    RequiredPermission("get list watch create delete", "podgroups", group="scheduling.volcano.sh"),
    RequiredPermission("get list create patch delete", "queues", group="scheduling.volcano.sh"),
    RequiredPermission("create", "commands", group="bus.volcano.sh"),
    RequiredPermission(
        "list create patch delete",
        "hypernodes",
        group="topology.volcano.sh",
        message=Reason(
            "cluster.permission.hypernodes",
            "The account cannot manage HyperNodes: Volcano does not know the network topology of the nodes",
        ),
    ),
    RequiredPermission("list create patch delete", "priorityclasses", group="scheduling.k8s.io"),
)


def connection_checks(
    api: KubernetesApi,
    *,
    installation: str,
    profile: ClusterProfile,
    plugins: Sequence[ChipPlugin],
    scheduler_checks: SchedulerChecks | None = None,
) -> tuple[ClusterCheck, ...]:
    """All checks in a fixed order; if the API does not respond, that check alone.

    :param scheduler_checks: checks of Volcano where it schedules the workloads; None where Ninefold does.
    """
    devices = DraDevices(api, profile.device_classes, installation=installation)
    wanted = (
        *PERMISSIONS,
        *(VOLCANO_PERMISSIONS if scheduler_checks else ()),
        *(DEVICE_PERMISSIONS if profile.device_classes else ()),
    )
    try:
        found = [_version_check(api), *_permission_checks(api, wanted)]
        found.append(_namespace_check(api, installation=installation, prefix=profile.namespace))
        # None without permission to read them, which has been reported by then.
        nodes = devices.on(api.list_visible("/api/v1/nodes"))
        found += _node_checks(nodes)
        if profile.device_classes:
            found.append(_dra_check(devices))
        found += _device_plugins(nodes, plugins=plugins, cpu_cards=profile.cpu_cards)
        found.append(_volcano_check(api, wanted=scheduler_checks is not None))
        if scheduler_checks:
            found += scheduler_checks(api)
    except ClusterError as error:
        unreachable = failed(
            name="api",
            message=str(error),
            remedy=Reason(
                "cluster.connection.unreachable_remedy",
                "Check that the server URL in the kubeconfig is correct and reachable from this "
                "host, that the CA in the kubeconfig signed its certificate, and that the "
                "credential is valid",
            ),
        )
        return (unreachable,)
    return tuple(found)


def _version_check(api: KubernetesApi) -> ClusterCheck:
    version_info = api.get("/version")
    written = str(version_info.get("gitVersion", ""))
    numbers = (version_info.get("major", ""), version_info.get("minor", ""))
    # Some distributions write 20+.
    release = tuple(int(found[0]) for part in numbers if (found := re.match(r"\d+", str(part))))
    oldest, newest = (".".join(map(str, one)) for one in (OLDEST, NEWEST))
    if release < OLDEST:
        return failed(
            name="api",
            message=Reason(
                "cluster.version.too_old",
                "Kubernetes {version} is older than {minimum}",
                version=written,
                minimum=oldest,
            ),
            remedy=Reason(
                "cluster.version.too_old_remedy",
                "Upgrade the cluster to {minimum} or newer",
                minimum=oldest,
            ),
        )
    if release > NEWEST:
        return lacking(
            name="api",
            message=Reason(
                "cluster.version.unverified",
                "Kubernetes {version} is newer than {maximum}, the newest verified version",
                version=written,
                maximum=newest,
            ),
            remedy=Reason(
                "cluster.version.unverified_remedy",
                "Upgrade Ninefold; until then, run a small test job before you use the cluster in production",
            ),
        )
    return passed(
        name="api",
        message=Reason(
            "cluster.version.supported", "Kubernetes {version} is reachable", version=written
        ),
    )


# -- What we may do --


def _permission_checks(
    api: KubernetesApi, wanted: Sequence[RequiredPermission]
) -> list[ClusterCheck]:
    missing = [
        _missing_permission_check(permission, verb)
        for permission in wanted
        for verb in permission.verbs.split()
        if not _has_cluster_permission(
            api, verb, resource=permission.resource, group=permission.group
        )
    ]
    count = sum(len(permission.verbs.split()) for permission in wanted)
    message = Reason(
        "cluster.permission.complete",
        "The account has all required permissions ({count})",
        count=count,
    )
    return missing or [passed(name="permissions", message=message)]


def _has_cluster_permission(
    api: KubernetesApi, verb: str, *, resource: str, group: str = ""
) -> bool:
    """In every namespace."""
    kind, _, part = resource.partition("/")
    requested = {"verb": verb, "group": group, "resource": kind, "subresource": part}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**requested, "namespace": ""}},
    }
    return bool(api.create(_REVIEWS, review)["status"].get("allowed"))


def _missing_permission_check(permission: RequiredPermission, verb: str) -> ClusterCheck:
    kind = f"{permission.resource}.{permission.group}".rstrip(".")
    rule = f"{{apiGroups: [{permission.group!r}], resources: [{permission.resource!r}], verbs: [{verb}]}}"
    return (lacking if permission.message else failed)(
        name="permissions",
        message=permission.message
        or Reason(
            "cluster.permission.missing",
            "The account cannot {verb} {resource}",
            verb=verb,
            resource=kind,
        ),
        remedy=Reason(
            "cluster.permission.missing_remedy",
            "Bind a ClusterRole to the account with this rule: {rule}",
            rule=rule,
        ),
    )


def _namespace_check(api: KubernetesApi, *, installation: str, prefix: str) -> ClusterCheck:
    """They are created for each team with its first Launch, or beforehand by an administrator."""
    if _has_cluster_permission(api, "create", resource="namespaces"):
        return passed(
            name="namespaces",
            message=Reason(
                "cluster.namespace.created_automatically",
                "A namespace {prefix}-… is created for each team with its first workload",
                prefix=prefix,
            ),
        )
    namespaces = map(object_name, api.list_visible("/api/v1/namespaces"))
    there = sorted(name for name in namespaces if name.startswith(f"{prefix}-"))
    labels = object_names.owner_labels(installation=installation)
    remedy = Reason(
        "cluster.namespace.missing_remedy",
        "Allow the account to create namespaces, or create one for each team, named "
        "{prefix}-<team>, with the labels {labels}",
        prefix=prefix,
        labels=object_names.format_label_selector(labels),
    )
    if not there:
        message = Reason(
            "cluster.namespace.not_found",
            "The account cannot create namespaces, and there is no namespace {prefix}-…",
            prefix=prefix,
        )
        return failed(name="namespaces", message=message, remedy=remedy)
    return lacking(
        name="namespaces",
        message=Reason(
            "cluster.namespace.existing_only",
            "Only teams with an existing namespace can run workloads here: {namespaces}",
            namespaces=_shortened_list(there),
        ),
        remedy=remedy,
    )


# -- Nodes --


def _node_checks(nodes: Sequence[Object]) -> Iterator[ClusterCheck]:
    unhealthy = [object_name(node) for node in nodes if not inventory.is_node_ready(node)]
    cordoned = [object_name(node) for node in nodes if inventory.is_node_cordoned(node)]
    taints = {
        object_name(node): inventory.untolerated_taints(
            node, resources=nested_field(node, "status", "allocatable")
        )
        for node in nodes
    }
    tainted = [f"{name} ({', '.join(found)})" for name, found in taints.items() if found]
    closed = {*unhealthy, *cordoned, *(name for name, found in taints.items() if found)}
    count = len(nodes) - len(closed)
    yield (passed if count else failed)(
        name="nodes",
        message=Reason(
            "cluster.nodes.schedulable",
            "Schedulable nodes: {count} of {total}",
            count=count,
            total=len(nodes),
        ),
        remedy=""
        if count
        else Reason(
            "cluster.nodes.unschedulable_remedy",
            "Make at least one node schedulable; `kubectl describe node` shows its conditions and taints",
        ),
    )
    if unhealthy:
        yield lacking(
            name="nodes",
            message=Reason(
                "cluster.nodes.not_ready", "Not ready: {nodes}", nodes=_shortened_list(unhealthy)
            ),
            remedy=Reason(
                "cluster.nodes.not_ready_remedy",
                "See the conditions of the nodes in `kubectl describe node`",
            ),
        )
    if cordoned:
        yield passed(
            name="nodes",
            message=Reason(
                "cluster.nodes.cordoned", "Cordoned: {nodes}", nodes=_shortened_list(cordoned)
            ),
        )
    if tainted:
        yield passed(
            name="nodes",
            message=Reason(
                "cluster.nodes.tainted", "Tainted: {nodes}", nodes=_shortened_list(tainted)
            ),
            remedy=Reason(
                "cluster.nodes.tainted_remedy",
                "To use these nodes, remove the taints; only taints named after the resource of a "
                "card are tolerated",
            ),
        )


def _device_plugins(
    nodes: Sequence[Object], *, plugins: Sequence[ChipPlugin], cpu_cards: int
) -> Iterator[ClusterCheck]:
    """Whether cards are offered, and by every node that has some."""
    counts = [
        len(inventory.cards_of_node(node, plugins=plugins, cpu_cards=cpu_cards)) for node in nodes
    ]
    offering = sum(count > 0 for count in counts)
    yield (passed if offering else failed)(
        name="device-plugins",
        message=Reason(
            "cluster.cards.allocatable",
            "Allocatable cards: {cards}, on {nodes} of {total} nodes",
            cards=sum(counts),
            nodes=offering,
            total=len(nodes),
        ),
        remedy=""
        if offering
        else Reason(
            "cluster.cards.device_plugin_remedy",
            "Install the device plug-in of the accelerator vendor; to run workloads on CPUs, set "
            "the cluster option cpu_cards",
        ),
    )
    without_plugin = [
        object_name(node)
        for node in nodes
        if any(_lacks_device_plugin(node, plugin) for plugin in plugins)
    ]
    if without_plugin:
        yield lacking(
            name="device-plugins",
            message=Reason(
                "cluster.cards.not_allocatable",
                "Nodes with accelerator labels but without allocatable accelerators: {nodes}",
                nodes=_shortened_list(without_plugin),
            ),
            remedy=Reason(
                "cluster.cards.not_allocatable_remedy",
                "Install the vendor's device plug-in, or check why its pod does not run on these nodes",
            ),
        )
    if unknown := inventory.unrecognized_card_resources(nodes, plugins=plugins):
        yield lacking(
            name="device-plugins",
            message=Reason(
                "cluster.cards.unknown_chip",
                "Unknown chip: {cards}",
                cards=_shortened_list(unknown),
            ),
            remedy=Reason(
                "cluster.cards.unknown_chip_remedy",
                "Label these nodes with the vendor's feature discovery, or add the chip as "
                "described in docs/adding-a-chip.md",
            ),
        )


def _lacks_device_plugin(node: Object, plugin: ChipPlugin) -> bool:
    """Whether labels name a chip of the vendor and no resource of it is offered; slices count as well."""
    labels, profile, chips = labels_of(node), plugin.profile(), plugin.chips()
    labelled = any(labels.get(name) for name in profile.model_labels) or any(
        labels.get(name) == value for chip in chips for name, value in chip.node_labels.items()
    )
    allocatable = nested_field(node, "status", "allocatable")
    offered = {name for name, count in allocatable.items() if str(count) != "0"}
    return (
        labelled
        and not offered & {chip.resource for chip in chips}
        and not any(
            re.fullmatch(pattern, name) for pattern in profile.resource_patterns for name in offered
        )
    )


def _dra_check(devices: DraDevices) -> ClusterCheck:
    if devices.version:
        message = Reason(
            "cluster.dra.available",
            "Dynamic Resource Allocation is available as {group}/{version}",
            group=GROUP,
            version=devices.version,
        )
        return passed(name="device-classes", message=message)
    return failed(
        name="device-classes",
        message=Reason(
            "cluster.dra.not_available",
            "The option device_classes is set, but the cluster does not support Dynamic Resource Allocation",
        ),
        remedy=Reason(
            "cluster.dra.not_available_remedy",
            "Upgrade the cluster to Kubernetes 1.32 or newer, or remove the option",
        ),
    )


def _volcano_check(api: KubernetesApi, *, wanted: bool) -> ClusterCheck:
    if api.found(_VOLCANO) is not None:
        return passed(
            name="volcano", message=Reason("volcano.installation.found", "Volcano is installed")
        )
    if not wanted:
        message = Reason(
            "volcano.installation.not_required",
            "Volcano is not installed and not required: Ninefold schedules the workloads",
        )
        return passed(name="volcano", message=message)
    return lacking(
        name="volcano",
        message=Reason(
            "volcano.installation.missing",
            "Volcano is not installed, but the kind of this cluster requires it",
        ),
        remedy=Reason(
            "volcano.installation.missing_remedy",
            "Install Volcano, or register the cluster with the kind kubernetes",
        ),
    )


def _shortened_list(listed: Sequence[str]) -> str:
    """``a, b, c (+4)``."""
    shown, more = ", ".join(listed[:_SHOWN]), len(listed) - _SHOWN
    return f"{shown} (+{more})" if more > 0 else shown
