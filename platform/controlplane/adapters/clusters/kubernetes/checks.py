"""What a connection needs, looked at one by one, each with what an administrator of the cluster does about it.

Nothing is changed there: what we may do is asked of the cluster's own authorizer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from controlplane.adapters.clusters.kubernetes import inventories, names
from controlplane.adapters.clusters.kubernetes.api import Api, ApiRefused, Object
from controlplane.ports.chips import ChipPlugin, VendorProfile
from controlplane.ports.clusters import Check, ClusterError, Verdict

#: The oldest release on which what we use of the API is stable, and the newest that its client is made for.
OLDEST, NEWEST = (1, 20), (1, 36)
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
_VOLCANO = "/apis/batch.volcano.sh"
#: Names that one sentence lists.
_SHOWN = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """Verbs on one kind of object."""

    resource: str
    verbs: tuple[str, ...]
    group: str = ""
    #: Of objects outside of any namespace.
    whole_cluster: bool = False
    #: What is lost without it; empty where nothing can run.
    lost: str = ""


#: Everything that we do there. The role that the documentation proposes has the same.
PERMISSIONS: Final = (
    Permission(resource="nodes", verbs=("get", "list", "watch"), whole_cluster=True),
    Permission(resource="namespaces", verbs=("list",), whole_cluster=True),
    Permission(resource="pods", verbs=("get", "list", "watch", "create", "patch", "delete")),
    Permission(resource="pods/log", verbs=("get",), lost="the output of running work is not seen"),
    Permission(resource="configmaps", verbs=("get", "list", "create", "patch", "delete")),
    Permission(resource="secrets", verbs=("get", "list", "create", "delete")),
    Permission(resource="services", verbs=("get", "list", "create", "delete")),
    Permission(resource="networkpolicies", verbs=("create", "patch"), group="networking.k8s.io"),
    Permission(
        resource="events", verbs=("list",), lost="what happened to pods and nodes is not seen"
    ),
)
#: Only where Volcano places the work.
VOLCANO_PERMISSIONS: Final = (
    Permission(
        resource="jobs",
        verbs=("get", "list", "watch", "create", "patch", "delete"),
        group="batch.volcano.sh",
    ),
    Permission(
        resource="podgroups",
        verbs=("get", "list", "watch", "create", "delete"),
        group="scheduling.volcano.sh",
    ),
    Permission(
        resource="queues",
        verbs=("get", "list", "create", "patch", "delete"),
        group="scheduling.volcano.sh",
        whole_cluster=True,
    ),
    Permission(resource="commands", verbs=("create",), group="bus.volcano.sh"),
    Permission(
        resource="hypernodes",
        verbs=("list", "create", "patch", "delete"),
        group="topology.volcano.sh",
        whole_cluster=True,
        lost="Volcano does not know where nodes stand in the network",
    ),
    Permission(
        resource="priorityclasses",
        verbs=("list", "create", "patch", "delete"),
        group="scheduling.k8s.io",
        whole_cluster=True,
    ),
)


def connection_checks(
    api: Api,
    *,
    installation: str,
    prefix: str,
    plugins: Sequence[ChipPlugin],
    cpu_cards: int = 0,
    volcano: bool = False,
) -> tuple[Check, ...]:
    """All of them in a fixed order; where the API does not answer, that alone.

    :param prefix: of the namespaces that work runs in.
    :param volcano: whether Volcano has to place the work.
    """
    try:
        found = [_version(api)]
        found += _permissions(api, volcano=volcano)
        found.append(_namespaces(api, installation=installation, prefix=prefix))
        nodes = _nodes(api)
        found.append(_ready(nodes))
        found.append(_device_plugins(nodes, plugins=plugins, cpu_cards=cpu_cards))
        found.append(_volcano(api, wanted=volcano))
    except ClusterError as error:
        return (_silent(error),)
    return tuple(found)


def _silent(error: ClusterError) -> Check:
    return Check(
        name="api",
        verdict=Verdict.FAILED,
        message=str(error),
        remedy="Check the server's address in the kubeconfig, that this machine reaches it, "
        "that the authority in the kubeconfig signed its certificate, and that the credential is valid",
    )


def _version(api: Api) -> Check:
    said = api.get("/version")
    written = str(said.get("gitVersion", ""))
    numbers = (said.get("major", ""), said.get("minor", ""))
    # Some distributions write 20+.
    release = tuple(int(found[0]) for part in numbers if (found := re.match(r"\d+", str(part))))
    oldest, newest = (".".join(map(str, one)) for one in (OLDEST, NEWEST))
    if release < OLDEST:
        return Check(
            name="api",
            verdict=Verdict.FAILED,
            message=f"Kubernetes {written} is older than {oldest}",
            remedy=f"Upgrade the cluster to {oldest} or newer",
        )
    if release > NEWEST:
        return Check(
            name="api",
            verdict=Verdict.LACKING,
            message=f"Kubernetes {written} is newer than {newest}, the newest that is known to work",
            remedy="Upgrade Ninefold; until then try one small job before others rely on the cluster",
        )
    return Check(name="api", verdict=Verdict.PASSED, message=f"Kubernetes {written} answers")


# -- What we may do --


def _permissions(api: Api, *, volcano: bool) -> list[Check]:
    wanted = (*PERMISSIONS, *VOLCANO_PERMISSIONS) if volcano else PERMISSIONS
    missing = [
        _missing(permission, verb)
        for permission in wanted
        for verb in permission.verbs
        if not _may(api, verb, resource=permission.resource, group=permission.group)
    ]
    if missing:
        return missing
    count = sum(len(permission.verbs) for permission in wanted)
    message = f"The account may do all {count} things that are needed"
    return [Check(name="permissions", verdict=Verdict.PASSED, message=message)]


def _may(api: Api, verb: str, *, resource: str, group: str, namespace: str = "") -> bool:
    """:param namespace: empty means in every one."""
    kind, _, part = resource.partition("/")
    asked = {"verb": verb, "group": group, "resource": kind, "subresource": part}
    review = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": {**asked, "namespace": namespace}},
    }
    return bool(api.create(_REVIEWS, review)["status"].get("allowed"))


def _missing(permission: Permission, verb: str) -> Check:
    where = "" if permission.whole_cluster else " in every namespace"
    return Check(
        name="permissions",
        verdict=Verdict.LACKING if permission.lost else Verdict.FAILED,
        message=f"The account may not {verb} {permission.resource}{where}"
        + (f": {permission.lost}" if permission.lost else ""),
        remedy=f"Bind a ClusterRole to it with apiGroups [{permission.group!r}], "
        f"resources [{permission.resource!r}], verbs [{verb!r}]",
    )


def _namespaces(api: Api, *, installation: str, prefix: str) -> Check:
    """They are made for each team when its first work comes, or by an administrator before."""
    if _may(api, "create", resource="namespaces", group=""):
        return Check(
            name="namespaces",
            verdict=Verdict.PASSED,
            message=f"A namespace {prefix}-… is made for each team when its first work comes",
        )
    try:
        listing = api.list("/api/v1/namespaces").items
    except ApiRefused:
        listing = ()
    there = sorted(
        each["metadata"]["name"]
        for each in listing
        if each["metadata"]["name"].startswith(f"{prefix}-")
    )
    labels = names.marks(installation=installation)
    remedy = (
        "Let the account create namespaces, or make one for each team yourself, "
        f"called {prefix}-<team> with the labels {names.selector(labels)}"
    )
    if not there:
        message = f"The account may not create namespaces, and none is called {prefix}-…"
        return Check(name="namespaces", verdict=Verdict.FAILED, message=message, remedy=remedy)
    return Check(
        name="namespaces",
        verdict=Verdict.LACKING,
        message=f"Only teams whose namespace exists can work here: {_some(there)}",
        remedy=remedy,
    )


# -- Nodes --


def _nodes(api: Api) -> Sequence[Object]:
    """None where we may not see them, which the permissions have said by then."""
    try:
        return api.list("/api/v1/nodes").items
    except ApiRefused:
        return ()


def _ready(nodes: Sequence[Object]) -> Check:
    obstacles = {_name(node): _obstacle(node) for node in nodes}
    open_ones = [name for name, obstacle in obstacles.items() if not obstacle]
    closed = [f"{name} is {obstacle}" for name, obstacle in obstacles.items() if obstacle]
    message = f"{len(open_ones)} of {len(nodes)} nodes take work" if nodes else "No node is seen"
    if closed:
        message += f"; {_some(closed)}"
    if open_ones:
        return Check(name="nodes", verdict=Verdict.PASSED, message=message)
    return Check(
        name="nodes",
        verdict=Verdict.FAILED,
        message=message,
        remedy="See `kubectl describe node` for what they wait for; pods put up with taints that are "
        "named like the resource of their cards, and with no others",
    )


def _obstacle(node: Object) -> str:
    """What keeps our pods away from it; empty if nothing does."""
    if (node.get("spec") or {}).get("unschedulable"):
        return "cordoned"
    if not inventories.is_ready(node):
        return "not ready"
    offered = (node.get("status") or {}).get("allocatable") or {}
    taints = inventories.untolerated(node, resources=offered)
    return f"tainted with {', '.join(taints)}" if taints else ""


def _device_plugins(
    nodes: Sequence[Object], *, plugins: Sequence[ChipPlugin], cpu_cards: int
) -> Check:
    """Whether cards are offered, and by every node that has some."""
    cards = {
        _name(node): len(inventories.cards_of(node, plugins=plugins, cpu_cards=cpu_cards))
        for node in nodes
    }
    offering = [name for name, count in cards.items() if count]
    message = f"{len(offering)} nodes offer {sum(cards.values())} cards"
    lacking = list(_without_plugin(nodes, plugins))
    unknown = inventories.unknown_cards(nodes, plugins=plugins)
    remedies = []
    if lacking:
        message += (
            f"; labels of {_some(lacking)} say that there are accelerators, and no resource does"
        )
        remedies.append(
            "Install the maker's device plug-in, or see why its pod does not run on those nodes"
        )
    if unknown:
        message += f"; no plug-in knows the chip of {_some(unknown)}"
        remedies.append(
            "Let the maker's feature discovery label those nodes, or add the chip as docs/adding-a-chip.md says"
        )
    if not offering and not remedies:
        remedies.append(
            "Install the device plug-in of the accelerators' maker; for work on processors, "
            "set the option cpu_cards of the cluster"
        )
    verdict = Verdict.FAILED if not offering else Verdict.LACKING if remedies else Verdict.PASSED
    return Check(
        name="device-plugins", verdict=verdict, message=message, remedy="; ".join(remedies)
    )


def _without_plugin(nodes: Sequence[Object], plugins: Sequence[ChipPlugin]) -> Iterator[str]:
    """Names of the nodes whose labels name a maker's chip, and that count none of its resources."""
    for node in nodes:
        labels = node["metadata"].get("labels") or {}
        allocatable = (node.get("status") or {}).get("allocatable") or {}
        offered = {name for name, count in allocatable.items() if str(count) != "0"}
        if any(_is_labelled(plugin, labels) and not _counts(plugin, offered) for plugin in plugins):
            yield _name(node)


