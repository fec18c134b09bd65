"""Status of a Launch from its pods and its record.

::

    no pod, record says launched ─▶ LOST        its finalizer was removed, or the store lost it
    Pending, init, pulling       ─▶ PREPARING   with the reason ("image … cannot be pulled")
    init container failed        ─▶ EXITED      the inputs could not be downloaded
    container runs, not ready    ─▶ STARTING    only where there is a probe; also a pod that is being deleted
    container runs               ─▶ RUNNING
    container terminated         ─▶ EXITED      whatever the phase says: cards are free when processes are gone
    node gone or fenced          ─▶ LOST

A phase alone ends nothing: a pod past its deadline is ``Failed`` while its container still saves.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.api import (
    Object,
    annotations_of,
    labels_of,
    nested_field,
    object_name,
    parse_time,
)
from controlplane.adapters.clusters.kubernetes.launch_plans import CONTAINER, DOWNLOADER, RECORD
from controlplane.domain.common.reasons import Reason, reason_from_json, truncate_reason
from controlplane.ports.clusters import (
    EXIT_DISK_FULL,
    EXIT_OUT_OF_MEMORY,
    ExitCause,
    ObservedLaunch,
    ObservedReplica,
    ReplicaPhase,
    exit_cause_of_code,
    shows_full_disk,
)
from controlplane.ports.launches import UNREADY, unanswered_probe_reason

#: The taint by which an administrator declares that a machine is shut down.
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
#: How long a kubelet may take to confirm the end of a pod past its grace period.
KUBELET_CONFIRMATION: Final = timedelta(seconds=20)
#: Longest message of a replica.
LONGEST_MESSAGE: Final = 600
_SIGTERM, _SIGKILL = 143, 137
_OUT_OF_TIME: Final = Reason("attempt.exit.deadline_exceeded", "the job exceeded its time limit")
STOPPED: Final = Reason("attempt.stop.stopped", "stopped")
FINISHED: Final = Reason("attempt.exit.finished", "finished")
_EVICTED: Final = Reason("attempt.exit.evicted", "the node evicted the pod")
_OOM_KILLED: Final = Reason(
    "attempt.exit.oom_killed", "OOMKilled: the memory limit of the container was exceeded"
)
_OUT_OF_MEMORY: Final = Reason(
    "attempt.exit.allocation_failed", "the program failed to allocate memory"
)
_DISK_IS_FULL: Final = Reason("attempt.exit.disk_full", "the disk is full")
_RUN_ERROR: Final = Reason("launch.container.run_error", "the container cannot be started")
_POD_DELETED: Final = Reason("launch.pod.deleted", "the pod was deleted from the cluster")
_NODE_REFUSED: Final = Reason("launch.node.refused", "the node rejected the pod")
_STOPPED_BEFORE_START: Final = Reason(
    "launch.stop.before_start", "stopped before the workload started"
)
_STARTING: Final = Reason("launch.state.starting", "starting")
_RUNNING: Final = Reason("launch.state.running", "running")
_STOP_REQUESTED: Final = Reason("attempt.stop.requested", "stop requested")
_PROBE_AWAITED: Final = Reason("launch.probe.waiting", "waiting for the first successful probe")
_POD_PREPARING: Final = Reason("launch.pod.preparing", "the node is preparing the pod")
_UNSCHEDULABLE: Final = Reason("launch.pod.unschedulable", "the cluster cannot schedule the pod")
_DOWNLOADING: Final = Reason("launch.input.downloading", "the inputs are being downloaded")
_DOWNLOAD_FAILED: Final = Reason(
    "launch.input.download_failed", "the inputs could not be downloaded"
)
_PULL_FAILED: Final = Reason("launch.image.pull_failed", "the image cannot be pulled")
_WAITING_REASONS: Final = {
    "ErrImagePull": _PULL_FAILED,
    "ImagePullBackOff": _PULL_FAILED,
    "InvalidImageName": Reason("launch.image.invalid_name", "the name of the image is invalid"),
    "ErrImageNeverPull": Reason(
        "launch.image.never_pulled", "the image is not on the node, and its pull policy is Never"
    ),
    "CreateContainerConfigError": Reason(
        "launch.container.config_error", "the configuration of the container is invalid"
    ),
    "CreateContainerError": Reason(
        "launch.container.create_error", "the container cannot be created"
    ),
    "RunContainerError": _RUN_ERROR,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLaunch:
    """A Launch as reconstructed from its objects."""

    launch: ObservedLaunch
    namespace: str
    pods: Sequence[Object]
    #: Role → port's name → number.
    ports: Mapping[str, Mapping[str, int]]
    #: The Launch whose folder holds its checkpoints.
    checkpoints: str
    #: Deadline for saving, once a stop was requested.
    stop_by: datetime | None
    #: As in the Launch.
    pinned: bool = False

    def pod(self, role: str, index: int) -> Object | None:
        return next((pod for pod in self.pods if _replica_key(pod) == (role, index)), None)

    def replica(self, role: str, index: int) -> ObservedReplica:
        return next(
            each for each in self.launch.replicas if (each.role, each.index) == (role, index)
        )


def found_launch(
    name: str,
    pods: Sequence[Object],
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
    known = [thing for thing in (record, *pods) if thing is not None]
    deadlines = [annotations_of(thing).get(object_names.STOP_BY) for thing in known]
    stop_by = next((datetime.fromisoformat(text) for text in deadlines if text), None)
    marks = {} if record is None else annotations_of(record)
    whole = record is None or object_names.LAUNCHED in marks
    replicas = []
    for role, count in plan["roles"].items():
        for index in range(count):
            pod = by_place.get((role, index))
            replica = partial(ObservedReplica, role=role, index=index)
            if pod is not None or whole:
                observed = _observed_replica(
                    pod,
                    replica,
                    probed=role in plan["probed"],
                    unavailable_nodes=unavailable_nodes,
                    at=at,
                )
            elif stop_by is None:
                observed = replica(phase=ReplicaPhase.PREPARING, message=_STARTING)
            else:
                refused = _parse_launch_refusal(str(marks.get(object_names.REFUSED, "")))
                observed = replica(
                    phase=ReplicaPhase.EXITED,
                    cause=ExitCause.NOT_PREPARED if refused else ExitCause.STOPPED,
                    message=refused or _STOPPED_BEFORE_START,
                )
            replicas.append(observed)
    return FoundLaunch(
        launch=ObservedLaunch(name=name, replicas=tuple(replicas), labels=plan["labels"]),
        namespace=str(known[0]["metadata"]["namespace"]),
        pods=pods,
        ports=plan["ports"],
        checkpoints=plan["checkpoints"],
        stop_by=stop_by,
        pinned=bool(plan.get("pinned")),
    )


def checkpoint_source_launch(record: Object) -> str:
    """The Launch whose folder holds this Launch's checkpoints."""
    return str(_launch_record((), record)["checkpoints"])


