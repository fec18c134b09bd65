"""Nodes with cards, from nodes, labels, resources and foreign pods of the API.

Pure functions over plain dicts. Cards of a node are numbered over its extended resources in the order of their
names, so that an index means the same card as long as the device plug-ins report the same::

    resource    capacity   allocatable   foreign pods      cards
    nvidia/gpu     8           7              2            0 1 2 3 4 [5 6] (7)
                                                           [in use by foreign pods]  (unhealthy)

A plug-in tells only the container which devices it allocated. Cards that are in use or unhealthy are then shown
at the highest indices that no pod of ours has; if the plug-in writes an annotation, at their true index.

Requests of pods are counted as the cluster's own scheduler does; a pod that has ended requests nothing::

    containers     ▆▆▆▆ + ▆▆         run together: added up
    init           ▆▆▆▆▆▆▆           run one after the other, before: the largest counts
    sidecars       ▆                 init containers that keep running: added to later ones, and to containers
    overhead       ▆                 of the pod's sandbox: added
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any, Final

from kubernetes.utils.quantity import parse_quantity

from controlplane.adapters.clusters.kubernetes import isolation_taints, object_names
from controlplane.adapters.clusters.kubernetes.api import (
    Object,
    annotations_of,
    labels_of,
    nested_field,
    object_name,
)
from controlplane.adapters.clusters.kubernetes.network_topology import domains_of
from controlplane.adapters.clusters.kubernetes.node_conditions import remediation_labels
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.domain.common.topology import (
    Group,
    InvalidCardGroups,
    network_labels,
    parse_card_groups,
)
from controlplane.ports.chips import (
    GROUP_LABELS,
    ChipPlugin,
    DiscoveredCards,
    VendorPodSettings,
    discover_cards,
)
from controlplane.ports.clusters import ObservedCard, ObservedNode

#: The chip that represents CPUs where an operator wants work on nodes without accelerators.
PROCESSOR = "cpu"
#: Effects of a taint that keep pods away; one that is only a preference does not.
_BLOCKING_EFFECTS = ("NoSchedule", "NoExecute")
#: Node annotations that are copied into its labels, beside those that plug-ins read.
_INVENTORY_ANNOTATIONS: Final = (*GROUP_LABELS, "superPodID")

Amounts = Mapping[str, Decimal]

_ENDED = ("Succeeded", "Failed")
_NONE = Decimal(0)
_PARSED: Callable[[str], Decimal] = parse_quantity


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeCard:
    """One card of a node, and the extended resource through which a pod gets it."""

    index: int
    chip: str
    #: Empty for CPUs, which are requested as ``cpu``, and for cards that are divided into slices.
    resource: str
    #: Of slices, the resource of whole cards: taints are named like it.
    card_resource: str = ""
    memory: Bytes = Bytes(0)
    #: By which a process is restricted to some of its container's cards; empty where there is none.
    variable: str = ""
    partitioned: bool = False
    #: Index of the card that it is counted as a slice of.
    parent: int | None = None


def cards_of_node(
    node: Object, *, plugins: Iterable[ChipPlugin], cpu_cards: int
) -> tuple[NodeCard, ...]:
    """Its cards in index order, those that are not healthy included.

    Left out are resources whose chip or slice profile no plug-in knows. Where an operator's word on rings cannot
    be read, what is usual for the chip holds. Whole cards come first, then those that are divided into slices,
    then the slices.
    """
    plugins = tuple(plugins)
    found = _found_card_types(node, plugins)
    return _assign_card_indices(
        found, cpu_cards=cpu_cards, divided=_count_divided_cards(node, found, plugins)
    )


def _assign_card_indices(
    found_cards: Iterable[DiscoveredCards], *, cpu_cards: int, divided: Mapping[str, int]
) -> tuple[NodeCard, ...]:
    """:param divided: how many physical cards are divided into slices, by chip."""
    kinds = sorted(
        ((each, each.chip) for each in found_cards if each.chip),
        key=lambda kind: bool(kind[1].slice_of),
    )
    if not kinds:
        return tuple(
            NodeCard(index=index, chip=PROCESSOR, resource="") for index in range(cpu_cards)
        )
    cards: list[NodeCard] = []
    parents: dict[str, list[int]] = {}
    for found, chip in kinds:
        if chip.slice_of and not parents:
            for name, count in divided.items():
                parents[name] = [len(cards) + step for step in range(count)]
                cards += (
                    NodeCard(index=index, chip=name, resource="", partitioned=True)
                    for index in parents[name]
                )
        first, whole = len(cards), parents.get(chip.slice_of, [])
        cards += (
            NodeCard(
                index=first + step,
                chip=chip.name,
                resource=found.resource,
                card_resource=found.card_resource,
                memory=found.memory,
                variable=chip.visible_devices_variable,
                # In equal parts, since only the device plug-in knows which slice is of which card.
                parent=whole[step * len(whole) // found.count] if whole else None,
            )
            for step in range(found.count)
        )
    return tuple(cards)


def _count_divided_cards(
    node: Object, found: Iterable[DiscoveredCards], plugins: Iterable[ChipPlugin]
) -> dict[str, int]:
    """Number of physical cards of each chip that are divided into slices: at least one, if unreported."""
    labels = labels_of(node)
    wholes = {each.chip.name: each.count for each in found if each.chip}
    sliced = {each.chip.slice_of for each in found if each.chip and each.chip.slice_of}
    divided = {}
    for plugin in plugins:
        counted = str(labels.get(plugin.profile().count_label, ""))
        count = int(counted) if counted.isdecimal() else 0
        for chip in plugin.chips():
            if chip.name in sliced:
                divided[chip.name] = max(1, count - wholes.get(chip.name, 0))
    return divided


def observed_nodes(
    nodes: Sequence[Object],
    pods: Iterable[Object],
    *,
    installation: str,
    plugins: Sequence[ChipPlugin],
    cpu_cards: int = 0,
    hypernodes: Sequence[Object] = (),
) -> tuple[ObservedNode, ...]:
    """All nodes with their cards and what foreign pods leave of them, by name.

    :param pods: of the whole cluster; ended ones do not count.
    :param hypernodes: of Volcano; empty if there are none.
    """
    on_node: dict[str, list[Object]] = {}
    for pod in pods:
        if where := nested_field(pod, "spec").get("nodeName"):
            on_node.setdefault(where, []).append(pod)
    domains = domains_of(nodes, hypernodes=hypernodes)
    observed = (
        _NodeInventory(
            node=node,
            pods=on_node.get(object_name(node), ()),
            installation=installation,
            plugins=plugins,
            cpu_cards=cpu_cards,
        ).observed(domains=domains[object_name(node)])
        for node in nodes
    )
    return tuple(sorted(observed, key=lambda each: each.name))


def unrecognized_card_resources(
    nodes: Iterable[Object], *, plugins: Sequence[ChipPlugin]
) -> tuple[str, ...]:
    """Resources left out of the nodes because no plug-in knows the chip, each as ``8 × resource on node``."""
    return tuple(
        f"{found.count} × {found.resource} on {object_name(node)}"
        for node in nodes
        for found in _found_card_types(node, plugins)
        if found.chip is None
    )


def untolerated_taints(
    node: Object, *, resources: Iterable[str], installation: str = ""
) -> tuple[str, ...]:
    """Taints as ``key=value:effect`` that keep our pods away, which put up with those named like a resource.

    The installation's own taint is not among them: it is meant for other workloads.
    """
    tolerated = set(resources)
    return tuple(
        taint_text(taint)
        for taint in nested_field(node, "spec", "taints")
        if taint.get("effect") in _BLOCKING_EFFECTS
        and taint.get("key") not in tolerated
        and not isolation_taints.is_own_isolation_taint(taint, installation=installation)
    )


def taint_text(taint: Object) -> str:
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"


def is_node_ready(node: Object) -> bool:
    """Whether its kubelet reports Ready."""
    return any(
        each["type"] == "Ready" and each["status"] == "True"
        for each in nested_field(node, "status", "conditions")
    )


def is_node_cordoned(node: Object) -> bool:
    """Whether an administrator of the cluster keeps new pods away from it."""
    return bool(nested_field(node, "spec", "unschedulable"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _NodeInventory:
    node: Object
    pods: Sequence[Object]
    installation: str
    plugins: Sequence[ChipPlugin]
    cpu_cards: int

    def observed(self, *, domains: Mapping[str, str]) -> ObservedNode:
        found = _found_card_types(self.node, self.plugins)
        divided = _count_divided_cards(self.node, found, self.plugins)
        cards = _assign_card_indices(found, cpu_cards=self.cpu_cards, divided=divided)
        others = [
            pod
            for pod in self.pods
            if not object_names.is_managed_by_installation(pod, installation=self.installation)
        ]
        requested = [(pod, pod_requests(pod)) for pod in others]
        unhealthy, taken = self._unavailable_cards(cards, requested)
        resources = {name for card in cards for name in (card.resource, card.card_resource)}
        return ObservedNode(
            name=object_name(self.node),
            cards=tuple(
                ObservedCard(
                    index=card.index,
                    chip=card.chip,
                    memory=card.memory,
                    healthy=card.index not in unhealthy,
                    taken=card.index in taken,
                    partitioned=card.partitioned,
                    parent=card.parent,
                )
                for card in cards
            ),
            capacity=self._remaining_capacity(requested),
            ready=is_node_ready(self.node)
            and not is_node_cordoned(self.node)
            and not untolerated_taints(
                self.node, resources=resources, installation=self.installation
            ),
            labels={**self._node_labels(), **network_labels(domains)},
            rings=_card_rings(found),
        )

    def _remaining_capacity(self, requested: Sequence[tuple[Object, Amounts]]) -> Resources:
        """CPU and memory allocatable to pods here, less the requests of others."""
        allocatable = nested_field(self.node, "status", "allocatable")
        left = {
            name: parse_amount(str(allocatable[name]))
            - sum(each.get(name, 0) for _, each in requested)
            for name in ("cpu", "memory")
            if name in allocatable
        }
        return cpu_and_memory(left)

    def _unavailable_cards(
        self, cards: Sequence[NodeCard], requested: Sequence[tuple[Object, Amounts]]
    ) -> tuple[frozenset[int], frozenset[int]]:
        """Indices of the cards that are not healthy, and of those that pods of others have."""
        own = self._cards_of_own_pods()
        unhealthy: set[int] = set()
        taken: set[int] = set()
        for resource in {card.resource for card in cards if card.resource}:
            indices = [card.index for card in cards if card.resource == resource]
            there, usable = (
                int(parse_amount(str(nested_field(self.node, "status", which).get(resource, "0"))))
                for which in ("capacity", "allocatable")
            )
            free = [index for index in indices if index not in own]
            unhealthy |= _highest_indices(free, there - usable)
            known, unknown = self._cards_of_foreign_pods(resource, indices, requested)
            free = [index for index in free if index not in unhealthy | known]
            taken |= known | _highest_indices(free, unknown)
        return frozenset(unhealthy), frozenset(taken)

    def _cards_of_own_pods(self) -> frozenset[int]:
        """Indices that our pods were placed on, from their annotations."""
        found: set[int] = set()
        for pod in self.pods:
            if object_names.is_managed_by_installation(
                pod, installation=self.installation
            ) and pod_requests(pod):
                text = annotations_of(pod).get(object_names.CARDS, "")
                found |= {int(each) for each in text.split(",") if each.isdecimal()}
        return frozenset(found)

    def _cards_of_foreign_pods(
        self, resource: str, indices: Sequence[int], requested: Sequence[tuple[Object, Amounts]]
    ) -> tuple[set[int], int]:
        """Indices of cards that pods of others surely have, and how many more they have."""
        known: set[int] = set()
        unknown = 0
        for pod, amounts in requested:
            count = int(amounts.get(resource, 0))
            if not count:
                continue
            written = {indices[0] + place for place in self._annotated_devices(pod, resource)}
            if len(written) == count and written <= set(indices):
                known |= written
            else:
                unknown += count
        return known, unknown

    def _annotated_devices(self, pod: Object, resource: str) -> set[int]:
        """Devices of the resource in the pod's annotation by the plug-in; empty if it writes none."""
        annotations = annotations_of(pod)
        for plugin in self.plugins:
            extras = plugin.profile().pods.of_resource(resource)
            if extras.device_annotation == resource and resource in annotations:
                return _parse_device_indices(extras, annotations[resource])
        return set()

    def _node_labels(self) -> dict[str, str]:
        """Its labels; of its annotations those that plug-ins and placement read."""
        read = list(_INVENTORY_ANNOTATIONS)
        for profile in (plugin.profile() for plugin in self.plugins):
            read += (*profile.model_labels, profile.memory_label, profile.layout_label)
        annotations = annotations_of(self.node)
        selected = {name: annotations[name] for name in read if name in annotations}
        return {**selected, **remediation_labels(self.node), **labels_of(self.node)}


