"""Rows that show a quantizer what activations look like, and running it over them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeVar

import torch
from llmcompressor import oneshot
from llmcompressor.pipelines.cache import IntermediatesCache

from ninefold_runtime import conversations, devices
from ninefold_runtime.inputs import Message

T = TypeVar("T")

_ROWS_A_BATCH = 16
#: A row may be so much longer than the shortest of its batch, to whose length all are cut.
_SLACK = 1.125


def chosen(rows: Sequence[T], *, count: int, seed: int) -> list[T]:
    """That many of the rows, in their order, or all where there are fewer; the same for the same seed."""
    if count >= len(rows):
        return list(rows)
    places = sorted(random.Random(seed).sample(range(len(rows)), count))  # noqa: S311 - no secret
    return [rows[place] for place in places]


def batches(
    tokenizer: Any, rows: Sequence[list[Message]], *, max_length: int
) -> list[dict[str, Any]]:
    """The rows as tensors, several at once where their lengths are close.

    Nothing is padded, since the quantizer would take padding for activations; instead a batch is cut to its
    shortest row, which loses at most a ninth of any.
    """
    ids = sorted(
        (conversations.answered_ids(tokenizer, messages)[0][:max_length] for messages in rows),
        key=len,
    )
    grouped: list[list[list[int]]] = []
    for each in ids:
        group = grouped[-1] if grouped else None
        if group and len(group) < _ROWS_A_BATCH and len(each) <= len(group[0]) * _SLACK:
            group.append(each)
        else:
            grouped.append([each])
    return [_tensors(group) for group in grouped]


def _tensors(group: list[list[int]]) -> dict[str, Any]:
    width = len(group[0])
    ids = torch.tensor([each[:width] for each in group])
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids)}


def apply(model: Any, *, recipe: list[Any], batches: Sequence[dict[str, Any]]) -> None:
    """Quantize the model in place; no batches where the recipe needs none."""
    if not batches:
        oneshot(model=model, recipe=recipe)
        return
    loader = torch.utils.data.DataLoader(list(batches), batch_size=None)
    with _unpinned():
        oneshot(model=model, recipe=recipe, dataset=loader, num_calibration_samples=len(batches))


@contextmanager
def _unpinned() -> Iterator[None]:
    """Inside, AWQ leaves its cache in pageable memory where there is no accelerator.

    It pins host memory whatever the device (llm-compressor 0.14), which fails where no accelerator is there
    to copy to; the values are the same either way. Nothing is changed where one is there.
    """
    if devices.device().type != "cpu":
        yield
        return
    pin = IntermediatesCache.pin_memory
    IntermediatesCache.pin_memory = lambda *_arguments, **_keywords: None
    try:
        yield
    finally:
        IntermediatesCache.pin_memory = pin
