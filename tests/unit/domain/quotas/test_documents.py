"""Queues as documents: kept as JSON, compared in words, read and written as files."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from controlplane.domain.quotas.queue_documents import (
    DifferenceKind,
    Documents,
    TreeEdit,
    apply_tree_edit,
    queue_document_from_json,
    queue_document_to_json,
    queue_snapshots,
    queue_tree_fingerprint,
    tree_differences,
    without_unchanged_queues,
)
from controlplane.domain.quotas.queue_files import (
    InvalidQueueFile,
    dump_queue_file,
    parse_queue_file,
    with_pruned_queues,
)
from controlplane.domain.quotas.queues import TOTAL, ChipQuota, QueueState
from tests.properties import examples
from tests.unit.domain.quotas.queue_trees import CHIP, document, tree, trees

TREE = tree(
    document("research", team="research", weight=2.0, reserved=4, guaranteed=16, cap=24),
    document("vision", parent="research", team="research", guaranteed=8),
    document("speech", parent="research", team="research", guaranteed=8),
    document("batch"),
)


def messages(before: Documents, after: Documents) -> list[str]:
    return [difference.message for difference in tree_differences(before, after)]


@settings(max_examples=examples(50))
@given(trees())
def test_a_document_is_kept_as_json_and_read_back(documents: Documents) -> None:
    for one in documents.values():
        assert queue_document_from_json(json.loads(json.dumps(queue_document_to_json(one)))) == one


def test_the_limit_per_user_is_read_by_its_earlier_name() -> None:
    stored = queue_document_to_json(document("batch", max_running_per_user=3))
    stored["running_per_person"] = stored.pop("max_running_per_user")
    assert queue_document_from_json(stored).max_running_per_user == 3
    (read,) = parse_queue_file({"queues": {"a": {"running_per_person": 2}}}, {}).queues.values()
    assert read.max_running_per_user == 2


@settings(max_examples=examples(50))
@given(trees())
def test_what_a_tree_writes_it_reads_back_without_a_difference(documents: Documents) -> None:
    file = parse_queue_file(dump_queue_file(documents), documents)

    assert file.queues == documents
    assert not file.unnamed
    assert not tree_differences(documents, file.queues)


@settings(max_examples=examples(50))
@given(trees())
def test_a_part_that_is_written_is_read_back_in_its_place(documents: Documents) -> None:
    for uid in documents:
        file = parse_queue_file(dump_queue_file(documents, of=uid), documents)
        assert {**documents, **file.queues} == documents
        assert not file.unnamed


@settings(max_examples=examples(50))
@given(trees(), trees())
def test_two_trees_differ_in_words_exactly_where_they_differ(
    before: Documents, after: Documents
) -> None:
    differing = {uid for uid in {*before, *after} if before.get(uid) != after.get(uid)}

    assert {difference.uid for difference in tree_differences(before, after)} == differing
    assert (queue_tree_fingerprint(before) == queue_tree_fingerprint(after)) == (not differing)


def test_a_change_is_told_field_by_field_with_both_values() -> None:
    vision = replace(
        TREE["vision"],
        parent="batch",
        state=QueueState.DRAINING,
        lends=False,
        max_running_per_user=3,
        entitlements={
            CHIP: ChipQuota(reserved=2, guaranteed=12, cap=14),
            TOTAL: ChipQuota(cap=20),
        },
    )

    assert messages(TREE, {**TREE, "vision": vision}) == [
        "queue vision moves from research to batch",
        "queue vision is drained: it accepts no new claims; pending claims are still admitted",
        "queue vision no longer lends its idle quota",
        "queue vision limits the running claims per user to 3; there was no limit",
        "queue vision has a cap of 20 cards in all; there was no cap",
        "queue vision reserves 2 × nvidia-h800 instead of 0",
        "queue vision is guaranteed 12 × nvidia-h800 instead of 8",
        "queue vision has a cap of 14 × nvidia-h800; there was no cap",
    ]


def test_queues_that_come_and_go_are_told_with_their_place() -> None:
    after = {uid: one for uid, one in TREE.items() if uid not in ("speech", "batch")}
    after["new:audio"] = replace(TREE["speech"], uid="new:audio", name="audio")

    differences = tree_differences(TREE, after)

    assert [one.message for one in differences if one.kind is not DifferenceKind.CHANGED] == [
        "queue audio is created under research",
        "queue batch at the top level is retired",
        "queue speech under research is retired",
    ]
    assert "queue audio is guaranteed 8 × nvidia-h800 instead of 0" in [
        one.message for one in differences
    ]


def test_an_edit_leaves_out_what_it_leaves_as_it_is() -> None:
    edit = TreeEdit(
        queues={"vision": replace(TREE["vision"], uid=""), "batch": None, "gone": None},
        action="edit",
    )

    assert set(without_unchanged_queues(TREE, edit).queues) == {"batch"}
    assert set(apply_tree_edit(TREE, edit)) == {"research", "vision", "speech"}


def test_a_closed_queue_is_seen_as_one_that_admits_nothing_and_a_draining_one_is_not() -> None:
    for state, is_open in zip(QueueState, (True, True, False), strict=True):
        (view,) = queue_snapshots(tree(document("a", state=state)), {"a": {CHIP: 3}}).values()
        assert view.open is is_open
        assert view.used == {CHIP: 3}


# -- Files --


def test_a_file_says_only_what_does_not_go_without_saying() -> None:
    assert dump_queue_file(TREE) == {
        "queues": {
            "batch": {},
            "research": {
                "team": "research",
                "weight": 2,
                "cards": {CHIP: {"reserved": 4, "guaranteed": 16, "cap": 24}},
                "below": {
                    "speech": {"cards": {CHIP: {"guaranteed": 8}}},
                    "vision": {"cards": {CHIP: {"guaranteed": 8}}},
                },
            },
        }
    }
    assert dump_queue_file(TREE, of="vision") == {
        "below": "research",
        "queues": {"vision": {"cards": {CHIP: {"guaranteed": 8}}}},
    }


def test_a_new_queue_takes_the_team_of_the_one_above_it() -> None:
    file = parse_queue_file({"below": "research", "queues": {"audio": None}}, TREE)

    (audio,) = file.queues.values()
    assert (audio.uid, audio.parent, audio.team) == ("new:audio", "research", "research")


def test_pruning_is_of_the_whole_tree_or_of_what_is_below_the_named_queues() -> None:
    whole = parse_queue_file({"queues": {"batch": None}}, TREE)
    part = parse_queue_file({"queues": {"batch": None}, "below": None}, TREE)
    research = dump_queue_file(TREE, of="research")
    del research["queues"]["research"]["below"]["speech"]

    assert set(whole.unnamed) == {"research", "vision", "speech"}
    assert part.unnamed == ()
    assert (
        with_pruned_queues(parse_queue_file({**research, "below": "batch"}, TREE))["speech"] is None
    )
    assert "batch" not in with_pruned_queues(parse_queue_file({**research, "below": "batch"}, TREE))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (["research"], "a file must have queues: with a queue under each name, got ['research']"),
        ({}, "queues: expected a queue under each name, got None"),
        (
            {"queues": {}, "queue": {}},
            "file: unknown field 'queue'; known are queues, below",
        ),
        ({"queues": {}, "below": "x"}, "below must be the name of an existing queue, got 'x'"),
        (
            {"queues": {False: {}}},
            "queues: a queue name must be text, got False; put it in quotes",
        ),
        (
            {"queues": {"a": {"below": {"b": {}}}, "b": {}}},
            "b: duplicate name b; it is also at a › b",
        ),
        ({"queues": {"a": 3}}, "a: a queue must consist of fields and values, got 3"),
        (
            {"queues": {"a": {"cards": {CHIP: {"garanteed": 8}}}}},
            "a › nvidia-h800: unknown field 'garanteed'; known are reserved, guaranteed, cap",
        ),
        (
            {"queues": {"research": {"below": {"vision": {"cards": {CHIP: {"cap": "eight"}}}}}}},
            "research › vision › nvidia-h800: cap must be a whole number of cards from 0, "
            "got 'eight'",
        ),
        (
            {"queues": {"a": {"cards": {CHIP: {"reserved": -1}}}}},
            "a › nvidia-h800: reserved must be a whole number of cards from 0, got -1",
        ),
        (
            {"queues": {"a": {"cards": {CHIP: 8}}}},
            "a › nvidia-h800: expected reserved, guaranteed or cap, got 8",
        ),
        (
            {"queues": {"a": {"weight": float("nan")}}},
            "a: weight must be a number greater than 0, got nan",
        ),
        ({"queues": {"a": {"lends": "no"}}}, "a: lends must be true or false, got 'no'"),
        (
            {"queues": {"a": {"state": "shut"}}},
            "a: state must be open, draining or closed, got 'shut'",
        ),
        (
            {"queues": {"a": {"max_running_per_user": 0}}},
            "a: max_running_per_user must be a whole number from 1, or null for no limit, got 0",
        ),
    ],
)
def test_a_mistake_in_a_file_is_told_with_its_path(content: Any, message: str) -> None:
    with pytest.raises(InvalidQueueFile) as refused:
        parse_queue_file(content, TREE)
    assert [finding.message for finding in refused.value.findings] == [message]


def test_a_file_deeper_than_a_tree_may_be_is_refused_however_deep_it_is() -> None:
    content: dict[str, Any] = {}
    for level in range(100):
        content = {f"q{level}": {"below": content}}

    with pytest.raises(InvalidQueueFile, match="queues can be at most 8 levels deep"):
        parse_queue_file({"queues": content}, TREE)
