"""Nodes are worked on batch by batch; after one failure no further node begins."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.health.maintenance_rollouts import (
    NODE,
    UNDER_WAY,
    MaintenancePlan,
    NodeEvent,
    NodeObservation,
    NodeState,
    RolloutEvent,
    RolloutNodeState,
    RolloutState,
    next_maintenance_nodes,
    next_node_event,
    rollout_end_event,
)
from tests.properties import examples

ALL = MaintenancePlan(command=True, burn_in=True, parallel=2)


def members(*states: tuple[str, NodeState]) -> list[RolloutNodeState]:
    return [
        RolloutNodeState(key=key, domain=domain, state=state)
        for key, (domain, state) in enumerate(states)
    ]


@pytest.mark.parametrize(
    ("state", "seen", "plan", "event"),
    [
        (NodeState.DRAINING, NodeObservation(), ALL, None),
        (NodeState.DRAINING, NodeObservation(empty=True), ALL, NodeEvent.WORK),
        (
            NodeState.DRAINING,
            NodeObservation(empty=True),
            replace(ALL, command=False),
            NodeEvent.TEST,
        ),
        (
            NodeState.DRAINING,
            NodeObservation(empty=True),
            MaintenancePlan(command=False, burn_in=False, parallel=1),
            NodeEvent.FINISH,
        ),
        (NodeState.WORKING, NodeObservation(empty=True), ALL, None),
        (NodeState.WORKING, NodeObservation(worked=True), ALL, NodeEvent.TEST),
        (
            NodeState.WORKING,
            NodeObservation(worked=True),
            replace(ALL, burn_in=False),
            NodeEvent.FINISH,
        ),
        (NodeState.WORKING, NodeObservation(worked=False), ALL, NodeEvent.FAIL),
        (NodeState.TESTING, NodeObservation(worked=True), ALL, None),
        (NodeState.TESTING, NodeObservation(proved=True), ALL, NodeEvent.FINISH),
        (NodeState.TESTING, NodeObservation(proved=False), ALL, NodeEvent.FAIL),
        (NodeState.TESTING, NodeObservation(returned=True), ALL, NodeEvent.FINISH),
        (NodeState.WAITING, NodeObservation(empty=True), ALL, None),
        (NodeState.DONE, NodeObservation(returned=True), ALL, None),
    ],
)
def test_a_node_goes_on_by_what_is_seen(
    state: NodeState, seen: NodeObservation, plan: MaintenancePlan, event: NodeEvent | None
) -> None:
    assert next_node_event(state, seen, plan=plan) is event


def test_one_domain_after_the_other_a_few_nodes_at_a_time() -> None:
    wait, drain, done = NodeState.WAITING, NodeState.DRAINING, NodeState.DONE
    run = RolloutState.RUNNING
    fresh = members(("a", wait), ("a", wait), ("a", wait), ("b", wait))
    assert next_maintenance_nodes(fresh, state=run, parallel=2) == (0, 1)
    begun = members(("a", done), ("a", drain), ("a", wait), ("b", wait))
    assert next_maintenance_nodes(begun, state=run, parallel=2) == (2,)
    last = members(("a", done), ("a", drain), ("a", done), ("b", wait))
    assert next_maintenance_nodes(last, state=run, parallel=2) == ()
    after = members(("a", done), ("a", done), ("a", done), ("b", wait))
    assert next_maintenance_nodes(after, state=run, parallel=2) == (3,)
    assert next_maintenance_nodes(after, state=RolloutState.PAUSED, parallel=2) == ()
    broken = members(("a", NodeState.FAILED), ("a", wait))
    assert next_maintenance_nodes(broken, state=run, parallel=2) == ()
    assert rollout_end_event(broken) is RolloutEvent.FAIL
    assert rollout_end_event(after) is None
    assert rollout_end_event(members(("a", done), ("b", done))) is RolloutEvent.FINISH


@settings(max_examples=examples(200))
@given(
    domains=st.lists(st.sampled_from("abc"), min_size=1, max_size=8),
    parallel=st.integers(1, 3),
    chances=st.lists(st.integers(0, 9), min_size=80, max_size=80),
)
def test_whatever_happens_no_more_nodes_are_out_than_allowed_and_failure_stops_the_rest(
    domains: list[str], parallel: int, chances: list[int]
) -> None:
    rows = members(*((domain, NodeState.WAITING) for domain in sorted(domains)))
    plan = MaintenancePlan(command=True, burn_in=True, parallel=parallel)
    failed_at: set[int] | None = None
    for turn in range(40):
        chance = chances[turn]
        for key in next_maintenance_nodes(rows, state=RolloutState.RUNNING, parallel=parallel):
            assert failed_at is None
            rows[key] = replace(rows[key], state=NODE.after(rows[key].state, NodeEvent.BEGIN))
        under_way = [row for row in rows if row.state in UNDER_WAY]
        assert len(under_way) <= parallel
        assert len({row.domain for row in under_way}) <= 1
        for row in under_way:
            seen = NodeObservation(empty=True, worked=chance != 0, proved=chance != 1)
            event = next_node_event(row.state, seen, plan=plan)
            assert event is not None
            rows[row.key] = replace(row, state=NODE.after(row.state, event))
        if any(row.state is NodeState.FAILED for row in rows):
            failed_at = failed_at or {row.key for row in rows if row.state is NodeState.WAITING}
    end = rollout_end_event(rows)
    assert end is (RolloutEvent.FINISH if failed_at is None else RolloutEvent.FAIL)
    assert all(rows[key].state is NodeState.WAITING for key in failed_at or ())
