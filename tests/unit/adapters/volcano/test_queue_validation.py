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
            "the a reserves 9 huawei.com/Ascend910, more than its guaranteed quota of 8",
        ),
        (
            [theirs("a", guarantee=1)],
            "the a reserves 1 huawei.com/Ascend910 without a guaranteed quota",
        ),
        (
            [theirs("a", deserved=9, capability=8)],
            "the a has a guaranteed quota of 9 huawei.com/Ascend910, more than its cap of 8",
        ),
        (
            [
                theirs("a", deserved=8),
                theirs("b", parent="a", deserved=5),
                theirs("c", parent="a", deserved=4),
            ],
            "of the a have guaranteed quotas of 9 huawei.com/Ascend910 together, more than the 8",
        ),
        (
            [theirs("a"), theirs("b", parent="a", deserved=1)],
            "of the a have guaranteed quotas of 1 huawei.com/Ascend910 together, more than the 0",
        ),
        (
            [
                theirs("a", capability=8),
                theirs("b", parent="a"),
                theirs("c", parent="b", capability=9),
            ],
            "the c has a cap of 9 huawei.com/Ascend910, more than the cap of 8 of its ancestor the a",
        ),
        (
            [theirs("a", parent="gone")],
            "the parent queue gone of queue the a does not exist on the cluster",
        ),
        ([theirs("a", parent="b"), theirs("b", parent="a")], "the a is its own ancestor"),
    ],
)
def test_what_is_out_of_order_is_said(tree: list[dict[str, Any]], said: str) -> None:
    assert any(said in message for message in messages(*tree)), messages(*tree)


def test_a_tree_may_be_as_deep_as_volcanos_admission_takes() -> None:
    deep = [theirs("q1"), *(theirs(f"q{n}", parent=f"q{n - 1}") for n in range(2, 7))]
    assert messages(*deep[:5]) == []
    (said,) = messages(*deep)
    assert "at depth 6; the limit of Volcano is 5" in said


def test_only_an_open_leaf_takes_work() -> None:
    closing = theirs("closing", status={"state": "Closing"})
    tree = [theirs("top"), theirs("leaf", parent="top"), closing]
    queues.check_accepts_work("leaf", tree)
    for name, error, message in (
        ("root", LaunchRefused, "does not accept workloads"),
        ("top", LaunchRefused, "has child queues"),
        ("closing", ClusterUnavailable, "is Closing on the cluster"),
        ("absent", ClusterUnavailable, "queue absent does not exist"),
    ):
        with pytest.raises(error, match=message):
            queues.check_accepts_work(name, tree)


@pytest.mark.parametrize(
    ("queue", "children", "message"),
    [
        (theirs("root"), 0, "is built into Volcano"),
        (theirs("default"), 0, "is built into Volcano"),
        (theirs("a"), 2, "child queues of queue the a on the cluster: 2"),
        (
            theirs("a", status={"allocated": {"pods": "3"}}),
            0,
            "pods of queue the a on the cluster: 3",
        ),
        (theirs("a"), 0, ""),
    ],
)
def test_what_may_be_deleted(queue: dict[str, Any], children: int, message: str) -> None:
    refusal = queues.deletion_blocker(queue, children=children)
    assert message in refusal
    assert bool(refusal) == bool(message)
