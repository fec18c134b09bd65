"""Measuring a model on rows: what it answers beside what it should, and how surprised the right answers leave it.

An evaluation measures one model, a quantization the same rows twice, before and after.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from ninefold_runtime import conversations, generation
from ninefold_runtime.exits import BadInput
from ninefold_runtime.inputs import Message
from ninefold_runtime.report import Reporter
from ninefold_runtime.scoring import Score

T = TypeVar("T")

_BY_ANSWER = frozenset({"exact_match", "label_accuracy"})


class Wanted(Protocol):
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
class Steps:
    """Which part of a task's progress a measurement is."""

    #: Rows that were answered before it.
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    #: The metrics that were wanted and can be told, by name.
    metrics: dict[str, float]
    #: The counts behind them.
    details: dict[str, Any]
    #: Every answer beside its reference, in the order of the rows; empty where no metric needs answers.
    predictions: list[dict[str, Any]]
    #: What answering took; None where nothing was answered.
    answer_seconds: float | None


def measure(
    model: Any,
    tokenizer: Any,
    rows: Sequence[list[Message]],
    *,
    wanted: Wanted,
    context: int,
    steps: Steps,
    reporter: Reporter,
) -> Measured:
    """:raises BadInput: if a prompt does not fit into the context, or a metric cannot be told of these rows."""
    outcome: dict[str, Any] = {}
    predictions: list[dict[str, Any]] = []
    seconds = None
    if not _BY_ANSWER.isdisjoint(wanted.metrics):
        prompts = _prompts(tokenizer, rows, split=wanted.split, context=context)
        began_at = time.monotonic()
        batches = _Answers(model, tokenizer, wanted=wanted, context=context)
        score, predictions = batches.over(rows, prompts, steps=steps, reporter=reporter)
        seconds = time.monotonic() - began_at
        outcome = _figures(score, wanted=wanted.metrics)
    if "perplexity" in wanted.metrics:
        outcome["perplexity"] = _perplexity(
            model, tokenizer, rows, batch_size=wanted.batch_size, context=context
        )
        reporter.message(f"perplexity {outcome['perplexity']:.4g}")
    metrics = {name: outcome[name] for name in wanted.metrics if outcome.get(name) is not None}
    details = {name: value for name, value in outcome.items() if name not in wanted.metrics}
    return Measured(
        metrics=metrics, details=details, predictions=predictions, answer_seconds=seconds
    )


def _prompts(
    tokenizer: Any, rows: Sequence[Sequence[Message]], *, split: str, context: int
) -> list[list[int]]:
    prompts = [conversations.prompt_ids(tokenizer, messages[:-1]) for messages in rows]
    for number, prompt in enumerate(prompts, start=1):
        if len(prompt) >= context:
            raise BadInput(
                f"row {number} of {split} has {len(prompt)} prompt tokens; "
                f"the model supports {context} positions with the answer"
            )
    return prompts


class _Answers:
    """Greedy answers, batch by batch."""

    def __init__(self, model: Any, tokenizer: Any, *, wanted: Wanted, context: int) -> None:
        self._model = model
        self._tokenizer = tokenizer
        self._wanted = wanted
        self._context = context

    def over(
        self,
        rows: Sequence[Sequence[Message]],
        prompts: Sequence[Sequence[int]],
        *,
        steps: Steps,
        reporter: Reporter,
    ) -> tuple[Score, list[dict[str, Any]]]:
        score, predictions = Score(), {}
        began_at, done = time.monotonic(), 0
        # Prompts of like length together: less padding, the same answers.
        order = sorted(range(len(rows)), key=lambda index: len(prompts[index]))
        for batch in _batches(order, self._wanted.batch_size):
            texts = self._texts([prompts[index] for index in batch])
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
                step=steps.done + done,
                total_steps=steps.total,
                exact_match=round(score.exact_match(), 4),
                eta_seconds=round(elapsed / done * (steps.total - steps.done - done), 1),
            )
        return score, [predictions[index] for index in sorted(predictions)]

    def _texts(self, prompts: Sequence[Sequence[int]]) -> list[str]:
        room = self._context - max(len(prompt) for prompt in prompts)
        return generation.answers(
            self._model,
            self._tokenizer,
            prompts,
            max_new_tokens=min(self._wanted.max_new_tokens, room),
        )


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
    *,
    batch_size: int,
    context: int,
) -> float:
    """Exponential of the mean loss over the answers' tokens; conversations are cut at the context."""
    total, count = 0.0, 0
    rendered = [conversations.answered_ids(tokenizer, messages) for messages in rows]
    rendered = sorted(
        ((ids[:context], begin) for ids, begin in rendered), key=lambda each: len(each[0])
    )
    for batch in _batches(rendered, batch_size):
        loss, tokens = generation.answer_losses(model, batch, padding=tokenizer.pad_token_id)
        total, count = total + loss, count + tokens
    if count == 0:
        raise BadInput(f"no answer lies within the model's {context} positions")
    return math.exp(min(total / count, 700.0))


def _batches(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
