"""The whole cycle as a pure function: what must hold for every fleet and every queue of claims."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import GIB, Bytes, Resources
from controlplane.domain.quotas.claims import GangShape, RoleShape
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.snapshots import (
    CardSnapshot,
    ClaimSnapshot,
    NodeSnapshot,
    SchedulingSnapshot,
)
from tests.properties import examples
from tests.unit.domain.scheduling.decisions import (
    decide,
    placed,
    refused,
)
from tests.unit.domain.scheduling.fleets import (
    AT,
    GPU,
    NPU,
)

CHIPS = (NPU, GPU)


QUEUES = ("research", "product")


CARDS = st.tuples(
    st.sampled_from(CHIPS),
    st.sampled_from([CardState.USABLE] * 4 + list(CardState)),
    st.sampled_from([None, None, None, "held"]),
)


@st.composite
def nodes(draw: st.DrawFn, index: int) -> NodeSnapshot:
    cards = draw(st.lists(CARDS, max_size=8))
    return NodeSnapshot(
        uid=f"node-{index}",
        name=f"node-{index}",
        cluster=draw(st.sampled_from(["c1", "c2"])),
        cards=tuple(
            CardSnapshot(uid=f"{index}/{slot}", index=slot, chip=chip, state=state, held_by=held)
            for slot, (chip, state, held) in enumerate(cards)
        ),
        capacity=Resources(memory=Bytes(draw(st.integers(0, 64)) * GIB)),
        allocated=Resources(memory=Bytes(draw(st.integers(0, 8)) * GIB)),
        schedulable=draw(st.sampled_from([True, True, True, False])),
    )


@st.composite
def claims(draw: st.DrawFn, index: int) -> ClaimSnapshot:
    roles = draw(
        st.lists(
            st.tuples(st.integers(1, 3), st.integers(0, 4), st.integers(0, 24)),
            min_size=1,
            max_size=2,
        )
    )
    chips = draw(st.permutations(CHIPS))
    return ClaimSnapshot(
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
        equal_chips=draw(st.integers(1, 2)),
        priority=draw(st.integers(0, 3)),
        created_at=AT + timedelta(minutes=draw(st.integers(0, 5))),
    )


@st.composite
def snapshots(draw: st.DrawFn) -> SchedulingSnapshot:
    caps = st.builds(lambda cap: ChipQuota(cap=cap), st.integers(0, 12))
    queues = {
        uid: QueueSnapshot(
            uid=uid,
            name=uid,
            entitlements=draw(st.dictionaries(st.sampled_from(CHIPS), caps)),
            used=draw(st.dictionaries(st.sampled_from(CHIPS), st.integers(0, 4))),
            open=draw(st.sampled_from([True, True, True, False])),
        )
        for uid in QUEUES
    }
    return SchedulingSnapshot(
        nodes=tuple(draw(nodes(index)) for index in range(draw(st.integers(0, 4)))),
        claims=tuple(draw(claims(index)) for index in range(draw(st.integers(0, 8)))),
        queues=queues,
    )


def by_uid(seen: SchedulingSnapshot) -> dict[str, ClaimSnapshot]:
    return {one.uid: one for one in seen.claims}


@given(snapshots())
@settings(max_examples=examples(100))
def test_every_claim_is_placed_whole_on_free_cards_or_refused_with_a_reason(
    seen: SchedulingSnapshot,
) -> None:
    decided, wanted = decide(seen), by_uid(seen)
    free = {
        card.uid: (one.uid, card.chip)
        for one in seen.nodes
        if one.accepts_workloads
        for card in one.cards
        if card.free
    }
    clusters = {one.uid: one.cluster for one in seen.nodes}
    given_out: list[str] = []

    assert sorted([*placed(decided), *refused(decided)]) == sorted(wanted)
    for placement in decided.placements:
        shape = wanted[placement.claim].shape
        members = [(each.name, place) for each in shape.roles for place in range(each.replicas)]
        assert sorted((one.role, one.index) for one in placement.replicas) == sorted(members)
        assert placement.chip in wanted[placement.claim].chips
        assert len({clusters[one.node] for one in placement.replicas}) == 1
        sizes = {each.name: each.cards for each in shape.roles}
        for replica in placement.replicas:
            assert len(replica.cards) == replica.count == sizes[replica.role]
            assert all(free[card] == (replica.node, placement.chip) for card in replica.cards)
            given_out += replica.cards
    assert len(given_out) == len(set(given_out))
    assert all(one.reason for one in decided.placements)
    assert all(one.reason for one in decided.pending)


@given(snapshots())
@settings(max_examples=examples(100))
def test_caps_and_memory_hold_and_closed_queues_admit_nothing(seen: SchedulingSnapshot) -> None:
    wanted = by_uid(seen)
    held = {uid: Counter(queue.used) for uid, queue in seen.queues.items()}
    allocated = {one.uid: one.allocated.memory for one in seen.nodes}
    room = {one.uid: one.capacity.memory for one in seen.nodes}
    for placement in decide(seen).placements:
        view = wanted[placement.claim]
        queue = seen.queues[view.queue]
        assert queue.open
        held[view.queue][placement.chip] += view.shape.cards
        cap = queue.entitlements.get(placement.chip, ChipQuota()).cap
        # What asks for no cards takes nothing from its queue.
        assert cap is None or not view.shape.cards or held[view.queue][placement.chip] <= cap
        for replica in placement.replicas:
            memory = view.shape.limits[replica.role].memory
            allocated[replica.node] = Bytes(allocated[replica.node] + memory)
            assert not memory or allocated[replica.node] <= room[replica.node]


@given(snapshots(), st.randoms(use_true_random=False))
@settings(max_examples=examples(60))
def test_the_same_snapshot_gives_the_same_plan_and_is_left_as_it_was(
    seen: SchedulingSnapshot, chance: object
) -> None:
    before = repr(seen)
    first = decide(seen)

    assert decide(seen) == first
    assert repr(seen) == before
    mixed = list(seen.claims)
    chance.shuffle(mixed)  # type: ignore[attr-defined]
    queues = dict(reversed(list(seen.queues.items())))
    assert decide(replace(seen, claims=tuple(mixed), queues=queues)) == first


@given(snapshots(), st.integers(0, 4))
@settings(max_examples=examples(60))
def test_a_cycle_places_no_more_than_its_policy_allows(seen: SchedulingSnapshot, most: int) -> None:
    everything = decide(seen).placements
    limited = decide(seen, SchedulingPolicy(placements_per_cycle=most))

    assert limited.placements == everything[:most]
    left = len(seen.claims) - len(limited.placements)
    assert len(limited.pending) == left
