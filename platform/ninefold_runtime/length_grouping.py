"""An order of training rows in which each batch holds rows of like length.

Padding is wasted work, so rows are sorted by length within blocks of many batches. The batches of a block
are then shuffled: sorted ones would teach the model long rows for a while, then short ones, and it
would end each block having half forgotten the others. The order depends on seed and epoch alone, so
that a run that goes on from a checkpoint sees the rows that it has not seen.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

_BATCHES_A_BLOCK = 50


class LengthGroupedSampler:
    """Indices of rows, to be cut into batches of ``batch_size`` in this order."""

    def __init__(self, lengths: Sequence[int], *, batch_size: int, seed: int) -> None:
        self._lengths = lengths
        self._batch_size = batch_size
        self._seed = seed
        self._epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self._epoch = epoch

    def __len__(self) -> int:
        return len(self._lengths)

    def __iter__(self) -> Iterator[int]:
        rng = random.Random(self._seed * 1_000_003 + self._epoch)  # noqa: S311 - reproducible on purpose
        order = list(range(len(self._lengths)))
        rng.shuffle(order)
        size, block = self._batch_size, self._batch_size * _BATCHES_A_BLOCK
        whole: list[list[int]] = []
        rest: list[int] = []
        for start in range(0, len(order), block):
            rows = sorted(order[start : start + block], key=self._lengths.__getitem__)
            batches = [rows[each : each + size] for each in range(0, len(rows), size)]
            # Only the last block can end in a short batch, which would shift the borders of those after it.
            if len(batches[-1]) < size:
                rest = batches.pop()
            whole += batches
        rng.shuffle(whole)
        for batch in (*whole, rest):
            yield from batch
