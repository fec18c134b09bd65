"""Free capacity of the fleet as arrays, with a journal that can be undone.

A *row* is the cards of one chip on one node; a node with two chips has two rows, one without cards has one. CPU
and memory belong to the node, so all of its rows carry the same amounts. Every change is written to the
journal: a plan tries changes and undoes them, which is how preemption, reservations and forecasts are simulated.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.scheduling.card_states import CardStates
from controlplane.domain.scheduling.network_topology import CLUSTER, NetworkTopology
from controlplane.domain.scheduling.snapshots import (
    CardSelection,
    CardSnapshot,
    ClaimSnapshot,
    NodeChipCards,
    NodeSnapshot,
    ReplicaDemand,
    ReplicaPlacement,
    ReplicaShape,
    RunningClaim,
    SchedulingSnapshot,
)

#: Cores of a node on which CPU is shared rather than owned.
ENDLESS = 1 << 62


class NodeTableRow(NamedTuple):
    """Cards of one chip on one node, allocated together."""

    node: NodeSnapshot
    chip: str
    #: In index order.
    cards: tuple[CardSnapshot, ...]
    part: NodeChipCards


def node_table_rows(snapshot: SchedulingSnapshot) -> list[NodeTableRow]:
    """Return the rows in the order of the snapshot's nodes."""
    return [
        NodeTableRow(node, part.chip, part.cards, part)
        for node in snapshot.nodes
        for part in node.parts
    ]


def free_cpu_on(node: NodeSnapshot) -> int:
    """Thousandths of a core that are not allocated; below 0 where too much is."""
    return node.capacity.cpu - node.allocated.cpu if node.owns_cpu else ENDLESS


def free_memory_on(node: NodeSnapshot) -> int:
    """Bytes that are not allocated; below 0 where too much is."""
    return node.capacity.memory - node.allocated.memory


def row_matches(row: NodeTableRow, demand: ReplicaDemand) -> bool:
    """Return whether the row may run the demand by its chip and labels."""
    return demand.chip in ("", row.chip) and all(
        row.node.labels.get(name) == value for name, value in demand.selector
    )


Mask = NDArray[np.bool_]
Rows = NDArray[np.int64]


class JournalPosition(NamedTuple):
    """A position in the journal."""

    #: Entries of the journal.
    length: int
    #: The newest entry, which distinguishes histories of equal length.
    serial: int
    #: Number of entries that released something.
    frees: int


class RowState(NamedTuple):
    """A row at some position of the journal."""

    state: int
    cpu: int
    memory: int


class _JournalEntry(NamedTuple):
    row: int
    state: int
    cpu: int
    memory: int
    serial: int
    frees: int


class _Release(NamedTuple):
    """What releasing one replica returns to one row."""

    row: int
    #: Of its cards that are of use to others.
    positions: tuple[int, ...]
    share: int
    cpu: int
    memory: int


class _ClaimReleases(NamedTuple):
    running: RunningClaim
    each: tuple[_Release, ...]


class _CachedReplicaCounts(NamedTuple):
    #: The number of changes before it was found.
    changes: int
    replica_counts: NDArray[np.int64]


