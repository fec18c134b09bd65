"""The simulated cluster: answers from stored launches and the clock; its cards and nodes fail on command."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from controlplane.adapters.clusters.launch_validation import check_launch
from controlplane.adapters.clusters.simulated.launches import (
    build_stored_launch,
    observed_launch,
    observed_node,
    sample_run_profile,
)
from controlplane.adapters.clusters.simulated.store import SimulationStore, StoredLaunch
from controlplane.domain.common.reasons import Reason
from controlplane.domain.common.resources import Bytes
from controlplane.domain.health.faults import FaultLevel, SignalOrigin
from controlplane.domain.simulation import fleets, reports, run_profiles
from controlplane.domain.simulation.launch_lifecycle import (
    LaunchSnapshot,
    SimulatedFault,
    SimulatedFaultKind,
    launch_snapshot,
)
from controlplane.ports import adapter_registry
from controlplane.ports.clusters import (
    NODE_UNREACHABLE,
    ClusterDiagnosis,
    ClusterError,
    ClusterSignal,
    LaunchRefused,
    LogChunk,
    ObservedLaunch,
    ObservedNode,
    ReplicaEndpoint,
)
from controlplane.ports.launches import Launch

#: Ports are numbers in an address here; nothing listens there.
_FIRST_PORT, _PORTS = 20_000, 40_000
_PORTS_OF_A_LAUNCH = 64


def _system_clock() -> datetime:
    return datetime.now(UTC)


class SimulatedCluster:
    """Implements ``controlplane.ports.clusters.ClusterAdapter``, and faults on command.

    ``fleet`` describes its nodes (``controlplane.domain.simulation.fleets``); ``speed`` is how many seconds
    of the simulation pass in one of the clock; ``seed`` decides what jobs come to, ``failing`` how many of the
    trainings fail and ``hours`` how long they usually take. Its state is stored in ``home``.

    :raises ClusterError: if the description is no valid fleet.
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
            raise ClusterError(
                "cluster.simulation.invalid_speed",
                "the speed of a simulation must be above 0, got {speed}",
                speed=speed,
            )
        try:
            self._fleet = fleets.parse_simulated_fleet(fleet, chips=adapter_registry.all_chips())
        except fleets.FleetDescriptionRefused as refusal:
            raise ClusterError(str(refusal)) from refusal
        self._nodes = {node.name: node for node in self._fleet.nodes()}
        self._chips = {name: node.group.chip for name, node in self._nodes.items()}
        self._inventory = {name: observed_node(self._nodes[name]) for name in sorted(self._nodes)}
        self._speed, self._seed = speed, seed
        self._mix = run_profiles.WorkloadDistribution(failing=failing, hours=hours)
        self._clock = clock
        self.records = SimulationStore(Path(home).absolute() / "simulated.sqlite3")
        #: Breaks cards and nodes, and repairs them.
        self.faults = FaultInjector(
            self.records,
            cards={name: node.group.cards for name, node in self._nodes.items()},
            now=self.now,
        )

    def now(self) -> datetime:
        """The current simulated time."""
        return self.records.held() or self._clock()

    def frozen_at(self) -> datetime | None:
        """The time at which the clock is frozen; None while it runs."""
        return self.records.held()

    def hold(self, at: datetime | None) -> None:
        """Freeze the clock at that time for all processes, or with None let it run again."""
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

    def diagnose(self) -> ClusterDiagnosis:
        """Unreachable nodes; card faults are reported by their exporters."""
        return ClusterDiagnosis(
            signals=tuple(
                ClusterSignal(
                    node=fault.node,
                    origin=SignalOrigin.SILENCE,
                    code=NODE_UNREACHABLE,
                    level=FaultLevel.ISOLATE,
                    message=fault.message,
                    since=fault.since,
                )
                for fault in self.faults.present()
                if fault.kind is SimulatedFaultKind.NODE_UNREACHABLE
            )
        )

    def isolation(self) -> str:
        return Reason(
            "cluster.isolation.simulated",
            "not isolated: a simulated cluster runs no programs, and its metrics are simulated",
        )

    def launch(self, launch: Launch) -> None:
        self._check_nodes(launch)
        check_launch(launch, nodes=self._launch_nodes(launch))
        if self.records.named([launch.name]):
            return
        at = self.now()
        before = self._previous_launch(launch, at=at)
        self.records.add(self._new_stored_launch(launch, at=at, before=before))

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
        current = self.launch_snapshot(name)
        if current is not None and not current.ended:
            raise ClusterError(
                "launch.removal.not_ended",
                "the launch {launch} has not ended: stop it before removing it",
                launch=name,
            )
        self.records.remove(name)

    def disk_usage_by_launch(self, names: Collection[str]) -> Mapping[str, Bytes]:
        """Its log; a simulated Launch has no working folder."""
        return {one.record.name: Bytes(one.size) for one in self.records.named(names)}

    def log(self, name: str, *, role: str, index: int, offset: int, limit: int) -> LogChunk:
        current = self.launch_snapshot(name)
        known = current is not None and any(
            (location.role, location.index) == (role, index)
            for location in current.record.locations
        )
        if current is None or not known:
            return LogChunk(content=b"", next_offset=max(0, offset), complete=True)
        printed = reports.simulated_replica_log(
            current, role=role, index=index, faults=self.records.faults()
        )
        start = max(0, len(printed) + offset) if offset < 0 else offset
        content = printed[start : start + max(0, limit)]
        following = start + len(content)
        return LogChunk(
            content=content,
            next_offset=following,
            complete=current.ended and following >= len(printed),
        )

    def endpoint(self, name: str, *, role: str, index: int, port: str) -> ReplicaEndpoint | None:
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
                return ReplicaEndpoint(
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
                    raise LaunchRefused(unknown_node_message(placement.node, self._nodes))

    def _launch_nodes(self, launch: Launch) -> Iterator[ObservedNode]:
        names = {placement.node for role in launch.roles for placement in role.placements}
        return (self._inventory[name] for name in sorted(names))

    def _previous_launch(self, launch: Launch, *, at: datetime) -> LaunchSnapshot | None:
        """The Launch before it, as it ended."""
        earlier = self.records.named([launch.continues] if launch.continues else [])
        if not earlier:
            return None
        current = launch_snapshot(earlier[0].record, self.records.faults(), at)
        if not current.ended:
            raise LaunchRefused(
                "launch.continuation.not_ended",
                "{launch} continues {previous}, which has not ended: stop it first",
                launch=launch.name,
                previous=launch.continues,
            )
        return current

    def _new_stored_launch(
        self, launch: Launch, *, at: datetime, before: LaunchSnapshot | None
    ) -> StoredLaunch:
        try:
            profile = sample_run_profile(launch, chips=self._chips, seed=self._seed, mix=self._mix)
        except run_profiles.RunProfileRefused as refusal:
            raise LaunchRefused(str(refusal)) from refusal
        return build_stored_launch(launch, profile=profile, speed=self._speed, at=at, before=before)


class FaultInjector:
    """Breaks cards and nodes of one cluster. Breaking what is broken already changes nothing."""

    def __init__(
        self, records: SimulationStore, *, cards: Mapping[str, int], now: Callable[[], datetime]
    ) -> None:
        self._records = records
        self._cards = cards
        self._now = now

    def kill_card(
        self, node: str, index: int, *, message: str = "uncorrectable memory error"
    ) -> None:
        """The card is not healthy, and what runs on it fails.

        :raises ClusterError: if there is no such card.
        """
        self._inject_fault(SimulatedFaultKind.CARD_DEAD, node, index, message=message)

    def slow_card(self, node: str, index: int, *, slowness: float) -> None:
        """Work that uses the card takes that many times longer.

        :raises ClusterError: if there is no such card, or it would not be slower.
        """
        if not slowness > 1:
            raise ClusterError(
                "cluster.simulation.invalid_slowness",
                "the slowdown factor of a card must be above 1, got {slowness}",
                slowness=slowness,
            )
        self._inject_fault(
            SimulatedFaultKind.CARD_SLOW,
            node,
            index,
            message=Reason("card.state.throttled", "the card is throttled"),
            slowness=slowness,
        )

    def make_unreachable(self, node: str, *, message: str = "no heartbeat") -> None:
        """The node stops reporting; when that lasts, what runs there is lost.

        :raises ClusterError: if there is no such node.
        """
        self._inject_fault(SimulatedFaultKind.NODE_UNREACHABLE, node, None, message=message)

    def recover(self, node: str, index: int | None = None) -> int:
        """Clear the faults of that card, or of the node and all of its cards; returns how many were cleared.

        :raises ClusterError: if there is no such node or card.
        """
        self._check_target(node, index)
        return self._records.recover(node, card=index, at=self._now())

    def present(self) -> tuple[SimulatedFault, ...]:
        """What is broken now, the oldest first."""
        at = self._now()
        return tuple(fault for fault in self._records.faults() if fault.is_active(at))

    def _inject_fault(
        self,
        kind: SimulatedFaultKind,
        node: str,
        card: int | None,
        *,
        message: str,
        slowness: float = 1.0,
    ) -> None:
        self._check_target(node, card)
        broken = {(one.kind, one.node, one.card) for one in self.present()}
        if (kind, node, card) not in broken:
            self._records.fault(
                SimulatedFault(
                    kind=kind,
                    node=node,
                    card=card,
                    since=self._now(),
                    slowness=slowness,
                    message=message,
                )
            )

    def _check_target(self, node: str, card: int | None) -> None:
        if node not in self._cards:
            raise ClusterError(unknown_node_message(node, self._cards))
        if card is not None and not 0 <= card < self._cards[node]:
            raise ClusterError(
                "cluster.simulation.card_not_found",
                "the cards of node {node} are 0 to {last}, got {card}",
                node=repr(node),
                last=self._cards[node] - 1,
                card=card,
            )


def unknown_node_message(name: str, names: Iterable[str]) -> str:
    """That there is none of that name, and which come near."""
    known = sorted(names)
    near = get_close_matches(name, known, n=3) or known[:3]
    return Reason(
        "cluster.simulation.node_not_found",
        "node {node} does not exist; the cluster has {count} nodes, for example {nodes}",
        node=repr(name),
        count=len(known),
        nodes=", ".join(near),
    )
