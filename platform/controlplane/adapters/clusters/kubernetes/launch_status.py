"""Status of a Launch from its pods and its record.

::

    no pod, record says launched ─▶ LOST        its finalizer was removed, or the store lost it
    Pending, init, pulling       ─▶ PREPARING   with the reason ("image … cannot be pulled")
    container runs, not started  ─▶ STARTING    only where there is a probe
    container runs               ─▶ RUNNING
    container terminated         ─▶ EXITED      whatever the phase says: cards are free when processes are gone
    node gone or fenced          ─▶ LOST

A phase alone ends nothing: a pod past its deadline is ``Failed`` while its container still saves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.launch_plans import CONTAINER, RECORD
from controlplane.ports.clusters import (
    ExitCause,
    ObservedLaunch,
    ObservedReplica,
    ReplicaPhase,
    exit_cause_of_code,
)

Object = Mapping[str, Any]

#: The taint by which an administrator declares that a machine is shut down.
OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLaunch:
    """A Launch as reconstructed from its objects."""

    launch: ObservedLaunch
    namespace: str
    pods: Sequence[Pod]
    #: Role → port's name → number.
    ports: Mapping[str, Mapping[str, int]]
    #: The Launch whose folder holds its checkpoints.
    checkpoints: str
    #: Deadline for saving, once a stop was requested.
    stop_by: datetime | None

    def pod(self, role: str, index: int) -> Pod | None:
        return next((pod for pod in self.pods if _replica_key(pod) == (role, index)), None)

    def replica(self, role: str, index: int) -> ObservedReplica:
        return next(
            each for each in self.launch.replicas if (each.role, each.index) == (role, index)
        )


def termination_message(pod: Pod) -> str:
    """The termination message: the end of its output after a failure; empty if none."""
    ended = (container_of(pod.get("status") or {}).get("state") or {}).get("terminated") or {}
    return str(ended.get("message") or "")


def pod_path(pod: Pod) -> str:
    """Its address in the API."""
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{pod['metadata']['name']}"


def log_key(pod: Pod) -> str:
    """Under which its Launch's record keeps its log."""
    role, index = _replica_key(pod)
    return f"log.{role}-{index}"


def found_launch(
    name: str,
    pods: Sequence[Pod],
    *,
    record: Object | None,
    unavailable_nodes: frozenset[str],
    at: datetime,
) -> FoundLaunch:
    """The Launch from its pods, each of which carries a copy of its record.

    ``record`` is needed where pods are missing; without it the Launch is taken to be complete.
    ``unavailable_nodes``: nodes that are deleted or fenced.
    """
    plan = _launch_record(pods, record)
    by_place = {_replica_key(pod): pod for pod in pods}
    stop_by = _parse_stop_deadline((record, *pods))
    whole = record is None or object_names.LAUNCHED in (record["metadata"].get("annotations") or {})
    replicas = []
    for role, count in plan["roles"].items():
        for index in range(count):
            pod = by_place.get((role, index))
            if pod is None and not whole:
                replicas.append(
                    _missing_pod_replica(
                        role, index, stopped=stop_by is not None, refused=_refusal_message(record)
                    )
                )
                continue
            node = "" if pod is None else str((pod.get("spec") or {}).get("nodeName") or "")
            replicas.append(
                observed_replica(
                    pod,
                    role=role,
                    index=index,
                    probed=role in plan["probed"],
                    node_gone=node in unavailable_nodes,
                    at=at,
                )
            )
    return FoundLaunch(
        launch=ObservedLaunch(name=name, replicas=tuple(replicas), labels=plan["labels"]),
        namespace=_namespace_of((record, *pods)),
        pods=pods,
        ports=plan["ports"],
        checkpoints=plan["checkpoints"],
        stop_by=stop_by,
    )


def checkpoints_of(record: Object) -> str:
    """The Launch whose folder holds this Launch's checkpoints."""
    return str(_launch_record((), record)["checkpoints"])


