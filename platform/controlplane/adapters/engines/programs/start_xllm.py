"""Starts xLLM on the cards of one node: ``start_xllm.py PORT CARDS DEVICE COMMAND…``.

xLLM has one process for each card and no launcher in its releases. Each process gets its rank and its card; the
first answers HTTP on PORT. If one ends, the others are stopped, and the exit code is that of the first that ended.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

#: How long processes may take to end after one of them did.
_STOP_SECONDS = 15.0
#: The shell's exit code of a process that a signal ended.
_SIGNALLED = 128


def rank_arguments(rank: int, *, port: int, cards: int, device: str) -> list[str]:
    """What differs between the processes."""
    return [
        f"--port={port + rank}",
        f"--nnodes={cards}",
        f"--node_rank={rank}",
        f"--devices={device}:{rank}",
    ]


def wait_for_first(processes: Sequence["subprocess.Popen[bytes]"]) -> int:
    """The exit code of the first process that ends."""
    codes = {process.pid: process for process in processes}
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid in codes:
            code = os.waitstatus_to_exitcode(status)
            codes[pid].returncode = code
            return code if code >= 0 else _SIGNALLED - code


def stop(processes: Sequence["subprocess.Popen[bytes]"]) -> None:
    """End what still runs: first by SIGTERM, then by SIGKILL."""
    for process in processes:
        if process.returncode is None:
            process.terminate()
    for process in processes:
        try:
            process.wait(timeout=_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> int:
    port, cards, device = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    command = sys.argv[4:]
    processes: list[subprocess.Popen[bytes]] = []
    stops: list[int] = []

    def stop_all(number: int, _frame: object) -> None:
        stops.append(number)
        for process in processes:
            if process.returncode is None:
                process.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop_all)
    try:
        for rank in range(cards):
            arguments = rank_arguments(rank, port=port, cards=cards, device=device)
            processes.append(subprocess.Popen([*command, *arguments]))
        # What came before there were processes to hand it on to.
        for early in stops:
            stop_all(early, None)
        code = wait_for_first(processes)
    finally:
        stop(processes)
    return _SIGNALLED + stops[0] if stops else code


if __name__ == "__main__":
    sys.exit(main())
