"""The record of a Launch on disk: what the control plane hands to the supervisors of its replicas."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Self

from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.ports.launches import (
    EngineEnvironment,
    InputTree,
    Launch,
    Placement,
    Probe,
    Role,
)


class Separation(StrEnum):
    """How the processes of a Launch are kept apart from the product."""

    #: An account of its own.
    ACCOUNT = "account"
    #: An account of its own that may read everything, since a folder above is closed to others.
    ACCOUNT_THAT_READS_ALL = "account_that_reads_all"
    #: The product's own account.
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchRecord:
    """A Launch and everything that was decided for it here."""

    launch: Launch
    #: Unique to this Launch; its processes carry it in their environment.
    instance: str
    separation: Separation
    #: The account's user and group id; None without an account of its own.
    account: int | None
    #: The interpreter that jobs run on and that engine environments are made from.
    python: str
    #: Bytes of output kept for each replica.
    log_limit: int
    ports_from: int
    ports_to: int
    artifacts_kind: str
    artifacts_options: Mapping[str, Any] = field(default_factory=dict)
    #: Environment variables that hide the cards of other vendors.
    hidden_devices: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        values = {name: getattr(self, name) for name in self.__slots__ if name != "launch"}
        return values | {"launch": _launch_to_json(self.launch)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        values = dict(data)
        launch = _launch_from_json(values.pop("launch"))
        return cls(launch=launch, separation=Separation(values.pop("separation")), **values)


def _launch_to_json(launch: Launch) -> dict[str, Any]:
    return {
        "name": launch.name,
        "roles": [_role_to_json(role) for role in launch.roles],
        "files": dict(launch.files),
        "inputs": [{"name": tree.name, "files": dict(tree.files)} for tree in launch.inputs],
        "engine": None if launch.engine is None else asdict(launch.engine),
        "secrets": dict(launch.secrets),
        "run_within": None if launch.run_within is None else launch.run_within.total_seconds(),
        "grace": launch.grace.total_seconds(),
        "continues": launch.continues,
        "labels": dict(launch.labels),
    }


def _role_to_json(role: Role) -> dict[str, Any]:
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
        },
        "limits": {"cpu": role.limits.cpu, "memory": role.limits.memory},
    }


def _launch_from_json(data: Mapping[str, Any]) -> Launch:
    engine, run_within = data["engine"], data["run_within"]
    return Launch(
        name=data["name"],
        roles=tuple(_role_from_json(role) for role in data["roles"]),
        files=data["files"],
        inputs=tuple(InputTree(name=tree["name"], files=tree["files"]) for tree in data["inputs"]),
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


def _role_from_json(data: Mapping[str, Any]) -> Role:
    probe = data["probe"]
    return Role(
        name=data["name"],
        argv=tuple(data["argv"]),
        placements=tuple(
            Placement(node=placement["node"], cards=tuple(placement["cards"]))
            for placement in data["placements"]
        ),
        environment=data["environment"],
        ports=tuple(data["ports"]),
        probe=None
        if probe is None
        else Probe(
            port=probe["port"],
            path=probe["path"],
            start_within=timedelta(seconds=probe["start_within"]),
        ),
        limits=Resources(
            cpu=Millicpu(data["limits"]["cpu"]), memory=Bytes(data["limits"]["memory"])
        ),
    )
