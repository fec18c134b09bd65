"""What is free in the fleet, as arrays, with a journal that can be undone.

CPU and memory belong to the node, so its rows (``rows``) carry the same figures. Every change is written into a
journal: a plan tries things and takes them back, which is how reclaim, reservations and forecasts are simulated.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import WHOLE_CARD
from controlplane.domain.scheduling.cards import CardStates
from controlplane.domain.scheduling.plans import ReplicaPlacement
from controlplane.domain.scheduling.rows import cpu_on, memory_on, rows_of, suits
from controlplane.domain.scheduling.shapes import Demand, Shape
from controlplane.domain.scheduling.snapshots import Binding, RunningView, Snapshot
from controlplane.domain.scheduling.topology import Topology

Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]


class Moment(NamedTuple):
    """A point in the fleet's history."""

    #: Entries of the journal.
    length: int
    #: The newest of them; tells histories of the same length apart.
    serial: int
    #: How many of them gave something back.
    frees: int


class Then(NamedTuple):
    """A row at some point."""

    state: int
    cpu: int
    memory: int


class _Entry(NamedTuple):
    row: int
    state: int
    cpu: int
    memory: int
    serial: int
    frees: int


class _Gift(NamedTuple):
    """What one replica gives back to one row."""

    row: int
    #: Of its cards that are of use to others.
    positions: tuple[int, ...]
    share: int
    cpu: int
    memory: int


class _Gifts(NamedTuple):
    running: RunningView
    each: tuple[_Gift, ...]


class _Times(NamedTuple):
    #: The number of changes before it was found.
    changes: int
    times: NDArray[np.int64]


