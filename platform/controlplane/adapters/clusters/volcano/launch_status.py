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

from controlplane.adapters.clusters.kubernetes import object_names as marking
from controlplane.adapters.clusters.kubernetes.launch_status import FoundLaunch
from controlplane.adapters.clusters.kubernetes.pod_requests import parse_amount
from controlplane.adapters.clusters.volcano import object_names
from controlplane.adapters.clusters.volcano.object_names import Object
from controlplane.adapters.clusters.volcano.queues import queue_title
from controlplane.ports.clusters import ExitCause, ObservedReplica, ReplicaPhase

ABORTED: Final = ("Aborting", "Aborted")
_REASONS: Final = {
    "NotEnoughResources": "no nodes have room for all of it at once",
    "NotEnoughTasks": "not all of its pods are there yet",
    "NotEnoughPodsOfTask": "not all pods of one of its roles are there yet",
}
#: Reasons in a pod's conditions that Volcano's scheduler gives before it deletes the pod.
_EVICTED: Final = ("Evict", "PreemptionByScheduler")
_RECLAIMED = "Volcano took its cards back"
_BROKEN = "stopped with its gang, of which a pod was evicted or deleted on the cluster"
_SIBLING = "stopped, because another replica failed"
#: The end of a replica whose pod no longer exists, by its Job's phase.
_ENDED: Final[Mapping[str, tuple[ExitCause, str]]] = {
    **dict.fromkeys(ABORTED, (ExitCause.STOPPED, _BROKEN)),
    **dict.fromkeys(("Terminating", "Terminated"), (ExitCause.STOPPED, _SIBLING)),
    **dict.fromkeys(("Completing", "Completed"), (ExitCause.FINISHED, "finished")),
    "Failed": (ExitCause.FAILED, "Volcano says that it failed"),
}
_LONGEST = 600


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoObjects:
    """Volcano's objects of one Launch; None where one does not exist."""

    job: Object | None = None
    group: Object | None = None
    queue: Object | None = None
    #: Volcano's reason for evicting a pod of it; empty without a recent eviction.
    evicted: str = ""

    @property
    def phase(self) -> str:
        """Of the Job; empty without one."""
        if self.job is None:
            return ""
        return str(_job_state(self.job).get("phase") or "Pending")


def with_replica_indices(pods: Sequence[Object]) -> list[Object]:
    """Pods of a Job with our index label added; our own pods unchanged."""
    return [_pod_labels(pod) for pod in pods]


def with_volcano_status(found: FoundLaunch, objects: VolcanoObjects) -> FoundLaunch:
    """The Launch by its pods, and by its Job and PodGroup where pods are missing or wait."""
    replicas = tuple(
        _replica_with_volcano_status(replica, found=found, objects=objects)
        for replica in found.launch.replicas
    )
    return replace(found, launch=replace(found.launch, replicas=replicas))


def pending_reason(objects: VolcanoObjects) -> str:
    """Why it does not run yet, as a sentence with numbers."""
    if objects.group is None:
        return "Volcano has not taken it up yet"
    phase = (objects.group.get("status") or {}).get("phase") or "Pending"
    queue = (
        queue_title(objects.queue)
        if objects.queue is not None
        else objects.group["spec"].get("queue", "")
    )
    if phase == "Pending":
        if full := list(_exceeded_caps(objects.group, objects.queue)):
            return f"queue {queue} is full: {'; '.join(full)}"
        state = ((objects.queue or {}).get("status") or {}).get("state") or "Open"
        if state != "Open":
            return f"queue {queue} is {state.lower()}: nothing of it starts"
        return _append_message(_unschedulable_reason(objects.group), f"waits in queue {queue}")
    return _append_message(
        _unschedulable_reason(objects.group), f"admitted by queue {queue}, waits for nodes"
    )


