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
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from controlplane.adapters.clusters.kubernetes import names as marking
from controlplane.adapters.clusters.volcano import names
from controlplane.adapters.clusters.volcano.names import Manifest, Object
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.domain.quotas.documents import Documents, QueueDocument, path_of
from controlplane.domain.quotas.queues import TOTAL, QueueState

#: Volcano's weights are whole; only its plug-in ``proportion`` reads them.
_WEIGHT_SCALE, _LARGEST_WEIGHT = 100, 65_535

Amounts = dict[str, int]


@dataclass(slots=True, kw_only=True)
class Shares:
    """What one Queue has, by extended resource; a resource that ``capability`` lacks is not capped."""

    guarantee: Amounts = field(default_factory=dict)
    deserved: Amounts = field(default_factory=dict)
    capability: Amounts = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """Queues, each after the one above it, and what of the tree they cannot say."""

    queues: tuple[Manifest, ...]
    #: Names of those that take no work.
    closed: frozenset[str]
    findings: tuple[FieldFinding, ...]


def translated(
    documents: Documents, *, resources: Mapping[str, str], installation: str
) -> Translation:
    """The whole tree.

    :param documents: a tree that our own rules find nothing wrong with.
    :param resources: extended resource by chip, of the chips that the cluster has.
    """
    below = _below(documents)
    shares = {uid: Shares() for uid in documents}
    order = tuple(_from_the_top(below))
    for uid in reversed(order):
        _state(shares[uid], documents[uid], resources)
        _roll_up(shares[uid], [shares[child] for child in below.get(uid, ())])
    for uid in order:
        _cut(uid, documents, shares)
    return Translation(
        queues=tuple(
            _queue(documents[uid], shares[uid], documents, installation=installation)
            for uid in order
        ),
        closed=frozenset(
            names.queue_name(uid, installation=installation)
            for uid in order
            if _closed(uid, documents)
        ),
        findings=tuple(
            FieldFinding(field=documents[uid].name, message=message)
            for uid in order
            for message in _lost(documents[uid], resources)
        ),
    )


def command(queue: Object, *, closing: bool, uid: str) -> Manifest:
    """What tells Volcano to close or open a queue; its status is never written by us."""
    metadata = queue["metadata"]
    word, action = ("close", "CloseQueue") if closing else ("open", "OpenQueue")
    name = metadata["name"]
    return {
        "apiVersion": names.COMMANDS,
        "kind": "Command",
        "metadata": {
            "name": f"{name}-{word}",
            "namespace": names.COMMANDS_OF_QUEUES,
            "labels": dict(metadata.get("labels") or {}),
        },
        "action": action,
        "target": {
            "apiVersion": names.QUEUES,
            "kind": "Queue",
            "name": name,
            "uid": uid,
            "controller": True,
        },
        "reason": "NinefoldQueueState",
    }


def _below(documents: Documents) -> Mapping[str, list[str]]:
    found: dict[str, list[str]] = {}
    for uid, document in sorted(documents.items(), key=lambda pair: (pair[1].name, pair[0])):
        found.setdefault(document.parent, []).append(uid)
    return found


def _from_the_top(below: Mapping[str, list[str]]) -> Iterator[str]:
    waiting = list(below.get("", ()))
    for uid in waiting:
        yield uid
        waiting += below.get(uid, ())


def _state(shares: Shares, document: QueueDocument, resources: Mapping[str, str]) -> None:
    """What the queue itself states; chips behind one resource are added up."""
    capped = _capped(document, resources)
    for chip, resource in resources.items():
        stated = document.entitlement(chip)
        kept = stated.reserved if document.lends else stated.guaranteed
        for amounts, cards in ((shares.deserved, stated.guaranteed), (shares.guarantee, kept)):
            if cards:
                amounts[resource] = amounts.get(resource, 0) + cards
        if resource in capped:
            most = stated.cap if document.borrows else stated.guaranteed
            shares.capability[resource] = shares.capability.get(resource, 0) + (most or 0)


def _capped(document: QueueDocument, resources: Mapping[str, str]) -> frozenset[str]:
    """Resources of which every chip is capped: capping a part of them would cap the others as well."""
    if not document.borrows and not document.entitlement(TOTAL).guaranteed:
        return frozenset(resources.values())
    free = {
        resource for chip, resource in resources.items() if document.entitlement(chip).cap is None
    }
    return frozenset(resources.values()) - free


def _roll_up(shares: Shares, children: Iterable[Shares]) -> None:
    guarantee: Counter[str] = Counter()
    deserved: Counter[str] = Counter()
    for child in children:
        guarantee.update(child.guarantee)
        deserved.update(child.deserved)
    for resource, amount in guarantee.items():
        shares.guarantee[resource] = max(shares.guarantee.get(resource, 0), amount)
    for resource, amount in (*deserved.items(), *shares.guarantee.items()):
        shares.deserved[resource] = max(shares.deserved.get(resource, 0), amount)


def _cut(uid: str, documents: Documents, shares: Mapping[str, Shares]) -> None:
    own = shares[uid].capability
    parent = documents[uid].parent
    while parent:
        for resource, most in shares[parent].capability.items():
            if resource in own:
                own[resource] = min(own[resource], most)
        parent = documents[parent].parent


def _closed(uid: str, documents: Documents) -> bool:
    """Volcano closes what stands below a closed queue."""
    while uid:
        if documents[uid].state is QueueState.CLOSED:
            return True
        uid = documents[uid].parent
    return False


def _queue(
    document: QueueDocument, shares: Shares, documents: Documents, *, installation: str
) -> Manifest:
    parent = document.parent
    labels = marking.marks(installation=installation, **{names.UID: document.uid})
    spec: Manifest = {
        "parent": names.queue_name(parent, installation=installation) if parent else names.ROOT,
        "weight": max(1, min(_LARGEST_WEIGHT, round(document.weight * _WEIGHT_SCALE))),
        "reclaimable": True,
        "dequeueStrategy": "traverse",
    }
    for word, amounts in (("deserved", shares.deserved), ("capability", shares.capability)):
        if amounts:
            spec[word] = _written(amounts)
    if shares.guarantee:
        spec["guarantee"] = {"resource": _written(shares.guarantee)}
    return {
        "apiVersion": names.QUEUES,
        "kind": "Queue",
        "metadata": {
            "name": names.queue_name(document.uid, installation=installation),
            "labels": labels,
            "annotations": {names.TITLE: path_of(document.uid, documents)},
        },
        "spec": spec,
    }


def _written(amounts: Amounts) -> dict[str, str]:
    return {resource: str(amount) for resource, amount in sorted(amounts.items())}


def _lost(document: QueueDocument, resources: Mapping[str, str]) -> Iterator[str]:
    """What Volcano does not hold the queue to."""
    name = document.name
    total = document.entitlement(TOTAL)
    if total.reserved or total.guaranteed or total.cap is not None:
        yield (
            f"queue {name} states cards of all chips together; Volcano counts each resource by itself, "
            "so on this cluster that number is not kept: state it chip by chip"
        )
    if document.running_per_person is not None:
        yield (
            f"queue {name} lets one person run {document.running_per_person} at once; Volcano knows no "
            "people: the limit is kept when work is admitted, not by the cluster"
        )
    if not document.reclaims:
        yield (
            f"queue {name} does not take its guarantee back; on this cluster Volcano reclaims for it all "
            "the same"
        )
    capped = _capped(document, resources)
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
