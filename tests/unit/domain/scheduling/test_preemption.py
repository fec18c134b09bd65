"""Who has to stop for whom: only borrowers and the less urgent, as few as will do, and found by trying."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from controlplane.domain.quotas.claims import RoleShape
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import PendingReasonCode, SchedulingPolicy
from controlplane.domain.scheduling.preemption import MOST_REGIONS
from controlplane.domain.scheduling.snapshots import RunningClaim, SchedulingSnapshot
from tests.unit.domain.scheduling.decisions import (
    BATCH,
    RESEARCH,
    decide,
    decided,
    guaranteed,
    lent,
    placed,
    refused,
    stopped,
)
from tests.unit.domain.scheduling.fleets import (
    AT,
    NPU,
    RINGS,
    claim,
    hours,
    node,
    role,
    running,
    snapshot,
)


def borrowed(
    *at_work: RunningClaim, wanted: int = 2, queues: tuple[QueueSnapshot, ...] = ()
) -> SchedulingSnapshot:
    """One node of four cards, all lent to others; research, which is guaranteed eight, wants some."""
    return snapshot(
        node("n", 4),
        claims=[claim("owed", role(wanted))],
        running=at_work,
        queues=(RESEARCH, BATCH, *queues),
    )


# -- Reclaim --


def test_a_claim_within_its_guarantee_takes_back_what_others_borrowed() -> None:
    decided = decide(borrowed(lent("a", 0, 1), lent("b", 2, 3, priority=1)))

    (revocation,) = decided.revocations
    assert (revocation.claim, revocation.beneficiary) == ("a", "owed")
    assert revocation.reason == (
        f"queue batch uses more than its guaranteed 0 × {NPU}; queue research reclaims its guaranteed quota"
    )
    (refusal,) = decided.pending
    assert refusal.code is PendingReasonCode.AWAITING_EVICTIONS
    assert refusal.reason == f"waiting for 2 × {NPU} from claims that are being evicted: 1"
    assert [(one.claim, one.nodes) for one in decided.reservations] == [("owed", ("n",))]


def test_a_claim_beyond_its_guarantee_takes_nothing_back() -> None:
    seen = borrowed(lent("a", 0, 1, 2, 3), wanted=4)
    small = replace(seen, queues={**seen.queues, "research": guaranteed("research", 3)})

    assert decide(small).revocations == ()


def test_a_queue_that_does_not_reclaim_waits() -> None:
    seen = borrowed(lent("a", 0, 1, 2, 3))
    patient = replace(
        seen, queues={**seen.queues, "research": guaranteed("research", 8, reclaims=False)}
    )

    assert decide(patient).revocations == ()


def test_without_preemption_nobody_is_stopped() -> None:
    seen = borrowed(lent("a", 0, 1, 2, 3))

    assert decide(seen, SchedulingPolicy(preemption=False)).revocations == ()


def test_a_queue_within_its_guarantee_is_left_alone() -> None:
    product = running("steady", {"n": [0, 1, 2, 3]}, queue="product")

    decided = decide(borrowed(product, queues=(guaranteed("product", 4),)))

    assert decided.revocations == ()


def test_a_queue_is_left_alone_as_soon_as_it_is_back_within_its_guarantee() -> None:
    at_work = [running(f"p{card}", {"n": [card]}, queue="product") for card in range(4)]

    decided = decide(borrowed(*at_work, wanted=2, queues=(guaranteed("product", 3),)))

    assert decided.revocations == ()
    assert (
        len(decide(borrowed(*at_work, wanted=1, queues=(guaranteed("product", 3),))).revocations)
        == 1
    )


def test_who_runs_within_its_guarantee_stops_for_nothing_that_its_queue_is_only_just_given() -> (
    None
):
    """Otherwise the newcomer takes its place, is stopped for the next one, and neither ever ends.

    Nor does it start only to be stopped: whoever is within a guarantee goes first, however urgent the borrower is.
    """
    ours, theirs = guaranteed("ours", 4), guaranteed("theirs", 4)
    first = running("first", {"a": range(4)}, queue="ours", priority=2, saved=None)
    second = claim("second", role(4), queue="ours", priority=2)
    entitled = claim("owed", role(2), queue="theirs", priority=1)
    nodes = (node("a", 4), node("b", 4))
    seen = snapshot(*nodes, claims=(second, entitled), running=(first,), queues=(ours, theirs))

    decided = decide(seen)
    assert [each.claim for each in decided.placements] == ["owed"]
    assert refused(decided) == {"second": PendingReasonCode.NO_FREE_CARDS}
    assert decided.revocations == ()

    # Had both started before it came, whoever has done less would make room.
    young = running(
        "second", {"b": range(4)}, queue="ours", priority=2, since=timedelta(seconds=1), saved=None
    )
    seen = snapshot(*nodes, claims=(entitled,), running=(first, young), queues=(ours, theirs))
    assert stopped(decide(seen)) == ["second"]


def test_an_urgent_borrower_does_not_start_on_what_the_next_cycle_would_reclaim() -> None:
    urgent = claim("urgent", role(3), queue="batch", priority=2)
    entitled = claim("owed", role(2), priority=0, minute=1)
    seen = snapshot(
        node("n", 4), claims=(urgent, entitled), queues=(guaranteed("research", 2), BATCH)
    )

    assert placed(decided(seen)) == ["owed"]
    assert refused(decide(seen)) == {"urgent": PendingReasonCode.NO_FREE_CARDS}

    # What is left is still its own.
    smaller = replace(seen, claims=(claim("urgent", role(2), queue="batch", priority=2), entitled))
    assert placed(decided(smaller)) == ["urgent", "owed"]
    # Who may not reclaim does not keep it from starting either.
    patient = guaranteed("research", 2, reclaims=False)
    assert placed(decide(replace(seen, queues={**seen.queues, "research": patient}))) == ["urgent"]


def test_what_a_borrower_does_not_lose_it_starts_on_all_the_same() -> None:
    """It lost its first choice to a claim within its guarantee, and there is room elsewhere."""
    borrower = claim("borrower", role(2), queue="batch", priority=2)
    entitled = claim("owed", role(4), minute=1)
    nodes = (node("a", 4), node("b", 4, busy=[0]))
    seen = snapshot(*nodes, claims=(borrower, entitled), queues=(guaranteed("research", 4), BATCH))
    assert sorted(placed(decided(seen))) == ["borrower", "owed"]


def test_cards_nominated_for_a_claim_do_not_make_a_borrower_of_what_its_queue_runs() -> None:
    """Before the claim's turn as after it: its queue holds these cards, but runs no more than its guarantee."""
    at_work = running("at work", {"a": range(2)}, queue="ours")
    first = claim("first", role(4), queue="ours", priority=0, minute=5)
    entitled = claim("owed", role(2), queue="theirs", priority=2)
    nominated = node("b", 4)
    nominated = replace(
        nominated, cards=tuple(replace(card, nominated_for="first") for card in nominated.cards)
    )
    seen = snapshot(
        node("a", 2),
        nominated,
        claims=(first, entitled),
        running=(at_work,),
        queues=(guaranteed("ours", 4), guaranteed("theirs", 2)),
    )
    assert stopped(decided(seen)) == []


