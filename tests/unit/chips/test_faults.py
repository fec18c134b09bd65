"""The fault maps say what the makers' tables say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from controlplane.domain.faults import FaultLevel, FaultMap
from controlplane.ports import registry

#: The tables that the maps were carried over from, where they lie beside the checkout.
TABLES = Path(__file__).resolve().parents[4] / "shared" / "data" / "chips"
ASCEND = {
    "NotHandle": FaultLevel.NOTE,
    "SubHealth": FaultLevel.NOTE,
    "RestartRequest": FaultLevel.RESTART_REQUEST,
    "RestartBusiness": FaultLevel.RESTART_JOB,
    "FreeRestart": FaultLevel.RESET_WHEN_IDLE,
    "PreSeparate": FaultLevel.RESET_WHEN_IDLE,
    "Restart": FaultLevel.RESET_NOW,
    "Reset": FaultLevel.RESET_NOW,
    "Separate": FaultLevel.ISOLATE,
}
NVIDIA = {
    "IGNORE": FaultLevel.NOTE,
    "RESTART_APP": FaultLevel.RESTART_JOB,
    "WORKFLOW_XID_45": FaultLevel.RESTART_JOB,
    "FOLLOW_LINKED": FaultLevel.RESET_WHEN_IDLE,
    "RESET_GPU": FaultLevel.RESET_NOW,
    "WORKFLOW_XID_48": FaultLevel.RESET_NOW,
    "WORKFLOW_NVLINK_ERR": FaultLevel.RESET_NOW,
    "WORKFLOW_NVLINK5_ERR": FaultLevel.RESET_NOW,
    "RESTART_BM": FaultLevel.ISOLATE,
    "RESTART_VM": FaultLevel.ISOLATE,
    "UPDATE_SWFW": FaultLevel.ISOLATE,
    "CHECK_MECHANICALS": FaultLevel.ISOLATE,
    "CHECK_UVM": FaultLevel.ISOLATE,
}


def faults_of(vendor: str) -> FaultMap:
    return registry.chip_plugins()[vendor].profile().faults


def table(name: str) -> str:
    path = TABLES / name
    if not path.is_file():
        pytest.skip(f"the maker's table {name} does not lie beside the checkout")
    return path.read_text(encoding="utf-8")


def ascend_tables() -> Mapping[str, FaultLevel]:
    """Code → level of all three tables; the graver one where a code is listed twice."""
    cards = json.loads(table("ascend-faults/faultCode.json"))
    nodes = json.loads(table("ascend-faults/NodeDConfiguration.json"))["FaultTypeCode"]
    switches = json.loads(table("ascend-faults/SwitchFaultCode.json"))
    levels: dict[str, FaultLevel] = {}
    for bucket, codes in [*cards.items(), *nodes.items(), *switches.items()]:
        level = ASCEND[re.sub(r"(NPU|Fault)?Codes$", "", bucket)]
        for code in codes:
            levels[code] = max(level, levels.get(code, FaultLevel.NOTE))
    return levels


def test_ascend_codes_have_the_levels_of_their_tables() -> None:
    assert dict(faults_of("ascend").levels) == ascend_tables()


def test_xids_have_the_levels_of_their_buckets() -> None:
    levels = {
        xid: NVIDIA[bucket]
        for bucket, xids in re.findall(
            r"(?m)^(\w+): .*xids: \[([\d, ]+)\]", table("nvidia-xid.yaml")
        )
        for xid in xids.split(", ")
    }
    assert len(levels) > 90
    assert dict(faults_of("nvidia").levels) == levels


@pytest.mark.parametrize(
    ("vendor", "code", "minor", "level"),
    [
        ("nvidia", "79", False, FaultLevel.ISOLATE),
        ("nvidia", "13", False, FaultLevel.RESTART_JOB),
        ("nvidia", "9999", False, FaultLevel.ISOLATE),
        ("nvidia", "9999", True, FaultLevel.NOTE),
        ("ascend", "8F180210", False, FaultLevel.ISOLATE),
        ("ascend", "80C98000", False, FaultLevel.RESTART_REQUEST),
        ("ascend", "[0x00f103b0,155907,na,na]", False, FaultLevel.ISOLATE),
    ],
)
def test_a_code_has_its_level_and_an_unknown_one_that_of_its_weight(
    vendor: str, code: str, minor: bool, level: FaultLevel
) -> None:
    assert faults_of(vendor).level(code, minor=minor) is level
