"""Names on a cluster that is shared with others: ours are ours, and two teams never meet."""

from __future__ import annotations

import pytest

from controlplane.adapters.clusters.kubernetes import object_names
from controlplane.adapters.clusters.kubernetes.launch_status import is_pod_created_by_ninefold
from tests.unit.adapters.kubernetes.test_launch_status import RUNNING, pod

TEAMS = ("maps", "a-b", "a_b", "A-B", "a--b-", "x" * 50, "x" * 51, "_x")


def test_each_team_has_a_namespace_of_its_own() -> None:
    for prefix in ("ninefold", "p" * 40):
        found = {object_names.namespace_of(team, prefix=prefix) for team in TEAMS}
        assert len(found) == len(TEAMS)
        assert all(len(name) <= 63 and name.startswith(f"{prefix}-") for name in found)
    assert object_names.namespace_of("maps", prefix="ninefold") == "ninefold-maps"


OURS = pod(
    RUNNING,
    metadata={
        "labels": {object_names.LAUNCH: "work"},
        "ownerReferences": [{"kind": "ConfigMap", "name": "work"}],
        "annotations": {object_names.RECORD: "{}"},
    },
)


@pytest.mark.parametrize(
    ("metadata", "genuine"),
    [
        ({}, True),
        ({"namespace": "kube-system"}, False),
        ({"ownerReferences": []}, False),
        ({"ownerReferences": [{"kind": "ConfigMap", "name": "other"}]}, False),
        ({"annotations": {}}, False),
    ],
)
def test_a_pod_with_our_labels_is_believed_only_if_we_made_it(
    metadata: dict[str, object], genuine: bool
) -> None:
    one = {**OURS, "metadata": {**OURS["metadata"], **metadata}}
    assert is_pod_created_by_ninefold(one, prefix="ninefold") is genuine
