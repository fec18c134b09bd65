"""Steps and duration of a fine-tune before it runs, and the arithmetic utilization of a run.

Steps are exact and follow the trainer's own rule. Duration is not calculated but taken from measured runs;
without any it is unknown.

::

    operations of a token  =  6 · active parameters  +  12 · heads · head size · Σ layers min(length, window)
    MFU                    =  tokens a second · operations of a token  /  (cards · peak rate)
    scaling                =  (speed on n cards / speed on m)  /  (n / m)

The first two are those of Chowdhery et al. 2022 (PaLM, arXiv 2204.02311, appendix B): only what the model
itself needs, so recomputation to save memory counts for nothing. A frozen weight needs no gradient of its own:
4 instead of 6.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

from controlplane.domain.architectures import Architecture, AttentionCacheKind
from controlplane.domain.common.accelerators import Chip, Dtype
from controlplane.domain.common.reasons import ReasonedValueError

#: One measured run says little about how much runs differ.
_ONE_RUN_SPREAD = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRunSize:
    rows: int
    epochs: float
    batch_size: int
    gradient_accumulation: int = 1
    #: The run ends after this many, whatever the epochs.
    max_steps: int | None = None

    @property
    def examples_per_step(self) -> int:
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
class DurationEstimate:
    """Seconds from the start of the processes to the end, and the number of runs it is based on."""

    low: float
    likely: float
    high: float
    runs: int


def training_steps(training: TrainingRunSize) -> int:
    """Return optimizer steps; the last batch and the last accumulation of an epoch may be smaller."""
    batches = math.ceil(training.rows / training.batch_size)
    per_epoch = math.ceil(batches / training.gradient_accumulation)
    whole = math.ceil(training.epochs * per_epoch)
    return whole if training.max_steps is None else training.max_steps


def training_duration(
    training: TrainingRunSize, *, parameters: int, row_characters: int, runs: Sequence[MeasuredRun]
) -> DurationEstimate | None:
    """From the speed of like runs, in proportion to characters and parameters; None without any."""
    work = training_steps(training) * training.examples_per_step * row_characters * parameters
    durations = sorted(
        run.overhead_seconds + run.seconds * work / (run.rows * run.row_characters * run.parameters)
        for run in runs
        if run.rows > 0 and run.row_characters > 0 and run.parameters > 0 and run.seconds > 0
    )
    if not durations:
        return None
    likely = median(durations)
    if len(durations) == 1:
        low, high = likely * (1 - _ONE_RUN_SPREAD), likely * (1 + _ONE_RUN_SPREAD)
    else:
        low, high = durations[0], durations[-1]
    return DurationEstimate(low=low, likely=likely, high=high, runs=len(durations))


#: What a run on good hardware should reach.
TARGET = 0.6


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFlopsUtilization:
    #: Share of the peak rate, 0 to 1.
    mfu: float
    #: Operations for one token.
    token_operations: float
    #: Operations a second that all cards could do.
    peak: float

    @property
    def percent(self) -> float:
        return round(100 * self.mfu, 1)

    @property
    def meets_target(self) -> bool:
        return self.mfu >= TARGET


def training_operations(
    architecture: Architecture, *, length: int, trained: int | None = None
) -> float:
    """Operations to learn from one token of rows of ``length`` tokens.

    ``trained`` are the parameters that change, where those of the model itself do not: an adapter's.
    """
    active = architecture.active_parameters
    weights = 6 * active if trained is None else 4 * active + 6 * trained
    return weights + _attention_operations(architecture, length=length)


def _attention_operations(architecture: Architecture, *, length: int) -> float:
    """Scores and their sums, forward and backward. Recurrent layers have none."""
    encoder = architecture.attention is AttentionCacheKind.NONE
    full = architecture.layers if encoder else architecture.full_attention_layers
    seen = min(length, architecture.window) if architecture.window else length
    tokens = full * length + architecture.windowed_layers * seen
    part = architecture.latent
    # Queries meet keys of one size, and the result sums values of another.
    size = (
        (architecture.head_dim + part.value_head_dim) / 2 if part else float(architecture.head_dim)
    )
    return 12 * architecture.heads * size * tokens


def model_flops_utilization(
    *,
    tokens_per_second: float,
    token_operations: float,
    chip: Chip,
    dtype: Dtype,
    cards: int,
) -> ModelFlopsUtilization | None:
    """None where the chip's peak rate for that number format is not published."""
    rate = chip.peak_rates.get(dtype)
    if not rate or cards < 1 or tokens_per_second < 0:
        return None
    peak = rate * cards
    return ModelFlopsUtilization(
        mfu=tokens_per_second * token_operations / peak,
        token_operations=token_operations,
        peak=peak,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterThroughput:
    """Throughput of a number of cards together."""

    cards: int
    tokens_per_second: float


def scaling_efficiency(base: ClusterThroughput, more: ClusterThroughput) -> float:
    """1 where twice the cards are twice as fast.

    :raises ValueError: if the base did nothing, or has no cards.
    """
    if base.cards < 1 or more.cards < 1 or base.tokens_per_second <= 0:
        raise ReasonedValueError(
            "sizing.scaling.invalid_baseline",
            "scaling efficiency requires a baseline with throughput and cards above "
            "0, got {throughput} tokens/s on {cards} cards",
            throughput=base.tokens_per_second,
            cards=base.cards,
        )
    return (more.tokens_per_second / base.tokens_per_second) / (more.cards / base.cards)