def replica_keys(record: Object) -> Sequence[tuple[str, int]]:
    """Role and index of every replica."""
    roles = _launch_record((), record)["roles"]
    return [(role, index) for role, count in roles.items() for index in range(count)]


def has_all_pods(pods: Sequence[Object]) -> bool:
    """Whether these are the pods of every replica: then the record has nothing to add."""
    return bool(pods) and len(pods) == sum(_launch_record(pods, None)["roles"].values())


def _launch_record(pods: Sequence[Object], record: Object | None) -> Mapping[str, Any]:
    text = (
        annotations_of(pods[0])[object_names.RECORD] if record is None else record["data"][RECORD]
    )
    parsed: Mapping[str, Any] = json.loads(text)
    return parsed


def _replica_key(pod: Object) -> tuple[str, int]:
    labels = labels_of(pod)
    return labels[object_names.ROLE], int(labels[object_names.INDEX])


# -- Pods --


def pod_path(pod: Object) -> str:
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/pods/{object_name(pod)}"


def log_key(pod: Object) -> str:
    """Under which its Launch's record keeps its log."""
    role, index = _replica_key(pod)
    return f"log.{role}-{index}"


def termination_message(pod: Object) -> str:
    """The termination message: the end of its output after a failure; empty if none."""
    return str(nested_field(_container_state(pod), "terminated").get("message") or "")


