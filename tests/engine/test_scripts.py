"""A program of the user's own, run by the runtime."""

from __future__ import annotations

import io
import signal
import tarfile
from pathlib import Path

import pytest

from controlplane.ports.engines import EngineTask
from ninefold_runtime.exit_codes import ExitCode
from tests.engine.conftest import Start, complete_spec

PYTHON = ["python", "main.py"]


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "inputs" / "code"
    folder.mkdir(parents=True)
    return folder


def _pack(code: Path, name: str, source: str) -> Path:
    member = tarfile.TarInfo(name)
    content = source.encode()
    member.size = len(content)
    with tarfile.open(code / "code.tar.gz", "w:gz") as archive:
        archive.addfile(member, io.BytesIO(content))
    return code.parent


def test_outputs_and_arguments_and_environment_reach_the_program(start: Start, code: Path) -> None:
    source = (
        "import os, sys, pathlib, torch\n"
        "out = pathlib.Path(os.environ['NINEFOLD_OUTPUTS'])\n"
        "(out / 'answer.txt').write_text(os.environ['GREETING'] + sys.argv[1])\n"
        "print('token' if 'NINEFOLD_ATTEMPT_TOKEN' in os.environ else 'no token')\n"
    )
    spec = complete_spec(
        EngineTask.SCRIPT, argv=[*PYTHON, "; rm -rf $HOME"], environment={"GREETING": "hello "}
    )
    run = start(
        EngineTask.SCRIPT,
        spec,
        inputs=_pack(code, "main.py", source),
        environment={"NINEFOLD_ATTEMPT_TOKEN": "s3cret"},
    )
    assert run.finish() == ExitCode.FINISHED, run.text()
    answer = (run.work / "outputs" / "answer.txt").read_text(encoding="utf-8")
    assert answer == "hello ; rm -rf $HOME"
    assert "no token" in run.lines


def test_the_exit_code_of_the_program_is_the_exit_code(start: Start, code: Path) -> None:
    inputs = _pack(code, "main.py", "raise SystemExit(7)")
    run = start(EngineTask.SCRIPT, complete_spec(EngineTask.SCRIPT, argv=PYTHON), inputs=inputs)
    assert run.finish() == 7
    assert run.lines[-1] == "the program failed with exit code 7"


def test_an_archive_that_leaves_its_folder_is_refused(
    start: Start, code: Path, tmp_path: Path
) -> None:
    inputs = _pack(code, "../../evil.py", "print('evil')")
    run = start(EngineTask.SCRIPT, complete_spec(EngineTask.SCRIPT, argv=PYTHON), inputs=inputs)
    assert run.finish() == ExitCode.BAD_INPUT
    assert "outside its folder: '../../evil.py'" in run.lines[-1]
    assert not list(tmp_path.rglob("evil.py"))


def test_a_program_that_is_not_there_is_named(start: Start, code: Path) -> None:
    inputs = _pack(code, "main.py", "")
    run = start(
        EngineTask.SCRIPT, complete_spec(EngineTask.SCRIPT, argv=["no-such-program"]), inputs=inputs
    )
    assert run.finish() == ExitCode.BAD_INPUT
    assert "'no-such-program' cannot be run: No such file" in run.lines[-1]


def test_sigterm_reaches_the_program(start: Start, code: Path) -> None:
    source = (
        "import signal, sys, threading\n"
        "signal.signal(signal.SIGTERM, lambda *_: (print('saving'), sys.exit(0)))\n"
        "print('ready', flush=True)\n"
        "threading.Event().wait(100)\n"
    )
    inputs = _pack(code, "main.py", source)
    run = start(EngineTask.SCRIPT, complete_spec(EngineTask.SCRIPT, argv=PYTHON), inputs=inputs)
    run.wait_for("ready")
    run.process.send_signal(signal.SIGTERM)
    assert run.finish() == ExitCode.STOPPED
    assert "saving" in run.lines
