"""Checkpoints: which one a run goes on from after a kill at any instant."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import pytest

from ninefold_runtime import checkpoints
from ninefold_runtime.checkpoints import CheckpointStore
from ninefold_runtime.exit_codes import InvalidTaskInput, TaskStopped
from ninefold_runtime.report import Reporter


def _written(root: Path, step: int, *, sealed: bool = True) -> Path:
    folder = root / f"checkpoint-{step}"
    folder.mkdir(parents=True)
    (folder / "model.safetensors").write_bytes(b"weights" * step)
    if sealed:
        checkpoints.mark_checkpoint_complete(folder)
    return folder


def test_the_newest_complete_checkpoint_wins_by_step_and_not_by_name(tmp_path: Path) -> None:
    for step in (9, 100, 20):
        _written(tmp_path, step)
    newest = checkpoints.newest_checkpoint(tmp_path)
    assert newest is not None
    assert newest.step == 100


def test_a_checkpoint_without_its_marker_is_ignored(tmp_path: Path) -> None:
    _written(tmp_path, 10)
    _written(tmp_path, 20, sealed=False)
    newest = checkpoints.newest_checkpoint(tmp_path)
    assert newest is not None
    assert newest.step == 10


def test_a_file_cut_short_after_sealing_makes_the_checkpoint_incomplete(tmp_path: Path) -> None:
    folder = _written(tmp_path, 10)
    (folder / "model.safetensors").write_bytes(b"w")
    assert checkpoints.newest_checkpoint(tmp_path) is None


def test_a_marker_that_is_not_json_makes_the_checkpoint_incomplete(tmp_path: Path) -> None:
    folder = _written(tmp_path, 10)
    (folder / checkpoints.MARKER).write_text("{", encoding="utf-8")
    assert checkpoints.newest_checkpoint(tmp_path) is None


def test_a_folder_that_is_not_there_has_no_checkpoint(tmp_path: Path) -> None:
    assert checkpoints.newest_checkpoint(tmp_path / "absent") is None


def test_what_a_killed_run_left_half_written_is_removed(tmp_path: Path) -> None:
    _written(tmp_path, 10)
    _written(tmp_path, 20, sealed=False)
    assert checkpoints.delete_incomplete_checkpoints(tmp_path) == ("checkpoint-20",)
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-10"]


def test_only_the_newest_complete_ones_are_kept(tmp_path: Path) -> None:
    for step in (10, 20, 30):
        _written(tmp_path, step)
    _written(tmp_path, 40, sealed=False)
    checkpoints.delete_older_checkpoints(tmp_path, count=2)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == ["checkpoint-20", "checkpoint-30", "checkpoint-40"]


def _store(root: Path) -> CheckpointStore:
    return CheckpointStore.from_environment(root, reporter=Reporter(None), keep=1)


def test_without_an_interval_checkpoints_stay_in_their_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NINEFOLD_CHECKPOINT_UPLOAD_SECONDS", raising=False)
    store = _store(tmp_path)
    store.download()
    _written(tmp_path, 10)
    with suppress(TaskStopped), store:
        store.saved(step=10)
        raise TaskStopped("stopped")
    assert {path.name for path in tmp_path.iterdir()} == {"checkpoint-10"}


def test_an_interval_that_is_no_number_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NINEFOLD_CHECKPOINT_UPLOAD_SECONDS", "often")
    with pytest.raises(InvalidTaskInput, match="must be a number of seconds, not 'often'"):
        _store(tmp_path)
