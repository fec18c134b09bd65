"""Launches with plain figures: they prepare for a minute, start for another, and work for an hour."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from controlplane.domain.simulation.launch_lifecycle import ReplicaLocation, SimulatedLaunchRecord
from controlplane.domain.simulation.run_profiles import RunProfile

START = datetime(2026, 3, 1, tzinfo=UTC)
HOUR = RunProfile(prepares=60, starts=60, runs=3600, steps=1000, whole=3600, saves=10, seed="s")
RECORD = SimulatedLaunchRecord(
    name="attempt-1",
    locations=(
        ReplicaLocation(role="trainer", index=0, node="n1", cards=(0, 1)),
        ReplicaLocation(role="trainer", index=1, node="n2", cards=(0, 1)),
    ),
    profile=HOUR,
    launched_at=START,
    probed=True,
    labels={},
)


def record(profile: dict[str, Any] | None = None, **values: Any) -> SimulatedLaunchRecord:
    return replace(RECORD, profile=replace(HOUR, **(profile or {})), **values)


def after(**distance: float) -> datetime:
    return START + timedelta(**distance)
