from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from launcher.configuration import PROJECT
from launcher.postgres import (
    NoCompatiblePostgres,
    PostgresBinaries,
    PostgresFailed,
    RunningPostgres,
    find_postgres_binaries,
    prepare_server,
)
from process_supervision.processes import ProcessIdentity, processes_working_in
from tests.integration.launcher.process_polling import alive, gone, wait_for
from tests.prepared_postgres import start_temporary_postgres

pytestmark = pytest.mark.slow

_INSTALLED = find_postgres_binaries()
_IS_ROOT = os.geteuid() == 0
as_root = pytest.mark.skipif(not _IS_ROOT, reason="only root starts it under another account")


@pytest.fixture(params=_INSTALLED, ids=lambda found: f"{found.origin}-{found.major}")
def binaries(request: pytest.FixtureRequest) -> PostgresBinaries:
    found: PostgresBinaries = request.param
    return found


@pytest.fixture
def running(tmp_path: Path) -> Iterator[RunningPostgres]:
    with start_temporary_postgres(tmp_path / "pg") as started:
        yield started


def _one(url: str, query: str) -> object:
    with psycopg.connect(url, connect_timeout=5) as connection:
        row = connection.execute(query).fetchone()
    return row[0] if row else None


def _kill(running: RunningPostgres) -> None:
    running.process.kill()
    running.process.wait()


def test_each_installed_version_starts_takes_connections_and_stops(
    binaries: PostgresBinaries, tmp_path: Path
) -> None:
    with start_temporary_postgres(tmp_path / "pg", candidates=[binaries]) as started:
        version = _one(started.url, "SHOW server_version")
        assert str(version).startswith(f"{binaries.major}.")
        assert _one(started.url, "SELECT current_database()") == "ninefold"
        assert _one(started.url, "SHOW server_encoding") == "UTF8"
        assert _one(started.url, "SELECT upper('é地')") == "É地"
    assert started.process.returncode == 0
    assert not (started.server.data / "postmaster.pid").exists()


def test_it_listens_on_no_tcp_address(running: RunningPostgres) -> None:
    assert _one(running.url, "SHOW listen_addresses") == ""


def test_what_a_project_with_a_space_in_its_name_needs_is_quoted(tmp_path: Path) -> None:
    with start_temporary_postgres(tmp_path / 'a "b" c') as started:
        assert _one(started.url, "SELECT 1") == 1


def test_committed_rows_survive_a_killed_server(tmp_path: Path) -> None:
    server = prepare_server(folder=tmp_path / "pg")
    log = tmp_path / "log"
    first = server.start(log=log)
    with psycopg.connect(first.url) as connection:
        connection.execute("CREATE TABLE kept AS SELECT generate_series(1, 1000) AS n")
    idle = psycopg.connect(first.url)
    _kill(first)
    idle.close()
    with prepare_server(folder=tmp_path / "pg").start(log=log) as second:
        assert _one(second.url, "SELECT count(*) FROM kept") == 1000


def test_remaining_processes_of_a_killed_server_are_awaited(running: RunningPostgres) -> None:
    helpers = [
        process.pid
        for process in processes_working_in(running.server.data)
        if process.pid != running.process.pid
    ]
    os.kill(helpers[0], signal.SIGSTOP)
    _kill(running)
    resume = threading.Timer(0.5, os.kill, (helpers[0], signal.SIGCONT))
    resume.start()
    try:
        with running.server.start(log=running.server.folder / "again.log") as again:
            assert _one(again.url, "SELECT 1") == 1
            assert not alive(helpers[0])
    finally:
        resume.join()


def test_a_pid_file_of_another_process_is_no_obstacle(running: RunningPostgres) -> None:
    data = running.server.data
    _kill(running)
    lines = (data / "postmaster.pid").read_text().splitlines()
    other = subprocess.Popen(["sleep", "60"])
    (data / "postmaster.pid").write_text("\n".join([str(other.pid), *lines[1:]]) + "\n")
    try:
        with running.server.start(log=running.server.folder / "again.log") as again:
            assert _one(again.url, "SELECT 1") == 1
        assert other.poll() is None
    finally:
        other.kill()
        other.wait()


def test_a_pid_file_of_a_zombie_is_no_obstacle(running: RunningPostgres) -> None:
    # Killed but not waited for: it stays a zombie, as below a PID 1 that does not reap.
    running.process.send_signal(signal.SIGKILL)
    wait_for(lambda: ProcessIdentity.of(running.process.pid) is None, what="the server is a zombie")
    assert (running.server.data / "postmaster.pid").exists()
    with running.server.start(log=running.server.folder / "again.log") as again:
        assert _one(again.url, "SELECT 1") == 1


def test_a_server_that_outlived_its_starter_is_stopped_first(running: RunningPostgres) -> None:
    with running.server.start(log=running.server.folder / "again.log") as again:
        assert running.process.wait(timeout=5) == 0
        assert _one(again.url, "SELECT 1") == 1


def test_it_ends_cleanly_when_its_starter_is_killed(tmp_path: Path) -> None:
    code = (
        "import pathlib, sys, time\n"
        "from tests.prepared_postgres import start_temporary_postgres\n"
        "print(start_temporary_postgres(pathlib.Path(sys.argv[1])).process.pid, flush=True)\n"
        "time.sleep(60)\n"
    )
    starter = subprocess.Popen(
        [sys.executable, "-c", code, tmp_path / "pg"],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{PROJECT}:{PROJECT / 'platform'}"},
    )
    assert starter.stdout is not None
    pid = int(starter.stdout.readline())
    assert alive(pid)
    starter.kill()
    starter.communicate()
    gone(pid)
    assert "database system is shut down" in (tmp_path / "pg/postgres.log").read_text()


