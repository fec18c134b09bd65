"""One cycle: which claim gets which cards, whom it passes, and what is kept for those who come first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from controlplane.domain.common.resources import GIB, Bytes, Resources
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.plans import (
    ClaimPlacement,
    PendingReasonCode,
    SchedulingPlan,
    SchedulingPolicy,
)
from controlplane.domain.scheduling.snapshots import NodeSnapshot, SchedulingSnapshot
from tests.unit.domain.scheduling.decisions import (
    decide,
    placed,
    refused,
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

CHIPS = (NPU, GPU)


QUEUES = ("research", "product")


def chosen(decided: SchedulingPlan) -> dict[str, set[tuple[str, ...]]]:
    return {one.claim: {replica.cards for replica in one.replicas} for one in decided.placements}


# -- Single decisions --


def test_a_gang_goes_to_a_cluster_that_has_room_for_all_of_it() -> None:
    seen = snapshot(
        node("a", 4, cluster="east"),
        node("b", 4, cluster="west"),
        node("c", 4, cluster="west"),
        claims=(claim("gang", role(4, 2)), claim("single", role(4), minute=1)),
    )

    gang, single = decide(seen).placements

    assert {replica.node for replica in gang.replicas} == {"b", "c"}
    assert [replica.node for replica in single.replicas] == ["a"]


def test_a_gang_spreads_over_nodes_and_each_replica_stays_on_one() -> None:
    seen = snapshot(node("a", 3), node("b", 2), claims=(claim("x", role(2, 2)),))

    assert chosen(decide(seen)) == {"x": {("a/0", "a/1"), ("b/0", "b/1")}}


def test_the_preferred_chip_is_taken_and_the_next_where_it_is_busy() -> None:
    seen = snapshot(
        node("a", 1, chip=NPU),
        node("b", 1, chip=GPU),
        claims=(claim("x", chips=CHIPS), claim("y", chips=CHIPS, minute=1)),
    )

    assert {one.claim: one.chip for one in decide(seen).placements} == {"x": NPU, "y": GPU}


def test_the_next_chip_is_taken_where_the_queue_may_not_have_more_of_the_preferred() -> None:
    capped = QueueSnapshot(uid="research", name="research", entitlements={NPU: ChipQuota(cap=0)})
    seen = snapshot(
        node("a", 1, chip=NPU),
        node("b", 1, chip=GPU),
        claims=(claim("x", chips=CHIPS),),
        queues=(capped,),
    )

    assert [one.chip for one in decide(seen).placements] == [GPU]


def test_equally_good_chips_are_weighed_together_and_others_come_after_them() -> None:
    """On the preferred chip it would break up an empty node."""
    nodes = (node("whole", 8, chip=NPU), node("half", 8, chip=GPU, busy=range(4)))

    def chip_of(**asked: Any) -> str:
        (one,) = decide(snapshot(*nodes, claims=(claim("x", role(4), **asked),))).placements
        return one.chip

    assert chip_of(chips=CHIPS) == NPU
    assert chip_of(chips=CHIPS, equal_chips=2) == GPU
    assert chip_of(chips=("other", *CHIPS), equal_chips=1) == NPU
    assert chip_of(chips=("other", *CHIPS), equal_chips=3) == GPU


def test_of_equally_good_chips_the_one_within_the_guarantee_is_taken() -> None:
    """Borrowed cards may be taken back."""
    owner = QueueSnapshot(
        uid="research", name="research", entitlements={NPU: ChipQuota(guaranteed=8)}
    )
    seen = snapshot(
        node("whole", 8, chip=NPU),
        node("half", 8, chip=GPU, busy=range(4)),
        claims=(claim("x", role(4), chips=(GPU, NPU), equal_chips=2),),
        queues=(owner,),
    )

    assert [one.chip for one in decide(seen).placements] == [NPU]


def test_of_equally_good_chips_a_gang_gets_the_one_that_holds_it_in_the_smallest_domain() -> None:
    seen = snapshot(
        *(node(f"n{each}", 4, chip=NPU) for each in range(2)),
        node("g", 16, chip=GPU),
        claims=(claim("x", role(4, 2), chips=CHIPS, equal_chips=2),),
    )

    assert chosen(decide(seen)) == {
        "x": {tuple(f"g/{k}" for k in range(4)), tuple(f"g/{k}" for k in range(4, 8))}
    }


def test_of_equally_good_chips_an_elastic_gang_gets_the_one_with_room_for_most_of_it() -> None:
    seen = snapshot(
        node("n", 1, chip=NPU),
        node("g", 8, chip=GPU, busy=range(5)),
        claims=(claim("x", role(1, 4, least=1), chips=CHIPS, equal_chips=2),),
    )

    assert [(one.chip, len(one.replicas)) for one in decide(seen).placements] == [(GPU, 3)]


def test_a_smaller_claim_passes_one_that_nobody_knows_when_to_fit() -> None:
    seen = snapshot(
        node("n", 2, busy=[0]), claims=(claim("large", role(2)), claim("small", minute=1))
    )

    decided = decide(seen)

    assert placed(decided) == ["small"]
    assert list(refused(decided)) == ["large"]


def test_what_a_gang_took_before_it_turned_out_not_to_fit_is_given_back() -> None:
    seen = snapshot(
        node("n", 3),
        node("m", 2, busy=[0]),
        claims=(claim("gang", role(2, 2)), claim("x", role(3), minute=1)),
    )

    decided = decide(seen)

    assert placed(decided) == ["x"]
    assert refused(decided)["gang"] is PendingReasonCode.NO_FREE_CARDS


def test_an_elastic_gang_gets_as_many_replicas_as_fit() -> None:
    seen = snapshot(node("n", 7), claims=(claim("x", role(2, 4, least=2)),))

    (placement,) = decide(seen).placements

    assert len(placement.replicas) == 3
    assert placement.numbers == {"nodes": 1, "cards": 6, "wanted": 8}


def test_an_elastic_gang_gets_no_more_than_its_queue_may_have() -> None:
    capped = QueueSnapshot(uid="research", name="research", entitlements={NPU: ChipQuota(cap=5)})
    seen = snapshot(
        node("n", 8),
        claims=(claim("x", role(2, 4, least=1)), claim("y", minute=1)),
        queues=(capped,),
    )

    assert {one.claim: len(one.replicas) for one in decide(seen).placements} == {"x": 2, "y": 1}


def test_a_claim_that_asks_for_no_memory_fits_where_none_is_left() -> None:
    full = replace(node("n", 1, memory=1), allocated=Resources(memory=Bytes(2 * GIB)))

    assert placed(decide(snapshot(full, claims=(claim("x"),)))) == ["x"]


def test_a_claim_without_cards_has_a_place_too() -> None:
    (placement,) = decide(snapshot(node("n", 0), claims=(claim("x", role(0)),))).placements

    assert isinstance(placement, ClaimPlacement)
    assert [(one.node, one.cards) for one in placement.replicas] == [("n", ())]


def test_a_claim_that_accepts_no_chip_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="claim x has no acceptable chip"):
        decide(snapshot(node("n", 1), claims=(claim("x", chips=()),)))


def test_each_admission_is_charged_before_the_next_is_judged() -> None:
    capped = QueueSnapshot(uid="research", name="research", entitlements={NPU: ChipQuota(cap=3)})
    seen = snapshot(
        node("n", 8),
        claims=[claim(f"c{turn}", minute=turn) for turn in range(5)],
        queues=(capped,),
    )

    decided = decide(seen)

    assert placed(decided) == ["c0", "c1", "c2"]
    assert {one.reason for one in decided.pending} == {
        f"needs 1 × {NPU}; queue research uses 3 of its cap of 3"
    }


# -- Bounds of a cycle --


def test_what_a_cycle_does_not_come_to_says_so() -> None:
    waiting = [claim(f"c{turn}", minute=turn) for turn in range(3)]
    decided = decide(
        snapshot(node("n", 8), claims=waiting), SchedulingPolicy(placements_per_cycle=1)
    )

    assert placed(decided) == ["c0"]
    assert set(refused(decided).values()) == {PendingReasonCode.NOT_EVALUATED}
    assert decided.pending[0].reason == (
        "not evaluated in this scheduling cycle; claims placed before it: 1, placement attempts: 1"
    )


def test_claims_of_a_kind_are_looked_for_once() -> None:
    full = node("n", 8, busy=range(8))
    waiting = [claim(f"c{turn}", role(2), minute=turn) for turn in range(50)]

    decided = decide(snapshot(full, claims=waiting), SchedulingPolicy(attempts_per_cycle=10))

    assert set(refused(decided).values()) == {PendingReasonCode.NO_FREE_CARDS}
    assert len(decided.pending) == 50


# -- Cards that are on their way --


def nominated(view: NodeSnapshot, uid: str, indices: tuple[int, ...]) -> NodeSnapshot:
    return replace(
        view,
        cards=tuple(
            replace(card, nominated_for=uid) if card.index in indices else card
            for card in view.cards
        ),
    )


def test_cards_that_were_freed_for_a_claim_are_nobody_elses() -> None:
    reserved = nominated(node("n", 2), "late", (0, 1))
    seen = snapshot(reserved, claims=(claim("early"), claim("late", role(2), minute=9)))

    decided = decide(seen)

    assert placed(decided) == ["late"]
    assert refused(decided) == {"early": PendingReasonCode.NO_FREE_CARDS}


def test_what_a_claim_leaves_of_the_cards_freed_for_it_is_for_anybody() -> None:
    reserved = nominated(node("n", 4), "late", (0, 1, 2, 3))
    seen = snapshot(reserved, claims=(claim("late", priority=1), claim("other", role(3))))

    assert placed(decide(seen)) == ["late", "other"]


def test_cards_that_were_freed_for_a_claim_are_not_lent() -> None:
    """Nor do others get what is reserved, because the freed ones count as free."""
    queues = [
        QueueSnapshot(uid=uid, name=uid, entitlements={NPU: stated})
        for uid, stated in (
            ("owner", ChipQuota(guaranteed=4)),
            ("product", ChipQuota(reserved=4, guaranteed=4)),
            ("batch", ChipQuota()),
        )
    ]
    seen = snapshot(
        nominated(node("n", 8), "x", (0, 1, 2, 3)),
        claims=[
            claim("x", role(4), queue="owner"),
            claim("urgent", role(4), queue="batch", priority=10),
        ],
        queues=queues,
    )

    assert placed(decide(seen)) == ["x"]


def test_what_was_freed_for_a_claim_does_not_cost_it_its_right() -> None:
    """Its queue counts those cards already; with all of the claim on top it would seem to borrow."""
    owner = QueueSnapshot(uid="owner", name="owner", entitlements={NPU: ChipQuota(guaranteed=4)})
    seen = snapshot(
        nominated(node("n", 4), "x", (0,)),
        claims=[claim("x", role(4), queue="owner", minute=9), claim("small", queue="batch")],
        queues=[owner, QueueSnapshot(uid="batch", name="batch")],
    )

    assert placed(decide(seen)) == ["x"]


def test_more_cards_than_a_claim_asks_for_make_no_borrower_of_its_queue() -> None:
    """Who stopped for it held more than it needs: nobody of its queue stops because of the rest."""
    queues = [
        QueueSnapshot(uid="vision", name="vision", entitlements={NPU: ChipQuota(guaranteed=9)}),
        QueueSnapshot(uid="owner", name="owner", entitlements={NPU: ChipQuota(guaranteed=8)}),
    ]
    seen = snapshot(
        node("m", 8),
        nominated(node("n", 4), "x", (0, 1, 2, 3)),
        claims=[
            claim("owed", role(8), queue="owner"),
            claim("x", queue="vision", minute=9),
        ],
        running=[running("old", {"m": range(8)}, queue="vision")],
        queues=queues,
    )

    assert not decide(seen).revocations


def test_cards_freed_on_a_node_that_takes_no_work_make_no_borrower_of_a_queue() -> None:
    """They are of use to nobody; so nobody of its queue stops because of them."""
    queues = [
        QueueSnapshot(uid="vision", name="vision", entitlements={NPU: ChipQuota(guaranteed=8)}),
        QueueSnapshot(uid="owner", name="owner", entitlements={NPU: ChipQuota(guaranteed=8)}),
    ]
    seen = snapshot(
        node("m", 8),
        replace(nominated(node("n", 4), "x", (0, 1, 2, 3)), schedulable=False),
        claims=[
            claim("owed", role(8), queue="owner"),
            claim("x", role(4), queue="vision", minute=9),
        ],
        running=[running("old", {"m": range(8)}, queue="vision")],
        queues=queues,
    )

    assert not decide(seen).revocations


def test_a_card_that_is_shared_is_not_lent_for_one_that_is_reserved() -> None:
    view = node("n", 3)
    shared = replace(view, cards=(replace(view.cards[0], shared=1000), *view.cards[1:]))
    product = QueueSnapshot(
        uid="product", name="product", entitlements={NPU: ChipQuota(reserved=1, guaranteed=1)}
    )
    batch = QueueSnapshot(uid="batch", name="batch", shared={NPU: 1000})
    asked = SchedulingSnapshot(
        nodes=(shared,),
        claims=(claim("x", role(2), queue="batch"), claim("y", queue="batch", minute=1)),
        queues={"product": product, "batch": batch},
    )

    # One of the two that are free is kept.
    assert "x" in refused(decide(asked))


def test_a_quota_counts_shares_of_cards_in_thousandths() -> None:
    capped = QueueSnapshot(uid="research", name="research", entitlements={NPU: ChipQuota(cap=2)})
    halves = [claim(f"half-{index}", role(share=500), minute=10 * index) for index in range(5)]
    fitting = claim("quarter", role(share=250), minute=25)
    seen = snapshot(
        node("n", 4),
        claims=[*halves, fitting],
        running=[running("old", {"n": [0]}, share=250)],
        queues=[capped],
    )
    decided = decide(seen)
    assert placed(decided) == ["half-0", "half-1", "half-2", "quarter"]
    (reason,) = {each.reason for each in decided.pending}
    assert reason == f"needs 0.5 × {NPU}; queue research uses 2 of its cap of 2"
    assert seen.queues["research"].shared == {NPU: 250}


def test_shares_of_a_card_within_a_guarantee_are_taken_back_from_borrowers() -> None:
    owner = QueueSnapshot(uid="owner", name="owner", entitlements={NPU: ChipQuota(guaranteed=1)})
    seen = snapshot(
        node("n", 1),
        claims=[claim("half", role(share=500), queue="owner")],
        running=[
            running("own", {"n": [0]}, queue="owner", share=500),
            running("borrows", {"n": [0]}, queue="batch", share=500),
        ],
        queues=[owner, QueueSnapshot(uid="batch", name="batch")],
    )
    shared = replace(seen.nodes[0].cards[0], held_by="", shared=1000)
    seen = replace(seen, nodes=(replace(seen.nodes[0], cards=(shared,)),))
    assert [each.claim for each in decide(seen).revocations] == ["borrows"]


def test_a_claim_for_ages_ends_no_plan() -> None:
    seen = snapshot(
        node("n"),
        claims=[
            claim("gang", role(8), runtime=timedelta(days=4_000_000)),
            claim("next", runtime=timedelta(days=4_000_000), minute=1),
        ],
        running=[running("busy", {"n": [0]}, ends_in=timedelta(hours=1))],
    )

    assert set(refused(decide(seen))) == {"gang", "next"}


def test_a_speed_of_nothing_and_a_negative_runtime_are_refused_at_once() -> None:
    with pytest.raises(ValueError, match="claim x: speed must be more than 0, got 0"):
        replace(claim("x"), speeds={NPU: 0.0})
    with pytest.raises(ValueError, match="claim x: runtime must not be negative"):
        claim("x", runtime=-timedelta(hours=1))


def test_a_claim_that_awaits_cards_gets_no_second_round_and_keeps_its_nodes() -> None:
    stopping = replace(
        running("victim", {"n": [0, 1]}, queue="batch"), revoking=True, revoked_for="owed"
    )
    other = running("other", {"m": [0, 1]}, queue="batch")
    research = QueueSnapshot(
        uid="research", name="research", entitlements={NPU: ChipQuota(guaranteed=4)}
    )
    seen = snapshot(
        node("m", 2),
        node("n", 4),
        claims=(claim("owed", role(4)), claim("later", queue="batch", minute=1)),
        running=(stopping, other),
        queues=(research, QueueSnapshot(uid="batch", name="batch")),
    )

    decided = decide(seen)

    assert decided.revocations == ()
    assert refused(decided) == {
        "owed": PendingReasonCode.AWAITING_EVICTIONS,
        "later": PendingReasonCode.NO_BORROWING,
    }
    assert [(one.claim, one.nodes) for one in decided.reservations] == [("owed", ("n",))]
    assert decided.pending[0].reason == (
        f"waiting for 2 × {NPU} from claims that are being evicted: 1"
    )


def test_a_claim_that_awaits_cards_starts_as_soon_as_there_is_room_elsewhere() -> None:
    stopping = replace(running("victim", {"n": [0, 1]}), revoking=True, revoked_for="owed")
    seen = snapshot(
        node("m", 2),
        node("n", 2),
        claims=(claim("owed", role(2)),),
        running=(stopping,),
    )

    assert placed(decide(seen)) == ["owed"]


def test_a_claim_that_was_placed_ends_too_and_others_can_wait_for_it() -> None:
    seen = snapshot(
        node("n", 4),
        claims=(claim("first", role(4), runtime=hours(2)), claim("next", role(4), minute=1)),
    )

    decided = decide(seen)

    assert placed(decided) == ["first"]
    assert [(one.claim, one.starts_at) for one in decided.reservations] == [("next", AT + hours(2))]