def _card_rings(found: Iterable[DiscoveredCards]) -> tuple[Group, ...]:
    """Of a node with one kind of card; indices of several kinds would run together."""
    known = [each for each in found if each.chip and not each.chip.slice_of]
    if len(known) != 1:
        return ()
    rings = (
        tuple(card for card in ring if card < known[0].count) for ring in known[0].geometry.rings
    )
    return tuple(ring for ring in rings if ring)


def _found_card_types(node: Object, plugins: Sequence[ChipPlugin]) -> tuple[DiscoveredCards, ...]:
    """Cards by resource, and slices of a known profile, those that are not healthy among them."""
    labels, annotations = dict(labels_of(node)), dict(annotations_of(node))
    amounts = [nested_field(node, "status", which) for which in ("capacity", "allocatable")]
    counts = {
        name: max((str(each.get(name, "0")) for each in amounts), key=parse_amount)
        for name in {**amounts[0], **amounts[1]}
    }
    for texts in (labels, annotations):
        for name in GROUP_LABELS:
            if not _is_valid_grouping(texts.get(name, "")):
                del texts[name]
    known = {chip.resource for plugin in plugins for chip in plugin.chips()}
    found = discover_cards(plugins, labels=labels, annotations=annotations, allocatable=counts)
    return tuple(each for each in found if each.resource in known)


