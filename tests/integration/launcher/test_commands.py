"""``up``, ``down`` and ``status`` over a dummy product, with the real servers below."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from launcher.home_folder import HomeLayout, RunRecord, read_run_record
from process_supervision.processes import command_line
from tests.integration.launcher.dummy_product import lay_out
from tests.integration.launcher.process_polling import alive, gone, wait_for

pytestmark = pytest.mark.slow

_HIDDEN = ("NINEFOLD_DATABASE_URL", "NINEFOLD_HOME", "DJANGO_SETTINGS_MODULE", "PYTHONPATH")


class Dummy:
    """A dummy product in a folder of its own, on ports of its own."""

    def __init__(self, folder: Path) -> None:
        self.project = lay_out(folder)
        self.home = self.project / "var"
        self.environment = {
            **{name: value for name, value in os.environ.items() if name not in _HIDDEN},
            "NINEFOLD_WEB_PORT": str(_free_port()),
            "NINEFOLD_GATEWAY_PORT": str(_free_port()),
        }

    def run(self, *arguments: str, **changes: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "launcher", "--project", self.project, *arguments],
            capture_output=True,
            text=True,
            cwd=self.project,
            env={**self.environment, **changes},
            timeout=120,
            check=False,
        )

    def start(self) -> str:
        """What ``up`` said once all was ready."""
        done = self.run("up", "--detach")
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def run_record(self) -> RunRecord:
        found = read_run_record(HomeLayout(home=self.home))
        assert found is not None
        return found

    def calls(self) -> list[str]:
        """What ``manage.py`` was asked to do, in order."""
        return [line.split()[0] for line in (self.project / "calls").read_text().splitlines()]


@pytest.fixture
def dummy(tmp_path: Path) -> Iterator[Dummy]:
    project = Dummy(tmp_path)
    yield project
    project.run("down")
    wait_for(lambda: _below(project.home) == [], what="nothing is left of the product")


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Dummy]:
    """One that runs, for tests that only look."""
    project = Dummy(tmp_path_factory.mktemp("started"))
    project.start()
    yield project
    project.run("down")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def _below(home: Path) -> list[tuple[str, ...]]:
    """Commands of the processes that use this home."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and alive(int(entry.name)):
            arguments = command_line(int(entry.name))
            try:
                given = (entry / "environ").read_bytes()
            except OSError:
                continue
            if f"NINEFOLD_HOME={home}\0".encode() in given or str(home / "pg/data") in arguments:
                found.append(arguments)
    return found


def test_up_names_the_file_of_the_password_and_down_leaves_nothing(dummy: Dummy) -> None:
    said = dummy.start()
    password = (dummy.home / "secrets/admin_password").read_text().strip()
    assert f"password         in {dummy.home}/secrets/admin_password" in said
    assert password not in said
    assert f"gateway          {dummy.run_record().gateway_url}/v1" in said
    assert password not in (dummy.home / "logs/supervisor.log").read_text()

    assert dummy.run("down").returncode == 0
    assert _below(dummy.home) == []
    assert dummy.run("status").returncode == 3
    assert dummy.calls() == ["migrate", "collectstatic", "bootstrap", "stop_jobs"]

    again = dummy.start()
    assert password not in again
    assert f"password         in {dummy.home}/secrets/admin_password" in again
    assert dummy.calls()[4:] == ["migrate", "bootstrap"]


def test_a_killed_supervisor_leaves_nothing_and_the_next_up_works(dummy: Dummy) -> None:
    dummy.start()
    killed = dummy.run_record().pid
    os.kill(killed, signal.SIGKILL)
    gone(killed)
    dummy.start()
    os.kill(dummy.run_record().pid, signal.SIGKILL)
    wait_for(lambda: _below(dummy.home) == [], what="everything ends", seconds=30)


def test_a_database_that_dies_comes_back(dummy: Dummy) -> None:
    dummy.start()
    postmaster = int((dummy.home / "pg/data/postmaster.pid").read_text().splitlines()[0])
    os.kill(postmaster, signal.SIGKILL)
    wait_for(
        lambda: dummy.run_record().processes[0].restarts == 1, what="PostgreSQL is started again"
    )
    assert dummy.run("down").returncode == 0
    assert "stop_jobs" in dummy.calls()


def test_a_failing_step_is_shown_and_nothing_stays_running(dummy: Dummy) -> None:
    (dummy.project / "broken").touch()
    failed = dummy.run("up", "--detach")
    assert failed.returncode == 1
    assert (
        "migrating the database failed (exit status 1):\n    relation is missing" in failed.stdout
    )
    assert _below(dummy.home) == []


LISTENS = """
import socket, time
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
time.sleep(600)
"""


def test_a_port_in_use_is_named_with_its_variable_and_nothing_is_started(dummy: Dummy) -> None:
    # A process of its own, with nothing of Ninefold's in its environment.
    with subprocess.Popen(
        [sys.executable, "-I", "-c", LISTENS], env={}, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdout is not None
        port = int(other.stdout.readline())
        refused = dummy.run("up", NINEFOLD_GATEWAY_PORT=str(port))
        other.kill()
    assert refused.returncode == 1
    assert f"cannot listen on 127.0.0.1:{port} (Address already in use)" in refused.stderr
    assert f"process {other.pid} " in refused.stderr
    assert "Choose another port with NINEFOLD_GATEWAY_PORT" in refused.stderr
    assert not (dummy.home / "pg").exists()


def test_down_without_an_earlier_run_reports_it(dummy: Dummy) -> None:
    done = dummy.run("down")
    assert (done.returncode, done.stdout) == (0, f"nothing has ever run in {dummy.home}\n")


def test_a_second_up_shows_the_running_product(started: Dummy) -> None:
    again = started.run("up")
    assert again.returncode == 0
    now = started.run_record()
    assert re.search(rf"Ninefold is running since [-\d]+ [:\d]+: {now.web_url}", again.stdout)
    assert f"process {now.pid} keeps postgres {now.processes[0].pid}, web " in again.stdout


def test_the_status_lists_every_process(started: Dummy) -> None:
    shown = started.run("status")
    assert shown.returncode == 0
    names = re.findall(r"^(\w+) +\d+  running +0 ", shown.stdout, flags=re.MULTILINE)
    assert names == ["postgres", "web", "worker", "beat", "gateway", "watcher", "agent"]


def test_a_port_that_another_ninefold_has_names_its_home(started: Dummy, tmp_path: Path) -> None:
    refused = started.run("up", NINEFOLD_HOME=str(tmp_path / "other"))
    assert refused.returncode == 1
    assert f"the Ninefold whose files are in {started.home} has it" in refused.stderr
    assert "Choose another port with NINEFOLD_WEB_PORT" in refused.stderr


def test_the_log_of_a_process_that_is_none_names_those_that_are(started: Dummy) -> None:
    shown = started.run("logs", "nobody")
    assert shown.returncode == 1
    assert (
        "there are: agent, beat, gateway, postgres, supervisor, watcher, web, worker"
        in shown.stderr
    )
    assert "ready" in started.run("logs", "worker").stdout
