"""Evaluation: what a model answers to held-out prompts, compared with what it should answer.

Two files come out: ``report.json`` with the metrics and the counts behind them, and
``predictions.jsonl`` with every answer beside its reference, in the order of the dataset.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from ninefold_runtime import conversations, devices, generation, models
from ninefold_runtime.exits import BadInput
from ninefold_runtime.inputs import Folders, Message
from ninefold_runtime.report import Reporter
from ninefold_runtime.scoring import Score
from ninefold_runtime.specs import EvaluateSpec

T = TypeVar("T")

_BY_ANSWER = frozenset({"exact_match", "label_accuracy"})


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
    outcome: dict[str, Any] = {}
    predictions: list[dict[str, Any]] = []
    if not _BY_ANSWER.isdisjoint(spec.metrics):
        prompts = _prompts(tokenizer, rows, spec=spec, context=context)
        score, predictions = _answered(model, tokenizer, rows, prompts, spec, reporter)
        outcome = _figures(score, wanted=spec.metrics)
    if "perplexity" in spec.metrics:
        outcome["perplexity"] = _perplexity(model, tokenizer, rows, spec, context)
        reporter.message(f"perplexity {outcome['perplexity']:.4g}")
    metrics = {name: outcome[name] for name in spec.metrics if outcome.get(name) is not None}
    report = {
        "metrics": metrics,
        "split": spec.split,
        "rows": len(rows),
        **{name: value for name, value in outcome.items() if name not in spec.metrics},
    }
    folder = folders.work / "result"
    _write(folder, report=report, predictions=predictions)
    reporter.deliver(folder, kind="report", metrics=metrics)


def _prompts(
    tokenizer: Any, rows: Sequence[Sequence[Message]], *, spec: EvaluateSpec, context: int
) -> list[list[int]]:
    prompts = [conversations.prompt_ids(tokenizer, messages[:-1]) for messages in rows]
    for number, prompt in enumerate(prompts, start=1):
        if len(prompt) >= context:
            raise BadInput(
                f"row {number} of {spec.split} has {len(prompt)} prompt tokens; "
                f"the model supports {context} positions with the answer"
            )
    return prompts


def _answered(
    model: Any,
    tokenizer: Any,
    rows: Sequence[Sequence[Message]],
    prompts: Sequence[Sequence[int]],
    spec: EvaluateSpec,
    reporter: Reporter,
) -> tuple[Score, list[dict[str, Any]]]:
    context = models.context_length(Path(model.config.name_or_path))
    score, predictions = Score(), {}
    began_at, done = time.monotonic(), 0
    # Prompts of like length together: less padding, the same answers.
    order = sorted(range(len(rows)), key=lambda index: len(prompts[index]))
    for batch in _batches(order, spec.batch_size):
        room = context - max(len(prompts[index]) for index in batch)
        texts = generation.answers(
            model,
            tokenizer,
            [prompts[index] for index in batch],
            max_new_tokens=min(spec.max_new_tokens, room),
        )
        for index, text in zip(batch, texts, strict=True):
            reference = rows[index][-1]["content"]
            exact = score.add(answer=text, reference=reference)
            predictions[index] = {
                "row": index + 1,
                "prompt": rows[index][-2]["content"] if len(rows[index]) > 1 else "",
                "reference": reference,
                "prediction": text,
                "exact_match": exact,
            }
        done += len(batch)
        elapsed = time.monotonic() - began_at
        reporter.progress(
            step=done,
            total_steps=len(rows),
            exact_match=round(score.exact_match(), 4),
            eta_seconds=round(elapsed / done * (len(rows) - done), 1),
        )
    return score, [predictions[index] for index in sorted(predictions)]


def _figures(score: Score, *, wanted: Sequence[str]) -> dict[str, Any]:
    figures: dict[str, Any] = {
        "exact_match": score.exact_match(),
        "exact_matches": score.exact,
        "label_accuracy": score.label_accuracy(),
        "labels": score.per_label(),
    }
    if "label_accuracy" in wanted and figures["label_accuracy"] is None:
        raise BadInput(
            "label_accuracy needs references of the form value_LABEL,value_LABEL; none has any label"
        )
    return figures


def _perplexity(
    model: Any,
    tokenizer: Any,
    rows: Sequence[list[Message]],
    spec: EvaluateSpec,
    context: int,
) -> float:
    """Exponential of the mean loss over the answers' tokens; conversations are cut at the context."""
    total, count = 0.0, 0
    rendered = [conversations.answered_ids(tokenizer, messages) for messages in rows]
    rendered = sorted(
        ((ids[:context], begin) for ids, begin in rendered), key=lambda each: len(each[0])
    )
    for batch in _batches(rendered, spec.batch_size):
        loss, tokens = generation.answer_losses(model, batch, padding=tokenizer.pad_token_id)
        total, count = total + loss, count + tokens
    if count == 0:
        raise BadInput(f"no answer lies within the model's {context} positions")
    return math.exp(min(total / count, 700.0))


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _write(folder: Path, *, report: dict[str, Any], predictions: list[dict[str, Any]]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text = json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False)
    (folder / "report.json").write_text(text + "\n", encoding="utf-8")
    with (folder / "predictions.jsonl").open("w", encoding="utf-8") as lines:
        for prediction in predictions:
            lines.write(json.dumps(prediction, ensure_ascii=False) + "\n")
