"""A simulated cluster of two nodes whose clock a test moves on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.adapters.clusters.simulated.progress_reports import ReceiverUnavailable
from controlplane.adapters.clusters.simulated.store import ReportTarget
from controlplane.domain.simulation.run_profiles import PREFIX
from controlplane.ports.clusters import ObservedReplica
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole

FLEET = {
    "groups": [
        {"name": "h800", "chip": "nvidia-h800", "nodes": 2, "levels": {"leaf": 2}},
        {"name": "a3", "chip": "ascend-910c", "nodes": 1},
    ]
}


@dataclass(slots=True)
class Clock:
    at: datetime = datetime(2026, 3, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.at

    def pass_(self, **distance: float) -> None:
        self.at += timedelta(**distance)


@dataclass(slots=True)
class RecordingListener:
    """Remembers what it hears; or hears nothing while it is away."""

    points: list[Mapping[str, Any]] = field(default_factory=list)
    files: dict[str, bytes] = field(default_factory=dict)
    manifests: list[Mapping[str, Any]] = field(default_factory=list)
    away: bool = False

    def progress(self, report: ReportTarget, points: Sequence[Mapping[str, Any]]) -> None:
        self._check_reachable()
        self.points += points

    def file(self, report: ReportTarget, path: str, content: bytes) -> None:
        self._check_reachable()
        self.files[path] = content

    def manifest(self, report: ReportTarget, manifest: Mapping[str, Any]) -> None:
        self._check_reachable()
        self.manifests.append(manifest)

    def _check_reachable(self) -> None:
        if self.away:
            raise ReceiverUnavailable("not now")


@dataclass(frozen=True, slots=True)
class World:
    home: Path
    clock: Clock

    def cluster(self, **options: Any) -> SimulatedCluster:
        """Another process's view of the same cluster."""
        return SimulatedCluster(self.home, fleet=FLEET, clock=self.clock, **options)


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(home=tmp_path / "simulated", clock=Clock())


def training(
    name: str = "attempt-1",
    *,
    nodes: tuple[str, ...] = ("h800-1",),
    cards: tuple[int, ...] = (0, 1),
    reports: bool = False,
    **said: str,
) -> Launch:
    """One that trains for an hour unless its labels say otherwise (``run_seconds="60"``)."""
    labels = {
        "run-seconds": "3600",
        **{key.replace("_", "-"): value for key, value in said.items()},
    }
    return Launch(
        name=name,
        roles=(
            LaunchRole(
                name="trainer",
                argv=("train",),
                placements=tuple(LaunchPlacement(node=node, cards=cards) for node in nodes),
                environment={"NINEFOLD_REPORT_URL": "http://127.0.0.1:9/a"} if reports else {},
            ),
        ),
        labels={f"{PREFIX}{key}": value for key, value in labels.items()},
    )


def seen(cluster: SimulatedCluster, name: str = "attempt-1") -> tuple[ObservedReplica, ...]:
    return cluster.observe([name])[name].replicas