def is_pod_created_by_ninefold(pod: Object, *, prefix: str) -> bool:
    """Whether we, or a controller for us, created it for a Launch: labels alone can be forged."""
    metadata = pod["metadata"]
    owners = {owner.get("name") for owner in metadata.get("ownerReferences") or ()}
    return (
        str(metadata["namespace"]).startswith(f"{prefix}-")
        and labels_of(pod).get(object_names.LAUNCH) in owners
        and object_names.RECORD in annotations_of(pod)
    )


def pod_needs_node_check(pod: Object, *, at: datetime) -> bool:
    """Whether its node must be checked: the pod is overdue for deletion, or its node stopped reporting."""
    if not nested_field(pod, "spec", "nodeName") or "terminated" in _container_state(pod):
        return False
    deleted = parse_time(pod["metadata"].get("deletionTimestamp"))
    if deleted is not None and at > deleted + KUBELET_CONFIRMATION:
        return True
    return nested_field(pod, "status", "reason") == "NodeLost" or any(
        condition.get("type") == "Ready" and condition.get("reason") in ("NodeNotReady", "NodeLost")
        for condition in nested_field(pod, "status", "conditions")
    )


def is_fenced(node: Object | None) -> bool:
    """Whether nothing can be running on it: it is deleted, or an administrator declared it shut down."""
    return node is None or any(
        taint.get("key") == OUT_OF_SERVICE for taint in nested_field(node, "spec", "taints")
    )


def append_reason_detail(reason: str, detail: str) -> str:
    """Return the reason with text of Kubernetes or the workload, if there is any."""
    if not detail:
        return reason
    return Reason("attempt.exit.last_line", "{reason}: {detail}", reason=reason, detail=detail)


def _parse_launch_refusal(annotation: str) -> str:
    """The reason that the launcher wrote; earlier releases wrote its text."""
    try:
        stored = json.loads(annotation)
    except ValueError:
        return annotation
    return reason_from_json(stored) if isinstance(stored, dict) else annotation


def _container_status(pod: Object) -> Object:
    containers: Sequence[Object] = nested_field(pod, "status", "containerStatuses") or ()
    return next((found for found in containers if found.get("name") == CONTAINER), {})


def _downloader_state(pod: Object) -> Mapping[str, Any]:
    """Of the container that downloads inputs; empty without one."""
    containers: Sequence[Object] = nested_field(pod, "status", "initContainerStatuses") or ()
    found = next((one for one in containers if one.get("name") == DOWNLOADER), {})
    state: Mapping[str, Any] = nested_field(found, "state")
    return state


def only_downloads(pod: Object) -> bool:
    """Whether it downloads inputs now, for a Launch without cards: then nothing but that is to be known of it."""
    return "running" in _downloader_state(pod) and not annotations_of(pod).get(object_names.CARDS)


def _failed_download(pod: Object) -> Mapping[str, Any] | None:
    """How the download of inputs failed; then the workload never starts."""
    ended: Mapping[str, Any] | None = _downloader_state(pod).get("terminated")
    return ended if ended and int(ended.get("exitCode", -1)) != 0 else None


def _download_exit_cause(pod: Object, ended: Mapping[str, Any]) -> tuple[ExitCause, str]:
    if object_names.STOP_BY in annotations_of(pod):
        return ExitCause.STOPPED, _STOPPED_BEFORE_START
    disk_full = int(ended.get("exitCode", -1)) == EXIT_DISK_FULL
    cause = ExitCause.DISK_FULL if disk_full else ExitCause.NOT_PREPARED
    detail = _last_line(ended) or str(ended.get("reason") or "")
    return cause, append_reason_detail(_DOWNLOAD_FAILED, detail)


def _last_line(ended: Mapping[str, Any]) -> str:
    """Of its termination message, which is not blank; empty if there is none."""
    return next(reversed(str(ended.get("message") or "").rstrip().splitlines()), "").strip()


def _container_state(pod: Object) -> Mapping[str, Any]:
    state: Mapping[str, Any] = nested_field(_container_status(pod), "state")
    return state