def test_a_partially_created_database_is_created_again(tmp_path: Path) -> None:
    folder = tmp_path / "pg"
    prepare_server(folder=folder, durable=False)
    (folder / "data").rename(folder / "data.new")
    (folder / "data.new" / "global" / "pg_control").unlink()
    with start_temporary_postgres(folder) as started:
        assert _one(started.url, "SELECT 1") == 1


def test_a_path_too_long_for_a_socket_is_replaced_by_one_place_for_good(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 25) / "pg"
    server = prepare_server(folder=folder, durable=False)
    try:
        assert server.socket_folder.parent != folder
        assert prepare_server(folder=folder).socket_folder == server.socket_folder
        assert server.socket_folder.stat().st_mode & 0o777 == 0o700
        with server.start(log=tmp_path / "log") as started:
            assert _one(started.url, "SELECT 1") == 1
    finally:
        shutil.rmtree(server.socket_folder)


def test_a_link_in_place_of_the_recorded_socket_folder_is_not_followed(tmp_path: Path) -> None:
    folder = tmp_path / ("long" * 25) / "pg"
    first = prepare_server(folder=folder, durable=False).socket_folder
    first.rmdir()
    victim = tmp_path / "victim"
    victim.mkdir(mode=0o755)
    first.symlink_to(victim)
    second = prepare_server(folder=folder, durable=False).socket_folder
    try:
        assert second != first
        assert victim.stat().st_uid == os.geteuid()
        assert victim.stat().st_mode & 0o777 == 0o755
    finally:
        first.unlink()
        second.rmdir()


def test_data_of_another_version_names_the_version_to_install(tmp_path: Path) -> None:
    data = tmp_path / "pg" / "data"
    data.mkdir(parents=True)
    (data / "PG_VERSION").write_text("9\n")
    with pytest.raises(NoCompatiblePostgres, match="written by PostgreSQL 9, and this machine has"):
        prepare_server(folder=tmp_path / "pg")


def test_a_server_that_cannot_start_shows_its_last_lines(tmp_path: Path) -> None:
    server = prepare_server(folder=tmp_path / "pg", durable=False)
    (server.data / "postgresql.conf").write_text("no_such_setting = 1\n")
    with pytest.raises(PostgresFailed, match="no_such_setting"):
        server.start(log=tmp_path / "log")


@as_root
def test_no_other_account_reaches_the_socket(running: RunningPostgres) -> None:
    psql = running.server.binaries.folder / "psql"
    tried = subprocess.run(
        [
            *("setpriv", "--reuid=65533", "--regid=65533", "--clear-groups", "--no-new-privs"),
            *(psql, "--host", running.server.socket_folder, "--username", "ninefold", "-c", ""),
        ],
        capture_output=True,
        text=True,
        cwd="/",
        check=False,
    )
    assert tried.returncode != 0
    assert "Permission denied" in tried.stderr


@as_root
def test_below_a_closed_home_of_root_nothing_is_opened(
    binaries: PostgresBinaries, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    with start_temporary_postgres(home / "project" / "pg", candidates=[binaries]) as started:
        assert _one(started.url, "SELECT 1") == 1
        status = Path(f"/proc/{started.process.pid}/status").read_text()
    assert started.server.account is not None
    assert f"Uid:\t{started.server.account.uid}\t" in status
    assert home.stat().st_mode & 0o777 == 0o700


@as_root
def test_an_ordinary_user_runs_it_as_itself(binaries: PostgresBinaries, tmp_path: Path) -> None:
    python = shutil.which("python3", path="/usr/bin")
    closed = [folder for folder in PROJECT.parents if not folder.stat().st_mode & 0o001]
    if python is None or closed:
        pytest.skip("no Python or project that another account can reach")
    code = (
        "import pathlib, os, sys\n"
        "from launcher.postgres import BinariesOrigin, PostgresBinaries, prepare_server\n"
        "found = PostgresBinaries(folder=pathlib.Path(sys.argv[2]), major=int(sys.argv[3]),\n"
        "                 origin=BinariesOrigin.SYSTEM)\n"
        "server = prepare_server(\n"
        "    folder=pathlib.Path(sys.argv[1]), candidates=[found], durable=False)\n"
        "with server.start(log=server.folder / 'postgres.log') as running:\n"
        "    print(pathlib.Path(f'/proc/{running.process.pid}').stat().st_uid)\n"
    )
    # Not below pytest's own folder, which is closed to others.
    folder = Path("/tmp") / f"ninefold-user-{os.getpid()}"
    folder.mkdir()
    shutil.chown(folder, "nobody")
    try:
        done = subprocess.run(
            [
                *("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"),
                *("--inh-caps=-all", python, "-c", code),
                *(folder / "pg", binaries.folder, str(binaries.major)),
            ],
            capture_output=True,
            text=True,
            cwd="/",
            env={"PYTHONPATH": str(PROJECT / "platform"), "PATH": "/usr/bin:/bin"},
            check=False,
        )
    finally:
        shutil.rmtree(folder)
    assert (done.stdout, done.stderr) == ("65534\n", "")
