"""The end of a crashed job's log says whose doing it looks like."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from controlplane.domain.health.snapshots import CrashOrigin
from controlplane.domain.health.suspicions import SIGNATURES, find_crash_signature

HARDWARE, UNCLEAR, PROGRAM = CrashOrigin.HARDWARE, CrashOrigin.UNCLEAR, CrashOrigin.PROGRAM
LINES = [
    ("NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, GPU has fallen off the bus.", "xid-79", HARDWARE),
    ("dmesg: NVRM: Xid 48: double bit ECC error", "xid-48", HARDWARE),
    ("Xid (PCI:0000:3b:00): 31, pid=7, name=python, MMU Fault", "xid-31", UNCLEAR),
    ("GPU at 00000000:1B:00.0 has fallen off the bus", "off-the-bus", HARDWARE),
    ("CUDA error: uncorrectable ECC error encountered", "ecc", HARDWARE),
    ("RuntimeError: CUDA error: unspecified launch failure", "launch-failure", HARDWARE),
    ("Bus error (core dumped)", "bus-error", HARDWARE),
    ("CUDA error: uncorrectable NVLink error detected during the execution", "nvlink", HARDWARE),
    ("RuntimeError: HBM MULTI BIT ECC ERROR, error code is 507054", "npu-error", HARDWARE),
    ("RuntimeError: level_zero backend failed: device is lost", "device-lost", HARDWARE),
    ("HcclAllReduce failed: notify wait timed out, hccl notify wait of rank 3", "hccl-timeout", UNCLEAR),
    ("[rank3]:[E] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=40)", "nccl-timeout", UNCLEAR),
    ("torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2", "nccl-error", UNCLEAR),
    ("EI0006: [PID: 88] Getting socket times out.", "cann-EI0006", UNCLEAR),
    ("EJ0001: Failed to initialize the HCCP process.", "cann-EJ0001", UNCLEAR),
    ("{'loss': nan, 'grad_norm': 1.0}", "nan", UNCLEAR),
    ("CUDA error: an illegal memory access was encountered", "cuda-illegal-access", UNCLEAR),
    ("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB", "out-of-memory", PROGRAM),
    ("Out of memory: Killed process 99 (python)", "out-of-memory", PROGRAM),
    ("RuntimeError: CUDA error: device-side assert triggered", "device-assert", PROGRAM),
    ("OSError: [Errno 28] No space left on device", "no-space", PROGRAM),
]  # fmt: skip


@pytest.mark.parametrize(("line", "code", "blame"), LINES)
def test_a_crash_is_known_by_its_words(line: str, code: str, blame: CrashOrigin) -> None:
    crash = find_crash_signature(f"step 1 loss 2.3\n{line}\nKilled\n")
    assert crash is not None
    assert (crash.code, crash.blame, crash.line) == (code, blame, line)


@pytest.mark.parametrize(
    "line",
    [
        "ValueError: could not convert string to float: 'x'",
        "loss=1.29 nanoseconds=4",
        "the bus was late; error rate 0.1",
        "epoch 79 of 80, excited",
        "KeyError: 'EI0006x'",
        "",
    ],
)
def test_an_ordinary_line_tells_nothing(line: str) -> None:
    assert find_crash_signature(line) is None


def test_a_code_of_the_driver_comes_with_whose_it_is() -> None:
    crash = find_crash_signature("NVRM: Xid (PCI:0000:3b:00): 79, GPU has fallen off the bus.")
    assert crash is not None
    assert (crash.vendor, crash.fault) == ("nvidia", "79")


def test_a_mistake_of_the_program_goes_before_what_follows_from_it() -> None:
    tail = "\n".join(
        [
            "[rank0] CUDA error: device-side assert triggered",
            "[rank1] Watchdog caught collective operation timeout",
            "Bus error (core dumped)",
        ]
    )
    crash = find_crash_signature(tail)
    assert crash is not None
    assert crash.blame is PROGRAM


def test_of_several_the_strongest_counts_wherever_it_stands() -> None:
    xid, late = "NVRM: Xid (PCI:0000:3b:00): 79", "Watchdog caught collective operation timeout"
    for tail in (f"{xid}\n{late}", f"{late}\n{xid}"):
        crash = find_crash_signature(tail)
        assert crash is not None
        assert crash.code == "xid-79"


def test_every_signature_is_found_by_some_line() -> None:
    found = {code.partition("-")[0] if code[-1].isdecimal() else code for _, code, _ in LINES}
    assert found == {known.code for known in SIGNATURES}


@given(st.text(max_size=2000))
def test_no_text_whatever_makes_it_fail_or_say_more_than_the_text(tail: str) -> None:
    crash = find_crash_signature(tail)
    assert crash is None or crash.line in tail
