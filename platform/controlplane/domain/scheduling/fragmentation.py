"""How much of a node nobody can use, and how a placement changes that.

What is left of a node is a *fragment* for a request that it cannot serve: all of it where the request does not
fit, and where it does, the shares that are too small for it. The fragmentation of a node is that amount, averaged
over the requests that people make. A request goes where it adds least: the *gradient*. (Weng et al., "Beware of
Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient Descent", USENIX ATC 2023.) Whole cards
count as they hang together: four free cards across two rings are a fragment to those who need four in a ring.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.claims import WHOLE_CARD
from controlplane.domain.scheduling.fleet import Fleet, Rows
from controlplane.domain.scheduling.shapes import Demand, Typical

Amounts = NDArray[np.float64]


class Fragmentation:
    """Fragments of the nodes of a fleet, against the requests that are typical of it."""

    def __init__(self, fleet: Fleet, typical: Sequence[Typical]) -> None:
        self._fleet = fleet
        self._typical = tuple(typical)
        #: Whole numbers, as amounts are: their products and sums are exact, in whatever order they are added up.
        self._weights = np.array([each.weight for each in typical], dtype=np.float64)
        self._weight = max(1, sum(each.weight for each in typical))
        self._cpu = _asked(each.shape.cpu for each in typical)
        self._memory = _asked(each.shape.memory for each in typical)
        #: Whether each of the requests takes the chip.
        self._takers = {
            chip: tuple(chip in each.chips for each in typical)
            for chip in {row.chip for row in fleet.rows}
        }
        #: [rows, typical]: whether the row has a chip that the request takes.
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

    def gradient(self, demand: Demand, rows: Rows) -> Amounts:
        """Thousandths of a card that serving the demand adds to the fragments of each of those rows.

        Every row has to have room for it.
        """
        if not self._typical:
            return np.zeros(len(rows))
        fleet = self._fleet
        state, cpu, memory = fleet.state[rows], fleet.cpu[rows], fleet.memory[rows]
        after = fleet.states.after(state, demand.shape)
        self._learn()
        before = self._amounts(rows, state, cpu, memory)
        shape = demand.shape
        then = self._amounts(rows, after, cpu - shape.cpu, memory - shape.memory)
        added: Amounts = (then - before) / self._weight
        return added

    def gradient_on(self, demand: Demand, row: int) -> float:
        """``gradient`` for one row, to the last digit, in a tenth of the time."""
        fleet, shape = self._fleet, demand.shape
        state, cpu, memory = int(fleet.state[row]), int(fleet.cpu[row]), int(fleet.memory[row])
        step = fleet.states.step(state, shape)
        if step is None:
            raise ValueError(f"{fleet.rows[row].node.name} has no room for {demand}")
        self._learn()
        takers = self._takers[fleet.rows[row].chip]
        then = self._amount(takers, step.to, cpu - shape.cpu, memory - shape.memory)
        return (then - self._amount(takers, state, cpu, memory)) / self._weight

    def _amount(self, takers: Sequence[bool], state: int, cpu: int, memory: int) -> float:
        """What of that state each request cannot use, times its weight."""
        everything, total = float(self._all[state]), 0.0
        for takes, (weight, least_cpu, least_memory), unfit in zip(
            takers, self._asked, self._unfit[state].tolist(), strict=True
        ):
            served = takes and cpu >= least_cpu and memory >= least_memory
            total += weight * (unfit if served else everything)
        return total

    def total(self) -> float:
        """Thousandths of cards that are fragments now, in the whole fleet."""
        return float(self.by_row().sum())

    def by_row(self) -> Amounts:
        """[rows]: thousandths of cards that are fragments now."""
        fragments: Amounts = self._now() @ self._weights / self._weight
        return fragments

    def to_takers(self) -> Amounts:
        """[rows]: the same against those requests alone that take the row's chip; 0 where none does.

        To a request for another chip every card of a row is a fragment: right for a gradient, which compares
        rows, and nothing to show to people, who know that a processor serves no request for a GPU.
        """
        weights = self._suits * self._weights
        taken = weights.sum(axis=1)
        found: Amounts = (self._now() * weights).sum(axis=1) / np.where(taken > 0, taken, 1.0)
        return found

    def _now(self) -> Amounts:
        """[rows, typical]: of the fleet as it is."""
        fleet = self._fleet
        self._learn()
        rows = np.arange(len(fleet.rows), dtype=np.int64)
        return self._each(rows, fleet.state, fleet.cpu, fleet.memory)

    def _amounts(
        self,
        rows: Rows,
        state: NDArray[np.int32],
        cpu: NDArray[np.int64],
        memory: NDArray[np.int64],
    ) -> Amounts:
        """[rows]: what each request cannot use, times its weight."""
        return self._each(rows, state, cpu, memory) @ self._weights

    def _each(
        self,
        rows: Rows,
        state: NDArray[np.int32],
        cpu: NDArray[np.int64],
        memory: NDArray[np.int64],
    ) -> Amounts:
        """[rows, typical]."""
        served = self._suits[rows] & (cpu[:, None] >= self._cpu) & (memory[:, None] >= self._memory)
        amounts: Amounts = np.where(served, self._unfit[state], self._all[state][:, None])
        return amounts

    def _learn(self) -> None:
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
            for share in {_share(each) for each in self._typical}
        }
        for column, typical in enumerate(self._typical):
            fits = states.fits(typical.shape)[known:count]
            self._unfit[known:count, column] = np.where(
                fits, too_small[_share(typical)], everything
            )
        self._known = count


def _share(typical: Typical) -> int:
    """Thousandths of a card of which the request can make use."""
    return typical.shape.share if typical.shape.shares else WHOLE_CARD


def _asked(amounts: Iterable[int]) -> NDArray[np.int64]:
    """The least that has to be left for each; who asks for none does not mind if too much was promised."""
    least = np.iinfo(np.int64).min
    return np.array([amount or least for amount in amounts], dtype=np.int64)
