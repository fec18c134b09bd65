"""Launches with plain figures: they prepare for a minute, start for another, and work for an hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from controlplane.domain.simulation.courses import Course
from controlplane.domain.simulation.lives import LaunchRecord, Place

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = Course(prepares=60, starts=60, runs=3600, steps=1000, whole=3600, saves=10, seed="s")
RECORD = LaunchRecord(
    name="attempt-1",
    places=(
        Place(role="trainer", index=0, node="n1", cards=(0, 1)),
        Place(role="trainer", index=1, node="n2", cards=(0, 1)),
    ),
    course=HOUR,
    launched_at=START,
    probed=True,
    labels={},
)


def record(course: dict[str, Any] | None = None, **values: Any) -> LaunchRecord:
    return replace(RECORD, course=replace(HOUR, **(course or {})), **values)


def after(**distance: float) -> datetime:
    return START + timedelta(**distance)
