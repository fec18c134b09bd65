"""What the supervisor of a replica writes down and everybody else reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Self

from controlplane.adapters.clusters.local.folders import ReplicaFolder, read_json, write_json
from controlplane.adapters.clusters.local.processes import ProcessIdentity
from controlplane.domain.common.resources import Bytes
from controlplane.ports.clusters import ExitCause, ObservedReplica, Phase


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaState:
    phase: Phase
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
    #: Every process of the group when it was last looked at, the first one foremost.
    processes: tuple[ProcessIdentity, ...] = ()
    ports: Mapping[str, int] = field(default_factory=dict)

    @property
    def ended(self) -> bool:
        return self.phase in (Phase.EXITED, Phase.LOST)

    def lost(self, *, message: str, at: float) -> Self:
        return replace(
            self,
            phase=Phase.LOST,
            cause=ExitCause.LOST,
            message=message,
            ended_at=at,
            memory=0,
            processes=(),
        )

    def observed(self, *, role: str, index: int) -> ObservedReplica:
        return ObservedReplica(
            role=role,
            index=index,
            phase=self.phase,
            message=self.message,
            exit_code=self.exit_code,
            cause=self.cause,
            started_at=_instant(self.started_at),
            ended_at=_instant(self.ended_at),
            memory=Bytes(self.memory),
        )

    def write(self, folder: ReplicaFolder) -> None:
        """:raises OSError: if there is no room; the state before stays readable."""
        values = {name: getattr(self, name) for name in self.__slots__}
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
                "phase": Phase(data["phase"]),
                "cause": None if data["cause"] is None else ExitCause(data["cause"]),
                "supervisor": _identity(data["supervisor"]),
                "processes": tuple(_identity(pair) for pair in data["processes"]),
            }
        )


def _identity(pair: Any) -> ProcessIdentity:
    return ProcessIdentity(pid=pair[0], started=pair[1])


def _instant(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
