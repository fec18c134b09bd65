"""Our queue tree as Volcano's Queues: amounts by resource, what is rolled up, and what cannot be said there."""

from __future__ import annotations

import re

import pytest

from controlplane.adapters.clusters.kubernetes.api import Object
from controlplane.adapters.clusters.volcano import object_names, queues
from controlplane.adapters.clusters.volcano.queues import (
    TranslatedQueues,
    translate_queues,
)
from controlplane.domain.quotas.queue_documents import QueueDocument
from controlplane.domain.quotas.queues import TOTAL, ChipQuota, QueueState
from tests.golden.manifests import compare
from tests.unit.adapters.volcano.schemas import assert_valid
from tests.unit.adapters.volcano.trees import (
    B2,
    B3,
    GPU,
    H800,
    NPU,
    OURS,
    RESOURCES,
    called,
    queue,
    tree,
)

COMPANY = tree(
    queue("research", reserved=8, guaranteed=32, cap=64),
    queue("vision", parent="research", guaranteed=16, reserved=4, weight=2.0),
    queue("speech", parent="research", guaranteed=16, cap=80),
    queue("product", guaranteed=8, lends=False, chip=H800),
    queue("batch", borrows=False, guaranteed=4, state=QueueState.CLOSED),
    queue("ending", state=QueueState.DRAINING),
)


def given(*documents: QueueDocument, resources: dict[str, str] | None = None) -> TranslatedQueues:
    return translate_queues(tree(*documents), resources=resources or RESOURCES, installation=OURS)


def only(found: TranslatedQueues, name: str) -> Object:
    return next(one for one in found.queues if one["metadata"]["name"] == called(name))


def test_a_whole_tree_is_what_the_file_says_and_fits_the_schema() -> None:
    found = translate_queues(COMPANY, resources=RESOURCES, installation=OURS)
    metadata = {**only(found, "batch")["metadata"], "uid": "u1"}
    orders = [
        object_names.command_manifest("Queue", metadata, action=action)
        for action in ("CloseQueue", "OpenQueue")
    ]

    compare([*found.queues, *orders], case="volcano/queues")
    assert_valid([*found.queues, *orders])
    assert queues.queue_violations(found.queues) == ()
    assert found.closed == {called("batch")}


def test_names_are_those_of_the_api_whatever_people_call_a_queue() -> None:
    found = given(queue("GPU_Team", guaranteed=1), queue("x" * 60))
    uid = "f" * 32
    assert re.fullmatch(
        r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", object_names.queue_name(uid, installation=OURS)
    )
    assert object_names.queue_name(uid, installation="other000") != object_names.queue_name(
        uid, installation=OURS
    )
    title = only(found, "GPU_Team")["metadata"]
    assert title["annotations"][object_names.TITLE] == "GPU_Team"
    assert title["labels"][object_names.UID] == "GPU_Team"


def test_a_queue_has_at_least_what_those_below_it_have_together() -> None:
    found = given(
        queue("top"),
        queue("one", parent="top", guaranteed=6, reserved=2),
        queue("two", parent="top", guaranteed=4, lends=False),
    )
    top = only(found, "top")
    assert queues.queue_amounts(top, "deserved") == {NPU: 10}
    assert queues.queue_amounts(top, "guarantee") == {NPU: 6}
    assert "capability" not in top["spec"]


def test_a_queue_that_does_not_borrow_is_capped_at_its_guarantee_for_every_resource() -> None:
    found = given(queue("own", guaranteed=4, cap=16, borrows=False))
    assert queues.queue_amounts(only(found, "own"), "capability") == {NPU: 4, GPU: 0}


def test_a_queue_that_does_not_lend_keeps_all_of_its_guarantee() -> None:
    found = given(queue("own", guaranteed=4, reserved=1, lends=False))
    assert queues.queue_amounts(only(found, "own"), "guarantee") == {NPU: 4}


def test_two_chips_of_one_resource_are_added_up_and_that_is_said() -> None:
    both = {B3: ChipQuota(guaranteed=8, cap=16), B2: ChipQuota(guaranteed=4, cap=8)}
    found = given(queue("npu", entitlements=both), resources={B3: NPU, B2: NPU})
    spec = only(found, "npu")
    assert queues.queue_amounts(spec, "deserved") == {NPU: 12}
    assert queues.queue_amounts(spec, "capability") == {NPU: 24}
    (finding,) = found.findings
    assert finding.field == "npu"
    assert f"{B2}, {B3} are one resource, {NPU}" in finding.message


def test_a_cap_of_one_chip_among_several_of_a_resource_is_not_made_a_cap_of_all() -> None:
    found = given(queue("npu", guaranteed=8, cap=16), resources={B3: NPU, B2: NPU})
    assert queues.queue_amounts(only(found, "npu"), "capability") == {}
    assert any("the caps are not enforced" in finding.message for finding in found.findings)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (queue("q", entitlements={TOTAL: ChipQuota(cap=8)}), "all chips together"),
        (queue("q", max_running_per_user=2), "a limit of 2 running workloads per user"),
        (queue("q", guaranteed=2, reclaims=False), "does not reclaim its guaranteed quota"),
        (queue("q", chip="cpu", guaranteed=2), "which this cluster does not have"),
    ],
)
def test_what_volcano_cannot_keep_is_said(document: QueueDocument, message: str) -> None:
    (finding,) = given(document).findings
    assert message in finding.message
    assert finding.field == "q"


def test_a_queue_below_a_closed_one_is_closed_and_a_draining_one_stays_open() -> None:
    found = given(
        queue("top", state=QueueState.CLOSED),
        queue("below", parent="top"),
        queue("ending", state=QueueState.DRAINING),
    )
    assert found.closed == {called("top"), called("below")}
