"""What the fleet could hold if nobody held anything and all of it worked: what does not fit then never will."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.claims import WHOLE_CARD
from controlplane.domain.scheduling.fleet import Fleet, Mask
from controlplane.domain.scheduling.rows import ENDLESS
from controlplane.domain.scheduling.shapes import Demand
from controlplane.domain.scheduling.snapshots import ClaimView
from controlplane.domain.scheduling.topology import CLUSTER


class Capacity:
    """The rows of a fleet as if each were empty."""

    def __init__(self, fleet: Fleet) -> None:
        self._fleet = fleet
        nodes = [row.node for row in fleet.rows]
        self._state = np.array(
            [
                fleet.states.changed(int(state), (WHOLE_CARD,) * len(row.cards))
                for state, row in zip(fleet.state, fleet.rows, strict=True)
            ],
            dtype=np.int32,
        )
        #: [rows], in bytes.
        self.memory = np.array([node.capacity.memory for node in nodes], dtype=np.int64)
        #: [rows], in thousandths of a core.
        self.cpu = np.array(
            [node.capacity.cpu if node.owns_cpu else ENDLESS for node in nodes], dtype=np.int64
        )

        self._beside: dict[Hashable, NDArray[np.int64]] = {}

    def times(self, demand: Demand) -> NDArray[np.int64]:
        """[rows]: how many replicas each would have room for."""
        shape = demand.shape
        times = self.beside(demand)
        if shape.cpu:
            times = np.minimum(times, self.cpu // shape.cpu)
        if shape.memory:
            times = np.minimum(times, self.memory // shape.memory)
        return times

    def beside(self, demand: Demand) -> NDArray[np.int64]:
        """[rows]: how many each would have cards for, whatever else they ask for; not to be written to."""
        key = demand.shape.cards, demand.shape.share, demand[1:]
        times = self._beside.get(key)
        if times is None:
            times = self._beside[key] = self._beside_now(demand)
        return times

    def _beside_now(self, demand: Demand) -> NDArray[np.int64]:
        times = np.full(len(self._state), np.iinfo(np.int32).max, dtype=np.int64)
        if demand.shape.cards:
            times = self._fleet.states.times(self._state, demand.shape).astype(np.int64)
        return np.where(self._fleet.suited(demand), times, 0)

    def replicas(self, claim: ClaimView, chip: str, *, avoid: Mask | None = None) -> int:
        """The most of its replicas that one domain would have room for, each role by itself.

        :param avoid: rows that are kept for somebody else.
        """
        outer = claim.within or CLUSTER
        best = 0
        for level in self._fleet.topology.between(outer, outer):
            room = np.zeros(len(level), dtype=np.int64)
            for role in claim.shape.roles:
                times = np.minimum(self.times(Demand.of(role, claim, chip)), role.fewest)
                if avoid is not None:
                    times = np.where(avoid, 0, times)
                room += np.minimum(level.totals(times), role.fewest)
            best = max(best, int(room.max(initial=0)))
        return best
