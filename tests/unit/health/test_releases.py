"""Nothing goes back before it has been quiet for a while and has passed a burn-in."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.state_machine import IllegalTransition
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.health.isolations import ISOLATION, IsolationEvent, IsolationState
from controlplane.domain.health.snapshots import (
    AttemptRunView,
    CrashOrigin,
    DecisionPolicy,
    FaultView,
    HealthAction,
    HealthDecision,
    HealthSnapshot,
    IsolationView,
)
from tests.properties import examples
from tests.unit.health.snapshots import NOW, ago, decided, fault, fleet, health_snapshot, withheld

ISOLATED = IsolationView(node="n0", card="n0-3", proved_at=ago(minutes=1))


def out(*faults: FaultView, isolation: IsolationView = ISOLATED) -> HealthSnapshot:
    nodes = fleet(40)
    nodes["n0"] = withheld(
        nodes["n0"], CardState.ISOLATED, *([isolation.card] if isolation.card else [])
    )
    answered = {each.uid: HealthAction.ISOLATE_NODE for each in faults}
    return replace(health_snapshot(nodes, *faults), isolations=(isolation,), decided=answered)


def releases(seen: HealthSnapshot) -> list[HealthDecision]:
    return [each for each in decided(seen) if each.action is HealthAction.RELEASE]


def ended(minutes: float, level: FaultLevel = FaultLevel.ISOLATE, place: str = "n0-3") -> FaultView:
    return fault(place, level, began_at=ago(hours=3), ended_at=ago(minutes=minutes))


def test_it_goes_back_when_it_has_passed_and_its_fault_has_been_away() -> None:
    (found,) = releases(out(ended(minutes=6)))
    assert (found.node, found.card, found.held_back) == ("n0", "n0-3", "")


@pytest.mark.parametrize(
    "isolation",
    [replace(ISOLATED, proved_at=None), replace(ISOLATED, by_user=True)],
    ids=["no burn-in passed", "a person took it out"],
)
def test_it_does_not_go_back_by_itself(isolation: IsolationView) -> None:
    assert releases(out(ended(minutes=6), isolation=isolation)) == []


@pytest.mark.parametrize(
    "standing",
    [
        ended(minutes=4),
        fault("n0-3", began_at=ago(hours=1)),
        fault("n0", FaultLevel.RESET_WHEN_IDLE, began_at=ago(hours=1)),
        fault("n0-3", began_at=ago(seconds=50), ended_at=ago(seconds=40)),
    ],
    ids=["ended just now", "still stands", "its node's stands", "came after the burn-in"],
)
def test_it_stays_while_something_is_wrong(standing: FaultView) -> None:
    assert releases(out(standing)) == []


@pytest.mark.parametrize(
    "harmless",
    [
        fault("n0-3", FaultLevel.NOTE, began_at=ago(hours=1)),
        fault("n0-4", began_at=ago(hours=1)),
        fault("n0-3", origin=SignalOrigin.JOB, began_at=ago(hours=1)),
    ],
    ids=["a note", "another card's", "what a job left behind"],
)
def test_what_says_nothing_of_it_does_not_keep_it(harmless: FaultView) -> None:
    assert len(releases(out(harmless))) == 1


def test_it_stays_while_its_node_is_suspect() -> None:
    runs = [
        AttemptRunView(
            job=job,
            owner=job,
            places={node: tuple(f"{node}-{n}" for n in range(8))},
            ended_at=ago(hours=1),
            failed=failed,
        )
        for job in ("a", "b")
        for node, failed in (("n0", CrashOrigin.UNCLEAR), ("n9", None))
    ]
    seen = replace(out(ended(minutes=6)), runs=tuple(runs))
    assert [each.action for each in decided(seen)] == [HealthAction.RESET_WHEN_IDLE]


def test_a_node_answers_for_all_of_its_cards() -> None:
    whole = IsolationView(node="n0", card="", proved_at=ago(minutes=1))
    assert releases(out(ended(minutes=1, place="n0-7"), isolation=whole)) == []
    assert len(releases(out(ended(minutes=6, place="n0-7"), isolation=whole))) == 1


@given(
    proved=st.none() | st.integers(0, 1200),
    faults=st.lists(
        st.tuples(
            st.sampled_from(FaultLevel), st.integers(0, 1200), st.integers(0, 1200) | st.none()
        ),
        max_size=4,
    ),
)
@settings(max_examples=examples(200))
def test_whatever_went_before_it_goes_back_only_settled_and_proved(
    proved: int | None, faults: list[tuple[FaultLevel, int, int | None]]
) -> None:
    views = [
        fault(
            "n0-3",
            level,
            uid=f"{n}",
            code=f"c{n}",
            began_at=ago(seconds=began),
            ended_at=None if over is None else max(ago(seconds=began), ago(seconds=over)),
        )
        for n, (level, began, over) in enumerate(faults)
    ]
    proved_at = None if proved is None else ago(seconds=proved)
    isolation = replace(ISOLATED, proved_at=proved_at)
    if releases(out(*views, isolation=isolation)):
        assert proved_at is not None
        for view in views:
            if view.level >= FaultLevel.RESET_WHEN_IDLE:
                assert is_settled(view, proved_at)


def is_settled(view: FaultView, proved_at: datetime) -> bool:
    settle = timedelta(seconds=DecisionPolicy().settle.total_seconds())
    return (
        view.ended_at is not None and view.ended_at <= NOW - settle and view.began_at <= proved_at
    )


_LEGAL = {
    (IsolationState.DRAINING, IsolationEvent.EMPTIED): IsolationState.EMPTY,
    (IsolationState.DRAINING, IsolationEvent.RELEASE): IsolationState.RETURNED,
    (IsolationState.EMPTY, IsolationEvent.TEST): IsolationState.TESTING,
    (IsolationState.EMPTY, IsolationEvent.RELEASE): IsolationState.RETURNED,
    (IsolationState.TESTING, IsolationEvent.PROVE): IsolationState.RETURNED,
    (IsolationState.TESTING, IsolationEvent.FAIL): IsolationState.EMPTY,
    (IsolationState.TESTING, IsolationEvent.RELEASE): IsolationState.RETURNED,
}


@pytest.mark.parametrize("event", IsolationEvent)
@pytest.mark.parametrize("state", IsolationState)
def test_an_isolation_moves_only_along_its_arrows(
    state: IsolationState, event: IsolationEvent
) -> None:
    if (state, event) in _LEGAL:
        assert ISOLATION.after(state, event) is _LEGAL[state, event]
    else:
        with pytest.raises(IllegalTransition):
            ISOLATION.after(state, event)
