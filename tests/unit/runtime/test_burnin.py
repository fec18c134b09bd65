"""What a burn-in is asked, and when its findings let a card back: no torch is needed for that."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from ninefold_runtime import specs
from ninefold_runtime.burnin import card_processes, outcomes
from ninefold_runtime.burnin.__main__ import main
from ninefold_runtime.burnin.outcomes import (
    BurninOutcome,
    BurninVerdict,
    failed_outcome,
    rate_outcome,
)
from ninefold_runtime.burnin.specs import BurninSpec
from ninefold_runtime.exit_codes import InvalidTaskInput

SPEC: dict[str, Any] = {
    "kind": "burnin",
    "device": "cuda",
    "cards": 1,
    "seconds": 60,
    "matrix": {"size": 8192, "dtype": "bfloat16", "expected_tflops": 989.0, "floor": 0.7},
    "memory": {"share": 0.5},
    "collective": {"backend": "nccl", "expected_gb_s": None, "floor": 0.5},
}


def changed(path: str, value: object) -> dict[str, Any]:
    spec = copy.deepcopy(SPEC)
    *groups, name = path.split(".")
    place = spec
    for group in groups:
        place = place[group]
    place[name] = value
    return spec


def test_a_complete_spec_is_read() -> None:
    spec = specs.parse_spec(SPEC, BurninSpec)
    spec.check()
    assert spec.matrix.expected_tflops == 989.0
    assert spec.collective.expected_gb_s is None


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("kind", "finetune", "kind must be one of burnin, not 'finetune'"),
        ("cards", 0, "cards must be from 1 to 64, not 0"),
        ("seconds", 1, "seconds must be from 5 to 86400, not 1"),
        ("device", "cuda:0", "device must be a name of torch"),
        ("matrix.size", 1_000_000, r"matrix\.size must be from 64 to 32768"),
        ("matrix.dtype", "int4", r"matrix\.dtype must be one of float32, bfloat16, float16"),
        ("matrix.floor", 70, r"matrix\.floor must be above 0 and at most 1, not 70"),
        ("matrix.expected_tflops", 0, r"matrix\.expected_tflops must be above 0, or null"),
        ("memory.share", 0.0, r"memory\.share must be above 0"),
        ("collective.expected_gb_s", -1.0, r"collective\.expected_gb_s must be above 0"),
    ],
)
def test_a_number_beyond_its_bounds_is_named(path: str, value: object, message: str) -> None:
    with pytest.raises(InvalidTaskInput, match=message):
        specs.parse_spec(changed(path, value), BurninSpec).check()


def rate(measured: float, *, expected: float | None) -> BurninOutcome:
    return rate_outcome(
        test="matrix",
        card=0,
        measured=measured,
        expected=expected,
        floor=0.7,
        unit="TFLOP/s",
        message="10 products",
    )


def test_a_rate_has_to_reach_its_share_of_what_is_expected() -> None:
    assert rate(70.0, expected=100.0).verdict is BurninVerdict.PASSED
    slow = rate(69.9, expected=100.0)
    assert (slow.verdict, slow.expected) == (BurninVerdict.FAILED, 70.0)
    assert slow.message == "10 products; less than 70% of the 100 that are expected"
    assert rate(float("nan"), expected=100.0).verdict is BurninVerdict.FAILED


def test_a_rate_that_nobody_expects_is_measured_and_says_so() -> None:
    unjudged = rate(1.0, expected=None)
    assert (unjudged.verdict, unjudged.expected) == (BurninVerdict.PASSED, None)
    assert unjudged.message.endswith("nobody said what to expect")


SKIPPED = BurninOutcome(
    test="collective",
    card=0,
    verdict=BurninVerdict.SKIPPED,
    measured=None,
    expected=None,
    unit="GB/s",
    message="alone",
)


@pytest.mark.parametrize(
    ("found", "passed"),
    [
        ([rate(1.0, expected=None), SKIPPED], True),
        ([rate(1.0, expected=None), failed_outcome(test="memory", card=0, message="a bit")], False),
        # A card of which nothing is known has shown nothing.
        ([SKIPPED], False),
        ([], False),
    ],
)
def test_a_card_comes_back_only_if_something_was_tested_and_nothing_failed(
    found: list[BurninOutcome], passed: bool
) -> None:
    assert outcomes.burnin_result(found, device="cpu", about={})["passed"] is passed


def test_outcomes_are_read_as_they_were_written() -> None:
    result = outcomes.burnin_result(
        [SKIPPED, rate(1.0, expected=2.0)], device="cpu", about={"node": "n"}
    )
    rows = json.loads(json.dumps(result))["tests"]
    assert outcomes.read_outcomes(rows) == [SKIPPED, rate(1.0, expected=2.0)]


def test_without_torch_it_is_refused_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("NINEFOLD_WORK", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    path = tmp_path / "spec.json"
    path.write_text(json.dumps(SPEC))
    assert main([str(path)]) == 2
    said = capsys.readouterr().err
    assert "has no torch; run the burn-in in the environment or image of an engine" in said
    assert said.count("\n") == 1


def test_a_card_that_hangs_is_ended_and_fails_where_it_stood(tmp_path: Path) -> None:
    file = tmp_path / "card-0.json"
    file.write_text(json.dumps([asdict(SKIPPED)]))
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    late = card_processes._processes_running_after_wait([process], seconds=0.1)
    card_processes._end_processes([process])
    assert late == [process]
    found = list(card_processes._process_outcomes(process, file, index=0, late=True))
    assert [(row.test, row.verdict) for row in found] == [
        ("collective", BurninVerdict.SKIPPED),
        ("memory", BurninVerdict.FAILED),
    ]
    assert found[1].message == "it did not end in time and was killed: the card hangs"
