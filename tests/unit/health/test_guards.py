"""The blast radius: how much of a pool, and how many nodes, rules may take out."""

from __future__ import annotations

from dataclasses import replace

import pytest

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.faults import FaultLevel
from controlplane.domain.health.snapshots import DecisionPolicy, HealthAction, HealthDecision
from tests.unit.health.snapshots import (
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

WIDE = DecisionPolicy(nodes_per_window=1000, cards_per_node=99)


def split(found: tuple[HealthDecision, ...]) -> tuple[list[HealthDecision], list[HealthDecision]]:
    """What is done, and what is held back."""
    return [e for e in found if not e.held_back], [e for e in found if e.held_back]


def test_what_goes_beyond_the_share_is_held_back_with_its_numbers() -> None:
    faults = [fault(f"n{n}-0") for n in range(27)]
    done, held = split(decided(health_snapshot(fleet(32), *faults), WIDE))
    assert len(done) == 25
    assert held[0].held_back == (
        "the isolation would make 26 of 256 cards of h100 of west unavailable (10.2%); the policy allows 25"
    )


def test_what_is_out_already_counts_and_what_a_person_took_out_does_not() -> None:
    ours = withheld(node("n0"), CardState.ISOLATED)
    theirs = withheld(node("n0"), CardState.ISOLATED, by_user=True)
    rest = {f"n{n}": node(f"n{n}") for n in range(1, 10)}
    ours_done, _ = split(decided(health_snapshot({**rest, "n0": ours}, fault("n1-0")), WIDE))
    theirs_done, _ = split(decided(health_snapshot({**rest, "n0": theirs}, fault("n1-0")), WIDE))
    assert not ours_done
    assert len(theirs_done) == 1


def test_the_worst_go_first_and_among_them_the_oldest() -> None:
    faults = [
        fault("n0-0", FaultLevel.RESET_WHEN_IDLE, began_at=ago(minutes=9)),
        fault("n1-0", FaultLevel.ISOLATE, began_at=ago(minutes=1)),
        fault("n2-0", FaultLevel.ISOLATE, began_at=ago(minutes=3)),
    ]
    policy = replace(WIDE, pool_share=25)
    done, held = split(decided(health_snapshot(fleet(10), *faults), policy))
    assert [each.card for each in done] == ["n2-0", "n1-0"]
    assert [each.card for each in held] == ["n0-0"]


@pytest.mark.parametrize(("cards", "broken"), [(1, "n0-0"), (4, "n0-2")])
def test_the_first_card_of_a_small_pool_is_always_allowed_and_the_second_is_not(
    cards: int, broken: str
) -> None:
    nodes = {"n0": node("n0", cards=cards)}
    seen = health_snapshot(nodes, fault(broken))
    first = only(decided(seen, WIDE))
    assert not first.held_back
    if cards > 1:
        after = applied(seen, [first])
        second = only(decided(replace(after, faults=(*after.faults, fault("n0-3"))), WIDE))
        assert "would make 2 of 4 cards" in second.held_back


def test_the_first_node_of_a_small_pool_is_always_allowed_even_where_a_card_of_it_is_out() -> None:
    seen = health_snapshot(fleet(2), fault("n0-3"))
    seen = applied(seen, decided(seen))
    whole = replace(seen, faults=(*seen.faults, fault("n0", code="node")))
    assert not only(decided(whole)).held_back
    other = replace(seen, faults=(*seen.faults, fault("n1", code="node")))
    assert "would make 9 of 16 cards" in only(decided(other)).held_back


def test_a_share_of_nothing_means_nothing() -> None:
    policy = replace(WIDE, pool_share=0)
    for place in ("n0-0", "n0"):
        held = only(decided(health_snapshot(fleet(1), fault(place)), policy)).held_back
        assert held.endswith("the policy allows 0")


def test_pools_are_counted_apart() -> None:
    nodes = {**fleet(1, cards=4), "m0": node("m0", cards=4, pool="910b of west")}
    done, held = split(decided(health_snapshot(nodes, fault("n0-0"), fault("m0-0")), WIDE))
    assert len(done) == 2
    assert not held


def test_only_so_many_nodes_are_touched_within_the_window() -> None:
    seen = health_snapshot(fleet(400), *(fault(f"n{n}-0") for n in range(12)))
    done, held = split(decided(seen))
    assert len(done) == 10
    assert (
        held[0].held_back
        == "the action would affect 11 nodes within 10 minutes; the policy allows 10"
    )
    later = replace(applied(seen, done), recent=tuple((e.node, ago(minutes=11)) for e in done))
    assert len(split(decided(later))[0]) == 2


def test_another_card_of_a_node_that_was_touched_is_no_further_node() -> None:
    seen = health_snapshot(fleet(400), *(fault(f"n{n}-0") for n in range(10)))
    after = applied(seen, decided(seen))
    assert not only(decided(replace(after, faults=(*after.faults, fault("n3-1"))))).held_back


def test_a_storm_of_restarts_is_held_too_and_leaves_isolation_its_room() -> None:
    storm = [fault(f"n{n}-0", FaultLevel.RESTART_JOB, code="94") for n in range(200)]
    found = decided(health_snapshot(fleet(400), fault("n399-0"), *storm))
    done, held = split(found)
    assert [e.action for e in done].count(HealthAction.RESTART_JOB) == 50
    assert done[0].action is HealthAction.ISOLATE_CARD
    assert held[0].held_back == (
        "the action would restart jobs on 51 nodes within 10 minutes; the policy allows 50"
    )


def test_what_is_held_back_is_told_again_until_there_is_room() -> None:
    seen = health_snapshot(fleet(2, cards=2), fault("n0-0"), fault("n1-0"))
    done, held = split(decided(seen, WIDE))
    after = applied(seen, done)
    again = decided(after, WIDE)
    assert [(e.fault, e.action) for e in again] == [(e.fault, e.action) for e in held]
    room = replace(after, nodes={**after.nodes, "n0": node("n0", cards=2)})
    assert not only(decided(room, WIDE)).held_back
