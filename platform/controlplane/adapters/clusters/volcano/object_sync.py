"""Sync of Queues, PriorityClasses and HyperNodes to a cluster that Volcano schedules.

Preemption works inside one queue and by the values of PriorityClasses; which queue gives cards back to another
is decided by what queues deserve, whatever the priority. HyperNodes follow the network topology of the nodes::

    level      tier
    superpod   3      members: spines
    spine      2      members: leaves
    leaf       1      members: nodes, each by its exact name

The tightest level that any node has is tier 1. A domain is identified by all domains around it: rack 1 of spine
a is not rack 1 of spine b. Nodes that lack an inner level are members of the outer domain, beside HyperNodes;
as Volcano wants Nodes at the leaves only, they get a HyperNode of their own there.

Queues change in an order that Volcano's admission accepts at every step. Amounts that fall and amounts that rise
are two passes: a child may not outgrow its parent even for a moment::

    1 narrow   from the bottom up   each queue to the smaller of what it has and what it shall have
    2 widen    from the top down    new queues are created, each queue gets all that it shall have
    3 command  from the top down    opened, or closed
    4 delete   from the bottom up   what is ours and no longer in the tree

After the first pass every queue has at most what it had and at most what it shall have, so the sums below each
still fit; in the second a parent is always raised before its children. A queue that moves counts in neither sum,
so it and those below it state nothing between the two passes: for as long as these calls take.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from controlplane.adapters.clusters.kubernetes import object_names as marking
from controlplane.adapters.clusters.kubernetes.api import (
    KubernetesApi,
    Manifest,
    Object,
    annotations_of,
    api_object,
    nested_field,
    object_name,
    object_path,
)
from controlplane.adapters.clusters.volcano import object_names, queues
from controlplane.adapters.clusters.volcano.queues import TranslatedQueues
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.common.topology import NETWORK_LEVELS
from controlplane.ports.clusters import LaunchRefused

_CLOSED = ("Closed", "Closing")
_METADATA = ("name", "labels", "annotations")
_PLAIN = ("parent", "weight", "reclaimable", "dequeueStrategy")
_AMOUNTS = ("guarantee", "deserved", "capability")


class ChangeAction(StrEnum):
    APPLY = "apply"
    COMMAND = "command"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChange:
    action: ChangeAction
    #: The desired object; for a deletion, the present one.
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChangePlan:
    changes: tuple[ObjectChange, ...]
    #: What cannot be done now, and what has to happen first.
    findings: tuple[FieldFinding, ...]


def plan_queue_changes(
    ours: TranslatedQueues, theirs: Sequence[Object], *, installation: str
) -> QueueChangePlan:
    """Changes from the present to the desired queues; foreign queues are not changed."""
    there = own_objects(theirs, installation=installation)
    wanted = {object_name(queue): queue for queue in ours.queues}
    stale = [queue for name, queue in there.items() if name not in wanted]
    deletions, findings = _deletable_stale_queues(stale, theirs, wanted)
    narrowed = _queues_with_smaller_amounts(there, wanted)
    then = {
        **there,
        **{object_name(spec): {**there[object_name(spec)], **spec} for spec in narrowed},
    }
    grown = [
        queue
        for queue in ours.queues
        if object_name(queue) not in then or _queue_differs(then[object_name(queue)], queue)
    ]
    return QueueChangePlan(
        changes=(
            *_changes(ChangeAction.APPLY, [*narrowed, *grown]),
            *_changes(ChangeAction.COMMAND, _queue_commands(there, ours)),
            *_changes(ChangeAction.DELETE, deletions),
        ),
        findings=tuple(findings),
    )


def _changes(action: ChangeAction, manifests: Iterable[Object]) -> Iterator[ObjectChange]:
    return (ObjectChange(action=action, manifest=dict(each)) for each in manifests)


def own_objects(theirs: Iterable[Object], *, installation: str) -> dict[str, Object]:
    """Those of this installation, by name."""
    return {
        object_name(each): each
        for each in theirs
        if marking.is_managed_by_installation(each, installation=installation)
    }


def _queues_with_smaller_amounts(
    there: Mapping[str, Object], wanted: Mapping[str, Manifest]
) -> Sequence[Manifest]:
    """The queues whose amounts fall, as they shall be for the moment."""
    narrowed: list[Manifest] = []
    for queue in reversed(_sort_parents_first(there)):
        name = object_name(queue)
        stays = _ancestor_queues(name, there) == _ancestor_queues(name, wanted)
        spec = _smaller_queue_spec(queue, wanted[name] if stays and name in wanted else None)
        if _amounts_differ(queue, {"spec": spec}):
            metadata = wanted.get(name, queue)["metadata"]
            # Without what the server keeps there.
            metadata = {word: metadata[word] for word in _METADATA if word in metadata}
            narrowed.append(api_object("Queue", metadata, version=object_names.QUEUES, spec=spec))
    return narrowed


def _amounts_differ(one: Object, other: Object) -> bool:
    return any(
        queues.queue_amounts(one, word) != queues.queue_amounts(other, word) for word in _AMOUNTS
    )


def _smaller_queue_spec(queue: Object, shall: Manifest | None) -> Manifest:
    """Its spec with the smaller of each amount.

    A cap that it shall not have any more goes at once and one that it has not had waits: a cap may be no higher
    than that of a queue above, which at this moment may be the old one or the new.
    """
    spec: Manifest = {word: queue["spec"][word] for word in _PLAIN if word in queue["spec"]}
    for word in _AMOUNTS:
        has, most = queues.queue_amounts(queue, word), queues.queue_amounts(shall or {}, word)
        both = sorted(set(has) & set(most))
        least = {resource: str(min(has[resource], most[resource])) for resource in both}
        if least:
            spec[word] = {"resource": least} if word == "guarantee" else least
    return spec


def _queue_differs(has: Object, queue: Manifest) -> bool:
    spec = nested_field(has, "spec")
    return (
        _title(has) != _title(queue)
        or _amounts_differ(has, queue)
        or any(spec.get(word) != queue["spec"][word] for word in _PLAIN)
    )


def _title(thing: Object) -> str:
    return str(annotations_of(thing).get(object_names.TITLE) or "")


def _queue_commands(there: Mapping[str, Object], ours: TranslatedQueues) -> Iterator[Manifest]:
    """A new queue opens by itself; the uid that a command has to name is only known of one that is there."""
    for queue in ours.queues:
        has = there.get(object_name(queue))
        if has is None:
            continue
        closed = (nested_field(has, "status", "state") or "Open") in _CLOSED
        closing = object_name(queue) in ours.closed
        if closed != closing and not (closing and queue["spec"]["parent"] in ours.closed):
            metadata = {**queue["metadata"], "uid": str(has["metadata"].get("uid") or "")}
            yield object_names.command_manifest(
                "Queue", metadata, action="CloseQueue" if closing else "OpenQueue"
            )


def _deletable_stale_queues(
    stale: Sequence[Object], theirs: Sequence[Object], wanted: Mapping[str, Manifest]
) -> tuple[Iterable[Object], list[FieldFinding]]:
    """Children before parents; one that cannot go yet keeps those above it."""
    findings: list[FieldFinding] = []
    gone: dict[str, Object] = {}
    parents = {
        object_name(each): wanted.get(object_name(each), each)["spec"].get("parent")
        for each in theirs
    }
    for queue in reversed(_sort_parents_first({object_name(each): each for each in stale})):
        name = object_name(queue)
        children = sum(parent == name and child not in gone for child, parent in parents.items())
        if refusal := queues.deletion_blocker(queue, children=children):
            findings.append(FieldFinding(field=queues.queue_title(queue), message=refusal))
        else:
            gone[name] = queue
    return gone.values(), findings


def _sort_parents_first(there: Mapping[str, Object]) -> list[Object]:
    """Each after the one above it, as the cluster has them."""
    return [
        there[name]
        for name in sorted(there, key=lambda name: (len(_ancestor_queues(name, there)), name))
    ]


def _ancestor_queues(name: str, queues_by_name: Mapping[str, Object]) -> tuple[str, ...]:
    """The queue and those above it; where they go in a circle, each once."""
    way: dict[str, None] = {}
    while name in queues_by_name and name not in way:
        way[name] = None
        name = queues.parent_name(queues_by_name[name])
    return tuple(way)


QUEUES_PATH = f"/apis/{object_names.QUEUES}/queues"
PRIORITY_CLASSES_PATH = f"/apis/{object_names.PRIORITIES}/priorityclasses"


def apply_changes(api: KubernetesApi, wanted: Iterable[ObjectChange]) -> None:
    """One after the other; a pending Command to Volcano is not created twice."""
    for change in wanted:
        if change.action is ChangeAction.DELETE:
            api.delete(object_path(change.manifest))
        elif change.action is ChangeAction.COMMAND:
            api.ensure(change.manifest)
        else:
            # Created by apply too: apply never removes a field of an object that was created otherwise.
            api.apply(change.manifest)


#: Highest value for users; values above belong to the system.
LARGEST: Final = 1_000_000_000


def priority_class(value: int, *, title: str, installation: str) -> Manifest:
    """Never the default of the cluster: foreign pods keep their own priority.

    :raises LaunchRefused: if Kubernetes reserves that number.
    """
    if abs(value) > LARGEST:
        raise LaunchRefused(
            "volcano.priority.out_of_range",
            "a priority on Kubernetes must be from {minimum} to {maximum}, got {value}; select "
            "another priority class",
            minimum=-LARGEST,
            maximum=LARGEST,
            value=value,
        )
    metadata = {
        "name": object_names.priority_name(value, installation=installation),
        "labels": marking.owner_labels(installation=installation),
        "annotations": {object_names.TITLE: title},
    }
    return api_object(
        "PriorityClass",
        metadata,
        version=object_names.PRIORITIES,
        value=value,
        globalDefault=False,
        preemptionPolicy="PreemptLowerPriority",
        description=f"Work of the priority {title} ({value})",
    )


def plan_priority_classes(
    classes: Mapping[str, int], theirs: Sequence[Object], *, installation: str
) -> tuple[ObjectChange, ...]:
    """What brings the cluster's classes up to date.

    One that we no longer have stays: pods that run may name it, and the name is its number.

    :param classes: value by its display name.
    """
    titles = {object_name(each): _title(each) for each in theirs}
    ours = (
        priority_class(value, title=title, installation=installation)
        for title, value in sorted(classes.items())
    )
    outdated = (each for each in ours if titles.get(object_name(each)) != _title(each))
    return tuple(_changes(ChangeAction.APPLY, outdated))


@dataclass(slots=True, kw_only=True)
class _NetworkDomain:
    level: str
    tier: int
    #: Names of the domains around it and its own, outermost first.
    domains: tuple[str, ...]
    nodes: set[str] = field(default_factory=set)
    inner: set[str] = field(default_factory=set)


def network_tiers(nodes: Iterable[Mapping[str, str]]) -> Mapping[str, int]:
    """Tier by level, of the levels that some node has a domain for; 1 is the tightest."""
    present = {level for domains in nodes for level in domains}
    ordered = [level for level in reversed(NETWORK_LEVELS) if level in present]
    return {level: tier for tier, level in enumerate(ordered, start=1)}


def hyper_nodes(
    nodes: Mapping[str, Mapping[str, str]], *, installation: str
) -> tuple[Manifest, ...]:
    """All of them, the tightest first.

    :param nodes: by the node's name, its domains by level, outermost first.
    """
    tier_of = network_tiers(nodes.values())
    found: dict[str, _NetworkDomain] = {}
    for node, places in sorted(nodes.items()):
        inner = ""
        around = tuple(places.values())
        for depth, level in reversed(list(enumerate(places, start=1))):
            domains = around[:depth]
            name = object_names.hyper_node_name(level, domains, installation=installation)
            at = found.setdefault(
                name, _NetworkDomain(level=level, tier=tier_of[level], domains=domains)
            )
            if inner:
                at.inner.add(inner)
            else:
                at.nodes.add(node)
            inner = name
    _move_nodes_to_own_domain(found, installation=installation)
    return tuple(
        _hypernode_manifest(name, each, installation=installation)
        for name, each in sorted(found.items(), key=lambda pair: (pair[1].tier, pair[0]))
    )


def plan_hyper_nodes(
    ours: Sequence[Manifest], theirs: Sequence[Object], *, installation: str
) -> tuple[ObjectChange, ...]:
    """Changes from the present to the desired HyperNodes, inner ones first; foreign ones are not changed."""
    there = own_objects(theirs, installation=installation)
    wanted = {object_name(each) for each in ours}
    changed = [
        each
        for each in ours
        if nested_field(there.get(object_name(each), {}), "spec") != each["spec"]
    ]
    stale = [each for name, each in there.items() if name not in wanted]
    stale.sort(key=lambda each: -int(each["spec"]["tier"]))
    return (*_changes(ChangeAction.APPLY, changed), *_changes(ChangeAction.DELETE, stale))


def _move_nodes_to_own_domain(found: dict[str, _NetworkDomain], *, installation: str) -> None:
    """Where a domain holds both nodes and domains, its nodes go into one of their own, a tier below."""
    for each in [each for each in found.values() if each.inner and each.nodes]:
        below = _NetworkDomain(
            level="", tier=each.tier - 1, domains=(*each.domains, ""), nodes=each.nodes
        )
        name = object_names.hyper_node_name(
            f"{each.level}-rest", each.domains, installation=installation
        )
        found[name] = below
        each.inner.add(name)
        each.nodes = set()


def _hypernode_manifest(name: str, domain: _NetworkDomain, *, installation: str) -> Manifest:
    kind, members = ("HyperNode", domain.inner) if domain.inner else ("Node", domain.nodes)
    selectors = ({"exactMatch": {"name": member}} for member in sorted(members))
    spec: Manifest = {
        "tier": domain.tier,
        "members": [{"type": kind, "selector": selector} for selector in selectors],
    }
    if domain.level:
        spec["tierName"] = domain.level
    metadata = {
        "name": name,
        "labels": marking.owner_labels(installation=installation),
        "annotations": {object_names.TITLE: " › ".join(filter(None, domain.domains))},
    }
    return api_object("HyperNode", metadata, version=object_names.TOPOLOGY, spec=spec)
