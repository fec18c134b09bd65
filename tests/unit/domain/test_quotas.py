"""The queue tree: who may have cards, who is owed them, and who goes first."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.quota_findings import tree_findings
from controlplane.domain.quotas import TOTAL, Entitlement, Limit, QueueTree, Shortage
from controlplane.domain.scheduling.snapshots import QueueView

CHIP = "ascend-910b3"
OTHER = "nvidia-h800"


def queue(
    name: str,
    *,
    parent: str | None = None,
    reserved: int = 0,
    guaranteed: int = 0,
    cap: int | None = None,
    total: Entitlement | None = None,
    used: int = 0,
    weight: float = 1.0,
    is_open: bool = True,
    borrows: bool = True,
    lends: bool = True,
) -> QueueView:
    """Figures are of one chip."""
    return QueueView(
        uid=name,
        name=name,
        parent=parent,
        entitlements={CHIP: Entitlement(reserved=reserved, guaranteed=guaranteed, cap=cap)},
        total=total or Entitlement(),
        weight=weight,
        used={CHIP: used} if used else {},
        open=is_open,
        borrows=borrows,
        lends=lends,
    )


def tree(*queues: QueueView, free: int = 0, others: int = 0) -> QueueTree:
    return QueueTree({view.uid: view for view in queues}, free={CHIP: free, OTHER: others})


def refusal(of: QueueTree, name: str, cards: int, chip: str = CHIP) -> Shortage:
    shortage = of.room(name, chip, cards).shortage
    assert shortage is not None
    return shortage


def allows(of: QueueTree, name: str, cards: int, chip: str = CHIP) -> bool:
    return of.room(name, chip, cards).shortage is None


# -- Guarantees --


def test_a_queue_within_its_guarantee_is_covered_by_it_and_beyond_it_by_nobody() -> None:
    of = tree(queue("research", guaranteed=8, used=4), free=28)

    assert of.room("research", CHIP, 4).covered_by == "research"
    assert of.room("research", CHIP, 5).covered_by == ""
    assert allows(of, "research", 5)


def test_a_guarantee_of_a_queue_above_covers_what_its_own_does_not() -> None:
    of = tree(
        queue("research", guaranteed=16),
        queue("vision", parent="research", guaranteed=8, used=8),
        queue("speech", parent="research", guaranteed=4),
        free=24,
    )

    assert of.room("vision", CHIP, 4).covered_by == "research"
    assert of.room("vision", CHIP, 9).covered_by == ""
    assert of.room("speech", CHIP, 4).covered_by == "speech"


def test_what_a_queue_below_reserves_counts_against_the_guarantee_above_it() -> None:
    of = tree(
        queue("research", guaranteed=16),
        queue("vision", parent="research"),
        queue("speech", parent="research", guaranteed=8, reserved=8),
        free=16,
    )

    assert of.room("vision", CHIP, 8).covered_by == "research"
    assert of.room("vision", CHIP, 9).covered_by == ""


def test_a_guarantee_in_total_covers_any_chip_and_bounds_one_that_is_stated_by_chip() -> None:
    of = tree(queue("research", guaranteed=8, total=Entitlement(guaranteed=12)), free=32, others=32)

    assert of.room("research", OTHER, 12).covered_by == "research"
    assert of.room("research", CHIP, 9).covered_by == ""
    of.charge("research", OTHER, 8)
    assert of.room("research", CHIP, 4).covered_by == "research"
    assert of.room("research", CHIP, 5).covered_by == ""


def test_a_guarantee_holds_even_where_others_have_borrowed_everything() -> None:
    of = tree(queue("research", guaranteed=8), queue("batch", used=32), free=0)

    assert of.room("research", CHIP, 8).covered_by == "research"
    assert allows(of, "research", 8)


# -- Borrowing --


def test_what_is_reserved_is_never_lent_and_what_is_only_guaranteed_is() -> None:
    of = tree(queue("research", guaranteed=16, reserved=4), queue("batch"), free=16)

    assert allows(of, "batch", 12)
    shortage = refusal(of, "batch", 13)
    assert (shortage.limit, shortage.bound, shortage.lendable, shortage.kept) == (
        Limit.NOTHING_TO_BORROW,
        16,
        12,
        4,
    )


def test_a_queue_that_does_not_lend_keeps_its_whole_guarantee() -> None:
    of = tree(queue("research", guaranteed=12, lends=False), queue("batch"), free=16)

    assert allows(of, "batch", 4)
    assert not allows(of, "batch", 5)


def test_what_is_reserved_is_not_for_those_within_their_guarantee_either() -> None:
    of = tree(
        queue("research", guaranteed=8, reserved=4),
        queue("lab", guaranteed=8),
        queue("batch", used=20),
        free=6,
    )

    assert allows(of, "lab", 2)
    shortage = refusal(of, "lab", 3)
    assert (shortage.limit, shortage.bound, shortage.lendable) == (Limit.KEPT_BY_OTHERS, 6, 2)
    assert of.room("lab", CHIP, 3).covered_by == "lab"


def test_using_what_is_reserved_takes_nothing_from_others() -> None:
    of = tree(queue("research", guaranteed=8, reserved=8), queue("batch"), free=16)
    of.charge("research", CHIP, 8)

    assert allows(of, "batch", 8)
    assert not of.room("batch", CHIP, 9).covered_by


def test_where_nobody_keeps_anything_the_fleet_alone_decides() -> None:
    assert allows(tree(queue("batch"), free=4), "batch", 64)


def test_a_queue_that_does_not_borrow_stops_at_its_guarantee() -> None:
    of = tree(queue("research", guaranteed=8, used=6, borrows=False), free=26)

    assert allows(of, "research", 2)
    shortage = refusal(of, "research", 3)
    assert (shortage.limit, shortage.queue, shortage.used, shortage.bound) == (
        Limit.DOES_NOT_BORROW,
        "research",
        6,
        8,
    )


def test_a_queue_above_that_does_not_borrow_stops_those_below_it() -> None:
    of = tree(
        queue("research", guaranteed=8, borrows=False),
        queue("vision", parent="research", used=8),
        free=24,
    )

    assert refusal(of, "vision", 1).queue == "research"


def test_what_is_due_to_a_claim_is_nobody_elses_until_others_have_stopped() -> None:
    of = tree(queue("research", guaranteed=8), queue("batch", used=8), free=4)
    of.owe("research", CHIP, 8)
    assert not allows(of, "batch", 4)

    of.leave("batch", CHIP, 8)

    assert allows(of, "batch", 4)


# -- Caps --


@pytest.mark.parametrize("refuses", ["research", "vision"])
def test_a_cap_holds_for_everything_below_and_says_who_refuses(refuses: str) -> None:
    caps = {"research": 8, "vision": 8} | {refuses: 4}
    of = tree(
        queue("research", cap=caps["research"]),
        queue("vision", parent="research", cap=caps["vision"], used=2),
        free=32,
    )

    assert allows(of, "vision", 2)
    shortage = refusal(of, "vision", 3)
    assert (shortage.limit, shortage.queue, shortage.wanted, shortage.used, shortage.bound) == (
        Limit.CAP,
        refuses,
        3,
        2,
        4,
    )


def test_a_cap_in_total_counts_all_chips() -> None:
    of = tree(queue("research", total=Entitlement(cap=4)), free=8, others=8)
    of.charge("research", OTHER, 3)

    assert allows(of, "research", 1)
    assert refusal(of, "research", 2).chip == TOTAL


def test_a_cap_leaves_room_for_what_a_queue_below_reserves() -> None:
    of = tree(
        queue("research", cap=16),
        queue("vision", parent="research"),
        queue("speech", parent="research", guaranteed=8, reserved=8),
        free=32,
    )

    assert allows(of, "vision", 8)
    shortage = refusal(of, "vision", 9)
    assert (shortage.queue, shortage.used, shortage.kept) == ("research", 0, 8)


def test_nobody_of_the_same_queue_passes_a_claim_that_waits_below_the_cap() -> None:
    of = tree(queue("research", guaranteed=4, cap=8, used=4), free=28)
    of.wish("research", CHIP, 4)

    assert refusal(of, "research", 1).kept == 4


def test_who_is_owed_cards_passes_those_of_other_queues_that_would_borrow() -> None:
    of = tree(
        queue("all", cap=8),
        queue("batch", parent="all", used=4),
        queue("research", parent="all", guaranteed=4),
        queue("lab", parent="all"),
        free=28,
    )
    of.wish("batch", CHIP, 4)

    assert allows(of, "research", 4)
    assert not allows(of, "lab", 1)


@pytest.mark.parametrize("closed", ["research", "vision"])
def test_a_closed_queue_admits_nothing_nor_do_those_below_it(closed: str) -> None:
    of = tree(
        queue("research", is_open=closed != "research"),
        queue("vision", parent="research", guaranteed=8, is_open=closed != "vision"),
        free=8,
    )

    assert (refusal(of, "vision", 1).limit, refusal(of, "vision", 0).queue) == (
        Limit.CLOSED,
        closed,
    )


def test_a_request_for_no_cards_takes_nothing_even_from_a_queue_above_its_cap() -> None:
    of = tree(queue("research", cap=2, used=4))

    assert allows(of, "research", 0)
    assert not allows(of, "research", 1)


# -- Taking back --


@pytest.mark.parametrize(("used", "may"), [(8, False), (9, True)])
def test_cards_are_taken_back_only_from_queues_beyond_their_guarantee(used: int, may: bool) -> None:
    of = tree(queue("research", guaranteed=8), queue("batch", guaranteed=8, used=used))

    assert of.may_take_back("research", "batch", CHIP) is may


def test_a_queue_above_that_is_within_its_guarantee_protects_those_below() -> None:
    of = tree(
        queue("research", guaranteed=8),
        queue("product", guaranteed=16),
        queue("search", parent="product", used=16),
    )
    assert not of.may_take_back("research", "search", CHIP)

    of.charge("search", CHIP, 1)
    assert of.may_take_back("research", "search", CHIP)


def test_between_queues_below_the_same_one_only_their_own_guarantees_count() -> None:
    of = tree(
        queue("research", guaranteed=16),
        queue("vision", parent="research", guaranteed=8),
        queue("speech", parent="research", guaranteed=8, used=16),
    )

    assert of.may_take_back("vision", "speech", CHIP)
    # The guarantee of the queue above is no right against those whom it covers too.
    assert not of.may_take_back("research", "speech", CHIP)


def test_what_leaves_already_is_not_taken_back_twice() -> None:
    of = tree(queue("research", guaranteed=8), queue("batch", guaranteed=8, used=12))
    of.leave("batch", CHIP, 4)

    assert not of.may_take_back("research", "batch", CHIP)


# -- Shares --


def test_the_shares_of_the_worked_example() -> None:
    of = tree(
        queue("research", guaranteed=16, reserved=4),
        queue("vision", parent="research", guaranteed=8, used=12),
        queue("speech", parent="research", guaranteed=8, used=8),
        queue("product", guaranteed=8, used=4),
        queue("batch", weight=2, used=4),
        free=4,
    )

    assert of.standing("vision") == (1 + 4 / 32, 1 + 4 / 32)
    assert of.standing("speech") == (1 + 4 / 32, 1.0)
    assert of.standing("product") == (4 / 8,)
    assert of.standing("batch") == (1 + 4 / 32 / 2,)


def test_the_dominant_chip_counts() -> None:
    view = QueueView(
        uid="q",
        name="q",
        entitlements={CHIP: Entitlement(guaranteed=8), OTHER: Entitlement(guaranteed=4)},
        used={CHIP: 2, OTHER: 3},
    )

    assert tree(view, free=8, others=8).standing("q") == (3 / 4,)


def test_without_a_guarantee_all_that_is_held_is_borrowed_and_nothing_is_no_share() -> None:
    of = tree(queue("idle"), queue("busy", used=8), free=8)

    assert of.standing("idle") == (0.0,)
    assert of.standing("busy") == (1.5,)


# -- Any tree --


@st.composite
def trees(draw: st.DrawFn) -> dict[str, QueueView]:
    names = [f"q{number}" for number in range(draw(st.integers(1, 6)))]
    queues = {}
    for number, name in enumerate(names):
        reserved = draw(st.integers(0, 4))
        guaranteed = reserved + draw(st.integers(0, 6))
        cap = draw(st.none() | st.integers(guaranteed, 24))
        queues[name] = queue(
            name,
            parent=draw(st.none() | st.sampled_from(names[:number])) if number else None,
            reserved=reserved,
            guaranteed=guaranteed,
            cap=cap,
            used=draw(st.integers(0, 6)),
            weight=draw(st.sampled_from([0.5, 1.0, 2.0])),
            borrows=draw(st.booleans()),
            lends=draw(st.booleans()),
        )
    return queues


REQUESTS = st.lists(
    st.tuples(st.integers(0, 5), st.sampled_from([CHIP, OTHER]), st.integers(1, 6)), max_size=12
)


def answers(of: QueueTree, queues: Mapping[str, QueueView]) -> list[object]:
    return [
        (of.room(name, chip, cards), of.standing(name), of.may_take_back(name, other, chip))
        for name in queues
        for other in queues
        for chip in (CHIP, OTHER)
        for cards in (1, 4, 9)
    ]


@given(trees(), REQUESTS)
@settings(max_examples=100, deadline=None)
def test_what_is_charged_and_taken_back_leaves_no_trace(
    queues: dict[str, QueueView], requests: list[tuple[int, str, int]]
) -> None:
    names = list(queues)
    of = QueueTree(queues, free={CHIP: 12, OTHER: 4})
    before = answers(of, queues)
    changes = [of.charge, of.owe, of.wish, of.leave]
    asked = [(names[index % len(names)], chip, cards) for index, chip, cards in requests]

    for turn, request in enumerate(asked):
        changes[turn % 4](*request)
    for turn, request in reversed(list(enumerate(asked))):
        name, chip, cards = request
        changes[turn % 4](name, chip, -cards)

    assert answers(of, queues) == before


@given(trees(), REQUESTS)
@settings(max_examples=150, deadline=None)
def test_what_is_allowed_breaks_no_cap_and_eats_no_reserve(
    queues: dict[str, QueueView], requests: list[tuple[int, str, int]]
) -> None:
    """Counted anew from the definitions, without the tree's own bookkeeping."""
    names = list(queues)
    of = QueueTree(queues, free={CHIP: 12, OTHER: 4})
    used = {name: dict(view.used) for name, view in queues.items()}
    free = {CHIP: 12, OTHER: 4}
    for index, chip, cards in requests:
        name = names[index % len(names)]
        verdict = of.room(name, chip, cards)
        if verdict.shortage is not None or cards > free[chip]:
            continue
        of.charge(name, chip, cards)
        used[name][chip] = used[name].get(chip, 0) + cards
        free[chip] -= cards
        for above in above_and_itself(name, queues):
            cap = queues[above].entitlements.get(chip, Entitlement()).cap
            assert cap is None or held(above, chip, queues, used) <= cap
            if above == verdict.covered_by:
                stated = queues[above].entitlements[chip].guaranteed
                assert held(above, chip, queues, used) <= stated
        top = above_and_itself(name, queues)[-1]
        reserve = queues[top].entitlements.get(chip, Entitlement()).reserved
        if held(top, chip, queues, used) > reserve:
            idle = [
                max(0, stated.reserved - held(top, chip, queues, used))
                for top, view in queues.items()
                if view.parent is None
                for stated in [view.entitlements.get(chip, Entitlement())]
            ]
            assert free[chip] >= sum(idle)


