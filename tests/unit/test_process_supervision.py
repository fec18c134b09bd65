from __future__ import annotations

import signal
import stat
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from process_supervision.files import write_private
from process_supervision.processes import (
    OutputPipe,
    ProcessIdentity,
    kill_until_exited,
    processes_of_session,
    start_in_session,
    wait_until,
)

_STUBBORN = "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
_WITHIN = 60.0


def _lines(output: OutputPipe, *, count: int) -> list[str]:
    found: list[str] = []

    def enough() -> bool:
        found.extend(output.lines())
        return len(found) >= count or output.at_end

    assert wait_until(enough, seconds=_WITHIN)
    return found


def test_a_process_that_ignores_the_first_signal_is_stopped_by_the_next() -> None:
    process = start_in_session([sys.executable, "-c", _STUBBORN])
    output = OutputPipe(process)
    identity = ProcessIdentity.of(process.pid)
    assert identity is not None
    assert _lines(output, count=1) == ["up"]
    replace(identity, started=identity.started + 1).signal(signal.SIGKILL)
    assert not identity.stop(signal.SIGTERM, within=0.1)
    assert identity.stop(signal.SIGTERM, signal.SIGKILL, within=1.0)
    assert process.wait() == -signal.SIGKILL
    output.close()


def test_a_session_is_killed_with_what_it_started() -> None:
    command = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {_STUBBORN!r}])"
    process = start_in_session([sys.executable, "-c", command])
    output = OutputPipe(process)
    assert _lines(output, count=1) == ["up"]
    assert len(processes_of_session(process.pid)) == 2
    assert kill_until_exited(lambda: processes_of_session(process.pid), within=_WITHIN)
    assert process.wait() == -signal.SIGKILL
    output.close()


def test_output_comes_as_lines_and_the_last_may_be_unfinished() -> None:
    command = "import sys; sys.stdout.write('one\\r\\n' + 'x' * 300000 + '\\nend')"
    process = start_in_session([sys.executable, "-c", command])
    output = OutputPipe(process)
    lines = _lines(output, count=sys.maxsize)
    assert lines[0] == "one"
    assert "".join(lines[1:]) == "x" * 300_000
    assert output.remaining_lines() == ["end"]
    assert process.wait() == 0
    output.close()


def test_a_private_file_is_replaced_or_stays(tmp_path: Path) -> None:
    path = tmp_path / "state"
    write_private(path, "old")
    write_private(path, "new")
    with pytest.raises(UnicodeEncodeError):
        write_private(path, "\udcff")
    assert path.read_text() == "new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]
