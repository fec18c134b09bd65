"""What the tree of queues remembers between changes is what it would say if it were asked for the first time."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.quotas.tree import QueueTree

QUEUES = {
    view.uid: view
    for view in (
        QueueSnapshot(
            uid="research", name="research", entitlements={"npu": ChipQuota(guaranteed=9)}
        ),
        QueueSnapshot(
            uid="vision",
            name="vision",
            parent="research",
            entitlements={"npu": ChipQuota(reserved=2, guaranteed=4)},
        ),
        QueueSnapshot(
            uid="speech", name="speech", parent="research", total=ChipQuota(guaranteed=3)
        ),
        QueueSnapshot(uid="product", name="product", total=ChipQuota(guaranteed=6), lends=False),
        QueueSnapshot(uid="search", name="search", parent="product", weight=2.0),
        QueueSnapshot(uid="batch", name="batch"),
    )
}
LEAVES = ("vision", "speech", "search", "batch")
#: One act on a tree.
Change = Callable[[QueueTree], None]


def tree() -> QueueTree:
    return QueueTree(QUEUES, free={"npu": 24, "gpu": 8})


def changed(random: Random) -> Change:
    queue, chip, cards = random.choice(LEAVES), random.choice(("npu", "gpu")), random.randint(1, 4)
    action = random.choice(("charge", "charge", "nominate", "charge_evicted_cards", "reserve"))
    return lambda usage: getattr(usage, action)(queue, chip, cards)


@pytest.mark.parametrize("seed", range(8))
def test_standings_and_coverings_are_never_stale(seed: int) -> None:
    random, cached, changes = Random(seed), tree(), list[Change]()
    for _ in range(14):
        changes.append(changed(random))
        changes[-1](cached)
        anew = tree()
        for change in changes:
            change(anew)
        for queue in QUEUES:
            assert cached.dominant_shares(queue) == anew.dominant_shares(queue)
            for chip in ("npu", "gpu"):
                for cards in (0, 1, 3):
                    covered_by = cached.covered_by(queue, chip, cards)
                    assert covered_by == anew.check(queue, chip, cards).covered_by


def test_a_version_changes_with_what_happens_below_the_same_topmost_queue_alone() -> None:
    versioned = tree()
    before = {queue: versioned.version_of(queue) for queue in QUEUES}
    versioned.charge("speech", "npu", 1)
    differing = {queue for queue in QUEUES if versioned.version_of(queue) != before[queue]}
    assert differing == {"research", "vision", "speech"}
