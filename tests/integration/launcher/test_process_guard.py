from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from process_supervision import process_guard
from tests.integration.launcher.process_polling import alive, gone, pid_in
from tests.integration.launcher.programs import family, python, stubborn


def _guarded(
    *command: str, parent: int | None = None, grace: float = 0.3, by: str = "SIGTERM"
) -> list[str]:
    return [
        *(sys.executable, "-I", "-S", str(process_guard.__file__)),
        *("--parent", str(parent or os.getpid()), "--grace", str(grace), "--signal", by),
        *("--", *command),
    ]


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Path]:
    """Where a family's job notes its pid; the job is ended after the test."""
    path = tmp_path / "web-job"
    yield path
    if path.exists():
        os.kill(int(path.read_text()), signal.SIGKILL)


def test_the_guard_returns_the_exit_status_of_the_command() -> None:
    done = subprocess.run(_guarded(*python("raise SystemExit(7)")), check=False)
    assert done.returncode == 7


def test_a_killed_command_is_reported_as_a_shell_does() -> None:
    suicide = python("import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    assert subprocess.run(_guarded(*suicide), check=False).returncode == 128 + 9


def test_a_command_that_does_not_exist_is_named() -> None:
    done = subprocess.run(_guarded("/nowhere/at-all"), capture_output=True, text=True, check=False)
    assert done.returncode == 127
    assert done.stderr == "cannot start /nowhere/at-all: No such file or directory\n"


def test_the_command_is_not_started_when_the_parent_is_gone_already(tmp_path: Path) -> None:
    command = _guarded(*family("web", folder=tmp_path), parent=2**22 - 1)
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert not (tmp_path / "web").exists()


def test_stopping_ends_workers_that_ignore_the_signal_and_spares_jobs(
    tmp_path: Path, job: Path
) -> None:
    process = subprocess.Popen(_guarded(*family("web", folder=tmp_path)), start_new_session=True)
    server, worker = pid_in(tmp_path / "web"), pid_in(tmp_path / "web-worker")
    detached = pid_in(job)
    process.terminate()
    assert process.wait(timeout=10) == 128 + signal.SIGTERM
    gone(server, worker)
    assert alive(detached)


def test_a_command_that_ignores_the_signal_is_killed_after_its_grace(tmp_path: Path) -> None:
    process = subprocess.Popen(_guarded(*stubborn("web", folder=tmp_path)), start_new_session=True)
    server = pid_in(tmp_path / "web")
    process.terminate()
    assert process.wait(timeout=10) == 128 + signal.SIGKILL
    gone(server)


def test_the_signal_to_stop_with_can_be_chosen(tmp_path: Path) -> None:
    process = subprocess.Popen(
        _guarded(*family("web", folder=tmp_path), by="SIGQUIT", grace=10.0), start_new_session=True
    )
    detached, worker = pid_in(tmp_path / "web-job"), pid_in(tmp_path / "web-worker")
    pid_in(tmp_path / "web")
    process.terminate()
    assert process.wait(timeout=10) == 128 + signal.SIGQUIT
    gone(worker)
    os.kill(detached, signal.SIGKILL)


def test_a_killed_parent_ends_everything_except_jobs(tmp_path: Path, job: Path) -> None:
    starter = (
        "import os, subprocess, sys; words = sys.argv[1:]; words[words.index('--parent') + 1]"
        " = str(os.getpid()); subprocess.Popen(words, start_new_session=True).wait()"
    )
    parent = subprocess.Popen([*python(starter), *_guarded(*family("web", folder=tmp_path))])
    server, worker = pid_in(tmp_path / "web"), pid_in(tmp_path / "web-worker")
    detached = pid_in(job)
    parent.kill()
    parent.wait()
    gone(server, worker)
    assert alive(detached)


def test_the_command_of_a_killed_guard_is_stopped(tmp_path: Path, job: Path) -> None:
    process = subprocess.Popen(_guarded(*family("web", folder=tmp_path)), start_new_session=True)
    server, worker = pid_in(tmp_path / "web"), pid_in(tmp_path / "web-worker")
    pid_in(job)
    process.kill()
    process.wait()
    gone(server)
    os.kill(worker, signal.SIGKILL)
