"""Relocation of running claims: where a claim would go, and what that costs.

A relocation is a checkpoint, a stop and a start elsewhere. It throws away what was done since the last
checkpoint and keeps all cards of the claim idle while it restarts; that, in card-seconds, is its cost, and it
does not depend on where the claim goes. So relocations can be ordered first and placed afterwards. Claims that
cannot be stopped, or that never saved a checkpoint, stay where they are.

``SingleReplicaClaims`` holds running claims of one replica as arrays, as a thousand nodes have thousands of claims
and each might make room: all are tested at once, by what would be free on their row without them. The answer is
exact except for the geometry of whole cards, which the placer checks.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import NamedTuple, TypeVar

import numpy as np

from controlplane.domain.quotas.claims import WHOLE_CARD, GangShape
from controlplane.domain.scheduling.node_table import Mask, NodeTable
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    ReplicaDemand,
    ReplicaPlacement,
    ReplicaShape,
    RunningClaim,
)

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Relocation:
    claim: str
    chip: str
    source: tuple[ReplicaPlacement, ...]
    #: Free once the moves before this one are done, in the order of the plan.
    target: tuple[ReplicaPlacement, ...]
    #: Work since its last checkpoint, which is done again.
    lost: timedelta
    #: Card-seconds: that work and the restart, on all of its cards.
    cost: float


class Relocator:
    """Relocates claims in a node table, each at most once, and can undo it."""

    def __init__(
        self,
        placer: PlacementFinder,
        running: Iterable[RunningClaim],
        *,
        at: datetime,
        restart: timedelta,
    ) -> None:
        """:param restart: time from the stop of a claim until it continues elsewhere."""
        self.placer = placer
        self._fleet = placer.fleet
        self._at = at
        self._restart = restart
        at_work = tuple(running)
        ranked = sorted(
            (self._relocation_cost(each), each.uid, each) for each in at_work if can_relocate(each)
        )
        self._cost = {uid: cost for cost, uid, _ in ranked}
        #: The cheapest first, as is every list below.
        self._all = tuple(each for _, _, each in ranked)
        #: Replicas on each node, by uid, whether they can be moved or not.
        self.replicas_on_node = Counter(
            replica.node for each in at_work for replica in each.replicas
        )
        self._on: dict[str, list[RunningClaim]] = {}
        for each in self._all:
            for node in dict.fromkeys(replica.node for replica in each.replicas):
                self._on.setdefault(node, []).append(each)
        #: Built when the first swap is tried.
        self._running_replicas: SingleReplicaClaims | None = None
        #: Each with the mark of the fleet before it.
        self._moves: list[tuple[int, Relocation]] = []
        self._moved: set[str] = set()

    @property
    def moves(self) -> tuple[Relocation, ...]:
        return tuple(move for _, move in self._moves)

    def relocatable(self) -> tuple[RunningClaim, ...]:
        """Claims that may still be relocated."""
        return tuple(each for each in self._all if each.uid not in self._moved)

    def relocatable_on_node(self, node: str) -> tuple[RunningClaim, ...]:
        """Claims that may still be relocated from the node of that uid."""
        return tuple(each for each in self._on.get(node, ()) if each.uid not in self._moved)

    def relocatable_on_row(self, row: int) -> tuple[RunningClaim, ...]:
        """Claims that may still be relocated from that row."""
        node, chip = self._fleet.rows[row].node, self._fleet.rows[row].chip
        return tuple(each for each in self.relocatable_on_node(node.uid) if each.chip in ("", chip))

    def cost(self, running: Iterable[RunningClaim]) -> float:
        """Card-seconds that relocating them would cost."""
        return sum(self._cost[each.uid] for each in running)

    def without(self, gone: Iterable[RunningClaim], answer: Callable[[], Answer]) -> Answer:
        """Return the value as if those claims had ended."""
        mark = self._fleet.mark()
        for each in gone:
            self._fleet.free(each)
        found = answer()
        self._fleet.undo(mark)
        return found

    def blocking_workloads(self, row: int, room: Callable[[], int]) -> tuple[RunningClaim, ...]:
        """Return the cheapest claims that block all of that room on the row; none if it would never exist.

        One claim alone if that suffices; otherwise the cheapest together, without those that turn out to be
        unnecessary.
        """
        here = self.relocatable_on_row(row)
        if not self.without(here, room):
            return ()
        for each in here:
            if self.without((each,), room):
                return (each,)
        needed = here
        for each in reversed(here):
            without = tuple(other for other in needed if other is not each)
            if self.without(without, room):
                needed = without
        return needed

    def move(self, running: Sequence[RunningClaim], *, avoid: Mask | None = None) -> bool:
        """Relocate each, one after the other; return False, and relocate none, if one has no target."""
        before = self._fleet.mark()
        for each in running:
            mark = self._fleet.mark()
            self._fleet.free(each)
            target = self.placer.place(_fixed_size_claim(each), each.chip, avoid=avoid)
            if target is None:
                self.undo(before)
                return False
            move = Relocation(
                claim=each.uid,
                chip=each.chip,
                source=each.replicas,
                target=target,
                lost=each.lost_at(self._at),
                cost=self._cost[each.uid],
            )
            self._moves.append((mark, move))
            self._moved.add(each.uid)
            self._update_replica_counts(move.target, instead_of=move.source)
        return True

    def relocate_by_swap(self, running: RunningClaim, *, avoid: Mask, tries: int) -> bool:
        """Relocate it to the place of another claim, which is relocated first; return False if that is impossible.

        :param avoid: rows where neither of them goes; its own have to be among them.
        :param tries: most other claims that are tried, the cheapest first.
        """
        demand = demand_of_workload(running)
        if demand is None:
            return False
        if self._running_replicas is None:
            self._running_replicas = SingleReplicaClaims(self._fleet, self._all)
        mark = self._fleet.mark()
        others = self._running_replicas.replaceable_workloads(
            demand, avoid=avoid, excluded=self._moved
        )
        for row, other in islice(others, tries):
            there = self._fleet.mask([self._fleet.rows[row].node.uid])
            if self.move((other,), avoid=avoid | there) and self.move((running,), avoid=~there):
                return True
            self.undo(mark)
        return False

    def undo(self, mark: int) -> None:
        """Undo every relocation since that mark of the node table."""
        self._fleet.undo(mark)
        while self._moves and self._moves[-1][0] >= mark:
            _, move = self._moves.pop()
            self._moved.remove(move.claim)
            self._update_replica_counts(move.source, instead_of=move.target)

    def _update_replica_counts(
        self, here: Iterable[ReplicaPlacement], *, instead_of: Iterable[ReplicaPlacement]
    ) -> None:
        self.replicas_on_node.update(replica.node for replica in here)
        self.replicas_on_node.subtract(replica.node for replica in instead_of)

    def _relocation_cost(self, running: RunningClaim) -> float:
        return (
            _allocated_card_amount(running)
            * (running.lost_at(self._at) + self._restart).total_seconds()
        )


def can_relocate(running: RunningClaim) -> bool:
    """Return whether it can stop, has a checkpoint, and is not being evicted already."""
    return (
        running.preemptible
        and running.checkpointed_at is not None
        and not running.revoking
        and bool(running.replicas)
    )


def _allocated_card_amount(running: RunningClaim) -> float:
    """Cards that it holds; a share counts as that part of a card."""
    shares = {role.name: role.share for role in running.shape.roles}
    return sum(
        max(replica.count, len(replica.cards)) * shares[replica.role] / WHOLE_CARD
        for replica in running.replicas
    )


def _fixed_size_claim(running: RunningClaim) -> ClaimSnapshot:
    """Return a claim to exactly what it holds: an elastic gang neither grows nor shrinks when relocated."""
    held = {role.name: 0 for role in running.shape.roles}
    for replica in running.replicas:
        held[replica.role] += 1
    roles = tuple(
        replace(role, replicas=held[role.name], least=0)
        for role in running.shape.roles
        if held[role.name]
    )
    held_only = {"shape": GangShape(roles=roles), "chips": (running.chip,)}
    return ClaimSnapshot(
        **{**running.traits(), **held_only, "speeds": {}}, created_at=running.admitted_at
    )


class _RunningReplica(NamedTuple):
    running: RunningClaim
    demand: ReplicaDemand
    row: int
    #: Of its first card in the row.
    position: int


class SingleReplicaClaims:
    """Running claims of one replica, on cards that the scheduler chose."""

    def __init__(self, fleet: NodeTable, running: Iterable[RunningClaim]) -> None:
        """:param running: the order in which they are found."""
        self._fleet = fleet
        self._all = tuple(found for each in running if (found := _running_replica(fleet, each)))
        shapes = [each.demand.shape for each in self._all]
        self._row = np.array([each.row for each in self._all], dtype=np.int64)
        self._position = np.array([each.position for each in self._all], dtype=np.int64)
        self._share = np.array([shape.share for shape in shapes], dtype=np.int64)
        self._cards = np.array([shape.cards for shape in shapes], dtype=np.int64)
        self._cpu = np.array([shape.cpu for shape in shapes], dtype=np.int64)
        self._memory = np.array([shape.memory for shape in shapes], dtype=np.int64)

    def replaceable_workloads(
        self, demand: ReplicaDemand, *, avoid: Mask, excluded: Collection[str]
    ) -> Iterator[tuple[int, RunningClaim]]:
        """Those without whom their row has room for the demand, and who have room elsewhere; with that row.

        :param avoid: rows that they are not on, and to which none of them goes.
        :param excluded: uids of claims that are not relocated.
        """
        somewhere: dict[ReplicaDemand, Mask] = {}
        for number in np.flatnonzero(self._would_fit(demand) & ~avoid[self._row]).tolist():
            running, own, row, _ = self._all[number]
            if running.uid in excluded:
                continue
            if own not in somewhere:
                every = np.arange(len(self._fleet.rows), dtype=np.int64)
                somewhere[own] = self._fleet.fits(own, every) & ~avoid
            if somewhere[own].sum() > somewhere[own][row]:
                yield row, running

    def _would_fit(self, demand: ReplicaDemand) -> Mask:
        """[replicas]: whether the demand would fit on their row without them, but not on the row as it is."""
        fleet, shape, row = self._fleet, demand.shape, self._row
        left = fleet.states.lefts[fleet.state]
        own = left[row, self._position] + self._share
        if shape.shares:
            room = (left.max(axis=1)[row] >= shape.share) | (
                (own >= shape.share) & (self._share < shape.share)
            )
        else:
            given = np.where(self._share == WHOLE_CARD, self._cards, own == WHOLE_CARD)
            room = (left == WHOLE_CARD).sum(axis=1)[row] + given >= shape.cards
        fits: Mask = (
            room
            & fleet.eligible(demand)[row]
            & ((fleet.cpu[row] + self._cpu >= shape.cpu) | (shape.cpu == 0))
            & ((fleet.memory[row] + self._memory >= shape.memory) | (shape.memory == 0))
        )
        return fits


def demand_of_workload(running: RunningClaim) -> ReplicaDemand | None:
    """Return the demand of its only replica; None if it has more than one."""
    if len(running.replicas) != 1:
        return None
    roles = {role.name: role for role in running.shape.roles}
    role = roles[running.replicas[0].role]
    selector = tuple(sorted(running.selector.items()))
    chip = running.chip if role.cards else ""
    return ReplicaDemand(ReplicaShape.of(role), chip, selector)


def _running_replica(fleet: NodeTable, running: RunningClaim) -> _RunningReplica | None:
    demand = demand_of_workload(running)
    if demand is None or not running.replicas[0].cards:
        return None
    seat = fleet.locate_card(running.replicas[0].cards[0])
    return None if seat is None else _RunningReplica(running, demand, *seat)
