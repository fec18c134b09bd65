"""One process for each card, and the end of all of them in time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from ninefold_runtime.burnin.outcomes import BurninOutcome, failed_outcome, read_outcomes
from ninefold_runtime.burnin.specs import BurninSpec
from ninefold_runtime.exit_codes import ExitCode, InvalidTaskInput

#: Beyond the limit of the spec: loading torch, meeting, and the last product.
GRACE_SECONDS = 120.0
_POLL_SECONDS = 0.1
_REAP_SECONDS = 5.0
_TESTS = ("collective", "memory", "matrix")


def run_card_processes(
    spec: BurninSpec, *, path: Path, folder: Path, grace_seconds: float = GRACE_SECONDS
) -> list[BurninOutcome]:
    """The outcomes of every card; of one whose process crashed or hung, that failure.

    :raises InvalidTaskInput: if the spec requires what is not available here.
    """
    meeting = folder / "meeting"
    meeting.unlink(missing_ok=True)
    files = [folder / f"card-{index}.json" for index in range(spec.cards)]
    for file in files:
        file.unlink(missing_ok=True)
    started = [
        subprocess.Popen(
            [
                *(sys.executable, "-m", "ninefold_runtime.burnin", str(path)),
                *("--card", str(index), "--meeting", str(meeting), "--out", str(file)),
            ],
            env=_process_environment(spec),
        )
        for index, file in enumerate(files)
    ]
    try:
        late = _processes_running_after_wait(started, seconds=spec.seconds + grace_seconds)
    finally:
        _end_processes(started)
    if any(process.returncode == ExitCode.BAD_INPUT for process in started):
        raise InvalidTaskInput("the burn-in could not begin; the lines above say why")
    return [
        outcome
        for index, (process, file) in enumerate(zip(started, files, strict=True))
        for outcome in _process_outcomes(process, file, index=index, late=process in late)
    ]


def _process_environment(spec: BurninSpec) -> dict[str, str]:
    environment = dict(os.environ)
    if spec.device == "cpu":
        threads = environment.get("OMP_NUM_THREADS", "")
        share = max(1, (int(threads) if threads.isdecimal() else spec.cards) // spec.cards)
        environment["OMP_NUM_THREADS"] = str(share)
        # All cards of one burn-in are on one node.
        environment.setdefault("GLOO_SOCKET_IFNAME", "lo")
    return environment


def _processes_running_after_wait(
    processes: list[subprocess.Popen[bytes]], *, seconds: float
) -> list[subprocess.Popen[bytes]]:
    """Those that have not ended by then."""
    deadline = time.monotonic() + seconds
    while True:
        running = [process for process in processes if process.poll() is None]
        if not running or time.monotonic() > deadline:
            return running
        time.sleep(_POLL_SECONDS)


def _end_processes(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        process.kill()
    # What waits for a dead card cannot be killed; the cluster ends what is left of the Launch.
    _processes_running_after_wait(processes, seconds=_REAP_SECONDS)


def _process_outcomes(
    process: subprocess.Popen[bytes], file: Path, *, index: int, late: bool
) -> Iterator[BurninOutcome]:
    outcomes: list[BurninOutcome] = []
    try:
        outcomes = read_outcomes(json.loads(file.read_text(encoding="utf-8")))
    except FileNotFoundError:
        pass
    yield from outcomes
    known = {outcome.test for outcome in outcomes}
    missing = next((test for test in _TESTS if test not in known), None)
    if missing is None:
        return
    status = process.returncode
    if late:
        message = "it did not end in time and was killed: the card hangs"
    elif status is not None and status < 0:
        message = f"its process was killed by signal {-status}"
    else:
        message = f"its process ended with exit code {status}"
    yield failed_outcome(test=missing, card=index, message=message)
