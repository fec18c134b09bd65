"""The queue tree: who may have cards, who is owed them, and who goes first."""

from __future__ import annotations

import pytest

from controlplane.domain.quotas.queues import TOTAL, ChipQuota, QueueSnapshot
from controlplane.domain.quotas.tree import QuotaLimit
from tests.unit.domain.quotas.quota_trees import CHIP, OTHER, allows, queue, refusal, tree

# -- Guarantees --


def test_a_queue_within_its_guarantee_is_covered_by_it_and_beyond_it_by_nobody() -> None:
    of = tree(queue("research", guaranteed=8, used=4), free=28)

    assert of.check("research", CHIP, 4).covered_by == "research"
    assert of.check("research", CHIP, 5).covered_by == ""
    assert allows(of, "research", 5)


def test_a_guarantee_of_a_queue_above_covers_what_its_own_does_not() -> None:
    of = tree(
        queue("research", guaranteed=16),
        queue("vision", parent="research", guaranteed=8, used=8),
        queue("speech", parent="research", guaranteed=4),
        free=24,
    )

    assert of.check("vision", CHIP, 4).covered_by == "research"
    assert of.check("vision", CHIP, 9).covered_by == ""
    assert of.check("speech", CHIP, 4).covered_by == "speech"


def test_what_a_queue_below_reserves_counts_against_the_guarantee_above_it() -> None:
    of = tree(
        queue("research", guaranteed=16),
        queue("vision", parent="research"),
        queue("speech", parent="research", guaranteed=8, reserved=8),
        free=16,
    )

    assert of.check("vision", CHIP, 8).covered_by == "research"
    assert of.check("vision", CHIP, 9).covered_by == ""


def test_a_guarantee_in_total_covers_any_chip_and_bounds_one_that_is_stated_by_chip() -> None:
    of = tree(queue("research", guaranteed=8, total=ChipQuota(guaranteed=12)), free=32, others=32)

    assert of.check("research", OTHER, 12).covered_by == "research"
    assert of.check("research", CHIP, 9).covered_by == ""
    of.charge("research", OTHER, 8)
    assert of.check("research", CHIP, 4).covered_by == "research"
    assert of.check("research", CHIP, 5).covered_by == ""


def test_a_guarantee_holds_even_where_others_have_borrowed_everything() -> None:
    of = tree(queue("research", guaranteed=8), queue("batch", used=32), free=0)

    assert of.check("research", CHIP, 8).covered_by == "research"
    assert allows(of, "research", 8)


# -- Borrowing --


def test_what_is_reserved_is_never_lent_and_what_is_only_guaranteed_is() -> None:
    of = tree(queue("research", guaranteed=16, reserved=4), queue("batch"), free=16)

    assert allows(of, "batch", 12)
    shortage = refusal(of, "batch", 13)
    assert (shortage.limit, shortage.bound, shortage.lendable, shortage.reserved) == (
        QuotaLimit.NOTHING_TO_BORROW,
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
    assert (shortage.limit, shortage.bound, shortage.lendable) == (
        QuotaLimit.RESERVED_BY_OTHERS,
        6,
        2,
    )
    assert of.check("lab", CHIP, 3).covered_by == "lab"


def test_using_what_is_reserved_takes_nothing_from_others() -> None:
    of = tree(queue("research", guaranteed=8, reserved=8), queue("batch"), free=16)
    of.charge("research", CHIP, 8)

    assert allows(of, "batch", 8)
    assert not of.check("batch", CHIP, 9).covered_by


def test_where_nobody_keeps_anything_the_fleet_alone_decides() -> None:
    assert allows(tree(queue("batch"), free=4), "batch", 64)


def test_a_queue_that_does_not_borrow_stops_at_its_guarantee() -> None:
    of = tree(queue("research", guaranteed=8, used=6, borrows=False), free=26)

    assert allows(of, "research", 2)
    shortage = refusal(of, "research", 3)
    assert (shortage.limit, shortage.queue, shortage.used, shortage.bound) == (
        QuotaLimit.DOES_NOT_BORROW,
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
    of.nominate("research", CHIP, 8)
    assert not allows(of, "batch", 4)

    of.charge_evicted_cards("batch", CHIP, 8)

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
        QuotaLimit.CAP,
        refuses,
        3,
        2,
        4,
    )


def test_a_cap_in_total_counts_all_chips() -> None:
    of = tree(queue("research", total=ChipQuota(cap=4)), free=8, others=8)
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
    assert (shortage.queue, shortage.used, shortage.reserved) == ("research", 0, 8)


def test_nobody_of_the_same_queue_passes_a_claim_that_waits_below_the_cap() -> None:
    of = tree(queue("research", guaranteed=4, cap=8, used=4), free=28)
    of.reserve("research", CHIP, 4)

    assert refusal(of, "research", 1).reserved == 4


def test_who_is_owed_cards_passes_those_of_other_queues_that_would_borrow() -> None:
    of = tree(
        queue("all", cap=8),
        queue("batch", parent="all", used=4),
        queue("research", parent="all", guaranteed=4),
        queue("lab", parent="all"),
        free=28,
    )
    of.reserve("batch", CHIP, 4)

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
        QuotaLimit.CLOSED,
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

    assert of.may_reclaim("research", "batch", CHIP) is may


def test_a_queue_above_that_is_within_its_guarantee_protects_those_below() -> None:
    of = tree(
        queue("research", guaranteed=8),
        queue("product", guaranteed=16),
        queue("search", parent="product", used=16),
    )
    assert not of.may_reclaim("research", "search", CHIP)

    of.charge("search", CHIP, 1)
    assert of.may_reclaim("research", "search", CHIP)


def test_between_queues_below_the_same_one_only_their_own_guarantees_count() -> None:
    of = tree(
        queue("research", guaranteed=16),
        queue("vision", parent="research", guaranteed=8),
        queue("speech", parent="research", guaranteed=8, used=16),
    )

    assert of.may_reclaim("vision", "speech", CHIP)
    # The guarantee of the queue above is no right against those whom it covers too.
    assert not of.may_reclaim("research", "speech", CHIP)


def test_what_leaves_already_is_not_taken_back_twice() -> None:
    of = tree(queue("research", guaranteed=8), queue("batch", guaranteed=8, used=12))
    of.charge_evicted_cards("batch", CHIP, 4)

    assert not of.may_reclaim("research", "batch", CHIP)


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

    assert of.dominant_shares("vision") == (1 + 4 / 32, 1 + 4 / 32)
    assert of.dominant_shares("speech") == (1 + 4 / 32, 1.0)
    assert of.dominant_shares("product") == (4 / 8,)
    assert of.dominant_shares("batch") == (1 + 4 / 32 / 2,)


def test_the_dominant_chip_counts() -> None:
    view = QueueSnapshot(
        uid="q",
        name="q",
        entitlements={CHIP: ChipQuota(guaranteed=8), OTHER: ChipQuota(guaranteed=4)},
        used={CHIP: 2, OTHER: 3},
    )

    assert tree(view, free=8, others=8).dominant_shares("q") == (3 / 4,)


def test_without_a_guarantee_all_that_is_held_is_borrowed_and_nothing_is_no_share() -> None:
    of = tree(queue("idle"), queue("busy", used=8), free=8)

    assert of.dominant_shares("idle") == (0.0,)
    assert of.dominant_shares("busy") == (1.5,)