def _is_valid_grouping(groups: str) -> bool:
    try:
        return not groups or bool(parse_card_groups(groups))
    except InvalidCardGroups:
        return False


def _parse_device_indices(extras: VendorPodSettings, text: str) -> set[int]:
    """``Ascend910-0,Ascend910-3`` → {0, 3}."""
    pattern = re.escape(extras.device_name).replace(re.escape("{index}"), r"(\d{1,4})")
    found = (re.fullmatch(pattern, device.strip()) for device in text.split(","))
    return {int(each[1]) for each in found if each is not None}


def _highest_indices(indices: Sequence[int], count: int) -> set[int]:
    return set(sorted(indices)[-count:]) if count > 0 else set()


# -- Requests of pods --


@lru_cache(maxsize=4096)
def parse_amount(text: str) -> Decimal:
    """``1500m`` → 1.5, ``2Gi`` → 2147483648; what cannot be read is nothing."""
    try:
        return _PARSED(text)
    except ValueError:
        return _NONE


def pod_requests(pod: Object) -> Amounts:
    """By resource, for as long as the pod has not ended."""
    if nested_field(pod, "status", "phase") in _ENDED:
        return {}
    spec = nested_field(pod, "spec")
    sidecars: Amounts = {}
    most: Amounts = {}
    for container in spec.get("initContainers") or ():
        requested = _combine_resource_amounts(
            sidecars, _container_resource_requests(container), by=sum
        )
        most = _combine_resource_amounts(most, requested, by=max)
        if container.get("restartPolicy") == "Always":
            sidecars = requested
    together = _combine_resource_amounts(
        sidecars, *map(_container_resource_requests, spec.get("containers") or ()), by=sum
    )
    # Newer releases have requests of the whole pod, which take precedence over those of its containers.
    stated = {
        **_combine_resource_amounts(most, together, by=max),
        **_container_resource_requests(spec),
    }
    return _combine_resource_amounts(stated, _parse_amounts(spec.get("overhead") or {}), by=sum)


def cpu_and_memory(amounts: Amounts) -> Resources:
    """CPU and memory, none below 0; of a fraction of the smallest unit nothing is left."""
    return Resources(
        cpu=Millicpu(max(0, int(amounts.get("cpu", _NONE) * 1000))),
        memory=Bytes(max(0, int(amounts.get("memory", _NONE)))),
    )


def _container_resource_requests(holder: Object) -> Amounts:
    """Of a container, or a pod as a whole; a limit without a request counts as a request."""
    limits, requests = (nested_field(holder, "resources", each) for each in ("limits", "requests"))
    return _parse_amounts({**limits, **requests})


def _parse_amounts(texts: Mapping[str, Any]) -> Amounts:
    return {name: parse_amount(str(text)) for name, text in texts.items()}


def _combine_resource_amounts(
    *amounts: Amounts, by: Callable[[Iterable[Decimal]], Decimal | int]
) -> Amounts:
    stated = [each for each in amounts if each]
    if len(stated) == 1:
        # Most pods have one container and nothing else.
        return stated[0]
    names = {name: None for each in stated for name in each}
    return {name: Decimal(by([each.get(name, _NONE) for each in stated])) for name in names}
