"""What MindCluster writes of its cards, by any of its programs and releases; what is malformed is said to be."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.adapters.clusters.kubernetes import diagnosis
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.ports.clusters import ClusterSignal

NOON = datetime(2030, 5, 1, 12, tzinfo=UTC)
RAISED = datetime(2030, 5, 1, 11, 58, 20, tzinfo=UTC)
NPU = "huawei.com/Ascend910"


def fault(name: str, level: str, *codes: str, **more: Any) -> dict[str, Any]:
    times = {
        code: {"fault_time": int(RAISED.timestamp() * 1000), "fault_level": level} for code in codes
    }
    return {
        "fault_type": "CardUnhealthy",
        "npu_name": name,
        "large_model_fault_level": level,
        "fault_level": level,
        "fault_handling": level,
        "fault_code": ",".join(codes),
        "fault_time_and_level_map": times,
        **more,
    }


def lists(*faults: dict[str, Any], unhealthy: str = "", **more: str) -> dict[str, str]:
    return {
        NPU: "Ascend910-0,Ascend910-1",
        f"{NPU}-Unhealthy": unhealthy,
        f"{NPU}-NetworkUnhealthy": "",
        f"{NPU}-Recovering": "",
        f"{NPU}-Fault": json.dumps(faults),
        **{f"{NPU}-{key}": text for key, text in more.items()},
    }


def signals_from(name: str, **data: Any) -> diagnosis.SignalCollector:
    texts = {key: text if isinstance(text, str) else json.dumps(text) for key, text in data.items()}
    into = diagnosis.SignalCollector()
    diagnosis.read_config_map({"metadata": {"name": name}, "data": texts}, into=into)
    return into


def aggregated(cards: object, *, name: str = "mindx-dl-deviceinfo-n1") -> list[ClusterSignal]:
    found = signals_from("cluster-info-device-0", DeviceInfoCfg={name: cards})
    assert found.unreadable == []
    return found.signals


@pytest.mark.parametrize(
    ("word", "level"),
    [
        ("NotHandleFault", FaultLevel.NOTE),
        ("SubHealthFault", FaultLevel.NOTE),
        ("RestartRequest", FaultLevel.RESTART_REQUEST),
        ("RestartBusiness", FaultLevel.RESTART_JOB),
        ("FreeRestartNPU", FaultLevel.RESET_WHEN_IDLE),
        ("PreSeparateNPU", FaultLevel.RESET_WHEN_IDLE),
        ("RestartNPU", FaultLevel.RESET_NOW),
        ("SeparateNPU", FaultLevel.ISOLATE),
        ("ManuallySeparateNPU", FaultLevel.ISOLATE),
    ],
)
def test_its_word_for_what_is_to_be_done_says_how_bad_a_fault_is(
    word: str, level: FaultLevel
) -> None:
    [sign] = aggregated({"DeviceList": lists(fault("Ascend910-3", word, "80E01801"))})
    assert (sign.node, sign.index, sign.code, sign.level) == ("n1", 3, "80E01801", level)
    assert (sign.origin, sign.vendor, sign.since) == (SignalOrigin.MINDCLUSTER, "ascend", RAISED)


def test_each_code_of_a_card_is_a_fault_of_its_own_with_its_own_level() -> None:
    both = fault("Ascend910-1", "SeparateNPU", "A", "B")
    both["fault_time_and_level_map"]["B"]["fault_level"] = "NotHandleFault"
    found = aggregated({"DeviceList": lists(both)})
    assert {(sign.code, sign.level) for sign in found} == {
        ("A", FaultLevel.ISOLATE),
        ("B", FaultLevel.NOTE),
    }


def test_older_releases_name_codes_in_one_text_and_newer_ones_other_cards() -> None:
    old = {"npu_name": "Ascend910-2", "fault_level": "RestartNPU", "fault_code": "A, B"}
    new = {"huawei.com/npu-Fault": json.dumps([fault("npu-5", "SeparateNPU", "C")])}
    found = aggregated({"DeviceList": {**lists(old), **new}})
    assert {(sign.index, sign.code) for sign in found} == {(2, "A"), (2, "B"), (5, "C")}


def test_a_level_that_nobody_knows_is_left_to_the_table_of_codes() -> None:
    [sign] = aggregated({"DeviceList": lists(fault("Ascend910-0", "Bewilder", "80E01801"))})
    assert (sign.code, sign.level) == ("80E01801", None)


def test_a_fault_without_a_card_is_the_nodes() -> None:
    [sign] = aggregated({"DeviceList": lists(fault("", "", fault_type="NodeUnhealthy"))})
    assert (sign.index, sign.code, sign.level) == (None, "NodeUnhealthy", None)


def test_a_card_that_is_listed_without_a_fault_is_a_fault_of_that_name() -> None:
    faults = lists(
        fault("Ascend910-1", "SeparateNPU", "A"),
        unhealthy="Ascend910-1,Ascend910-4",
        NetworkUnhealthy="Ascend910-5",
        Recovering="Ascend910-1",
    )
    found = {(sign.index, sign.code): sign.level for sign in aggregated({"DeviceList": faults})}
    assert found == {
        (1, "A"): FaultLevel.ISOLATE,
        (4, "Unhealthy"): FaultLevel.ISOLATE,
        (5, "NetworkUnhealthy"): FaultLevel.RESET_WHEN_IDLE,
        (1, "Recovering"): FaultLevel.NOTE,
    }


def test_the_device_plug_in_tells_the_same_of_its_own_node() -> None:
    found = signals_from(
        "mindx-dl-deviceinfo-n7.example",
        DeviceInfoCfg={
            "DeviceInfo": {"DeviceList": lists(fault("Ascend910-0", "RestartNPU", "A"))}
        },
        ManuallySeparateNPU="Ascend910-6",
        SwitchInfoCfg={
            "FaultLevel": "Separate",
            "NodeStatus": "UnHealthy",
            "FaultTimeAndLevelMap": {"[0x00f1ff06,155910,na,na]_1_2": {"fault_level": "Separate"}},
        },
        UpgradeFaultReason="{}",
    )
    assert found.unreadable == []
    assert {(sign.node, sign.index, sign.level) for sign in found.signals} == {
        ("n7.example", 0, FaultLevel.RESET_NOW),
        ("n7.example", 6, FaultLevel.ISOLATE),
        ("n7.example", None, FaultLevel.ISOLATE),
    }


def test_switches_and_other_parts_are_told_by_clusterd_too() -> None:
    switch = signals_from(
        "cluster-info-switch-0",
        SwitchInfoCfg={
            "mindx-dl-switchinfo-n1": {"FaultLevel": "NotHandle", "NodeStatus": "Healthy"},
            "mindx-dl-switchinfo-n2": {"FaultLevel": "Separate", "NodeStatus": "UnHealthy"},
        },
    )
    assert [(sign.node, sign.level) for sign in switch.signals] == [("n2", FaultLevel.ISOLATE)]
    part = {"DeviceType": "PSU", "DeviceId": 2, "FaultCode": ["28000037"]}
    parts = [{**part, "FaultLevel": "PreSeparateFault"}]
    other = signals_from(
        "cluster-info-node-cm",
        NodeInfo={"mindx-dl-nodeinfo-n1": {"NodeInfo": {"FaultDevList": parts}}},
    )
    [sign] = other.signals
    assert (sign.node, sign.code) == ("n1", "28000037")
    assert (sign.level, sign.message) == (FaultLevel.RESET_WHEN_IDLE, "PSU 2: PreSeparateFault")


def test_what_is_no_json_is_unread_and_where_it_is_of_a_node_a_note_of_it() -> None:
    whole = signals_from("cluster-info-device-0", DeviceInfoCfg='{"mindx-dl-deviceinfo-n1": ')
    assert whole.signals == []
    [unreadable] = whole.unreadable
    assert (unreadable.origin, unreadable.node) == (SignalOrigin.MINDCLUSTER, "")
    assert "cluster-info-device-0" in unreadable.reason
    one = signals_from("mindx-dl-deviceinfo-n1", DeviceInfoCfg="{")
    assert [unreadable.node for unreadable in one.unreadable] == ["n1"]
    assert [(sign.node, sign.level) for sign in one.signals] == [("n1", FaultLevel.NOTE)]


def test_a_malformed_list_of_one_node_leaves_the_others_readable() -> None:
    broken = {"DeviceList": {f"{NPU}-Fault": "[{"}}
    well = {"DeviceList": lists(fault("Ascend910-0", "SeparateNPU", "A"))}
    found = signals_from(
        "cluster-info-device-0",
        DeviceInfoCfg={"mindx-dl-deviceinfo-n1": broken, "mindx-dl-deviceinfo-n2": well},
    )
    assert [unreadable.node for unreadable in found.unreadable] == ["n1"]
    assert ("n2", 0, "A") in {(sign.node, sign.index, sign.code) for sign in found.signals}


def test_events_of_a_card_are_notes_of_its_node_until_they_say_that_it_is_over() -> None:
    def happened(assertion: str) -> dict[str, Any]:
        return {
            "metadata": {},
            "involvedObject": {"kind": "Pod", "name": "ascend-device-plugin-x"},
            "reason": assertion,
            "eventTime": RAISED.isoformat(),
            "message": f"device fault, nodeName:n1, assertion:{assertion}, cardID:1, deviceID:0, "
            "faultCodes:81078603, faultLevelName:PreSeparateNPU, alarmRaisedTime:2030-05-01 11:58:20",
        }

    other = {**happened("Occur"), "message": "Pulling image"}
    found = list(
        diagnosis.mindcluster_event_signals(
            [happened("Occur"), other, happened("Recovery")], at=NOON
        )
    )
    assert [(sign.code, sign.active) for sign in found] == [
        ("81078603 of 1.0", True),
        ("81078603 of 1.0", False),
    ]
    assert {(sign.node, sign.index, sign.level) for sign in found} == {
        ("n1", None, FaultLevel.NOTE)
    }


_JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    "DeviceInfo", "DeviceList", "NodeInfo", "FaultDevList", "FaultCode", "FaultLevel",
                    "NodeStatus", "FaultTimeAndLevelMap", "mindx-dl-deviceinfo-n1", f"{NPU}-Fault",
                    f"{NPU}-Unhealthy", "npu_name", "fault_code", "fault_time_and_level_map",
                    "fault_time", "fault_level", "A",
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)  # fmt: skip


@given(content=_JSON, owner=st.sampled_from(["cluster-info-device-0", "mindx-dl-deviceinfo-n1"]))
def test_no_content_whatever_makes_it_fail(content: object, owner: str) -> None:
    for text in (json.dumps(content), json.dumps({f"{NPU}-Fault": json.dumps(content)})):
        found = signals_from(owner, DeviceInfoCfg=text)
        assert all(sign.node for sign in found.signals)
