"""Records on disk: the Launch that the control plane hands to its supervisors, and the state each supervisor
writes.
"""

from __future__ import annotations

from collections import abc
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import cache
from types import NoneType
from typing import Any, Self, cast, get_args, get_origin, get_type_hints

from controlplane.adapters.clusters.local.launch_folders import ReplicaFolder, read_json, write_json
from controlplane.domain.common.reasons import reason_as_json, reason_from_json
from controlplane.domain.common.resources import GIB, Bytes
from controlplane.ports.clusters import ExitCause, ObservedReplica, ReplicaPhase
from controlplane.ports.launches import Launch
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

    def to_json(self) -> Any:
        return _to_json(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        return cast(Self, _from_json(cls, data))


def _to_json(value: Any) -> Any:
    """A dataclass by its fields; durations in seconds."""
    if is_dataclass(value):
        return {each.name: _to_json(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, timedelta):
        return value.total_seconds()
    if isinstance(value, Mapping):
        return {name: _to_json(each) for name, each in value.items()}
    if isinstance(value, tuple | list):
        return [_to_json(each) for each in value]
    return value


def _from_json(kind: Any, value: Any) -> Any:
    """The value of that type."""
    arguments, origin = get_args(kind), get_origin(kind)
    if value is not None and NoneType in arguments:
        return _from_json(next(each for each in arguments if each is not NoneType), value)
    if value is None or kind is Any:
        found = value
    elif origin is tuple:
        found = tuple(_from_json(arguments[0], each) for each in value)
    elif origin is abc.Mapping:
        found = {name: _from_json(arguments[1], each) for name, each in value.items()}
    elif kind is timedelta:
        found = timedelta(seconds=value)
    elif is_dataclass(kind):
        found = _dataclass_from_json(kind, value)
    else:
        found = kind(value)
    return found


def _dataclass_from_json(kind: Any, value: Any) -> Any:
    """Fields that an earlier release did not write have their defaults; some it wrote as lists."""
    types = _field_types(kind)
    written = dict(zip(types, value, strict=True)) if isinstance(value, list) else value
    return kind(**{name: _from_json(types[name], each) for name, each in written.items()})


@cache
def _field_types(kind: Any) -> Mapping[str, Any]:
    hints = get_type_hints(kind)
    return {each.name: hints[each.name] for each in fields(kind)}


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
        write_json(folder.state, _to_json(self) | {"message": reason_as_json(self.message)})

    @classmethod
    def read(cls, folder: ReplicaFolder) -> Self | None:
        """The newest state, or None before the supervisor wrote its first."""
        data = read_json(folder.state)
        if data is None:
            return None
        return cast(Self, _from_json(cls, data | {"message": reason_from_json(data["message"])}))


def _optional_datetime_from_timestamp(seconds: float | None) -> datetime | None:
    return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
