"""Claims: what a workload asks of the scheduler, and what it holds.

::

    PENDING ──admit──▶ ADMITTED ──revoke──▶ REVOKING
       └──────release──────┴────release────────┴──▶ RELEASED (with a reason)

Cards stay held until the owner has released, which it does only when the cluster confirmed that its
processes are gone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from controlplane.domain.machines import Machine
from controlplane.domain.resources import Bytes, Millicpu, Resources


class ClaimState(StrEnum):
    PENDING = "pending"
    ADMITTED = "admitted"
    REVOKING = "revoking"
    RELEASED = "released"


class ClaimEvent(StrEnum):
    ADMIT = "admit"
    REVOKE = "revoke"
    RELEASE = "release"


class ReleaseReason(StrEnum):
    PREEMPTED = "preempted"
    FAULT = "fault"
    DRAIN = "drain"
    CANCELLED = "cancelled"
    FINISHED = "finished"


CLAIM = Machine(
    name="claim",
    initial=ClaimState.PENDING,
    arrows={
        (ClaimState.PENDING, ClaimEvent.ADMIT): ClaimState.ADMITTED,
        (ClaimState.PENDING, ClaimEvent.RELEASE): ClaimState.RELEASED,
        (ClaimState.ADMITTED, ClaimEvent.REVOKE): ClaimState.REVOKING,
        (ClaimState.ADMITTED, ClaimEvent.RELEASE): ClaimState.RELEASED,
        (ClaimState.REVOKING, ClaimEvent.RELEASE): ClaimState.RELEASED,
    },
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleShape:
    """Identical replicas of a gang."""

    name: str
    replicas: int
    #: Cards of one replica, all on one node.
    cards: int
    limits: Resources = Resources()

    def __post_init__(self) -> None:
        if self.replicas < 1:
            raise ValueError(
                f"role {self.name!r}: replicas must be at least 1, got {self.replicas}"
            )
        if self.cards < 0:
            raise ValueError(f"role {self.name!r}: cards cannot be negative, got {self.cards}")

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "replicas": self.replicas,
            "cards": self.cards,
            "cpu": self.limits.cpu,
            "memory": self.limits.memory,
        }

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            name=value["name"],
            replicas=value["replicas"],
            cards=value["cards"],
            limits=Resources(cpu=Millicpu(value["cpu"]), memory=Bytes(value["memory"])),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GangShape:
    """Everything that must start together or not at all."""

    roles: tuple[RoleShape, ...]

    @property
    def cards(self) -> int:
        return sum(role.replicas * role.cards for role in self.roles)

    def as_json(self) -> list[dict[str, Any]]:
        return [role.as_json() for role in self.roles]

    @classmethod
    def from_json(cls, value: Sequence[Mapping[str, Any]]) -> Self:
        return cls(roles=tuple(RoleShape.from_json(role) for role in value))

    @property
    def limits(self) -> dict[str, Resources]:
        """What one replica of each role may use."""
        return {role.name: role.limits for role in self.roles}

    def in_words(self) -> str:
        """``"2 × 4 cards and 1 × 0 cards"``."""
        return " and ".join(
            f"{role.replicas} × {role.cards} {'card' if role.cards == 1 else 'cards'}"
            for role in self.roles
        )
