"""Objects, events and nodes are shown as the cluster has them, without anything secret."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from controlplane.adapters.clusters.kubernetes import inspection
from controlplane.adapters.clusters.kubernetes.api import ApiRefused
from controlplane.ports.clusters import ClusterEvent, ClusterUnavailable
from tests.unit.adapters.kubernetes.api_objects import H800, OURS, READY, node, pod
from tests.unit.adapters.kubernetes.fake_api import Answer, AnsweringApi, listing

SPACE = "/api/v1/namespaces/work"
COPY = "kubectl.kubernetes.io/last-applied-configuration"


def thing(name: str, **more: Any) -> dict[str, Any]:
    metadata = {
        "name": name,
        "namespace": "work",
        "managedFields": [{"manager": "ninefold"}],
        "annotations": {COPY: '{"data":{"TOKEN":"aGlkZGVu"}}', "kept": "yes"},
    }
    return {"metadata": metadata, **more}


def happened(about: str, at: str, *, kind: str = "Pod", **more: Any) -> dict[str, Any]:
    involved = {"kind": kind, "name": about}
    return {"metadata": {}, "involvedObject": involved, "lastTimestamp": at, **more}


def objects_of(**kinds: Answer) -> dict[str, str]:
    answers = {f"{SPACE}/{kind}": answer for kind, answer in kinds.items()}
    api = AnsweringApi(answers)
    found = inspection.launch_objects(api, name="attempt-1", namespace="work", installation=OURS)
    return {f"{each.kind}/{each.name}": each.text for each in found}


def test_values_of_secrets_and_the_apis_bookkeeping_are_left_out() -> None:
    found = objects_of(
        secrets=listing(thing("attempt-1", data={"TOKEN": "aGlkZGVu"})),
        configmaps=listing(thing("attempt-1", data={"launch.json": "{}"})),
    )
    assert list(found) == ["ConfigMap/attempt-1", "Secret/attempt-1"]
    secret = yaml.safe_load(found["Secret/attempt-1"])
    assert secret["data"] == {"TOKEN": "(left out)"}
    assert (secret["apiVersion"], secret["kind"]) == ("v1", "Secret")
    assert "aGlkZGVu" not in "".join(found.values())
    assert "managedFields" not in "".join(found.values())
    assert secret["metadata"]["annotations"] == {"kept": "yes"}


def test_long_files_are_cut() -> None:
    found = objects_of(configmaps=listing(thing("attempt-1", data={"file.big": "x" * 9000})))
    shown = yaml.safe_load(found["ConfigMap/attempt-1"])["data"]["file.big"]
    assert shown.endswith("(4904 more characters)")


def test_what_we_may_not_see_is_left_out_and_silence_is_an_error() -> None:
    refused = ApiRefused(status=403, reason="Forbidden", message="no")
    found = objects_of(secrets=refused, services=listing(thing("attempt-1")))
    assert list(found) == ["Service/attempt-1"]
    with pytest.raises(ClusterUnavailable):
        objects_of(configmaps=ClusterUnavailable("it is unreachable"))


def events_of(pods: int, *events: Mapping[str, Any]) -> tuple[tuple[ClusterEvent, ...], int]:
    """The events, and how often the API was asked for some."""
    path = f"{SPACE}/events"
    there = [pod(f"attempt-1-main-{index}", ours=True) for index in range(pods)]
    api = AnsweringApi({f"{SPACE}/pods": listing(*there), path: listing(*events)})
    found = inspection.launch_events(api, name="attempt-1", namespace="work", installation=OURS)
    return found, [requested for requested, _ in api.requested].count(path)


def test_events_of_many_pods_are_read_at_once_and_others_left_out() -> None:
    found, requested = events_of(
        12,
        happened("attempt-1-main-0", "2026-01-02T03:04:05Z", type="Normal", reason="Pulled"),
        happened(
            "attempt-1-main-7", "2026-01-02T03:09:05Z", type="Warning", reason="BackOff", count=4
        ),
        happened("attempt-1", "2026-01-02T03:01:05Z", kind="ConfigMap"),
        happened("attempt-2-main-0", "2026-01-02T03:07:05Z"),
    )
    assert requested == 1
    assert [(each.about, each.warning, each.count) for each in found] == [
        ("pod/attempt-1-main-7", True, 4),
        ("pod/attempt-1-main-0", False, 1),
        ("configmap/attempt-1", False, 1),
    ]


def test_events_of_few_pods_are_asked_for_by_name() -> None:
    assert events_of(2)[1] == 3


def test_newer_forms_of_events_are_read_and_only_the_newest_are_told() -> None:
    series = happened(
        "attempt-1-main-0",
        "",
        series={"count": 9, "lastObservedTime": "2026-02-01T00:00:00.000001Z"},
    )
    plain = [
        happened("attempt-1-main-0", f"2026-01-01T00:{n // 60:02}:{n % 60:02}Z") for n in range(400)
    ]
    found, _ = events_of(12, *plain, series)
    assert len(found) == inspection.MOST_EVENTS
    assert (found[0].count, found[0].at.year, found[0].at.month) == (9, 2026, 2)
    assert found[-1].at > found[0].at.replace(month=1, day=1, minute=3)


def test_an_event_without_any_time_is_the_oldest() -> None:
    found, _ = events_of(
        12, happened("attempt-1", ""), happened("attempt-1", "2026-01-01T00:00:00Z")
    )
    assert [each.at.year for each in found] == [2026, 1]


def test_a_node_is_shown_with_whose_pods_it_runs() -> None:
    seen = node(
        "n1",
        {"nvidia.com/gpu": 8},
        usable={"nvidia.com/gpu": 7},
        labels=H800,
        taints=[{"key": "nvidia.com/gpu", "effect": "NoSchedule"}],
        conditions=[
            {**READY, "lastTransitionTime": "2026-01-02T03:04:05Z"},
            {"type": "MemoryPressure", "status": "False"},
            {"type": "GpuNvlinkWatch", "status": "True", "message": "link 3 is down"},
            {"type": "DiskPressure", "status": "Unknown"},
        ],
    )
    seen["status"]["nodeInfo"] = {"kubeletVersion": "v1.30.4"}
    theirs = pod("a-web", requests={"cpu": "1"})
    ours = pod("z-main-0", requests={"nvidia.com/gpu": "4"}, ours=True)
    api = AnsweringApi(
        {
            "/api/v1/nodes/n1": seen,
            "/api/v1/pods": listing(theirs, ours),
            "/api/v1/events": listing(happened("n1", "2026-01-02T03:04:05Z", kind="Node")),
        }
    )
    found = inspection.node_view(api, name="n1", installation=OURS)
    assert found is not None
    assert [(each.name, each.good) for each in found.conditions] == [
        ("Ready", True),
        ("MemoryPressure", True),
        ("GpuNvlinkWatch", False),
        ("DiskPressure", False),
    ]
    assert [(each.name, each.launch) for each in found.pods] == [
        ("z-main-0", "launch-z-main-0"),
        ("a-web", ""),
    ]
    assert found.pods[0].requests == {"nvidia.com/gpu": "4"}
    assert found.taints == ("nvidia.com/gpu:NoSchedule",)
    assert found.facts["nvidia.com/gpu"] == "7 of 8"
    assert found.facts["kubelet"] == "v1.30.4"
    assert [each.about for each in found.events] == ["node/n1"]
    assert ("/api/v1/pods", {"fieldSelector": "spec.nodeName=n1", "limit": "500"}) in api.requested


def test_a_node_that_is_not_there_is_none() -> None:
    api = AnsweringApi({})
    assert inspection.node_view(api, name="n1", installation=OURS) is None