def above_and_itself(name: str | None, queues: Mapping[str, QueueView]) -> list[str]:
    path = []
    while name is not None:
        path.append(name)
        name = queues[name].parent
    return path


def held(
    name: str, chip: str, queues: Mapping[str, QueueView], used: Mapping[str, Mapping[str, int]]
) -> int:
    return sum(
        used[other].get(chip, 0) for other in queues if name in above_and_itself(other, queues)
    )


@given(trees())
@settings(max_examples=100, deadline=None)
def test_most_is_the_largest_number_that_is_allowed(queues: dict[str, QueueView]) -> None:
    of = QueueTree(queues, free={CHIP: 6})
    for name in queues:
        allowed = [cards for cards in range(13) if allows(of, name, cards)]
        assert of.most(name, CHIP, 12) == max(allowed, default=0)
        assert allowed == list(range(len(allowed)))


# -- What is wrong with a tree --


def messages(*queues: QueueView, taking: tuple[str, ...] = ()) -> list[str]:
    found = tree_findings({view.uid: view for view in queues}, taking=taking)
    return [finding.message for finding in found]


def test_a_sound_tree_has_no_findings() -> None:
    assert not messages(
        queue("research", guaranteed=16, reserved=4, cap=32),
        queue("vision", parent="research", guaranteed=8),
        queue("speech", parent="research", guaranteed=8),
        taking=("vision", "speech"),
    )