def _replica_with_volcano_status(
    replica: ObservedReplica, *, found: FoundLaunch, objects: VolcanoObjects
) -> ObservedReplica:
    pod = found.pod(replica.role, replica.index)
    if pod is None:
        return _without_pod(replica, found=found, objects=objects)
    reason = _eviction_reason(found, objects)
    if reason and replica.ended:
        if replica.cause in (ExitCause.STOPPED, ExitCause.NOT_PREPARED):
            return replace(replica, cause=ExitCause.STOPPED, message=reason[:_LONGEST])
        return replica
    if reason and pod["metadata"].get("deletionTimestamp"):
        return replace(replica, message=f"asked to stop: {reason}"[:_LONGEST])
    if replica.phase is ReplicaPhase.PREPARING and not (pod.get("spec") or {}).get("nodeName"):
        return replace(replica, message=pending_reason(objects)[:_LONGEST])
    return replica


def _without_pod(
    replica: ObservedReplica, *, found: FoundLaunch, objects: VolcanoObjects
) -> ObservedReplica:
    if objects.job is None:
        # The record tells whether there ever was one.
        if replica.phase is ReplicaPhase.LOST and objects.group is None:
            return replace(replica, message="Volcano no longer has it: it was deleted there")
        return replica
    stopped = found.stop_by is not None
    since = _job_state(objects.job).get("lastTransitionTime")
    ended = _ENDED.get(objects.phase)
    if ended is None and not stopped:
        return replace(
            replica,
            phase=ReplicaPhase.PREPARING,
            cause=None,
            message=pending_reason(objects)[:_LONGEST],
            exit_code=None,
            ended_at=None,
        )
    if ended is None or (stopped and objects.phase in ABORTED):
        cause, text = ExitCause.STOPPED, "stopped"
    else:
        cause, text = ended
        text = _eviction_reason(found, objects) or text
        text = _append_message(_job_message(objects), text) if objects.phase == "Failed" else text
    return replace(
        replica,
        phase=ReplicaPhase.EXITED,
        cause=cause,
        message=text[:_LONGEST],
        ended_at=datetime.fromisoformat(str(since)) if since else None,
    )


def _eviction_reason(found: FoundLaunch, objects: VolcanoObjects) -> str:
    """Why the gang has to end early, as a message; empty where it need not, or where we ended it."""
    if found.stop_by is not None:
        return ""
    conditions = [
        condition
        for pod in found.pods
        for condition in (pod.get("status") or {}).get("conditions") or ()
        if condition.get("reason") in _EVICTED
    ]
    if conditions or objects.evicted:
        return _append_message(objects.evicted, _RECLAIMED)
    return _BROKEN if objects.phase in ABORTED else ""


def _pod_labels(pod: Object) -> Object:
    metadata = pod["metadata"]
    labels = metadata.get("labels") or {}
    place = labels.get(object_names.TASK_INDEX) or (metadata.get("annotations") or {}).get(
        object_names.TASK_INDEX
    )
    if marking.INDEX in labels or place is None:
        return pod
    return {**pod, "metadata": {**metadata, "labels": {**labels, marking.INDEX: place}}}


def _job_state(job: Object) -> Mapping[str, Any]:
    state: Mapping[str, Any] = (job.get("status") or {}).get("state") or {}
    return state


def _job_message(objects: VolcanoObjects) -> str:
    state = _job_state(objects.job or {})
    return str(state.get("message") or state.get("reason") or "")


def _unschedulable_reason(group: Object) -> str:
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
    return _append_message(message, _REASONS.get(reason, reason))


def _exceeded_caps(group: Object, queue: Object | None) -> Iterator[str]:
    """What the queue may not have more of."""
    wanted = group["spec"].get("minResources") or {}
    caps = ((queue or {}).get("spec") or {}).get("capability") or {}
    allocated = ((queue or {}).get("status") or {}).get("allocated") or {}
    for resource in sorted(set(wanted) & set(caps)):
        needs, most = parse_amount(str(wanted[resource])), parse_amount(str(caps[resource]))
        has = parse_amount(str(allocated.get(resource, 0)))
        if has + needs > most:
            yield (
                f"it holds {allocated.get(resource, 0)} of at most {caps[resource]} {resource}, and this needs "
                f"{wanted[resource]}"
            )


def _append_message(detail: str, text: str) -> str:
    return f"{text}: {detail}" if detail else text
