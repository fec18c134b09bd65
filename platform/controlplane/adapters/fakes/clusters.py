"""A cluster in memory: nothing happens in it unless a test, or a dry run, says so.

Launches wait in PREPARING until ``run``; they end by ``finish``, ``lose`` or ``stop``. Time is the
injected clock's alone.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from controlplane.adapters.clusters.launch_validation import check_launch
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.ports.clusters import (
    CheckVerdict,
    ClusterCheck,
    ClusterDiagnosis,
    ClusterError,
    ClusterEvent,
    ClusterObject,
    ClusterUnavailable,
    CredentialRefused,
    ExitCause,
    LaunchRefused,
    LogChunk,
    NodeInspection,
    ObservedCard,
    ObservedLaunch,
    ObservedNode,
    ObservedReplica,
    ReplicaEndpoint,
    ReplicaPhase,
    exit_cause_of_code,
)
from controlplane.ports.launches import Launch

Key = tuple[str, int]


def _system_clock() -> datetime:
    return datetime.now(UTC)


@dataclass(slots=True)
class _FakeLaunch:
    launch: Launch
    replicas: dict[Key, ObservedReplica]
    logs: dict[Key, bytes]
    ports: dict[tuple[str, int, str], int] = field(default_factory=dict)
    kill_at: datetime | None = None
    leftover_bytes: int = 0

    @property
    def ended(self) -> bool:
        return all(replica.ended for replica in self.replicas.values())


@dataclass(slots=True)
class _FakeClusterStatus:
    """Its reported status."""

    version: str = "v0-fake"
    checks: tuple[ClusterCheck, ...] = ()
    objects: dict[str, tuple[ClusterObject, ...]] = field(default_factory=dict)
    events: dict[str, tuple[ClusterEvent, ...]] = field(default_factory=dict)
    nodes: dict[str, NodeInspection] = field(default_factory=dict)
    diagnosis: ClusterDiagnosis = field(default_factory=ClusterDiagnosis)


class FakeCluster:
    """Implements ``controlplane.ports.clusters.ClusterAdapter`` and its optional protocols except watching.

    ``obedient`` processes end when stopped; others are killed after the grace period. With
    ``secret`` it takes only a ``kubeconfig`` in which that word stands. The first word of a kubeconfig is the
    server. ``lacking`` names checks that fail.
    """

    runs_images = True

    def __init__(
        self,
        *,
        node: str = "fake-1",
        cards: int = 4,
        chip: str = "cpu",
        obedient: bool = True,
        clock: Callable[[], datetime] = _system_clock,
        installation: str = "",
        kubeconfig: str = "",
        in_cluster: bool = False,
        namespace: str = "fake",
        secret: str = "",
        control_url: str = "",
        lacking: Sequence[str] = (),
    ) -> None:
        if secret not in kubeconfig:
            raise CredentialRefused("the fake cluster does not know this kubeconfig; give another")
        self.installation = installation
        self._location = {
            "in_cluster": "true" if in_cluster else "false",
            "kubeconfig": next(iter(kubeconfig.split()), ""),
            "namespace": namespace,
        }
        self.control_url = control_url
        self._weight_cache_limit: Bytes | None = None
        self.obedient = obedient
        self._status = _FakeClusterStatus(
            checks=tuple(
                ClusterCheck(
                    name=name,
                    verdict=CheckVerdict.FAILED if name in lacking else CheckVerdict.PASSED,
                    message=f"{name} was looked at",
                    remedy=f"mend {name}" if name in lacking else "",
                )
                for name in sorted({"api", "permissions", *lacking})
            )
        )
        #: Nodes with our taint → the reason.
        self.taints: dict[str, str] = {}
        self._clock = clock
        self._launches: dict[str, _FakeLaunch] = {}
        self._reachable = True
        self._next_port = 20_000
        self._nodes = (
            ObservedNode(
                name=node,
                cards=tuple(ObservedCard(index=index, chip=chip) for index in range(cards)),
                capacity=Resources(cpu=Millicpu(1000 * cards), memory=Bytes(8 * GIB * cards)),
            ),
        )

    def location(self) -> Mapping[str, str]:
        return dict(self._location)

    @property
    def downloads_inputs(self) -> bool:
        return self._weight_cache_limit is not None

    @property
    def weight_cache_limit(self) -> Bytes | None:
        return self._weight_cache_limit

    def inventory(self) -> tuple[ObservedNode, ...]:
        self._check_reachable()
        return self._nodes

    def isolation(self) -> str:
        return "nothing runs here: launches exist in memory only"

    def launch(self, launch: Launch) -> None:
        self._check_reachable()
        check_launch(launch, nodes=self._nodes)
        if launch.name in self._launches:
            return
        earlier = self._launches.get(launch.continues or "")
        if earlier is not None and not earlier.ended:
            raise LaunchRefused(
                f"{launch.name} continues {launch.continues}, which has not ended: stop it first"
            )
        keys = [
            (role.name, index) for role in launch.roles for index in range(len(role.placements))
        ]
        self._launches[launch.name] = _FakeLaunch(
            launch=launch,
            replicas={
                (role, index): ObservedReplica(role=role, index=index, phase=ReplicaPhase.PREPARING)
                for role, index in keys
            },
            logs=dict.fromkeys(keys, b""),
        )

    def observe(self, names: Collection[str]) -> Mapping[str, ObservedLaunch]:
        self._check_reachable()
        self._pass_time()
        return {
            name: ObservedLaunch(
                name=name, replicas=tuple(stored.replicas.values()), labels=stored.launch.labels
            )
            for name in names
            if (stored := self._launches.get(name)) is not None
        }

    def names(self) -> frozenset[str]:
        self._check_reachable()
        return frozenset(self._launches)

    def stop(self, name: str, *, grace: timedelta) -> None:
        self._check_reachable()
        stored = self._launches.get(name)
        if stored is None or stored.kill_at is not None:
            return
        stored.kill_at = self._clock() + grace
        for key, replica in stored.replicas.items():
            if self.obedient or replica.phase is ReplicaPhase.PREPARING:
                self._end_replica(stored, key, cause=ExitCause.STOPPED)
        self._pass_time()

    def remove(self, name: str) -> None:
        self._check_reachable()
        self._pass_time()
        stored = self._launches.get(name)
        if stored is not None and not stored.ended:
            raise ClusterError(f"the launch {name} has not ended: stop it before removing it")
        self._launches.pop(name, None)

    def disk_usage_by_launch(self, names: Collection[str]) -> Mapping[str, Bytes]:
        """Logs are all that a Launch leaves here, beside what ``leave`` says."""
        self._check_reachable()
        return {
            name: Bytes(stored.leftover_bytes + sum(len(log) for log in stored.logs.values()))
            for name in names
            if (stored := self._launches.get(name)) is not None
        }

    def leave(self, name: str, size: int) -> None:
        """The processes of the Launch have written that many bytes to their working folder."""
        self._launches[name].leftover_bytes = size

    def log(self, name: str, *, role: str, index: int, offset: int, limit: int) -> LogChunk:
        self._check_reachable()
        stored = self._launches.get(name)
        if stored is None or (role, index) not in stored.logs:
            return LogChunk(content=b"", next_offset=max(0, offset), complete=True)
        content = stored.logs[role, index]
        start = max(0, len(content) + offset) if offset < 0 else offset
        chunk = content[start : start + max(0, limit)]
        complete = stored.replicas[role, index].ended and start + len(chunk) >= len(content)
        return LogChunk(content=chunk, next_offset=start + len(chunk), complete=complete)

    def endpoint(self, name: str, *, role: str, index: int, port: str) -> ReplicaEndpoint | None:
        self._check_reachable()
        stored = self._launches.get(name)
        if stored is None or (role, index, port) not in stored.ports:
            return None
        return ReplicaEndpoint(
            url=f"http://127.0.0.1:{stored.ports[role, index, port]}",
            credential=stored.launch.secrets.get("NINEFOLD_ENGINE_KEY", ""),
        )

    def version(self) -> str:
        self._check_reachable()
        return self._status.version

    def checks(self) -> tuple[ClusterCheck, ...]:
        if self._reachable:
            return self._status.checks
        return (
            ClusterCheck(name="api", verdict=CheckVerdict.FAILED, message="it does not answer"),
        )

    def objects(self, name: str) -> tuple[ClusterObject, ...]:
        self._check_reachable()
        return self._status.objects.get(name, ())

    def events(self, name: str) -> tuple[ClusterEvent, ...]:
        self._check_reachable()
        return self._status.events.get(name, ())

    def node(self, name: str) -> NodeInspection | None:
        self._check_reachable()
        return self._status.nodes.get(name)

    def diagnose(self) -> ClusterDiagnosis:
        self._check_reachable()
        return self._status.diagnosis

    def taint_node(self, node: str, reason: str) -> bool:
        self._check_reachable()
        if node not in {each.name for each in self._nodes}:
            return False
        self.taints[node] = reason
        return True

    def untaint_node(self, node: str) -> None:
        self._check_reachable()
        self.taints.pop(node, None)

    def set_diagnosis(self, diagnosis: ClusterDiagnosis) -> None:
        """Set the signals reported from now on."""
        self._status.diagnosis = diagnosis

    def set_checks(self, *checks: ClusterCheck, version: str = "v0-fake") -> None:
        """Set the results of ``checks`` and ``version``."""
        self._status.checks, self._status.version = checks, version

    def set_node(self, view: NodeInspection) -> None:
        self._status.nodes[view.name] = view

    def set_launch_objects(
        self,
        name: str,
        *,
        objects: Sequence[ClusterObject] = (),
        events: Sequence[ClusterEvent] = (),
    ) -> None:
        """Set the objects and events of a Launch, whether or not it was launched here."""
        self._status.objects[name], self._status.events[name] = tuple(objects), tuple(events)

    def set_weight_cache(self, limit: int) -> None:
        """Let its nodes download inputs into a weight cache of that many bytes."""
        self._weight_cache_limit = Bytes(limit)

    def prepare(self, name: str, message: str, *, downloaded: int | None = None) -> None:
        """Say what its preparation is doing, and how many bytes of its inputs it has downloaded."""
        stored = self._launches[name]
        size = None if downloaded is None else Bytes(downloaded)
        for key, replica in stored.replicas.items():
            if replica.phase is ReplicaPhase.PREPARING:
                stored.replicas[key] = replace(replica, message=message, downloaded=size)

    def run(self, name: str, *, ready: bool = True) -> None:
        """Start its processes; ``ready`` answers the probes, where there are any, at once.

        Repeated with another ``ready``, running processes begin or cease to answer them.
        """
        stored = self._launches[name]
        roles = {role.name: role for role in stored.launch.roles}
        for key, replica in stored.replicas.items():
            if replica.ended:
                continue
            role = roles[key[0]]
            for port in role.ports:
                if (*key, port) not in stored.ports:
                    stored.ports[(*key, port)] = self._next_port
                    self._next_port += 1
            stored.replicas[key] = replace(
                replica,
                phase=ReplicaPhase.RUNNING
                if ready or role.probe is None
                else ReplicaPhase.STARTING,
                message="running",
                started_at=replica.started_at or self._clock(),
            )

    def write_log(self, name: str, content: bytes, *, role: str | None = None) -> None:
        """Append to the log of every replica, or of one role's."""
        logs = self._launches[name].logs
        for key in logs:
            if role in (None, key[0]):
                logs[key] += content

    def finish(
        self,
        name: str,
        *,
        exit_code: int = 0,
        cause: ExitCause | None = None,
        message: str = "",
        index: int | None = None,
    ) -> None:
        """End every replica that has not ended, or those of one index.

        ``cause`` follows from the exit code unless given.
        """
        stored = self._launches[name]
        for key in stored.replicas:
            if index not in (None, key[1]):
                continue
            implied = cause or exit_cause_of_code(exit_code)
            self._end_replica(stored, key, cause=implied, exit_code=exit_code, message=message)

    def lose(self, name: str) -> None:
        """As after a restart of its node."""
        stored = self._launches[name]
        for key in stored.replicas:
            self._end_replica(stored, key, cause=ExitCause.LOST, phase=ReplicaPhase.LOST)

    def lose_contact(self) -> None:
        """Let every call of the port fail until ``regain_contact``; processes go on."""
        self._reachable = False

    def regain_contact(self) -> None:
        self._reachable = True

    def launched(self, name: str) -> Launch:
        """The Launch of that name as it was given."""
        return self._launches[name].launch

    def _check_reachable(self) -> None:
        if not self._reachable:
            raise ClusterUnavailable("the fake cluster has lost contact; call regain_contact()")

    def _pass_time(self) -> None:
        for stored in self._launches.values():
            if stored.kill_at is not None and self._clock() >= stored.kill_at:
                for key in stored.replicas:
                    self._end_replica(stored, key, cause=ExitCause.STOPPED, exit_code=137)

    def _end_replica(
        self,
        stored: _FakeLaunch,
        key: Key,
        *,
        cause: ExitCause,
        exit_code: int | None = None,
        message: str = "",
        phase: ReplicaPhase = ReplicaPhase.EXITED,
    ) -> None:
        replica = stored.replicas[key]
        if replica.ended:
            return
        if cause is ExitCause.STOPPED and exit_code is None and replica.started_at is not None:
            exit_code = 143
        stored.replicas[key] = replace(
            replica,
            phase=phase,
            cause=cause,
            exit_code=exit_code,
            message=message or cause.replace("_", " "),
            ended_at=self._clock(),
        )
