"""The programs that a Launch brings along, run as they would be in an image, with commands that only pretend."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters.engines import container_commands
from tests.unit.engines.training_requests import rendered

LIMIT_SECONDS = 120.0
#: Stands for an engine: notes how it was called, leaves what an engine would leave, and ends as it is told.
PRETENDED = """#!{python}
import json, os, pathlib, sys, time
names = ("NNODES", "NODE_RANK", "CUDA_VISIBLE_DEVICES", "FROM_SCRIPT")
with open("calls.jsonl", "a") as calls:
    seen = {{name: os.environ[name] for name in names if name in os.environ}}
    calls.write(json.dumps([sys.argv[1:], os.getcwd(), seen]) + "\\n")
for path in os.environ.get("LEAVES", "").split():
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("{{}}")
if "WAITS" in os.environ:
    print("waiting", flush=True)
    time.sleep(float(os.environ["WAITS"]))
sys.exit(int(os.environ.get("ENDS", "0")) if sys.argv[1] != "export" else 0)
"""


class Image:
    """A working folder, and commands on the path."""

    def __init__(self, folder: Path) -> None:
        self.work = folder / "a job"
        self.bin = folder / "bin"
        self.bin.mkdir(parents=True)
        for command in ("llamafactory-cli", "swift", "torchrun"):
            path = self.bin / command
            path.write_text(PRETENDED.format(python=sys.executable))
            path.chmod(0o755)

    def write(self, files: Mapping[str, str]) -> None:
        for name, text in files.items():
            path = self.work / name
            path.parent.mkdir(parents=True, exist_ok=True)
            filled = text
            values = {"{work}": self.work, "{inputs}": self.work / "in", "{python}": sys.executable}
            for place, value in values.items():
                filled = filled.replace(place, str(value))
            path.write_text(filled, encoding="utf-8")

    def start(self, *arguments: str, **variables: str) -> subprocess.Popen[str]:
        environment = {"PATH": f"{self.bin}:{os.environ['PATH']}", "NODE_RANK": "0", **variables}
        return subprocess.Popen(
            [sys.executable, str(self.work / "run_steps.py"), *arguments],
            env=environment,
            cwd="/",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def run(self, *arguments: str, **variables: str) -> tuple[int, str]:
        process = self.start(*arguments, **variables)
        output, _ = process.communicate(timeout=LIMIT_SECONDS)
        return process.returncode, output

    def calls(self) -> list[Any]:
        path = self.work / "calls.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def image(tmp_path: Path) -> Image:
    return Image(tmp_path)


def model_in(folder: str) -> str:
    names = ("config.json", "model.safetensors", "tokenizer.json", "optimizer.pt", "args.json")
    return " ".join(f"{folder}/{name}" for name in names)


def test_an_adapter_is_trained_merged_and_handed_over(image: Image) -> None:
    image.write(rendered("llamafactory", {"method": "lora"}, chip="nvidia-h800").files)
    code, output = image.run(LEAVES=model_in("merged"))
    assert code == 0, output
    assert [call[0] for call in image.calls()] == [
        ["train", "train.yaml"],
        ["export", "merge.yaml"],
    ]
    outputs = sorted(path.name for path in (image.work / "outputs").iterdir())
    assert outputs == ["config.json", "model.safetensors", "tokenizer.json"]


def test_commands_run_in_the_working_folder_whatever_its_name(image: Image) -> None:
    """The folder's name holds a space, at which LLaMA-Factory's launcher would divide its arguments."""
    image.write(rendered("llamafactory", {}, chip="nvidia-h800").files)
    image.run(LEAVES=model_in("checkpoints"))
    [[arguments, folder, _]] = image.calls()
    assert folder == str(image.work)
    assert not any(" " in word for word in arguments)


def test_the_first_step_that_fails_ends_the_job_with_its_code(image: Image) -> None:
    image.write(rendered("llamafactory", {"method": "lora"}, chip="nvidia-h800").files)
    code, _ = image.run(ENDS="7")
    assert code == 7
    assert len(image.calls()) == 1
    assert not (image.work / "outputs").exists()


def test_other_replicas_train_and_leave_the_rest_to_the_first(image: Image) -> None:
    image.write(rendered("llamafactory", {"method": "lora"}, chip="nvidia-h800", nodes=2).files)
    code, output = image.run(NODE_RANK="1")
    assert code == 0, output
    assert [call[0][0] for call in image.calls()] == ["train"]


def test_a_step_runs_in_the_folder_that_it_names(image: Image) -> None:
    steps = [
        container_commands.CommandStep(argv=("mkdir", "source")),
        container_commands.CommandStep(argv=("torchrun", "train.py"), folder="source"),
    ]
    image.write(container_commands.render_step_files(steps, replicas=[{}]))
    code, output = image.run()
    assert code == 0, output
    calls = image.work / "source" / "calls.jsonl"
    assert json.loads(calls.read_text())[:2] == [["train.py"], str(image.work / "source")]


def test_a_replica_gets_the_variables_that_are_its_own(image: Image) -> None:
    steps = [
        container_commands.CommandStep(
            argv=("torchrun", "--nnodes", "$NNODES", "$HOME", "--rank", "$NODE_RANK")
        )
    ]
    own = [{"CUDA_VISIBLE_DEVICES": "0,1"}, {"CUDA_VISIBLE_DEVICES": "4,5"}]
    image.write(container_commands.render_step_files(steps, replicas=own))
    image.run(NODE_RANK="1", NNODES="2")
    [[arguments, _, seen]] = image.calls()
    assert arguments == ["--nnodes", "2", "$HOME", "--rank", "1"]
    assert seen["CUDA_VISIBLE_DEVICES"] == "4,5"


def test_a_step_may_have_the_arguments_of_the_program(image: Image) -> None:
    """They may differ between replicas, unlike the files of a Launch."""
    steps = [container_commands.CommandStep(argv=container_commands.ALL_ARGUMENTS)]
    image.write(container_commands.render_step_files(steps, replicas=[{}]))
    image.run("torchrun", "--node-rank", "1", "$HOME {newest}")
    [[arguments, *_]] = image.calls()
    assert arguments == ["--node-rank", "1", "$HOME {newest}"]


def test_training_goes_on_from_the_newest_whole_checkpoint(image: Image) -> None:
    launch = rendered("ms_swift", {}, chip="nvidia-h800", continues="attempt-0")
    image.write(launch.files)
    for name in ("checkpoint-9", "checkpoint-10"):
        folder = image.work / "checkpoints" / name
        folder.mkdir(parents=True)
        (folder / "trainer_state.json").write_text("{}")
    (image.work / "checkpoints" / "checkpoint-11").mkdir()
    image.run()
    [arguments, *_] = image.calls()[0]
    assert arguments[-2:] == ["--resume_from_checkpoint", "checkpoints/checkpoint-10"]


def test_without_a_checkpoint_it_begins_anew(image: Image) -> None:
    launch = rendered("ms_swift", {}, chip="nvidia-h800", continues="attempt-0")
    image.write(launch.files)
    image.run()
    [arguments, *_] = image.calls()[0]
    assert arguments == ["sft", "train.json"]


def test_a_training_that_left_no_checkpoint_is_said_to_have_failed(image: Image) -> None:
    image.write(rendered("ms_swift", {}, chip="nvidia-h800").files)
    code, output = image.run()
    assert code == 1
    assert "failed: nothing matches checkpoints/checkpoint-*/trainer_state.json" in output


def test_an_adapter_alone_is_no_model(image: Image) -> None:
    image.write(rendered("llamafactory", {}, chip="nvidia-h800").files)
    code, output = image.run(LEAVES="checkpoints/adapter_model.safetensors checkpoints/config.json")
    assert code == 1
    assert "failed: checkpoints has no *.safetensors file of a whole model" in output


def test_a_command_that_the_image_lacks_is_named(image: Image) -> None:
    (image.bin / "swift").unlink()
    image.write(rendered("ms_swift", {}, chip="nvidia-h800").files)
    code, output = image.run()
    assert code == 1
    assert "failed: swift cannot be run" in output


def test_a_stop_reaches_the_step_and_ends_the_sequence(image: Image) -> None:
    image.write(rendered("llamafactory", {"method": "lora"}, chip="nvidia-h800").files)
    process = image.start(WAITS=str(LIMIT_SECONDS))
    assert process.stdout is not None
    for line in process.stdout:
        if line.strip() == "waiting":
            break
    began = time.monotonic()
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=LIMIT_SECONDS)
    assert time.monotonic() - began < LIMIT_SECONDS / 2
    assert process.returncode == 128 + signal.SIGTERM
    assert len(image.calls()) == 1


def test_a_script_of_the_image_sets_variables_first(image: Image, tmp_path: Path) -> None:
    script = tmp_path / "set env.sh"
    script.write_text("echo noise; export FROM_SCRIPT='a value\nof two lines'")
    image.write(rendered("ms_swift", {}, chip="nvidia-h800").files)
    image.run(NINEFOLD_SET_ENV=f"/nowhere/set_env.sh:{script}")
    assert image.calls()[0][2]["FROM_SCRIPT"] == "a value\nof two lines"


CHAT = {
    "messages": [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": "4"},
    ],
    "rejected": "5",
}
TEXT = {"messages": [{"role": "assistant", "content": "Once upon a time."}]}


def shaped(tmp_path: Path, shape: str, *rows: Any) -> tuple[int, str, list[Any] | None]:
    """Exit code, output and rows of the target; None if there is no target."""
    source, target = tmp_path / "train.jsonl", tmp_path / "rows" / "train.jsonl"
    source.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    program = tmp_path / "shape_rows.py"
    program.write_text(container_commands.read_bundled_program("shape_rows"))
    finished = subprocess.run(
        [sys.executable, str(program), shape, str(source), str(target)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_SECONDS,
    )
    found = (
        [json.loads(line) for line in target.read_text().splitlines()] if target.exists() else None
    )
    return finished.returncode, finished.stdout + finished.stderr, found


@pytest.mark.parametrize(
    ("shape", "row", "expected"),
    [
        (
            "pairs",
            CHAT,
            {
                "messages": CHAT["messages"][:2],
                "chosen": CHAT["messages"][2],
                "rejected": {"role": "assistant", "content": "5"},
            },
        ),
        ("prompts", CHAT, {"messages": CHAT["messages"][:2], "reference": "4"}),
        ("texts", TEXT, {"text": "Once upon a time."}),
        ("texts", CHAT, {"text": "Be brief.\n\n2 + 2?\n\n4"}),
        ("spoken", TEXT, TEXT),
    ],
)
def test_rows_take_the_shape_that_an_engine_reads(
    tmp_path: Path, shape: str, row: Any, expected: Any
) -> None:
    code, output, found = shaped(tmp_path, shape, row)
    assert code == 0, output
    assert found == [expected]


@pytest.mark.parametrize(
    ("shape", "row", "message"),
    [
        ("pairs", TEXT, "train.jsonl, row 2: has no rejected answer"),
        ("prompts", TEXT, "train.jsonl, row 2: has no prompt"),
        ("texts", {"text": "x"}, "train.jsonl, row 2: 'messages'"),
    ],
)
def test_a_row_that_cannot_take_the_shape_is_named_and_nothing_is_left(
    tmp_path: Path, shape: str, row: Any, message: str
) -> None:
    code, output, found = shaped(tmp_path, shape, CHAT, row)
    assert code == 1
    assert message in output
    assert found is None
    assert list((tmp_path / "rows").iterdir()) == []
