"""What is wrong with a queue tree, in words that say what to do."""

from __future__ import annotations

import pytest

from controlplane.domain.quotas.queues import ChipQuota, QueueSnapshot
from controlplane.domain.quotas.validation import tree_findings
from tests.unit.domain.quotas.quota_trees import allows, queue, tree


def messages(*queues: QueueSnapshot, taking: tuple[str, ...] = ()) -> list[str]:
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
            "queue a is below gone, which does not exist; choose another parent",
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
            [queue("a", total=ChipQuota(guaranteed=4, cap=2))],
            "queue a guarantees 4 cards in all, more than its cap of 2; "
            "raise the cap or lower the guarantee",
        ),
        (
            [
                queue("a", guaranteed=8),
                queue("b", parent="a", guaranteed=6),
                queue("c", parent="a", guaranteed=4),
            ],
            (
                "the guaranteed quotas of the queues below a total 10 × ascend-910b3, "
                "more than its own guaranteed 8; lower their guarantees or raise its "
                "own"
            ),
        ),
        (
            [queue("a", cap=4), queue("b", parent="a", guaranteed=6)],
            (
                "the guaranteed quotas of the queues below a total 6 × ascend-910b3, "
                "more than its cap of 4; lower the guarantees or raise the cap"
            ),
        ),
    ],
)
def test_each_finding_names_the_queue_and_the_numbers(
    queues: list[QueueSnapshot], message: str
) -> None:
    assert messages(*queues) == [message]


def test_queues_that_stand_below_one_another_are_found_and_do_no_harm() -> None:
    circle = [queue("a", parent="b"), queue("b", parent="a", used=2)]

    assert messages(*circle) == [
        "queue a is below itself; move one of its ancestors to the top level",
        "queue b is below itself; move one of its ancestors to the top level",
    ]
    assert allows(tree(*circle, free=4), "a", 2)


def test_only_queues_without_others_below_take_claims() -> None:
    found = messages(queue("a"), queue("b", parent="a"), taking=("a", "b"))

    assert found == [
        "queue a has child queues, so it accepts no claims; submit to one of the child queues"
    ]
