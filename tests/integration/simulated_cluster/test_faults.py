"""Faults on command, as the port shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.domain.common.topology import format_card_groups, network_domains
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.ports.adapter_registry import all_chips
from controlplane.ports.clusters import (
    NODE_UNREACHABLE,
    ClusterError,
    ExitCause,
    LaunchRefused,
    ReplicaPhase,
)
from tests.integration.simulated_cluster.conftest import FLEET, World, seen, training


def test_nodes_come_with_rings_places_and_memory(world: World) -> None:
    a3, first, second = world.cluster().inventory()
    assert [a3.name, first.name, second.name] == ["a3", "h800-1", "h800-2"]
    assert format_card_groups(first.rings) == "0.1.2.3.4.5.6.7"
    assert network_domains(first.labels or {}) == {"leaf": "h800-leaf"}
    assert first.cards[0].memory == all_chips()["nvidia-h800"].memory
    assert len({card.serial for node in (a3, first, second) for card in node.cards}) == 32


def test_a_dead_card_is_not_healthy_and_its_gang_fails(world: World) -> None:
    cluster = world.cluster()
    cluster.launch(training(nodes=("h800-1", "h800-2")))
    world.clock.pass_(minutes=5)
    cluster.faults.kill_card("h800-2", 1, message="ECC")
    node = cluster.inventory()[2]
    assert [card.index for card in node.cards if not card.healthy] == [1]
    beside, is_affected = seen(cluster)
    assert (is_affected.cause, is_affected.message) == (
        ExitCause.FAILED,
        "card 1 of h800-2 failed: ECC",
    )
    assert beside.cause is ExitCause.STOPPED
    assert beside.message.startswith("stopped, because trainer-1 failed")


def test_a_mended_card_is_healthy_and_what_failed_stays_so(world: World) -> None:
    cluster = world.cluster()
    cluster.launch(training())
    cluster.faults.kill_card("h800-1", 0)
    world.clock.pass_(minutes=1)
    assert cluster.faults.recover("h800-1", 0) == 1
    assert all(card.healthy for card in cluster.inventory()[1].cards)
    assert seen(cluster)[0].cause is ExitCause.FAILED
    cluster.launch(training("attempt-2"))
    assert seen(cluster, "attempt-2")[0].phase is ReplicaPhase.RUNNING


def test_a_silent_node_is_not_ready_and_is_given_up(world: World) -> None:
    cluster = world.cluster()
    cluster.launch(training())
    cluster.faults.make_unreachable("h800-1")
    assert [node.ready for node in cluster.inventory()] == [True, False, True]
    world.clock.pass_(minutes=4)
    assert seen(cluster)[0].message == "h800-1 is unreachable"
    world.clock.pass_(minutes=2)
    assert (seen(cluster)[0].phase, seen(cluster)[0].cause) == (ReplicaPhase.LOST, ExitCause.LOST)


def test_a_node_recovers_with_all_of_its_cards(world: World) -> None:
    cluster = world.cluster()
    cluster.faults.make_unreachable("h800-1")
    cluster.faults.kill_card("h800-1", 3)
    cluster.faults.kill_card("h800-2", 3)
    assert cluster.faults.recover("h800-1") == 2
    assert [fault.location for fault in cluster.faults.present()] == ["card 3 of h800-2"]


def test_breaking_what_is_broken_changes_nothing(world: World) -> None:
    cluster = world.cluster()
    cluster.faults.kill_card("h800-1", 3)
    cluster.faults.kill_card("h800-1", 3, message="again")
    assert len(cluster.faults.present()) == 1


def test_what_is_not_there_cannot_break(world: World) -> None:
    cluster = world.cluster()
    with pytest.raises(
        ClusterError,
        match="node 'h800-9' does not exist; the cluster has 3 nodes",
    ):
        cluster.faults.make_unreachable("h800-9")
    with pytest.raises(ClusterError, match=r"cards of node 'h800-1' are 0 to 7, got 8"):
        cluster.faults.kill_card("h800-1", 8)
    with pytest.raises(ClusterError, match=r"slowdown factor of a card must be above 1, got 0\.5"):
        cluster.faults.slow_card("h800-1", 0, slowness=0.5)


def test_a_launch_on_an_unknown_node_is_told_the_nearest_ones(world: World) -> None:
    with pytest.raises(
        LaunchRefused,
        match="does not exist; the cluster has 3 nodes, for example h800-1",
    ):
        world.cluster().launch(training(nodes=("h801-1",)))


def test_what_makes_no_fleet_makes_no_cluster(tmp_path: Path) -> None:
    with pytest.raises(ClusterError, match="at least one group"):
        SimulatedCluster(tmp_path, fleet={})
    with pytest.raises(ClusterError, match="above 0, got 0"):
        SimulatedCluster(tmp_path, fleet=FLEET, speed=0)


def test_of_what_is_broken_the_cluster_itself_tells_of_silence_alone(world: World) -> None:
    cluster = world.cluster()
    cluster.faults.kill_card("h800-2", 1)
    cluster.faults.make_unreachable("h800-1", message="no heartbeat")
    [sign] = cluster.diagnose().signals
    assert (sign.node, sign.index, sign.code) == ("h800-1", None, NODE_UNREACHABLE)
    assert (sign.origin, sign.level) == (SignalOrigin.SILENCE, FaultLevel.ISOLATE)
    cluster.faults.recover("h800-1")
    assert cluster.diagnose().signals == ()
