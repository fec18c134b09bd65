"""What the scheduler sees: values only, no rows.

::

    Snapshot
      ├─ nodes    in name order, each with its free and busy cards in index order
      ├─ claims   the waiting ones
      └─ queues   limits and what each holds now
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import GangShape
from controlplane.domain.geometry import Geometry, choose
from controlplane.domain.resources import Resources


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    uid: str
    index: int
    chip: str
    state: CardState
    #: The claim that holds it; None when it is free.
    held_by: str | None = None

    @property
    def free(self) -> bool:
        return self.held_by is None and self.state is CardState.USABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    uid: str
    name: str
    cluster: str
    cards: tuple[CardView, ...]
    capacity: Resources
    #: CPU and memory promised to admitted claims.
    promised: Resources = Resources()
    schedulable: bool = True
    #: How its cards hang together, by chip; absent means that any are as good as any others.
    geometries: Mapping[str, Geometry] = field(default_factory=dict)

    def pick(
        self, cards: Sequence[CardView], *, chip: str, count: int
    ) -> tuple[CardView, ...] | None:
        """So many of those cards of it, in index order; None if they cannot be had together."""
        matching = [card for card in cards if card.chip == chip]
        geometry = self.geometries.get(chip)
        if geometry is None:
            return tuple(matching[:count]) if len(matching) >= count else None
        chosen = choose([card.index for card in matching], count, geometry)
        if chosen is None:
            return None
        return tuple(card for card in matching if card.index in chosen)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    uid: str
    name: str
    #: Most cards that its claims may hold at once, by chip; absent means no limit.
    caps: Mapping[str, int] = field(default_factory=dict)
    #: Cards that its claims hold now, by chip.
    used: Mapping[str, int] = field(default_factory=dict)
    #: A closed queue admits nothing.
    open: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    uid: str
    queue: str
    shape: GangShape
    #: Acceptable chips, the preferred first.
    chips: tuple[str, ...]
    #: Larger goes first.
    priority: int
    created_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    nodes: tuple[NodeView, ...]
    claims: tuple[ClaimView, ...]
    queues: Mapping[str, QueueView]
