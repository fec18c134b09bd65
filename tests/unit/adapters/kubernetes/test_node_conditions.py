"""What Kubernetes says of its nodes becomes signs, by a table; what the table does not know means nothing."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from controlplane.adapters.clusters.kubernetes import node_conditions
from controlplane.adapters.clusters.kubernetes.inventory import observed_nodes
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import NODE_UNREACHABLE, REMEDIATION_LABEL, ClusterSignal
from tests.unit.adapters.kubernetes.api_objects import OURS, READY, node

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
SILENCE = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}


def condition(kind: str, status: str = "True", **more: str) -> dict[str, str]:
    return {"type": kind, "status": status, "lastTransitionTime": "2030-05-01T11:00:00Z", **more}


def signals(*found: Mapping[str, str]) -> list[ClusterSignal]:
    return list(node_conditions.node_condition_signals(node("n1", conditions=found)))


def event(reason: str, at: str = "2030-05-01T11:58:00Z", **more: Any) -> dict[str, Any]:
    involved = {"kind": "Node", "name": "n1"}
    return {
        "metadata": {},
        "involvedObject": involved,
        "reason": reason,
        "lastTimestamp": at,
        "message": "",
        **more,
    }


def test_a_node_that_is_well_gives_no_sign() -> None:
    assert signals(READY, condition("MemoryPressure", "False"), condition("GpuReady")) == []


@pytest.mark.parametrize(
    ("kind", "level"),
    [
        ("DiskPressure", FaultLevel.NOTE),
        ("ReadonlyFilesystem", FaultLevel.RESET_WHEN_IDLE),
        ("CperHardwareErrorFatal", FaultLevel.ISOLATE),
    ],
)
def test_a_condition_is_as_bad_as_the_table_says(kind: str, level: FaultLevel) -> None:
    [sign] = signals(READY, condition(kind, reason="Because", message="of this"))
    assert (sign.origin, sign.code, sign.level, sign.index) == (
        SignalOrigin.CONDITION,
        kind,
        level,
        None,
    )
    assert sign.message == "Because: of this"
    assert sign.since == datetime(2030, 5, 1, 11, tzinfo=UTC)


def test_a_node_that_says_it_is_not_ready_is_a_note_for_nothing_new_comes_there_anyway() -> None:
    [sign] = signals(condition("Ready", "False", reason="KubeletNotReady"))
    assert (sign.code, sign.level) == ("NotReady", FaultLevel.NOTE)


def test_of_a_silent_node_only_its_silence_is_told() -> None:
    [sign] = signals(SILENCE, condition("CperHardwareErrorFatal"), condition("DiskPressure"))
    assert (sign.origin, sign.code) == (SignalOrigin.SILENCE, NODE_UNREACHABLE)
    assert sign.level is FaultLevel.ISOLATE


@pytest.mark.parametrize("written", ["soon", "2030-05-01T11:00:00", ""])
def test_an_instant_that_is_none_is_left_out(written: str) -> None:
    [sign] = signals(READY, {**condition("DiskPressure"), "lastTransitionTime": written})
    assert sign.since is None


def test_events_about_nodes_are_moments_and_old_ones_no_news() -> None:
    events = [
        event("TaskHung", message="task docker:7 blocked for more than 120 seconds."),
        event("TaskHung", at="2030-05-01T11:00:00Z"),
        event("NodeHasSufficientMemory"),
        event("OOMKilling", involvedObject={"kind": "Pod", "name": "n1"}),
    ]
    [sign] = node_conditions.node_event_signals(events, at=NOON)
    assert (sign.node, sign.origin, sign.code) == ("n1", SignalOrigin.EVENT, "TaskHung")
    assert sign.since == datetime(2030, 5, 1, 11, 58, tzinfo=UTC)


def test_an_event_from_a_clock_that_is_fast_happens_now() -> None:
    [sign] = node_conditions.node_event_signals(
        [event("IOError", at="2030-05-01T13:00:00Z")], at=NOON
    )
    assert sign.since == NOON


# -- NVSentinel --


def gpu_signs(*found: Mapping[str, str]) -> list[ClusterSignal]:
    return list(node_conditions.nvsentinel_condition_signals(node("n1", conditions=found)))


def test_each_sentence_of_nvsentinel_is_a_sign_of_its_card() -> None:
    message = (
        "ErrorCode:79 GPU:3 PCI:0000:3b:00 GPU_UUID:GPU-4f1 XID error Recommended Action=RESTART_BM;"
        "ErrorCode:48 GPU:0 Recommended Action=COMPONENT_RESET;"
    )
    found = gpu_signs(READY, condition("SysLogsXIDError", message=message))
    assert [(sign.index, sign.code, sign.level) for sign in found] == [
        (3, "79", None),
        (0, "48", None),
    ]
    assert {(sign.origin, sign.vendor) for sign in found} == {(SignalOrigin.NVSENTINEL, "nvidia")}
    assert "RESTART_BM" in found[0].message


@pytest.mark.parametrize(
    ("action", "level"),
    [
        ("COMPONENT_RESET", FaultLevel.RESET_NOW),
        ("CONTACT_SUPPORT", FaultLevel.ISOLATE),
        ("NONE", FaultLevel.NOTE),
        ("SOMETHING_NEW", FaultLevel.ISOLATE),
    ],
)
def test_without_a_code_of_the_driver_what_it_recommends_says_how_bad_it_is(
    action: str, level: FaultLevel
) -> None:
    message = f"ErrorCode:DCGM_FR_VOLATILE_DBE_DETECTED GPU:1 Recommended Action={action};"
    [sign] = gpu_signs(READY, condition("GpuMemWatch", message=message))
    assert (sign.index, sign.level) == (1, level)
    assert sign.code == "GpuMemWatch DCGM_FR_VOLATILE_DBE_DETECTED"


def test_a_condition_of_it_without_a_word_is_of_the_node_and_fatal() -> None:
    [sign] = gpu_signs(READY, condition("NVSwitchFatalError"))
    assert (sign.index, sign.code, sign.level) == (None, "NVSwitchFatalError", FaultLevel.ISOLATE)


def test_what_it_calls_healthy_and_conditions_of_others_are_no_signs_of_it() -> None:
    healthy = condition("GpuMemWatch", "False", message="No Health Failures")
    assert gpu_signs(READY, healthy, condition("DiskPressure")) == []
    assert gpu_signs(SILENCE, condition("GpuMemWatch")) == []


def test_what_it_does_not_call_fatal_comes_as_an_event_and_is_a_note() -> None:
    warm = event("GpuThermalWatchIsNotHealthy", type="GpuThermalWatch", message="GPU:2 is warm ")
    [sign] = node_conditions.node_event_signals([warm, event("Started", type="Normal")], at=NOON)
    assert (sign.index, sign.code, sign.level) == (2, "GpuThermalWatch", FaultLevel.NOTE)


# -- Who acts --


def keeper(**more: Any) -> str | None:
    plugins = tuple(adapter_registry.chip_plugins().values())
    [seen] = observed_nodes([node("n1", **more)], [], installation=OURS, plugins=plugins)
    return (seen.labels or {}).get(REMEDIATION_LABEL)


@pytest.mark.parametrize(
    "more",
    [
        {"conditions": [READY, condition("GpuMemWatch", "False")]},
        {"labels": {"k8saas.nvidia.com/cordon-by": "NVSentinel"}},
        {"labels": {"dgxc.nvidia.com/nvsentinel-state": "draining"}},
    ],
)
def test_a_node_on_which_nvsentinel_acts_is_labelled_with_it(more: Mapping[str, Any]) -> None:
    assert keeper(**more) == "NVSentinel"


def test_a_node_that_it_is_kept_from_or_does_not_know_is_ours_to_look_after() -> None:
    assert keeper() is None
    labels = {"k8saas.nvidia.com/ManagedByNVSentinel": "false"}
    assert keeper(conditions=[READY, condition("GpuMemWatch")], labels=labels) is None


def test_what_an_administrator_of_the_cluster_wrote_stays() -> None:
    conditions = [READY, condition("GpuMemWatch")]
    assert keeper(conditions=conditions, labels={REMEDIATION_LABEL: ""}) == ""
    assert keeper(labels={REMEDIATION_LABEL: "MindCluster"}) == "MindCluster"
