"""What a fine-tune will take, before it runs: steps, memory of a card, time.

Steps are exact, and follow the trainer's own rule. Memory is the sum of what must be there at once::

    full  ─ weights 4P ─ gradients 4P ─ Adam's two moments 8P ─┐
    LoRA  ─ weights bP ─ adapter A: 4A + 4A + 8A ──────────────┼─ activations ─ logits ─ the process
                                                               ┘
with P parameters, A of the adapter, and b bytes for one value of what is computed in. Time is not
calculated but taken from runs that were measured: without any, it is not known.

Activations follow Korthikanti et al., "Reducing Activation Recomputation in Large Transformer Models"
(2022): 34 bytes for each token, layer and hidden value in 16 bits, where attention keeps no scores.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Self

from controlplane.domain.resources import MIB, Bytes

#: Of a weight that is trained, of its gradient, and of each of Adam's moments: all stay in float32.
_TRAINED = 4
#: Values that one layer keeps for each token and hidden value until its gradient is known.
_KEPT_VALUES = 17
#: The loss is taken in float32: logits, their logarithms, their gradient.
_LOGITS = 12
#: Python, the libraries and their kernels, before anything is loaded.
PROCESS = Bytes(600 * MIB)
#: One measured run says little about how much runs differ.
_ONE_RUN_SPREAD = 0.25


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The shape of a model that matters for its memory."""

    parameters: int
    hidden: int
    layers: int
    #: Width inside the feed-forward part of a layer.
    intermediate: int
    vocabulary: int

    @classmethod
    def guessed(cls, parameters: int) -> Self:
        """A usual shape for that many parameters: 12 L h² of them, with h = 64 L."""
        layers = max(1, round((parameters / (12 * 64**2)) ** (1 / 3)))
        hidden = 64 * layers
        return cls(
            parameters=parameters,
            hidden=hidden,
            layers=layers,
            intermediate=4 * hidden,
            vocabulary=32_000,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """What somebody wants to do with a model."""

    rows: int
    epochs: float
    batch_size: int
    gradient_accumulation: int = 1
    #: The run ends after this many, whatever the epochs.
    max_steps: int | None = None
    #: Tokens of the longest row that is not cut off.
    length: int
    #: Rank of the LoRA adapter; None trains every weight.
    rank: int | None = None
    #: Bytes of one value that is computed: 2 or 4.
    value_bytes: int = 4
    #: Activations are computed again rather than kept.
    recomputes: bool = False

    @property
    def rows_per_step(self) -> int:
        return self.batch_size * self.gradient_accumulation


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """Bytes that one card holds at the worst moment."""

    weights: Bytes
    gradients: Bytes
    optimizer: Bytes
    activations: Bytes
    process: Bytes = PROCESS

    @property
    def total(self) -> Bytes:
        return Bytes(
            self.weights + self.gradients + self.optimizer + self.activations + self.process
        )


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


def memory(network: Network, training: Training) -> Memory:
    """What one card must hold. The longest rows of a batch decide, so it is an upper bound."""
    activations = _activations(network, training)
    if training.rank is not None:
        adapter = adapter_parameters(network, rank=training.rank)
        return Memory(
            weights=Bytes(network.parameters * training.value_bytes + adapter * _TRAINED),
            gradients=Bytes(adapter * _TRAINED),
            optimizer=Bytes(adapter * 2 * _TRAINED),
            activations=activations,
        )
    # Computing in 16 bits keeps a copy of the weights in them beside those that are trained.
    copies = training.value_bytes if training.value_bytes < _TRAINED else 0
    return Memory(
        weights=Bytes(network.parameters * (_TRAINED + copies)),
        gradients=Bytes(network.parameters * _TRAINED),
        optimizer=Bytes(network.parameters * 2 * _TRAINED),
        activations=activations,
    )


def adapter_parameters(network: Network, *, rank: int) -> int:
    """Of LoRA on every linear layer: rank × (inputs + outputs) for each of four and of three matrices."""
    attention = 4 * (network.hidden + network.hidden)
    feed_forward = 3 * (network.hidden + network.intermediate)
    return rank * network.layers * (attention + feed_forward)


def _activations(network: Network, training: Training) -> Bytes:
    tokens = training.batch_size * training.length
    value = network.hidden * training.value_bytes
    # Recomputing keeps each layer's input, and one layer at a time in full.
    kept = network.layers + _KEPT_VALUES if training.recomputes else network.layers * _KEPT_VALUES
    return Bytes(tokens * (kept * value + network.vocabulary * _LOGITS))


def duration(
    network: Network, training: Training, *, row_characters: int, runs: Sequence[MeasuredRun]
) -> Duration | None:
    """From the speed of like runs, in proportion to characters and parameters; None without any."""
    work = steps(training) * training.rows_per_step * row_characters * network.parameters
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
