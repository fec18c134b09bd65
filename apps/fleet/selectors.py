"""Queries on clusters, nodes, cards and chips, and the adapters of clusters."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, TypeVar

from django.conf import settings
from django.db.models import Count, Max, Q, QuerySet

from apps.accounts import selectors as accounts
from apps.fleet.models import Card, Cluster, Node
from controlplane.domain.common.accelerators import CardState, Chip
from controlplane.domain.common.permissions import Permission
from controlplane.domain.common.resources import Bytes
from controlplane.domain.common.topology import CardLocality
from controlplane.persistence.encryption import DecryptionFailed, decrypt
from controlplane.persistence.reasons import reason_from_json
from controlplane.ports import adapter_registry
from controlplane.ports.chips import VendorProfile
from controlplane.ports.clusters import (
    CheckVerdict,
    ClusterAdapter,
    ClusterCheck,
    ClusterError,
    ClusterUnavailable,
    InspectableCluster,
)

#: The kind whose options get defaults from this installation.
_LOCAL = "local"
#: Kinds that are reached over the network: they need a kubeconfig, and label their objects with our uid.
REMOTE_KINDS: tuple[str, ...] = ("kubernetes", "volcano")
#: Seconds that a page waits for a cluster at most.
INSPECTION_TIMEOUT_SECONDS = 6.0

Result = TypeVar("Result")


@lru_cache(maxsize=64)
def _cached_adapter(kind: str, options: str, uid: str, sealed: bytes) -> ClusterAdapter:
    arguments: dict[str, Any] = json.loads(options)
    if kind in REMOTE_KINDS:
        arguments |= {"installation": uid, "kubeconfig": _decrypt_credentials(sealed)}
    return adapter_registry.create_cluster_adapter(kind, arguments)


def _decrypt_credentials(sealed: bytes) -> str:
    try:
        return decrypt(sealed).decode() if sealed else ""
    except DecryptionFailed as error:
        raise ClusterUnavailable(
            "cluster.kubeconfig.undecryptable",
            "the kubeconfig of the cluster cannot be decrypted: {error}",
            error=str(error),
        ) from error


def cluster_adapter(cluster: Cluster) -> ClusterAdapter:
    """Return the adapter of that cluster, cached while its options and kubeconfig are unchanged.

    :raises AdapterNotFound: if no package provides its kind.
    :raises ClusterError: if its options or its kubeconfig cannot be used.
    """
    options = dict(cluster.options)
    uid, sealed = "", b""
    if cluster.kind == _LOCAL:
        options.setdefault("home", str(settings.NINEFOLD_HOME))
        if settings.NINEFOLD_LOCAL_CARDS:
            options.setdefault("cards", settings.NINEFOLD_LOCAL_CARDS)
        options.setdefault("cache_limit", settings.NINEFOLD_WEIGHT_CACHE_BYTES)
    elif cluster.kind in REMOTE_KINDS:
        uid, sealed = cluster.uid, bytes(cluster.kubeconfig or b"")
        options["control_url"] = control_plane_url(cluster)
    return _cached_adapter(cluster.kind, json.dumps(options, sort_keys=True), uid, sealed)


def remote_cluster_kinds() -> tuple[str, ...]:
    """Return the kinds of clusters that users can register: remote kinds that a package provides."""
    installed = adapter_registry.cluster_kinds()
    return tuple(kind for kind in REMOTE_KINDS if kind in installed)


def cluster_option_models() -> Mapping[str, type]:
    """By installed kind of cluster, the model of its options."""
    return {
        kind: adapter_registry.cluster_options(kind).model(f"{kind.title()}ClusterOptions")
        for kind in adapter_registry.cluster_kinds()
        if kind != adapter_registry.TEST_ADAPTER
    }


def remote_cluster_option_models() -> Mapping[str, type]:
    """By kind of cluster that users can register, the model of its options."""
    models = cluster_option_models()
    return {kind: models[kind] for kind in remote_cluster_kinds() if kind in models}


def control_plane_url(cluster: Cluster | None) -> str:
    """Where work on that cluster reaches the product, without a slash at its end."""
    named = str(cluster.options.get("control_url") or "") if cluster is not None else ""
    return (named or str(settings.NINEFOLD_CONTROL_URL)).rstrip("/")


def supports_inspection(cluster: Cluster | None) -> bool:
    """Return whether its adapter supports inspection; the cluster is not contacted."""
    return cluster is not None and adapter_registry.cluster_is_inspectable(cluster.kind)


#: Threads that wait for clusters; a request gives up after ``INSPECTION_TIMEOUT_SECONDS``.
_inspection_pool = ThreadPoolExecutor(max_workers=8, thread_name_prefix="ask-cluster")


def inspect_cluster(cluster: Cluster, question: Callable[[InspectableCluster], Result]) -> Result:
    """Return the answer of the cluster, within ``INSPECTION_TIMEOUT_SECONDS``.

    :raises ClusterError: if it does not answer in time, refuses, or its kind cannot be inspected.
    """
    try:
        adapter = cluster_adapter(cluster)
    except adapter_registry.AdapterNotFound as unknown:
        raise ClusterError(str(unknown)) from unknown
    if not isinstance(adapter, InspectableCluster):
        raise ClusterError(
            "cluster.kind.inspection_unsupported",
            "a cluster of kind {kind} cannot be inspected",
            kind=repr(cluster.kind),
        )
    answer = _inspection_pool.submit(question, adapter)
    try:
        return answer.result(timeout=INSPECTION_TIMEOUT_SECONDS)
    except TimeoutError:
        answer.cancel()
        raise ClusterUnavailable(
            "cluster.inspection.timeout",
            "the cluster {cluster} did not answer within {seconds} s",
            cluster=cluster.name,
            seconds=f"{INSPECTION_TIMEOUT_SECONDS:.0f}",
        ) from None


def stored_cluster_checks(cluster: Cluster) -> tuple[ClusterCheck, ...]:
    """What the last check found; empty if there was none."""
    return tuple(
        ClusterCheck(
            name=one["name"],
            verdict=CheckVerdict(one["verdict"]),
            message=reason_from_json(one["message"]),
            remedy=reason_from_json(one["remedy"]),
            # Absent in rows of 0.1.0.
            manifest=one.get("manifest", ""),
        )
        for one in cluster.checks
    )


def is_fleet_operator(user: accounts.RequestUser) -> bool:
    """Whether they operate the fleet, by a role of the whole company: nodes run the work of every team."""
    return accounts.has_company_permission(user, Permission.OPERATE_FLEET)


def require_fleet_operator(user: accounts.RequestUser) -> None:
    """:raises PermissionRefused: unless they operate the fleet."""
    accounts.require_permission(user, Permission.OPERATE_FLEET, team=None)


def nodes_isolated_or_tainted(cluster: Cluster) -> tuple[str, ...]:
    """Return the names of its nodes that are isolated or still have our taint, in alphabetical order.

    While the cluster is unreachable, taints that are left over do not count: nobody can remove them.
    """
    withheld = Q(isolated_since__isnull=False)
    if not cluster.error:
        withheld |= Q(tainted=True)
    rows = Node.objects.filter(withheld, cluster=cluster).order_by("name")
    return tuple(rows.values_list("name", flat=True))


def nodes_with_cards() -> QuerySet[Node]:
    return Node.objects.select_related("cluster").prefetch_related("cards")


def nodes_with_cluster() -> QuerySet[Node]:
    return Node.objects.select_related("cluster")


def cards_with_node() -> QuerySet[Card]:
    return Card.objects.select_related("node")


def card_localities(node: Node) -> tuple[CardLocality, ...]:
    """Where its cards are attached, as its agent reads it, by index; empty where no agent reported it."""
    cards = (CardLocality.from_document(index, card) for index, card in node.locality.items())
    return tuple(sorted(cards, key=lambda card: card.index))


def cards_by_chip() -> dict[str, dict[str, int]]:
    """``{chip: {"total": n, "usable": m}}`` over the whole fleet."""
    rows = Card.objects.values("chip").annotate(
        total=Count("id"), usable=Count("id", filter=Q(state=CardState.USABLE))
    )
    return {row["chip"]: {"total": row["total"], "usable": row["usable"]} for row in rows}


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestNode:
    """The most that one node with a chip has; of different nodes if one has more cards, another more memory."""

    cards: int
    #: Bytes of the node itself; 0 if its cluster does not report them.
    memory: Bytes
    #: The most nodes of one cluster that have all cards of a usual node; 0 if that number varies.
    whole_nodes: int


def largest_nodes() -> dict[str, LargestNode]:
    """By chip of the fleet, whether or not the nodes take new work."""
    known = adapter_registry.all_chips()
    rows = Card.objects.values_list("chip", "node__cluster", "node").annotate(
        cards=Count("id"), memory=Max("node__memory")
    )
    cards_by_chip: dict[str, int] = defaultdict(int)
    memory_by_chip: dict[str, int] = defaultdict(int)
    whole: Counter[tuple[str, int]] = Counter()
    for name, cluster, _node, cards, memory in rows.order_by():
        cards_by_chip[name] = max(cards_by_chip[name], cards)
        memory_by_chip[name] = max(memory_by_chip[name], memory)
        node_cards = known[name].cards_per_node if name in known else 0
        whole[name, cluster] += 0 < node_cards <= cards
    return {
        name: LargestNode(
            cards=cards,
            memory=Bytes(memory_by_chip[name]),
            whole_nodes=max(count for (chip, _cluster), count in whole.items() if chip == name),
        )
        for name, cards in cards_by_chip.items()
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetChip:
    """A chip that an installed plug-in knows, and how many of it the fleet has."""

    chip: Chip
    profile: VendorProfile
    #: Cards in the whole fleet, and how many of these take new work.
    cards: int
    usable: int


def fleet_chips() -> tuple[FleetChip, ...]:
    """Those that the fleet has first, the most cards before; then the others as their plug-ins list them.

    Of slices only those that the fleet has.
    """
    known = (one for one in _count_chips() if one.cards or not one.chip.slice_of)
    return tuple(sorted(known, key=lambda one: -one.cards))


def _count_chips() -> Iterator[FleetChip]:
    counts = cards_by_chip()
    none = {"total": 0, "usable": 0}
    plugins = adapter_registry.chip_plugins()
    for chip in adapter_registry.all_chips().values():
        count = counts.get(chip.name, none)
        profile = plugins[chip.vendor].profile()
        yield FleetChip(chip=chip, profile=profile, cards=count["total"], usable=count["usable"])


def fleet_chip(name: str) -> FleetChip | None:
    """The chip of that name or alias; None if no plug-in knows it."""
    chip = adapter_registry.chip_by_name(name)
    if chip is None:
        return None
    return next(one for one in _count_chips() if one.chip.name == chip.name)


def clusters_with_chip(chip: str) -> list[Cluster]:
    """Those that have cards of that chip, by name."""
    return list(Cluster.objects.filter(nodes__cards__chip=chip).distinct().order_by("name"))


def clusters_without_images(chip: str) -> list[str]:
    """Names of the clusters that have cards of the chip, if none of them starts containers."""
    found = clusters_with_chip(chip)
    if any(cluster_adapter(cluster).runs_images for cluster in found):
        return []
    return [cluster.name for cluster in found]


def clusters_with_counts() -> QuerySet[Cluster]:
    """With ``node_count`` and ``card_count``."""
    return Cluster.objects.annotate(
        node_count=Count("nodes", distinct=True), card_count=Count("nodes__cards")
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChipCount:
    """Cards of one chip on one cluster."""

    chip: str
    total: int
    #: Of these, how many take new work.
    usable: int
    #: Bytes of the largest; 0 where cards have no memory of their own.
    memory: int


def chip_counts(cluster: Cluster) -> list[ClusterChipCount]:
    """The cluster's cards by chip, the most first."""
    rows = Card.objects.filter(node__cluster=cluster).values("chip")
    counted = rows.annotate(
        total=Count("id"),
        usable=Count("id", filter=Q(state=CardState.USABLE)),
        most=Max("memory"),
    ).order_by("-total", "chip")
    return [
        ClusterChipCount(
            chip=row["chip"], total=row["total"], usable=row["usable"], memory=row["most"]
        )
        for row in counted
    ]


def cluster_nodes(cluster: Cluster) -> QuerySet[Node]:
    """With ``card_count`` and ``usable_count``."""
    return Node.objects.filter(cluster=cluster).annotate(
        card_count=Count("cards"),
        usable_count=Count("cards", filter=Q(cards__state=CardState.USABLE)),
    )