def _observed_replica(
    pod: Object | None,
    replica: Callable[..., ObservedReplica],
    *,
    probed: bool,
    unavailable_nodes: frozenset[str],
    at: datetime,
) -> ObservedReplica:
    """The state of one replica by its pod; ``replica`` builds it."""
    lost = partial(replica, phase=ReplicaPhase.LOST, cause=ExitCause.LOST)
    if pod is None:
        return lost(message=_POD_DELETED)
    state, node = _container_state(pod), str(nested_field(pod, "spec", "nodeName") or "")
    running, ended = state.get("running"), state.get("terminated")
    started = parse_time((running or ended or {}).get("startedAt"))
    observed = partial(replica, started_at=started)
    if failed := _failed_download(pod):
        cause, message = _download_exit_cause(pod, failed)
        ended_at = parse_time(failed.get("finishedAt"))
        observed = partial(observed, phase=ReplicaPhase.EXITED, cause=cause, ended_at=ended_at)
    elif ended:
        cause, message = _exit_cause(pod, ended)
        observed = partial(
            observed,
            phase=ReplicaPhase.EXITED,
            cause=cause,
            exit_code=int(ended.get("exitCode", -1)),
            ended_at=parse_time(ended.get("finishedAt")),
        )
    elif node in unavailable_nodes:
        gone = Reason("launch.node.gone", "node {node} was deleted or is out of service", node=node)
        return lost(message=gone, started_at=started)
    elif _has_exceeded_deadline(pod, at=at) or ("running" not in state and _has_never_started(pod)):
        cause, message = _cause_before_start(pod)
        ended_at = parse_time(pod["metadata"].get("deletionTimestamp"))
        observed = partial(observed, phase=ReplicaPhase.EXITED, cause=cause, ended_at=ended_at)
    elif "running" in state:
        deleted = bool(pod["metadata"].get("deletionTimestamp"))
        # A Service sends no requests to a pod that is being deleted either, whatever its probe says.
        awaits_probe = probed and (deleted or not _container_status(pod).get("ready"))
        message = _RUNNING
        if deleted:
            message = _STOP_REQUESTED
        elif awaits_probe:
            message = UNREADY if _unready_since(pod, began=started) else _PROBE_AWAITED
        phase = ReplicaPhase.STARTING if awaits_probe else ReplicaPhase.RUNNING
        observed = partial(observed, phase=phase)
    else:
        message = _preparing_message(pod, state)
        observed = partial(observed, phase=ReplicaPhase.PREPARING)
    return observed(message=truncate_reason(message, LONGEST_MESSAGE))


def _has_exceeded_deadline(pod: Object, *, at: datetime) -> bool:
    """Whether the kubelet has certainly killed it: kubelets before 1.22 never report it for the container."""
    status, spec = nested_field(pod, "status"), nested_field(pod, "spec")
    began = parse_time(status.get("startTime"))
    if status.get("reason") != "DeadlineExceeded" or began is None:
        return False
    limits = ("activeDeadlineSeconds", "terminationGracePeriodSeconds")
    allowed = timedelta(seconds=sum(int(spec.get(limit) or 0) for limit in limits))
    return at > began + allowed + KUBELET_CONFIRMATION


def _has_never_started(pod: Object) -> bool:
    """No process of it runs or will: it was refused, evicted or deleted before a container existed."""
    metadata = pod["metadata"]
    if not metadata.get("deletionTimestamp"):
        return nested_field(pod, "status", "phase") in ("Failed", "Succeeded")
    # A kubelet that has cleaned up sets the grace period to zero.
    confirmed = metadata.get("deletionGracePeriodSeconds") == 0
    return confirmed or not nested_field(pod, "spec", "nodeName")


def _cause_before_start(pod: Object) -> tuple[ExitCause, str]:
    status = nested_field(pod, "status")
    if status.get("reason") == "DeadlineExceeded":
        return ExitCause.OUT_OF_TIME, _OUT_OF_TIME
    if object_names.STOP_BY in annotations_of(pod):
        return ExitCause.STOPPED, _STOPPED_BEFORE_START
    detail = str(status.get("message") or status.get("reason") or "")
    return ExitCause.NOT_PREPARED, append_reason_detail(_NODE_REFUSED, detail)


