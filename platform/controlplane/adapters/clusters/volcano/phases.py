"""What a Job and a PodGroup say of a Launch: pure judgement over the API's dicts.

::

    PodGroup Pending                ─▶ PREPARING   waits for its queue
    PodGroup Inqueue                ─▶ PREPARING   admitted; waits until the whole gang fits on nodes
    Job Running, Restarting         ─▶ what each pod says
    Job Aborting, Aborted           ─▶ STOPPED     by us; or a pod of the gang was evicted, or deleted there
    Job Completing, Completed       ─▶ FINISHED    where the pod is gone already
    Job Terminating, Terminated     ─▶ STOPPED     because another replica failed
    Job Failed                      ─▶ FAILED
    no Job, and there was one       ─▶ LOST

A pod that is there goes before its Job: as long as its process runs, its cards are held. That it was evicted its
own conditions say; when it is gone, Volcano's event does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final

from controlplane.adapters.clusters.kubernetes import names as marking
from controlplane.adapters.clusters.kubernetes.demands import amount
from controlplane.adapters.clusters.kubernetes.observing import Found
from controlplane.adapters.clusters.volcano import names
from controlplane.adapters.clusters.volcano.names import Object
from controlplane.adapters.clusters.volcano.rules import title
from controlplane.ports.clusters import ExitCause, ObservedReplica, Phase

ABORTED: Final = ("Aborting", "Aborted")
_REASONS: Final = {
    "NotEnoughResources": "no nodes have room for all of it at once",
    "NotEnoughTasks": "not all of its pods are there yet",
    "NotEnoughPodsOfTask": "not all pods of one of its roles are there yet",
}
#: Reasons in a pod's conditions that Volcano's scheduler gives before it deletes the pod.
_EVICTED: Final = ("Evict", "PreemptionByScheduler")
_TAKEN = "Volcano took its cards back"
_BROKEN = "stopped with its gang, of which a pod was evicted or deleted on the cluster"
_SIBLING = "stopped, because another replica failed"
#: What became of a replica whose pod is gone, by its Job's phase.
_ENDED: Final[Mapping[str, tuple[ExitCause, str]]] = {
    **dict.fromkeys(ABORTED, (ExitCause.STOPPED, _BROKEN)),
    **dict.fromkeys(("Terminating", "Terminated"), (ExitCause.STOPPED, _SIBLING)),
    **dict.fromkeys(("Completing", "Completed"), (ExitCause.FINISHED, "finished")),
    "Failed": (ExitCause.FAILED, "Volcano says that it failed"),
}
_LONGEST = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """What Volcano has of one Launch; None where there is none."""

    job: Object | None = None
    group: Object | None = None
    queue: Object | None = None
    #: What Volcano said when it evicted a pod of it; empty if it has not, or not lately.
    evicted: str = ""

    @property
    def phase(self) -> str:
        """Of the Job; empty without one."""
        if self.job is None:
            return ""
        return str(_state(self.job).get("phase") or "Pending")


def placed(pods: Sequence[Object]) -> list[Object]:
    """Pods of a Job with the label by which ours say their place; ours as they are."""
    return [_labelled(pod) for pod in pods]


def judged(found: Found, held: Held) -> Found:
    """The Launch by its pods, and by its Job and PodGroup where pods are missing or wait."""
    replicas = tuple(_judged(replica, found=found, held=held) for replica in found.launch.replicas)
    return replace(found, launch=replace(found.launch, replicas=replicas))


def waiting(held: Held) -> str:
    """Why it does not run yet, as a sentence with numbers."""
    if held.group is None:
        return "Volcano has not taken it up yet"
    phase = (held.group.get("status") or {}).get("phase") or "Pending"
    queue = title(held.queue) if held.queue is not None else held.group["spec"].get("queue", "")
    if phase == "Pending":
        if full := list(_beyond_the_cap(held.group, held.queue)):
            return f"queue {queue} is full: {'; '.join(full)}"
        state = ((held.queue or {}).get("status") or {}).get("state") or "Open"
        if state != "Open":
            return f"queue {queue} is {state.lower()}: nothing of it starts"
        return _with(_condition(held.group), f"waits in queue {queue}")
    return _with(_condition(held.group), f"admitted by queue {queue}, waits for nodes")


def _judged(replica: ObservedReplica, *, found: Found, held: Held) -> ObservedReplica:
    pod = found.pod(replica.role, replica.index)
    if pod is None:
        return _without_pod(replica, found=found, held=held)
    why = _taken(found, held)
    if why and replica.ended:
        if replica.cause in (ExitCause.STOPPED, ExitCause.NOT_PREPARED):
            return replace(replica, cause=ExitCause.STOPPED, message=why[:_LONGEST])
        return replica
    if why and pod["metadata"].get("deletionTimestamp"):
        return replace(replica, message=f"asked to stop: {why}"[:_LONGEST])
    if replica.phase is Phase.PREPARING and not (pod.get("spec") or {}).get("nodeName"):
        return replace(replica, message=waiting(held)[:_LONGEST])
    return replica


def _without_pod(replica: ObservedReplica, *, found: Found, held: Held) -> ObservedReplica:
    if held.job is None:
        # The record knows whether there ever was one.
        if replica.phase is Phase.LOST and held.group is None:
            return replace(replica, message="Volcano no longer has it: it was deleted there")
        return replica
    stopped = found.stop_by is not None
    since = _state(held.job).get("lastTransitionTime")
    ended = _ENDED.get(held.phase)
    if ended is None and not stopped:
        return replace(
            replica,
            phase=Phase.PREPARING,
            cause=None,
            message=waiting(held)[:_LONGEST],
            exit_code=None,
            ended_at=None,
        )
    if ended is None or (stopped and held.phase in ABORTED):
        cause, words = ExitCause.STOPPED, "stopped"
    else:
        cause, words = ended
        words = _taken(found, held) or words
        words = _with(_said(held), words) if held.phase == "Failed" else words
    return replace(
        replica,
        phase=Phase.EXITED,
        cause=cause,
        message=words[:_LONGEST],
        ended_at=datetime.fromisoformat(str(since)) if since else None,
    )


def _taken(found: Found, held: Held) -> str:
    """Why the gang has to end before its work is done, in words; empty where it need not, or where we said so."""
    if found.stop_by is not None:
        return ""
    conditions = [
        condition
        for pod in found.pods
        for condition in (pod.get("status") or {}).get("conditions") or ()
        if condition.get("reason") in _EVICTED
    ]
    if conditions or held.evicted:
        return _with(held.evicted, _TAKEN)
    return _BROKEN if held.phase in ABORTED else ""


def _labelled(pod: Object) -> Object:
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    place = labels.get(names.TASK_INDEX) or (metadata.get("annotations") or {}).get(
        names.TASK_INDEX
    )
    if marking.INDEX in labels or place is None:
        return pod
    return {**pod, "metadata": {**metadata, "labels": {**labels, marking.INDEX: place}}}


def _state(job: Object) -> Mapping[str, Any]:
    state: Mapping[str, Any] = (job.get("status") or {}).get("state") or {}
    return state


def _said(held: Held) -> str:
    state = _state(held.job or {})
    return str(state.get("message") or state.get("reason") or "")


def _condition(group: Object) -> str:
    """The newest reason why it cannot be scheduled; empty where there is none."""
    found = [
        each
        for each in (group.get("status") or {}).get("conditions") or ()
        if each.get("type") == "Unschedulable" and each.get("status") == "True"
    ]
    if not found:
        return ""
    newest = max(found, key=lambda each: str(each.get("lastTransitionTime") or ""))
    reason, message = str(newest.get("reason") or ""), str(newest.get("message") or "")
    return _with(message, _REASONS.get(reason, reason))


def _beyond_the_cap(group: Object, queue: Object | None) -> Iterator[str]:
    """What the queue may not have more of."""
    wanted = group["spec"].get("minResources") or {}
    caps = ((queue or {}).get("spec") or {}).get("capability") or {}
    held = ((queue or {}).get("status") or {}).get("allocated") or {}
    for resource in sorted(set(wanted) & set(caps)):
        needs, most = amount(str(wanted[resource])), amount(str(caps[resource]))
        has = amount(str(held.get(resource, 0)))
        if has + needs > most:
            yield (
                f"it holds {held.get(resource, 0)} of at most {caps[resource]} {resource}, and this needs "
                f"{wanted[resource]}"
            )


def _with(said: str, words: str) -> str:
    return f"{words}: {said}" if said else words
