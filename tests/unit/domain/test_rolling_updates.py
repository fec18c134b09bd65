"""Rollouts as a state machine: any order of events keeps the limits of the strategy, and all end complete."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from controlplane.domain.serving.lifecycle import ReplicaState
from controlplane.domain.serving.rollouts import (
    RevisionReplica,
    RolloutActions,
    RolloutLimits,
    RolloutPhase,
    RolloutStrategy,
    plan_rollout,
    rollout_phase,
)
from tests.properties import examples

READY, STARTING = ReplicaState.READY, ReplicaState.STARTING


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        ("1", "0", 4, (1, 0)),
        ("25%", "25%", 10, (3, 2)),
        ("25%", "25%", 1, (1, 0)),
        ("0", "25%", 3, (0, 1)),
        ("0%", "50%", 4, (0, 2)),
        ("100%", "0", 3, (3, 0)),
        ("0", "64", 3, (0, 3)),
    ],
)
def test_surge_is_rounded_up_and_unavailable_down(
    surge: str, unavailable: str, replicas: int, expected: tuple[int, int]
) -> None:
    """As ``ResolveFenceposts`` of Kubernetes; "0" and "25%" of 3 would otherwise replace nothing."""
    limits = RolloutStrategy(max_surge=surge, max_unavailable=unavailable).limits(replicas=replicas)
    assert (limits.max_surge, limits.max_unavailable) == expected


@pytest.mark.parametrize(
    ("surge", "unavailable", "message"),
    [
        ("65", "0", "max_surge: must be a number from 0 to 64 or a percentage"),
        ("101%", "0", "max_surge: must be a number from 0 to 64 or a percentage"),
        ("1", "-1", "max_unavailable: must be a number from 0 to 64 or a percentage"),
        ("1", "1.5", "max_unavailable: must be a number from 0 to 64 or a percentage"),
        ("0", "0%", "max_unavailable: may not be 0 when max_surge is 0"),
    ],
)
def test_an_invalid_strategy_is_refused(surge: str, unavailable: str, message: str) -> None:
    (finding,) = RolloutStrategy(max_surge=surge, max_unavailable=unavailable).findings()
    assert f"{finding.field}: {finding.message}".startswith(message)


def test_the_default_strategy_adds_one_replica_and_then_stops_one() -> None:
    limits = RolloutStrategy().limits(replicas=2)
    old = [RevisionReplica(key=key, revision=1, state=READY) for key in (1, 2)]
    new = RevisionReplica(key=3, revision=2, state=STARTING)

    def plan(*live: RevisionReplica, paused: bool = False) -> RolloutActions:
        return plan_rollout(live, replicas=2, wanted=2, serving=1, limits=limits, paused=paused)

    assert plan(*old) == RolloutActions(create=1)
    assert plan(*old, new) == RolloutActions()
    ready = RevisionReplica(key=3, revision=2, state=READY)
    assert plan(*old, ready) == RolloutActions(superseded=(1,))
    assert plan(*old, ready, paused=True) == RolloutActions()
    assert plan(*old, paused=True) == RolloutActions()


def test_a_replica_that_is_evicted_during_a_pause_is_replaced_by_the_serving_revision() -> None:
    plan = plan_rollout(
        [RevisionReplica(key=2, revision=1, state=READY)],
        replicas=2,
        wanted=2,
        serving=1,
        limits=RolloutStrategy().limits(replicas=2),
        paused=True,
    )
    assert plan == RolloutActions(create_serving=1)


def test_the_phase_of_a_rollout() -> None:
    def phase(**facts: bool) -> RolloutPhase:
        given = {"in_progress": False, "settled": True, "paused": False, "given_up": False}
        return rollout_phase(**{**given, **facts})

    assert phase() is RolloutPhase.COMPLETE
    assert phase(paused=True) is RolloutPhase.COMPLETE, "nothing waits"
    assert phase(in_progress=True, settled=False) is RolloutPhase.PROGRESSING
    assert phase(in_progress=True, settled=False, paused=True) is RolloutPhase.PAUSED
    assert phase(given_up=True) is RolloutPhase.FAILED
    assert phase(given_up=True, in_progress=True, settled=False) is RolloutPhase.PROGRESSING


@dataclass
class Simulated:
    """A replica of the simulated deployment."""

    revision: int
    state: ReplicaState = STARTING


class RolloutMachine(RuleBasedStateMachine):
    """A deployment under a planner that runs after every event, as the reconciler does."""

    @initialize(replicas=st.integers(1, 6), surge=st.integers(0, 3), unavailable=st.integers(0, 3))
    def create(self, replicas: int, surge: int, unavailable: int) -> None:
        self.replicas = replicas
        self.limits = RolloutLimits(
            max_surge=surge, max_unavailable=unavailable if surge or unavailable else 1
        )
        self.wanted = self.serving = self.newest = 1
        self.paused = False
        self.live = {key: Simulated(revision=1, state=READY) for key in range(replicas)}
        self.created = replicas

    def ready(self) -> int:
        return sum(each.state is READY for each in self.live.values())

    def plan(self) -> RolloutActions:
        return plan_rollout(
            [
                RevisionReplica(key=key, revision=each.revision, state=each.state)
                for key, each in self.live.items()
            ],
            replicas=self.replicas,
            wanted=self.wanted,
            serving=self.serving,
            limits=self.limits,
            paused=self.paused,
        )

    @rule()
    def reconcile(self) -> None:
        actions, ready = self.plan(), self.ready()
        in_progress = self.wanted != self.serving
        for revision, count in (
            (self.wanted, actions.create),
            (self.serving, actions.create_serving),
        ):
            for _ in range(count):
                self.live[self.created] = Simulated(revision=revision)
                self.created += 1
        for key in (*actions.surplus, *actions.superseded):
            assert self.live[key].state not in (ReplicaState.DRAINING, ReplicaState.STOPPING)
            state = self.live[key].state
            self.live[key].state = (
                ReplicaState.DRAINING if state is READY else ReplicaState.STOPPING
            )
        if self.paused and in_progress:
            assert not actions.create
            assert not actions.superseded or len(self.live) > self.replicas
        if in_progress and (actions.create or actions.create_serving):
            assert len(self.live) <= self.replicas + self.limits.max_surge
        if actions.superseded:
            least = self.replicas - self.limits.max_unavailable
            assert self.ready() >= min(ready, least), "the plan stopped a replica that is needed"
        current = sum(
            each.state is READY and each.revision == self.wanted for each in self.live.values()
        )
        if current >= self.replicas:
            self.serving = self.wanted

    def one_of(self, data: st.DataObject, *states: ReplicaState) -> int | None:
        keys = [key for key, each in self.live.items() if each.state in states]
        return data.draw(st.sampled_from(keys)) if keys else None

    @rule(data=st.data())
    def become_ready(self, data: st.DataObject) -> None:
        if (key := self.one_of(data, STARTING, ReplicaState.BACKOFF)) is not None:
            self.live[key].state = READY

    @rule(data=st.data())
    def crash(self, data: st.DataObject) -> None:
        if (key := self.one_of(data, STARTING, READY)) is not None:
            self.live[key].state = ReplicaState.BACKOFF

    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        if (key := self.one_of(data, ReplicaState.DRAINING, ReplicaState.STOPPING)) is not None:
            del self.live[key]

    @rule(data=st.data())
    def evict(self, data: st.DataObject) -> None:
        if (key := self.one_of(data, STARTING, READY, ReplicaState.BACKOFF)) is not None:
            self.live[key].state = ReplicaState.STOPPING

    @rule()
    def revise(self) -> None:
        self.newest += 1
        self.wanted = self.newest

    @precondition(lambda self: self.wanted != self.serving and not self.paused)
    @rule()
    def give_up(self) -> None:
        self.wanted = self.serving

    @rule(replicas=st.integers(1, 6))
    def scale(self, replicas: int) -> None:
        self.replicas = replicas

    @precondition(lambda self: not self.paused)
    @rule()
    def pause(self) -> None:
        self.paused = True

    @precondition(lambda self: self.paused)
    @rule()
    def resume(self) -> None:
        self.paused = False

    @invariant()
    def ends_complete_if_every_replica_becomes_ready(self) -> None:
        """From any state, without further events, the rollout ends, if it is not paused."""
        if not hasattr(self, "live") or (self.paused and self.wanted != self.serving):
            return
        saved = {key: Simulated(each.revision, each.state) for key, each in self.live.items()}
        serving, created = self.serving, self.created
        for _ in range(60):
            self.reconcile()
            for key, each in list(self.live.items()):
                if each.state in (ReplicaState.DRAINING, ReplicaState.STOPPING):
                    del self.live[key]
                else:
                    each.state = READY
        states = {(each.revision, each.state) for each in self.live.values()}
        assert (len(self.live), states) == (self.replicas, {(self.wanted, READY)})
        assert self.plan() == RolloutActions()
        self.live, self.serving, self.created = saved, serving, created


TestRollouts = RolloutMachine.TestCase
TestRollouts.settings = settings(max_examples=examples(100), stateful_step_count=30, deadline=None)
