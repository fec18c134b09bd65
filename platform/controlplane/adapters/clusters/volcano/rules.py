"""What Volcano's admission would refuse of a set of Queues, said by us first and in words that people know.

The schema of a Queue knows none of it. From Volcano 1.15, ``pkg/webhooks/admission/queues/validate``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from controlplane.adapters.clusters.volcano import names
from controlplane.adapters.clusters.volcano.names import Object
from controlplane.domain.common.spec_fields import FieldFinding
from controlplane.ports.clusters import ClusterUnavailable, LaunchRefused

#: Volcano's default; its option ``--max-queue-depth`` says otherwise.
DEEPEST = 5


def violations(queues: Sequence[Object]) -> tuple[FieldFinding, ...]:
    """What is wrong with them, each under the name that people know."""
    by_name = {queue["metadata"]["name"]: queue for queue in queues}
    found: list[FieldFinding] = []
    for queue in queues:
        children = [each for each in queues if parent(each) == queue["metadata"]["name"]]
        messages = [*_misplaced(queue, by_name)]
        # Where queues go in a circle there is no way up to look along.
        if not messages:
            messages = [*_misstated(queue), *_above_its_own(queue, by_name)]
            messages += _oversubscribed(queue, children)
        found += (FieldFinding(field=title(queue), message=message) for message in messages)
    return tuple(found)


def check_work(name: str, queues: Sequence[Object]) -> None:
    """Whether a Job may be submitted to the queue of that name.

    :raises LaunchRefused: if it never may.
    :raises ClusterUnavailable: if it may once the queue is there, or open.
    """
    queue = next((each for each in queues if each["metadata"]["name"] == name), None)
    if name == names.ROOT:
        raise LaunchRefused("the queue root takes no work: choose one below it")
    if queue is None:
        raise ClusterUnavailable(
            f"there is no queue {name} on the cluster yet: bring its queues up to date"
        )
    if any(parent(each) == name for each in queues):
        raise LaunchRefused(
            f"queue {title(queue)} has queues below it, so it takes no work: choose one of those"
        )
    state = (queue.get("status") or {}).get("state") or "Open"
    if state != "Open":
        raise ClusterUnavailable(f"queue {title(queue)} is {state.lower()} on the cluster: open it")


def refusal_of_deletion(queue: Object, *, children: int) -> str:
    """Why that queue cannot be deleted now; empty if it can."""
    name = queue["metadata"]["name"]
    if name in (names.ROOT, names.DEFAULT):
        return f"the queue {name} belongs to Volcano and cannot be deleted"
    if children:
        return f"queue {title(queue)} has {children} queues below it on the cluster: delete those first"
    pods = int(((queue.get("status") or {}).get("allocated") or {}).get("pods") or 0)
    if pods:
        return f"queue {title(queue)} has {pods} pods on the cluster: it is deleted when they have ended"
    return ""


def title(queue: Object) -> str:
    """What people call it: names on the cluster are made of uids."""
    metadata = queue["metadata"]
    return str((metadata.get("annotations") or {}).get(names.TITLE) or metadata["name"])


def amounts(queue: Object, word: str) -> Mapping[str, int]:
    """``guarantee``, ``deserved`` or ``capability``, in whole cards."""
    spec = queue.get("spec") or {}
    stated = spec.get(word) or {}
    if word == "guarantee":
        stated = stated.get("resource") or {}
    return {resource: int(amount) for resource, amount in stated.items() if str(amount).isdecimal()}


def parent(queue: Object) -> str:
    """Name of the queue above."""
    return str((queue.get("spec") or {}).get("parent") or names.ROOT)


def _misplaced(queue: Object, queues: Mapping[str, Object]) -> Iterator[str]:
    way = [queue["metadata"]["name"]]
    while (above := parent(queues[way[-1]])) != names.ROOT:
        if above not in queues:
            yield f"queue {title(queue)} stands below {above}, which the cluster does not have"
            return
        if above in way:
            yield f"queue {title(queue)} stands below itself; let one of those above it stand at the top"
            return
        way.append(above)
    if len(way) > DEEPEST:
        yield (
            f"queue {title(queue)} is {len(way)} levels down, and Volcano takes {DEEPEST}: place it "
            "higher, or raise --max-queue-depth of its admission"
        )


def _misstated(queue: Object) -> Iterator[str]:
    guarantee, deserved = amounts(queue, "guarantee"), amounts(queue, "deserved")
    capability = amounts(queue, "capability")
    for resource, kept in guarantee.items():
        if resource not in deserved:
            yield (
                f"queue {title(queue)} keeps {kept} {resource} to itself and is guaranteed none: Volcano "
                "wants a guarantee of at least as many"
            )
        elif kept > deserved[resource]:
            yield (
                f"queue {title(queue)} keeps {kept} {resource} to itself, more than its guarantee of "
                f"{deserved[resource]}"
            )
    for resource, owed in deserved.items():
        if resource in capability and owed > capability[resource]:
            yield (
                f"queue {title(queue)} is guaranteed {owed} {resource}, more than its cap of "
                f"{capability[resource]}"
            )


def _above_its_own(queue: Object, queues: Mapping[str, Object]) -> Iterator[str]:
    for resource, most in amounts(queue, "capability").items():
        above = queues.get(parent(queue))
        while above is not None and not amounts(above, "capability").get(resource):
            above = queues.get(parent(above))
        if above is not None and most > amounts(above, "capability")[resource]:
            yield (
                f"queue {title(queue)} has a cap of {most} {resource}, more than the "
                f"{amounts(above, 'capability')[resource]} of {title(above)} above it"
            )


def _oversubscribed(queue: Object, children: Sequence[Object]) -> Iterator[str]:
    for word, told in (("guarantee", "keep to themselves"), ("deserved", "are guaranteed")):
        own = amounts(queue, word)
        resources = {resource for child in children for resource in amounts(child, word)}
        for resource in sorted(resources):
            together = sum(amounts(child, word).get(resource, 0) for child in children)
            if together > own.get(resource, 0):
                yield (
                    f"the queues below {title(queue)} {told} {together} {resource} together, and it has "
                    f"{own.get(resource, 0)}"
                )
