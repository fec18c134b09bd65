"""Inputs that are wrong are said to be, by file and row."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.task_folders import TaskFolders


@pytest.fixture
def folders(tmp_path: Path) -> TaskFolders:
    for name in ("model", "dataset", "code"):
        (tmp_path / "inputs" / name).mkdir(parents=True)
    return TaskFolders(work=tmp_path / "work", inputs=tmp_path / "inputs")


def _row(*roles: str) -> str:
    return json.dumps({"messages": [{"role": role, "content": f"a {role}"} for role in roles]})


def test_rows_come_in_order_up_to_the_limit(folders: TaskFolders) -> None:
    lines = [_row("user", "assistant")] * 3
    (folders.inputs / "dataset" / "test.jsonl").write_text("\n".join(lines), encoding="utf-8")
    assert len(folders.rows("test")) == 3
    assert len(folders.rows("test", limit=2)) == 2


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "row 2 is not JSON"),
        ("{}", "row 2 has no list of messages"),
        (_row("user"), "row 2 ends with 'user'"),
        (_row("robot", "assistant"), "row 2 has a message without a known role"),
    ],
)
def test_a_broken_row_is_named(folders: TaskFolders, line: str, message: str) -> None:
    path = folders.inputs / "dataset" / "train.jsonl"
    path.write_text(f"{_row('user', 'assistant')}\n{line}\n", encoding="utf-8")
    with pytest.raises(InvalidTaskInput, match=message):
        folders.rows("train")


def test_a_missing_split_names_those_that_are_there(folders: TaskFolders) -> None:
    (folders.inputs / "dataset" / "train.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(InvalidTaskInput, match="no split 'test'; its splits: train"):
        folders.rows("test")


def test_a_split_without_rows_is_refused(folders: TaskFolders) -> None:
    (folders.inputs / "dataset" / "train.jsonl").write_text("", encoding="utf-8")
    with pytest.raises(InvalidTaskInput, match="has no rows"):
        folders.rows("train")


def test_a_model_in_another_format_is_refused(folders: TaskFolders) -> None:
    (folders.inputs / "model" / "config.json").write_text("{}", encoding="utf-8")
    (folders.inputs / "model" / "pytorch_model.bin").write_bytes(b"pickle")
    with pytest.raises(InvalidTaskInput, match=r"no \*\.safetensors file"):
        folders.model()


def test_code_must_be_one_known_archive(folders: TaskFolders) -> None:
    (folders.inputs / "code" / "code.rar").write_bytes(b"")
    with pytest.raises(InvalidTaskInput, match=r"found code\.rar"):
        folders.archive()


def test_an_input_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(InvalidTaskInput, match="input 'model' is missing"):
        TaskFolders(work=tmp_path, inputs=tmp_path).model()


def _preference(**more: object) -> str:
    return json.dumps({**json.loads(_row("user", "assistant")), **more})


def test_a_preference_comes_with_the_answer_that_was_liked_less(folders: TaskFolders) -> None:
    path = folders.inputs / "dataset" / "train.jsonl"
    path.write_text(_preference(rejected="another"), encoding="utf-8")
    (found,) = folders.preferences("train")
    assert found.messages[-1]["content"] == "a assistant"
    assert found.rejected == "another"


@pytest.mark.parametrize("more", [{}, {"rejected": ""}, {"rejected": 7}])
def test_a_row_without_a_rejected_answer_is_no_preference(
    folders: TaskFolders, more: dict[str, object]
) -> None:
    path = folders.inputs / "dataset" / "train.jsonl"
    path.write_text(_preference(**more), encoding="utf-8")
    with pytest.raises(
        InvalidTaskInput, match="row 1 has no rejected answer; dpo learns from rows"
    ):
        folders.preferences("train")