class NodeTable:
    """The arrays, one entry per row."""

    def __init__(self, snapshot: SchedulingSnapshot) -> None:
        self.rows = tuple(node_table_rows(snapshot))
        self.states = CardStates(width=max((len(row.cards) for row in self.rows), default=0))
        self.topology = NetworkTopology([row.node for row in self.rows])
        self.state = np.array(self._initial_row_states(), dtype=np.int32)
        self.cpu = np.array([free_cpu_on(row.node) for row in self.rows], dtype=np.int64)
        self.memory = np.array([free_memory_on(row.node) for row in self.rows], dtype=np.int64)
        #: Rows in the order in which they changed; caches of row values continue from their last position.
        self.changed_rows: list[int] = []
        self._schedulable = np.array(
            [row.node.accepts_workloads for row in self.rows], dtype=np.bool_
        )
        self._journal: list[_JournalEntry] = []
        self._serial = 0
        self._frees = 0
        self._rows_of: dict[str, list[int]] = {}
        self._nominated: dict[str, dict[int, list[int]]] = {}
        for number, row in enumerate(self.rows):
            self._rows_of.setdefault(row.node.uid, []).append(number)
            for position in row.part.nominated:
                for_it = self._nominated.setdefault(row.cards[position].nominated_for, {})
                for_it.setdefault(number, []).append(position)
        self._card_locations: dict[str, tuple[int, int]] | None = None
        self._matching: dict[tuple[object, ...], Mask] = {}
        self._replica_counts: dict[ReplicaDemand, _CachedReplicaCounts] = {}
        #: By the identity of the claim, which is kept with them.
        self._releases: dict[int, _ClaimReleases] = {}

    # -- Questions --

    def eligible(self, demand: ReplicaDemand) -> Mask:
        """Return the rows that match the demand and accept workloads now."""
        return self.matching(demand) & self._schedulable

    def matching(self, demand: ReplicaDemand) -> Mask:
        """Return the rows that match by chip and labels, whether or not they accept workloads now."""
        key = demand[1:]
        mask = self._matching.get(key)
        if mask is None:
            mask = np.array([row_matches(row, demand) for row in self.rows], dtype=np.bool_)
            self._matching[key] = mask
        return mask

    def free_whole_cards(self) -> NDArray[np.int64]:
        """[rows]: cards that are entirely free."""
        whole: NDArray[np.int64] = (self.states.lefts == WHOLE_CARD).sum(axis=1)[self.state]
        return whole

    def whole_cards_on(self, row: int) -> int:
        return self.states.left(int(self.state[row])).count(WHOLE_CARD)

    def largest_free_capacity(self, chip: str) -> tuple[int, int]:
        """Of the rows of the chip that accept workloads: the maximum of whole free cards, and of free
        thousandths of one card.
        """
        rows = self._schedulable & self.matching(
            ReplicaDemand(ReplicaShape(1, WHOLE_CARD, 0, 0), chip)
        )
        states = self.state[rows]
        lefts = self.states.lefts[states]
        whole = (lefts == WHOLE_CARD).sum(axis=1)
        return int(whole.max(initial=0)), int(lefts.max(initial=0))

    def row_of(self, node: str, chip: str) -> int | None:
        """The row of those cards; None if the node has none of them."""
        return next(
            (row for row in self._rows_of.get(node, ()) if self.rows[row].chip == chip), None
        )

    def locate_card(self, card: str) -> tuple[int, int] | None:
        """Return the row of that card and its position there; None if no node has it."""
        if self._card_locations is None:
            self._card_locations = {
                uid: (number, position)
                for number, row in enumerate(self.rows)
                for uid, position in row.part.positions.items()
            }
        return self._card_locations.get(card)

    @property
    def nominated(self) -> Collection[str]:
        """Uids of the claims that cards are nominated for."""
        return self._nominated.keys()

    def fits(self, demand: ReplicaDemand, rows: Rows) -> Mask:
        """Return which of those rows can run one replica now."""
        shape = demand.shape
        fits = self.matching(demand)[rows] & self._schedulable[rows]
        fits &= self.states.fits(shape)[self.state[rows]]
        if shape.cpu:
            fits &= self.cpu[rows] >= shape.cpu
        if shape.memory:
            fits &= self.memory[rows] >= shape.memory
        return fits

    def fits_on(self, demand: ReplicaDemand, row: int) -> bool:
        """Return whether that row can run one replica now."""
        shape = demand.shape
        return bool(
            self.matching(demand)[row]
            and self._schedulable[row]
            and self.states.fits(shape)[self.state[row]]
            and (not shape.cpu or self.cpu[row] >= shape.cpu)
            and (not shape.memory or self.memory[row] >= shape.memory)
        )

    def replica_counts(self, demand: ReplicaDemand) -> NDArray[np.int64]:
        """[rows]: how many replicas each row can run now; read-only."""
        known = self._replica_counts.get(demand)
        if known is None or known.changes != len(self.changed_rows):
            known = self._replica_counts[demand] = _CachedReplicaCounts(
                len(self.changed_rows), self._count_replicas(demand)
            )
        return known.replica_counts

    def _count_replicas(self, demand: ReplicaDemand) -> NDArray[np.int64]:
        shape = demand.shape
        replica_counts = np.full(len(self.rows), np.iinfo(np.int32).max, dtype=np.int64)
        if shape.cards:
            replica_counts = self.states.replica_counts(self.state, shape).astype(np.int64)
        if shape.cpu:
            replica_counts = np.minimum(replica_counts, self.cpu // shape.cpu)
        if shape.memory:
            replica_counts = np.minimum(replica_counts, self.memory // shape.memory)
        return np.where(self.eligible(demand), np.maximum(replica_counts, 0), 0)

    def mask(self, nodes: Collection[str]) -> Mask:
        """The rows of those nodes."""
        mask = np.zeros(len(self.rows), dtype=np.bool_)
        for node in nodes:
            mask[self._rows_of[node]] = True
        return mask

    # -- Changes --

    def take(self, row: int, demand: ReplicaDemand, *, role: str, index: int) -> ReplicaPlacement:
        """Give one replica its cards on that row, which has room for it."""
        found = self.rows[row]
        step = self.states.step(int(self.state[row]), demand.shape)
        if step is None:
            raise ReasonedValueError(
                "node.capacity.insufficient",
                "{node} has no free capacity for {demand}",
                node=found.node.name,
                demand=str(demand),
            )
        self._set_state(row, step.to)
        self._update_node_usage(found.node.uid, demand.shape, 1)
        uids = tuple(found.cards[position].uid for position in step.positions)
        return ReplicaPlacement(
            role=role,
            index=index,
            node=found.node.uid,
            cards=uids if found.node.binding is CardSelection.CARD else (),
            count=len(uids),
        )

    def free(self, running: RunningClaim) -> None:
        """Release the claim's cards, CPU and memory, as if it had ended."""
        known = self._releases.get(id(running))
        if known is None:
            known = self._releases[id(running)] = _ClaimReleases(
                running, self._releases_of_claim(running)
            )
        for row, positions, share, cpu, memory in known.each:
            self._record_undo(row)
            if positions:
                state = int(self.state[row])
                self.state[row] = self.states.after_release(state, positions, share)
            if cpu or memory:
                self.cpu[row] += cpu
                self.memory[row] += memory
        for replica in running.replicas:
            if replica.count and not replica.cards:
                self._release_unnamed(replica, running)
        self._frees += 1

    def release_nominated_cards(self, claim: str) -> None:
        """Make cards available that are nominated for that claim, until it is undone."""
        if claim not in self._nominated:
            return
        for row, positions in self._nominated[claim].items():
            left = list(self.states.left(int(self.state[row])))
            for position in positions:
                left[position] = WHOLE_CARD - self.rows[row].cards[position].shared
            self._set_state(row, self.states.changed(int(self.state[row]), tuple(left)))
        self._frees += 1

    def rows_changed_since(self, mark: int) -> dict[int, RowState]:
        """Return the current state of the rows that changed since that mark."""
        rows = dict.fromkeys(entry.row for entry in self._journal[mark:])
        return {
            row: RowState(int(self.state[row]), int(self.cpu[row]), int(self.memory[row]))
            for row in rows
        }

    def limit_free_capacity(self, then: Mapping[int, RowState]) -> None:
        """Keep free only what is free in the given row states too: the rest is reserved for a claim."""
        for row, (state, cpu, memory) in then.items():
            left = zip(self.states.left(int(self.state[row])), self.states.left(state), strict=True)
            self._set_state(row, self.states.changed(state, tuple(map(min, left))))
            self.cpu[row] = min(self.cpu[row], cpu)
            self.memory[row] = min(self.memory[row], memory)

    def moment(self) -> JournalPosition:
        serial = self._journal[-1].serial if self._journal else 0
        return JournalPosition(len(self._journal), serial, self._frees)

    def mark(self) -> int:
        """Return the current length of the journal."""
        return len(self._journal)

    def undo(self, mark: int) -> None:
        """Undo every change since that mark."""
        while len(self._journal) > mark:
            entry = self._journal.pop()
            self.state[entry.row] = entry.state
            self.cpu[entry.row] = entry.cpu
            self.memory[entry.row] = entry.memory
            self._frees = entry.frees
            self.changed_rows.append(entry.row)

    def has_only_allocated_since(self, moment: JournalPosition) -> bool:
        """Return whether only allocations happened since: what did not fit then does not fit now."""
        length, serial, frees = moment
        if self._frees != frees or len(self._journal) < length:
            return False
        return not length or self._journal[length - 1].serial == serial

    def _set_state(self, row: int, state: int) -> None:
        self._record_undo(row)
        self.state[row] = state

    def _update_node_usage(self, node: str, shape: ReplicaShape, replicas: int) -> None:
        if shape.cpu or shape.memory:
            for row in self._rows_of[node]:
                self._record_undo(row)
                self.cpu[row] -= replicas * shape.cpu
                self.memory[row] -= replicas * shape.memory

    def _record_undo(self, row: int) -> None:
        self._serial += 1
        self._journal.append(
            _JournalEntry(
                row,
                int(self.state[row]),
                int(self.cpu[row]),
                int(self.memory[row]),
                self._serial,
                self._frees,
            )
        )
        self.changed_rows.append(row)

    def _releases_of_claim(self, running: RunningClaim) -> tuple[_Release, ...]:
        roles = {role.name: role for role in running.shape.roles}
        releases: list[_Release] = []
        for replica in running.replicas:
            shape = ReplicaShape.of(roles[replica.role])
            held: dict[int, list[int]] = {}
            rows = self._rows_of.get(replica.node, ())
            for uid in replica.cards:
                seat = self._locate_on(rows, uid)
                if seat is not None and self._is_usable(*seat):
                    held.setdefault(seat[0], []).append(seat[1])
            if shape.cpu or shape.memory:
                held = {row: [] for row in rows} | held
            for row, positions in held.items():
                # What is allocated on a node is counted on all of its rows.
                cpu, memory = (shape.cpu, shape.memory) if row in rows else (0, 0)
                releases.append(_Release(row, tuple(positions), shape.share, cpu, memory))
        return tuple(releases)

    def _locate_on(self, rows: Collection[int], card: str) -> tuple[int, int] | None:
        """``locate_card`` for a card that is probably on one of those rows."""
        for row in rows:
            position = self.rows[row].part.positions.get(card)
            if position is not None:
                return row, position
        return self.locate_card(card)

    def _release_unnamed(self, replica: ReplicaPlacement, running: RunningClaim) -> None:
        """The node's plug-in knows which cards these are; any of the allocated ones represent them."""
        row = self.row_of(replica.node, running.chip)
        if row is not None:
            role = next(role for role in running.shape.roles if role.name == replica.role)
            positions = tuple(self._cards_in_use(row, role.share)[: replica.count])
            self._set_state(
                row, self.states.after_release(int(self.state[row]), positions, role.share)
            )

    def _cards_in_use(self, row: int, share: int) -> list[int]:
        """Cards of which so much is held; those first of which it must have been a share."""
        left = self.states.left(int(self.state[row]))
        held = [
            position
            for position, rest in enumerate(left)
            if rest + share <= WHOLE_CARD and self._is_usable(row, position)
        ]
        return sorted(held, key=lambda position: -left[position])

    def _is_usable(self, row: int, position: int) -> bool:
        return self.rows[row].cards[position].state is CardState.USABLE

    def _initial_row_states(self) -> list[int]:
        states = self.states
        #: By indices and the identity of the geometry, which many nodes share: computing its hash takes long.
        layouts: dict[tuple[tuple[int, ...], int], int] = {}
        numbers = []
        for row in self.rows:
            layout = row.part.layout
            key = layout.indices, id(layout.geometry)
            layout_number = layouts.get(key)
            if layout_number is None:
                layout_number = layouts[key] = states.layout(layout)
            numbers.append(states.number(layout_number, row.part.left))
        return numbers


class EmptyFleetCapacity:
    """The rows as if the fleet were empty and healthy: what does not fit there is never placed."""

    def __init__(self, fleet: NodeTable) -> None:
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

        self._replicas_by_cards: dict[Hashable, NDArray[np.int64]] = {}

    def replica_counts(self, demand: ReplicaDemand) -> NDArray[np.int64]:
        """[rows]: how many replicas each row could run."""
        shape = demand.shape
        replica_counts = self.replicas_by_cards(demand)
        if shape.cpu:
            replica_counts = np.minimum(replica_counts, self.cpu // shape.cpu)
        if shape.memory:
            replica_counts = np.minimum(replica_counts, self.memory // shape.memory)
        return replica_counts

    def replicas_by_cards(self, demand: ReplicaDemand) -> NDArray[np.int64]:
        """[rows]: how many replicas each has cards for, whatever else they request; read-only."""
        key = demand.shape.cards, demand.shape.share, demand[1:]
        replica_counts = self._replicas_by_cards.get(key)
        if replica_counts is None:
            replica_counts = self._replicas_by_cards[key] = self._count_by_cards(demand)
        return replica_counts

    def _count_by_cards(self, demand: ReplicaDemand) -> NDArray[np.int64]:
        replica_counts = np.full(len(self._state), np.iinfo(np.int32).max, dtype=np.int64)
        if demand.shape.cards:
            replica_counts = self._fleet.states.replica_counts(self._state, demand.shape).astype(
                np.int64
            )
        return np.where(self._fleet.matching(demand), replica_counts, 0)

    def replicas(self, claim: ClaimSnapshot, chip: str, *, avoid: Mask | None = None) -> int:
        """The most of its replicas that one domain would have room for, each role by itself.

        :param avoid: rows that are reserved for other claims.
        """
        outer = claim.within or CLUSTER
        best = 0
        for level in self._fleet.topology.between(outer, outer):
            room = np.zeros(len(level), dtype=np.int64)
            for role in claim.shape.roles:
                replica_counts = np.minimum(
                    self.replica_counts(ReplicaDemand.of(role, claim, chip)), role.fewest
                )
                if avoid is not None:
                    replica_counts = np.where(avoid, 0, replica_counts)
                room += np.minimum(level.totals(replica_counts), role.fewest)
            best = max(best, int(room.max(initial=0)))
        return best