def is_genuine(pod: Pod, *, prefix: str) -> bool:
    """Whether we, or a controller for us, created it for a Launch: labels alone can be forged."""
    metadata = pod["metadata"]
    owners = {owner.get("name") for owner in metadata.get("ownerReferences") or ()}
    labels = metadata.get("labels") or {}
    return (
        str(metadata["namespace"]).startswith(f"{prefix}-")
        and labels.get(object_names.LAUNCH) in owners
        and object_names.RECORD in (metadata.get("annotations") or {})
    )


def replica_keys(record: Object) -> Sequence[tuple[str, int]]:
    """Role and index of every replica."""
    roles = _launch_record((), record)["roles"]
    return [(role, index) for role, count in roles.items() for index in range(count)]


def has_all_pods(pods: Sequence[Pod]) -> bool:
    """Whether these are the pods of every replica: then the record has nothing to add."""
    return bool(pods) and len(pods) == sum(_launch_record(pods, None)["roles"].values())


def needs_node_check(pod: Pod, *, at: datetime) -> bool:
    """Whether its node must be checked: the pod is overdue for deletion, or its node stopped reporting."""
    status, metadata = pod.get("status") or {}, pod["metadata"]
    if not (pod.get("spec") or {}).get("nodeName"):
        return False
    if "terminated" in (container_of(status).get("state") or {}):
        return False
    deleted = parse_time(metadata.get("deletionTimestamp"))
    if deleted is not None and at > deleted + KUBELET_CONFIRMATION:
        return True
    return status.get("reason") == "NodeLost" or any(
        condition.get("type") == "Ready" and condition.get("reason") in ("NodeNotReady", "NodeLost")
        for condition in status.get("conditions") or ()
    )


def is_fenced(node: Object | None) -> bool:
    """Whether nothing can be running on it: it is deleted, or an administrator declared it shut down."""
    if node is None:
        return True
    taints = (node.get("spec") or {}).get("taints") or ()
    return any(taint.get("key") == OUT_OF_SERVICE for taint in taints)


def _launch_record(pods: Sequence[Pod], record: Object | None) -> Mapping[str, Any]:
    text = (
        record["data"][RECORD]
        if record is not None
        else pods[0]["metadata"]["annotations"][object_names.RECORD]
    )
    parsed: Mapping[str, Any] = json.loads(text)
    return parsed


def _replica_key(pod: Pod) -> tuple[str, int]:
    labels = pod["metadata"]["labels"]
    return labels[object_names.ROLE], int(labels[object_names.INDEX])


def _parse_stop_deadline(things: Sequence[Object | None]) -> datetime | None:
    for thing in things:
        detail = ((thing or {"metadata": {}})["metadata"].get("annotations") or {}).get(
            object_names.STOP_BY
        )
        if detail:
            return datetime.fromisoformat(detail)
    return None


def _namespace_of(things: Sequence[Object | None]) -> str:
    return next(str(thing["metadata"]["namespace"]) for thing in things if thing is not None)


def _refusal_message(record: Object | None) -> str:
    """Why not all of its pods were created; empty if nothing prevented it."""
    metadata: Mapping[str, Any] = {} if record is None else record["metadata"]
    return str((metadata.get("annotations") or {}).get(object_names.REFUSED, ""))


def _missing_pod_replica(role: str, index: int, *, stopped: bool, refused: str) -> ObservedReplica:
    if stopped:
        return ObservedReplica(
            role=role,
            index=index,
            phase=ReplicaPhase.EXITED,
            cause=ExitCause.NOT_PREPARED if refused else ExitCause.STOPPED,
            message=refused or "stopped before it started",
        )
    return ObservedReplica(role=role, index=index, phase=ReplicaPhase.PREPARING, message="starting")


Pod = Mapping[str, Any]

