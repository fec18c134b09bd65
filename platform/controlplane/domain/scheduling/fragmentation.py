"""Fragmentation: how much of a node's free capacity cannot be used, and how a placement changes that.

What is left of a node is a *fragment* for a request that it cannot serve: all of it where the request does not
fit, and where it does, the shares that are too small for it. The fragmentation of a node is that amount,
averaged over the requests that users make. A request goes where it adds least: the *gradient*. (Weng et al.,
"Beware of Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC
2023.) Whole cards count by their geometry: four free cards across two rings are a fragment for requests that
need four in one ring.

``free_capacity`` reports this per node. A free card is shown as a fragment where most typical requests for its
chip could not be placed on its node: at least half of the node's free cards are fragments by this measure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.scheduling.node_table import NodeTable, Rows
from controlplane.domain.scheduling.snapshots import ReplicaDemand, SchedulingSnapshot
from controlplane.domain.scheduling.typical_requests import TypicalRequest

CardAmounts = NDArray[np.float64]


class FragmentationCalculator:
    """Fragments of the nodes of a fleet, measured against its typical requests."""

    def __init__(self, fleet: NodeTable, typical: Sequence[TypicalRequest]) -> None:
        self._fleet = fleet
        self._typical = tuple(typical)
        #: Whole numbers, as amounts are: their products and sums are exact, in whatever order they are added up.
        self._weights = np.array([each.weight for each in typical], dtype=np.float64)
        self._weight = max(1, sum(each.weight for each in typical))
        self._cpu = _minimum_left(each.shape.cpu for each in typical)
        self._memory = _minimum_left(each.shape.memory for each in typical)
        #: Whether each of the requests accepts the chip.
        self._takers = {
            chip: tuple(chip in each.chips for each in typical)
            for chip in {row.chip for row in fleet.rows}
        }
        #: [rows, typical]: whether the row has a chip that the request accepts.
        self._suits = np.array(
            [self._takers[row.chip] for row in fleet.rows], dtype=np.bool_
        ).reshape(len(fleet.rows), len(typical))
        #: Of each request: its weight, and the CPU and memory without which nothing is left for it.
        self._asked = tuple(
            zip(
                (each.weight for each in typical),
                self._cpu.tolist(),
                self._memory.tolist(),
                strict=True,
            )
        )
        #: [states, typical] and [states]: thousandths of cards, by the state of a row's cards.
        self._unfit = np.zeros((0, len(typical)), dtype=np.float64)
        self._all = np.zeros(0, dtype=np.float64)
        self._known = 0

    def gradient(self, demand: ReplicaDemand, rows: Rows) -> CardAmounts:
        """Thousandths of a card that serving the demand adds to the fragments of each of those rows.

        Every row has to have room for it.
        """
        if not self._typical:
            return np.zeros(len(rows))
        fleet = self._fleet
        state, cpu, memory = fleet.state[rows], fleet.cpu[rows], fleet.memory[rows]
        after = fleet.states.after(state, demand.shape)
        self._evaluate_new_states()
        before = self._row_amounts(rows, state, cpu, memory)
        shape = demand.shape
        then = self._row_amounts(rows, after, cpu - shape.cpu, memory - shape.memory)
        added: CardAmounts = (then - before) / self._weight
        return added

    def added_fragments_on_row(self, demand: ReplicaDemand, row: int) -> float:
        """``gradient`` for one row, to the last digit, in a tenth of the time."""
        fleet, shape = self._fleet, demand.shape
        state, cpu, memory = int(fleet.state[row]), int(fleet.cpu[row]), int(fleet.memory[row])
        step = fleet.states.step(state, shape)
        if step is None:
            raise ReasonedValueError(
                "node.capacity.insufficient",
                "{node} has no free capacity for {demand}",
                node=fleet.rows[row].node.name,
                demand=str(demand),
            )
        self._evaluate_new_states()
        takers = self._takers[fleet.rows[row].chip]
        then = self._unusable_amount(takers, step.to, cpu - shape.cpu, memory - shape.memory)
        return (then - self._unusable_amount(takers, state, cpu, memory)) / self._weight

    def _unusable_amount(self, takers: Sequence[bool], state: int, cpu: int, memory: int) -> float:
        """What of that state each request cannot use, times its weight."""
        everything, total = float(self._all[state]), 0.0
        for eligible, (weight, least_cpu, least_memory), unfit in zip(
            takers, self._asked, self._unfit[state].tolist(), strict=True
        ):
            served = eligible and cpu >= least_cpu and memory >= least_memory
            total += weight * (unfit if served else everything)
        return total

    def total(self) -> float:
        """Thousandths of cards that are fragments now, in the whole fleet."""
        return float(self.by_row().sum())

    def by_row(self) -> CardAmounts:
        """[rows]: thousandths of cards that are fragments now."""
        fragments: CardAmounts = self._current_amounts() @ self._weights / self._weight
        return fragments

    def fragments_for_accepting_requests(self) -> CardAmounts:
        """[rows]: the same for requests that accept the row's chip; 0 if there are none.

        For a request for another chip every card of a row is a fragment: right for a gradient, which compares
        rows, but not for display.
        """
        weights = self._suits * self._weights
        taken = weights.sum(axis=1)
        found: CardAmounts = (self._current_amounts() * weights).sum(axis=1) / np.where(
            taken > 0, taken, 1.0
        )
        return found

    def _current_amounts(self) -> CardAmounts:
        """[rows, typical]: of the fleet as it is."""
        fleet = self._fleet
        self._evaluate_new_states()
        rows = np.arange(len(fleet.rows), dtype=np.int64)
        return self._amounts_per_request(rows, fleet.state, fleet.cpu, fleet.memory)

    def _row_amounts(
        self,
        rows: Rows,
        state: NDArray[np.int32],
        cpu: NDArray[np.int64],
        memory: NDArray[np.int64],
    ) -> CardAmounts:
        """[rows]: what each request cannot use, times its weight."""
        return self._amounts_per_request(rows, state, cpu, memory) @ self._weights

    def _amounts_per_request(
        self,
        rows: Rows,
        state: NDArray[np.int32],
        cpu: NDArray[np.int64],
        memory: NDArray[np.int64],
    ) -> CardAmounts:
        """[rows, typical]."""
        served = self._suits[rows] & (cpu[:, None] >= self._cpu) & (memory[:, None] >= self._memory)
        amounts: CardAmounts = np.where(served, self._unfit[state], self._all[state][:, None])
        return amounts

    def _evaluate_new_states(self) -> None:
        """Work out the states that have come up since the last time."""
        states = self._fleet.states
        known, count = self._known, len(states)
        if known == count:
            return
        if count > len(self._all):
            self._all = np.resize(self._all, 2 * count)
            self._unfit = np.resize(self._unfit, (2 * count, len(self._typical)))
        left = states.lefts[known:count]
        everything = left.sum(axis=1, dtype=np.float64)
        self._all[known:count] = everything
        too_small = {
            share: np.where(left < share, left, 0).sum(axis=1)
            for share in {_usable_share(each) for each in self._typical}
        }
        for column, typical in enumerate(self._typical):
            fits = states.fits(typical.shape)[known:count]
            self._unfit[known:count, column] = np.where(
                fits, too_small[_usable_share(typical)], everything
            )
        self._known = count


def _usable_share(typical: TypicalRequest) -> int:
    """Thousandths of a card of which the request can make use."""
    return typical.shape.share if typical.shape.shares else WHOLE_CARD


def _minimum_left(amounts: Iterable[int]) -> NDArray[np.int64]:
    """The least that has to be left for each; a request for none accepts over-allocation."""
    least = np.iinfo(np.int64).min
    return np.array([amount or least for amount in amounts], dtype=np.int64)


#: A free card is displayed as a fragment if at least this share of the free capacity next to it is one.
MOSTLY = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFreeCapacity:
    #: Cards that could be given now.
    free: int
    #: Of these, fragments; averaged over requests, so rarely a whole number.
    fragments: float
    #: Chips whose free cards here are mostly fragments.
    broken_up: frozenset[str]
    #: Nothing of it is allocated, and it has usable cards.
    whole: bool


def node_free_capacities(
    snapshot: SchedulingSnapshot, typical: Sequence[TypicalRequest]
) -> tuple[NodeFreeCapacity, ...]:
    """Return the free capacity of each node, in the order of the snapshot; claims and queues are not read."""
    fleet = NodeTable(snapshot)
    fragments = (
        FragmentationCalculator(fleet, typical).fragments_for_accepting_requests() / WHOLE_CARD
    )
    free = fleet.free_whole_cards()
    by_node: dict[str, list[int]] = {}
    for number, row in enumerate(fleet.rows):
        by_node.setdefault(row.node.uid, []).append(number)
    mostly = (free > 0) & (fragments >= MOSTLY * np.maximum(free, 1))
    found = []
    for node in snapshot.nodes:
        rows = by_node[node.uid] if node.accepts_workloads else []
        count = sum(int(free[row]) for row in rows)
        sound = sum(card.state is CardState.USABLE for card in node.cards)
        found.append(
            NodeFreeCapacity(
                free=count,
                fragments=sum(float(fragments[row]) for row in rows),
                broken_up=frozenset(fleet.rows[row].chip for row in rows if mostly[row]),
                whole=0 < sound == count
                and not any(card.held_by or card.shared for card in node.cards),
            )
        )
    return tuple(found)
