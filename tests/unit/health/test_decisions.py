"""One fault at a time: what each level does, and to what."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.faults import DurationEscalation, FaultLevel, SignalOrigin
from controlplane.domain.health.snapshots import HealthAction
from tests.unit.health.snapshots import (
    NOW,
    ago,
    applied,
    decided,
    fault,
    fleet,
    health_snapshot,
    node,
    only,
    withheld,
)


@pytest.mark.parametrize(
    ("level", "of_card", "of_node"),
    [
        (FaultLevel.NOTE, HealthAction.NOTE, HealthAction.NOTE),
        (FaultLevel.RESTART_REQUEST, HealthAction.RESTART_REQUEST, HealthAction.RESTART_REQUEST),
        (FaultLevel.RESTART_JOB, HealthAction.RESTART_JOB, HealthAction.RESTART_JOB),
        (FaultLevel.RESET_WHEN_IDLE, HealthAction.RESET_WHEN_IDLE, HealthAction.RESET_WHEN_IDLE),
        (FaultLevel.RESET_NOW, HealthAction.RESET_NOW, HealthAction.RESET_NOW),
        (FaultLevel.ISOLATE, HealthAction.ISOLATE_CARD, HealthAction.ISOLATE_NODE),
    ],
)
def test_each_level_has_its_action(
    level: FaultLevel, of_card: HealthAction, of_node: HealthAction
) -> None:
    card = only(decided(health_snapshot(fleet(40), fault("n0-3", level))))
    whole = only(decided(health_snapshot(fleet(40), fault("n0", level))))
    assert (card.action, card.node, card.card) == (of_card, "n0", "n0-3")
    assert (whole.action, whole.node, whole.card) == (of_node, "n0", "")
    assert f"L{level.value}" in card.reason
    assert "79" in card.reason
    assert not card.held_back


def test_a_card_gets_the_strongest_action_and_what_else_stands_is_noted_in_the_next_turn() -> None:
    seen = health_snapshot(
        fleet(40),
        fault("n0-3", FaultLevel.RESTART_JOB, code="13"),
        fault("n0-3", FaultLevel.ISOLATE, code="79"),
    )
    first = only(decided(seen))
    assert first.action is HealthAction.ISOLATE_CARD
    second = only(decided(applied(seen, [first])))
    assert second.action is HealthAction.NOTE
    assert second.reason.endswith("already isolated or cordoned")


def test_what_was_done_is_not_decided_again_unless_it_got_worse() -> None:
    seen = health_snapshot(fleet(40), fault("n0-3", FaultLevel.RESTART_JOB, uid="f"))
    after = applied(seen, decided(seen))
    assert decided(after) == ()
    worse = replace(after, faults=(fault("n0-3", FaultLevel.RESET_NOW, uid="f"),))
    assert only(decided(worse)).action is HealthAction.RESET_NOW


def test_a_card_that_takes_no_new_work_is_still_stopped_by_a_graver_fault() -> None:
    waiting = withheld(node("n0"), CardState.NO_NEW_WORK, "n0-3")
    seen = health_snapshot([waiting, *fleet(40).values()], fault("n0-3", FaultLevel.RESET_NOW))
    seen = replace(seen, nodes={**seen.nodes, "n0": waiting})
    assert only(decided(seen)).action is HealthAction.RESET_NOW


def test_on_a_node_whose_plug_in_chooses_the_card_the_whole_node_is_withheld() -> None:
    bound = {**fleet(40), "n0": node("n0", binds_by_node=True)}
    isolated = only(decided(health_snapshot(bound, fault("n0-3", FaultLevel.ISOLATE))))
    pending = only(decided(health_snapshot(bound, fault("n0-3", FaultLevel.RESET_WHEN_IDLE))))
    restarts = only(decided(health_snapshot(bound, fault("n0-3", FaultLevel.RESTART_JOB))))
    assert (isolated.action, isolated.card) == (HealthAction.ISOLATE_NODE, "")
    assert (pending.action, pending.card) == (HealthAction.RESET_WHEN_IDLE, "")
    assert (restarts.action, restarts.card) == (HealthAction.RESTART_JOB, "n0-3")


def test_three_cards_of_one_node_are_a_matter_of_the_node() -> None:
    two = health_snapshot(fleet(40), fault("n0-0"), fault("n0-1"))
    assert {each.action for each in decided(two)} == {HealthAction.ISOLATE_CARD}
    third = applied(two, decided(two))
    third = replace(third, faults=(*third.faults, fault("n0-2", began_at=ago(minutes=1))))
    whole = decided(third)[0]
    assert (whole.action, whole.card) == (HealthAction.ISOLATE_NODE, "")
    assert whole.reason.startswith("3 of the node's 8 cards had to be isolated within 10 minutes")


def test_cards_that_stopped_long_apart_are_matters_of_their_own() -> None:
    seen = health_snapshot(
        fleet(40), fault("n0-0", began_at=ago(hours=2)), fault("n0-1", began_at=ago(hours=1))
    )
    seen = applied(seen, decided(seen))
    seen = replace(seen, faults=(*seen.faults, fault("n0-2")))
    assert only(decided(seen)).action is HealthAction.ISOLATE_CARD


def test_where_the_guard_holds_the_node_back_its_cards_are_still_isolated() -> None:
    seen = health_snapshot(fleet(16), fault("n1"))
    seen = applied(seen, decided(seen))
    seen = replace(seen, faults=(*seen.faults, *(fault(f"n0-{n}") for n in range(3))))
    found = decided(seen)
    assert found[0].action is HealthAction.ISOLATE_NODE
    assert found[0].held_back
    assert [(each.action, each.held_back) for each in found[1:]] == [
        (HealthAction.ISOLATE_CARD, "")
    ] * 3


def test_what_is_done_to_a_node_is_not_done_to_its_cards_once_more() -> None:
    seen = health_snapshot(fleet(40), fault("n0", code="node"), fault("n0-3"))
    assert only(decided(seen)).action is HealthAction.ISOLATE_NODE


def test_where_somebody_else_acts_we_follow_and_only_restart_jobs() -> None:
    nodes = {**fleet(40), "n0": node("n0", keeper="NVSentinel")}
    reset = only(decided(health_snapshot(nodes, fault("n0-3", FaultLevel.RESET_WHEN_IDLE))))
    restart = only(decided(health_snapshot(nodes, fault("n0-3", FaultLevel.RESTART_JOB))))
    assert reset.followed
    assert reset.held_back.startswith("NVSentinel")
    assert not restart.followed
    assert not restart.held_back


def test_a_fault_that_ended_before_anybody_looked_is_still_answered_for_a_while() -> None:
    recent = fault("n0-3", began_at=ago(minutes=2), ended_at=ago(minutes=1))
    old = fault("n0-3", began_at=ago(hours=2), ended_at=ago(hours=1))
    assert only(decided(health_snapshot(fleet(40), recent))).action is HealthAction.ISOLATE_CARD
    assert decided(health_snapshot(fleet(40), old)) == ()


def test_a_fault_of_a_node_that_nobody_knows_is_left_alone() -> None:
    assert decided(health_snapshot(fleet(2), fault("gone-1"))) == ()


def test_what_stood_when_it_was_given_back_is_not_held_against_it_again() -> None:
    seen = health_snapshot(fleet(40), fault("n0-3", began_at=ago(hours=1)))
    seen = replace(seen, released={"n0-3": ago(minutes=30)})
    assert only(decided(seen)).action is HealthAction.NOTE
    again = replace(seen, faults=(fault("n0-3", began_at=ago(minutes=10)),))
    assert only(decided(again)).action is HealthAction.ISOLATE_CARD


def test_a_link_that_stays_down_takes_no_new_work() -> None:
    lasting = DurationEscalation(after=timedelta(seconds=20), level=FaultLevel.RESET_WHEN_IDLE)
    down = replace(fault("n0-3", FaultLevel.NOTE, code="81078603", began_at=NOW), lasting=lasting)
    seen = health_snapshot(fleet(40), down)
    assert only(decided(seen)).action is HealthAction.NOTE
    seen = applied(seen, decided(seen))
    assert decided(seen, at=NOW + timedelta(seconds=19)) == ()
    late = only(decided(seen, at=NOW + timedelta(seconds=21)))
    assert late.action is HealthAction.RESET_WHEN_IDLE
    assert "has been active for 21 seconds" in late.reason


def test_what_one_crashed_job_left_behind_is_a_note_whatever_it_says() -> None:
    left = fault("n0-3", FaultLevel.ISOLATE, origin=SignalOrigin.JOB, code="fell-off-the-bus")
    assert only(decided(health_snapshot(fleet(40), left))).action is HealthAction.NOTE
