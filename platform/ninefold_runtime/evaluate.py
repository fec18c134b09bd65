"""Evaluation: answers to held-out prompts compared with their references, and perplexity.

Two files are written: ``report.json`` with the metrics and the counts behind them, and ``predictions.jsonl``
with every answer beside its reference, in the order of the dataset. An evaluation measures one model; a
quantization measures the same rows twice, before and after.
"""

from __future__ import annotations

import json
import math
import shutil
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, TypeVar

import torch

from ninefold_runtime import model_loading
from ninefold_runtime.answer_scoring import AnswerScore
from ninefold_runtime.exit_codes import InvalidTaskInput
from ninefold_runtime.report import Reporter
from ninefold_runtime.specs import EvaluateSpec
from ninefold_runtime.task_folders import Message, TaskFolders


def evaluate(*, spec: EvaluateSpec, folders: TaskFolders, reporter: Reporter) -> None:
    """Answer, compare and hand over the report.

    :raises InvalidTaskInput: if the model, the dataset or the spec cannot be used.
    """
    source = folders.model()
    rows = folders.rows(spec.split, limit=spec.limit)
    model_loading.seed_everything(spec.seed)
    tokenizer = model_loading.load_tokenizer(source)
    model = model_loading.load_model(source, precision="auto").eval()
    context = model_loading.context_length(source)
    reporter.message(
        f"{model.config.architectures[0]} on {model_loading.current_device()}: "
        f"{len(rows):,} rows of {spec.split}, {', '.join(spec.metrics)}"
    )
    measured = measure_model(
        model,
        tokenizer,
        rows,
        spec=spec,
        context=context,
        progress_range=ProgressRange(done=0, total=len(rows)),
        reporter=reporter,
    )
    report = {
        "metrics": measured.metrics,
        "split": spec.split,
        "rows": len(rows),
        **measured.details,
    }
    folder = folders.work / "result"
    _write_report(folder, report=report, predictions=measured.predictions)
    reporter.deliver(folder, kind="report", metrics=measured.metrics)


def _write_report(
    folder: Path, *, report: dict[str, Any], predictions: list[dict[str, Any]]
) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    text = json.dumps(report, ensure_ascii=False, indent=2, allow_nan=False)
    (folder / "report.json").write_text(text + "\n", encoding="utf-8")
    with (folder / "predictions.jsonl").open("w", encoding="utf-8") as lines:
        for prediction in predictions:
            lines.write(json.dumps(prediction, ensure_ascii=False) + "\n")


T = TypeVar("T")

_BY_ANSWER = frozenset({"exact_match", "label_accuracy"})


class MeasurementSpec(Protocol):
    """What specs that measure have in common."""

    @property
    def metrics(self) -> list[str]: ...

    @property
    def split(self) -> str: ...

    @property
    def max_new_tokens(self) -> int: ...

    @property
    def batch_size(self) -> int: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressRange:
    """Which part of a task's progress a measurement is."""

    #: Rows that were answered before it.
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    #: The requested metrics that could be computed, by name.
    metrics: dict[str, float]
    #: The counts behind them.
    details: dict[str, Any]
    #: Every answer beside its reference, in the order of the rows; empty where no metric needs answers.
    predictions: list[dict[str, Any]]
    #: The cost of generation; None where nothing was generated.
    answer_seconds: float | None


def measure_model(
    model: Any,
    tokenizer: Any,
    rows: Sequence[list[Message]],
    *,
    spec: MeasurementSpec,
    context: int,
    progress_range: ProgressRange,
    reporter: Reporter,
) -> EvaluationResult:
    """:raises InvalidTaskInput: if a prompt exceeds the context, or a metric does not apply to the rows."""
    outcome: dict[str, Any] = {}
    predictions: list[dict[str, Any]] = []
    seconds = None
    if not _BY_ANSWER.isdisjoint(spec.metrics):
        prompts = _encode_prompts(tokenizer, rows, split=spec.split, context=context)
        began_at = time.monotonic()
        batches = _GreedyAnswerGenerator(model, tokenizer, spec=spec, context=context)
        score, predictions = batches.over(
            rows, prompts, progress_range=progress_range, reporter=reporter
        )
        seconds = time.monotonic() - began_at
        outcome = _selected_metrics(score, spec=spec.metrics)
    if "perplexity" in spec.metrics:
        outcome["perplexity"] = _measure_perplexity(
            model, tokenizer, rows, batch_size=spec.batch_size, context=context
        )
        reporter.message(f"perplexity {outcome['perplexity']:.4g}")
    metrics = {name: outcome[name] for name in spec.metrics if outcome.get(name) is not None}
    details = {name: value for name, value in outcome.items() if name not in spec.metrics}
    return EvaluationResult(
        metrics=metrics, details=details, predictions=predictions, answer_seconds=seconds
    )


def _encode_prompts(
    tokenizer: Any, rows: Sequence[Sequence[Message]], *, split: str, context: int
) -> list[list[int]]:
    prompts = [model_loading.prompt_ids(tokenizer, messages[:-1]) for messages in rows]
    for number, prompt in enumerate(prompts, start=1):
        if len(prompt) >= context:
            raise InvalidTaskInput(
                f"row {number} of {split} has {len(prompt)} prompt tokens; "
                f"the model supports {context} positions with the answer"
            )
    return prompts


