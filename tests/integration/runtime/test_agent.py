"""The agent as a process: what it sends, how it ends, and what a tool that hangs does to it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.integration.launcher.process_polling import wait_for
from tests.integration.runtime.collectors import Collector
from tests.unit.runtime.agent.test_readers import LOST, SOUND

pytestmark = pytest.mark.slow

WITHIN = 120.0
ROOT = Path(__file__).parents[3]
Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def collector() -> Iterator[Collector]:
    collector = Collector()
    with collector.listening():
        yield collector


@pytest.fixture
def start(tmp_path: Path, collector: Collector) -> Iterator[Start]:
    """Starts an agent that pushes to the collector; all are gone when the test is over."""
    started: list[subprocess.Popen[str]] = []

    def run(*arguments: str, token: str = "nft-right", path: str = "") -> subprocess.Popen[str]:
        (tmp_path / "token").write_text(f"{token}\n")
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "ninefold_runtime.agent", "--server", collector.url),
                *("--token-file", str(tmp_path / "token"), "--node", "n7", "--every", "1"),
                *arguments,
            ],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT / "platform"),
                "PATH": f"{path}:{os.environ['PATH']}",
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate(timeout=WITHIN)


def tool(folder: Path, name: str, body: str) -> str:
    """A program of that name; the folder to put in front of the others."""
    folder.mkdir()
    program = folder / name
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o755)
    return str(folder)


def stop(process: subprocess.Popen[str]) -> tuple[float, str]:
    """How long it took to end after SIGTERM, and all that it said."""
    asked = time.monotonic()
    process.send_signal(signal.SIGTERM)
    said, _ = process.communicate(timeout=WITHIN)
    return time.monotonic() - asked, said


def test_it_sends_every_card_of_this_machine_and_ends_when_asked(
    start: Start, collector: Collector
) -> None:
    process = start("--reader", "cpu", "--cards", "3")
    wait_for(lambda: len(collector.taken) >= 2, what="two batches")
    took, said = stop(process)
    assert process.returncode == 0, said
    assert took < 30
    text = collector.taken[-1][1]
    for card in range(3):
        assert f'ninefold_cpu_memory_total_bytes{{card="{card}",node="n7"}} ' in text
    assert "\nninefold_agent_reader_ok 1\n" in text
    assert said.startswith("reads cpu cards of n7 every 1 s\n")


def test_a_tool_that_hangs_is_told_as_that_and_does_not_hold_up_the_end(
    start: Start, collector: Collector, tmp_path: Path
) -> None:
    folder = tool(tmp_path / "bin", "nvidia-smi", "exec sleep 60")
    process = start(path=folder)
    wait_for(lambda: len(collector.taken) >= 1, what="a batch")
    _, text = collector.taken[0]
    assert text.startswith("ninefold_agent_reader_ok 0\n")
    took, said = stop(process)
    assert process.returncode == 0, said
    assert took < 30, "it waited for the tool"
    assert "nvidia-smi did not answer in 4 s" in said


def test_a_card_that_is_lost_is_silent_beside_those_that_answer(
    start: Start, collector: Collector, tmp_path: Path
) -> None:
    rows = f"{SOUND}\n{LOST}\n"
    process = start(path=tool(tmp_path / "bin", "nvidia-smi", f"cat <<'END'\n{rows}END"))
    wait_for(lambda: len(collector.taken) >= 2, what="two batches")
    _, said = stop(process)
    _, text = collector.taken[1]
    assert 'DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1b9e' in text
    assert 'gpu="2"' not in text
    assert "\nninefold_agent_reader_ok 1\n" in text
    # Told once, not with every look.
    assert said.count("cards that do not answer: 2") == 1


def test_a_refused_token_ends_the_process_with_a_word_and_a_code(start: Start) -> None:
    process = start(token="nft-revoked")
    said, _ = process.communicate(timeout=WITHIN)
    assert process.returncode == 4
    assert said.splitlines()[-1].startswith("agent: the control plane refuses the token: ")
    assert "no such token" in said


def test_killed_and_started_again_it_repeats_no_number(
    start: Start, collector: Collector, tmp_path: Path
) -> None:
    state = ("--state", str(tmp_path / "sequence"))
    first = start(*state)
    wait_for(lambda: len(collector.taken) >= 1, what="a batch")
    first.kill()
    first.wait(WITHIN)
    before = len(collector.received)
    start(*state)
    wait_for(lambda: len(collector.taken) >= before + 1, what="a batch of the second")
    numbers = [int(headers["X-Ninefold-Sequence"]) for headers, _ in collector.received]
    assert numbers == sorted(set(numbers))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--server", "ftp://x"), "--server must be an http(s) address"),
        (("--server", "http://x:a"), "is no address"),
        (("--token-file", "nowhere"), "the token file nowhere cannot be read"),
        (("--authorities", "nowhere"), "--authorities nowhere cannot be used"),
    ],
)
def test_what_it_cannot_work_with_is_said_in_one_line(
    start: Start, arguments: tuple[str, ...], message: str
) -> None:
    process = start(*arguments)
    said, _ = process.communicate(timeout=WITHIN)
    assert process.returncode == 2
    assert message in said
    assert said.count("\n") == 1
