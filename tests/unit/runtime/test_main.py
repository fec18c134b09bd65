"""The command line: one line and one code for each fault, before torch is imported."""

from __future__ import annotations

from pathlib import Path

import pytest

from ninefold_runtime.__main__ import main


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("NINEFOLD_WORK", str(tmp_path))
    monkeypatch.setenv("NINEFOLD_INPUTS", str(tmp_path / "inputs"))
    monkeypatch.delenv("NINEFOLD_REPORT_URL", raising=False)
    return tmp_path


def test_a_spec_that_is_not_there_ends_with_bad_input_and_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["finetune", "--spec", str(tmp_path / "spec.json")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_variable_that_is_not_set_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("NINEFOLD_WORK")
    assert main(["evaluate", "--spec", "spec.json"]) == 2
    assert "NINEFOLD_WORK is not set" in capsys.readouterr().err


def test_an_unknown_task_is_refused_by_the_parser(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["dance", "--spec", "spec.json"])
    assert ended.value.code == 2
    assert "finetune" in capsys.readouterr().err
