"""The order of training rows."""

from __future__ import annotations

import random
from itertools import pairwise

from ninefold_runtime.length_grouping import LengthGroupedSampler

_RNG = random.Random(1)
LENGTHS = [_RNG.randint(5, 100) for _ in range(1003)]


def _batches(order: list[int], size: int) -> list[list[int]]:
    return [order[start : start + size] for start in range(0, len(order), size)]


def test_every_row_comes_exactly_once() -> None:
    order = LengthGroupedSampler(LENGTHS, batch_size=16, seed=1)
    assert sorted(order) == list(range(len(LENGTHS)))
    assert len(order) == len(LENGTHS)


def test_rows_of_a_batch_are_of_like_length() -> None:
    grouped = list(LengthGroupedSampler(LENGTHS, batch_size=16, seed=1))
    widest = [max(LENGTHS[row] for row in batch) for batch in _batches(grouped, 16)]
    padded = sum(
        width * len(batch) for width, batch in zip(widest, _batches(grouped, 16), strict=True)
    )
    assert padded < 1.1 * sum(LENGTHS)


def test_batches_do_not_run_from_long_to_short() -> None:
    order = list(LengthGroupedSampler(LENGTHS, batch_size=16, seed=1))
    widths = [max(LENGTHS[row] for row in batch) for batch in _batches(order, 16)]
    rises = sum(after > before for before, after in pairwise(widths))
    assert 0.3 < rises / len(widths) < 0.7


def test_the_same_epoch_of_the_same_seed_has_the_same_order_and_another_has_not() -> None:
    first = LengthGroupedSampler(LENGTHS, batch_size=16, seed=1)
    again = LengthGroupedSampler(LENGTHS, batch_size=16, seed=1)
    assert list(first) == list(again)
    again.set_epoch(1)
    assert list(first) != list(again)