#: How long a kubelet may take to confirm the end of a pod past its grace period.
KUBELET_CONFIRMATION = timedelta(seconds=20)
_SIGTERM, _SIGKILL = 143, 137
_EXIT_DISK_FULL, _EXIT_OUT_OF_MEMORY = 28, 12
_DISK_FULL = "No space left on device"
_WAITING_REASONS = {
    "ErrImagePull": "the image cannot be pulled",
    "ImagePullBackOff": "the image cannot be pulled",
    "InvalidImageName": "the image's name cannot be used",
    "ErrImageNeverPull": "the image is not on the node, and may not be pulled",
    "CreateContainerConfigError": "the container's configuration is not complete",
    "CreateContainerError": "the container cannot be made",
    "RunContainerError": "the container cannot be started",
}
_LONGEST = 600


def observed_replica(
    pod: Pod | None, *, role: str, index: int, probed: bool, node_gone: bool, at: datetime
) -> ObservedReplica:
    """The state of one replica; ``node_gone``: its node is no more, or is fenced."""
    if pod is None:
        return _lost_replica(role, index, "the cluster no longer has its pod: it was deleted there")
    status = pod.get("status") or {}
    container = container_of(status)
    state = container.get("state") or {}
    started = parse_time((state.get("running") or state.get("terminated") or {}).get("startedAt"))
    if ended := state.get("terminated"):
        return _exited_replica(pod, ended, role=role, index=index)
    if node_gone:
        where = (pod.get("spec") or {}).get("nodeName", "")
        return _lost_replica(role, index, f"its node {where} is gone", started=started)
    if _is_killed_for_time(pod, at=at) or ("running" not in state and _is_never_started(pod)):
        return _not_started(pod, role=role, index=index, started=started)
    if "running" in state:
        awaits_probe = probed and not container.get("ready")
        return ObservedReplica(
            role=role,
            index=index,
            phase=ReplicaPhase.STARTING if awaits_probe else ReplicaPhase.RUNNING,
            message=_running_message(pod, awaits_probe=awaits_probe),
            started_at=started,
        )
    return ObservedReplica(
        role=role, index=index, phase=ReplicaPhase.PREPARING, message=_preparing_message(pod, state)
    )


def container_of(status: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any]
    for found in status.get("containerStatuses") or ():
        if found.get("name") == CONTAINER:
            return found
    return {}


def _running_message(pod: Pod, *, awaits_probe: bool) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "asked to stop"
    return "waiting for the first answer" if awaits_probe else "running"


