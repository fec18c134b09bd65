"""The fault maps say what the makers' tables say."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import pytest

from controlplane.domain.health.faults import (
    NEVER,
    CardFitness,
    DurationEscalation,
    FaultLevel,
    FaultMap,
    FaultTexts,
    RepeatRule,
)
from controlplane.ports import adapter_registry

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
    return adapter_registry.chip_plugins()[vendor].profile().faults


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


def test_sub_health_leaves_a_card_degraded_and_nothing_else_does() -> None:
    cards = json.loads(table("ascend-faults/faultCode.json"))["SubHealthFaultCodes"]
    switches = json.loads(table("ascend-faults/SwitchFaultCode.json"))["SubHealthFaultCodes"]
    assert set(faults_of("ascend").states) == {*cards, *switches}
    assert set(faults_of("ascend").states.values()) == {CardFitness.DEGRADED}


def test_how_often_and_how_long_a_fault_may_be_is_what_the_maker_says() -> None:
    table_of = json.loads(table("ascend-faults/faultCustomization.json"))
    often = {
        code: RepeatRule(times=each["Times"], within=timedelta(seconds=each["TimeWindow"]))
        for each in table_of["FaultFrequency"]
        for code in each["EventId"]
    }
    long = {
        code: DurationEscalation(
            after=timedelta(seconds=each["FaultTimeout"]), level=FaultLevel.RESET_WHEN_IDLE
        )
        for each in table_of["FaultDuration"]
        for code in each["EventId"]
    }
    assert dict(faults_of("ascend").repeat_rules) == often
    assert dict(faults_of("ascend").lasting) == long


@pytest.mark.parametrize("xid", ["13", "31", "43", "45", "68", "109"])
def test_what_programs_do_to_themselves_never_counts_by_how_often_it_comes(xid: str) -> None:
    assert faults_of("nvidia").meaning(xid).repeat_rule == NEVER


@pytest.mark.parametrize(
    ("vendor", "code", "says", "state"),
    [
        ("nvidia", "31", "Xid 31: GPU memory page fault", CardFitness.FIT),
        ("nvidia", "79", "fallen off the bus", CardFitness.OUT),
        ("nvidia", "154", "Xid 154: GPU Recovery Action Changed", CardFitness.NO_NEW_WORK),
        ("nvidia", "94", "Contained ECC error", CardFitness.FIT),
        ("ascend", "80C98008", "AIC multi-bit ECC error", CardFitness.FIT),
        ("ascend", "80C98000", "AI Core instruction data fails to be verified", CardFitness.FIT),
        ("ascend", "80E01801", "Multi-bit ECC errors when accessing the HBM", CardFitness.FIT),
        ("ascend", "8F180220", "interconnect port or link", CardFitness.NO_NEW_WORK),
        ("ascend", "81078605", "Some lanes of a RoCE port are faulty", CardFitness.DEGRADED),
        ("ascend", "[0x00f103b0,155907,na,na]", "switch between the NPUs", CardFitness.OUT),
    ],
)
def test_a_code_says_why_and_what_to_do(
    vendor: str, code: str, says: str, state: CardFitness
) -> None:
    meaning = faults_of(vendor).meaning(code)
    assert says in meaning.cause
    assert meaning.remedy.endswith(".")
    assert meaning.state is state


def test_a_code_that_nobody_knows_has_its_level_and_no_words() -> None:
    grave = faults_of("nvidia").meaning("9999")
    minor = faults_of("nvidia").meaning("9999", minor=True)
    assert (grave.level, grave.state, grave.cause) == (FaultLevel.ISOLATE, CardFitness.OUT, "")
    assert (minor.level, minor.state, minor.remedy) == (FaultLevel.NOTE, CardFitness.FIT, "")


def test_the_longest_beginning_explains_a_family_and_a_code_of_its_own_goes_first() -> None:
    texts = {
        name: FaultTexts(cause=name, remedy="")
        for name in ("8*", "80E*", "80E0*", "80E01801", "13")
    }
    levels = dict.fromkeys(["80E01801", "80E01802", "80F1", "13", "134"], FaultLevel.NOTE)
    faults = FaultMap(levels=levels, texts=texts)
    assert faults.meaning("80E01801").cause == "80E01801"
    assert faults.meaning("80E01802").cause == "80E0*"
    assert faults.meaning("80F1").cause == "8*"
    assert faults.meaning("134").cause == ""


@pytest.mark.parametrize("vendor", ["nvidia", "ascend"])
def test_no_remedy_contradicts_the_level_of_its_code(vendor: str) -> None:
    """What takes a card out of use does not say to restart the job, and what leaves it in use not to evict it."""
    faults = faults_of(vendor)
    for code in sorted(faults.levels):
        level, remedy = faults.levels[code], faults.meaning(code).remedy
        if level in (FaultLevel.RESET_NOW, FaultLevel.ISOLATE):
            assert not remedy.startswith(("Restart the job", "No action required")), (code, remedy)
        else:
            assert not remedy.startswith("Evict the workloads"), (code, remedy)
