"""What a Job and its PodGroup say becomes what our replicas do, with reasons in words and numbers."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import object_names as marking
from controlplane.adapters.clusters.kubernetes.launch_plans import RECORD
from controlplane.adapters.clusters.kubernetes.launch_status import found_launch
from controlplane.adapters.clusters.volcano import object_names
from controlplane.adapters.clusters.volcano.launch_status import (
    VolcanoObjects,
    pending_reason,
    with_replica_index,
    with_volcano_status,
)
from controlplane.ports.clusters import ExitCause, ObservedReplica, ReplicaPhase
from tests.unit.adapters.volcano.trees import NPU

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SINCE = "2026-01-01T00:00:00Z"
RECORDED = {
    "labels": {},
    "roles": {"main": 2},
    "ports": {},
    "probed": [],
    "checkpoints": "a",
    "grace": 30,
}


def record(*, stopped: bool = False) -> dict[str, Any]:
    said = {marking.LAUNCHED: SINCE} | (
        {marking.STOP_BY: "2026-01-01T00:01:00+00:00"} if stopped else {}
    )
    return {
        "metadata": {"name": "a", "namespace": "ns", "annotations": said},
        "data": {RECORD: json.dumps(RECORDED)},
    }


def pod(
    index: int, *, state: dict[str, Any] | None = None, node: str = "n1", **metadata: Any
) -> dict[str, Any]:
    """As Volcano makes it: it says the place in its own words."""
    statuses = [{"name": "main", "state": state, "ready": True}] if state else []
    return {
        "metadata": {
            "name": f"a-main-{index}",
            "namespace": "ns",
            "labels": {
                marking.ROLE: "main",
                marking.LAUNCH: "a",
                object_names.TASK_INDEX: str(index),
            },
            "annotations": {},
            **metadata,
        },
        "spec": {"nodeName": node} if node else {},
        "status": {"phase": "Running" if state else "Pending", "containerStatuses": statuses},
    }


def job(phase: str, **state: str) -> dict[str, Any]:
    return {"status": {"state": {"phase": phase, "lastTransitionTime": SINCE, **state}}}


def group(phase: str, *, reason: str = "", message: str = "", **wanted: str) -> dict[str, Any]:
    condition = {"type": "Unschedulable", "status": "True", "reason": reason, "message": message}
    return {
        "spec": {"queue": "nf-1-q", "minResources": {NPU: "16", **wanted}},
        "status": {"phase": phase, "conditions": [condition] if reason else []},
    }


def queue(*, allocated: str = "0", state: str = "Open") -> dict[str, Any]:
    return {
        "metadata": {"name": "nf-1-q", "annotations": {object_names.TITLE: "research › vision"}},
        "spec": {"capability": {NPU: "32"}},
        "status": {"state": state, "allocated": {NPU: allocated}},
    }


def seen(
    objects: VolcanoObjects, *pods: dict[str, Any], stopped: bool = False
) -> tuple[ObservedReplica, ...]:
    found = found_launch(
        "a",
        [with_replica_index(pod) for pod in pods],
        record=record(stopped=stopped),
        unavailable_nodes=frozenset(),
        at=NOW,
    )
    return with_volcano_status(found, objects).launch.replicas


RUNS = {"running": {"startedAt": SINCE}}
FAILED = {"terminated": {"exitCode": 3, "finishedAt": SINCE}}
DONE = {"terminated": {"exitCode": 0, "finishedAt": SINCE}}
LATER = "2026-01-01T00:00:30Z"
EVICTED = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
KILLED = {"terminated": {"exitCode": 143, "finishedAt": SINCE}}


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        (VolcanoObjects(job=job("Pending")), "waiting for Volcano to create the PodGroup"),
        (
            VolcanoObjects(job=job("Pending"), group=group("Pending"), queue=queue(allocated="24")),
            "queue research › vision is full: 24 of at most 32 huawei.com/Ascend910 are "
            "allocated, and this workload requires 16",
        ),
        (
            VolcanoObjects(job=job("Pending"), group=group("Pending"), queue=queue(state="Closed")),
            "queue research › vision is Closed: its workloads are not started",
        ),
        (
            VolcanoObjects(job=job("Pending"), group=group("Pending"), queue=queue()),
            "pending in queue research › vision",
        ),
        (
            VolcanoObjects(
                job=job("Pending"),
                group=group(
                    "Inqueue",
                    reason="NotEnoughResources",
                    message="2/2 tasks in gang unschedulable",
                ),
                queue=queue(),
            ),
            "admitted by queue research › vision, waiting for nodes: "
            "no nodes have free capacity for all pods at once: "
            "2/2 tasks in gang unschedulable",
        ),
        (
            VolcanoObjects(
                group=group("Inqueue", reason="NotEnoughPodsOfTask", message="main 1/2")
            ),
            "admitted by queue nf-1-q, waiting for nodes: "
            "not all pods of one role have been created yet: main 1/2",
        ),
    ],
)
def test_what_waits_says_why(objects: VolcanoObjects, message: str) -> None:
    assert pending_reason(objects) == message


def test_a_job_without_pods_is_being_prepared_for_that_reason() -> None:
    objects = VolcanoObjects(
        job=job("Pending"), group=group("Pending"), queue=queue(allocated="24")
    )
    for replica in seen(objects):
        assert replica.phase is ReplicaPhase.PREPARING
        assert replica.cause is None
        assert "24 of at most 32" in replica.message


def test_a_pod_that_no_node_has_waits_for_the_reason_of_its_gang() -> None:
    objects = VolcanoObjects(job=job("Pending"), group=group("Inqueue"), queue=queue())
    (first, _second) = seen(objects, pod(0, node=""), pod(1, node=""))
    assert first.message == "admitted by queue research › vision, waiting for nodes"


def test_running_pods_speak_for_themselves() -> None:
    replicas = seen(VolcanoObjects(job=job("Running")), pod(0, state=RUNS), pod(1, state=RUNS))
    assert [replica.phase for replica in replicas] == [ReplicaPhase.RUNNING, ReplicaPhase.RUNNING]


@pytest.mark.parametrize(
    ("phase", "stopped", "cause", "message"),
    [
        (
            "Aborted",
            False,
            ExitCause.STOPPED,
            "stopped because a pod of the gang was evicted or deleted on the cluster",
        ),
        ("Aborting", False, ExitCause.STOPPED, "stopped because a pod of the gang"),
        ("Aborted", True, ExitCause.STOPPED, "stopped"),
        ("Running", True, ExitCause.STOPPED, "stopped"),
        ("Terminated", False, ExitCause.STOPPED, "another replica failed"),
        ("Completed", False, ExitCause.FINISHED, "finished"),
        ("Failed", False, ExitCause.FAILED, "the Volcano Job failed: evicted"),
    ],
)
def test_what_became_of_a_replica_without_a_pod(
    phase: str, stopped: bool, cause: ExitCause, message: str
) -> None:
    for replica in seen(VolcanoObjects(job=job(phase, message="evicted")), stopped=stopped):
        assert (replica.phase, replica.cause) == (ReplicaPhase.EXITED, cause)
        assert message in replica.message
        assert replica.ended_at == NOW


def test_a_gang_whose_cards_are_taken_ends_with_its_last_process_and_says_who_took_them() -> None:
    leaving = pod(0, state=RUNS, deletionTimestamp=LATER)
    leaving["status"]["conditions"] = [EVICTED]
    ends, preparing = seen(VolcanoObjects(job=job("Running")), leaving)
    assert (ends.phase, ends.message) == (
        ReplicaPhase.RUNNING,
        "evicting (preempted or reclaimed by Volcano)",
    )
    assert preparing.phase is ReplicaPhase.PREPARING
    killed = pod(0, state=KILLED, deletionTimestamp=LATER)
    said = VolcanoObjects(job=job("Aborted"), evicted="Pod is evicted, because of reclaim")
    for replica in seen(said, killed):
        assert replica.cause is ExitCause.STOPPED
        assert (
            replica.message
            == "preempted or reclaimed by Volcano: Pod is evicted, because of reclaim"
        )


def test_a_replica_that_finished_before_its_gang_was_broken_has_finished() -> None:
    done, other = seen(VolcanoObjects(job=job("Aborted")), pod(0, state=DONE))
    assert done.cause is ExitCause.FINISHED
    assert other.message.startswith("stopped because a pod of the gang")


def test_the_replica_that_failed_keeps_its_exit_code_and_the_others_say_that_it_was_not_them() -> (
    None
):
    failed, other = seen(VolcanoObjects(job=job("Terminated")), pod(0, state=FAILED))
    assert (failed.cause, failed.exit_code) == (ExitCause.FAILED, 3)
    assert other.cause is ExitCause.STOPPED


def test_a_job_that_somebody_deleted_is_lost() -> None:
    for replica in seen(VolcanoObjects()):
        assert replica.phase is ReplicaPhase.LOST
        assert replica.message == "the Volcano Job was deleted from the cluster"
