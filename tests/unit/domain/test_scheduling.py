"""The scheduler as a pure function: what must hold for every fleet and every queue of claims."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import GangShape, RoleShape
from controlplane.domain.resources import GIB, Bytes, Millicpu, Resources
from controlplane.domain.scheduling.cycle import Policy, plan
from controlplane.domain.scheduling.plans import Placement, Plan, RefusalCode
from controlplane.domain.scheduling.snapshots import (
    CardView,
    ClaimView,
    NodeView,
    QueueView,
    Snapshot,
)

AT = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
CHIPS = ("ascend-910b3", "nvidia-h800")
QUEUES = ("research", "product")


def node(
    name: str,
    cards: int,
    *,
    chip: str = CHIPS[0],
    memory: int = 64,
    busy: int = 0,
    schedulable: bool = True,
    cluster: str = "c1",
) -> NodeView:
    """``memory`` in GiB; the first ``busy`` cards are held."""
    return NodeView(
        uid=name,
        name=name,
        cluster=cluster,
        cards=tuple(
            CardView(
                uid=f"{name}/{index}",
                index=index,
                chip=chip,
                state=CardState.USABLE,
                held_by="somebody" if index < busy else None,
            )
            for index in range(cards)
        ),
        capacity=Resources(cpu=Millicpu(64_000), memory=Bytes(memory * GIB)),
        schedulable=schedulable,
    )


def claim(
    name: str,
    cards: int = 1,
    *,
    replicas: int = 1,
    memory: int = 0,
    chips: tuple[str, ...] = CHIPS[:1],
    priority: int = 0,
    minute: int = 0,
) -> ClaimView:
    limits = Resources(memory=Bytes(memory * GIB))
    role = RoleShape(name="trainer", replicas=replicas, cards=cards, limits=limits)
    return ClaimView(
        uid=name,
        queue="research",
        shape=GangShape(roles=(role,)),
        chips=chips,
        priority=priority,
        created_at=AT + timedelta(minutes=minute),
    )


def snapshot(
    *nodes: NodeView, claims: tuple[ClaimView, ...], queue: QueueView | None = None
) -> Snapshot:
    research = queue or QueueView(uid="research", name="research")
    return Snapshot(nodes=nodes, claims=claims, queues={"research": research})


def decide(seen: Snapshot, policy: Policy | None = None) -> Plan:
    return plan(seen, policy or Policy(), AT)


CARDS = st.builds(
    lambda chip, state, held: (chip, state, held),
    st.sampled_from(CHIPS),
    st.sampled_from([CardState.USABLE] * 4 + list(CardState)),
    st.sampled_from([None, None, None, "held"]),
)


@st.composite
def nodes(draw: st.DrawFn, index: int) -> NodeView:
    cards = draw(st.lists(CARDS, max_size=8))
    return NodeView(
        uid=f"node-{index}",
        name=f"node-{index}",
        cluster=draw(st.sampled_from(["c1", "c2"])),
        cards=tuple(
            CardView(uid=f"{index}/{slot}", index=slot, chip=chip, state=state, held_by=held)
            for slot, (chip, state, held) in enumerate(cards)
        ),
        capacity=Resources(memory=Bytes(draw(st.integers(0, 64)) * GIB)),
        promised=Resources(memory=Bytes(draw(st.integers(0, 8)) * GIB)),
        schedulable=draw(st.sampled_from([True, True, True, False])),
    )


@st.composite
def claims(draw: st.DrawFn, index: int) -> ClaimView:
    roles = draw(
        st.lists(
            st.builds(
                lambda replicas, cards, memory: (replicas, cards, memory),
                st.integers(1, 3),
                st.integers(0, 4),
                st.integers(0, 24),
            ),
            min_size=1,
            max_size=2,
        )
    )
    chips = draw(st.permutations(CHIPS))
    return ClaimView(
        uid=f"claim-{index}",
        queue=draw(st.sampled_from(QUEUES)),
        shape=GangShape(
            roles=tuple(
                RoleShape(
                    name=f"role-{number}",
                    replicas=replicas,
                    cards=cards,
                    limits=Resources(memory=Bytes(memory * GIB)),
                )
                for number, (replicas, cards, memory) in enumerate(roles)
            )
        ),
        chips=tuple(chips[: draw(st.integers(1, 2))]),
        priority=draw(st.integers(0, 3)),
        created_at=AT + timedelta(minutes=draw(st.integers(0, 5))),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> Snapshot:
    queues = {
        uid: QueueView(
            uid=uid,
            name=uid,
            caps=draw(st.dictionaries(st.sampled_from(CHIPS), st.integers(0, 12))),
            used=draw(st.dictionaries(st.sampled_from(CHIPS), st.integers(0, 4))),
            open=draw(st.sampled_from([True, True, True, False])),
        )
        for uid in QUEUES
    }
    return Snapshot(
        nodes=tuple(draw(nodes(index)) for index in range(draw(st.integers(0, 4)))),
        claims=tuple(draw(claims(index)) for index in range(draw(st.integers(0, 8)))),
        queues=queues,
    )


def by_uid(seen: Snapshot) -> dict[str, ClaimView]:
    return {one.uid: one for one in seen.claims}


@given(snapshots())
@settings(max_examples=300, deadline=None)
def test_no_card_is_given_twice_and_only_free_cards_of_schedulable_nodes(seen: Snapshot) -> None:
    free = {
        card.uid: (one.uid, card.chip)
        for one in seen.nodes
        if one.schedulable
        for card in one.cards
        if card.free
    }
    given_cards: list[str] = []
    for placement in decide(seen).placements:
        for replica in placement.replicas:
            for card in replica.cards:
                assert free[card] == (replica.node, placement.chip)
                given_cards.append(card)

    assert len(given_cards) == len(set(given_cards))


@given(snapshots())
@settings(max_examples=300, deadline=None)
def test_every_claim_is_placed_whole_or_refused_with_a_reason(seen: Snapshot) -> None:
    decided = decide(seen)
    wanted = by_uid(seen)

    placed, refused = decided.placements, decided.refusals
    answered = [one.claim for one in placed] + [one.claim for one in refused]
    assert sorted(answered) == sorted(wanted)
    for placement in decided.placements:
        shape = wanted[placement.claim].shape
        members = [
            (role.name, index, role.cards) for role in shape.roles for index in range(role.replicas)
        ]
        got = [(one.role, one.index, len(one.cards)) for one in placement.replicas]
        assert got == members
        assert placement.chip in wanted[placement.claim].chips
        assert placement.reason
    for refusal in decided.refusals:
        assert refusal.reason


@given(snapshots())
@settings(max_examples=300, deadline=None)
def test_a_gang_runs_in_one_cluster(seen: Snapshot) -> None:
    clusters = {one.uid: one.cluster for one in seen.nodes}
    for placement in decide(seen).placements:
        assert len({clusters[replica.node] for replica in placement.replicas}) == 1


def test_a_gang_goes_to_the_first_cluster_that_has_room_for_all_of_it() -> None:
    seen = snapshot(
        node("a", 4, cluster="east"),
        node("b", 4, cluster="west"),
        node("c", 4, cluster="west"),
        claims=(claim("gang", 4, replicas=2), claim("single", 4, minute=1)),
    )
    gang, single = decide(seen).placements
    assert [replica.node for replica in gang.replicas] == ["b", "c"]
    assert [replica.node for replica in single.replicas] == ["a"]


@given(snapshots())
@settings(max_examples=300, deadline=None)
def test_caps_and_memory_hold_and_closed_queues_admit_nothing(seen: Snapshot) -> None:
    wanted = by_uid(seen)
    held = {uid: Counter(queue.used) for uid, queue in seen.queues.items()}
    promised = {one.uid: one.promised.memory for one in seen.nodes}
    for placement in decide(seen).placements:
        view = wanted[placement.claim]
        assert seen.queues[view.queue].open
        held[view.queue][placement.chip] += view.shape.cards
        cap = seen.queues[view.queue].caps.get(placement.chip)
        assert cap is None or held[view.queue][placement.chip] <= cap
        for replica in placement.replicas:
            memory = view.shape.limits[replica.role].memory
            promised[replica.node] = Bytes(promised[replica.node] + memory)
            room = next(one for one in seen.nodes if one.uid == replica.node).capacity.memory
            assert not memory or promised[replica.node] <= room


@given(snapshots())
@settings(max_examples=150, deadline=None)
def test_the_same_snapshot_gives_the_same_plan_and_is_left_as_it_was(seen: Snapshot) -> None:
    before = repr(seen)
    first = decide(seen)

    assert decide(seen) == first
    assert repr(seen) == before
    shuffled = replace(seen, claims=tuple(reversed(seen.claims)))
    assert decide(shuffled) == first


@given(snapshots())
@settings(max_examples=150, deadline=None)
def test_a_refused_claim_leaves_no_trace(seen: Snapshot) -> None:
    """What a gang took before it turned out not to fit is given back, whole."""
    decided = decide(seen)
    refused = {one.claim for one in decided.refusals}

    without = replace(seen, claims=tuple(one for one in seen.claims if one.uid not in refused))

    assert decide(without).placements == decided.placements


@given(snapshots(), st.integers(0, 4))
@settings(max_examples=100, deadline=None)
def test_a_cycle_places_no_more_than_its_policy_allows(seen: Snapshot, most: int) -> None:
    everything = decide(seen).placements
    limited = decide(seen, Policy(placements_per_cycle=most)).placements

    assert limited == everything[:most]


@given(snapshots())
@settings(max_examples=150, deadline=None)
def test_numbers_of_a_refusal_stand_in_its_words(seen: Snapshot) -> None:
    for refusal in decide(seen).refusals:
        if refusal.code in (RefusalCode.QUEUE_CAP, RefusalCode.NEVER_FITS):
            assert all(str(number) in refusal.reason for number in refusal.numbers.values())
        if refusal.code is RefusalCode.NO_FREE_CARDS:
            numbers = refusal.numbers
            assert f"{numbers['free']} of {numbers['total']} are free" in refusal.reason
            assert f"at most {numbers['best_node']} on one node" in refusal.reason


def chosen(decided: Plan) -> dict[str, list[tuple[str, ...]]]:
    return {one.claim: [replica.cards for replica in one.replicas] for one in decided.placements}


def only_refusal(seen: Snapshot) -> tuple[RefusalCode, str]:
    (refusal,) = decide(seen).refusals
    return refusal.code, refusal.reason


def test_the_first_node_by_name_with_room_is_taken() -> None:
    seen = snapshot(node("a", 2, busy=2), node("b", 4), node("c", 4), claims=(claim("x", 3),))

    assert chosen(decide(seen)) == {"x": [("b/0", "b/1", "b/2")]}


def test_a_gang_spreads_over_nodes_and_each_replica_stays_on_one() -> None:
    seen = snapshot(node("a", 3), node("b", 2), claims=(claim("x", 2, replicas=2),))

    assert chosen(decide(seen)) == {"x": [("a/0", "a/1"), ("b/0", "b/1")]}


def test_the_preferred_chip_is_taken_and_the_next_where_it_is_busy() -> None:
    seen = snapshot(
        node("a", 1, chip=CHIPS[0]),
        node("b", 1, chip=CHIPS[1]),
        claims=(claim("x", chips=CHIPS), claim("y", chips=CHIPS, minute=1)),
    )

    assert {one.claim: one.chip for one in decide(seen).placements} == {
        "x": CHIPS[0],
        "y": CHIPS[1],
    }


def test_priority_goes_before_age_and_age_before_the_name() -> None:
    waiting = (
        claim("old", minute=0),
        claim("urgent", priority=1, minute=9),
        claim("b", minute=5),
        claim("a", minute=5),
    )
    seen = snapshot(node("n", 4), claims=waiting)

    assert [one.claim for one in decide(seen).placements] == ["urgent", "old", "a", "b"]


def test_a_smaller_claim_passes_one_that_does_not_fit_now() -> None:
    seen = snapshot(node("n", 2, busy=1), claims=(claim("large", 2), claim("small", 1, minute=1)))

    decided = decide(seen)

    assert [one.claim for one in decided.placements] == ["small"]
    assert [one.claim for one in decided.refusals] == ["large"]


@pytest.mark.parametrize(
    ("seen", "code", "reason"),
    [
        (
            snapshot(node("n", 4, busy=3), claims=(claim("x", 2),)),
            RefusalCode.NO_FREE_CARDS,
            "needs 1 × 2 cards of ascend-910b3; 1 of 4 are free, at most 1 on one node",
        ),
        (
            snapshot(node("a", 4, busy=0), node("b", 2), claims=(claim("x", 3, replicas=2),)),
            RefusalCode.NO_FREE_CARDS,
            "needs 2 × 3 cards of ascend-910b3; 6 of 6 are free, at most 4 on one node",
        ),
        (
            snapshot(node("n", 4), claims=(claim("x", 8),)),
            RefusalCode.NEVER_FITS,
            "needs 8 × ascend-910b3 on one node; the largest node has 4",
        ),
        (
            snapshot(node("n", 4, chip="nvidia-h800"), claims=(claim("x"),)),
            RefusalCode.NO_SUCH_CHIP,
            "needs ascend-910b3; the fleet has only nvidia-h800",
        ),
        (
            snapshot(claims=(claim("x"),)),
            RefusalCode.NO_SUCH_CHIP,
            "needs ascend-910b3; the fleet has only no cards at all",
        ),
        (
            snapshot(
                node("a", 2, memory=8),
                node("b", 2, memory=100, busy=2),
                node("c", 2, memory=200, schedulable=False),
                claims=(claim("x", memory=16),),
            ),
            RefusalCode.NO_MEMORY,
            "needs 16.0 GiB of memory on one node; the most that is free is 8.0 GiB",
        ),
        (
            snapshot(
                node("n", 4),
                claims=(claim("x", 3),),
                queue=QueueView(
                    uid="research", name="research", caps={CHIPS[0]: 4}, used={CHIPS[0]: 2}
                ),
            ),
            RefusalCode.QUEUE_CAP,
            "needs 3 × ascend-910b3; queue research holds 2 of at most 4",
        ),
        (
            snapshot(
                node("n", 4),
                claims=(claim("x"),),
                queue=QueueView(uid="research", name="research", open=False),
            ),
            RefusalCode.QUEUE_CLOSED,
            "queue research is closed; it admits nothing until it is opened",
        ),
    ],
    ids=[
        "busy",
        "fragmented",
        "too large",
        "another chip",
        "an empty fleet",
        "memory",
        "cap",
        "closed",
    ],
)
def test_each_refusal_says_what_stands_in_the_way(
    seen: Snapshot, code: RefusalCode, reason: str
) -> None:
    assert only_refusal(seen) == (code, reason)


def test_a_claim_that_asks_for_no_memory_fits_where_none_is_left() -> None:
    full = replace(node("n", 1, memory=1), promised=Resources(memory=Bytes(2 * GIB)))

    assert [one.claim for one in decide(snapshot(full, claims=(claim("x"),))).placements] == ["x"]


def test_a_claim_without_cards_has_a_place_too() -> None:
    (placement,) = decide(snapshot(node("n", 0), claims=(claim("x", 0),))).placements

    assert isinstance(placement, Placement)
    assert [(one.node, one.cards) for one in placement.replicas] == [("n", ())]


def test_a_claim_that_accepts_no_chip_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="claim x accepts no chip"):
        decide(snapshot(node("n", 1), claims=(claim("x", chips=()),)))
