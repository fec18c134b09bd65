"""What the scheduler decided: placements, and a reason for each claim that got none."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class RefusalCode(StrEnum):
    #: No node has enough free cards now.
    NO_FREE_CARDS = "no_free_cards"
    #: Enough are free on a node, but not such as hang together.
    NOT_TOGETHER = "not_together"
    #: No node could ever hold one replica of it.
    NEVER_FITS = "never_fits"
    NO_SUCH_CHIP = "no_such_chip"
    NO_MEMORY = "no_memory"
    QUEUE_CAP = "queue_cap"
    QUEUE_CLOSED = "queue_closed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlacement:
    role: str
    index: int
    node: str
    #: Card uids in index order; empty for a replica without cards.
    cards: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """All replicas of a gang; there is no such thing as part of one."""

    claim: str
    chip: str
    replicas: tuple[ReplicaPlacement, ...]
    #: Why here, in words.
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    claim: str
    code: RefusalCode
    #: Why not now, in words with numbers.
    reason: str
    #: The numbers of the reason, for programs.
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    placements: tuple[Placement, ...] = ()
    refusals: tuple[Refusal, ...] = ()
