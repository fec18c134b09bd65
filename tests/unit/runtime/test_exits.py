"""Faults behind exceptions."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from ninefold_runtime.exit_codes import (
    DiskFull,
    ExitCode,
    InvalidTaskInput,
    OutOfMemory,
    task_error_of,
)


@pytest.mark.parametrize(
    "error",
    [
        OSError(errno.ENOSPC, "No space left on device"),
        OSError(errno.EDQUOT, "Disk quota exceeded"),
        Exception("I/O error: No space left on device (os error 28)"),
    ],
)
def test_a_full_disk_is_known_in_each_of_its_disguises(error: Exception, tmp_path: Path) -> None:
    fault = task_error_of(error, work=tmp_path)
    assert isinstance(fault, DiskFull)
    assert fault.code == 28
    assert "bytes are free" in str(fault)


def test_a_full_disk_is_known_behind_another_error(tmp_path: Path) -> None:
    error = RuntimeError("saving failed")
    error.__cause__ = OSError(errno.ENOSPC, "No space left on device")
    assert isinstance(task_error_of(error, work=tmp_path), DiskFull)


def test_a_failed_write_of_torch_is_no_full_disk_where_there_is_room(tmp_path: Path) -> None:
    error = RuntimeError("[enforce fail at inline_container.cc:595] PytorchStreamWriter failed")
    assert task_error_of(error, work=tmp_path) is None


@pytest.mark.parametrize(
    "error", [MemoryError(), RuntimeError("DefaultCPUAllocator: can't allocate memory: 8 GB")]
)
def test_out_of_memory_says_what_to_change(error: Exception, tmp_path: Path) -> None:
    fault = task_error_of(error, work=tmp_path)
    assert isinstance(fault, OutOfMemory)
    assert "smaller batch_size" in str(fault)


def test_a_fault_stays_what_it_is(tmp_path: Path) -> None:
    fault = InvalidTaskInput("no")
    assert task_error_of(fault, work=tmp_path) is fault
    assert fault.code is ExitCode.BAD_INPUT


def test_what_nobody_foresaw_is_not_understood(tmp_path: Path) -> None:
    assert task_error_of(KeyError("x"), work=tmp_path) is None
