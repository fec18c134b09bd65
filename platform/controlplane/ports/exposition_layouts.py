"""Fast path for expositions whose layout is known: between two scrapes of an exporter only the numbers change.

::

    DCGM_FI_DEV_GPU_UTIL{gpu="0",UUID="GPU-1b",Hostname="n1"} 97
    └────────────────────── head ───────────────────────────┘└┬┘
      remembered, with its card and metric                   tail

A text with the heads of the last one is parsed in a few passes over the whole of it, and becomes a ``Sheet``.
Any other text, and one with anything unusual in it, is parsed line by line
(``controlplane.ports.expositions``), which is slower and reports what is wrong.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from math import isnan

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.telemetry.metric_batches import CardIdentity, MetricBatch, Numbers
from controlplane.domain.telemetry.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpositionLineLayout:
    """How the lines of a text begin."""

    #: Lines of the text, the empty one at its end included.
    lines: int
    #: Lines with a number that is read, and how each of them begins.
    value_lines: Sequence[int]
    heads: Sequence[str]
    #: Characters of all heads.
    length: int
    #: The others, and how they begin: comments, and series that mean nothing here.
    ignored_lines: Sequence[int]
    ignored_prefixes: Sequence[str]

    def tails(self, text: str) -> list[str] | None:
        """What follows the heads; None if the text has others."""
        lines = text.split("\n")
        if len(lines) != self.lines or lines[-1]:
            return None
        line = lines.__getitem__
        if not all(map(str.startswith, map(line, self.ignored_lines), self.ignored_prefixes)):
            return None
        value_lines = list(map(line, self.value_lines))
        tails = list(map(str.removeprefix, value_lines, self.heads))
        # A line with another head keeps all of its characters: then more is left than should be.
        left = "".join(tails)
        if len(left) != sum(map(len, value_lines)) - self.length or "_" in left:
            return None
        return tails


def line_layout_of(text: str, *, names: Container[str]) -> ExpositionLineLayout | None:
    """Layout of the lines; labelled series outside ``names`` are ignored. None if lines are blank or indented."""
    lines = text.split("\n")
    if lines.pop():
        return None
    value_lines: list[int] = []
    heads: list[str] = []
    ignored_lines: list[int] = []
    ignored_prefixes: list[str] = []
    for number, line in enumerate(lines):
        name, brace, rest = line.partition("{")
        block, end, _ = rest.rpartition("}")
        is_comment = line.startswith("#")
        if not is_comment and (not line or line[0].isspace() or name[-1:].isspace()):
            return None
        if is_comment or (end and name not in names):
            ignored_lines.append(number)
            ignored_prefixes.append("#" if is_comment else sys.intern(name + brace))
        else:
            value_lines.append(number)
            heads.append(f"{name}{brace}{block}{end}" if end else line.split(None, 1)[0])
    return ExpositionLineLayout(
        lines=len(lines) + 1,
        value_lines=value_lines,
        heads=heads,
        length=sum(map(len, heads)),
        ignored_lines=ignored_lines,
        ignored_prefixes=ignored_prefixes,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricColumn:
    """How one metric is computed from the numbers of a text."""

    metric: Metric
    #: Rows of ``ExpositionLayout.places``, summed up.
    slots: tuple[int, ...]
    absent: tuple[float, ...]
    scale: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExpositionLayout:
    """What is remembered of a text; created by ``ExpositionReader.layout_of``."""

    outline: ExpositionLineLayout
    whose: tuple[CardIdentity, ...]
    #: [slots, cards]: which number of ``outline.value_lines`` it is; one past the last if none.
    places: NDArray[np.intp]
    columns: tuple[MetricColumn, ...]
    #: Rows of ``places`` with numbers that may be codes of faults; and the codes that they are for one card.
    faults: tuple[int, ...]
    codes_of: Callable[[Sequence[float | None]], tuple[str, ...]]
    vendor: str

    def parse_batch(self, text: str, *, at: datetime) -> MetricBatch | None:
        """The values of the text; None if it has another layout, or a number that a sheet cannot hold."""
        tails = self.outline.tails(text)
        numbers = _parse_numbers(tails) if tails is not None else None
        if numbers is None:
            return None
        grid, missing = numbers[self.places], self.places == len(self.outline.heads)
        if not (np.isfinite(grid) | missing).all():
            return None
        printed = ~missing[list(self.faults)]
        return MetricBatch(
            whose=self.whose,
            at=at,
            metrics={column.metric: _metric_column(column, grid) for column in self.columns},
            speaks=printed.any(axis=0),
            faults=self._fault_codes(grid[list(self.faults)]),
            vendor=self.vendor,
        )

    def _fault_codes(self, printed: Numbers) -> Mapping[int, tuple[str, ...]]:
        faults: dict[int, tuple[str, ...]] = {}
        for place in np.flatnonzero((printed >= 1).any(axis=0)).tolist():
            values = [None if isnan(value) else value for value in printed[:, place].tolist()]
            if codes := self.codes_of(values):
                faults[place] = codes
        return faults


def _parse_numbers(tails: Sequence[str]) -> Numbers | None:
    """The numbers, and NaN behind the last; None if one of them is none."""
    try:
        return _parse_floats(tails)
    except ValueError:
        pass
    # Behind each number there may be a time.
    try:
        texts = []
        for tail in tails:
            number, time = tail.split()
            int(time)
            texts.append(number)
        return _parse_floats(texts)
    except ValueError:
        return None


def _parse_floats(texts: Sequence[str]) -> Numbers:
    numbers = np.empty(len(texts) + 1)
    numbers[:-1] = list(map(float, texts))
    numbers[-1] = np.nan
    return numbers


def _metric_column(column: MetricColumn, grid: Numbers) -> Numbers:
    # What is too large for a number becomes infinite, and is judged with all that no card can have.
    with np.errstate(over="ignore"):
        if len(column.slots) > 1:
            return np.asarray(grid[list(column.slots)].sum(axis=0) * column.scale)
        values = grid[column.slots[0]]
        for absent in column.absent:
            values = np.where(values == absent, np.nan, values)
        return np.asarray(values * column.scale)
