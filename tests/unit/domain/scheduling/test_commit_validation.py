"""What is judged once more when a plan is written down."""

from __future__ import annotations

import pytest

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.resources import Resources
from controlplane.domain.quotas.queues import QueueSnapshot
from controlplane.domain.scheduling.commit_validation import (
    CommitClaim,
    CommitValidator,
    PlacementConflict,
)
from controlplane.domain.scheduling.plans import ClaimPlacement
from controlplane.domain.scheduling.snapshots import CardSnapshot, NodeSnapshot, ReplicaPlacement

QUEUE = QueueSnapshot(uid="batch", name="batch")


def validator() -> CommitValidator:
    """One node with a card that anybody may have, and one that was freed for ``heir``."""
    cards = tuple(
        CardSnapshot(
            uid=f"card-{index}",
            index=index,
            chip="npu",
            state=CardState.USABLE,
            nominated_for=nominated_for,
        )
        for index, nominated_for in enumerate(("", "heir"))
    )
    node = NodeSnapshot(uid="node", name="node", cluster="one", cards=cards, capacity=Resources())
    return CommitValidator(nodes=(node,), queues={QUEUE.uid: QUEUE}, running=())


def admit(validation: CommitValidator, claim: str, card: str) -> None:
    replica = ReplicaPlacement(role="trainer", index=0, node="node", cards=(card,), count=1)
    placement = ClaimPlacement(claim=claim, chip="npu", replicas=(replica,), reason="it fits")
    validation.admit(CommitClaim(uid=claim, queue=QUEUE.uid), placement)


def test_nobody_gets_a_card_that_is_kept_for_one_who_still_waits() -> None:
    validation = validator()
    with pytest.raises(
        PlacementConflict, match="card-1 of node node is reserved for another claim"
    ):
        admit(validation, "other", "card-1")
    admit(validation, "heir", "card-1")


def test_what_is_kept_for_one_who_got_other_cards_is_for_whoever_is_next() -> None:
    validation = validator()
    admit(validation, "heir", "card-0")
    admit(validation, "other", "card-1")


def test_no_card_is_given_twice() -> None:
    validation = validator()
    admit(validation, "one", "card-0")
    with pytest.raises(
        PlacementConflict, match="card-0 of node node is allocated to another claim"
    ):
        admit(validation, "other", "card-0")
