"""What is free on each node, how much of that is a fragment, and where whole nodes are.

A card is shown as a *fragment* where it is free and yet most of what people typically ask of its chip could not be
had on its node: at least half of the node's free cards are fragments by ``fragmentation``'s measure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import WHOLE_CARD
from controlplane.domain.scheduling.fleet import Fleet
from controlplane.domain.scheduling.fragmentation import Fragmentation
from controlplane.domain.scheduling.shapes import Typical
from controlplane.domain.scheduling.snapshots import Snapshot

#: A free card stands as a fragment where so much of what is free beside it is one.
MOSTLY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """One node."""

    #: Cards that could be given now.
    free: int
    #: Of these, fragments; averaged over requests, so rarely a whole number.
    fragments: float
    #: Chips whose free cards here are mostly fragments.
    broken_up: frozenset[str]
    #: Nobody holds anything of it, and it has cards that can be given.
    whole: bool


def openings(snapshot: Snapshot, typical: Sequence[Typical]) -> tuple[Opening, ...]:
    """For each node, in the order of the snapshot. Of its claims and queues nothing is read."""
    fleet = Fleet(snapshot)
    fragments = Fragmentation(fleet, typical).to_takers() / WHOLE_CARD
    free = fleet.whole_cards()
    by_node: dict[str, list[int]] = {}
    for number, row in enumerate(fleet.rows):
        by_node.setdefault(row.node.uid, []).append(number)
    mostly = (free > 0) & (fragments >= MOSTLY * np.maximum(free, 1))
    found = []
    for node in snapshot.nodes:
        rows = by_node[node.uid] if node.takes_work else []
        count = sum(int(free[row]) for row in rows)
        sound = sum(card.state is CardState.USABLE for card in node.cards)
        found.append(
            Opening(
                free=count,
                fragments=sum(float(fragments[row]) for row in rows),
                broken_up=frozenset(fleet.rows[row].chip for row in rows if mostly[row]),
                whole=0 < sound == count
                and not any(card.held_by or card.shared for card in node.cards),
            )
        )
    return tuple(found)