class Fleet:
    """The arrays, one entry a row."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.rows = tuple(rows_of(snapshot))
        self.states = CardStates(width=max((len(row.cards) for row in self.rows), default=0))
        self.topology = Topology([row.node for row in self.rows])
        self.state = np.array(self._first_states(), dtype=np.int32)
        self.cpu = np.array([cpu_on(row.node) for row in self.rows], dtype=np.int64)
        self.memory = np.array([memory_on(row.node) for row in self.rows], dtype=np.int64)
        #: Rows in the order in which they changed; whoever keeps figures about rows reads on from where it was.
        self.touched: list[int] = []
        self._open = np.array([row.node.takes_work for row in self.rows], dtype=np.bool_)
        self._journal: list[_Entry] = []
        self._serial = 0
        self._frees = 0
        self._rows_of: dict[str, list[int]] = {}
        self._nominated: dict[str, dict[int, list[int]]] = {}
        for number, row in enumerate(self.rows):
            self._rows_of.setdefault(row.node.uid, []).append(number)
            for position in row.part.freed:
                for_it = self._nominated.setdefault(row.cards[position].nominated_for, {})
                for_it.setdefault(number, []).append(position)
        self._seats: dict[str, tuple[int, int]] | None = None
        self._suited: dict[tuple[object, ...], Mask] = {}
        self._times: dict[Demand, _Times] = {}
        #: By the identity of the claim, which is kept with them.
        self._gifts: dict[int, _Gifts] = {}

    # -- Questions --

    def eligible(self, demand: Demand) -> Mask:
        """Rows that may bear it and take work now."""
        return self.suited(demand) & self._open

    def suited(self, demand: Demand) -> Mask:
        """Rows that may bear it by their chip, labels and taints, whether or not they take work now."""
        key = demand[1:]
        mask = self._suited.get(key)
        if mask is None:
            mask = np.array([suits(row, demand) for row in self.rows], dtype=np.bool_)
            self._suited[key] = mask
        return mask

    def whole_cards(self) -> NDArray[np.int64]:
        """[rows]: cards of which nobody has anything."""
        whole: NDArray[np.int64] = (self.states.lefts == WHOLE_CARD).sum(axis=1)[self.state]
        return whole

    def whole_cards_on(self, row: int) -> int:
        return self.states.left(int(self.state[row])).count(WHOLE_CARD)

    def most_left(self, chip: str) -> tuple[int, int]:
        """Of the rows of the chip that take work: the most whole cards, and the most that is left of one card."""
        rows = self._open & self.suited(Demand(Shape(1, WHOLE_CARD, 0, 0), chip))
        states = self.state[rows]
        lefts = self.states.lefts[states]
        whole = (lefts == WHOLE_CARD).sum(axis=1)
        return int(whole.max(initial=0)), int(lefts.max(initial=0))

    def row_of(self, node: str, chip: str) -> int | None:
        """The row of those cards; None if the node has none of them."""
        return next(
            (row for row in self._rows_of.get(node, ()) if self.rows[row].chip == chip), None
        )

    def seat_of(self, card: str) -> tuple[int, int] | None:
        """The row of that card, and its position there; None if no node has it."""
        if self._seats is None:
            self._seats = {
                uid: (number, position)
                for number, row in enumerate(self.rows)
                for uid, position in row.part.positions.items()
            }
        return self._seats.get(card)

    @property
    def nominated(self) -> Collection[str]:
        """Uids of the claims that cards were freed for."""
        return self._nominated.keys()

    def fits(self, demand: Demand, rows: Rows) -> Mask:
        """Which of those rows have room for one replica now."""
        shape = demand.shape
        fits = self.suited(demand)[rows] & self._open[rows]
        fits &= self.states.fits(shape)[self.state[rows]]
        if shape.cpu:
            fits &= self.cpu[rows] >= shape.cpu
        if shape.memory:
            fits &= self.memory[rows] >= shape.memory
        return fits

    def fits_on(self, demand: Demand, row: int) -> bool:
        """Whether that row has room for one replica now."""
        shape = demand.shape
        return bool(
            self.suited(demand)[row]
            and self._open[row]
            and self.states.fits(shape)[self.state[row]]
            and (not shape.cpu or self.cpu[row] >= shape.cpu)
            and (not shape.memory or self.memory[row] >= shape.memory)
        )

    def times(self, demand: Demand) -> NDArray[np.int64]:
        """[rows]: how many replicas each row has room for now; not to be written to."""
        known = self._times.get(demand)
        if known is None or known.changes != len(self.touched):
            known = self._times[demand] = _Times(len(self.touched), self._times_now(demand))
        return known.times

    def _times_now(self, demand: Demand) -> NDArray[np.int64]:
        shape = demand.shape
        times = np.full(len(self.rows), np.iinfo(np.int32).max, dtype=np.int64)
        if shape.cards:
            times = self.states.times(self.state, shape).astype(np.int64)
        if shape.cpu:
            times = np.minimum(times, self.cpu // shape.cpu)
        if shape.memory:
            times = np.minimum(times, self.memory // shape.memory)
        return np.where(self.eligible(demand), np.maximum(times, 0), 0)

    def mask(self, nodes: Collection[str]) -> Mask:
        """The rows of those nodes."""
        mask = np.zeros(len(self.rows), dtype=np.bool_)
        for node in nodes:
            mask[self._rows_of[node]] = True
        return mask

    def free_cards(self, chip: str) -> int:
        """Whole cards of the chip that a claim could be given now."""
        mask = self._open & np.array([row.chip == chip for row in self.rows], dtype=np.bool_)
        return int(self.whole_cards()[mask].sum())

    # -- Changes --

    def take(self, row: int, demand: Demand, *, role: str, index: int) -> ReplicaPlacement:
        """Give one replica its cards on that row, which has room for it."""
        found = self.rows[row]
        step = self.states.step(int(self.state[row]), demand.shape)
        if step is None:
            raise ValueError(f"{found.node.name} has no room for {demand}")
        self._set(row, step.to)
        self._promise(found.node.uid, demand.shape, 1)
        uids = tuple(found.cards[position].uid for position in step.positions)
        return ReplicaPlacement(
            role=role,
            index=index,
            node=found.node.uid,
            cards=uids if found.node.binding is Binding.CARD else (),
            count=len(uids),
        )

    def free(self, running: RunningView) -> None:
        """As if the claim had ended: its cards, its CPU and its memory can be had again."""
        known = self._gifts.get(id(running))
        if known is None:
            known = self._gifts[id(running)] = _Gifts(running, self._gifts_of(running))
        for row, positions, share, cpu, memory in known.each:
            self._note(row)
            if positions:
                state = int(self.state[row])
                self.state[row] = self.states.given_back(state, positions, share)
            if cpu or memory:
                self.cpu[row] += cpu
                self.memory[row] += memory
        for replica in running.replicas:
            if replica.count and not replica.cards:
                self._free_any(replica, running)
        self._frees += 1

    def open_for(self, claim: str) -> None:
        """Let cards be had that were freed for that claim, until it is undone."""
        if claim not in self._nominated:
            return
        for row, positions in self._nominated[claim].items():
            left = list(self.states.left(int(self.state[row])))
            for position in positions:
                left[position] = WHOLE_CARD - self.rows[row].cards[position].shared
            self._set(row, self.states.changed(int(self.state[row]), tuple(left)))
        self._frees += 1

    def since(self, mark: int) -> dict[int, Then]:
        """How the rows are now that changed since that point."""
        rows = dict.fromkeys(entry.row for entry in self._journal[mark:])
        return {
            row: Then(int(self.state[row]), int(self.cpu[row]), int(self.memory[row]))
            for row in rows
        }

    def limit(self, then: Mapping[int, Then]) -> None:
        """Let nobody have what would not be free then too: it is kept for whoever has it then."""
        for row, (state, cpu, memory) in then.items():
            left = zip(self.states.left(int(self.state[row])), self.states.left(state), strict=True)
            self._set(row, self.states.changed(state, tuple(map(min, left))))
            self.cpu[row] = min(self.cpu[row], cpu)
            self.memory[row] = min(self.memory[row], memory)

    def moment(self) -> Moment:
        serial = self._journal[-1].serial if self._journal else 0
        return Moment(len(self._journal), serial, self._frees)

    def mark(self) -> int:
        """A point to come back to."""
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Back to that point, exactly."""
        while len(self._journal) > mark:
            entry = self._journal.pop()
            self.state[entry.row] = entry.state
            self.cpu[entry.row] = entry.cpu
            self.memory[entry.row] = entry.memory
            self._frees = entry.frees
            self.touched.append(entry.row)

    def only_shrunk_since(self, moment: Moment) -> bool:
        """Whether all that happened since is that more was taken: what did not fit then does not fit now."""
        length, serial, frees = moment
        if self._frees != frees or len(self._journal) < length:
            return False
        return not length or self._journal[length - 1].serial == serial

    def _set(self, row: int, state: int) -> None:
        self._note(row)
        self.state[row] = state

    def _promise(self, node: str, shape: Shape, replicas: int) -> None:
        if shape.cpu or shape.memory:
            for row in self._rows_of[node]:
                self._note(row)
                self.cpu[row] -= replicas * shape.cpu
                self.memory[row] -= replicas * shape.memory

    def _note(self, row: int) -> None:
        self._serial += 1
        self._journal.append(
            _Entry(
                row,
                int(self.state[row]),
                int(self.cpu[row]),
                int(self.memory[row]),
                self._serial,
                self._frees,
            )
        )
        self.touched.append(row)

    def _gifts_of(self, running: RunningView) -> tuple[_Gift, ...]:
        roles = {role.name: role for role in running.shape.roles}
        gifts: list[_Gift] = []
        for replica in running.replicas:
            shape = Shape.of(roles[replica.role])
            held: dict[int, list[int]] = {}
            rows = self._rows_of.get(replica.node, ())
            for uid in replica.cards:
                seat = self._seat_on(rows, uid)
                if seat is not None and self._usable(*seat):
                    held.setdefault(seat[0], []).append(seat[1])
            if shape.cpu or shape.memory:
                held = {row: [] for row in rows} | held
            for row, positions in held.items():
                # What is promised of a node is told on all of its rows.
                cpu, memory = (shape.cpu, shape.memory) if row in rows else (0, 0)
                gifts.append(_Gift(row, tuple(positions), shape.share, cpu, memory))
        return tuple(gifts)

    def _seat_on(self, rows: Collection[int], card: str) -> tuple[int, int] | None:
        """``seat_of`` for a card that is probably on one of those rows."""
        for row in rows:
            position = self.rows[row].part.positions.get(card)
            if position is not None:
                return row, position
        return self.seat_of(card)

    def _free_any(self, replica: ReplicaPlacement, running: RunningView) -> None:
        """The node's plug-in knows which cards these are; any of the held ones stand for them."""
        row = self.row_of(replica.node, running.chip)
        if row is not None:
            role = next(role for role in running.shape.roles if role.name == replica.role)
            positions = tuple(self._held(row, role.share)[: replica.count])
            self._set(row, self.states.given_back(int(self.state[row]), positions, role.share))

    def _held(self, row: int, share: int) -> list[int]:
        """Cards of which so much is held; those first of which it must have been a share."""
        left = self.states.left(int(self.state[row]))
        held = [
            position
            for position, rest in enumerate(left)
            if rest + share <= WHOLE_CARD and self._usable(row, position)
        ]
        return sorted(held, key=lambda position: -left[position])

    def _usable(self, row: int, position: int) -> bool:
        return self.rows[row].cards[position].state is CardState.USABLE

    def _first_states(self) -> list[int]:
        states = self.states
        #: By the identity of the layout, which its node keeps.
        kinds: dict[int, int] = {}
        numbers = []
        for row in self.rows:
            layout = row.part.layout
            kind = kinds.get(id(layout))
            if kind is None:
                kind = kinds[id(layout)] = states.kind(layout)
            numbers.append(states.number(kind, row.part.left))
        return numbers
