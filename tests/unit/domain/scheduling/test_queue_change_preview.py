"""What a change of the tree would do now, by the plan itself."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from controlplane.domain.quotas.queue_documents import Documents, queue_snapshots
from controlplane.domain.quotas.queues import ChipQuota, QueueState
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.domain.scheduling.queue_change_preview import QueueChangeEffects, preview_effects
from controlplane.domain.scheduling.snapshots import SchedulingSnapshot
from tests.unit.domain.quotas.queue_trees import CHIP, document, tree
from tests.unit.domain.scheduling.fleets import AT, claim, node, role, running, snapshot

TREE = tree(document("owner"), document("borrower"))


def world(documents: Documents, *, wanted: int = 4) -> SchedulingSnapshot:
    """Eight cards, all held by two claims of the borrower; the owner waits for some."""
    return snapshot(
        node("n1", chip=CHIP),
        claims=[claim("wanting", role(wanted), queue="owner", chips=(CHIP,))],
        running=[
            running("old", {"n1": range(4)}, chip=CHIP, queue="borrower", since=timedelta(hours=9)),
            running("young", {"n1": range(4, 8)}, chip=CHIP, queue="borrower", saved=None),
        ],
        queues=queue_snapshots(documents, {}).values(),
    )


def entitled(cards: int, *, cap: int | None = None) -> Documents:
    owner = replace(TREE["owner"], entitlements={CHIP: ChipQuota(guaranteed=cards, cap=cap)})
    return {**TREE, "owner": owner}


def of(before: Documents, after: Documents, *, wanted: int = 4) -> QueueChangeEffects:
    return preview_effects(
        world(before, wanted=wanted), before, after, at=AT, policy=SchedulingPolicy()
    )


def test_a_guarantee_shows_who_gains_and_who_would_have_to_stop_for_it() -> None:
    effect = of(TREE, entitled(4))

    (gain,) = effect.gains
    assert (gain.queue, gain.chip) == ("owner", CHIP)
    assert (gain.guaranteed_before, gain.guaranteed_after) == (0, 4)
    assert (gain.cards_now, gain.starting) == (4, ("wanting",))
    (eviction,) = effect.evictions
    # The one that saved ten minutes ago loses less than the one that never did.
    assert (eviction.claim, eviction.beneficiary) == ("old", "wanting")


def test_what_the_next_cycle_would_do_anyway_is_no_effect_of_the_change() -> None:
    effect = of(entitled(4), entitled(8))

    assert not effect.evictions
    (gain,) = effect.gains
    assert (gain.guaranteed_before, gain.guaranteed_after) == (4, 8)
    assert (gain.cards_now, gain.starting) == (0, ())


def test_a_queue_that_loses_is_told_too() -> None:
    (gain,) = of(entitled(4), TREE).gains

    assert (gain.guaranteed_after, gain.cards_now, gain.starting) == (0, -4, ())


def test_a_queue_that_is_opened_gains_though_it_states_nothing_else() -> None:
    closed = {**TREE, "owner": replace(TREE["owner"], state=QueueState.CLOSED)}
    idle = replace(world(closed), running=(), nodes=(node("n1", chip=CHIP),))

    (gain,) = preview_effects(idle, closed, TREE, at=AT, policy=SchedulingPolicy()).gains
    assert (gain.queue, gain.chip, gain.cards_now) == ("owner", CHIP, 4)


def test_the_snapshot_is_left_as_it_was() -> None:
    seen = world(TREE)
    preview_effects(seen, TREE, entitled(8), at=AT, policy=SchedulingPolicy())
    assert seen == world(TREE)
