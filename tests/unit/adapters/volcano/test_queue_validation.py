"""What Volcano's admission would refuse is refused by us first, with queues and numbers."""

from __future__ import annotations

from typing import Any

import pytest

from controlplane.adapters.clusters.volcano import object_names, queues
from controlplane.ports.clusters import ClusterUnavailable, LaunchRefused
from tests.unit.adapters.volcano.trees import NPU


def theirs(
    name: str, *, parent: str = "root", status: dict[str, Any] | None = None, **spec: int
) -> dict[str, Any]:
    """``guarantee``, ``deserved``, ``capability`` in cards."""
    stated: dict[str, Any] = {word: {NPU: str(cards)} for word, cards in spec.items()}
    if "guarantee" in stated:
        stated["guarantee"] = {"resource": stated["guarantee"]}
    return {
        "metadata": {"name": name, "annotations": {object_names.TITLE: f"the {name}"}},
        "spec": {"parent": parent, **stated},
        "status": status or {"state": "Open"},
    }


def messages(*tree: dict[str, Any]) -> list[str]:
    return [finding.message for finding in queues.queue_violations(tree)]


def test_amounts_in_order_are_admitted() -> None:
    inner = theirs("top", guarantee=4, deserved=8, capability=16)
    leaf = theirs("leaf", parent="top", guarantee=4, deserved=8, capability=16)
    assert messages(inner, leaf) == []


@pytest.mark.parametrize(
    ("tree", "said"),
    [
        (
            [theirs("a", guarantee=9, deserved=8)],
            "the a keeps 9 huawei.com/Ascend910 to itself, more than its guarantee of 8",
        ),
        (
            [theirs("a", guarantee=1)],
            "the a keeps 1 huawei.com/Ascend910 to itself and is guaranteed none",
        ),
        (
            [theirs("a", deserved=9, capability=8)],
            "the a is guaranteed 9 huawei.com/Ascend910, more than its cap of 8",
        ),
        (
            [
                theirs("a", deserved=8),
                theirs("b", parent="a", deserved=5),
                theirs("c", parent="a", deserved=4),
            ],
            "the queues below the a are guaranteed 9 huawei.com/Ascend910 together, and it has 8",
        ),
        (
            [theirs("a"), theirs("b", parent="a", deserved=1)],
            "the queues below the a are guaranteed 1 huawei.com/Ascend910 together, and it has 0",
        ),
        (
            [
                theirs("a", capability=8),
                theirs("b", parent="a"),
                theirs("c", parent="b", capability=9),
            ],
            "the c has a cap of 9 huawei.com/Ascend910, more than the 8 of the a above it",
        ),
        ([theirs("a", parent="gone")], "the a stands below gone, which the cluster does not have"),
        ([theirs("a", parent="b"), theirs("b", parent="a")], "the a stands below itself"),
    ],
)
def test_what_is_out_of_order_is_said(tree: list[dict[str, Any]], said: str) -> None:
    assert any(said in message for message in messages(*tree)), messages(*tree)


def test_a_tree_may_be_as_deep_as_volcanos_admission_takes() -> None:
    deep = [theirs("q1"), *(theirs(f"q{n}", parent=f"q{n - 1}") for n in range(2, 7))]
    assert messages(*deep[:5]) == []
    (said,) = messages(*deep)
    assert "6 levels down, and Volcano takes 5" in said


def test_only_an_open_leaf_takes_work() -> None:
    closing = theirs("closing", status={"state": "Closing"})
    tree = [theirs("top"), theirs("leaf", parent="top"), closing]
    queues.check_accepts_work("leaf", tree)
    for name, error, message in (
        ("root", LaunchRefused, "takes no work"),
        ("top", LaunchRefused, "has queues below it"),
        ("closing", ClusterUnavailable, "is closing on the cluster"),
        ("absent", ClusterUnavailable, "no queue absent"),
    ):
        with pytest.raises(error, match=message):
            queues.check_accepts_work(name, tree)


@pytest.mark.parametrize(
    ("queue", "children", "message"),
    [
        (theirs("root"), 0, "belongs to Volcano"),
        (theirs("default"), 0, "belongs to Volcano"),
        (theirs("a"), 2, "has 2 queues below it"),
        (theirs("a", status={"allocated": {"pods": "3"}}), 0, "has 3 pods"),
        (theirs("a"), 0, ""),
    ],
)
def test_what_may_be_deleted(queue: dict[str, Any], children: int, message: str) -> None:
    refusal = queues.deletion_blocker(queue, children=children)
    assert message in refusal
    assert bool(refusal) == bool(message)
