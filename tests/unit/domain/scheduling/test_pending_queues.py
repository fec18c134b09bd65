"""Who is next: priority, then right, then fair share, then age."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.quotas.tree import QueueTree
from controlplane.domain.scheduling.pending_queues import ClaimOrder, PendingQueue
from controlplane.domain.scheduling.snapshots import ClaimSnapshot
from tests.properties import examples
from tests.unit.domain.scheduling.fleets import GPU, NPU, claim, hours, role


def queue(name: str, guaranteed: int = 0, *, used: int = 0, weight: float = 1.0) -> QueueSnapshot:
    """In thousandths of cards, as the cycle counts."""
    return QueueSnapshot(
        uid=name,
        name=name,
        entitlements={NPU: ChipQuota(guaranteed=guaranteed * WHOLE_CARD)},
        used={NPU: used * WHOLE_CARD},
        weight=weight,
    )


def order(
    *claims: ClaimSnapshot,
    queues: tuple[QueueSnapshot, ...] = (queue("research"),),
    admit: Callable[[ClaimSnapshot], bool] = lambda _: True,
) -> list[str]:
    """Uids as they come up; each is admitted, unless ``admit`` says otherwise."""
    tree = QueueTree({view.uid: view for view in queues}, free={NPU: 64 * WHOLE_CARD})
    came = []
    for each in ClaimOrder(claims, tree):
        came.append(each.uid)
        if admit(each):
            tree.charge(each.queue, NPU, each.shape.amount)
    return came


def test_priority_goes_before_age_and_age_before_the_name() -> None:
    waiting = (
        claim("old", minute=0),
        claim("urgent", priority=1, minute=9),
        claim("b", minute=5),
        claim("a", minute=5),
    )

    assert order(*waiting) == ["urgent", "old", "a", "b"]


def test_priority_goes_before_every_right_and_share() -> None:
    queues = (queue("research", 8), queue("batch", used=32))

    came = order(claim("owed"), claim("urgent", queue="batch", priority=1), queues=queues)

    assert came == ["urgent", "owed"]


def test_a_queue_below_its_guarantee_goes_before_borrowers_whatever_their_share() -> None:
    queues = (queue("research", 8, used=7), queue("batch"))

    came = order(claim("new", minute=9), claim("old", queue="batch"), queues=queues)

    assert came == ["new", "old"]


def test_an_own_guarantee_goes_before_one_from_above_and_that_before_borrowing() -> None:
    queues = (
        queue("company", 8),
        QueueSnapshot(uid="lab", name="lab", parent="company"),
        queue("own", 4),
        queue("batch"),
    )
    waiting = (
        claim("borrows", queue="batch", minute=0),
        claim("covered", queue="lab", minute=1),
        claim("owns", queue="own", minute=2),
    )

    assert order(*waiting, queues=queues) == ["owns", "covered", "borrows"]


def test_a_claim_too_large_for_the_guarantee_is_a_borrower() -> None:
    queues = (queue("research", 4), queue("batch", 4))
    waiting = (claim("large", role(8)), claim("small", queue="batch", minute=1))

    assert order(*waiting, queues=queues) == ["small", "large"]


def test_every_admission_moves_its_queue_back() -> None:
    queues = (queue("a"), queue("b"))
    waiting = [
        claim(f"{name}{turn}", queue=name, minute=turn) for name in "ab" for turn in (1, 2, 3)
    ]

    assert order(*waiting, queues=queues) == ["a1", "b1", "a2", "b2", "a3", "b3"]


def test_a_queue_of_twice_the_weight_gets_two_for_one() -> None:
    queues = (queue("a", weight=2), queue("b"))
    waiting = [claim(f"{name}{turn}", queue=name) for name in "ab" for turn in range(9)]

    first = order(*waiting, queues=queues)[:9]

    assert sum(uid.startswith("a") for uid in first) == 6


def test_what_is_refused_does_not_cost_its_queue_its_turn() -> None:
    queues = (queue("a"), queue("b", used=1))
    waiting = [claim(f"{name}{turn}", queue=name) for name in "ab" for turn in range(2)]

    came = order(*waiting, queues=queues, admit=lambda each: False)

    assert came == ["a0", "a1", "b0", "b1"]


def test_shares_are_compared_from_the_top_down() -> None:
    """Two busy queues of one company do not get twice what the only one of another gets."""
    queues = (
        queue("big"),
        QueueSnapshot(uid="big-1", name="big-1", parent="big"),
        QueueSnapshot(uid="big-2", name="big-2", parent="big"),
        queue("small"),
    )
    names = ("big-1", "big-2", "small")
    waiting = [claim(f"{name}/{turn}", queue=name) for name in names for turn in range(4)]

    first = order(*waiting, queues=queues)[:8]

    assert sum(uid.startswith("small") for uid in first) == 4


def test_the_best_right_on_any_chip_counts() -> None:
    queues = (
        QueueSnapshot(uid="a", name="a", entitlements={GPU: ChipQuota(guaranteed=8 * WHOLE_CARD)}),
        queue("b"),
    )
    waiting = (claim("b", queue="b"), claim("a", queue="a", chips=(NPU, GPU), minute=5))

    assert order(*waiting, queues=queues) == ["a", "b"]


CLAIMS = st.lists(
    st.tuples(st.sampled_from("abc"), st.integers(0, 2), st.integers(0, 3), st.integers(1, 4)),
    max_size=20,
)


@given(CLAIMS, st.lists(st.booleans(), min_size=20, max_size=20))
@settings(max_examples=examples(150))
def test_the_heap_gives_what_sorting_anew_each_time_would(
    asked: list[tuple[str, int, int, int]], admitted: list[bool]
) -> None:
    waiting = [
        claim(f"c{number}", role(cards), queue=name, priority=priority, minute=minute)
        for number, (name, priority, minute, cards) in enumerate(asked)
    ]
    queues = {view.uid: view for view in (queue("a", 6), queue("b", 3, weight=2), queue("c"))}
    fast = QueueTree(queues, free={NPU: 64 * WHOLE_CARD})
    slow = QueueTree(queues, free={NPU: 64 * WHOLE_CARD})
    left = list(waiting)

    for each, take in zip(ClaimOrder(waiting, fast), admitted, strict=False):
        # A queue's own line is by priority and age alone.
        heads = {view.queue: view for view in sorted(left, key=_line, reverse=True)}
        ranks = ClaimOrder((), slow)
        expected = min(heads.values(), key=ranks.rank)
        assert each.uid == expected.uid
        left.remove(expected)
        if take:
            for tree in (fast, slow):
                tree.charge(each.queue, NPU, each.shape.amount)
    assert not left


def _line(view: ClaimSnapshot) -> tuple[object, ...]:
    return -view.priority, view.created_at, view.uid


def test_claims_are_of_a_kind_if_they_ask_the_same_of_the_same_queue() -> None:
    one = claim("a", priority=3, minute=4)
    equivalent = claim("b")
    assert (
        one.equivalence_class
        == equivalent.equivalence_class
        == replace(equivalent, uid="c").equivalence_class
    )
    others = (
        claim("b", role(2)),
        claim("b", queue="batch"),
        claim("b", chips=(GPU,)),
        claim("b", selector={"pool": "train"}),
        claim("b", within="leaf"),
        claim("b", near="leaf"),
        claim("b", runtime=hours(1)),
    )
    assert len({each.equivalence_class for each in (one, *others)}) == 1 + len(others)


def test_claims_that_are_settled_do_not_come_up_and_the_others_come_in_their_order() -> None:
    waiting = [claim(f"{place:02}", minute=place) for place in range(12)]
    tree = QueueTree({"research": queue("research")}, free={NPU: 64 * WHOLE_CARD})
    settled: list[str] = []

    def drop_refused(line: PendingQueue) -> None:
        while line and int(line.next.uid) % 3:
            settled.append(line.pop().uid)

    assert [each.uid for each in ClaimOrder(waiting, tree, drop_refused=drop_refused)] == [
        "00",
        "03",
        "06",
        "09",
    ]
    assert len(settled) == 8


def test_who_has_not_come_up_is_left_in_the_lines() -> None:
    waiting = [
        claim(f"{name}{minute}", queue=name, minute=minute) for name in "ab" for minute in (1, 2)
    ]
    order = ClaimOrder(
        waiting, QueueTree({name: queue(name) for name in "ab"}, free={NPU: 64 * WHOLE_CARD})
    )

    first = next(iter(order))

    assert {first.uid} | {each.uid for line in order.remaining() for each in line.drop()} == {
        "a1",
        "a2",
        "b1",
        "b2",
    }
