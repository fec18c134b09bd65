"""What the fakes do beyond the ports: their controls."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.adapters.fakes.in_memory import MemoryArtifacts
from controlplane.ports.artifacts import StorageFull
from controlplane.ports.clusters import ClusterUnavailable, ExitCause, ReplicaPhase
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole, ReadinessProbe

ROLE = LaunchRole(
    name="server",
    argv=("serve",),
    placements=(LaunchPlacement(node="fake-1", cards=(0,)),),
    ports=("http",),
    probe=ReadinessProbe(port="http", path="/"),
)
LAUNCH = Launch(name="job", roles=(ROLE,))


def phase(cluster: FakeCluster) -> ReplicaPhase:
    return cluster.observe(["job"])["job"].replicas[0].phase


def test_a_launch_waits_until_it_is_run_and_becomes_ready_when_told() -> None:
    cluster = FakeCluster()
    cluster.launch(LAUNCH)
    cluster.prepare("job", "installing 3 of 9 packages")
    assert cluster.observe(["job"])["job"].replicas[0].message == "installing 3 of 9 packages"
    assert phase(cluster) is ReplicaPhase.PREPARING
    cluster.run("job", ready=False)
    assert phase(cluster) is ReplicaPhase.STARTING
    cluster.run("job")
    assert phase(cluster) is ReplicaPhase.RUNNING
    assert cluster.launched("job") is LAUNCH


def test_without_contact_every_call_fails_and_processes_go_on() -> None:
    cluster = FakeCluster()
    cluster.launch(LAUNCH)
    cluster.lose_contact()
    with pytest.raises(ClusterUnavailable):
        cluster.inventory()
    with pytest.raises(ClusterUnavailable):
        cluster.observe(["job"])
    cluster.run("job")
    cluster.regain_contact()
    assert phase(cluster) is ReplicaPhase.RUNNING


def test_a_lost_launch_has_ended_and_stays_as_it_is() -> None:
    cluster = FakeCluster()
    cluster.launch(LAUNCH)
    cluster.run("job")
    cluster.lose("job")
    cluster.finish("job", exit_code=0)
    (replica,) = cluster.observe(["job"])["job"].replicas
    assert (replica.phase, replica.cause) == (ReplicaPhase.LOST, ExitCause.LOST)


def test_a_cause_can_be_given_with_the_exit() -> None:
    cluster = FakeCluster()
    cluster.launch(LAUNCH)
    cluster.run("job")
    cluster.finish("job", exit_code=137, cause=ExitCause.OUT_OF_MEMORY, message="too much")
    (replica,) = cluster.observe(["job"])["job"].replicas
    assert (replica.cause, replica.message) == (ExitCause.OUT_OF_MEMORY, "too much")


def test_what_disobeys_a_stop_is_killed_when_the_clock_says_so() -> None:
    at = datetime(2026, 1, 1, tzinfo=UTC)
    cluster = FakeCluster(obedient=False, clock=lambda: at)
    cluster.launch(LAUNCH)
    cluster.run("job")
    cluster.stop("job", grace=timedelta(seconds=30))
    at += timedelta(seconds=29)
    assert phase(cluster) is ReplicaPhase.RUNNING
    at += timedelta(seconds=1)
    assert phase(cluster) is ReplicaPhase.EXITED


def test_memory_artifacts_can_be_full() -> None:
    store = MemoryArtifacts(capacity=10)
    store.put([b"12345"])
    with pytest.raises(StorageFull):
        store.put([b"123456"])
    assert store.put([b"12345"]).size == 5
