"""Drives a cluster through what a Launch can live to see, whichever adapter it is."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Protocol

from controlplane.adapters.clusters.kubernetes import KubernetesCluster
from controlplane.adapters.clusters.local import LocalCluster
from controlplane.adapters.clusters.simulated import SimulatedCluster
from controlplane.adapters.fakes.clusters import FakeCluster
from controlplane.domain.simulation.run_profiles import PREFIX
from controlplane.ports.clusters import ClusterAdapter, ObservedLaunch, ReplicaPhase
from controlplane.ports.launches import Launch, LaunchPlacement, LaunchRole
from tests.contract.waiting import until
from tests.kubernetes import images

#: Where every harness runs its work; the test cluster calls its node so.
NODE = "real-1"
SLEEPS = "import time; time.sleep(600)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('deaf')" + (
    "\nwhile True: time.sleep(600)"
)


def python_role(code: str, *, replicas: int = 1, name: str = "main", **values: Any) -> LaunchRole:
    """A role that runs the code on the cluster's Python."""
    return LaunchRole(
        name=name,
        argv=("{python}", "-c", code),
        placements=tuple(LaunchPlacement(node=NODE) for _ in range(replicas)),
        **values,
    )


class Harness(Protocol):
    @property
    def cluster(self) -> ClusterAdapter: ...

    def running(self, launch: Launch, *, stubborn: bool = False) -> None:
        """Launch it and return once every process runs; ``stubborn`` ones ignore a polite stop."""

    def played(self, name: str, *, output: bytes, exit_code: int) -> None:
        """Launch a process that prints the output and exits so, and return once it has."""

    def pass_time(self, amount: timedelta) -> None: ...

    def close(self) -> None: ...


def observed(cluster: ClusterAdapter, name: str) -> ObservedLaunch:
    return cluster.observe([name])[name]


def ended(cluster: ClusterAdapter, name: str) -> ObservedLaunch:
    """The Launch, as soon as it has ended."""

    def final_launch() -> ObservedLaunch | None:
        launch = observed(cluster, name)
        return launch if launch.ended else None

    # A busy kubelet takes long to delete a pod whose sandbox it is creating.
    return until(final_launch, within=120.0, what=f"{name} ends")


def phase_is(cluster: ClusterAdapter, name: str, phase: ReplicaPhase) -> Callable[[], bool]:
    def reached() -> bool:
        launch = observed(cluster, name)
        if launch.ended and phase not in (ReplicaPhase.EXITED, ReplicaPhase.LOST):
            raise AssertionError(f"{name} ended: {launch.replicas}")
        return all(replica.phase is phase for replica in launch.replicas)

    return reached


class FakeHarness:
    def __init__(self) -> None:
        self._at = datetime(2026, 1, 1, tzinfo=UTC)
        self.cluster = FakeCluster(node=NODE, cards=2, clock=lambda: self._at)

    def running(self, launch: Launch, *, stubborn: bool = False) -> None:
        self.cluster.obedient = not stubborn
        self.cluster.launch(launch)
        self.cluster.run(launch.name)

    def played(self, name: str, *, output: bytes, exit_code: int) -> None:
        self.running(Launch(name=name, roles=(python_role(""),)))
        self.cluster.write_log(name, output)
        self.cluster.finish(name, exit_code=exit_code)

    def pass_time(self, amount: timedelta) -> None:
        self._at += amount

    def close(self) -> None:
        """Nothing outlives it."""


class SimulatedHarness:
    """What a real process does because of its program, a simulated one does because of its labels."""

    #: Longer than any preparation that is drawn.
    PREPARED_IN = timedelta(minutes=2)

    def __init__(self) -> None:
        self._at = datetime(2026, 1, 1, tzinfo=UTC)
        self._home = Path(tempfile.mkdtemp(prefix="ninefold-simulated-"))
        self.cluster = SimulatedCluster(
            self._home,
            fleet={"groups": [{"name": NODE, "chip": "cpu", "nodes": 1, "cards": 2}]},
            # What nobody gave a length lasts for days.
            hours=1000,
            clock=lambda: self._at,
        )

    def running(self, launch: Launch, *, stubborn: bool = False) -> None:
        if stubborn:
            launch = replace(launch, labels={**launch.labels, f"{PREFIX}obeys": "no"})
        self.cluster.launch(launch)
        self.pass_time(self.PREPARED_IN)
        assert phase_is(self.cluster, launch.name, ReplicaPhase.RUNNING)()

    def played(self, name: str, *, output: bytes, exit_code: int) -> None:
        labels = {"run-seconds": "1", "exit-code": str(exit_code), "output": output.decode()}
        plays = {f"{PREFIX}{key}": value for key, value in labels.items()}
        self.cluster.launch(Launch(name=name, roles=(python_role(""),), labels=plays))
        self.pass_time(timedelta(seconds=1))

    def pass_time(self, amount: timedelta) -> None:
        self._at += amount

    def close(self) -> None:
        shutil.rmtree(self._home)


def open_folder() -> Path:
    """A temporary folder that jobs' accounts can pass through, unlike pytest's own."""
    folder = Path(tempfile.mkdtemp(prefix="ninefold-cluster-"))
    folder.chmod(0o711)
    return folder


def end_all(cluster: ClusterAdapter) -> None:
    for name in cluster.names():
        cluster.stop(name, grace=timedelta(0))
    for name in cluster.names():
        ended(cluster, name)


class RealHarness:
    """Programs run for real: what they do is what they say."""

    cluster: ClusterAdapter

    def running(self, launch: Launch, *, stubborn: bool = False) -> None:
        self.cluster.launch(launch)
        until(phase_is(self.cluster, launch.name, ReplicaPhase.RUNNING), what=f"{launch.name} runs")
        if stubborn:
            until(lambda: b"deaf" in self.output(launch.name), what="it ignores SIGTERM")

    def played(self, name: str, *, output: bytes, exit_code: int) -> None:
        code = f"import os, sys; os.write(1, {output!r}); sys.exit({exit_code})"
        self.cluster.launch(Launch(name=name, roles=(python_role(code),)))
        ended(self.cluster, name)

    def pass_time(self, amount: timedelta) -> None:
        """Real time passes by itself."""

    def output(self, name: str, *, role: str = "main", index: int = 0) -> bytes:
        return self.cluster.log(name, role=role, index=index, offset=0, limit=1 << 24).content


class KubernetesHarness(RealHarness):
    """On the test cluster, which all tests share; what a test left is taken away after it."""

    def __init__(self, kubeconfig: str) -> None:
        self.cluster = KubernetesCluster(
            installation="contract", kubeconfig=kubeconfig, cpu_cards=2, **images.PROFILE
        )

    def close(self) -> None:
        end_all(self.cluster)
        for name in self.cluster.names():
            self.cluster.remove(name)


class LocalHarness(RealHarness):
    cluster: LocalCluster

    def __init__(self, *, home: Path | None = None, **options: Any) -> None:
        self.home = home or open_folder()
        self.cluster = LocalCluster(self.home, node=NODE, cards=2, **options)

    def close(self) -> None:
        end_all(self.cluster)
        for entry in self.home.iterdir():
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        if not self.home.is_mount():
            self.home.rmdir()