def test_a_guarantee_of_a_queue_above_takes_back_from_outside_only() -> None:
    queues = (
        guaranteed("research", 4),
        QueueSnapshot(uid="vision", name="vision", parent="research"),
        QueueSnapshot(uid="speech", name="speech", parent="research"),
        BATCH,
    )
    seen = snapshot(
        node("n", 4),
        claims=[claim("owed", role(2), queue="vision")],
        running=[running("sibling", {"n": [0, 1]}, queue="speech"), lent("outside", 2, 3)],
        queues=queues,
    )

    assert stopped(decide(seen)) == ["outside"]


def test_a_cap_above_both_that_a_borrower_fills_is_no_excuse() -> None:
    top = QueueSnapshot(uid="top", name="top", entitlements={NPU: ChipQuota(cap=4)})
    seen = snapshot(
        node("n", 8),
        claims=[claim("owed", role(2))],
        running=[lent("a", 0, 1), lent("b", 2, 3, priority=1)],
        queues=(top, replace(RESEARCH, parent="top"), replace(BATCH, parent="top")),
    )

    assert stopped(decide(seen)) == ["a"]


def test_borrowers_give_back_what_only_a_reserve_could_replace() -> None:
    """There are free cards, but somebody reserved them."""
    lab = QueueSnapshot(
        uid="lab", name="lab", entitlements={NPU: ChipQuota(reserved=2, guaranteed=2)}
    )
    seen = snapshot(
        node("n", 4),
        claims=[claim("owed", role(2))],
        running=[lent("a", 0), lent("b", 1)],
        queues=(RESEARCH, BATCH, lab),
    )

    assert stopped(decide(seen)) == ["a", "b"]


