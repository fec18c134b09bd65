"""Objectives beside answers, by the real engine: texts, preferences and rewards."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from controlplane.ports.engines import EngineTask
from ninefold_runtime.exit_codes import ExitCode
from tests.engine.conftest import SMALL, Run, Start, complete_spec

_COLOURS = ("red", "green", "blue", "yellow")


def _spec(**changes: Any) -> dict[str, Any]:
    return complete_spec(EngineTask.FINETUNE, **(dict(SMALL) | changes))


def _write(inputs: Path, rows: Iterator[dict[str, Any]], split: str = "train") -> None:
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (inputs / "dataset" / f"{split}.jsonl").write_text(text, encoding="utf-8")


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _preferences(count: int) -> Iterator[dict[str, Any]]:
    """Upper case is liked, lower case is not."""
    for number in range(count):
        colour = _COLOURS[number % len(_COLOURS)]
        yield {
            "messages": [
                _turn("user", f"number {number}: say {colour}"),
                _turn("assistant", colour.upper()),
            ],
            "rejected": colour,
        }


def _values(run: Run, name: str) -> list[float]:
    """What was printed under that name at each step."""
    return [
        float(found[1])
        for line in run.lines
        if (found := re.search(rf" · {name} (-?[\d.e-]+)", line))
    ]


@pytest.mark.parametrize("method", ["full", "lora"])
def test_preferences_are_learnt(start: Start, inputs: Path, method: str) -> None:
    _write(inputs, _preferences(64))
    _write(inputs, _preferences(8), split="validation")
    spec = _spec(
        objective="dpo",
        method=method,
        max_steps=30,
        learning_rate=1e-3 if method == "full" else 5e-3,
        validation_split="validation",
    )
    run = start(EngineTask.FINETUNE, spec, inputs=inputs)
    assert run.finish() == ExitCode.FINISHED, run.text()
    losses = run.losses()
    # A model that cannot tell the two apart has a loss of ln 2.
    assert losses[0] == pytest.approx(0.69, abs=0.15)
    assert losses[-1] < 0.5 * losses[0]
    assert _values(run, "preference accuracy")[-1] > 0.9
    assert "eval loss" in run.text()
    assert (run.work / "result" / "model.safetensors").is_file()


def test_rows_without_a_rejected_answer_are_no_preferences(start: Start, inputs: Path) -> None:
    run = start(EngineTask.FINETUNE, _spec(objective="dpo"), inputs=inputs)
    assert run.finish() == ExitCode.BAD_INPUT
    assert run.lines[-1] == (
        "finetune: train.jsonl, row 1 has no rejected answer; dpo learns from rows with prompt, "
        "chosen and rejected"
    )


@pytest.mark.parametrize("method", ["full", "lora"])
def test_texts_are_learnt_and_long_ones_are_not_cut_off(
    start: Start, inputs: Path, method: str
) -> None:
    text = "The quick brown fox jumps over the lazy dog. " * 40
    _write(inputs, ({"messages": [_turn("assistant", text)]} for _ in range(32)))
    spec = _spec(
        objective="pretrain", method=method, max_steps=30, max_length=64, learning_rate=5e-3
    )
    run = start(EngineTask.FINETUNE, spec, inputs=inputs)
    assert run.finish() == ExitCode.FINISHED, run.text()
    losses = run.losses()
    assert losses[-1] < (0.5 if method == "full" else 0.85) * losses[0]
    assert "32 rows to train on" in run.text()
    # Of 32 rows cut at 64 tokens there would be four batches an epoch.
    assert "epoch 3" not in run.text()


@pytest.mark.parametrize("method", ["full", "lora"])
def test_rewards_rise(start: Start, inputs: Path, method: str) -> None:
    """A model that was taught two answers equally often comes to give the one that is rewarded."""
    taught = [("which?", "A_1"), ("which?", "B_1")] * 32
    _write(inputs, ({"messages": [_turn("user", q), _turn("assistant", a)]} for q, a in taught))
    before = start(
        EngineTask.FINETUNE, _spec(max_steps=60), inputs=inputs, work=inputs.parent / "taught"
    )
    assert before.finish() == ExitCode.FINISHED, before.text()
    (inputs / "model").unlink()
    (inputs / "model").symlink_to(before.work / "result")
    rewarded = {"messages": [_turn("user", "which?"), _turn("assistant", "A_1")]}
    _write(inputs, (rewarded for _ in range(64)))
    spec = _spec(
        objective="grpo",
        method=method,
        max_steps=24,
        log_every_steps=2,
        learning_rate=5e-4 if method == "full" else 5e-3,
        grpo={"generations": 8, "max_new_tokens": 8, "reward": "label_accuracy"},
    )
    run = start(EngineTask.FINETUNE, spec, inputs=inputs)
    assert run.finish() == ExitCode.FINISHED, run.text()
    rewards = _values(run, "reward")
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.2, rewards
    assert (run.work / "result" / "model.safetensors").is_file()


def test_batches_that_hold_no_whole_group_are_refused(start: Start, inputs: Path) -> None:
    spec = _spec(objective="grpo", batch_size=4, grpo={"generations": 8})
    run = start(EngineTask.FINETUNE, spec, inputs=inputs)
    assert run.finish() == ExitCode.BAD_INPUT
    assert run.lines[-1] == (
        "finetune: batch_size × gradient_accumulation is 4, which is no multiple of the 8 answers a prompt"
    )


def test_a_killed_run_of_preferences_goes_on_from_its_checkpoint(
    start: Start, inputs: Path
) -> None:
    _write(inputs, _preferences(64))
    spec = _spec(objective="dpo", max_steps=40, learning_rate=1e-3)
    killed = start(EngineTask.FINETUNE, spec, inputs=inputs)
    killed.wait_for("checkpoint saved at step 10")
    killed.process.kill()
    killed.finish()
    resumed = start(EngineTask.FINETUNE, spec | {"max_steps": 30}, inputs=inputs)
    assert resumed.finish() == ExitCode.FINISHED, resumed.text()
    assert "going on from the checkpoint at step " in resumed.text()
    assert _values(resumed, "preference accuracy")[-1] > 0.9
