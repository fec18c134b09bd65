"""What is not planned again, and what is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.scheduling import cycle
from controlplane.domain.scheduling.cycle import NO_OP_PLAN_VALID_FOR, plan_cycle
from controlplane.domain.scheduling.plans import SchedulerState, SchedulingPlan, SchedulingPolicy
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot
from tests.unit.domain.scheduling.fleets import AT, claim, node, role, running, snapshot

MOMENT = timedelta(milliseconds=10)
FULL = snapshot(
    node("n", cards=2),
    running=[running("at work", {"n": (0, 1)})],
    claims=[claim("a", minute=1), claim("b", role(2), minute=2)],
)


class Planner:
    """Passes the state of each plan to the next."""

    def __init__(self) -> None:
        self.state = SchedulerState()

    def plan(
        self, seen: SchedulingSnapshot, policy: SchedulingPolicy, at: datetime
    ) -> SchedulingPlan:
        found = cycle.plan_incrementally(seen, policy, self.state, at)
        self.state = found.state
        return found


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> list[SchedulingSnapshot]:
    """What was planned in full."""
    snapshots: list[SchedulingSnapshot] = []

    def noted(seen: SchedulingSnapshot, *rest: object) -> SchedulingPlan:
        snapshots.append(seen)
        return plan_cycle(seen, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(cycle, "plan_cycle", noted)
    return snapshots


def pending_reasons(found: SchedulingPlan) -> dict[str, str]:
    return {each.claim: each.reason for each in found.pending}


def test_of_newcomers_behind_others_of_their_kind_a_plan_says_the_same(
    planned: list[SchedulingSnapshot],
) -> None:
    scheduler, first = Planner(), FULL
    assert set(pending_reasons(scheduler.plan(first, SchedulingPolicy(), AT))) == {"a", "b"}
    second = replace(
        first, claims=(*first.claims, claim("c", minute=3), claim("d", role(2), minute=4))
    )
    third = replace(second, claims=(*second.claims, claim("e", minute=5)))
    found = [scheduler.plan(each, SchedulingPolicy(), AT + MOMENT) for each in (second, third)]
    assert [set(pending_reasons(each)) for each in found] == [{"c", "d"}, {"e"}]
    assert (
        pending_reasons(plan_cycle(third, SchedulingPolicy(), AT + MOMENT)).items()
        >= (pending_reasons(found[0]) | pending_reasons(found[1])).items()
    )
    assert planned == [first]


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(
            lambda seen: replace(seen, claims=(*seen.claims, claim("c", role(3), minute=3))),
            id="a newcomer of another kind",
        ),
        pytest.param(
            lambda seen: replace(seen, claims=(*seen.claims, claim("c", priority=1, minute=3))),
            id="a newcomer before those of its kind",
        ),
        pytest.param(lambda seen: replace(seen, claims=seen.claims[1:]), id="one gave up"),
        pytest.param(lambda seen: replace(seen, running=(), nodes=FULL.nodes), id="one ended"),
        pytest.param(
            lambda seen: replace(
                seen,
                nodes=(
                    replace(
                        seen.nodes[0],
                        cards=(
                            replace(seen.nodes[0].cards[0], state=CardState.ISOLATED),
                            seen.nodes[0].cards[1],
                        ),
                    ),
                ),
            ),
            id="a card broke",
        ),
        pytest.param(
            lambda seen: replace(
                seen, queues={uid: replace(each, open=False) for uid, each in seen.queues.items()}
            ),
            id="a queue was closed",
        ),
    ],
)
def test_whatever_else_has_changed_is_planned(
    change: Callable[[SchedulingSnapshot], SchedulingSnapshot], planned: list[SchedulingSnapshot]
) -> None:
    scheduler = Planner()
    scheduler.plan(FULL, SchedulingPolicy(), AT)
    changed = change(FULL)
    assert scheduler.plan(changed, SchedulingPolicy(), AT) == plan_cycle(
        changed, SchedulingPolicy(), AT
    )
    assert planned == [FULL, changed]


def test_a_plan_stands_for_a_moment_for_its_policy_and_for_those_who_come(
    planned: list[SchedulingSnapshot],
) -> None:
    scheduler, seen, full = Planner(), FULL, []
    for number, (policy, at) in enumerate(
        (
            (SchedulingPolicy(), AT),
            (SchedulingPolicy(), AT + MOMENT),
            (SchedulingPolicy(), AT - MOMENT),
            (SchedulingPolicy(backfill=False), AT),
            (SchedulingPolicy(backfill=False), AT + NO_OP_PLAN_VALID_FOR),
        )
    ):
        scheduler.plan(seen, policy, at)
        full.append(planned[-1] is seen)
        seen = replace(seen, claims=(*seen.claims, claim(f"c{number}", minute=9 + number)))
    assert full == [True, False, True, True, True]
    scheduler.plan(seen, SchedulingPolicy(), AT)
    scheduler.plan(seen, SchedulingPolicy(), AT)
    assert planned[-2:] == [seen, seen], "nobody came: time has passed, or something else is asked"


def test_what_moved_something_or_did_not_look_at_all_is_planned_again(
    planned: list[SchedulingSnapshot],
) -> None:
    free = snapshot(node("n", cards=2), claims=[claim("a"), claim("b")])
    for seen, policy in (
        (free, SchedulingPolicy()),
        (FULL, SchedulingPolicy(attempts_per_cycle=0)),
    ):
        scheduler = Planner()
        assert scheduler.plan(seen, policy, AT) == scheduler.plan(seen, policy, AT)
    assert planned == [free, free, FULL, FULL]
