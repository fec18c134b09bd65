"""Claims: what a workload requests from the scheduler, and what it holds.

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
from functools import reduce
from typing import Any, Self

from controlplane.domain.common.reasons import Reason, ReasonedValueError
from controlplane.domain.common.resources import Bytes, Millicpu, Resources
from controlplane.domain.common.state_machine import StateMachine

#: Of one replica of a job or a deployment.
MOST_CARDS = 1024


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
    #: It was relocated.
    MOVED = "moved"
    CANCELLED = "cancelled"
    FINISHED = "finished"


CLAIM = StateMachine(
    name="claim",
    initial=ClaimState.PENDING,
    transitions={
        (ClaimState.PENDING, ClaimEvent.ADMIT): ClaimState.ADMITTED,
        (ClaimState.PENDING, ClaimEvent.RELEASE): ClaimState.RELEASED,
        (ClaimState.ADMITTED, ClaimEvent.REVOKE): ClaimState.REVOKING,
        (ClaimState.ADMITTED, ClaimEvent.RELEASE): ClaimState.RELEASED,
        (ClaimState.REVOKING, ClaimEvent.RELEASE): ClaimState.RELEASED,
    },
)


#: Reason of a claim that no cycle has evaluated.
NOT_EVALUATED_REASON = Reason(
    "claim.pending.not_evaluated", "waiting for the next scheduling cycle"
)
#: A whole card, in thousandths.
WHOLE_CARD = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class RoleShape:
    """Identical replicas of a gang."""

    name: str
    #: How many are wanted.
    replicas: int
    #: Cards of one replica, all on one node.
    cards: int
    limits: Resources = Resources()
    #: Thousandths that a replica uses of each of its cards; less than all only of a single card.
    share: int = WHOLE_CARD
    #: How many it can start with; below ``replicas`` the gang is elastic. 0 means all of them.
    least: int = 0

    def __post_init__(self) -> None:
        if self.replicas < 1:
            raise ReasonedValueError(
                "claim.role.replicas_too_few",
                "role {role}: replicas must be at least 1, got {replicas}",
                role=repr(self.name),
                replicas=self.replicas,
            )
        if self.cards < 0:
            raise ReasonedValueError(
                "claim.role.negative_cards",
                "role {role}: cards must not be negative, got {cards}",
                role=repr(self.name),
                cards=self.cards,
            )
        if not 0 < self.share <= WHOLE_CARD:
            raise ReasonedValueError(
                "claim.role.share_out_of_range",
                "role {role}: share must be 1 to 1000, got {share}",
                role=repr(self.name),
                share=self.share,
            )
        if self.share < WHOLE_CARD and self.cards != 1:
            raise ReasonedValueError(
                "claim.role.share_of_several_cards",
                "role {role}: a share of a card requires exactly 1 card, got {cards}",
                role=repr(self.name),
                cards=self.cards,
            )
        if not 0 <= self.least <= self.replicas:
            raise ReasonedValueError(
                "claim.role.invalid_minimum",
                "role {role}: the minimum of {minimum} replicas must be from 0 to {replicas}",
                role=repr(self.name),
                minimum=self.least,
                replicas=self.replicas,
            )

    @property
    def amount(self) -> int:
        """Thousandths of cards that a replica uses, over all of its cards."""
        return self.cards * self.share

    @property
    def fewest(self) -> int:
        """Replicas without which the gang does not start."""
        return self.least or self.replicas

    def as_json(self) -> dict[str, Any]:
        value: dict[str, Any] = {
            "name": self.name,
            "replicas": self.replicas,
            "cards": self.cards,
            "cpu": self.limits.cpu,
            "memory": self.limits.memory,
        }
        if self.share < WHOLE_CARD:
            value["share"] = self.share
        if self.least:
            value["least"] = self.least
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Self:
        return cls(
            name=value["name"],
            replicas=value["replicas"],
            cards=value["cards"],
            limits=Resources(cpu=Millicpu(value["cpu"]), memory=Bytes(value["memory"])),
            share=value.get("share", WHOLE_CARD),
            least=value.get("least", 0),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class GangShape:
    """Everything that must start together or not at all."""

    roles: tuple[RoleShape, ...]

    @property
    def cards(self) -> int:
        return sum(role.replicas * role.cards for role in self.roles)

    @property
    def fewest_cards(self) -> int:
        """Cards without which it does not start; fewer than ``cards`` where a role is elastic."""
        return sum(role.fewest * role.cards for role in self.roles)

    @property
    def amount(self) -> int:
        """Thousandths of cards, over all replicas."""
        return sum(role.replicas * role.amount for role in self.roles)

    @property
    def min_card_thousandths(self) -> int:
        """Thousandths of cards without which it does not start."""
        return sum(role.fewest * role.amount for role in self.roles)

    def as_json(self) -> list[dict[str, Any]]:
        return [role.as_json() for role in self.roles]

    @classmethod
    def from_json(cls, value: Sequence[Mapping[str, Any]]) -> Self:
        return cls(roles=tuple(RoleShape.from_json(role) for role in value))

    @property
    def limits(self) -> dict[str, Resources]:
        """What one replica of each role may use."""
        return {role.name: role.limits for role in self.roles}

    def describe(self) -> str:
        """``"2 × 4 cards and 1 × 0 cards"``."""
        return reduce(_join_shape_texts, map(_role_summary, self.roles))


def _role_summary(role: RoleShape) -> str:
    elastic = role.fewest < role.replicas
    replicas = f"{role.fewest}–{role.replicas}" if elastic else str(role.replicas)
    if role.share < WHOLE_CARD:
        return Reason(
            "claim.shape.card_share",
            "{replicas} × {share} of a card",
            replicas=replicas,
            share=role.share / WHOLE_CARD,
        )
    if role.cards == 1:
        return Reason("claim.shape.card", "{replicas} × 1 card", replicas=replicas)
    return Reason(
        "claim.shape.cards", "{replicas} × {cards} cards", replicas=replicas, cards=role.cards
    )


def _join_shape_texts(first: str, second: str) -> str:
    return Reason("claim.shape.both", "{first} and {second}", first=first, second=second)
