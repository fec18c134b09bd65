"""Records on disk: the Launch that the control plane hands to its supervisors, and the state each supervisor
writes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from controlplane.adapters.clusters.local.launch_folders import ReplicaFolder, read_json, write_json
from controlplane.domain.common.reasons import reason_as_json, reason_from_json
from controlplane.domain.common.resources import GIB, Bytes, Millicpu, Resources
from controlplane.ports.artifacts import BlobDownload
from controlplane.ports.clusters import ExitCause, ObservedReplica, ReplicaPhase
from controlplane.ports.launches import (
    EngineEnvironment,
    InputArtifact,
    Launch,
    LaunchPlacement,
    LaunchRole,
    ReadinessProbe,
)
from ninefold_runtime.weight_cache import downloaded_bytes
from process_supervision.processes import ProcessIdentity


class ProcessIsolation(StrEnum):
    """How the processes of a Launch are isolated from the product."""

    #: An account of its own.
    ACCOUNT = "account"
    #: An account of its own that may read everything, since a folder above is closed to others.
    ACCOUNT_THAT_READS_ALL = "account_that_reads_all"
    #: The product's own account.
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalLaunchRecord:
    """A Launch and everything that was decided for it here."""

    launch: Launch
    #: Unique to this Launch; its processes carry it in their environment.
    instance: str
    separation: ProcessIsolation
    #: The account's user and group id; None without an account of its own.
    account: int | None
    #: The interpreter that jobs run on and that engine environments are created from.
    python: str
    #: Bytes of output kept for each replica.
    log_limit: int
    ports_from: int
    ports_to: int
    artifacts_kind: str
    artifacts_options: Mapping[str, Any] = field(default_factory=dict)
    #: Environment variables that hide the cards of other vendors.
    hidden_devices: Mapping[str, str] = field(default_factory=dict)
    #: Bytes of the weight cache.
    cache_limit: int = 100 * GIB

    def to_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__ if name != "launch"}
        return values | {"launch": _launch_to_json(self.launch)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        values = dict(data)
        launch = _launch_from_json(values.pop("launch"))
        return cls(launch=launch, separation=ProcessIsolation(values.pop("separation")), **values)


def _launch_to_json(launch: Launch) -> dict[str, Any]:
    return {
        "name": launch.name,
        "roles": [_role_to_json(role) for role in launch.roles],
        "files": dict(launch.files),
        "downloads": {digest: [each.url, each.size] for digest, each in launch.downloads.items()},
        "inputs": [{"name": tree.name, "files": dict(tree.files)} for tree in launch.inputs],
        "engine": None if launch.engine is None else asdict(launch.engine),
        "secrets": dict(launch.secrets),
        "run_within": None if launch.run_within is None else launch.run_within.total_seconds(),
        "grace": launch.grace.total_seconds(),
        "continues": launch.continues,
        "labels": dict(launch.labels),
    }


def _role_to_json(role: LaunchRole) -> dict[str, Any]:
    probe = role.probe
    return {
        "name": role.name,
        "argv": list(role.argv),
        "placements": [
            {"node": placement.node, "cards": list(placement.cards)}
            for placement in role.placements
        ],
        "environment": dict(role.environment),
        "ports": list(role.ports),
        "probe": None
        if probe is None
        else {
            "port": probe.port,
            "path": probe.path,
            "start_within": probe.start_within.total_seconds(),
            "period": probe.period.total_seconds(),
            "timeout": probe.timeout.total_seconds(),
            "unready_threshold": probe.unready_threshold,
            "failure_threshold": probe.failure_threshold,
        },
        "limits": {"cpu": role.limits.cpu, "memory": role.limits.memory},
    }


def _launch_from_json(data: Mapping[str, Any]) -> Launch:
    engine, run_within = data["engine"], data["run_within"]
    return Launch(
        name=data["name"],
        roles=tuple(_role_from_json(role) for role in data["roles"]),
        files=data["files"],
        # Absent from records of earlier releases.
        downloads={
            digest: BlobDownload(url=url, size=size)
            for digest, (url, size) in data.get("downloads", {}).items()
        },
        inputs=tuple(
            InputArtifact(name=tree["name"], files=tree["files"]) for tree in data["inputs"]
        ),
        engine=None
        if engine is None
        else EngineEnvironment(
            name=engine["name"], preinstall=tuple(engine["preinstall"]), lock=engine["lock"]
        ),
        secrets=data["secrets"],
        run_within=None if run_within is None else timedelta(seconds=run_within),
        grace=timedelta(seconds=data["grace"]),
        continues=data["continues"],
        labels=data["labels"],
    )


def _probe_from_json(data: Mapping[str, Any]) -> ReadinessProbe:
    probe = ReadinessProbe(
        port=data["port"],
        path=data["path"],
        start_within=timedelta(seconds=data["start_within"]),
    )
    if "period" not in data:
        # A record of an earlier release.
        return probe
    return replace(
        probe,
        period=timedelta(seconds=data["period"]),
        timeout=timedelta(seconds=data["timeout"]),
        unready_threshold=data.get("unready_threshold", probe.unready_threshold),
        failure_threshold=data["failure_threshold"],
    )


def _role_from_json(data: Mapping[str, Any]) -> LaunchRole:
    probe = data["probe"]
    return LaunchRole(
        name=data["name"],
        argv=tuple(data["argv"]),
        placements=tuple(
            LaunchPlacement(node=placement["node"], cards=tuple(placement["cards"]))
            for placement in data["placements"]
        ),
        environment=data["environment"],
        ports=tuple(data["ports"]),
        probe=None if probe is None else _probe_from_json(probe),
        limits=Resources(
            cpu=Millicpu(data["limits"]["cpu"]), memory=Bytes(data["limits"]["memory"])
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalReplicaState:
    phase: ReplicaPhase
    message: str = ""
    exit_code: int | None = None
    cause: ExitCause | None = None
    #: Seconds since the epoch.
    started_at: float | None = None
    ended_at: float | None = None
    #: Bytes held by the process group.
    memory: int = 0
    #: The boot in which the processes below exist.
    boot: str
    supervisor: ProcessIdentity
    #: Every process of the group at the last check, the first process first.
    processes: tuple[ProcessIdentity, ...] = ()
    ports: Mapping[str, int] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.phase in (ReplicaPhase.EXITED, ReplicaPhase.LOST)

    def lost(self, *, message: str, at: float) -> Self:
        return replace(
            self,
            phase=ReplicaPhase.LOST,
            cause=ExitCause.LOST,
            message=message,
            ended_at=at,
            memory=0,
            processes=(),
        )

    def observed(self, *, role: str, index: int) -> ObservedReplica:
        downloaded = downloaded_bytes(self.message)
        return ObservedReplica(
            role=role,
            index=index,
            phase=self.phase,
            message=self.message,
            exit_code=self.exit_code,
            cause=self.cause,
            started_at=_optional_datetime_from_timestamp(self.started_at),
            ended_at=_optional_datetime_from_timestamp(self.ended_at),
            memory=Bytes(self.memory),
            downloaded=None if downloaded is None else Bytes(downloaded),
        )

    def write(self, folder: ReplicaFolder) -> None:
        """:raises OSError: if there is no room; the state before stays readable."""
        values = {name: getattr(self, name) for name in self.__slots__}
        values["message"] = reason_as_json(self.message)
        values["ports"] = dict(self.ports)
        values["supervisor"] = [self.supervisor.pid, self.supervisor.started]
        values["processes"] = [[process.pid, process.started] for process in self.processes]
        write_json(folder.state, values)

    @classmethod
    def read(cls, folder: ReplicaFolder) -> Self | None:
        """The newest state, or None before the supervisor wrote its first."""
        data = read_json(folder.state)
        if data is None:
            return None
        return cls(
            **data
            | {
                "phase": ReplicaPhase(data["phase"]),
                "message": reason_from_json(data["message"]),
                "cause": None if data["cause"] is None else ExitCause(data["cause"]),
                "supervisor": _parse_identity(data["supervisor"]),
                "processes": tuple(_parse_identity(pair) for pair in data["processes"]),
            }
        )


def _parse_identity(pair: Any) -> ProcessIdentity:
    return ProcessIdentity(pid=pair[0], started=pair[1])


def _optional_datetime_from_timestamp(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
