"""One silent node is its own matter; many at once are ours."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.snapshots import DecisionPolicy, HealthAction
from tests.unit.health.snapshots import (
    ago,
    decided,
    fault,
    fleet,
    health_snapshot,
    node,
    only,
    silence,
    withheld,
)


def test_a_silent_node_is_isolated_once_it_has_been_silent_for_long_enough() -> None:
    early = health_snapshot(fleet(40), silence("n0", began_at=ago(seconds=14)))
    late = health_snapshot(fleet(40), silence("n0", began_at=ago(seconds=15)))
    assert decided(early) == ()
    found = only(decided(late))
    assert (found.action, found.card, found.held_back) == (HealthAction.ISOLATE_NODE, "", "")
    assert found.reason == "no heartbeat of the node for 15 seconds"


def test_silence_counts_from_the_last_word_of_the_node() -> None:
    nodes = {**fleet(40), "n0": node("n0", seen_at=ago(seconds=5))}
    assert decided(health_snapshot(nodes, silence("n0", began_at=ago(seconds=60)))) == ()


def test_a_cluster_that_is_silent_together_loses_nothing_and_says_so_once() -> None:
    faults = [silence(f"n{n}", began_at=ago(seconds=60 + n)) for n in range(300)]
    found = only(decided(health_snapshot(fleet(1000), *faults)))
    assert found.held_back == (
        "300 of 1000 nodes of the cluster are stale at the same time; from 30 "
        "% on this counts as a monitoring failure, so no node is isolated for "
        "staleness there"
    )
    assert found.fault == faults[-1].uid


def test_a_stall_that_goes_on_for_hours_still_isolates_nothing() -> None:
    faults = [silence(f"n{n}", began_at=ago(hours=5)) for n in range(400)]
    assert only(decided(health_snapshot(fleet(1000), *faults))).held_back


def test_a_stall_of_one_cluster_does_not_hide_the_silent_node_of_another() -> None:
    west = fleet(4)
    east = {f"e{n}": node(f"e{n}", cluster="east", pool="h100 of east") for n in range(10)}
    faults = [silence(f"n{n}", began_at=ago(minutes=1)) for n in range(4)]
    found = decided(
        health_snapshot({**west, **east}, *faults, silence("e1", began_at=ago(minutes=1)))
    )
    assert [(each.node, bool(each.held_back)) for each in found] == [("e1", False), ("n0", True)]


def test_a_stall_does_not_hide_what_a_card_itself_says() -> None:
    faults = [silence(f"n{n}", began_at=ago(minutes=1)) for n in range(20)]
    found = decided(health_snapshot(fleet(40), *faults, fault("n30-1")))
    assert [each.node for each in found if not each.held_back] == ["n30"]


@pytest.mark.parametrize(("nodes", "stale", "held"), [(1, 1, True), (2, 1, False), (2, 2, True)])
def test_in_the_smallest_clusters_one_of_two_is_isolated_and_all_of_it_is_a_stall(
    nodes: int, stale: int, held: bool
) -> None:
    faults = [silence(f"n{n}", began_at=ago(minutes=1)) for n in range(stale)]
    assert bool(only(decided(health_snapshot(fleet(nodes), *faults))).held_back) is held


def test_nodes_that_have_been_out_for_long_do_not_turn_the_next_one_into_a_stall() -> None:
    old = [silence(f"n{n}", began_at=ago(days=3)) for n in range(4)]
    nodes = fleet(10)
    out = {uid: withheld(nodes[uid], CardState.ISOLATED) for uid in ("n0", "n1", "n2", "n3")}
    seen = health_snapshot({**nodes, **out}, *old, silence("n7", began_at=ago(minutes=1)))
    seen = replace(seen, decided={each.uid: HealthAction.ISOLATE_NODE for each in old})
    policy = DecisionPolicy(pool_share=1000)
    assert not only(decided(seen, policy)).held_back


def test_a_node_that_came_back_from_silence_often_is_not_flapping() -> None:
    faults = [
        replace(silence("n0", began_at=ago(hours=n)), ended_at=ago(hours=n - 0.5))
        for n in range(1, 6)
    ]
    assert decided(health_snapshot(fleet(40), *faults)) == ()