# -- Whom --


@pytest.mark.parametrize(
    ("spared", "taken"),
    [
        ({"priority": 1}, {"priority": 0}),
        ({"saved": hours(1)}, {"saved": timedelta(minutes=1)}),
        ({"saved": None, "since": hours(3)}, {"saved": None, "since": hours(2)}),
        (
            {"saved": timedelta(0), "since": hours(3)},
            {"saved": timedelta(0), "since": hours(2)},
        ),
    ],
    ids=[
        "the lower priority",
        "the least lost",
        "the least lost without a checkpoint",
        "the youngest",
    ],
)
@pytest.mark.parametrize("names", ["ab", "ba"])
def test_of_two_borrowers_one_goes_before_the_other(
    spared: dict[str, object], taken: dict[str, object], names: str
) -> None:
    seen = borrowed(lent(names[0], 0, 1, **spared), lent(names[1], 2, 3, **taken))

    assert stopped(decide(seen)) == [names[1]]


def test_what_cannot_save_and_go_on_later_is_not_stopped() -> None:
    seen = borrowed(lent("a", 0, 1, preemptible=False), lent("b", 2, 3, priority=9))

    assert stopped(decide(seen)) == ["b"]


def test_victims_are_whole_claims() -> None:
    gang = running("gang", {"n": [0, 1], "m": [0, 1]}, queue="batch")
    seen = snapshot(
        node("m", 2),
        node("n", 2),
        claims=[claim("owed", role(1))],
        running=[gang],
        queues=(RESEARCH, BATCH),
    )

    assert stopped(decide(seen)) == ["gang"]


def test_the_node_where_the_least_is_lost_is_cleared() -> None:
    at_work = (
        running("a1", {"a": [0, 1]}, queue="batch", saved=timedelta(minutes=1)),
        running("a2", {"a": [2, 3]}, queue="batch", saved=hours(2)),
        running("b1", {"b": [0, 1]}, queue="batch", saved=timedelta(minutes=20)),
        running("b2", {"b": [2, 3]}, queue="batch", saved=timedelta(minutes=20)),
    )
    seen = snapshot(
        node("a", 4),
        node("b", 4),
        claims=[claim("owed", role(4))],
        running=at_work,
        queues=(RESEARCH, BATCH),
    )

    assert stopped(decide(seen)) == ["b1", "b2"]


def test_a_gang_clears_one_domain_that_can_hold_it() -> None:
    nodes = [node(f"{leaf}{place}", 2, domains={"leaf": leaf}) for leaf in "xy" for place in "12"]
    at_work = [
        running(f"on-{each.uid}", {each.uid: [0, 1]}, queue="batch", priority=priority)
        for each, priority in zip(nodes, (0, 5, 1, 1), strict=True)
    ]
    seen = snapshot(
        *nodes,
        claims=[claim("owed", role(2, 2), within="leaf")],
        running=at_work,
        queues=(RESEARCH, BATCH),
    )

    assert stopped(decide(seen)) == ["on-y1", "on-y2"]


def test_what_stops_already_is_waited_for_before_anybody_else_is_stopped() -> None:
    draining = replace(lent("a", 0, 1), revoking=True)
    decided = decide(borrowed(draining, lent("b", 2, 3)))

    assert decided.revocations == ()
    assert [(one.claim, one.starts_at) for one in decided.reservations] == [("owed", AT)]


def test_two_claims_that_are_owed_cards_take_back_different_ones() -> None:
    seen = borrowed(lent("a", 0, 1), lent("b", 2, 3))
    both = replace(seen, claims=(*seen.claims, claim("also", role(2), minute=1)))

    decided = decide(both)

    assert {(one.claim, one.beneficiary) for one in decided.revocations} == {
        ("a", "owed"),
        ("b", "also"),
    }