def _is_killed_for_time(pod: Pod, *, at: datetime) -> bool:
    """Whether the kubelet has certainly killed it: kubelets before 1.22 never report it for the container."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    began = parse_time(status.get("startTime"))
    if status.get("reason") != "DeadlineExceeded" or began is None:
        return False
    allowed = timedelta(
        seconds=int(spec.get("activeDeadlineSeconds") or 0)
        + int(spec.get("terminationGracePeriodSeconds") or 0)
    )
    return at > began + allowed + KUBELET_CONFIRMATION


def _is_never_started(pod: Pod) -> bool:
    """No process of it runs or will: it was refused, evicted or deleted before a container existed."""
    status = pod.get("status") or {}
    metadata = pod["metadata"]
    if not metadata.get("deletionTimestamp"):
        return status.get("phase") in ("Failed", "Succeeded")
    # A kubelet that has cleaned up sets the grace period to zero.
    confirmed = metadata.get("deletionGracePeriodSeconds") == 0
    return confirmed or not (pod.get("spec") or {}).get("nodeName")


def _not_started(
    pod: Pod, *, role: str, index: int, started: datetime | None = None
) -> ObservedReplica:
    status = pod.get("status") or {}
    stopped = _was_stopped(pod)
    detail = str(status.get("message") or status.get("reason") or "")
    message = "stopped before it started" if stopped else f"the node did not take it: {detail}"
    if status.get("reason") == "DeadlineExceeded":
        cause, message = ExitCause.OUT_OF_TIME, "its time was over"
    else:
        cause = ExitCause.STOPPED if stopped else ExitCause.NOT_PREPARED
    return ObservedReplica(
        role=role,
        index=index,
        phase=ReplicaPhase.EXITED,
        cause=cause,
        message=message[:_LONGEST],
        started_at=started,
        ended_at=parse_time(pod["metadata"].get("deletionTimestamp")),
    )


def _exited_replica(
    pod: Pod, ended: Mapping[str, Any], *, role: str, index: int
) -> ObservedReplica:
    cause, message = _exit_cause(pod, ended)
    return ObservedReplica(
        role=role,
        index=index,
        phase=ReplicaPhase.EXITED,
        cause=cause,
        message=message[:_LONGEST],
        exit_code=int(ended.get("exitCode", -1)),
        started_at=parse_time(ended.get("startedAt")),
        ended_at=parse_time(ended.get("finishedAt")),
    )


def _exit_cause(pod: Pod, ended: Mapping[str, Any]) -> tuple[ExitCause, str]:
    """The first of these that holds."""
    code, reason = int(ended.get("exitCode", -1)), str(ended.get("reason") or "")
    last = _last_line(str(ended.get("message") or ""))
    status = pod.get("status") or {}
    killed = bool(pod["metadata"].get("deletionTimestamp")) and code in (_SIGTERM, _SIGKILL)
    judgements = (
        (status.get("reason") == "DeadlineExceeded", ExitCause.OUT_OF_TIME, "its time was over"),
        (_was_stopped(pod) and code != 0, ExitCause.STOPPED, "stopped"),
        (code == 0, ExitCause.FINISHED, "finished"),
        (
            status.get("reason") == "Evicted",
            ExitCause.STOPPED,
            f"the node evicted it: {status.get('message', '')}",
        ),
        (
            reason == "OOMKilled",
            ExitCause.OUT_OF_MEMORY,
            "killed: it used more memory than it may",
        ),
        (
            code == _EXIT_OUT_OF_MEMORY,
            ExitCause.OUT_OF_MEMORY,
            _append_message(last, "it could not get the memory that it needs"),
        ),
        (
            code == _EXIT_DISK_FULL or _DISK_FULL in last,
            ExitCause.DISK_FULL,
            _append_message(last, "the disk is full"),
        ),
        (
            reason in ("StartError", "ContainerCannotRun"),
            ExitCause.NOT_PREPARED,
            _append_message(last, "the container could not be started"),
        ),
        (killed, ExitCause.STOPPED, "its pod was deleted on the cluster"),
        (True, exit_cause_of_code(code), _append_message(last, f"exited with code {code}")),
    )
    return next((cause, text) for holds, cause, text in judgements if holds)


def _was_stopped(pod: Pod) -> bool:
    """Whether we requested its stop; a pod may also be deleted by others."""
    return object_names.STOP_BY in (pod["metadata"].get("annotations") or {})


def _preparing_message(pod: Pod, state: Mapping[str, Any]) -> str:
    waiting = state.get("waiting") or {}
    reason, detail = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    if reason in _WAITING_REASONS:
        return f"{_WAITING_REASONS[reason]}: {detail}"[:_LONGEST]
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"the cluster does not place it: {condition.get('message', '')}"[:_LONGEST]
    return "the node makes it ready" if (pod.get("spec") or {}).get("nodeName") else "starting"


def _lost_replica(
    role: str, index: int, message: str, *, started: datetime | None = None
) -> ObservedReplica:
    return ObservedReplica(
        role=role,
        index=index,
        phase=ReplicaPhase.LOST,
        cause=ExitCause.LOST,
        message=message,
        started_at=started,
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _append_message(last: str, text: str) -> str:
    return f"{text}: {last}" if last else text


def parse_time(text: object) -> datetime | None:
    """As the API writes instants."""
    return datetime.fromisoformat(str(text)) if text else None
