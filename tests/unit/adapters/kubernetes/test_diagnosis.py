"""A cluster is asked in a few calls for all that is wrong; what it keeps from us is never taken for health."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes.api import ApiAccessDenied
from controlplane.adapters.clusters.kubernetes.diagnosis import diagnose_cluster
from controlplane.domain.health.faults import SignalOrigin
from controlplane.ports.clusters import ClusterDiagnosis, ClusterUnavailable
from tests.unit.adapters.kubernetes.api_objects import READY, node
from tests.unit.adapters.kubernetes.fake_api import Answer, AnsweringApi, listing

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
NODES, EVENTS = "/api/v1/nodes", "/api/v1/namespaces/default/events"
OWN = "/api/v1/namespaces/kube-system"
CLUSTERD = "/api/v1/namespaces/mindx-dl/configmaps"
NPU = "huawei.com/Ascend910"
REFUSED = ApiAccessDenied(status=403, reason="Forbidden", message="not permitted (403): configmaps")
WELL: Mapping[str, Answer] = {
    NODES: listing(node("n1", {NPU: 8}), node("n2", {NPU: 8})),
    EVENTS: listing(),
    f"{OWN}/events": listing(),
    f"{OWN}/configmaps": listing(),
    CLUSTERD: listing(),
}


def separated(name: str) -> str:
    return json.dumps({"DeviceList": {f"{NPU}-Unhealthy": f"{name}-3"}})


def of_all(**nodes: str) -> dict[str, Any]:
    reports = {f"mindx-dl-deviceinfo-{node}": json.loads(text) for node, text in nodes.items()}
    return {"metadata": {"name": "cluster-info"}, "data": {"DeviceInfoCfg": json.dumps(reports)}}


def of_one(name: str, text: str) -> dict[str, Any]:
    return {"metadata": {"name": f"mindx-dl-deviceinfo-{name}"}, "data": {"DeviceInfoCfg": text}}


def diagnosed(changed: Mapping[str, Answer]) -> tuple[ClusterDiagnosis, AnsweringApi]:
    api = AnsweringApi({**WELL, **changed})
    return diagnose_cluster(api, at=NOON), api


def places(found: ClusterDiagnosis) -> set[tuple[str, int | None]]:
    return {(sign.node, sign.index) for sign in found.signals}


def test_a_cluster_without_such_cards_is_asked_for_nodes_and_their_events_alone() -> None:
    pressed = node("n1", conditions=[READY, {"type": "DiskPressure", "status": "True"}])
    found, api = diagnosed({NODES: listing(pressed)})
    assert [path for path, _ in api.requested] == [NODES, EVENTS]
    assert (places(found), found.unreadable) == ({("n1", None)}, ())


def test_clusterd_tells_of_all_nodes_in_as_many_parts_as_there_are() -> None:
    parts = {
        f"{CLUSTERD}/cluster-info-device-0": of_all(n1=separated("Ascend910")),
        f"{CLUSTERD}/cluster-info-device-1": of_all(n2=separated("Ascend910")),
    }
    found, api = diagnosed(parts)
    assert (places(found), found.unreadable) == ({("n1", 3), ("n2", 3)}, ())
    assert f"{OWN}/configmaps" not in {path for path, _ in api.requested}


def test_without_clusterd_one_list_of_the_device_plug_ins_own_tells_it() -> None:
    other = {"metadata": {"name": "kubeadm-config"}, "data": {"DeviceInfoCfg": separated("a")}}
    maps = listing(of_one("n1", separated("Ascend910")), of_one("gone", separated("a")), other)
    found, api = diagnosed({f"{OWN}/configmaps": maps})
    assert (places(found), found.unreadable) == ({("n1", 3)}, ())
    [query] = [query for path, query in api.requested if path == f"{OWN}/configmaps"]
    assert query["labelSelector"] == "mx-consumer-cim=true"


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {f"{OWN}/configmaps": REFUSED},
        {f"{CLUSTERD}/cluster-info-device-0": REFUSED},
    ],
)
def test_where_nothing_of_it_can_be_read_its_silence_is_not_taken_for_health(
    changed: Mapping[str, Answer],
) -> None:
    found, _ = diagnosed(changed)
    assert {(unreadable.origin, unreadable.node) for unreadable in found.unreadable} == {
        (SignalOrigin.MINDCLUSTER, "")
    }


def test_events_that_we_may_not_see_keep_nothing_else_from_us() -> None:
    pressed = node("n1", conditions=[READY, {"type": "DiskPressure", "status": "True"}])
    found, _ = diagnosed({NODES: listing(pressed), EVENTS: REFUSED})
    assert places(found) == {("n1", None)}
    assert [unreadable.origin for unreadable in found.unreadable] == [SignalOrigin.EVENT]


@pytest.mark.parametrize("path", [NODES, EVENTS, f"{CLUSTERD}/cluster-info-device-0"])
def test_a_cluster_that_does_not_answer_says_nothing_at_all(path: str) -> None:
    with pytest.raises(ClusterUnavailable, match="connection refused"):
        diagnosed({path: ClusterUnavailable("connection refused")})
