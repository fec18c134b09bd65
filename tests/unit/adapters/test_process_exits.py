from __future__ import annotations

import pytest

from controlplane.adapters.clusters.local.process_runs import ProcessExit, classify_exit
from controlplane.ports.clusters import ExitCause


def judged(
    returncode: int, *, output: str = "", forced: ProcessExit | None = None, kernel: bool = False
) -> ProcessExit:
    lines = output.splitlines()
    return classify_exit(
        returncode,
        forced=forced,
        output=output,
        last_line=lines[-1] if lines else "",
        killed_by_kernel=kernel,
    )


@pytest.mark.parametrize(
    ("returncode", "output", "cause", "code", "message"),
    [
        (0, "", ExitCause.FINISHED, 0, "finished"),
        (0, "No space left on device", ExitCause.FINISHED, 0, "finished"),
        (3, "", ExitCause.FAILED, 3, "exited with code 3"),
        (3, "step 1\nboom", ExitCause.FAILED, 3, "exited with code 3: boom"),
        (-9, "", ExitCause.KILLED, 137, "killed by SIGKILL"),
        (-15, "step 7", ExitCause.KILLED, 143, "killed by SIGTERM: step 7"),
        (137, "", ExitCause.KILLED, 137, "exited with code 137"),
        (-6, "", ExitCause.FAILED, 134, "killed by SIGABRT"),
        (-11, "", ExitCause.FAILED, 139, "killed by SIGSEGV"),
        (-99, "", ExitCause.FAILED, 227, "killed by signal 99"),
        (28, "", ExitCause.DISK_FULL, 28, "the disk is full"),
        (12, "", ExitCause.OUT_OF_MEMORY, 12, "the program failed to allocate memory"),
        (
            1,
            "OSError: [Errno 28] No space left on device",
            ExitCause.DISK_FULL,
            1,
            "the disk is full: OSError: [Errno 28] No space left on device",
        ),
        (1, "No space left on device\n" + "line\n" * 20 + "boom", ExitCause.FAILED, 1, None),
    ],
)
def test_an_exit_is_judged_by_its_code_and_its_last_lines(
    returncode: int, output: str, cause: ExitCause, code: int, message: str | None
) -> None:
    ending = judged(returncode, output=output)
    assert (ending.cause, ending.exit_code) == (cause, code)
    assert message is None or ending.message == message


def test_a_kill_while_the_kernel_was_short_of_memory_is_out_of_memory() -> None:
    assert judged(-9, kernel=True).cause is ExitCause.OUT_OF_MEMORY
    assert judged(137, kernel=True).cause is ExitCause.OUT_OF_MEMORY
    assert judged(-15, kernel=True).cause is ExitCause.KILLED


@pytest.mark.parametrize("returncode", [0, 143, -9, 28])
def test_what_the_supervisor_did_itself_outweighs_the_exit(returncode: int) -> None:
    forced = ProcessExit(cause=ExitCause.OUT_OF_TIME, message="stopped after 1:00:00")
    ending = judged(returncode, forced=forced)
    assert (ending.cause, ending.message) == (ExitCause.OUT_OF_TIME, "stopped after 1:00:00")
    assert ending.exit_code is not None
