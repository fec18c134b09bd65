"""What is broken in a simulated cluster, from when until when."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class TroubleKind(StrEnum):
    #: The card is gone: what runs on it fails, and the cluster reports it as not healthy.
    CARD_DEAD = "card_dead"
    #: The card computes, but slowly; nothing reports that by itself.
    CARD_SLOW = "card_slow"
    #: Nobody hears of the node; its processes are given up when that lasts.
    NODE_SILENT = "node_silent"


#: How long a node may be silent before its processes count as lost, in time of the simulation.
GIVEN_UP_AFTER = timedelta(minutes=5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trouble:
    kind: TroubleKind
    node: str
    #: None for the whole node.
    card: int | None = None
    since: datetime
    #: None: it lasts.
    until: datetime | None = None
    #: How many times longer work takes on a slow card.
    slowness: float = 1.0
    #: What is wrong, in words.
    words: str = ""

    def holds(self, at: datetime) -> bool:
        return self.since <= at and (self.until is None or at < self.until)

    @property
    def place(self) -> str:
        return self.node if self.card is None else f"card {self.card} of {self.node}"


def of_kind(kind: TroubleKind, troubles: Iterable[Trouble]) -> list[Trouble]:
    return [trouble for trouble in troubles if trouble.kind is kind]
