"""Runtime estimates, from past runtimes.

An estimate is a quantile of past runtimes of the same queue and about the same size; if there are too few, of
the queue, then of the size, then of all. A running claim is compared only with runs that took at least as long:
for a job that has run for three hours, one that ended after one is no example. A claim that has run longer than
every example is expected to run as long again.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from math import ceil

from controlplane.domain.scheduling.snapshots import ClaimSnapshot

#: Minimum number of examples in a narrower group.
ENOUGH = 20
#: Upper limit of declared runtimes.
LONGEST = timedelta(days=3650)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletedRun:
    """A run that ended by itself."""

    queue: str
    cards: int
    runtime: timedelta


class RuntimeHistory:
    """Past runtimes, by queue and size."""

    def __init__(self, runs: Iterable[CompletedRun] = (), *, enough: int = ENOUGH) -> None:
        """:param enough: examples that a group needs before it is used."""
        self._enough = enough
        self._seconds: dict[tuple[str | None, int | None], list[float]] = {}
        for run in runs:
            for group in _run_groups(run.queue, run.cards):
                self._seconds.setdefault(group, []).append(run.runtime.total_seconds())
        for seconds in self._seconds.values():
            seconds.sort()

    def remaining(
        self,
        *,
        queue: str,
        cards: int,
        elapsed: timedelta = timedelta(0),
        quantile: float = 0.5,
    ) -> timedelta | None:
        """How much longer it runs, with that probability at most; None if nothing ever ran.

        :param quantile: 0 to 1; 0.5 is the median.
        """
        behind = elapsed.total_seconds()
        for group in _run_groups(queue, cards):
            seconds = self._seconds.get(group, [])
            first = bisect_right(seconds, behind)
            if len(seconds) - first >= self._enough:
                return timedelta(seconds=_quantile_from(seconds, first, quantile) - behind)
        everything = self._seconds.get((None, None), [])
        first = bisect_right(everything, behind)
        if first < len(everything):
            return timedelta(seconds=_quantile_from(everything, first, quantile) - behind)
        return elapsed if everything else None


def _run_groups(queue: str, cards: int) -> tuple[tuple[str | None, int | None], ...]:
    """The narrowest first. Sizes count as equal up to the next power of two."""
    size = max(0, cards - 1).bit_length()
    return (queue, size), (queue, None), (None, size), (None, None)


def _quantile_from(seconds: list[float], first: int, quantile: float) -> float:
    """The smallest of the values from there on that so large a part of them does not exceed."""
    known = len(seconds) - first
    return seconds[first + max(0, ceil(quantile * known) - 1)]


def expected_runtime_on_chip(claim: ClaimSnapshot, chip: str) -> timedelta | None:
    """How long it is expected to run on that chip, at most ``LONGEST``; None if unknown."""
    if claim.runtime is None:
        return None
    speed = claim.speeds.get(chip, 1.0)
    return claim.runtime / speed if claim.runtime / LONGEST < speed else LONGEST