def test_no_more_is_taken_back_than_the_guarantee() -> None:
    at_work = [lent(f"b{card}", card) for card in range(4)]
    seen = snapshot(
        node("n", 4),
        claims=[claim(f"owed{turn}", minute=turn) for turn in range(4)],
        running=at_work,
        queues=(guaranteed("research", 2), BATCH),
    )

    assert {one.beneficiary for one in decide(seen).revocations} == {"owed0", "owed1"}


def test_a_cycle_stops_others_for_no_more_claims_than_its_policy_says() -> None:
    at_work = [lent(f"b{card}", card) for card in range(4)]
    seen = snapshot(
        node("n", 4),
        claims=[claim(f"owed{turn}", minute=turn) for turn in range(4)],
        running=at_work,
        queues=(RESEARCH, BATCH),
    )

    assert len(decide(seen, SchedulingPolicy(reclaims_per_cycle=3)).revocations) == 3


def test_several_replicas_may_be_cleared_on_one_node() -> None:
    at_work = [lent(f"b{card}", card) for card in range(4)]
    seen = borrowed(*at_work)
    gang = replace(seen, claims=(claim("gang", role(2, 2)),))

    assert stopped(decide(gang)) == ["b0", "b1", "b2", "b3"]


def test_cards_that_do_not_hang_together_are_not_enough() -> None:
    """Two free cards and two that would be freed first lie in two rings."""
    at_work = [
        running(f"b{card}", {"n": [card]}, queue="batch", priority=priority)
        for card, priority in ((0, 3), (1, 3), (4, 0), (5, 0), (6, 9), (7, 9))
    ]
    seen = snapshot(
        node("n", 8, geometry=RINGS),
        claims=[claim("owed", role(4))],
        running=at_work,
        queues=(RESEARCH, BATCH),
    )

    assert stopped(decide(seen)) == ["b0", "b1"]


def test_what_a_promised_claim_does_not_need_stays_for_others() -> None:
    seen = snapshot(
        node("n", 4),
        claims=(claim("owed", role(2)), claim("small", queue="batch", minute=1)),
        running=[lent("a", 0), lent("b", 1)],
        queues=(RESEARCH, BATCH),
    )
    tight = replace(seen, claims=(claim("owed", role(3)), *seen.claims[1:]))

    assert [one.claim for one in decide(seen).placements] == ["owed"]
    decided = decide(tight)
    assert len(decided.revocations) == 1
    # Two are free, and both are kept for the claim that gets a third.
    assert decided.placements == ()


def test_nobody_is_stopped_in_vain() -> None:
    """Even with all of it gone, four cards do not make five."""
    assert decide(borrowed(lent("a", 0, 1, 2, 3), wanted=5)).revocations == ()


@pytest.mark.parametrize(
    "wanted",
    [(role(4, memory=500),), (role(2, name="a", memory=40), role(2, name="b", memory=40))],
    ids=["one role", "two roles together"],
)
def test_the_only_leaf_that_could_hold_it_is_found_among_many(
    wanted: tuple[RoleShape, ...],
) -> None:
    """It is the one with the most to lose, and all are full."""
    many = 2 * MOST_REGIONS
    nodes = [
        node(f"n{place}", 4, memory=1000 if place == many else 64, domains={"leaf": f"l{place}"})
        for place in range(many + 1)
    ]
    work = [
        running(f"r{place}", {f"n{place}": range(4)}, queue="batch", saved=hours(place / 10))
        for place in range(many + 1)
    ]
    seen = snapshot(
        *nodes,
        claims=[claim("owed", *wanted, within="leaf")],
        running=work,
        queues=(RESEARCH, BATCH),
    )
    assert stopped(decide(seen)) == [f"r{many}"]


def test_a_gang_of_unequal_roles_gets_what_it_is_guaranteed() -> None:
    """One replica of a whole node and four small ones: two nodes, not five."""
    owner = QueueSnapshot(uid="owner", name="owner", entitlements={NPU: ChipQuota(guaranteed=16)})
    gang = claim("x", role(8, 1, name="large"), role(1, 4, name="small"), queue="owner")
    seen = snapshot(
        node("a"),
        node("b"),
        claims=[gang],
        running=[running(f"r{each}", {each: range(8)}, queue="batch") for each in "ab"],
        queues=[owner, QueueSnapshot(uid="batch", name="batch")],
    )

    assert {each.claim for each in plan_cycle(seen, SchedulingPolicy(), AT).revocations} == {
        "ra",
        "rb",
    }
