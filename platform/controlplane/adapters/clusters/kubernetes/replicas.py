"""What a pod says of its replica: pure judgement over the API's dicts.

::

    no pod, record says launched ─▶ LOST        somebody took its finalizer away, or the store lost it
    Pending, init, pulling       ─▶ PREPARING   with the reason that people need ("image … cannot be pulled")
    container runs, not started  ─▶ STARTING    only where there is a probe
    container runs               ─▶ RUNNING
    container terminated         ─▶ EXITED      whatever the phase says: cards are free when processes are gone
    node gone or fenced          ─▶ LOST

A phase alone ends nothing: a pod past its deadline is ``Failed`` while its container still saves.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from controlplane.adapters.clusters.kubernetes import names
from controlplane.adapters.clusters.kubernetes.plans import CONTAINER
from controlplane.ports.clusters import ExitCause, ObservedReplica, Phase, cause_of_exit

Pod = Mapping[str, Any]

#: How long a kubelet may take to confirm the end of a pod whose time is over.
CONFIRMED_WITHIN = timedelta(seconds=20)
_SIGTERM, _SIGKILL = 143, 137
_EXIT_DISK_FULL, _EXIT_OUT_OF_MEMORY = 28, 12
_DISK_FULL = "No space left on device"
_TROUBLES = {
    "ErrImagePull": "the image cannot be pulled",
    "ImagePullBackOff": "the image cannot be pulled",
    "InvalidImageName": "the image's name cannot be used",
    "ErrImageNeverPull": "the image is not on the node, and may not be pulled",
    "CreateContainerConfigError": "the container's configuration is not complete",
    "CreateContainerError": "the container cannot be made",
    "RunContainerError": "the container cannot be started",
}
_LONGEST = 600


def replica_of(
    pod: Pod | None, *, role: str, index: int, probed: bool, node_gone: bool, at: datetime
) -> ObservedReplica:
    """The state of one replica; ``node_gone``: its node is no more, or is fenced."""
    if pod is None:
        return _lost(role, index, "the cluster no longer has its pod: it was deleted there")
    status = pod.get("status") or {}
    container = container_of(status)
    state = container.get("state") or {}
    started = instant((state.get("running") or state.get("terminated") or {}).get("startedAt"))
    if ended := state.get("terminated"):
        return _exited(pod, ended, role=role, index=index)
    if node_gone:
        where = (pod.get("spec") or {}).get("nodeName", "")
        return _lost(role, index, f"its node {where} is gone", started=started)
    if _killed_for_time(pod, at=at) or ("running" not in state and _never_started(pod)):
        return _not_started(pod, role=role, index=index, started=started)
    if "running" in state:
        waits = probed and not container.get("ready")
        return ObservedReplica(
            role=role,
            index=index,
            phase=Phase.STARTING if waits else Phase.RUNNING,
            message=_running(pod, waits=waits),
            started_at=started,
        )
    return ObservedReplica(
        role=role, index=index, phase=Phase.PREPARING, message=_preparing(pod, state)
    )


def container_of(status: Mapping[str, Any]) -> Mapping[str, Any]:
    found: Mapping[str, Any]
    for found in status.get("containerStatuses") or ():
        if found.get("name") == CONTAINER:
            return found
    return {}


def _running(pod: Pod, *, waits: bool) -> str:
    if pod["metadata"].get("deletionTimestamp"):
        return "asked to stop"
    return "waiting for the first answer" if waits else "running"


def _killed_for_time(pod: Pod, *, at: datetime) -> bool:
    """Whether the kubelet has killed it for certain: kubelets before 1.22 never say so of its container."""
    status, spec = pod.get("status") or {}, pod.get("spec") or {}
    began = instant(status.get("startTime"))
    if status.get("reason") != "DeadlineExceeded" or began is None:
        return False
    allowed = timedelta(
        seconds=int(spec.get("activeDeadlineSeconds") or 0)
        + int(spec.get("terminationGracePeriodSeconds") or 0)
    )
    return at > began + allowed + CONFIRMED_WITHIN


def _never_started(pod: Pod) -> bool:
    """No process of it runs or will: it was refused, evicted or deleted before a container existed."""
    status = pod.get("status") or {}
    metadata = pod["metadata"]
    if not metadata.get("deletionTimestamp"):
        return status.get("phase") in ("Failed", "Succeeded")
    # A kubelet that has cleaned up asks for the end without further delay.
    confirmed = metadata.get("deletionGracePeriodSeconds") == 0
    return confirmed or not (pod.get("spec") or {}).get("nodeName")


def _not_started(
    pod: Pod, *, role: str, index: int, started: datetime | None = None
) -> ObservedReplica:
    status = pod.get("status") or {}
    stopped = _was_asked(pod)
    said = str(status.get("message") or status.get("reason") or "")
    message = "stopped before it started" if stopped else f"the node did not take it: {said}"
    if status.get("reason") == "DeadlineExceeded":
        cause, message = ExitCause.OUT_OF_TIME, "its time was over"
    else:
        cause = ExitCause.STOPPED if stopped else ExitCause.NOT_PREPARED
    return ObservedReplica(
        role=role,
        index=index,
        phase=Phase.EXITED,
        cause=cause,
        message=message[:_LONGEST],
        started_at=started,
        ended_at=instant(pod["metadata"].get("deletionTimestamp")),
    )


def _exited(pod: Pod, ended: Mapping[str, Any], *, role: str, index: int) -> ObservedReplica:
    cause, message = _judged(pod, ended)
    return ObservedReplica(
        role=role,
        index=index,
        phase=Phase.EXITED,
        cause=cause,
        message=message[:_LONGEST],
        exit_code=int(ended.get("exitCode", -1)),
        started_at=instant(ended.get("startedAt")),
        ended_at=instant(ended.get("finishedAt")),
    )


def _judged(pod: Pod, ended: Mapping[str, Any]) -> tuple[ExitCause, str]:
    """The first of these that holds."""
    code, reason = int(ended.get("exitCode", -1)), str(ended.get("reason") or "")
    last = _last_line(str(ended.get("message") or ""))
    status = pod.get("status") or {}
    killed = bool(pod["metadata"].get("deletionTimestamp")) and code in (_SIGTERM, _SIGKILL)
    judgements = (
        (status.get("reason") == "DeadlineExceeded", ExitCause.OUT_OF_TIME, "its time was over"),
        (_was_asked(pod) and code != 0, ExitCause.STOPPED, "stopped"),
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
            _with(last, "it could not get the memory that it needs"),
        ),
        (
            code == _EXIT_DISK_FULL or _DISK_FULL in last,
            ExitCause.DISK_FULL,
            _with(last, "the disk is full"),
        ),
        (
            reason in ("StartError", "ContainerCannotRun"),
            ExitCause.NOT_PREPARED,
            _with(last, "the container could not be started"),
        ),
        (killed, ExitCause.STOPPED, "its pod was deleted on the cluster"),
        (True, cause_of_exit(code), _with(last, f"exited with code {code}")),
    )
    return next((cause, words) for holds, cause, words in judgements if holds)


def _was_asked(pod: Pod) -> bool:
    """Whether we asked it to stop; a pod may also be deleted by others."""
    return names.STOP_BY in (pod["metadata"].get("annotations") or {})


def _preparing(pod: Pod, state: Mapping[str, Any]) -> str:
    waiting = state.get("waiting") or {}
    reason, said = str(waiting.get("reason") or ""), str(waiting.get("message") or "")
    if reason in _TROUBLES:
        return f"{_TROUBLES[reason]}: {said}"[:_LONGEST]
    for condition in (pod.get("status") or {}).get("conditions") or ():
        if condition.get("type") == "PodScheduled" and condition.get("status") == "False":
            return f"the cluster does not place it: {condition.get('message', '')}"[:_LONGEST]
    return "the node makes it ready" if (pod.get("spec") or {}).get("nodeName") else "starting"


def _lost(
    role: str, index: int, message: str, *, started: datetime | None = None
) -> ObservedReplica:
    return ObservedReplica(
        role=role,
        index=index,
        phase=Phase.LOST,
        cause=ExitCause.LOST,
        message=message,
        started_at=started,
    )


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _with(last: str, words: str) -> str:
    return f"{words}: {last}" if last else words


def instant(text: object) -> datetime | None:
    """As the API writes instants."""
    return datetime.fromisoformat(str(text)) if text else None
