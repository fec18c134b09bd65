"""State of the product itself that alert rules measure: its controllers and its disks."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from django.conf import settings
from django.db import Error
from django.utils import timezone

from apps.models.selectors import artifact_store
from controlplane.domain.health.controllers import (
    UNHEALTHY,
    ControllerHealth,
    ControllerRunTimes,
    controller_health,
    controller_lag,
    controller_needs_attention,
)
from controlplane.persistence.models import ControllerState
from controlplane.persistence.reconcile_runs import controller_intervals, read_reconcile_runs


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerStatus:
    """One controller of the beat, and the record of its runs."""

    #: Of its task.
    name: str
    health: ControllerHealth
    interval: timedelta
    #: Since the last good end; None if it never turned.
    lag: timedelta | None
    #: Begin and end of the last run.
    times: ControllerRunTimes
    #: Seconds of recent runs, newest last.
    recent: tuple[float, ...]
    runs: int
    failed_runs: int
    #: Of all runs.
    seconds: float
    #: Number of objects that the last successful run handled; None if the task returns none.
    handled: int | None
    #: Bad ends since the last good one.
    failures: int
    error: str
    failed_at: datetime | None

    @property
    def unhealthy(self) -> bool:
        return self.health in UNHEALTHY

    @property
    def last_seconds(self) -> float | None:
        return self.recent[-1] if self.recent else None


@dataclass(frozen=True, slots=True, kw_only=True)
class ControllerStatuses:
    at: datetime
    all: tuple[ControllerStatus, ...]

    @property
    def unhealthy(self) -> tuple[ControllerStatus, ...]:
        return tuple(controller for controller in self.all if controller.unhealthy)

    @property
    def needs_attention(self) -> tuple[ControllerStatus, ...]:
        """Controllers that operators are warned about."""
        return tuple(
            controller
            for controller in self.all
            if controller_needs_attention(controller.health, controller.lag)
        )


def current_controllers() -> ControllerStatuses:
    """Each controller of the beat, in its order, in one query."""
    at, rows = read_reconcile_runs(otherwise=timezone.now())
    return ControllerStatuses(
        at=at,
        all=tuple(
            _controller_status(rows.get(name, ControllerState(name=name)), interval=interval, at=at)
            for name, interval in controller_intervals().items()
        ),
    )


def lagging_controller_count() -> int:
    """Number of controllers to warn about; 0 while the state is unknown, as other warnings apply then."""
    try:
        return len(current_controllers().needs_attention)
    except Error:
        return 0


def _controller_status(
    row: ControllerState, *, interval: timedelta, at: datetime
) -> ControllerStatus:
    times = row.times
    return ControllerStatus(
        name=row.name,
        health=controller_health(times, interval=interval, at=at),
        interval=interval,
        lag=controller_lag(times, at=at),
        times=times,
        recent=tuple(reversed(row.recent)),
        runs=row.runs,
        failed_runs=row.failed_runs,
        seconds=row.seconds,
        handled=row.handled,
        failures=row.failures,
        error=row.error,
        failed_at=row.failed_at,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskUsage:
    """The disk below one of our folders, in bytes."""

    name: str
    free: int
    size: int


def monitored_disks() -> tuple[DiskUsage, ...]:
    """Disks of the home folder and of the artifact store; a store without a folder has none."""
    folders = {"home": Path(settings.NINEFOLD_HOME), "artifacts": artifact_folder()}
    return tuple(
        _disk_usage(name, folder) for name, folder in folders.items() if folder is not None
    )


def artifact_folder() -> Path | None:
    root = getattr(artifact_store(), "root", None)
    return root if isinstance(root, Path) else None


def _disk_usage(name: str, folder: Path) -> DiskUsage:
    there = next(path for path in (folder, *folder.parents) if path.exists())
    usage = shutil.disk_usage(there)
    return DiskUsage(name=name, free=usage.free, size=usage.total)