def _is_labelled(plugin: ChipPlugin, labels: Object) -> bool:
    profile: VendorProfile = plugin.profile()
    return any(labels.get(name) for name in profile.model_labels) or any(
        labels.get(name) == value
        for chip in plugin.chips()
        for name, value in chip.node_labels.items()
    )


def _counts(plugin: ChipPlugin, offered: set[str]) -> bool:
    """Slices count as well: the plug-in runs."""
    if offered & {chip.resource for chip in plugin.chips()}:
        return True
    patterns = plugin.profile().resource_patterns
    return any(re.fullmatch(pattern, name) for pattern in patterns for name in offered)


def _volcano(api: Api, *, wanted: bool) -> Check:
    group = api.found(_VOLCANO)
    if group is not None:
        return Check(name="volcano", verdict=Verdict.PASSED, message="Volcano is installed")
    if not wanted:
        message = "Volcano is not installed, and not needed: Ninefold places the work itself"
        return Check(name="volcano", verdict=Verdict.PASSED, message=message)
    return Check(
        name="volcano",
        verdict=Verdict.LACKING,
        message="Volcano is not installed, and this cluster is to place work through it",
        remedy="Install Volcano, or register the cluster with the kind kubernetes",
    )


def _name(node: Object) -> str:
    return str(node["metadata"]["name"])


def _some(listed: Sequence[str]) -> str:
    """``a, b, c and 4 more``."""
    shown, more = ", ".join(listed[:_SHOWN]), len(listed) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown
