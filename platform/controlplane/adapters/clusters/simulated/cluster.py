"""The adapter itself: it keeps what it is asked, and answers from that and the clock."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from controlplane.adapters.clusters.refusals import check_launch
from controlplane.adapters.clusters.simulated.faults import Faults, no_node
from controlplane.adapters.clusters.simulated.observing import observed_launch, observed_node
from controlplane.adapters.clusters.simulated.recording import draw_run_profile, kept
from controlplane.adapters.clusters.simulated.records import Kept, Records
from controlplane.domain.common.resources import Bytes
from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.signals import Origin
from controlplane.domain.simulation import fleets, reports, run_profiles
from controlplane.domain.simulation.lifecycle import (
    LaunchSnapshot,
    SimulatedFaultKind,
    launch_snapshot,
)
from controlplane.ports import registry
from controlplane.ports.clusters import (
    ClusterError,
    Endpoint,
    LaunchRefused,
    LogChunk,
    ObservedLaunch,
    ObservedNode,
)
from controlplane.ports.diagnoses import SILENT, Diagnosis, Sign
from controlplane.ports.launches import Launch

#: Ports are numbers in an address here; nothing listens there.
_FIRST_PORT, _PORTS = 20_000, 40_000
_PORTS_OF_A_LAUNCH = 64


def _system_clock() -> datetime:
    return datetime.now(UTC)


class SimulatedCluster:
    """Implements ``controlplane.ports.clusters.Cluster``, and faults on command.

    ``fleet`` describes its nodes (``controlplane.domain.simulation.fleets``); ``speed`` is how many seconds
    of the simulation pass in one of the clock; ``seed`` decides what jobs come to, ``failing`` how many of the
    trainings fail and ``hours`` how long they usually take. What it was asked stays in ``home``.

    :raises ClusterError: if the description makes no fleet.
    """

    runs_images = True

    def __init__(
        self,
        home: str | Path,
        *,
        fleet: Mapping[str, Any],
        speed: float = 1.0,
        seed: int = 1,
        failing: float = 0.06,
        hours: float = 1.6,
        clock: Callable[[], datetime] = _system_clock,
    ) -> None:
        if not speed > 0:
            raise ClusterError(f"the speed of a simulation is above 0, got {speed}")
        try:
            self._fleet = fleets.read(fleet, chips=registry.chips())
        except fleets.FleetDescriptionRefused as refusal:
            raise ClusterError(str(refusal)) from refusal
        self._nodes = {node.name: node for node in self._fleet.nodes()}
        self._chips = {name: node.group.chip for name, node in self._nodes.items()}
        self._inventory = {name: observed_node(self._nodes[name]) for name in sorted(self._nodes)}
        self._speed, self._seed = speed, seed
        self._mix = run_profiles.WorkloadMix(failing=failing, hours=hours)
        self._clock = clock
        self.records = Records(Path(home).absolute() / "simulated.sqlite3")
        #: Breaks cards and nodes, and repairs them.
        self.faults = Faults(
            self.records,
            cards={name: node.group.cards for name, node in self._nodes.items()},
            now=self.now,
        )

    def now(self) -> datetime:
        """The instant at which things stand."""
        return self.records.held() or self._clock()

    def stands_at(self) -> datetime | None:
        """The instant at which time stands still; None while it passes."""
        return self.records.held()

    def hold(self, at: datetime | None) -> None:
        """Let time stand still at that instant for everybody who asks, or with None pass again."""
        self.records.hold(at)

    def inventory(self) -> tuple[ObservedNode, ...]:
        at = self.now()
        nodes = dict(self._inventory)
        for fault in self.records.faults():
            if not fault.is_active(at) or fault.node not in nodes:
                continue
            node = nodes[fault.node]
            if fault.kind is SimulatedFaultKind.NODE_UNREACHABLE:
                nodes[node.name] = replace(node, ready=False)
            elif fault.kind is SimulatedFaultKind.CARD_DEAD:
                cards = (
                    replace(card, healthy=card.healthy and card.index != fault.card)
                    for card in node.cards
                )
                nodes[node.name] = replace(node, cards=tuple(cards))
        return tuple(nodes.values())

    def diagnose(self) -> Diagnosis:
        """Silence of nodes; what is wrong with cards is for their exporters to tell."""
        return Diagnosis(
            signs=tuple(
                Sign(
                    node=fault.node,
                    origin=Origin.SILENCE,
                    code=SILENT,
                    level=FaultLevel.ISOLATE,
                    message=fault.words,
                    since=fault.since,
                )
                for fault in self.faults.present()
                if fault.kind is SimulatedFaultKind.NODE_UNREACHABLE
            )
        )

    def isolation(self) -> str:
        return (
            "not isolated: a simulated cluster, where no program runs and every figure is made up"
        )

    def launch(self, launch: Launch) -> None:
        self._check_nodes(launch)
        check_launch(launch, nodes=self._of(launch))
        if self.records.named([launch.name]):
            return
        at = self.now()
        before = self._continued(launch, at=at)
        self.records.add(self._kept(launch, at=at, before=before))

    def observe(self, names: Collection[str]) -> Mapping[str, ObservedLaunch]:
        at, faults = self.now(), self.records.faults()
        return {
            one.record.name: observed_launch(launch_snapshot(one.record, faults, at))
            for one in self.records.named(names)
        }

    def names(self) -> frozenset[str]:
        return self.records.names()

    def stop(self, name: str, *, grace: timedelta) -> None:
        at = self.now()
        self.records.stop(name, at=at, kill_at=at + max(timedelta(), grace) / self._speed)

    def remove(self, name: str) -> None:
        snapshot = self.launch_snapshot(name)
        if snapshot is not None and not snapshot.ended:
            raise ClusterError(f"the launch {name} has not ended: stop it before removing it")
        self.records.remove(name)

    def footprints(self, names: Collection[str]) -> Mapping[str, Bytes]:
        """What is kept of it; a simulated Launch has no working folder."""
        return {one.record.name: Bytes(one.size) for one in self.records.named(names)}

    def log(self, name: str, *, role: str, index: int, offset: int, limit: int) -> LogChunk:
        snapshot = self.launch_snapshot(name)
        known = snapshot is not None and any(
            (location.role, location.index) == (role, index)
            for location in snapshot.record.locations
        )
        if snapshot is None or not known:
            return LogChunk(content=b"", next_offset=max(0, offset), complete=True)
        printed = reports.text(snapshot, role=role, index=index, faults=self.records.faults())
        start = max(0, len(printed) + offset) if offset < 0 else offset
        content = printed[start : start + max(0, limit)]
        following = start + len(content)
        return LogChunk(
            content=content,
            next_offset=following,
            complete=snapshot.ended and following >= len(printed),
        )

    def endpoint(self, name: str, *, role: str, index: int, port: str) -> Endpoint | None:
        for one in self.records.named([name]):
            # A port is assigned when its process starts.
            if self.now() < one.record.ready_at:
                return None
            every = [
                (location.role, location.index, each)
                for location in one.record.locations
                for each in one.ports.get(location.role, ())
            ]
            if (role, index, port) in every:
                number = one.number * _PORTS_OF_A_LAUNCH + every.index((role, index, port))
                return Endpoint(
                    url=f"http://127.0.0.1:{_FIRST_PORT + number % _PORTS}",
                    credential=one.engine_key,
                )
        return None

    def launch_snapshot(self, name: str) -> LaunchSnapshot | None:
        """What that Launch is doing now; None if it is not known."""
        found = self.records.named([name])
        return (
            launch_snapshot(found[0].record, self.records.faults(), self.now()) if found else None
        )

    def _check_nodes(self, launch: Launch) -> None:
        for role in launch.roles:
            for placement in role.placements:
                if placement.node not in self._nodes:
                    raise LaunchRefused(no_node(placement.node, self._nodes))

    def _of(self, launch: Launch) -> Iterator[ObservedNode]:
        names = {placement.node for role in launch.roles for placement in role.placements}
        return (self._inventory[name] for name in sorted(names))

    def _continued(self, launch: Launch, *, at: datetime) -> LaunchSnapshot | None:
        """The Launch before it, as it ended."""
        earlier = self.records.named([launch.continues] if launch.continues else [])
        if not earlier:
            return None
        snapshot = launch_snapshot(earlier[0].record, self.records.faults(), at)
        if not snapshot.ended:
            raise LaunchRefused(
                f"{launch.name} continues {launch.continues}, which has not ended: stop it first"
            )
        return snapshot

    def _kept(self, launch: Launch, *, at: datetime, before: LaunchSnapshot | None) -> Kept:
        try:
            profile = draw_run_profile(launch, chips=self._chips, seed=self._seed, mix=self._mix)
        except run_profiles.RunProfileRefused as refusal:
            raise LaunchRefused(str(refusal)) from refusal
        return kept(launch, profile=profile, speed=self._speed, at=at, before=before)
