"""What to do so that a cluster has our Queues, in an order that Volcano's admission takes at every step.

Amounts that fall and amounts that rise are two passes: a child may not outgrow its parent even for a moment::

    1 narrow   from the bottom up   each queue to the smaller of what it has and what it shall have
    2 widen    from the top down    new queues are made, each queue gets all that it shall have
    3 command  from the top down    opened, or closed
    4 delete   from the bottom up   what is ours and no longer in the tree

After the first pass every queue has at most what it had and at most what it shall have, so the sums below each
still fit; in the second a parent is always raised before its children. A queue that moves counts in neither sum,
so it and those below it state nothing between the two passes: for as long as these calls take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from controlplane.adapters.clusters.volcano import object_names, queues
from controlplane.adapters.clusters.volcano.object_names import Manifest, Object
from controlplane.adapters.clusters.volcano.queues import TranslatedQueues
from controlplane.domain.common.spec_fields import FieldFinding

_CLOSED = ("Closed", "Closing")
_METADATA = ("name", "labels", "annotations")
_PLAIN = ("parent", "weight", "reclaimable", "dequeueStrategy")
_AMOUNTS = ("guarantee", "deserved", "capability")


class ChangeAction(StrEnum):
    CREATE = "create"
    APPLY = "apply"
    COMMAND = "command"
    DELETE = "delete"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectChange:
    action: ChangeAction
    #: The object as it shall be; of a deletion, as it is.
    manifest: Manifest


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChangePlan:
    changes: tuple[ObjectChange, ...]
    #: What cannot be done now, and what has to happen first.
    findings: tuple[FieldFinding, ...]


def plan_queue_changes(
    ours: TranslatedQueues, theirs: Sequence[Object], *, installation: str
) -> QueueChangePlan:
    """From what the cluster has to what it shall have; queues that are not ours stay as they are."""
    there = {
        queue["metadata"]["name"]: queue
        for queue in theirs
        if object_names.is_ours(queue, installation=installation)
    }
    wanted = {queue["metadata"]["name"]: queue for queue in ours.queues}
    stale = [queue for name, queue in there.items() if name not in wanted]
    deletions, findings = _deletions(stale, theirs, wanted)
    narrowed, then = _narrowed(there, wanted)
    return QueueChangePlan(
        changes=(
            *narrowed,
            *_widened(then, ours.queues),
            *_commanded(there, ours),
            *deletions,
        ),
        findings=tuple(findings),
    )


def _narrowed(
    there: Mapping[str, Object], wanted: Mapping[str, Manifest]
) -> tuple[list[ObjectChange], Mapping[str, Object]]:
    """The changes, and the queues as they are after them."""
    changes: list[ObjectChange] = []
    after = dict(there)
    for queue in reversed(_parents_first(there)):
        name = queue["metadata"]["name"]
        stays = _ancestors(name, there) == _ancestors(name, wanted)
        spec = _smaller(queue, wanted[name] if stays and name in wanted else None)
        if any(
            queues.queue_amounts(queue, word) != queues.queue_amounts({"spec": spec}, word)
            for word in _AMOUNTS
        ):
            metadata = wanted.get(name, queue)["metadata"]
            body = {
                "apiVersion": object_names.QUEUES,
                "kind": "Queue",
                # Without what the server keeps there.
                "metadata": {word: metadata[word] for word in _METADATA if word in metadata},
                "spec": spec,
            }
            changes.append(ObjectChange(action=ChangeAction.APPLY, manifest=body))
            after[name] = {**queue, **body}
    return changes, after


def _smaller(queue: Object, shall: Manifest | None) -> Manifest:
    """Its spec with the smaller of each amount.

    A cap that it shall not have any more goes at once and one that it has not had waits: a cap may be no higher
    than that of a queue above, which at this moment may be the old one or the new.
    """
    spec: Manifest = {word: queue["spec"][word] for word in _PLAIN if word in queue["spec"]}
    for word in _AMOUNTS:
        has, most = queues.queue_amounts(queue, word), queues.queue_amounts(shall or {}, word)
        least = {
            resource: str(min(amount, most[resource]))
            for resource, amount in sorted(has.items())
            if resource in most
        }
        if least:
            spec[word] = {"resource": least} if word == "guarantee" else least
    return spec


def _widened(there: Mapping[str, Object], wanted: Sequence[Manifest]) -> Iterator[ObjectChange]:
    for queue in wanted:
        has = there.get(queue["metadata"]["name"])
        if has is None:
            yield ObjectChange(action=ChangeAction.CREATE, manifest=queue)
        elif _differs(has, queue):
            yield ObjectChange(action=ChangeAction.APPLY, manifest=queue)


def _differs(has: Object, queue: Manifest) -> bool:
    spec = has.get("spec") or {}
    named = (has["metadata"].get("annotations") or {}).get(object_names.TITLE)
    return (
        named != queue["metadata"]["annotations"][object_names.TITLE]
        or any(
            queues.queue_amounts(has, word) != queues.queue_amounts(queue, word)
            for word in _AMOUNTS
        )
        or any(spec.get(word) != queue["spec"][word] for word in _PLAIN)
    )


def _commanded(there: Mapping[str, Object], ours: TranslatedQueues) -> Iterator[ObjectChange]:
    """A new queue opens by itself; the uid that a command has to name is only known of one that is there."""
    for queue in ours.queues:
        name = queue["metadata"]["name"]
        has = there.get(name)
        if has is None:
            continue
        closed = ((has.get("status") or {}).get("state") or "Open") in _CLOSED
        closing = name in ours.closed
        if closed != closing and not (closing and queue["spec"]["parent"] in ours.closed):
            uid = str(has["metadata"].get("uid") or "")
            yield ObjectChange(
                action=ChangeAction.COMMAND,
                manifest=queues.queue_command(queue, closing=closing, uid=uid),
            )


def _deletions(
    stale: Sequence[Object], theirs: Sequence[Object], wanted: Mapping[str, Manifest]
) -> tuple[list[ObjectChange], list[FieldFinding]]:
    """Children before parents; one that cannot go yet keeps those above it."""
    changes: list[ObjectChange] = []
    findings: list[FieldFinding] = []
    gone: set[str] = set()
    parents = {
        each["metadata"]["name"]: wanted.get(each["metadata"]["name"], each)["spec"].get("parent")
        for each in theirs
    }
    for queue in reversed(_parents_first({each["metadata"]["name"]: each for each in stale})):
        name = queue["metadata"]["name"]
        children = sum(
            1 for child, parent in parents.items() if parent == name and child not in gone
        )
        if refusal := queues.deletion_blocker(queue, children=children):
            findings.append(FieldFinding(field=queues.queue_title(queue), message=refusal))
        else:
            gone.add(name)
            changes.append(ObjectChange(action=ChangeAction.DELETE, manifest=dict(queue)))
    return changes, findings


def _parents_first(there: Mapping[str, Object]) -> list[Object]:
    """Each after the one above it, as the cluster has them."""
    return [
        there[name] for name in sorted(there, key=lambda name: (len(_ancestors(name, there)), name))
    ]


def _ancestors(name: str, queues_by_name: Mapping[str, Object]) -> tuple[str, ...]:
    """The queue and those above it; where they go in a circle, each once."""
    way: dict[str, None] = {}
    while name in queues_by_name and name not in way:
        way[name] = None
        name = queues.parent_name(queues_by_name[name])
    return tuple(way)
