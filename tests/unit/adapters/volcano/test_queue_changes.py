"""From any tree to any other, every single step is one that Volcano's admission takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.adapters.clusters.volcano import queues
from controlplane.adapters.clusters.volcano.object_sync import ChangeAction, plan_queue_changes
from controlplane.adapters.clusters.volcano.queues import translate_queues
from controlplane.domain.quotas.queue_documents import QueueDocument, queue_snapshots
from controlplane.domain.quotas.queues import ChipQuota, QueueState
from controlplane.domain.quotas.validation import tree_findings
from tests.properties import examples
from tests.unit.adapters.volcano.trees import (
    B3,
    H800,
    NPU,
    OURS,
    RESOURCES,
    Cluster,
    admission_errors,
    called,
    queue,
    tree,
)

Tree = Mapping[str, QueueDocument]
NAMES = ("a", "b", "c", "d", "e")


def brought(cluster: Cluster, documents: Tree) -> list[ChangeAction]:
    ours = translate_queues(documents, resources=RESOURCES, installation=OURS)
    changes = plan_queue_changes(ours, list(cluster.queues.values()), installation=OURS).changes
    cluster.apply(changes)
    return [change.action for change in changes]


@st.composite
def amounts(draw: st.DrawFn) -> ChipQuota:
    reserved, more, room = (draw(st.integers(0, 6)) for _ in range(3))
    capped = draw(st.booleans())
    return ChipQuota(
        reserved=reserved,
        guaranteed=reserved + more,
        cap=reserved + more + room if capped else None,
    )


@st.composite
def trees(draw: st.DrawFn) -> Tree:
    """Such as our own rules let people save, with queues above others that state nothing or enough."""
    documents: dict[str, QueueDocument] = {}
    for name in draw(st.permutations(NAMES))[: draw(st.integers(1, 5))]:
        documents[name] = QueueDocument(
            uid=name,
            name=name,
            parent=draw(st.sampled_from(["", *documents])),
            lends=draw(st.booleans()),
            borrows=draw(st.booleans()),
            entitlements={chip: draw(amounts()) for chip in (B3, H800) if draw(st.booleans())},
        )
    return documents


def sound(documents: Tree) -> bool:
    ours = translate_queues(documents, resources=RESOURCES, installation=OURS)
    return not tree_findings(queue_snapshots(documents, {})) and not queues.queue_violations(
        ours.queues
    )


@given(documents=trees())
@settings(max_examples=examples(200), deadline=None)
def test_what_admission_refuses_of_a_translated_tree_is_said_before(documents: Tree) -> None:
    found = translate_queues(documents, resources=RESOURCES, installation=OURS).queues
    assert bool(admission_errors(found)) == bool(queues.queue_violations(found))


@given(before=trees().filter(sound), after=trees().filter(sound))
@settings(max_examples=examples(120), deadline=None)
def test_every_step_from_one_tree_to_another_is_admitted(before: Tree, after: Tree) -> None:
    cluster = Cluster()
    brought(cluster, before)
    brought(cluster, after)
    wanted = translate_queues(after, resources=RESOURCES, installation=OURS).queues
    assert {name: one["spec"] for name, one in cluster.queues.items()} == {
        one["metadata"]["name"]: one["spec"] for one in wanted
    }
    assert brought(cluster, after) == []


def test_cards_move_between_neighbours_of_a_queue_that_is_full() -> None:
    cluster = Cluster()
    brought(
        cluster,
        tree(
            queue("top", guaranteed=8),
            queue("x", parent="top", guaranteed=8),
            queue("y", parent="top"),
        ),
    )
    after = tree(
        queue("top", guaranteed=8), queue("x", parent="top"), queue("y", parent="top", guaranteed=8)
    )
    assert brought(cluster, after) == [ChangeAction.APPLY, ChangeAction.APPLY]
    assert queues.queue_amounts(cluster.queues[called("y")], "deserved") == {NPU: 8}


def test_queues_that_are_not_ours_are_never_touched() -> None:
    foreign: dict[str, Any] = {
        "metadata": {"name": "default", "labels": {}},
        "spec": {"weight": 1},
        "status": {"state": "Open"},
    }
    cluster = Cluster([foreign])
    brought(cluster, tree(queue("mine", guaranteed=1)))
    brought(cluster, tree())
    assert cluster.queues == {"default": foreign}


def test_a_queue_is_closed_and_opened_by_command_and_what_stands_below_it_follows() -> None:
    cluster = Cluster()
    open_, closed = (
        tree(queue("top", state=state), queue("leaf", parent="top"))
        for state in (QueueState.OPEN, QueueState.CLOSED)
    )
    brought(cluster, open_)
    brought(cluster, closed)
    assert cluster.commands == [f"CloseQueue {called('top')}"]
    for one in cluster.queues.values():
        one["status"] = {"state": "Closed"}
    assert brought(cluster, closed) == []
    brought(cluster, open_)
    assert cluster.commands[1:] == [f"OpenQueue {called('top')}", f"OpenQueue {called('leaf')}"]


def test_a_queue_with_pods_outlives_the_tree_without_its_share_and_keeps_those_above() -> None:
    cluster = Cluster()
    brought(cluster, tree(queue("top", guaranteed=4), queue("leaf", parent="top", guaranteed=4)))
    cluster.queues[called("leaf")]["status"] = {"state": "Open", "allocated": {"pods": "2"}}
    ours = translate_queues(tree(), resources=RESOURCES, installation=OURS)
    found = plan_queue_changes(ours, list(cluster.queues.values()), installation=OURS)
    cluster.apply(found.changes)
    assert [finding.field for finding in found.findings] == ["top › leaf", "top"]
    assert all("deserved" not in one["spec"] for one in cluster.queues.values())
