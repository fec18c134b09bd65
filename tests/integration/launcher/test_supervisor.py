from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from launcher.configuration import PROJECT
from launcher.process_output import TerminalOutput
from launcher.services import LogLineProbe, ServiceSpec, SetupStep
from launcher.supervisor import (
    ProcessSupervisor,
    RestartPolicy,
    SetupStepFailed,
    SupervisorStopRequested,
)
from tests.integration.launcher.process_polling import alive, gone, pid_in, wait_for
from tests.integration.launcher.programs import python

pytestmark = pytest.mark.slow

_ENVIRONMENT = {**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'platform'}"}


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts a supervisor over dummies; what it left, jobs above all, is ended after the test."""
    started: list[subprocess.Popen[str]] = []

    def begin(*names: str) -> subprocess.Popen[str]:
        program = PROJECT / "tests/integration/launcher/supervisor_program.py"
        output = (tmp_path / "out").open("w")
        with output:
            process = subprocess.Popen(
                [sys.executable, program, tmp_path, *names],
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                env=_ENVIRONMENT,
                start_new_session=True,
            )
        started.append(process)
        return process

    yield begin
    for process in started:
        if process.poll() is None:
            process.kill()
        process.wait()
    for path in tmp_path.glob("*-job"):
        os.kill(int(path.read_text()), signal.SIGKILL)


@pytest.fixture
def said(tmp_path: Path) -> Callable[[], str]:
    return (tmp_path / "out").read_text


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[ProcessSupervisor]:
    process_supervisor = ProcessSupervisor(
        folder=tmp_path,
        environment=os.environ,
        logs=tmp_path,
        terminal=TerminalOutput(io.StringIO()),
        policy=RestartPolicy(first_seconds=0.05),
    )
    with process_supervisor:
        yield process_supervisor


def test_a_process_that_dies_is_restarted_with_a_message(
    start: Callable[..., subprocess.Popen[str]], said: Callable[[], str], tmp_path: Path
) -> None:
    process = start("web")
    first = pid_in(tmp_path / "web")
    wait_for(lambda: "all ready" in said(), what="ready")
    os.kill(pid_in(tmp_path / "web-job"), signal.SIGKILL)
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: pid_in(tmp_path / "web") != first, what="started again")
    assert "web ended (killed by SIGKILL); starting it again in 0.05 s" in said()
    wait_for(lambda: said().count("web | web is up") == 2, what="prefixed line of the second life")
    process.terminate()
    assert process.wait(timeout=20) == 0


def test_a_process_that_keeps_dying_is_retried_slowly_and_its_log_named(
    start: Callable[..., subprocess.Popen[str]], said: Callable[[], str], tmp_path: Path
) -> None:
    start("fickle")
    wait_for(lambda: "4 times in a row" in said(), what="given up trying quickly")
    assert "starting it again in 30 s (it died 4 times in a row: see fickle.log" in said()
    assert "fickle ended (exit status 3)" in said()
    assert (tmp_path / "fickle.log").read_text() == "good-bye\n" * 4


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_stops_everything_but_jobs(
    start: Callable[..., subprocess.Popen[str]],
    said: Callable[[], str],
    tmp_path: Path,
    number: signal.Signals,
) -> None:
    process = start("web", "worker")
    pids = [pid_in(tmp_path / name) for name in ("web", "web-worker", "worker", "worker-worker")]
    job = pid_in(tmp_path / "worker-job")
    wait_for(lambda: "all ready" in said(), what="ready")
    process.send_signal(number)
    assert process.wait(timeout=20) == 0
    assert said().endswith("stopped\n")
    assert [pid for pid in pids if alive(pid)] == []
    assert alive(job)


def test_a_killed_supervisor_leaves_nothing_behind_but_jobs(
    start: Callable[..., subprocess.Popen[str]], tmp_path: Path
) -> None:
    process = start("web", "worker")
    pids = [pid_in(tmp_path / name) for name in ("web", "web-worker", "worker", "worker-worker")]
    job = pid_in(tmp_path / "worker-job")
    process.kill()
    process.wait()
    gone(*pids)
    assert alive(job)


def test_a_second_signal_ends_the_waiting_for_a_process_that_does_not_stop(
    start: Callable[..., subprocess.Popen[str]], said: Callable[[], str], tmp_path: Path
) -> None:
    process = start("stubborn")
    pid = pid_in(tmp_path / "stubborn")
    wait_for(lambda: "all ready" in said(), what="ready")
    process.terminate()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=0.7)
    process.terminate()
    process.wait(timeout=5)
    assert not alive(pid)


def test_services_stop_in_order(supervisor: ProcessSupervisor, tmp_path: Path) -> None:
    note = (
        "import signal, sys, time\n"
        "def end(*_):\n"
        "    time.sleep(0.2); open('order', 'a').write(sys.argv[1]); sys.exit()\n"
        "signal.signal(signal.SIGTERM, end); print('up', flush=True); time.sleep(60)\n"
    )
    for name, stop_order in (("c", 2), ("a", 0), ("b", 1)):
        supervisor.add(
            ServiceSpec(
                name=name,
                command=(*python(note), name),
                ready=LogLineProbe(pattern=re.compile("^up$")),
                stop_order=stop_order,
            )
        )
    assert supervisor.wait_until_ready(seconds=20) == ()
    supervisor.stop()
    assert (tmp_path / "order").read_text() == "abc"


def test_those_that_are_not_ready_in_time_are_named(supervisor: ProcessSupervisor) -> None:
    sleeper = python("import time; time.sleep(60)")
    supervisor.add(ServiceSpec(name="quick", command=sleeper))
    supervisor.add(ServiceSpec(name="late", command=sleeper, ready=lambda: False))
    supervisor.add(
        ServiceSpec(name="mute", command=sleeper, ready=LogLineProbe(pattern=re.compile("up")))
    )
    assert supervisor.wait_until_ready(seconds=0.6) == ("late", "mute")


def test_ignored_output_is_matched_for_readiness_but_not_logged(
    supervisor: ProcessSupervisor, tmp_path: Path
) -> None:
    supervisor.add(
        ServiceSpec(
            name="worker",
            command=python("import time; print('tick 1\\nnews', flush=True); time.sleep(60)"),
            ready=LogLineProbe(pattern=re.compile("^tick")),
            ignored_output=re.compile("^tick"),
        )
    )
    assert supervisor.wait_until_ready(seconds=20) == ()
    supervisor.stop()
    assert (tmp_path / "worker.log").read_text() == "news\n"


def test_a_failed_step_shows_its_last_lines(supervisor: ProcessSupervisor, tmp_path: Path) -> None:
    step = SetupStep(
        name="migrating", command=python("print('no such table'); raise SystemExit(2)")
    )
    with pytest.raises(
        SetupStepFailed, match=r"migrating failed \(exit status 2\):\n    no such table"
    ):
        supervisor.run_step(step)
    assert (tmp_path / "setup.log").read_text() == "no such table\n"


def test_a_signal_during_a_step_stops_the_step(
    supervisor: ProcessSupervisor, tmp_path: Path
) -> None:
    code = (
        "import os, signal, time; open('pid', 'w').write(f'{os.getpid()}\\n');"
        f"os.kill({os.getpid()}, signal.SIGTERM); time.sleep(60)"
    )
    with pytest.raises(SupervisorStopRequested):
        supervisor.run_step(SetupStep(name="migrating", command=python(code)))
    assert not alive(pid_in(tmp_path / "pid"))


def test_a_step_that_prints_a_lot_does_not_block(
    supervisor: ProcessSupervisor, tmp_path: Path
) -> None:
    supervisor.run_step(SetupStep(name="loud", command=python("print('x' * 99_999 + '\\n' * 9)")))
    assert "x" * 60_000 in (tmp_path / "setup.log").read_text()
