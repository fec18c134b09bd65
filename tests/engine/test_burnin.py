"""Burn-ins on the processor, with a real torch; faults are put in from outside, by replacing parts of the work."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from ninefold_runtime.exit_codes import ExitCode

ROOT = Path(__file__).resolve().parents[2]
WITHIN = 180.0
SPEC: Mapping[str, Any] = {
    "kind": "burnin",
    "device": "cpu",
    "cards": 1,
    "seconds": 5,
    "matrix": {"size": 256, "dtype": "float32", "expected_tflops": None, "floor": 0.7},
    "memory": {"share": 0.0005},
    "collective": {"backend": "gloo", "expected_gb_s": None, "floor": 0.5},
}


#: Small blocks, so that a busy machine has time for one.
BLOCK_ELEMENTS = 1 << 18
SMALL_BLOCKS = f"""
from ninefold_runtime.burnin import memory_test
memory_test._BLOCK_ELEMENTS, memory_test._BLOCK_BYTES = {BLOCK_ELEMENTS}, {BLOCK_ELEMENTS * 8}
"""


class Done:
    """How a burn-in ended."""

    def __init__(self, process: subprocess.CompletedProcess[str], work: Path) -> None:
        self.code, self.said, self.work = process.returncode, process.stdout, work

    def result(self) -> dict[str, Any]:
        (line,) = [line for line in self.said.splitlines() if line.startswith("RESULT ")]
        written = json.loads((self.work / "result" / "burnin.json").read_text())
        assert json.loads(line.removeprefix("RESULT ")) == written
        return dict(written)

    def of(self, test: str, *, card: int = 0) -> dict[str, Any]:
        tests = self.result()["tests"]
        (found,) = [row for row in tests if (row["test"], row["card"]) == (test, card)]
        return dict(found)


BurnIn = Callable[..., Done]


@pytest.fixture
def burn_in(engine_python: Path, tmp_path: Path) -> BurnIn:
    """Runs one with changes of the spec; ``fault`` is code for the process of each card, before its tests."""

    def run(*, fault: str = "", **changes: Any) -> Done:
        spec = tmp_path / "spec.json"
        spec.write_text(json.dumps({**SPEC, **changes}))
        site = tmp_path / "site"
        site.mkdir(exist_ok=True)
        (site / "sitecustomize.py").write_text(
            f"import sys\nif '--card' in sys.orig_argv:\n    exec({SMALL_BLOCKS + dedent(fault)!r})\n"
        )
        work = tmp_path / "work"
        process = subprocess.run(
            [str(engine_python), "-m", "ninefold_runtime.burnin", str(spec)],
            env={
                **os.environ,
                "PYTHONPATH": f"{site}:{ROOT / 'platform'}",
                "NINEFOLD_WORK": str(work),
                "OMP_NUM_THREADS": "1",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=WITHIN,
            check=False,
        )
        return Done(process, work)

    return run


def test_a_sound_card_passes_with_its_figures(burn_in: BurnIn) -> None:
    done = burn_in()
    assert (done.code, done.result()["passed"]) == (ExitCode.FINISHED, True), done.said
    assert done.of("matrix")["measured"] > 0
    assert done.of("memory")["measured"] >= done.of("memory")["expected"] > 0
    assert done.of("collective")["verdict"] == "skipped"


def test_cards_of_one_launch_add_up_with_each_other(burn_in: BurnIn) -> None:
    done = burn_in(cards=2, seconds=10)
    assert done.code == ExitCode.FINISHED, done.said
    for card in range(2):
        assert done.of("collective", card=card)["verdict"] == "passed"
        assert done.of("collective", card=card)["measured"] > 0


def test_a_sum_that_comes_out_wrong_on_one_card_fails_there_and_the_others_go_on(
    burn_in: BurnIn,
) -> None:
    fault = """
        from ninefold_runtime.burnin import card_tests
        reduced = card_tests.time_all_reduce
        def erring(words, *, part, card):
            seconds = reduced(words, part=part, card=card)
            if card.index == 1:
                words[123] += 1
            return seconds
        card_tests.time_all_reduce = erring
        """
    done = burn_in(fault=fault, cards=2)
    assert done.code == ExitCode.UNFIT, done.said
    assert done.of("collective", card=1)["message"].endswith("sums are wrong; 3 was right")
    assert done.of("collective", card=0)["verdict"] == "passed"
    assert done.of("matrix", card=0)["verdict"] == "passed"


def test_a_rate_below_the_floor_fails_and_says_how_far(burn_in: BurnIn) -> None:
    done = burn_in(matrix=dict(SPEC["matrix"]) | {"expected_tflops": 1000.0})
    assert done.code == ExitCode.UNFIT, done.said
    assert done.of("matrix")["expected"] == 700.0
    assert "less than 70% of the 1000 that are expected" in done.of("matrix")["message"]
    assert done.of("memory")["verdict"] == "passed"


def test_a_bit_that_does_not_keep_its_value_fails_with_its_address(burn_in: BurnIn) -> None:
    fault = """
        from ninefold_runtime.burnin import memory_test
        write = memory_test.PatternWriter.write
        def leaky(self, block, *, pattern, number):
            write(self, block, pattern=pattern, number=number)
            if pattern == "walking one" and number == 1:
                block[77] ^= 1 << 40
        memory_test.PatternWriter.write = leaky
        """
    done = burn_in(fault=fault, memory={"share": 0.001})
    assert (done.code, done.result()["passed"]) == (ExitCode.UNFIT, False), done.said
    memory = done.of("memory")
    assert memory["verdict"] == "failed"
    assert memory["message"].startswith("pattern walking one: 1 words differ: at 0x")
    assert f"(byte {BLOCK_ELEMENTS * 8 + 77 * 8}) wrote 0x" in memory["message"]
    # What is wrong with the memory does not keep the other tests from telling what they find.
    assert done.of("matrix")["verdict"] == "passed"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        # Always wrong, and wrong now and then.
        ("if True: out[1, 5] += 9", "the first product differs from the true one by "),
        ("if calls[0] > 20: out[200, 5] = float('nan')", "differs from the first by nan"),
    ],
)
def test_a_unit_that_computes_wrongly_fails(burn_in: BurnIn, entry: str, message: str) -> None:
    fault = f"""
        from ninefold_runtime.burnin import matrix_test
        multiply, calls = matrix_test.multiply_into, [0]
        def erring(left, right, *, out):
            multiply(left, right, out=out)
            calls[0] += 1
            {entry}
        matrix_test.multiply_into = erring
        """
    done = burn_in(fault=fault)
    assert done.code == ExitCode.UNFIT, done.said
    assert message in done.of("matrix")["message"]
    assert "the card computes wrongly" in done.of("matrix")["message"]


def test_a_card_that_takes_its_process_with_it_fails_where_it_stood(burn_in: BurnIn) -> None:
    fault = """
        import os, signal
        from ninefold_runtime.burnin import matrix_test
        matrix_test.multiply_into = lambda *_, **__: os.kill(os.getpid(), signal.SIGSEGV)
        """
    done = burn_in(fault=fault)
    assert done.code == ExitCode.UNFIT, done.said
    assert done.of("memory")["verdict"] == "passed"
    assert done.of("matrix")["message"] == "its process was killed by signal 11"


@pytest.mark.parametrize(
    ("seconds_a_block", "verdict", "message"),
    [
        # A block is made eight times: written in four patterns, and made again to compare.
        (0.02, "passed", " GiB, as much as there was time for"),
        (0.5, "failed", "no more than that can be written and read: it is too slow"),
    ],
)
def test_memory_that_is_slow_is_tested_in_part_and_too_slow_is_no_pass(
    burn_in: BurnIn, seconds_a_block: float, verdict: str, message: str
) -> None:
    # On a clock that only writing moves: how fast the machine is does not matter.
    fault = f"""
        import time, types
        from ninefold_runtime.burnin import card_tests, memory_test
        fill, now = memory_test.PatternWriter._fill_with_pattern, [time.monotonic()]
        def slow(self, block, *, pattern, number):
            fill(self, block, pattern=pattern, number=number)
            now[0] += {seconds_a_block}
        memory_test.PatternWriter._fill_with_pattern = slow
        clock = types.SimpleNamespace(monotonic=lambda: now[0], perf_counter=lambda: now[0])
        card_tests.time = memory_test.time = clock
        memory_test._BLOCK_ELEMENTS, memory_test._BLOCK_BYTES = 1 << 16, 1 << 19
        memory_test.BurninCard.free_memory = lambda card: 24 << 19
        """
    done = burn_in(fault=fault, memory={"share": 1.0})
    assert done.of("memory")["verdict"] == verdict, done.said
    assert message in done.of("memory")["message"]


def test_cards_that_torch_does_not_find_are_no_fault_of_theirs(burn_in: BurnIn) -> None:
    done = burn_in(device="cuda")
    assert done.code == ExitCode.BAD_INPUT
    assert "a burn-in of 'cuda' was asked for, but torch " in done.said
    assert "RESULT" not in done.said
