"""Who has to stop for whom: only borrowers and the less urgent, as few as will do, and found by trying."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from controlplane.domain.claims import RoleShape
from controlplane.domain.quotas import Entitlement, QueueTree
from controlplane.domain.scheduling.cycle import plan
from controlplane.domain.scheduling.explain import cards_of
from controlplane.domain.scheduling.fleet import Fleet
from controlplane.domain.scheduling.placement import Placer
from controlplane.domain.scheduling.plans import Plan, RefusalCode
from controlplane.domain.scheduling.policies import Policy
from controlplane.domain.scheduling.preemption import MOST_REGIONS, Preemptor
from controlplane.domain.scheduling.snapshots import ClaimView, QueueView, RunningView, Snapshot
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

BATCH = QueueView(uid="batch", name="batch")


def guaranteed(name: str, cards: int, **kwargs: object) -> QueueView:
    view = QueueView(uid=name, name=name, entitlements={NPU: Entitlement(guaranteed=cards)})
    return replace(view, **kwargs)  # type: ignore[arg-type]


RESEARCH = guaranteed("research", 8)


def decide(seen: Snapshot, policy: Policy | None = None) -> Plan:
    return plan(seen, policy or Policy(), AT)


def stopped(decided: Plan) -> list[str]:
    return sorted(one.claim for one in decided.revocations)


def borrowed(*at_work: RunningView, wants: int = 2, queues: tuple[QueueView, ...] = ()) -> Snapshot:
    """One node of four cards, all lent to others; research, which is guaranteed eight, wants some."""
    return snapshot(
        node("n", 4),
        claims=[claim("owed", role(wants))],
        running=at_work,
        queues=(RESEARCH, BATCH, *queues),
    )


def lent(name: str, *cards: int, **kwargs: object) -> RunningView:
    return running(name, {"n": cards}, queue="batch", **kwargs)  # type: ignore[arg-type]


# -- Reclaim --


def test_a_claim_within_its_guarantee_takes_back_what_others_borrowed() -> None:
    decided = decide(borrowed(lent("a", 0, 1), lent("b", 2, 3, priority=1)))

    (revocation,) = decided.revocations
    assert (revocation.claim, revocation.beneficiary) == ("a", "owed")
    assert revocation.reason == (
        f"queue batch holds more than its 0 × {NPU}; queue research takes back what it is guaranteed"
    )
    (refusal,) = decided.refusals
    assert refusal.code is RefusalCode.AWAITS_CARDS
    assert refusal.reason == f"awaits 2 × {NPU} of claims that were told to stop for it: 1"
    assert [(one.claim, one.nodes) for one in decided.reservations] == [("owed", ("n",))]


def test_a_claim_beyond_its_guarantee_takes_nothing_back() -> None:
    seen = borrowed(lent("a", 0, 1, 2, 3), wants=4)
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

    assert decide(seen, Policy(preemption=False)).revocations == ()


def test_a_queue_within_its_guarantee_is_left_alone() -> None:
    product = running("steady", {"n": [0, 1, 2, 3]}, queue="product")

    decided = decide(borrowed(product, queues=(guaranteed("product", 4),)))

    assert decided.revocations == ()


def test_a_queue_is_left_alone_as_soon_as_it_is_back_within_its_guarantee() -> None:
    at_work = [running(f"p{card}", {"n": [card]}, queue="product") for card in range(4)]

    decided = decide(borrowed(*at_work, wants=2, queues=(guaranteed("product", 3),)))

    assert decided.revocations == ()
    assert (
        len(decide(borrowed(*at_work, wants=1, queues=(guaranteed("product", 3),))).revocations)
        == 1
    )


def test_a_guarantee_of_a_queue_above_takes_back_from_outside_only() -> None:
    queues = (
        guaranteed("research", 4),
        QueueView(uid="vision", name="vision", parent="research"),
        QueueView(uid="speech", name="speech", parent="research"),
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
    top = QueueView(uid="top", name="top", entitlements={NPU: Entitlement(cap=4)})
    seen = snapshot(
        node("n", 8),
        claims=[claim("owed", role(2))],
        running=[lent("a", 0, 1), lent("b", 2, 3, priority=1)],
        queues=(top, replace(RESEARCH, parent="top"), replace(BATCH, parent="top")),
    )

    assert stopped(decide(seen)) == ["a"]


def test_borrowers_give_back_what_only_a_reserve_could_replace() -> None:
    """There are free cards, but somebody reserved them."""
    lab = QueueView(
        uid="lab", name="lab", entitlements={NPU: Entitlement(reserved=2, guaranteed=2)}
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

    assert len(decide(seen, Policy(reclaims_per_cycle=3)).revocations) == 3


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
    assert decide(borrowed(lent("a", 0, 1, 2, 3), wants=5)).revocations == ()


# -- Preemption --


def test_an_urgent_claim_takes_the_place_of_a_less_urgent_one_of_its_queue() -> None:
    seen = snapshot(
        node("n", 4),
        claims=[claim("urgent", role(2), priority=5)],
        running=[
            running("low", {"n": [0, 1]}, priority=1),
            running("high", {"n": [2, 3]}, priority=5),
        ],
    )

    (revocation,) = decide(seen).revocations

    assert revocation.claim == "low"
    assert revocation.reason == (
        "makes room for a claim of priority 5 in the same queue; its own is 1"
    )


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


def test_priority_gives_no_right_to_the_cards_of_another_queue() -> None:
    seen = snapshot(
        node("n", 4),
        claims=[claim("urgent", role(2), priority=5)],
        running=[lent("other", 0, 1, 2, 3)],
        queues=(QueueView(uid="research", name="research"), BATCH),
    )

    assert decide(seen).revocations == ()


def test_a_queue_may_forbid_preemption() -> None:
    seen = snapshot(
        node("n", 4),
        claims=[claim("urgent", priority=5)],
        running=[running("low", {"n": [0, 1, 2, 3]})],
        queues=[QueueView(uid="research", name="research", preempts=False)],
    )

    assert decide(seen).revocations == ()


def test_an_urgent_claim_makes_room_below_its_queues_cap() -> None:
    capped = QueueView(uid="research", name="research", entitlements={NPU: Entitlement(cap=4)})
    seen = snapshot(
        node("n", 8),
        claims=[claim("urgent", role(2), priority=5)],
        running=[running("low", {"n": [0, 1]}), running("high", {"n": [2, 3]}, priority=5)],
        queues=[capped],
    )

    assert stopped(decide(seen)) == ["low"]


def test_borrowers_go_before_the_less_urgent_of_the_own_queue() -> None:
    seen = snapshot(
        node("n", 4),
        claims=[claim("urgent", role(2), priority=5)],
        running=[running("own", {"n": [0, 1]}), lent("borrower", 2, 3, priority=9)],
        queues=(RESEARCH, BATCH),
    )

    assert stopped(decide(seen)) == ["borrower"]


# -- Whatever runs --

PIECES = st.sampled_from([(4,), (2, 2), (1, 3), (3,), (1, 1, 2), (1, 1, 1, 1), (2, 1)])


@st.composite
def fleets(draw: st.DrawFn) -> Snapshot:
    """Three nodes, nearly full, mostly of what others borrowed; one claim that research wants to run."""
    at_work = []
    for place in range(3):
        first = 0
        for number, size in enumerate(draw(PIECES)):
            at_work.append(
                running(
                    f"r{place}{number}",
                    {f"n{place}": range(first, first + size)},
                    queue=draw(st.sampled_from(["batch", "batch", "product", "research"])),
                    priority=draw(st.integers(0, 2)),
                    preemptible=draw(st.sampled_from([True, True, True, False])),
                    saved=timedelta(minutes=draw(st.integers(0, 90))),
                )
            )
            first += size
    wants = claim(
        "owed",
        role(draw(st.integers(1, 4)), draw(st.integers(1, 2))),
        priority=draw(st.integers(0, 2)),
    )
    return snapshot(
        *(node(f"n{place}", 4) for place in range(3)),
        claims=[wants],
        running=at_work,
        queues=(
            guaranteed("research", draw(st.integers(4, 12))),
            guaranteed("product", draw(st.integers(0, 6))),
            BATCH,
        ),
    )


def fits_without(seen: Snapshot, waiting: ClaimView, gone: set[str]) -> bool:
    """By the definitions: the queue may have it, and the fleet has room for it."""
    fleet, tree = Fleet(seen), tree_of(seen)
    for view in seen.running:
        if view.uid in gone:
            fleet.free(view)
            tree.charge(view.queue, view.chip, -cards_of(view.replicas))
    if tree.room(waiting.queue, NPU, waiting.shape.cards).shortage is not None:
        return False
    return Placer(fleet).place(waiting, NPU) is not None


def tree_of(seen: Snapshot) -> QueueTree:
    free = sum(card.free for each in seen.nodes for card in each.cards)
    return QueueTree(seen.queues, free={NPU: free})


@given(fleets())
@settings(max_examples=120, deadline=None)
def test_every_victim_is_needed_and_nobody_within_a_guarantee_is_one(seen: Snapshot) -> None:
    (waiting,) = seen.claims
    decided = decide(seen)
    gone = {one.claim for one in decided.revocations}
    assume(gone)

    assert fits_without(seen, waiting, gone)
    for one in gone:
        assert not fits_without(seen, waiting, gone - {one})
    tree, views = tree_of(seen), {view.uid: view for view in seen.running}
    covered_by = tree.room(waiting.queue, NPU, waiting.shape.cards).covered_by
    for one in gone:
        view = views[one]
        assert view.preemptible
        if view.queue == waiting.queue:
            assert view.priority < waiting.priority
        else:
            assert covered_by == "research"
            held = seen.queues[view.queue].used[NPU]
            assert held > seen.queues[view.queue].entitlements.get(NPU, Entitlement()).guaranteed


@given(fleets())
@settings(max_examples=120, deadline=None)
def test_whoever_is_owed_cards_that_borrowers_hold_gets_them_in_one_round(seen: Snapshot) -> None:
    """If it fits with every borrower of no right at all gone, it is placed or promised cards."""
    (waiting,) = seen.claims
    covered = tree_of(seen).room(waiting.queue, NPU, waiting.shape.cards).covered_by
    assume(covered == "research")
    lenders = {view.uid for view in seen.running if view.queue == "batch" and view.preemptible}
    assume(fits_without(seen, waiting, lenders))

    decided = decide(seen)

    assert decided.placements or decided.revocations


@given(fleets())
@settings(max_examples=60, deadline=None)
def test_the_search_leaves_fleet_and_tree_as_they_were(seen: Snapshot) -> None:
    (waiting,) = seen.claims
    fleet, tree = Fleet(seen), tree_of(seen)
    preemptor = Preemptor(fleet=fleet, placer=Placer(fleet), tree=tree, running=seen.running, at=AT)
    before = [tree.room(name, NPU, 4) for name in seen.queues], fleet.state.tolist()

    preemptor.make_room(waiting, NPU, avoid=None)

    assert ([tree.room(name, NPU, 4) for name in seen.queues], fleet.state.tolist()) == before
    assert fleet.mark() == 0


def test_a_gang_of_unequal_roles_gets_what_it_is_guaranteed() -> None:
    """One replica of a whole node and four small ones: two nodes, not five."""
    owner = QueueView(uid="owner", name="owner", entitlements={NPU: Entitlement(guaranteed=16)})
    gang = claim("x", role(8, 1, name="large"), role(1, 4, name="small"), queue="owner")
    seen = snapshot(
        node("a"),
        node("b"),
        claims=[gang],
        running=[running(f"r{each}", {each: range(8)}, queue="batch") for each in "ab"],
        queues=[owner, QueueView(uid="batch", name="batch")],
    )

    assert {each.claim for each in plan(seen, Policy(), AT).revocations} == {"ra", "rb"}
