"""From our queue tree to Volcano's Queues.

::

    ours                              theirs, by extended resource
    guaranteed  lent while idle    ─▶ deserved             what exceeds it can be reclaimed
    reserved    never lent         ─▶ guarantee.resource   all of the guarantee where a queue does not lend
    cap                            ─▶ capability           the guarantee where a queue does not borrow
    closed                         ─▶ command CloseQueue   draining stays open: of a queue that it closes
                                                           Volcano places nothing, and what waits must still run

Volcano wants of each queue that its children's amounts fit into its own, and takes what is not stated for 0 there;
a tree of ours may state a guarantee at the bottom alone. So amounts are *rolled up*: a queue has at least what
those below it have together. It also wants no capability above that of a queue over it, where ours only warns:
that is cut.

Nothing stands for cards of all chips together, for a limit per person, or for a queue that waives its right to
reclaim; each is a finding. ``reclaimable`` is always true: beyond its guarantee a queue of ours holds nothing by
right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

from controlplane.adapters.clusters.kubernetes import object_names as marking
from controlplane.adapters.clusters.kubernetes.api import (
    Manifest,
    Object,
    annotations_of,
    api_object,
    nested_field,
    object_name,
)
from controlplane.adapters.clusters.volcano import object_names
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.queue_documents import (
    Documents,
    QueueDocument,
    ancestor_uids,
    queue_path,
)
from controlplane.domain.quotas.queues import TOTAL, QueueState
from controlplane.ports.clusters import ClusterUnavailable, LaunchRefused

#: Volcano's weights are whole; only its plug-in ``proportion`` reads them.
_WEIGHT_SCALE, _LARGEST_WEIGHT = 100, 65_535

Amounts = Counter[str]


@dataclass(slots=True, kw_only=True)
class QueueResourceAmounts:
    """What one Queue has, by extended resource; a resource that ``capability`` lacks is not capped."""

    guarantee: Amounts = field(default_factory=Counter)
    deserved: Amounts = field(default_factory=Counter)
    capability: Amounts = field(default_factory=Counter)


@dataclass(frozen=True, slots=True, kw_only=True)
class TranslatedQueues:
    """Queues, each after its parent, and what of the tree they cannot express."""

    queues: tuple[Manifest, ...]
    #: Names of those that take no work.
    closed: frozenset[str]
    findings: tuple[FieldFinding, ...]


def translate_queues(
    documents: Documents, *, resources: Mapping[str, str], installation: str
) -> TranslatedQueues:
    """The whole tree.

    :param documents: a tree that our own rules find nothing wrong with.
    :param resources: extended resource by chip, of the chips that the cluster has.
    """
    below = _children_by_parent(documents)
    shares = {uid: QueueResourceAmounts() for uid in documents}
    order = tuple(_breadth_first(below))
    for uid in reversed(order):
        _set_stated_amounts(shares[uid], documents[uid], resources)
        _raise_to_child_totals(shares[uid], [shares[child] for child in below.get(uid, ())])
    for uid in order:
        own = shares[uid].capability
        for ancestor in ancestor_uids(uid, documents):
            caps = shares[ancestor].capability
            for resource in own.keys() & caps.keys():
                own[resource] = min(own[resource], caps[resource])
    return TranslatedQueues(
        queues=tuple(
            _queue_manifest(documents[uid], shares[uid], documents, installation=installation)
            for uid in order
        ),
        closed=frozenset(
            object_names.queue_name(uid, installation=installation)
            for uid in order
            # Volcano closes the descendants of a closed queue.
            if any(
                documents[each].state is QueueState.CLOSED for each in ancestor_uids(uid, documents)
            )
        ),
        findings=tuple(
            FieldFinding(field=documents[uid].name, message=message)
            for uid in order
            for message in _unsupported_settings(documents[uid], resources)
        ),
    )


def _children_by_parent(documents: Documents) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for uid, document in sorted(documents.items(), key=lambda pair: (pair[1].name, pair[0])):
        found.setdefault(document.parent, []).append(uid)
    return found


def _breadth_first(below: Mapping[str, list[str]]) -> Iterator[str]:
    waiting = list(below.get("", ()))
    for uid in waiting:
        yield uid
        waiting += below.get(uid, ())


def _set_stated_amounts(
    shares: QueueResourceAmounts, document: QueueDocument, resources: Mapping[str, str]
) -> None:
    """What the queue itself states; chips behind one resource are added up."""
    capped = _capped_resources(document, resources)
    for chip, resource in resources.items():
        stated = document.entitlement(chip)
        own = stated.reserved if document.lends else stated.guaranteed
        for amounts, cards in ((shares.deserved, stated.guaranteed), (shares.guarantee, own)):
            if cards:
                amounts[resource] += cards
        if resource in capped:
            shares.capability[resource] += (
                stated.cap if document.borrows else stated.guaranteed
            ) or 0


def _capped_resources(document: QueueDocument, resources: Mapping[str, str]) -> frozenset[str]:
    """Resources of which every chip is capped: capping a part of them would cap the others as well."""
    if not document.borrows and not document.entitlement(TOTAL).guaranteed:
        return frozenset(resources.values())
    free = {
        resource for chip, resource in resources.items() if document.entitlement(chip).cap is None
    }
    return frozenset(resources.values()) - free


def _raise_to_child_totals(
    shares: QueueResourceAmounts, children: Iterable[QueueResourceAmounts]
) -> None:
    """Give the queue at least what those below it have together."""
    below = QueueResourceAmounts()
    for child in children:
        below.guarantee.update(child.guarantee)
        below.deserved.update(child.deserved)
    shares.guarantee |= below.guarantee
    shares.deserved |= below.deserved
    shares.deserved |= shares.guarantee


def _queue_manifest(
    document: QueueDocument,
    shares: QueueResourceAmounts,
    documents: Documents,
    *,
    installation: str,
) -> Manifest:
    queue_name = partial(object_names.queue_name, installation=installation)
    spec: Manifest = {
        "parent": queue_name(document.parent) if document.parent else object_names.ROOT,
        "weight": max(1, min(_LARGEST_WEIGHT, round(document.weight * _WEIGHT_SCALE))),
        "reclaimable": True,
        "dequeueStrategy": "traverse",
    }
    for word, amounts in (("deserved", shares.deserved), ("capability", shares.capability)):
        if amounts:
            spec[word] = _resource_quantities(amounts)
    if shares.guarantee:
        spec["guarantee"] = {"resource": _resource_quantities(shares.guarantee)}
    uid = {object_names.UID: document.uid}
    metadata = {
        "name": queue_name(document.uid),
        "labels": marking.owner_labels(installation=installation, **uid),
        "annotations": {object_names.TITLE: queue_path(document.uid, documents)},
    }
    return api_object("Queue", metadata, version=object_names.QUEUES, spec=spec)


def _resource_quantities(amounts: Amounts) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in sorted(amounts.items())}


def _unsupported_settings(document: QueueDocument, resources: Mapping[str, str]) -> Iterator[str]:
    """What Volcano does not hold the queue to."""
    name = document.name
    total = document.entitlement(TOTAL)
    if total.reserved or total.guaranteed or total.cap is not None:
        yield Reason(
            "volcano.queue.total_not_supported",
            "queue {queue} has a quota for all chips together, which Volcano does not enforce; "
            "set a quota for each chip",
            queue=name,
        )
    if document.max_running_per_user is not None:
        yield Reason(
            "volcano.queue.user_limit_not_supported",
            "queue {queue} has a limit of {limit} running workloads per user; it is enforced at "
            "admission by Ninefold, not by Volcano",
            queue=name,
            limit=document.max_running_per_user,
        )
    if not document.reclaims:
        yield Reason(
            "volcano.queue.reclaim_always_on",
            "queue {queue} does not reclaim its guaranteed quota, but Volcano reclaims it on this cluster",
            queue=name,
        )
    capped = _capped_resources(document, resources)
    for resource in sorted(set(resources.values())):
        chips = sorted(chip for chip, one in resources.items() if one == resource)
        stated = [chip for chip in chips if chip in document.entitlements]
        if len(chips) < 2 or not stated:
            continue
        yield Reason(
            "volcano.queue.shared_resource",
            "queue {queue} has quotas for {stated}; on this cluster, {chips} are one resource, "
            "{resource}, and their quotas are added",
            queue=name,
            stated=", ".join(stated),
            chips=", ".join(chips),
            resource=resource,
        )
        caps = [chip for chip in stated if document.entitlement(chip).cap is not None]
        if caps and resource not in capped:
            yield Reason(
                "volcano.queue.partial_cap",
                "queue {queue} has caps for {caps}, but not for every chip of {resource}; the "
                "caps are not enforced on this cluster until each chip has one",
                queue=name,
                caps=", ".join(caps),
                resource=resource,
            )
    for chip in sorted(set(document.entitlements) - set(resources) - {TOTAL}):
        yield Reason(
            "volcano.queue.chip_not_found",
            "queue {queue} has a quota for {chip}, which this cluster does not have; the quota is not applied",
            queue=name,
            chip=chip,
        )


#: Volcano's default; its option ``--max-queue-depth`` overrides it.
MAX_DEPTH = 5


def queue_violations(queues: Sequence[Object]) -> tuple[FieldFinding, ...]:
    """What Volcano's admission would refuse of translated queues, each under its display name.

    It looks for more, which the translation rules out: amounts are rolled up, and caps are cut.
    """
    depths: dict[str, int] = {}
    found: list[FieldFinding] = []
    for queue in queues:
        title = queue_title(queue)
        depth = depths[object_name(queue)] = depths.get(parent_name(queue), 0) + 1
        messages = list(_guarantees_above_cap(queue, title))
        if depth > MAX_DEPTH:
            too_deep = Reason(
                "volcano.queue.too_deep",
                "queue {queue} is at depth {depth}; the limit of Volcano is {limit}; move it up, or raise "
                "--max-queue-depth of the Volcano admission",
                queue=title,
                depth=depth,
                limit=MAX_DEPTH,
            )
            messages = [too_deep]
        found += (FieldFinding(field=title, message=message) for message in messages)
    return tuple(found)


def _guarantees_above_cap(queue: Object, title: str) -> Iterator[str]:
    capability = queue_amounts(queue, "capability")
    for resource, guaranteed in queue_amounts(queue, "deserved").items():
        if resource in capability and guaranteed > capability[resource]:
            yield Reason(
                "volcano.queue.guarantee_above_cap",
                "queue {queue} has a guaranteed quota of {guaranteed} {resource}, more than its cap of {cap}",
                queue=title,
                guaranteed=guaranteed,
                resource=resource,
                cap=capability[resource],
            )


def check_accepts_work(name: str, queues: Sequence[Object]) -> None:
    """Whether a Job may be submitted to the queue of that name.

    :raises LaunchRefused: if it never may.
    :raises ClusterUnavailable: if it may once the queue is there, or open.
    """
    queue = next((each for each in queues if object_name(each) == name), None)
    if name == object_names.ROOT:
        raise LaunchRefused(
            "volcano.queue.root",
            "the root queue does not accept workloads; select a queue below it",
        )
    if queue is None:
        raise ClusterUnavailable(
            "volcano.queue.not_found",
            "queue {queue} does not exist on the cluster yet; synchronize the queues",
            queue=name,
        )
    if any(parent_name(each) == name for each in queues):
        raise LaunchRefused(
            "volcano.queue.not_a_leaf",
            "queue {queue} has child queues and does not accept workloads; select one of its child queues",
            queue=queue_title(queue),
        )
    state = nested_field(queue, "status", "state") or "Open"
    if state != "Open":
        raise ClusterUnavailable(
            "volcano.queue.not_open",
            "queue {queue} is {state} on the cluster; open it",
            queue=queue_title(queue),
            state=state,
        )


def deletion_blocker(queue: Object, *, children: int) -> str:
    """Why that queue cannot be deleted now; empty if it can."""
    if children:
        return Reason(
            "volcano.queue.has_children",
            "child queues of queue {queue} on the cluster: {count}; delete them first",
            queue=queue_title(queue),
            count=children,
        )
    pods = int(nested_field(queue, "status", "allocated").get("pods") or 0)
    if pods:
        return Reason(
            "volcano.queue.has_pods",
            "pods of queue {queue} on the cluster: {count}; the queue is deleted when they have ended",
            queue=queue_title(queue),
            count=pods,
        )
    return ""


def queue_title(queue: Object) -> str:
    """Its display name: names on the cluster are built from uids."""
    return str(annotations_of(queue).get(object_names.TITLE) or object_name(queue))


def queue_amounts(queue: Object, word: str) -> Mapping[str, int]:
    """``guarantee``, ``deserved`` or ``capability``, in whole cards."""
    path = (word, "resource") if word == "guarantee" else (word,)
    stated = nested_field(queue, "spec", *path)
    return {resource: int(amount) for resource, amount in stated.items() if str(amount).isdecimal()}


def parent_name(queue: Object) -> str:
    return str(nested_field(queue, "spec", "parent") or object_names.ROOT)
