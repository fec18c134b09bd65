from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from launcher.home_folder import (
    AlreadyRunning,
    HomeLayout,
    ProcessEntry,
    RunRecord,
    SupervisorPhase,
    lock_home,
    read_run_record,
    write_run_record,
)
from launcher.supervisor import describe_exit
from process_supervision.processes import ProcessIdentity, command_line


@pytest.fixture
def layout(tmp_path: Path) -> HomeLayout:
    home_layout = HomeLayout(home=tmp_path / "var")
    home_layout.create()
    return home_layout


_RECORD = RunRecord(
    pid=41,
    ticks=99,
    phase=SupervisorPhase.READY,
    since=datetime(2026, 1, 2, 3, 4, tzinfo=UTC),
    web_url="http://127.0.0.1:8000",
    gateway_url="http://127.0.0.1:8001",
    processes=(ProcessEntry(name="web", pid=42, ticks=100, restarts=0, since="2026-01-02"),),
)


def test_a_record_comes_back_as_it_was_written(layout: HomeLayout) -> None:
    write_run_record(layout, _RECORD)
    assert read_run_record(layout) == _RECORD


@pytest.mark.parametrize("content", ["", "{", "[]", '{"pid": 1}'])
def test_a_garbled_record_is_none(layout: HomeLayout, content: str) -> None:
    (layout.run / "supervisor.json").write_text(content)
    assert read_run_record(layout) is None


def test_only_one_holds_a_home(layout: HomeLayout) -> None:
    with lock_home(layout), pytest.raises(AlreadyRunning, match="already running"):
        lock_home(layout).__enter__()
    with lock_home(layout):
        pass


def test_a_process_is_told_apart_from_a_later_one_with_its_number() -> None:
    process = ProcessIdentity.of(os.getpid())
    assert process is not None
    assert process.alive()
    assert not replace(process, started=process.started - 1).alive()


def test_a_process_that_never_was_has_no_start_and_no_arguments() -> None:
    assert ProcessIdentity.of(2**22 - 1) is None
    assert command_line(2**22 - 1) == ()


@pytest.mark.parametrize(
    ("status", "description"),
    [
        (0, "exit status 0"),
        (3, "exit status 3"),
        (-9, "killed by SIGKILL"),
        (137, "killed by SIGKILL"),
    ],
)
def test_exit_statuses_are_described(status: int, description: str) -> None:
    assert describe_exit(status) == description