def _liveness_limit(pod: Object) -> timedelta | None:
    """How long its container may go without an answer; None where it has no liveness probe."""
    containers: Sequence[Object] = nested_field(pod, "spec", "containers") or ()
    probes = (each.get("livenessProbe") for each in containers if each.get("name") == CONTAINER)
    probe = next(probes, None)
    if probe is None:
        return None
    return timedelta(seconds=int(probe["periodSeconds"]) * int(probe["failureThreshold"]))


def _unready_since(pod: Object, *, began: datetime | None) -> datetime | None:
    """Since when it is not ready after it had been; None otherwise.

    :param began: when its container started.
    """
    since = next(
        (
            parse_time(condition.get("lastTransitionTime"))
            for condition in nested_field(pod, "status", "conditions")
            if condition.get("type") == "Ready" and condition.get("status") == "False"
        ),
        None,
    )
    return since if since and began and since > began else None


def _was_unanswering(pod: Object, ended: Mapping[str, Any], *, limit: timedelta) -> bool:
    """Whether the kubelet killed it for its liveness probe, which it reports in events only.

    Before that, the pod had become ready and was not for at least half of the limit: the readiness probe fails
    later than the first check of the liveness probe does.
    """
    began, finished = (parse_time(ended.get(name)) for name in ("startedAt", "finishedAt"))
    since = _unready_since(pod, began=began)
    return (
        # Engines that still handle SIGTERM exit with 0.
        int(ended.get("exitCode", -1)) in (0, _SIGTERM, _SIGKILL)
        and str(ended.get("reason") or "") != "OOMKilled"
        and finished is not None
        and since is not None
        and finished - since >= limit / 2
    )


def _exit_cause(pod: Object, ended: Mapping[str, Any]) -> tuple[ExitCause, str]:
    """The first of these that holds."""
    code, reason = int(ended.get("exitCode", -1)), str(ended.get("reason") or "")
    last, status = _last_line(ended), nested_field(pod, "status")
    stop_requested = object_names.STOP_BY in annotations_of(pod)
    deleted = bool(pod["metadata"].get("deletionTimestamp"))
    killed = deleted and code in (_SIGTERM, _SIGKILL)
    evicted = status.get("reason") == "Evicted"
    limit = None if stop_requested or deleted or evicted else _liveness_limit(pod)
    hung = limit is not None and _was_unanswering(pod, ended, limit=limit)
    unanswered = "" if limit is None else unanswered_probe_reason(limit)
    exited = Reason("attempt.exit.failed", "exited with code {exit_code}", exit_code=code)
    judgements = (
        (status.get("reason") == "DeadlineExceeded", ExitCause.OUT_OF_TIME, _OUT_OF_TIME, ""),
        (stop_requested and code != 0, ExitCause.STOPPED, STOPPED, ""),
        (hung, ExitCause.FAILED, unanswered, last),
        (code == 0, ExitCause.FINISHED, FINISHED, ""),
        (evicted, ExitCause.STOPPED, _EVICTED, status.get("message")),
        (reason == "OOMKilled", ExitCause.OUT_OF_MEMORY, _OOM_KILLED, ""),
        (code == EXIT_OUT_OF_MEMORY, ExitCause.OUT_OF_MEMORY, _OUT_OF_MEMORY, last),
        (shows_full_disk(code, last), ExitCause.DISK_FULL, _DISK_IS_FULL, last),
        (reason in ("StartError", "ContainerCannotRun"), ExitCause.NOT_PREPARED, _RUN_ERROR, last),
        (killed, ExitCause.STOPPED, _POD_DELETED, ""),
        (True, exit_cause_of_code(code), exited, last),
    )
    return next(
        (cause, append_reason_detail(text, str(detail or "")))
        for holds, cause, text, detail in judgements
        if holds
    )


def _preparing_message(pod: Object, state: Mapping[str, Any]) -> str:
    waiting = nested_field(_downloader_state(pod), "waiting") or nested_field(state, "waiting")
    reason, detail = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    if reason in _WAITING_REASONS:
        return append_reason_detail(_WAITING_REASONS[reason], detail)
    for condition in nested_field(pod, "status", "conditions"):
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return append_reason_detail(_UNSCHEDULABLE, str(condition.get("message") or ""))
    if "running" in _downloader_state(pod):
        return _DOWNLOADING
    return _POD_PREPARING if nested_field(pod, "spec", "nodeName") else _STARTING
