"""Fine-tuning by the real engine: what it learns, what it leaves behind, how it ends."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.domain.jobs.retries import smaller_batch_fields
from controlplane.ports.engines import EngineTask
from ninefold_runtime import checkpoints
from ninefold_runtime.exit_codes import ExitCode
from tests.engine.conftest import SMALL, Start, complete_spec


def _spec(**changes: Any) -> dict[str, Any]:
    return complete_spec(EngineTask.FINETUNE, **(dict(SMALL) | changes))


def test_the_loss_falls_and_a_whole_model_comes_out(start: Start, inputs: Path) -> None:
    run = start(
        EngineTask.FINETUNE, _spec(max_steps=40, validation_split="validation"), inputs=inputs
    )
    assert run.finish() == ExitCode.FINISHED, run.text()
    losses = run.losses()
    assert losses[-1] < 0.7 * losses[0]
    assert "eval loss" in run.text()
    assert "tokens/s" in run.text()
    result = run.work / "result"
    assert {"config.json", "model.safetensors", "tokenizer.json"} <= {
        path.name for path in result.iterdir()
    }
    config = json.loads((result / "config.json").read_text(encoding="utf-8"))
    assert config["architectures"] == ["Qwen2ForCausalLM"]


def test_lora_leaves_the_merged_model_and_the_adapter_beside_it(start: Start, inputs: Path) -> None:
    run = start(
        EngineTask.FINETUNE,
        _spec(method="lora", max_steps=20, learning_rate=0.01, lora={"rank": 4}),
        inputs=inputs,
    )
    assert run.finish() == ExitCode.FINISHED, run.text()
    losses = run.losses()
    assert losses[-1] < losses[0]
    result = run.work / "result"
    assert (result / "adapter" / "adapter_model.safetensors").is_file()
    merged = (result / "model.safetensors").stat().st_size
    original = (inputs / "model" / "model.safetensors").stat().st_size
    assert merged == pytest.approx(original, rel=0.02)
    assert (result / "model.safetensors").read_bytes() != (
        inputs / "model" / "model.safetensors"
    ).read_bytes()


def test_a_killed_run_goes_on_from_its_newest_complete_checkpoint(
    start: Start, inputs: Path
) -> None:
    spec = _spec(max_steps=120)
    killed = start(EngineTask.FINETUNE, spec, inputs=inputs)
    killed.wait_for("checkpoint saved at step 20")
    killed.process.kill()
    killed.finish()
    newest = checkpoints.newest_checkpoint(killed.work / "checkpoints")
    assert newest is not None
    assert 20 <= newest.step < 120
    half_written = killed.work / "checkpoints" / "checkpoint-999"
    half_written.mkdir()
    (half_written / "model.safetensors").write_bytes(b"cut")

    resumed = start(EngineTask.FINETUNE, spec | {"max_steps": newest.step + 20}, inputs=inputs)
    assert resumed.finish() == ExitCode.FINISHED, resumed.text()
    assert f"going on from the checkpoint at step {newest.step}" in resumed.text()
    assert "ignored incomplete checkpoints:" in resumed.text()
    assert not half_written.exists()
    steps = [line for line in resumed.lines if line.startswith("step ")]
    assert int(steps[0].split("/")[0].removeprefix("step ")) > newest.step
    assert resumed.losses()[-1] < killed.losses()[0]


def test_after_a_lack_of_memory_a_run_goes_on_with_smaller_batches(
    start: Start, inputs: Path
) -> None:
    """As the control plane tries it again: half the batch, twice the accumulation, the same steps."""
    spec = _spec(max_steps=60)
    killed = start(EngineTask.FINETUNE, spec, inputs=inputs)
    killed.wait_for("checkpoint saved at step 20")
    killed.process.kill()
    killed.finish()
    newest = checkpoints.newest_checkpoint(killed.work / "checkpoints")
    assert newest is not None

    smaller = smaller_batch_fields(spec)
    assert smaller == {"batch_size": 4, "gradient_accumulation": 2}
    resumed = start(EngineTask.FINETUNE, spec | smaller, inputs=inputs)
    assert resumed.finish() == ExitCode.FINISHED, resumed.text()
    assert f"going on from the checkpoint at step {newest.step}" in resumed.text()
    assert "step 60/60" in resumed.text()
    assert resumed.losses()[-1] < killed.losses()[0]


def test_sigterm_saves_a_checkpoint_of_the_last_step(start: Start, inputs: Path) -> None:
    run = start(
        EngineTask.FINETUNE, _spec(max_steps=5000, checkpoint_every_steps=5000), inputs=inputs
    )
    run.wait_for("step 5/")
    run.process.send_signal(signal.SIGTERM)
    assert run.finish() == ExitCode.STOPPED, run.text()
    newest = checkpoints.newest_checkpoint(run.work / "checkpoints")
    assert newest is not None
    assert run.lines[-1] == f"finetune: stopped at step {newest.step}; its checkpoint is saved"


def test_a_loss_that_is_no_number_ends_the_run_with_the_reason(
    start: Start, inputs: Path, tmp_path: Path
) -> None:
    model = tmp_path / "broken"
    shutil.copytree(inputs / "model", model)
    weights = model / "model.safetensors"
    content = weights.read_bytes()
    # The values lie at the end of the file: a quiet NaN in float32 is 0x7fc00000.
    weights.write_bytes(content[:-4000] + b"\x00\x00\xc0\x7f" * 1000)
    (inputs / "model").unlink()
    (inputs / "model").symlink_to(model)
    run = start(EngineTask.FINETUNE, _spec(max_steps=20), inputs=inputs)
    assert run.finish() == ExitCode.DIVERGED, run.text()
    assert "the loss became nan at step 1" in run.lines[-1]
    assert not (run.work / "result").exists()


def test_a_broken_row_ends_the_run_with_one_line(start: Start, inputs: Path) -> None:
    with (inputs / "dataset" / "train.jsonl").open("a", encoding="utf-8") as lines:
        lines.write('{"messages": []}\n')
    run = start(EngineTask.FINETUNE, _spec(), inputs=inputs)
    assert run.finish() == ExitCode.BAD_INPUT
    assert run.lines[-1].startswith("finetune: train.jsonl, row ")
    assert "Traceback" not in run.text()


def test_examples_longer_than_the_models_context_are_refused(start: Start, inputs: Path) -> None:
    run = start(EngineTask.FINETUNE, _spec(max_length=4096), inputs=inputs)
    assert run.finish() == ExitCode.BAD_INPUT
    assert run.lines[-1] == "finetune: max_length is 4096; the model supports 512 positions"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 6 MiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a small file system needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"cannot mount here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_ends_the_run_with_its_own_code_and_line(
    start: Start, inputs: Path, small_disk: Path
) -> None:
    run = start(
        EngineTask.FINETUNE,
        _spec(max_steps=40),
        inputs=inputs,
        work=small_disk,
    )
    assert run.finish() == ExitCode.DISK_FULL, run.text()
    assert run.lines[-1].startswith("finetune: the disk is full: ")
    assert checkpoints.newest_checkpoint(small_disk / "checkpoints") is None
