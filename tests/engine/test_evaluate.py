"""Evaluation by the real engine."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from controlplane.ports.engines import EngineTask
from ninefold_runtime.answer_scoring import AnswerScore
from ninefold_runtime.exit_codes import ExitCode
from tests.engine.conftest import SMALL, Start, complete_spec

METRICS = ["exact_match", "label_accuracy", "perplexity"]


def test_the_report_agrees_with_the_predictions_beside_it(start: Start, inputs: Path) -> None:
    spec = complete_spec(
        EngineTask.EVALUATE, metrics=METRICS, limit=7, max_new_tokens=40, batch_size=3
    )
    run = start(EngineTask.EVALUATE, spec, inputs=inputs)
    assert run.finish() == ExitCode.FINISHED, run.text()
    report = json.loads((run.work / "result" / "report.json").read_text(encoding="utf-8"))
    lines = (run.work / "result" / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["row"] for row in rows] == list(range(1, 8))
    score = AnswerScore()
    for row in rows:
        score.add(answer=row["prediction"], reference=row["reference"])
    assert report["rows"] == 7
    assert report["metrics"]["exact_match"] == score.exact_match()
    assert report["metrics"]["label_accuracy"] == score.label_accuracy()
    # An untrained model finds every one of its 1,616 tokens about equally likely.
    assert report["metrics"]["perplexity"] == pytest.approx(1616, rel=0.15)


def test_a_model_that_learnt_a_few_rows_by_heart_answers_them(
    start: Start, inputs: Path, tmp_path: Path
) -> None:
    train = inputs / "dataset" / "train.jsonl"
    rows = train.read_text(encoding="utf-8").splitlines()[:4]
    train.write_text("\n".join(rows) + "\n", encoding="utf-8")
    spec = complete_spec(EngineTask.FINETUNE, **(dict(SMALL) | {"max_steps": 80, "batch_size": 4}))
    tuned = start(EngineTask.FINETUNE, spec, inputs=inputs)
    assert tuned.finish() == ExitCode.FINISHED, tuned.text()
    (inputs / "model").unlink()
    (inputs / "model").symlink_to(tuned.work / "result")
    run = start(
        EngineTask.EVALUATE,
        complete_spec(EngineTask.EVALUATE, metrics=METRICS, split="train"),
        inputs=inputs,
        work=tmp_path / "evaluation",
    )
    assert run.finish() == ExitCode.FINISHED, run.text()
    report = json.loads((run.work / "result" / "report.json").read_text(encoding="utf-8"))
    assert report["metrics"]["exact_match"] == 1.0
    assert report["metrics"]["perplexity"] < 1.5
    assert report["labels"]["_3A"]["total"] >= 4


def test_a_split_that_is_not_there_is_named(start: Start, inputs: Path) -> None:
    run = start(
        EngineTask.EVALUATE, complete_spec(EngineTask.EVALUATE, split="exam"), inputs=inputs
    )
    assert run.finish() == ExitCode.BAD_INPUT
    assert "no split 'exam'; its splits: test, train, validation" in run.lines[-1]
