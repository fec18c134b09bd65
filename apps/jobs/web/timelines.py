"""The stretches of a job's attempts as a track: each as wide as it was long."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from apps.jobs.selectors.histories import Run

#: Units of the drawing; it is stretched to whatever room there is.
WIDTH = 1000
#: A stretch of a moment can still be seen.
_LEAST = 6.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    state: str
    took: timedelta
    #: It lasts still.
    lasts: bool
    x: float
    width: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """One attempt."""

    number: int
    segments: tuple[Segment, ...]
    #: Empty while it lasts.
    ended_in: str


def tracks_of(runs: Sequence[Run], *, at: datetime) -> list[Track]:
    """The attempts one behind the other on one scale; what lay between them is left out."""
    lengths = [
        # Rows and moves are stamped by different machines, whose clocks may be apart.
        [max(timedelta(), (stretch.ended_at or at) - stretch.began_at) for stretch in run.stretches]
        for run in runs
    ]
    total = sum((length for row in lengths for length in row), timedelta()).total_seconds()
    count = sum(len(row) for row in lengths)
    spare = WIDTH - count * _LEAST
    tracks, x = [], 0.0
    for run, row in zip(runs, lengths, strict=True):
        segments = []
        for stretch, length in zip(run.stretches, row, strict=True):
            share = length.total_seconds() / total if total > 0 else 1 / count
            width = round(_LEAST + max(0.0, spare) * share, 1)
            segments.append(
                Segment(
                    state=stretch.state,
                    took=length,
                    lasts=stretch.ended_at is None,
                    x=round(x, 1),
                    width=width,
                )
            )
            x += width
        tracks.append(
            Track(number=run.attempt.number, segments=tuple(segments), ended_in=run.ended_in)
        )
    return tracks
