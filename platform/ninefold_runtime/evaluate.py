"""Evaluation: what a model answers to held-out prompts, compared with what it should answer.

Two files come out: ``report.json`` with the metrics and the counts behind them, and
``predictions.jsonl`` with every answer beside its reference, in the order of the dataset.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from ninefold_runtime import devices, measuring, models
from ninefold_runtime.inputs import Folders
from ninefold_runtime.report import Reporter
from ninefold_runtime.specs import EvaluateSpec


def evaluate(*, spec: EvaluateSpec, folders: Folders, reporter: Reporter) -> None:
    """Answer, compare and hand over the report.

    :raises BadInput: if the model, the dataset or the spec cannot be used.
    """
    source = folders.model()
    rows = folders.rows(spec.split, limit=spec.limit)
    devices.seed_everything(spec.seed)
    tokenizer = models.load_tokenizer(source)
    model = models.load_model(source, precision="auto").eval()
    context = models.context_length(source)
    reporter.message(
        f"{model.config.architectures[0]} on {devices.device()}: "
        f"{len(rows):,} rows of {spec.split}, {', '.join(spec.metrics)}"
    )
    measured = measuring.measure(
        model,
        tokenizer,
        rows,
        wanted=spec,
        context=context,
        steps=measuring.Steps(done=0, total=len(rows)),
        reporter=reporter,
    )
    report = {
        "metrics": measured.metrics,
        "split": spec.split,
        "rows": len(rows),
        **measured.details,
    }
    folder = folders.work / "result"
    _write(folder, report=report, predictions=measured.predictions)
    reporter.deliver(folder, kind="report", metrics=measured.metrics)


def _write(folder: Path, *, report: dict[str, Any], predictions: list[dict[str, Any]]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text = json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False)
    (folder / "report.json").write_text(text + "\n", encoding="utf-8")
    with (folder / "predictions.jsonl").open("w", encoding="utf-8") as lines:
        for prediction in predictions:
            lines.write(json.dumps(prediction, ensure_ascii=False) + "\n")
