"""What a Launch is doing at an instant."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.simulation.lives import Stage, life, struck
from controlplane.domain.simulation.paces import Pace
from controlplane.domain.simulation.troubles import Trouble, TroubleKind
from tests.unit.domain.simulation.lived import RECORD, START, after, record

DEAD = Trouble(kind=TroubleKind.CARD_DEAD, node="n2", card=1, since=after(minutes=20), words="ECC")
SILENT = Trouble(kind=TroubleKind.NODE_SILENT, node="n1", since=after(minutes=20), words="no power")
SLOW = Trouble(kind=TroubleKind.CARD_SLOW, node="n1", card=0, since=after(minutes=32), slowness=3.0)


@pytest.mark.parametrize(
    ("minutes", "stage"),
    [
        (0, Stage.PREPARING),
        (0.99, Stage.PREPARING),
        (1, Stage.STARTING),
        (2, Stage.RUNNING),
        (61.99, Stage.RUNNING),
        (62, Stage.EXITED),
        (600, Stage.EXITED),
    ],
)
def test_it_prepares_starts_runs_and_ends(minutes: float, stage: Stage) -> None:
    assert life(RECORD, (), after(minutes=minutes)).stage is stage


def test_at_sixty_times_the_speed_an_hour_is_a_minute() -> None:
    fast = record(speed=60.0)
    assert life(fast, (), after(seconds=61)).stage is Stage.RUNNING
    assert life(fast, (), after(seconds=62)).stage is Stage.EXITED


def test_what_reports_ends_well_only_once_it_was_heard() -> None:
    waiting = life(record(reports=True), (), after(hours=3))
    assert (waiting.stage, waiting.finishing) == (Stage.RUNNING, True)
    heard = life(record(reports=True, handed_over_at=after(hours=2)), (), after(hours=3))
    assert heard.ending is not None
    assert (heard.ending.cause, heard.ending.at) == ("finished", after(hours=2))


@pytest.mark.parametrize(
    ("code", "cause"), [(1, "failed"), (12, "out_of_memory"), (28, "disk_full")]
)
def test_a_failure_needs_nobody_to_hear_it(code: int, cause: str) -> None:
    lived = life(record({"exit_code": code}, reports=True), (), after(hours=2))
    assert lived.ending is not None
    assert (lived.ending.cause, lived.ending.exit_code) == (cause, code)


def test_a_stop_ends_it_when_it_has_saved() -> None:
    stopped = record(stop_at=after(minutes=30), kill_at=after(minutes=31))
    assert life(stopped, (), after(minutes=30, seconds=9)).stage is Stage.RUNNING
    ending = life(stopped, (), after(minutes=30, seconds=10)).ending
    assert ending is not None
    assert (ending.cause, ending.exit_code) == ("stopped", 143)


def test_what_saves_for_too_long_is_killed() -> None:
    stopped = record({"saves": 90}, stop_at=after(minutes=30), kill_at=after(minutes=31))
    ending = life(stopped, (), after(hours=1)).ending
    assert ending is not None
    assert (ending.at, ending.exit_code) == (after(minutes=31), 137)


def test_its_time_limit_ends_it() -> None:
    ending = life(record(run_within=timedelta(minutes=5)), (), after(hours=1)).ending
    assert ending is not None
    assert (ending.cause, ending.at) == ("out_of_time", after(minutes=6))


def test_a_dead_card_ends_the_whole_gang() -> None:
    lived = life(RECORD, (DEAD,), after(minutes=20))
    assert lived.ending is not None
    assert (lived.ending.cause, lived.message) == ("failed", "card 1 of n2 failed: ECC")
    assert [struck(place, lived.ending) for place in RECORD.places] == [False, True]


def test_a_dead_card_beside_it_does_not_concern_it() -> None:
    beside = Trouble(kind=TroubleKind.CARD_DEAD, node="n2", card=7, since=after(minutes=20))
    assert not life(RECORD, (beside,), after(minutes=30)).ended


def test_what_starts_on_a_dead_card_fails_as_it_starts() -> None:
    late = record(launched_at=after(hours=1))
    lived = life(late, (DEAD,), after(hours=2))
    assert lived.ending is not None
    assert lived.ending.at == late.ready_at


def test_a_card_that_was_mended_before_it_started_does_no_harm() -> None:
    mended = Trouble(
        kind=TroubleKind.CARD_DEAD, node="n2", card=1, since=START, until=after(minutes=0.5)
    )
    assert not life(RECORD, (mended,), after(minutes=30)).ended


def test_a_silent_node_is_given_up_after_a_while() -> None:
    assert life(RECORD, (SILENT,), after(minutes=24)).message == "n1 does not answer"
    lost = life(RECORD, (SILENT,), after(minutes=25))
    assert (lost.stage, lost.ended) == (Stage.LOST, True)


def test_a_node_that_is_heard_of_again_in_time_has_lost_nothing() -> None:
    back = Trouble(
        kind=TroubleKind.NODE_SILENT, node="n1", since=SILENT.since, until=after(minutes=24)
    )
    assert life(RECORD, (back,), after(minutes=26)).stage is Stage.RUNNING


def test_one_slow_card_holds_up_the_whole_gang() -> None:
    # Half of the work is done when it gets slow; the other half takes three times as long.
    assert life(RECORD, (SLOW,), after(minutes=121)).stage is Stage.RUNNING
    assert life(RECORD, (SLOW,), after(minutes=122)).stage is Stage.EXITED


@given(
    turns=st.lists(
        st.tuples(st.floats(0, 200), st.floats(0.1, 100), st.floats(1.1, 9)), max_size=5
    ),
    minutes=st.floats(0, 300),
    speed=st.sampled_from([1.0, 7.5, 60.0]),
)
def test_time_and_work_are_each_others_inverse(
    turns: list[tuple[float, float, float]], minutes: float, speed: float
) -> None:
    slow = tuple(
        Trouble(
            kind=TroubleKind.CARD_SLOW,
            node="n1",
            card=0,
            since=after(minutes=since),
            until=after(minutes=since + lasts),
            slowness=slowness,
        )
        for since, lasts, slowness in turns
    )
    pace = Pace(since=START, speed=speed, slow=slow)
    at = after(minutes=minutes)
    assert abs(pace.reached(pace.done(at)) - at) < timedelta(milliseconds=1)
    assert pace.done(at) <= pace.done(at + timedelta(seconds=1))
