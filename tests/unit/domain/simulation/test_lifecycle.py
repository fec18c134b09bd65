"""What a Launch is doing at an instant."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.simulation.launch_lifecycle import (
    SimulatedFault,
    SimulatedFaultKind,
    SimulatedStage,
    WorkProgress,
    is_replica_affected,
    launch_snapshot,
)
from tests.unit.domain.simulation.launches import RECORD, START, after, record

DEAD = SimulatedFault(
    kind=SimulatedFaultKind.CARD_DEAD, node="n2", card=1, since=after(minutes=20), message="ECC"
)
UNREACHABLE = SimulatedFault(
    kind=SimulatedFaultKind.NODE_UNREACHABLE, node="n1", since=after(minutes=20), message="no power"
)
SLOW = SimulatedFault(
    kind=SimulatedFaultKind.CARD_SLOW, node="n1", card=0, since=after(minutes=32), slowness=3.0
)


@pytest.mark.parametrize(
    ("minutes", "stage"),
    [
        (0, SimulatedStage.PREPARING),
        (0.99, SimulatedStage.PREPARING),
        (1, SimulatedStage.STARTING),
        (2, SimulatedStage.RUNNING),
        (61.99, SimulatedStage.RUNNING),
        (62, SimulatedStage.EXITED),
        (600, SimulatedStage.EXITED),
    ],
)
def test_it_prepares_starts_runs_and_ends(minutes: float, stage: SimulatedStage) -> None:
    assert launch_snapshot(RECORD, (), after(minutes=minutes)).stage is stage


def test_at_sixty_times_the_speed_an_hour_is_a_minute() -> None:
    fast = record(speed=60.0)
    assert launch_snapshot(fast, (), after(seconds=61)).stage is SimulatedStage.RUNNING
    assert launch_snapshot(fast, (), after(seconds=62)).stage is SimulatedStage.EXITED


def test_a_reporting_launch_succeeds_once_its_outputs_are_handed_over() -> None:
    waiting = launch_snapshot(record(reports=True), (), after(hours=3))
    assert (waiting.stage, waiting.finishing) == (SimulatedStage.RUNNING, True)
    snapshot = launch_snapshot(
        record(reports=True, handed_over_at=after(hours=2)), (), after(hours=3)
    )
    assert snapshot.outcome is not None
    assert (snapshot.outcome.cause, snapshot.outcome.at) == ("finished", after(hours=2))


@pytest.mark.parametrize(
    ("code", "cause"), [(1, "failed"), (12, "out_of_memory"), (28, "disk_full")]
)
def test_a_failure_does_not_depend_on_a_report(code: int, cause: str) -> None:
    snapshot = launch_snapshot(record({"exit_code": code}, reports=True), (), after(hours=2))
    assert snapshot.outcome is not None
    assert (snapshot.outcome.cause, snapshot.outcome.exit_code) == (cause, code)


def test_a_stop_ends_it_when_it_has_saved() -> None:
    stopped = record(stop_at=after(minutes=30), kill_at=after(minutes=31))
    assert (
        launch_snapshot(stopped, (), after(minutes=30, seconds=9)).stage is SimulatedStage.RUNNING
    )
    outcome = launch_snapshot(stopped, (), after(minutes=30, seconds=10)).outcome
    assert outcome is not None
    assert (outcome.cause, outcome.exit_code) == ("stopped", 143)


def test_a_launch_that_saves_for_too_long_is_killed() -> None:
    stopped = record({"saves": 90}, stop_at=after(minutes=30), kill_at=after(minutes=31))
    outcome = launch_snapshot(stopped, (), after(hours=1)).outcome
    assert outcome is not None
    assert (outcome.at, outcome.exit_code) == (after(minutes=31), 137)


def test_its_time_limit_ends_it() -> None:
    outcome = launch_snapshot(record(run_within=timedelta(minutes=5)), (), after(hours=1)).outcome
    assert outcome is not None
    assert (outcome.cause, outcome.at) == ("out_of_time", after(minutes=6))


def test_a_dead_card_ends_the_whole_gang() -> None:
    snapshot = launch_snapshot(RECORD, (DEAD,), after(minutes=20))
    assert snapshot.outcome is not None
    assert (snapshot.outcome.cause, snapshot.message) == ("failed", "card 1 of n2 failed: ECC")
    assert [is_replica_affected(location, snapshot.outcome) for location in RECORD.locations] == [
        False,
        True,
    ]


def test_a_failed_card_of_another_launch_has_no_effect() -> None:
    beside = SimulatedFault(
        kind=SimulatedFaultKind.CARD_DEAD, node="n2", card=7, since=after(minutes=20)
    )
    assert not launch_snapshot(RECORD, (beside,), after(minutes=30)).ended


def test_a_launch_on_a_failed_card_fails_at_its_start() -> None:
    late = record(launched_at=after(hours=1))
    snapshot = launch_snapshot(late, (DEAD,), after(hours=2))
    assert snapshot.outcome is not None
    assert snapshot.outcome.at == late.ready_at


def test_a_card_repaired_before_the_start_does_not_affect_the_launch() -> None:
    mended = SimulatedFault(
        kind=SimulatedFaultKind.CARD_DEAD, node="n2", card=1, since=START, until=after(minutes=0.5)
    )
    assert not launch_snapshot(RECORD, (mended,), after(minutes=30)).ended


def test_processes_on_an_unreachable_node_are_lost_after_a_while() -> None:
    assert launch_snapshot(RECORD, (UNREACHABLE,), after(minutes=24)).message == "n1 is unreachable"
    lost = launch_snapshot(RECORD, (UNREACHABLE,), after(minutes=25))
    assert (lost.stage, lost.ended) == (SimulatedStage.LOST, True)


def test_a_node_that_answers_again_in_time_loses_no_process() -> None:
    back = SimulatedFault(
        kind=SimulatedFaultKind.NODE_UNREACHABLE,
        node="n1",
        since=UNREACHABLE.since,
        until=after(minutes=24),
    )
    assert launch_snapshot(RECORD, (back,), after(minutes=26)).stage is SimulatedStage.RUNNING


def test_one_slow_card_holds_up_the_whole_gang() -> None:
    # Half of the work is done when it gets slow; the other half takes three times as long.
    assert launch_snapshot(RECORD, (SLOW,), after(minutes=121)).stage is SimulatedStage.RUNNING
    assert launch_snapshot(RECORD, (SLOW,), after(minutes=122)).stage is SimulatedStage.EXITED


@given(
    boundaries=st.lists(
        st.tuples(st.floats(0, 200), st.floats(0.1, 100), st.floats(1.1, 9)), max_size=5
    ),
    minutes=st.floats(0, 300),
    speed=st.sampled_from([1.0, 7.5, 60.0]),
)
def test_done_and_reached_are_inverse(
    boundaries: list[tuple[float, float, float]], minutes: float, speed: float
) -> None:
    slow = tuple(
        SimulatedFault(
            kind=SimulatedFaultKind.CARD_SLOW,
            node="n1",
            card=0,
            since=after(minutes=since),
            until=after(minutes=since + lasts),
            slowness=slowness,
        )
        for since, lasts, slowness in boundaries
    )
    progress = WorkProgress(since=START, speed=speed, slow=slow)
    at = after(minutes=minutes)
    assert abs(progress.reached(progress.done(at)) - at) < timedelta(milliseconds=1)
    assert progress.done(at) <= progress.done(at + timedelta(seconds=1))
