"""What a pod says of a replica: each state that a kubelet reports, and each silence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.launch_status import (
    found_launch,
    is_fenced,
    pod_needs_node_check,
)
from controlplane.ports.clusters import ExitCause, ObservedReplica, ReplicaPhase

AT = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
RECORD = {
    "labels": {"team": "maps"},
    "roles": {"main": 1},
    "ports": {},
    "probed": [],
    "checkpoints": "work",
}


def written(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(
    state: Mapping[str, Any] | None = None,
    *,
    phase: str = "Running",
    status: Mapping[str, Any] | None = None,
    metadata: Mapping[str, Any] | None = None,
    node: str = "n1",
    requested: bool = False,
    record: Mapping[str, Any] = RECORD,
    probes: Mapping[str, Any] | None = None,
    **container: Any,
) -> dict[str, Any]:
    annotations = {object_names.RECORD: json.dumps(record)}
    if requested:
        annotations[object_names.STOP_BY] = AT.isoformat()
    return {
        "metadata": {
            "namespace": "ninefold-maps",
            "name": "work-main-0",
            "labels": {object_names.ROLE: "main", object_names.INDEX: "0"},
            "annotations": annotations,
            **(metadata or {}),
        },
        "spec": {
            "nodeName": node,
            "terminationGracePeriodSeconds": 30,
            "activeDeadlineSeconds": 60,
            "containers": [{"name": "main", **(probes or {})}],
        },
        "status": {
            "phase": phase,
            "startTime": written(AT - timedelta(minutes=10)),
            "containerStatuses": []
            if state is None
            else [{"name": "main", "state": state, **container}],
            **(status or {}),
        },
    }


def seen(one: dict[str, Any] | None, **options: Any) -> ObservedReplica:
    values = {"record": None, "unavailable_nodes": frozenset(), "at": AT, **options}
    (replica,) = found_launch("work", [] if one is None else [one], **values).launch.replicas
    return replica


def ended(code: int, *, reason: str = "Error", message: str = "") -> dict[str, Any]:
    times = {"startedAt": "2026-11-21T11:50:00Z", "finishedAt": "2026-11-21T11:59:00Z"}
    return {"terminated": {"exitCode": code, "reason": reason, "message": message, **times}}


#: After three minutes without an answer.
LIVENESS = {"livenessProbe": {"periodSeconds": 30, "failureThreshold": 6}}


def unready_since(time: str) -> dict[str, Any]:
    """Of a pod with probes, which was started at 11:50 and ended at 11:59."""
    condition = {
        "type": "Ready",
        "status": "False",
        "lastTransitionTime": f"2026-11-21T{time}Z",
    }
    return {"probes": LIVENESS, "status": {"conditions": [condition]}}


DELETED = {"deletionTimestamp": written(AT)}
CONFIRMED = {**DELETED, "deletionGracePeriodSeconds": 0}
RUNNING = {"running": {"startedAt": "2026-11-21T11:50:00Z"}}
LATE = {"reason": "DeadlineExceeded"}

TERMINATIONS: dict[str, tuple[dict[str, Any], ExitCause, str]] = {
    "well": (pod(ended(0, reason="Completed"), phase="Succeeded"), ExitCause.FINISHED, "finished"),
    "badly": (
        pod(ended(3, message="Traceback\nValueError: no rows\n"), phase="Failed"),
        ExitCause.FAILED,
        "exited with code 3: ValueError: no rows",
    ),
    "stop requested": (
        pod(ended(143), requested=True, metadata=DELETED),
        ExitCause.STOPPED,
        "stopped",
    ),
    "asked, but done": (pod(ended(0), requested=True), ExitCause.FINISHED, "finished"),
    "deleted by others": (
        pod(ended(137), metadata=DELETED),
        ExitCause.STOPPED,
        "the pod was deleted from the cluster",
    ),
    "too much memory": (
        pod(ended(137, reason="OOMKilled")),
        ExitCause.OUT_OF_MEMORY,
        "OOMKilled: the memory limit of the container was exceeded",
    ),
    "no memory of a card": (
        pod(ended(12, message="CUDA out of memory")),
        ExitCause.OUT_OF_MEMORY,
        "the program failed to allocate memory: CUDA out of memory",
    ),
    "a full disk": (
        pod(ended(1, message="OSError: [Errno 28] No space left on device")),
        ExitCause.DISK_FULL,
        "the disk is full: OSError: [Errno 28] No space left on device",
    ),
    "a full quota of the disk": (
        pod(ended(1, message="OSError: [Errno 122] Disk quota exceeded")),
        ExitCause.DISK_FULL,
        "the disk is full: OSError: [Errno 122] Disk quota exceeded",
    ),
    "killed by somebody else": (
        pod(ended(137, message="step 12")),
        ExitCause.KILLED,
        "exited with code 137: step 12",
    ),
    "killed for its liveness probe": (
        pod(ended(137), **unready_since("11:57:30")),
        ExitCause.FAILED,
        "the engine did not answer its health check for 180 s",
    ),
    "killed for its liveness probe, and stopped in order": (
        pod(ended(0, message="shutting down"), **unready_since("11:56:30")),
        ExitCause.FAILED,
        "the engine did not answer its health check for 180 s: shutting down",
    ),
    "killed while it was busy": (
        pod(ended(137), **unready_since("11:57:31")),
        ExitCause.KILLED,
        "exited with code 137",
    ),
    "killed before it was ready": (
        pod(ended(137), **unready_since("11:49:00")),
        ExitCause.KILLED,
        "exited with code 137",
    ),
    "crashed after it was not ready": (
        pod(ended(134), **unready_since("11:56:30")),
        ExitCause.FAILED,
        "exited with code 134",
    ),
    "out of memory after it was not ready": (
        pod(ended(137, reason="OOMKilled"), **unready_since("11:56:30")),
        ExitCause.OUT_OF_MEMORY,
        "OOMKilled: the memory limit of the container was exceeded",
    ),
    "stopped after it was not ready": (
        pod(ended(137), requested=True, **unready_since("11:56:30")),
        ExitCause.STOPPED,
        "stopped",
    ),
    "crashed in native code": (pod(ended(139)), ExitCause.FAILED, "exited with code 139"),
    "too late": (
        pod(ended(137), status=LATE),
        ExitCause.OUT_OF_TIME,
        "the job exceeded its time limit",
    ),
    "too late, on a kubelet that never says": (
        pod(RUNNING, status=LATE),
        ExitCause.OUT_OF_TIME,
        "the job exceeded its time limit",
    ),
    "evicted": (
        pod(ended(137), status={"reason": "Evicted", "message": "low on memory"}),
        ExitCause.STOPPED,
        "the node evicted the pod: low on memory",
    ),
    "no such command": (
        pod(ended(128, reason="StartError", message="exec: not found")),
        ExitCause.NOT_PREPARED,
        "the container cannot be started: exec: not found",
    ),
    "refused by its node": (
        pod(
            phase="Failed", status={"reason": "OutOfcpu", "message": "Node didn't have enough cpu"}
        ),
        ExitCause.NOT_PREPARED,
        "the node rejected the pod: Node didn't have enough cpu",
    ),
    "stopped while it waited": (
        pod(phase="Pending", node="", metadata=DELETED, requested=True),
        ExitCause.STOPPED,
        "stopped before the workload started",
    ),
    "stopped while its image came": (
        pod({"waiting": {}}, phase="Pending", metadata=CONFIRMED, requested=True),
        ExitCause.STOPPED,
        "stopped before the workload started",
    ),
}


@pytest.mark.parametrize(
    ("one", "cause", "message"), TERMINATIONS.values(), ids=TERMINATIONS.keys()
)
def test_an_end_is_judged_by_what_the_node_reports(
    one: dict[str, Any], cause: ExitCause, message: str
) -> None:
    replica = seen(one)
    assert (replica.phase, replica.cause, replica.message) == (ReplicaPhase.EXITED, cause, message)


def waiting(reason: str, message: str = "") -> dict[str, Any]:
    return pod({"waiting": {"reason": reason, "message": message}}, phase="Pending")


UNPLACED = {
    "conditions": [
        {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    ]
}
GOING_ON: dict[str, tuple[dict[str, Any], ReplicaPhase, str]] = {
    "runs": (pod(RUNNING, ready=True), ReplicaPhase.RUNNING, "running"),
    "runs while it is asked to stop": (
        pod(RUNNING, metadata=DELETED, requested=True),
        ReplicaPhase.RUNNING,
        "stop requested",
    ),
    "answers, and is deleted from the cluster": (
        pod(RUNNING, ready=True, metadata=DELETED, record={**RECORD, "probed": ["main"]}),
        ReplicaPhase.STARTING,
        "stop requested",
    ),
    "does not answer yet": (
        pod(RUNNING, ready=False, record={**RECORD, "probed": ["main"]}),
        ReplicaPhase.STARTING,
        "waiting for the first successful probe",
    ),
    "does not answer any more": (
        pod(
            RUNNING,
            ready=False,
            started=True,
            record={**RECORD, "probed": ["main"]},
            **unready_since("11:55:00"),
        ),
        ReplicaPhase.STARTING,
        "the engine does not answer its health check",
    ),
    "was started, and answers no readiness probe yet": (
        pod(
            RUNNING,
            ready=False,
            started=True,
            record={**RECORD, "probed": ["main"]},
            **unready_since("11:49:00"),
        ),
        ReplicaPhase.STARTING,
        "waiting for the first successful probe",
    ),
    "past its time, but saving": (
        pod(RUNNING, status={**LATE, "startTime": written(AT - timedelta(seconds=70))}),
        ReplicaPhase.RUNNING,
        "running",
    ),
    "is made ready": (
        pod(phase="Pending"),
        ReplicaPhase.PREPARING,
        "the node is preparing the pod",
    ),
    "is not placed": (
        pod(phase="Pending", node="", status=UNPLACED),
        ReplicaPhase.PREPARING,
        "the cluster cannot schedule the pod: 0/1 nodes are available",
    ),
    "has no image": (
        waiting("ImagePullBackOff", "Back-off pulling image a/b:1"),
        ReplicaPhase.PREPARING,
        "the image cannot be pulled: Back-off pulling image a/b:1",
    ),
    "is deleted, and its node has not said so": (
        pod({"waiting": {}}, phase="Pending", metadata=DELETED),
        ReplicaPhase.PREPARING,
        "the node is preparing the pod",
    ),
}


@pytest.mark.parametrize(("one", "phase", "message"), GOING_ON.values(), ids=GOING_ON.keys())
def test_what_may_still_have_a_process_has_not_ended(
    one: dict[str, Any], phase: ReplicaPhase, message: str
) -> None:
    replica = seen(one)
    assert (replica.phase, replica.message, replica.ended) == (phase, message, False)


def record(**annotations: str) -> dict[str, Any]:
    return {
        "metadata": {"namespace": "ninefold-maps", "annotations": annotations},
        "data": {"launch.json": json.dumps(RECORD)},
    }


def test_a_pod_that_is_missing_was_lost_if_all_had_been_made_and_else_is_still_to_come() -> None:
    lost = seen(None, record=record(**{object_names.LAUNCHED: "x"}))
    assert (lost.phase, lost.cause) == (ReplicaPhase.LOST, ExitCause.LOST)
    assert seen(None, record=record()).phase is ReplicaPhase.PREPARING
    stopped = seen(None, record=record(**{object_names.STOP_BY: AT.isoformat()}))
    assert (stopped.phase, stopped.cause) == (ReplicaPhase.EXITED, ExitCause.STOPPED)


def test_silence_is_no_end_and_a_node_that_is_off_is_one() -> None:
    not_ready = pod(RUNNING, status={"conditions": [{"type": "Ready", "reason": "NodeNotReady"}]})
    assert seen(not_ready).phase is ReplicaPhase.RUNNING
    lost = seen(not_ready, unavailable_nodes=frozenset({"n1"}))
    assert (lost.phase, lost.message) == (
        ReplicaPhase.LOST,
        "node n1 was deleted or is out of service",
    )


def test_a_node_is_asked_about_only_where_there_is_doubt() -> None:
    not_ready = pod(RUNNING, status={"conditions": [{"type": "Ready", "reason": "NodeNotReady"}]})
    late = pod(RUNNING, metadata={"deletionTimestamp": written(AT - timedelta(minutes=1))})
    assert pod_needs_node_check(not_ready, at=AT)
    assert pod_needs_node_check(late, at=AT)
    for sure in (pod(RUNNING), pod(RUNNING, metadata=DELETED), pod(ended(0)), pod(node="")):
        assert not pod_needs_node_check(sure, at=AT)


def test_a_node_is_fenced_if_it_is_gone_or_somebody_says_that_it_is_off() -> None:
    assert is_fenced(None)
    assert is_fenced({"spec": {"taints": [{"key": "node.kubernetes.io/out-of-service"}]}})
    assert not is_fenced({"spec": {"taints": [{"key": "node.kubernetes.io/unreachable"}]}})
    assert not is_fenced({"spec": {}})
