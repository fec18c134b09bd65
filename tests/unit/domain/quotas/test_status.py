"""Who borrows and who lends: it fits at every level of any tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.domain.quotas.queues import TOTAL, ChipQuota, QueueSnapshot
from controlplane.domain.quotas.status import QueueStatus, chips_of_queue, queue_statuses
from tests.properties import examples

CHIP = "h800"


def view(
    uid: str,
    *,
    parent: str | None = None,
    guaranteed: int = 0,
    reserved: int = 0,
    cap: int | None = None,
    used: int = 0,
    lends: bool = True,
) -> QueueSnapshot:
    return QueueSnapshot(
        uid=uid,
        name=uid,
        parent=parent,
        entitlements={CHIP: ChipQuota(reserved=reserved, guaranteed=guaranteed, cap=cap)},
        used={CHIP: used} if used else {},
        lends=lends,
    )


def stand(*views: QueueSnapshot, capacity: int = 32) -> Mapping[str, QueueStatus]:
    return queue_statuses({one.uid: one for one in views}, chip=CHIP, capacity=capacity)


def test_the_tree_of_the_documentation_stands_as_it_says() -> None:
    found = stand(
        view("research", guaranteed=16),
        view("vision", parent="research", guaranteed=8, used=16),
        view("speech", parent="research", guaranteed=8, used=4),
        view("product", guaranteed=8, used=2),
        view("batch", used=8),
    )
    usage = {uid: (one.guaranteed, one.used, one.borrowed, one.lent) for uid, one in found.items()}
    assert usage == {
        "research": (16, 20, 4, 0),
        "vision": (8, 16, 8, 0),
        "speech": (8, 4, 0, 4),
        "product": (8, 2, 0, 4),
        "batch": (0, 8, 8, 0),
    }
    assert found["product"].idle == 2
    assert found["product"].reclaimable == 6


def test_cards_that_nobody_is_guaranteed_are_borrowed_first() -> None:
    found = stand(view("owed", guaranteed=8), view("batch", used=20))
    assert (found["batch"].borrowed, found["owed"].lent) == (20, 0)
    found = stand(view("owed", guaranteed=8), view("batch", used=28))
    assert (found["batch"].borrowed, found["owed"].lent) == (28, 4)


def test_what_is_reserved_or_kept_is_lent_last() -> None:
    found = stand(
        view("reserves", guaranteed=8, reserved=8),
        view("keeps", guaranteed=8, lends=False),
        view("lends", guaranteed=8),
        view("batch", used=16),
    )
    assert [found[uid].lent for uid in ("reserves", "keeps", "lends")] == [0, 0, 8]


def test_a_queue_without_a_guarantee_has_the_right_of_those_below() -> None:
    found = stand(view("above"), view("below", parent="above", guaranteed=6, used=4))
    assert (found["above"].guaranteed, found["above"].own, found["above"].borrowed) == (6, 4, 0)


def test_all_chips_together_are_judged_by_what_is_stated_for_them() -> None:
    queue = QueueSnapshot(
        uid="q",
        name="q",
        total=ChipQuota(guaranteed=4, cap=9),
        used={"h800": 3, "ascend-910b3": 4},
    )
    found = queue_statuses({"q": queue}, chip=TOTAL, capacity=16)["q"]
    assert (found.used, found.guaranteed, found.borrowed, found.cap) == (7, 4, 3, 9)
    assert chips_of_queue({"q": queue}) == ("ascend-910b3", "h800")


@st.composite
def trees(draw: st.DrawFn) -> tuple[dict[str, QueueSnapshot], int]:
    """Any tree of up to nine queues in which guarantees below fit into those above, and any use of it."""
    count = draw(st.integers(1, 9))
    parents = [draw(st.integers(-1, place - 1)) for place in range(count)]
    own = [draw(st.integers(0, 12)) for _ in range(count)]
    views = {}
    for place in range(count):
        guaranteed = draw(st.sampled_from((0, own[place] + 20)))
        views[str(place)] = view(
            str(place),
            parent=None if parents[place] < 0 else str(parents[place]),
            guaranteed=guaranteed,
            reserved=draw(st.integers(0, guaranteed)),
            used=draw(st.integers(0, 30)),
            lends=draw(st.booleans()),
        )
    held = sum(one.used.get(CHIP, 0) for one in views.values())
    return views, held + draw(st.integers(0, 60))


def _families(
    views: Mapping[str, QueueSnapshot],
) -> Iterator[tuple[QueueSnapshot | None, list[str]]]:
    """Each queue with those right below it; None for the fleet."""
    for above in (None, *views.values()):
        uid = above.uid if above else None
        yield above, [one.uid for one in views.values() if one.parent == uid]


@given(trees())
@settings(max_examples=examples(300))
def test_at_every_level_what_is_borrowed_is_lent_or_nobodys(
    drawn: tuple[dict[str, QueueSnapshot], int],
) -> None:
    views, capacity = drawn
    found = queue_statuses(views, chip=CHIP, capacity=capacity)
    for above, below in _families(views):
        if not below:
            continue
        stands = found[above.uid] if above else None
        right = stands.guaranteed if stands else capacity
        nobodys = max(0, right - sum(found[uid].guaranteed for uid in below))
        held = above.used.get(CHIP, 0) if above else 0
        wanted = held + sum(found[uid].borrowed for uid in below) + (stands.lent if stands else 0)
        given_ = sum(found[uid].lent for uid in below) + (stands.borrowed if stands else 0)
        assert given_ <= wanted <= given_ + nobodys
        # Nobody lends while something is left that is nobody's.
        assert wanted == given_ + nobodys or not any(found[uid].lent for uid in below)


@given(trees())
@settings(max_examples=examples(300))
def test_nobody_lends_more_than_it_leaves_idle(
    drawn: tuple[dict[str, QueueSnapshot], int],
) -> None:
    views, capacity = drawn
    for one in queue_statuses(views, chip=CHIP, capacity=capacity).values():
        assert one.idle >= 0
        assert one.own + one.borrowed == one.used
        assert one.own + one.lent + one.idle == one.guaranteed
        assert not (one.borrowed and one.lent)