@pytest.mark.parametrize(
    ("queues", "message"),
    [
        (
            [queue("a", parent="gone")],
            "queue a stands below gone, which does not exist; choose another",
        ),
        (
            [queue("a", reserved=4, guaranteed=2)],
            "queue a reserves 4 × ascend-910b3, more than its guarantee of 2; "
            "reserve at most the guarantee",
        ),
        (
            [queue("a", guaranteed=4, cap=2)],
            "queue a guarantees 4 × ascend-910b3, more than its cap of 2; "
            "raise the cap or lower the guarantee",
        ),
        (
            [queue("a", total=Entitlement(guaranteed=4, cap=2))],
            "queue a guarantees 4 cards in all, more than its cap of 2; "
            "raise the cap or lower the guarantee",
        ),
        ([queue("a", weight=0)], "queue a has the weight 0; it must be more than 0"),
        (
            [
                queue("a", guaranteed=8),
                queue("b", parent="a", guaranteed=6),
                queue("c", parent="a", guaranteed=4),
            ],
            "the queues below a are guaranteed 10 × ascend-910b3 together, more than its own 8; "
            "lower theirs or raise it",
        ),
        (
            [queue("a", cap=4), queue("b", parent="a", guaranteed=6)],
            "the queues below a are guaranteed 6 × ascend-910b3 together, more than its cap of 4; "
            "lower theirs or raise it",
        ),
    ],
)
def test_each_finding_names_the_queue_and_the_numbers(
    queues: list[QueueView], message: str
) -> None:
    assert messages(*queues) == [message]


def test_queues_that_stand_below_one_another_are_found_and_do_no_harm() -> None:
    circle = [queue("a", parent="b"), queue("b", parent="a", used=2)]

    assert messages(*circle) == [
        "queue a stands below itself; let one of the queues above it stand at the top",
        "queue b stands below itself; let one of the queues above it stand at the top",
    ]
    assert allows(tree(*circle, free=4), "a", 2)


def test_only_queues_without_others_below_take_claims() -> None:
    found = messages(queue("a"), queue("b", parent="a"), taking=("a", "b"))

    assert found == ["queue a has queues below it, so it takes no claims; submit to one of those"]
