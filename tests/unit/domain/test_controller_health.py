"""When a loop of the product is late, failing or stuck, and who is to blame."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.health.controllers import (
    LONGEST_TURN,
    ControllerHealth,
    ControllerRunTimes,
    StalledComponent,
    allowed_lag,
    controller_health,
    controller_lag,
    find_stalled_component,
)

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECOND = timedelta(seconds=1)
QUICK, SLOW = timedelta(seconds=1), timedelta(seconds=600)

ON_TIME, LATE = ControllerHealth.ON_TIME, ControllerHealth.LATE
FAILING, STUCK, UNSEEN = ControllerHealth.FAILING, ControllerHealth.STUCK, ControllerHealth.UNSEEN


def ago(seconds: float) -> datetime:
    return AT - timedelta(seconds=seconds)


def good(seconds: float) -> ControllerRunTimes:
    """A loop whose last turn ended well so long ago, and none has begun since."""
    return ControllerRunTimes(
        started_at=ago(seconds + 1), ended_at=ago(seconds), succeeded_at=ago(seconds)
    )


def bad(seconds: float, *, failures: int, well: float | None = None) -> ControllerRunTimes:
    """A loop whose last turns ended badly, the newest so long ago."""
    return ControllerRunTimes(
        started_at=ago(seconds + 1),
        ended_at=ago(seconds),
        succeeded_at=None if well is None else ago(well),
        failures=failures,
    )


@pytest.mark.parametrize(
    ("run_times", "interval", "health"),
    [
        pytest.param(ControllerRunTimes(), QUICK, UNSEEN, id="never turned"),
        pytest.param(good(2), QUICK, ON_TIME, id="just turned"),
        pytest.param(good(15), QUICK, ON_TIME, id="at the end of what is allowed"),
        pytest.param(good(15.1), QUICK, LATE, id="just past what is allowed"),
        pytest.param(good(1799), SLOW, ON_TIME, id="a slow loop has three intervals"),
        pytest.param(good(1801), SLOW, LATE, id="a slow loop past three intervals"),
        pytest.param(bad(1, failures=1, well=2), QUICK, ON_TIME, id="one failure is no news"),
        pytest.param(bad(1, failures=3, well=4), QUICK, FAILING, id="three in a row are"),
        pytest.param(bad(1, failures=2, well=20), QUICK, FAILING, id="no good end for long"),
        pytest.param(bad(1, failures=40), QUICK, FAILING, id="never a good end"),
        pytest.param(bad(60, failures=3, well=90), QUICK, LATE, id="failed, then silent"),
        pytest.param(
            ControllerRunTimes(started_at=ago(60), ended_at=ago(61), succeeded_at=ago(61)),
            QUICK,
            ON_TIME,
            id="a long turn is under way",
        ),
        pytest.param(
            ControllerRunTimes(started_at=ago(301), ended_at=ago(302), succeeded_at=ago(302)),
            QUICK,
            STUCK,
            id="a turn that does not end",
        ),
        pytest.param(ControllerRunTimes(started_at=ago(3)), QUICK, ON_TIME, id="the first turn"),
        pytest.param(
            ControllerRunTimes(started_at=ago(301)), QUICK, STUCK, id="the first does not end"
        ),
        pytest.param(
            ControllerRunTimes(started_at=ago(1700)), SLOW, ON_TIME, id="slow loops may take longer"
        ),
    ],
)
def test_a_loop_is_judged_by_its_last_good_end(
    run_times: ControllerRunTimes, interval: timedelta, health: ControllerHealth
) -> None:
    assert controller_health(run_times, interval=interval, at=AT) is health


def test_the_lag_counts_from_the_last_good_end_and_is_never_negative() -> None:
    assert controller_lag(good(7), at=AT) == 7 * SECOND
    assert controller_lag(bad(1, failures=1, well=30), at=AT) == 30 * SECOND
    assert controller_lag(ControllerRunTimes(started_at=ago(4)), at=AT) == 4 * SECOND
    assert controller_lag(good(-5), at=AT) == timedelta()
    assert controller_lag(ControllerRunTimes(), at=AT) is None


_instants = st.none() | st.floats(0, 5000).map(ago)


@given(
    started=_instants,
    ended=_instants,
    succeeded=_instants,
    failures=st.integers(0, 5),
    interval=st.floats(0.5, 1000),
    later=st.floats(0, 10_000),
)
def test_a_loop_that_does_nothing_more_never_comes_to_be_on_time(
    started: datetime | None,
    ended: datetime | None,
    succeeded: datetime | None,
    failures: int,
    interval: float,
    later: float,
) -> None:
    run_times = ControllerRunTimes(
        started_at=started, ended_at=ended, succeeded_at=succeeded, failures=failures
    )
    every = timedelta(seconds=interval)
    now = controller_health(run_times, interval=every, at=AT)
    then = controller_health(run_times, interval=every, at=AT + timedelta(seconds=later))
    if now in (LATE, STUCK, FAILING):
        assert then in (LATE, STUCK, FAILING)
    if now is not UNSEEN and later > max(LONGEST_TURN, allowed_lag(every)).total_seconds():
        assert then is not ON_TIME


FAILS = bad(1, failures=3, well=4)
#: A worker that was killed in the middle of it; 40 seconds are no news of a turn that goes on.
CUT_OFF = ControllerRunTimes(started_at=ago(40), ended_at=ago(41), succeeded_at=ago(41))
NEVER = ControllerRunTimes()


@pytest.mark.parametrize(
    ("controllers", "waiting", "blamed"),
    [
        pytest.param([good(1), good(2)], 0, StalledComponent.NONE, id="all is well"),
        pytest.param(
            [good(1), good(2)], 9, StalledComponent.NONE, id="a queue alone is no trouble"
        ),
        pytest.param([good(1), FAILS], 0, StalledComponent.CONTROLLERS, id="one loop fails"),
        pytest.param([FAILS, FAILS], 3, StalledComponent.CONTROLLERS, id="failing loops do turn"),
        pytest.param([good(1), good(40)], 1, StalledComponent.CONTROLLERS, id="one loop is late"),
        pytest.param([good(40), good(41)], 3, StalledComponent.WORKER, id="messages wait"),
        pytest.param(
            [CUT_OFF, good(40)], 3, StalledComponent.WORKER, id="killed in the middle of a turn"
        ),
        pytest.param([CUT_OFF, CUT_OFF], 3, StalledComponent.WORKER, id="killed in all of them"),
        pytest.param([good(40), good(41)], 0, StalledComponent.BEAT, id="no message waits"),
        pytest.param(
            [good(40), good(41)], None, StalledComponent.UNKNOWN, id="the broker is silent too"
        ),
        pytest.param([NEVER, NEVER], 0, StalledComponent.UNKNOWN, id="a fresh product"),
        pytest.param(
            [NEVER, NEVER], 4, StalledComponent.WORKER, id="a fresh product without worker"
        ),
        pytest.param(
            [NEVER, good(1)], 4, StalledComponent.NONE, id="a fresh product that has begun"
        ),
    ],
)
def test_the_culprit_is_found_by_what_turns_and_what_waits(
    controllers: list[ControllerRunTimes], waiting: int | None, blamed: StalledComponent
) -> None:
    given = [(QUICK, run_times) for run_times in controllers]
    assert find_stalled_component(given, waiting=waiting, at=AT) is blamed


def test_slow_loops_that_are_not_late_yet_hide_nothing() -> None:
    controllers = [(QUICK, good(40)), *[(SLOW, good(200))] * 5]
    assert find_stalled_component(controllers, waiting=2, at=AT) is StalledComponent.WORKER