class _GreedyAnswerGenerator:
    """Greedy answers, batch by batch."""

    def __init__(self, model: Any, tokenizer: Any, *, spec: MeasurementSpec, context: int) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._spec = spec
        self._context = context

    def over(
        self,
        rows: Sequence[Sequence[Message]],
        prompts: Sequence[Sequence[int]],
        *,
        progress_range: ProgressRange,
        reporter: Reporter,
    ) -> tuple[AnswerScore, list[dict[str, Any]]]:
        score, predictions = AnswerScore(), {}
        began_at, done = time.monotonic(), 0
        # Prompts of like length together: less padding, the same answers.
        order = sorted(range(len(rows)), key=lambda index: len(prompts[index]))
        for batch in _split_batches(order, self._spec.batch_size):
            texts = self._generate_texts([prompts[index] for index in batch])
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
                step=progress_range.done + done,
                total_steps=progress_range.total,
                exact_match=round(score.exact_match(), 4),
                eta_seconds=round(
                    elapsed / done * (progress_range.total - progress_range.done - done), 1
                ),
            )
        return score, [predictions[index] for index in sorted(predictions)]

    def _generate_texts(self, prompts: Sequence[Sequence[int]]) -> list[str]:
        remaining = self._context - max(len(prompt) for prompt in prompts)
        return greedy_answers(
            self._model,
            self._tokenizer,
            prompts,
            max_new_tokens=min(self._spec.max_new_tokens, remaining),
        )


def _selected_metrics(score: AnswerScore, *, spec: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {
        "exact_match": score.exact_match(),
        "exact_matches": score.exact,
        "label_accuracy": score.label_accuracy(),
        "labels": score.per_label(),
    }
    if "label_accuracy" in spec and values["label_accuracy"] is None:
        raise InvalidTaskInput(
            "label_accuracy needs references of the form value_LABEL,value_LABEL; none has any label"
        )
    return values


def _measure_perplexity(
    model: Any,
    tokenizer: Any,
    rows: Sequence[list[Message]],
    *,
    batch_size: int,
    context: int,
) -> float:
    """Exponential of the mean loss over the answers' tokens; conversations are cut at the context."""
    total, count = 0.0, 0
    rendered = [model_loading.conversation_ids(tokenizer, messages) for messages in rows]
    rendered = sorted(
        ((ids[:context], begin) for ids, begin in rendered), key=lambda each: len(each[0])
    )
    for batch in _split_batches(rendered, batch_size):
        loss, tokens = summed_answer_loss(model, batch, padding=tokenizer.pad_token_id)
        total, count = total + loss, count + tokens
    if count == 0:
        raise InvalidTaskInput(f"no answer lies within the model's {context} positions")
    return math.exp(min(total / count, 700.0))


def _split_batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]


def greedy_answers(
    model: Any, tokenizer: Any, prompts: Sequence[Sequence[int]], *, max_new_tokens: int
) -> list[str]:
    """The most likely continuation of each prompt, up to its end token, without special tokens.

    Prompts are padded on the left, so that every answer begins at the same position.
    """
    width = max(len(prompt) for prompt in prompts)
    padding = tokenizer.pad_token_id
    ids = [[padding] * (width - len(prompt)) + list(prompt) for prompt in prompts]
    mask = [[0] * (width - len(prompt)) + [1] * len(prompt) for prompt in prompts]
    with torch.inference_mode():
        output = model.generate(
            input_ids=torch.tensor(ids, device=model.device),
            attention_mask=torch.tensor(mask, device=model.device),
            max_new_tokens=max_new_tokens,
            do_sample=False,
            temperature=None,
            top_p=None,
            top_k=None,
            pad_token_id=padding,
        )
    return [
        str(tokenizer.decode(row, skip_special_tokens=True)) for row in output[:, width:].tolist()
    ]


def summed_answer_loss(
    model: Any, conversations: Sequence[tuple[Sequence[int], int]], *, padding: int
) -> tuple[float, int]:
    """Summed negative log likelihood (nats) of the answers' tokens, and how many those are.

    Each conversation is its token ids and the index at which the answer begins.
    """
    width = max(len(ids) for ids, _ in conversations)
    ids = [list(each) + [padding] * (width - len(each)) for each, _ in conversations]
    mask = [[1] * len(each) + [0] * (width - len(each)) for each, _ in conversations]
    answered = [
        [begin <= index < len(each) for index in range(1, width)] for each, begin in conversations
    ]
    inputs = torch.tensor(ids, device=model.device)
    with torch.inference_mode():
        logits = model(
            input_ids=inputs, attention_mask=torch.tensor(mask, device=model.device)
        ).logits[:, :-1]
    losses = torch.nn.functional.cross_entropy(
        logits.float().flatten(0, 1), inputs[:, 1:].flatten(), reduction="none"
    )
    chosen = losses[torch.tensor(answered, device=model.device).flatten()]
    return float(chosen.sum()), int(chosen.numel())
