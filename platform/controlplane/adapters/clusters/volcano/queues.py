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
    name_of,
    part_of,
)
from controlplane.adapters.clusters.volcano import object_names
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.documents import Documents, QueueDocument, ancestor_uids, queue_path
from controlplane.domain.quotas.queues import TOTAL, QueueState
from controlplane.ports.clusters import ClusterUnavailable, LaunchRefused

#: Volcano's weights are whole; only its plug-in ``proportion`` reads them.
_WEIGHT_SCALE, _LARGEST_WEIGHT = 100, 65_535

Amounts = Counter[str]


@dataclass(slots=True, kw_only=True)
class QueueShares:
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
    shares = {uid: QueueShares() for uid in documents}
    order = tuple(_breadth_first(below))
    for uid in reversed(order):
        _set_own_shares(shares[uid], documents[uid], resources)
        _roll_up(shares[uid], [shares[child] for child in below.get(uid, ())])
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


def queue_command(queue: Object, *, closing: bool, uid: str) -> Manifest:
    """The Command that makes Volcano close or open a queue; we never write its status."""
    return object_names.command(
        {"metadata": {**queue["metadata"], "uid": uid}},
        version=object_names.QUEUES,
        kind="Queue",
        action="CloseQueue" if closing else "OpenQueue",
        reason="NinefoldQueueState",
        namespace=object_names.COMMANDS_OF_QUEUES,
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


def _set_own_shares(
    shares: QueueShares, document: QueueDocument, resources: Mapping[str, str]
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


def _roll_up(shares: QueueShares, children: Iterable[QueueShares]) -> None:
    """Give the queue at least what those below it have together."""
    below = QueueShares()
    for child in children:
        below.guarantee.update(child.guarantee)
        below.deserved.update(child.deserved)
    shares.guarantee |= below.guarantee
    shares.deserved |= below.deserved
    shares.deserved |= shares.guarantee


def _queue_manifest(
    document: QueueDocument, shares: QueueShares, documents: Documents, *, installation: str
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
        yield (
            f"queue {name} states cards of all chips together; Volcano counts each resource by itself, "
            "so on this cluster that number is not kept: state it chip by chip"
        )
    if document.max_running_per_user is not None:
        yield (
            f"queue {name} lets one person run {document.max_running_per_user} at once; Volcano knows no "
            "people: the limit is kept when work is admitted, not by the cluster"
        )
    if not document.reclaims:
        yield (
            f"queue {name} does not take its guarantee back; on this cluster Volcano reclaims for it all "
            "the same"
        )
    capped = _capped_resources(document, resources)
    for resource in sorted(set(resources.values())):
        chips = sorted(chip for chip, one in resources.items() if one == resource)
        stated = [chip for chip in chips if chip in document.entitlements]
        if len(chips) < 2 or not stated:
            continue
        yield (
            f"queue {name} states {', '.join(stated)}; on this cluster {' and '.join(chips)} are one "
            f"resource, {resource}: their numbers are added up"
        )
        caps = [chip for chip in stated if document.entitlement(chip).cap is not None]
        if caps and resource not in capped:
            yield (
                f"queue {name} caps {', '.join(caps)} and not every chip behind {resource}: on this "
                "cluster the cap is not kept; state one for each of them"
            )
    for chip in sorted(set(document.entitlements) - set(resources) - {TOTAL}):
        yield (
            f"queue {name} states cards of {chip}, and this cluster has no resource for them: nothing is "
            "stated for them there"
        )


#: Volcano's default; its option ``--max-queue-depth`` overrides it.
MAX_DEPTH = 5


def queue_violations(queues: Sequence[Object]) -> tuple[FieldFinding, ...]:
    """Problems of the queues, each under its display name."""
    by_name = {name_of(queue): queue for queue in queues}
    found: list[FieldFinding] = []
    for queue in queues:
        children = [each for each in queues if parent_name(each) == name_of(queue)]
        # Queues in a cycle have no path to the root.
        messages = list(_parent_errors(queue, by_name)) or [
            *_amount_errors(queue),
            *_deserved_above_capability(queue, by_name),
            *_oversubscription_errors(queue, children),
        ]
        found += (FieldFinding(field=queue_title(queue), message=message) for message in messages)
    return tuple(found)


def check_accepts_work(name: str, queues: Sequence[Object]) -> None:
    """Whether a Job may be submitted to the queue of that name.

    :raises LaunchRefused: if it never may.
    :raises ClusterUnavailable: if it may once the queue is there, or open.
    """
    queue = next((each for each in queues if name_of(each) == name), None)
    if name == object_names.ROOT:
        raise LaunchRefused("the queue root takes no work: choose one below it")
    if queue is None:
        raise ClusterUnavailable(
            f"there is no queue {name} on the cluster yet: bring its queues up to date"
        )
    if any(parent_name(each) == name for each in queues):
        raise LaunchRefused(
            f"queue {queue_title(queue)} has queues below it, so it takes no work: choose one of those"
        )
    state = part_of(queue, "status", "state") or "Open"
    if state != "Open":
        raise ClusterUnavailable(
            f"queue {queue_title(queue)} is {state.lower()} on the cluster: open it"
        )


def deletion_blocker(queue: Object, *, children: int) -> str:
    """Why that queue cannot be deleted now; empty if it can."""
    name = name_of(queue)
    if name in (object_names.ROOT, object_names.DEFAULT):
        return f"the queue {name} belongs to Volcano and cannot be deleted"
    if children:
        return f"queue {queue_title(queue)} has {children} queues below it on the cluster: delete those first"
    pods = int(part_of(queue, "status", "allocated").get("pods") or 0)
    if pods:
        return f"queue {queue_title(queue)} has {pods} pods on the cluster: it is deleted when they have ended"
    return ""


def queue_title(queue: Object) -> str:
    """Its display name: names on the cluster are built from uids."""
    return str(annotations_of(queue).get(object_names.TITLE) or name_of(queue))


def queue_amounts(queue: Object, word: str) -> Mapping[str, int]:
    """``guarantee``, ``deserved`` or ``capability``, in whole cards."""
    path = (word, "resource") if word == "guarantee" else (word,)
    stated = part_of(queue, "spec", *path)
    return {resource: int(amount) for resource, amount in stated.items() if str(amount).isdecimal()}


def parent_name(queue: Object) -> str:
    """Name of the queue above."""
    return str(part_of(queue, "spec", "parent") or object_names.ROOT)


def _parent_errors(queue: Object, queues: Mapping[str, Object]) -> Iterator[str]:
    way = [name_of(queue)]
    while (above := parent_name(queues[way[-1]])) != object_names.ROOT:
        if above not in queues:
            yield f"queue {queue_title(queue)} stands below {above}, which the cluster does not have"
            return
        if above in way:
            yield f"queue {queue_title(queue)} stands below itself; let one of those above it stand at the top"
            return
        way.append(above)
    if len(way) > MAX_DEPTH:
        yield (
            f"queue {queue_title(queue)} is {len(way)} levels down, and Volcano takes {MAX_DEPTH}: place it "
            "higher, or raise --max-queue-depth of its admission"
        )


def _amount_errors(queue: Object) -> Iterator[str]:
    guarantee, deserved = queue_amounts(queue, "guarantee"), queue_amounts(queue, "deserved")
    capability = queue_amounts(queue, "capability")
    for resource, own in guarantee.items():
        if resource not in deserved:
            yield (
                f"queue {queue_title(queue)} keeps {own} {resource} to itself and is guaranteed none: Volcano "
                "wants a guarantee of at least as many"
            )
        elif own > deserved[resource]:
            yield (
                f"queue {queue_title(queue)} keeps {own} {resource} to itself, more than its guarantee of "
                f"{deserved[resource]}"
            )
    for resource, guaranteed in deserved.items():
        if resource in capability and guaranteed > capability[resource]:
            yield (
                f"queue {queue_title(queue)} is guaranteed {guaranteed} {resource}, more than its cap of "
                f"{capability[resource]}"
            )


def _deserved_above_capability(queue: Object, queues: Mapping[str, Object]) -> Iterator[str]:
    for resource, most in queue_amounts(queue, "capability").items():
        above = queues.get(parent_name(queue))
        while above is not None and not queue_amounts(above, "capability").get(resource):
            above = queues.get(parent_name(above))
        if above is not None and most > queue_amounts(above, "capability")[resource]:
            yield (
                f"queue {queue_title(queue)} has a cap of {most} {resource}, more than the "
                f"{queue_amounts(above, 'capability')[resource]} of {queue_title(above)} above it"
            )


def _oversubscription_errors(queue: Object, children: Sequence[Object]) -> Iterator[str]:
    for word, verb in (("guarantee", "keep to themselves"), ("deserved", "are guaranteed")):
        own = queue_amounts(queue, word)
        resources = {resource for child in children for resource in queue_amounts(child, word)}
        for resource in sorted(resources):
            together = sum(queue_amounts(child, word).get(resource, 0) for child in children)
            if together > own.get(resource, 0):
                yield (
                    f"the queues below {queue_title(queue)} {verb} {together} {resource} together, and it has "
                    f"{own.get(resource, 0)}"
                )
