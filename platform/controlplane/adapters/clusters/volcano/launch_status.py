"""Status of a Launch from its Job and PodGroup: pure functions over the API's dicts.

::

    PodGroup Pending                ─▶ PREPARING   waits for its queue
    PodGroup Inqueue                ─▶ PREPARING   admitted; waits until the whole gang fits on nodes
    Job Running, Restarting         ─▶ as each pod reports
    Job Aborting, Aborted           ─▶ STOPPED     by us; or a pod of the gang was evicted, or deleted there
    Job Completing, Completed       ─▶ FINISHED    if the pod is gone already
    Job Terminating, Terminated     ─▶ STOPPED     because another replica failed
    Job Failed                      ─▶ FAILED
    no Job, and there was one       ─▶ LOST

An existing pod takes precedence over its Job: as long as its process runs, its cards are in use. Its conditions
show an eviction; when it is gone, Volcano's event does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from controlplane.adapters.clusters.kubernetes import object_names as marking
from controlplane.adapters.clusters.kubernetes.api import (
    Object,
    annotations_of,
    labels_of,
    nested_field,
    parse_time,
)
from controlplane.adapters.clusters.kubernetes.inventory import parse_amount
from controlplane.adapters.clusters.kubernetes.launch_status import (
    FINISHED,
    LONGEST_MESSAGE,
    STOPPED,
    FoundLaunch,
    append_reason_detail,
)
from controlplane.adapters.clusters.volcano import object_names
from controlplane.adapters.clusters.volcano.queues import queue_title
from controlplane.domain.common.reasons import Reason, truncate_reason
from controlplane.ports.clusters import ExitCause, ObservedReplica, ReplicaPhase

ABORTED: Final = ("Aborting", "Aborted")
_REASONS: Final = {
    "NotEnoughResources": Reason(
        "volcano.pending.not_enough_resources", "no nodes have free capacity for all pods at once"
    ),
    "NotEnoughTasks": Reason(
        "volcano.pending.not_enough_pods", "not all pods have been created yet"
    ),
    "NotEnoughPodsOfTask": Reason(
        "volcano.pending.not_enough_pods_of_role", "not all pods of one role have been created yet"
    ),
}
#: Reasons in a pod's conditions that Volcano's scheduler gives before it deletes the pod.
_EVICTED: Final = ("Evict", "PreemptionByScheduler")
_RECLAIMED: Final = Reason("volcano.eviction.preempted", "preempted or reclaimed by Volcano")
_BROKEN: Final = Reason(
    "volcano.eviction.gang",
    "stopped because a pod of the gang was evicted or deleted on the cluster",
)
_SIBLING: Final = Reason("volcano.job.replica_failed", "stopped because another replica failed")
_JOB_DELETED: Final = Reason("volcano.job.deleted", "the Volcano Job was deleted from the cluster")
#: The end of a replica whose pod no longer exists, by its Job's phase.
_ENDED: Final[Mapping[str, tuple[ExitCause, str]]] = {
    **dict.fromkeys(ABORTED, (ExitCause.STOPPED, _BROKEN)),
    **dict.fromkeys(("Terminating", "Terminated"), (ExitCause.STOPPED, _SIBLING)),
    **dict.fromkeys(("Completing", "Completed"), (ExitCause.FINISHED, FINISHED)),
    "Failed": (ExitCause.FAILED, Reason("volcano.job.failed", "the Volcano Job failed")),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VolcanoObjects:
    """Volcano's objects of one Launch; None where one does not exist."""

    job: Object | None = None
    group: Object | None = None
    queue: Object | None = None
    #: Volcano's reason for evicting a pod of it; empty without a recent eviction.
    evicted: str = ""

    @property
    def job_state(self) -> Object:
        state: Object = nested_field(self.job or {}, "status", "state")
        return state

    @property
    def phase(self) -> str:
        """Of the Job; empty without one."""
        return "" if self.job is None else str(self.job_state.get("phase") or "Pending")


def with_replica_index(pod: Object) -> Object:
    """A pod of a Job with our index label added; our own pods unchanged."""
    labels, word = labels_of(pod), object_names.TASK_INDEX
    place = labels.get(word) or annotations_of(pod).get(word)
    if marking.INDEX in labels or place is None:
        return pod
    return {**pod, "metadata": {**pod["metadata"], "labels": {**labels, marking.INDEX: place}}}


def with_volcano_status(found: FoundLaunch, objects: VolcanoObjects) -> FoundLaunch:
    """The Launch by its pods, and by its Job and PodGroup where pods are missing or wait."""
    replicas = []
    for each in found.launch.replicas:
        pod = found.pod(each.role, each.index)
        replica = (
            _replica_without_pod(each, found=found, objects=objects)
            if pod is None
            else _replica_with_pod(each, pod, found=found, objects=objects)
        )
        replicas.append(replace(replica, message=truncate_reason(replica.message, LONGEST_MESSAGE)))
    return replace(found, launch=replace(found.launch, replicas=tuple(replicas)))


