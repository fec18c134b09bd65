"""The world around the scheduler: each change gives the next snapshot, and the books always balance."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest

from controlplane.domain.common.resources import GIB
from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.scheduling.plans import ClaimEviction, ClaimPlacement
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator, requeued_claim
from controlplane.domain.scheduling.snapshots import (
    CardSelection,
    ReplicaPlacement,
    SchedulingSnapshot,
)
from tests.unit.domain.scheduling.fleets import (
    AT,
    GPU,
    NPU,
    claim,
    hours,
    node,
    role,
    running,
    snapshot,
)


def placed(uid: str, where: str, *cards: int, count: int = 0) -> ClaimPlacement:
    replica = ReplicaPlacement(
        role="trainer",
        index=0,
        node=where,
        cards=tuple(f"{where}/{card}" for card in cards),
        count=count or len(cards),
    )
    return ClaimPlacement(claim=uid, chip=NPU, replicas=(replica,), reason="")


def held(seen: SchedulingSnapshot) -> dict[str, str]:
    return {card.uid: card.held_by for node in seen.nodes for card in node.cards if card.held_by}


def test_a_claim_that_starts_holds_its_cards_and_counts_in_its_queue() -> None:
    first = snapshot(node("a"), claims=[claim("c", role(2, memory=8))])
    timeline = SnapshotSimulator(first)
    assert timeline.start(placed("c", "a", 0, 1), at=AT, ends_at=AT + hours(1)) == ("a/0", "a/1")
    seen = timeline.snapshot()
    assert held(seen) == {"a/0": "c", "a/1": "c"}
    assert seen.queues["research"].used == {NPU: 2}
    assert seen.nodes[0].allocated.memory == 8 * GIB
    assert not seen.claims
    assert seen.running[0].ends_at == AT + hours(1)
    assert not held(first)


def test_a_claim_that_ends_gives_back_all_that_it_had() -> None:
    first = snapshot(node("a"), claims=[claim("c", role(2, memory=8))])
    timeline = SnapshotSimulator(first)
    timeline.start(placed("c", "a", 0, 1), at=AT)
    assert timeline.end("c") == ("a/0", "a/1")
    seen = timeline.snapshot()
    assert seen.nodes == first.nodes
    assert seen.queues["research"].used == {NPU: 0}
    assert not seen.running


def test_shares_of_a_card_add_up_and_go_away_again() -> None:
    shared = role(1, share=300)
    timeline = SnapshotSimulator(
        snapshot(node("a", 1), claims=[claim("x", shared), claim("y", shared)])
    )
    for uid in ("x", "y"):
        timeline.start(placed(uid, "a", 0), at=AT)
    assert timeline.snapshot().nodes[0].cards[0].shared == 600
    timeline.end("x")
    assert timeline.snapshot().nodes[0].cards[0].shared == 300 < WHOLE_CARD


def test_where_the_node_chooses_as_many_cards_are_held_as_were_given() -> None:
    first = snapshot(node("a", binding=CardSelection.NODE), claims=[claim("c", role(3))])
    timeline = SnapshotSimulator(first)
    assert len(timeline.start(placed("c", "a", count=3), at=AT)) == 3
    assert Counter(held(timeline.snapshot()).values()) == {"c": 3}
    timeline.end("c")
    assert timeline.snapshot().nodes == first.nodes


@pytest.mark.parametrize("withdrawn", [False, True])
def test_cards_of_a_victim_wait_for_whom_it_stopped_as_long_as_that_one_waits(
    withdrawn: bool,
) -> None:
    seen = snapshot(
        node("a", 2), claims=[claim("heir", role(2))], running=[running("victim", {"a": (0, 1)})]
    )
    timeline = SnapshotSimulator(seen)
    timeline.revoke(ClaimEviction(claim="victim", beneficiary="heir", reason=""))
    assert timeline.snapshot().running[0].revoking
    if withdrawn:
        timeline.withdraw("heir")
    timeline.end("victim")
    nominated = {card.nominated_for for card in timeline.snapshot().nodes[0].cards}
    assert nominated == ({""} if withdrawn else {"heir"})
    if not withdrawn:
        timeline.start(placed("heir", "a", 0), at=AT)
        assert {card.nominated_for for card in timeline.snapshot().nodes[0].cards} == {""}


def test_what_was_stopped_waits_again_with_what_is_left_and_what_it_lost() -> None:
    was = running("v", {"a": (0, 1)}, saved=hours(0.5), ends_in=hours(3))
    again = requeued_claim(was, at=AT)
    assert again.runtime == hours(3.5)
    assert (again.created_at, again.shape, again.chips) == (was.admitted_at, was.shape, (NPU,))


def test_what_was_stopped_takes_any_chip_again_that_it_took_before() -> None:
    wanted = replace(claim("c", role(2), chips=(GPU, NPU), runtime=hours(1)), speeds={NPU: 0.5})
    timeline = SnapshotSimulator(snapshot(node("a"), claims=[wanted]))
    timeline.start(placed("c", "a", 0, 1), at=AT, ends_at=AT + hours(2))
    work = timeline.runs("c")
    assert work is not None
    again = requeued_claim(work, at=AT + hours(0.5))
    assert (again.chips, again.speeds) == (wanted.chips, wanted.speeds)
    # An hour and a half is left here and half an hour is lost, at half the speed of the first chip.
    assert again.runtime == hours(1)


def test_what_should_have_ended_has_only_to_do_again_what_it_lost() -> None:
    late = running("v", {"a": (0,)}, saved=hours(0.25), ends_in=hours(-3))
    assert requeued_claim(late, at=AT).runtime == hours(0.25)
