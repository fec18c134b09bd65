"""How many steps a fine-tune takes and how long, before it runs. Its memory is ``controlplane.domain.sizing``.

Steps are exact, and follow the trainer's own rule. Time is not calculated but taken from runs that were measured:
without any, it is not known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

#: One measured run says little about how much runs differ.
_ONE_RUN_SPREAD = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What somebody wants to do with a model."""

    rows: int
    epochs: float
    batch_size: int
    gradient_accumulation: int = 1
    #: The run ends after this many, whatever the epochs.
    max_steps: int | None = None

    @property
    def rows_per_step(self) -> int:
        return self.batch_size * self.gradient_accumulation


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRun:
    """A run that ended well, between its first and its last report."""

    parameters: int
    rows: int
    #: Characters of a usual row.
    row_characters: int
    seconds: float
    #: From its start until training began, and from its last step until it ended.
    overhead_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Duration:
    """Seconds from the start of the processes to the end, and from how many runs that is known."""

    low: float
    likely: float
    high: float
    runs: int


def steps(training: Training) -> int:
    """Optimizer steps: the last batch of an epoch may be smaller, and so may its last accumulation."""
    batches = math.ceil(training.rows / training.batch_size)
    per_epoch = math.ceil(batches / training.gradient_accumulation)
    whole = math.ceil(training.epochs * per_epoch)
    return whole if training.max_steps is None else training.max_steps


def duration(
    training: Training, *, parameters: int, row_characters: int, runs: Sequence[MeasuredRun]
) -> Duration | None:
    """From the speed of like runs, in proportion to characters and parameters; None without any."""
    work = steps(training) * training.rows_per_step * row_characters * parameters
    told = sorted(
        run.overhead_seconds + run.seconds * work / (run.rows * run.row_characters * run.parameters)
        for run in runs
        if run.rows > 0 and run.row_characters > 0 and run.parameters > 0 and run.seconds > 0
    )
    if not told:
        return None
    likely = median(told)
    if len(told) == 1:
        low, high = likely * (1 - _ONE_RUN_SPREAD), likely * (1 + _ONE_RUN_SPREAD)
    else:
        low, high = told[0], told[-1]
    return Duration(low=low, likely=likely, high=high, runs=len(told))