def pending_reason(objects: VolcanoObjects) -> str:
    """Why it does not run yet, as a sentence with numbers."""
    group, queue = objects.group, objects.queue
    if group is None:
        return Reason("volcano.pending.no_pod_group", "waiting for Volcano to create the PodGroup")
    title = group["spec"].get("queue", "") if queue is None else queue_title(queue)
    unschedulable = _unschedulable_reason(group)
    if (nested_field(group, "status", "phase") or "Pending") != "Pending":
        admitted = Reason(
            "volcano.pending.admitted", "admitted by queue {queue}, waiting for nodes", queue=title
        )
        return append_reason_detail(admitted, unschedulable)
    if full := list(_exceeded_caps(group, queue or {})):
        return Reason(
            "volcano.pending.queue_full",
            "queue {queue} is full: {limits}",
            queue=title,
            limits=full,
        )
    state = nested_field(queue or {}, "status", "state") or "Open"
    if state != "Open":
        return Reason(
            "volcano.pending.queue_not_open",
            "queue {queue} is {state}: its workloads are not started",
            queue=title,
            state=state,
        )
    return append_reason_detail(
        Reason("volcano.pending.in_queue", "pending in queue {queue}", queue=title), unschedulable
    )


def _replica_with_pod(
    replica: ObservedReplica, pod: Object, *, found: FoundLaunch, objects: VolcanoObjects
) -> ObservedReplica:
    reason = _eviction_reason(found, objects)
    if reason and replica.ended:
        if replica.cause in (ExitCause.STOPPED, ExitCause.NOT_PREPARED):
            return replace(replica, cause=ExitCause.STOPPED, message=reason)
        return replica
    if reason and pod["metadata"].get("deletionTimestamp"):
        return replace(
            replica, message=Reason("launch.stop.evicted", "evicting ({reason})", reason=reason)
        )
    if replica.phase is ReplicaPhase.PREPARING and not nested_field(pod, "spec", "nodeName"):
        return replace(replica, message=pending_reason(objects))
    return replica


def _replica_without_pod(
    replica: ObservedReplica, *, found: FoundLaunch, objects: VolcanoObjects
) -> ObservedReplica:
    if objects.job is None:
        # The record shows whether there ever was one.
        if replica.phase is ReplicaPhase.LOST and objects.group is None:
            return replace(replica, message=_JOB_DELETED)
        return replica
    text: str
    stopped, state = found.stop_by is not None, objects.job_state
    ended = _ENDED.get(objects.phase)
    if ended is None and not stopped:
        replica = replace(replica, phase=ReplicaPhase.PREPARING, message=pending_reason(objects))
        return replace(replica, cause=None, exit_code=None, ended_at=None)
    if ended is None or (stopped and objects.phase in ABORTED):
        cause, text = ExitCause.STOPPED, STOPPED
    else:
        cause, text = ended
        text = _eviction_reason(found, objects) or text
        if objects.phase == "Failed":
            text = append_reason_detail(
                text, str(state.get("message") or state.get("reason") or "")
            )
    since = parse_time(state.get("lastTransitionTime"))
    return replace(replica, phase=ReplicaPhase.EXITED, cause=cause, message=text, ended_at=since)


def _eviction_reason(found: FoundLaunch, objects: VolcanoObjects) -> str:
    """Why the gang has to end early, as a message; empty if it does not, or if we ended it."""
    if found.stop_by is not None:
        return ""
    evicted = any(
        condition.get("reason") in _EVICTED
        for pod in found.pods
        for condition in nested_field(pod, "status", "conditions")
    )
    if evicted or objects.evicted:
        return append_reason_detail(_RECLAIMED, objects.evicted)
    return _BROKEN if objects.phase in ABORTED else ""


def _unschedulable_reason(group: Object) -> str:
    """The newest reason why it cannot be scheduled; empty where there is none."""
    found: list[Object] = [
        each
        for each in nested_field(group, "status", "conditions")
        if each.get("type") == "Unschedulable" and each.get("status") == "True"
    ]
    if not found:
        return ""
    newest = max(found, key=lambda each: str(each.get("lastTransitionTime") or ""))
    reason, message = str(newest.get("reason") or ""), str(newest.get("message") or "")
    return append_reason_detail(_REASONS.get(reason, reason), message)


def _exceeded_caps(group: Object, queue: Object) -> Iterator[str]:
    """What the queue may not have more of."""
    wanted = group["spec"].get("minResources") or {}
    caps = nested_field(queue, "spec", "capability")
    allocated = nested_field(queue, "status", "allocated")
    for resource in sorted(set(wanted) & set(caps)):
        has = allocated.get(resource, 0)
        total = parse_amount(str(has)) + parse_amount(str(wanted[resource]))
        if total > parse_amount(str(caps[resource])):
            yield Reason(
                "volcano.pending.cap_exceeded",
                "{allocated} of at most {cap} {resource} are allocated, and this workload requires {required}",
                allocated=str(has),
                cap=str(caps[resource]),
                resource=resource,
                required=str(wanted[resource]),
            )
