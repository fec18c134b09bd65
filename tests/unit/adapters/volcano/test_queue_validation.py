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


def test_a_guarantee_above_the_cap_is_said() -> None:
    assert messages(theirs("top", guarantee=4, deserved=8, capability=8)) == []
    (said,) = messages(theirs("a", deserved=9, capability=8))
    assert "the a has a guaranteed quota of 9 huawei.com/Ascend910, more than its cap of 8" in said


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
