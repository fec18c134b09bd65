"""What people may rely on: guarantees within one round, no starvation, and the same plan for the same fleet."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.scheduling.cycle import plan_cycle
from controlplane.domain.scheduling.plans import PendingReasonCode, SchedulingPlan, SchedulingPolicy
from controlplane.domain.scheduling.snapshot_simulator import SnapshotSimulator
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot
from tests.properties import examples
from tests.unit.domain.scheduling.decisions import (
    decided,
)
from tests.unit.domain.scheduling.fleets import (
    AT,
    GPU,
    NPU,
    RINGS,
    claim,
    node,
    role,
    running,
    snapshot,
)


def played(timeline: SnapshotSimulator, found: SchedulingPlan) -> None:
    for placement in found.placements:
        timeline.start(placement, at=AT)
    for revocation in found.revocations:
        timeline.revoke(revocation)
    for each in timeline.running:
        if each.revoking:
            timeline.end(each.uid)


# -- Guarantees --


@st.composite
def borrowed(draw: st.DrawFn) -> SchedulingSnapshot:
    """A fleet that two queues have filled with single cards; a third asks for what it is guaranteed."""
    cards = 16
    guaranteed = draw(st.integers(1, 12))
    others = draw(st.integers(0, cards - guaranteed))
    queues = [
        QueueSnapshot(
            uid="owner", name="owner", entitlements={NPU: ChipQuota(guaranteed=guaranteed)}
        ),
        QueueSnapshot(uid="other", name="other", entitlements={NPU: ChipQuota(guaranteed=others)}),
        QueueSnapshot(uid="batch", name="batch"),
    ]
    holders = draw(
        st.lists(st.sampled_from(["other", "batch", "owner"]), min_size=cards, max_size=cards)
    )
    at_work = [
        running(
            f"r{place}",
            {f"n{place // 8}": (place % 8,)},
            queue=holder,
            priority=draw(st.integers(0, 2)),
            saved=timedelta(minutes=draw(st.integers(0, 60))),
        )
        for place, holder in enumerate(holders)
    ]
    asked = draw(st.lists(st.integers(1, 4), min_size=1, max_size=6))
    return snapshot(
        node("n0"),
        node("n1"),
        running=at_work,
        claims=[
            claim(f"c{place}", role(1, replicas), queue="owner", minute=place - 60)
            for place, replicas in enumerate(asked)
        ],
        queues=queues,
    )


@settings(max_examples=examples(80))
@given(seen=borrowed())
def test_a_guarantee_is_met_within_one_round(seen: SchedulingSnapshot) -> None:
    """Plan, let those stop that were told to, plan again: what was within the guarantee runs."""
    timeline = SnapshotSimulator(seen)
    held = seen.queues["owner"].used.get(NPU, 0)
    guaranteed = seen.queues["owner"].entitlements[NPU].guaranteed
    due = set()
    for each in seen.claims:
        held += each.shape.cards
        if held > guaranteed:
            break
        due.add(each.uid)
    played(timeline, decided(timeline.snapshot()))
    second = decided(timeline.snapshot())
    assert due <= {each.claim for each in second.placements}
    # And nobody was pushed below what they are guaranteed themselves.
    played(timeline, second)
    after = timeline.snapshot().queues["other"]
    before = seen.queues["other"].used.get(NPU, 0)
    assert after.used.get(NPU, 0) >= min(before, after.entitlements[NPU].guaranteed)


@settings(max_examples=examples(40))
@given(
    nodes=st.integers(1, 3),
    holders=st.sampled_from([1, 2, 4, 8]),
    sizes=st.lists(st.sampled_from([1, 2, 4, 8]), min_size=1, max_size=4),
)
def test_a_gang_of_any_roles_gets_within_one_round_what_it_is_guaranteed(
    nodes: int, holders: int, sizes: list[int]
) -> None:
    """All of the fleet is borrowed, by claims of one size; sizes in powers of two fit if their sum does."""
    roles = [role(size, name=f"r{place}") for place, size in enumerate(sizes)]
    assume(sum(sizes) <= 8 * nodes)
    owner = QueueSnapshot(
        uid="owner", name="owner", entitlements={NPU: ChipQuota(guaranteed=8 * nodes)}
    )
    timeline = SnapshotSimulator(
        snapshot(
            *(node(f"n{each}") for each in range(nodes)),
            running=[
                running(
                    f"b{each}-{first}", {f"n{each}": range(first, first + holders)}, queue="batch"
                )
                for each in range(nodes)
                for first in range(0, 8, holders)
            ],
            claims=[claim("gang", *roles, queue="owner")],
            queues=[owner, QueueSnapshot(uid="batch", name="batch")],
        )
    )
    played(timeline, decided(timeline.snapshot()))

    assert [each.claim for each in decided(timeline.snapshot()).placements] == ["gang"]


@settings(max_examples=examples(60))
@given(seen=borrowed())
def test_who_awaits_cards_sends_nobody_else_away(seen: SchedulingSnapshot) -> None:
    """However often the scheduler is asked until they have stopped."""
    timeline = SnapshotSimulator(seen)
    first = decided(seen)
    assume(first.revocations)
    for placement in first.placements:
        timeline.start(placement, at=AT)
    for revocation in first.revocations:
        timeline.revoke(revocation)
    served = {each.beneficiary for each in first.revocations}
    for _ in range(3):
        again = decided(timeline.snapshot())
        assert not served & {each.beneficiary for each in again.revocations}
        codes = {each.claim: each.code for each in again.pending}
        assert {codes[uid] for uid in served} == {PendingReasonCode.AWAITING_EVICTIONS}
        for revocation in again.revocations:
            timeline.revoke(revocation)
            served.add(revocation.beneficiary)


@settings(max_examples=examples(60))
@given(seen=borrowed())
def test_no_fewer_victims_would_do(seen: SchedulingSnapshot) -> None:
    """Without any one of those that stop for a claim of single cards, cards would be missing."""
    wanted = {each.uid: each.shape.cards for each in seen.claims}
    victims = Counter(each.beneficiary for each in decided(seen).revocations)
    assert all(count <= wanted[uid] for uid, count in victims.items())


def test_a_fleet_that_is_smaller_than_what_is_reserved_still_gives_what_it_has() -> None:
    """Half of the cards broke; what is left goes to whoever of the reserved comes first."""
    queues = [
        QueueSnapshot(uid=uid, name=uid, entitlements={NPU: ChipQuota(reserved=4, guaranteed=4)})
        for uid in ("one", "other")
    ]
    broken = node("n", 8, faulty=range(4))
    found = decided(snapshot(broken, claims=[claim("c", role(4), queue="other")], queues=queues))
    assert [each.claim for each in found.placements] == ["c"]


# -- No starvation --


@st.composite
def streams(draw: st.DrawFn) -> tuple[SchedulingSnapshot, list[tuple[int, int]]]:
    """A full fleet, a gang that wants half of it or more, and small claims that keep coming."""
    nodes = draw(st.integers(2, 4))
    at_work = [
        running(
            f"r{place}",
            {f"n{place // 4}": (place % 4,)},
            ends_in=timedelta(minutes=4 * draw(st.integers(1, 12))),
        )
        for place in range(4 * nodes)
    ]
    gang = claim("gang", role(4, draw(st.integers(nodes // 2, nodes))), minute=-1)
    arrivals = draw(
        st.lists(st.tuples(st.integers(0, 3), st.integers(1, 60)), min_size=1, max_size=12)
    )
    # It may be all that its queue is guaranteed, where that does not borrow.
    guaranteed = draw(st.sampled_from([0, gang.shape.cards]))
    research = QueueSnapshot(
        uid="research",
        name="research",
        entitlements={NPU: ChipQuota(guaranteed=guaranteed)},
        borrows=not guaranteed,
    )
    seen = snapshot(
        *(node(f"n{each}", 4) for each in range(nodes)),
        running=at_work,
        claims=[gang],
        queues=[research],
    )
    return seen, arrivals


@settings(max_examples=examples(30))
@given(stream=streams())
def test_a_gang_starts_at_the_latest_when_what_ran_before_it_has_ended(
    stream: tuple[SchedulingSnapshot, list[tuple[int, int]]],
) -> None:
    """The bound: the last end of what ran when it came first; not an hour of what came after it."""
    seen, arrivals = stream
    timeline = SnapshotSimulator(seen)
    latest = max(each.ends_at for each in seen.running if each.ends_at)
    now, came = AT, 0
    while True:
        for each in timeline.running:
            if each.ends_at is not None and each.ends_at <= now:
                timeline.end(each.uid)
        count, length = arrivals[came % len(arrivals)]
        came += 1
        for number in range(count):
            # Some say how long they run, others do not.
            runtime = timedelta(minutes=length) if length % 3 else None
            small = claim(f"s{came}-{number}", runtime=runtime)
            timeline.submit(replace(small, created_at=now))
        found = plan_cycle(timeline.snapshot(), SchedulingPolicy(), now)
        for placement in found.placements:
            runtime = timeline.claim(placement.claim).runtime
            timeline.start(placement, at=now, ends_at=now + runtime if runtime else None)
        if any(placement.claim == "gang" for placement in found.placements):
            assert now <= latest
            return
        assert now < latest
        now += timedelta(minutes=4)


# -- The same decision --


@st.composite
def companies(draw: st.DrawFn, *, chip: str) -> SchedulingSnapshot:
    """A worn fleet with two queues; drawn alike for either chip."""
    nodes = [
        node(
            f"n{place}",
            chip=chip,
            busy=draw(st.sets(st.integers(0, 7), max_size=6)),
            geometry=draw(st.sampled_from([None, RINGS])),
            domains={"leaf": f"l{place // 2}"},
        )
        for place in range(draw(st.integers(1, 4)))
    ]
    queues = [
        QueueSnapshot(
            uid="research", name="research", entitlements={chip: ChipQuota(guaranteed=8, cap=20)}
        ),
        QueueSnapshot(
            uid="product",
            name="product",
            entitlements={chip: ChipQuota(reserved=2, guaranteed=4)},
        ),
    ]
    claims = [
        claim(
            f"c{place}",
            role(draw(st.sampled_from([1, 2, 4, 8])), draw(st.integers(1, 3))),
            queue=draw(st.sampled_from(["research", "product"])),
            chips=(chip,),
            priority=draw(st.integers(0, 1)),
            minute=draw(st.integers(0, 3)),
            within=draw(st.sampled_from(["", "leaf"])),
        )
        for place in range(draw(st.integers(1, 8)))
    ]
    return snapshot(*nodes, claims=claims, queues=queues)


@settings(max_examples=examples(60))
@given(seen=companies(chip=NPU), order=st.randoms(use_true_random=False))
def test_the_same_snapshot_gives_the_same_plan_in_whatever_order_it_is_told(
    seen: SchedulingSnapshot, order: object
) -> None:
    claims, queues = list(seen.claims), list(seen.queues.items())
    order.shuffle(claims)  # type: ignore[attr-defined]
    order.shuffle(queues)  # type: ignore[attr-defined]
    again = replace(seen, claims=tuple(claims), queues=dict(queues))
    assert decided(seen) == decided(seen) == decided(again)


@settings(max_examples=examples(60))
@given(seen=companies(chip=NPU))
def test_a_fleet_of_gpus_gives_the_plan_of_a_fleet_of_npus(seen: SchedulingSnapshot) -> None:
    twin = SchedulingSnapshot(
        nodes=tuple(
            replace(
                each,
                cards=tuple(replace(card, chip=GPU) for card in each.cards),
                geometries={GPU: each.geometries[NPU]} if each.geometries else {},
            )
            for each in seen.nodes
        ),
        claims=tuple(replace(each, chips=(GPU,)) for each in seen.claims),
        queues={
            uid: replace(queue, entitlements={GPU: queue.entitlements[NPU]})
            for uid, queue in seen.queues.items()
        },
    )
    first, second = decided(seen), decided(twin)
    assert [each.replicas for each in first.placements] == [
        each.replicas for each in second.placements
    ]
    assert [(each.claim, each.code) for each in first.pending] == [
        (each.claim, each.code) for each in second.pending
    ]


def test_the_example_of_the_documentation_holds() -> None:
    """``docs/scheduling.md``: 32 cards, of which 8 are free."""

    def queue(uid: str, parent: str | None, stated: ChipQuota, weight: float = 1) -> QueueSnapshot:
        return QueueSnapshot(
            uid=uid, name=uid, parent=parent, entitlements={NPU: stated}, weight=weight
        )

    queues = [
        queue("research", None, ChipQuota(reserved=4, guaranteed=16, cap=24)),
        queue("vision", "research", ChipQuota(guaranteed=8)),
        queue("speech", "research", ChipQuota(guaranteed=8)),
        queue("product", None, ChipQuota(reserved=6, guaranteed=8)),
        queue("batch", None, ChipQuota(), weight=2),
    ]
    at_work = [
        running("v1", {"n0": range(8)}, queue="vision"),
        running("v2", {"n1": range(4)}, queue="vision"),
        running("s", {"n1": range(4, 8)}, queue="speech"),
        running("p", {"n2": range(4)}, queue="product"),
        running("b", {"n2": range(4, 8)}, queue="batch"),
    ]
    nodes = [node(f"n{each}") for each in range(4)]

    def asked(*claims: tuple[str, int]) -> SchedulingPlan:
        waiting = [claim(name, role(1, cards), queue=name) for name, cards in claims]
        return decided(snapshot(*nodes, running=at_work, claims=waiting, queues=queues))

    assert asked(("speech", 4)).placements
    assert asked(("batch", 6)).placements
    assert asked(("batch", 7)).pending[0].code is PendingReasonCode.NO_BORROWING
    assert asked(("vision", 9)).pending[0].code is PendingReasonCode.QUEUE_CAP
    order = asked(("batch", 1), ("vision", 1), ("speech", 1), ("product", 1)).placements
    assert [each.claim for each in order] == ["product", "speech", "vision", "batch"]
