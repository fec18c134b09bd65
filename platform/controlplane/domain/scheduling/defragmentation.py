"""Defragmentation plans: a few relocations of running claims that free capacity, if they are worth their cost.

Placement keeps fragments small, but claims end where they end, and after a day no node may be empty although a
third of the cards are idle. Relocations are tried on the node table and undone: claims with a checkpoint are
released, placed elsewhere by the same placer, and the gain is compared with the cost. A relocation is part of
the plan only if the capacity that it frees, used for as long as ``worth`` says, outweighs the work that it
throws away.

Capacity for one claim (``CapacityMaker``): rows are evacuated one by one, those with the cheapest claims first,
until every replica has a slot. Evacuated claims go where the placer puts them. Where no place is free, a claim
takes the place of another that fits elsewhere and goes first: most of what is left of shared cards is too small
for what has to leave, but not for what is smaller::

    wanted 550      card a  320 470 ··      card b  470 320 ··      card c  650 ···
                                └─────── 2 ────────────▶└─────── 1 ───────────▶
                    card a  320 550 ·       card b  470 470 ·       card c  650 320
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import Parameter, Reason
from controlplane.domain.quotas.claims import WHOLE_CARD, GangShape
from controlplane.domain.scheduling.fragmentation import FragmentationCalculator
from controlplane.domain.scheduling.network_topology import CLUSTER, NODE
from controlplane.domain.scheduling.node_table import Mask, NodeTable
from controlplane.domain.scheduling.placement import PlacementFinder
from controlplane.domain.scheduling.relocation import Relocation, Relocator
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    ReplicaDemand,
    ReplicaPlacement,
    RunningClaim,
    SchedulingSnapshot,
)
from controlplane.domain.scheduling.typical_requests import typical_requests


@dataclass(frozen=True, slots=True, kw_only=True)
class EmptyNodesGoal:
    """Goal: more empty nodes, so that large claims fit."""

    #: So many; then it is enough.
    nodes: int = 1
    #: Only nodes with this chip; empty means any.
    chip: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FitClaimGoal:
    """Goal: room for a pending claim, on cards of that chip."""

    claim: ClaimSnapshot
    chip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReduceFragmentsGoal:
    """Goal: fewer cards that are fragments for typical requests."""


DefragmentationGoal = EmptyNodesGoal | FitClaimGoal | ReduceFragmentsGoal


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragmentationLimits:
    """Limits of the search, and the value of a card."""

    #: Most claims that are moved.
    moves: int = 16
    #: Most places that are tried for each step of the plan.
    tries: int = 64
    #: From the stop of a claim until it goes on elsewhere; all of its cards are idle meanwhile.
    restart: timedelta = timedelta(minutes=3)
    #: How long a card that becomes usable is used before it would have been usable anyway.
    worth: timedelta = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class DefragmentationPlan:
    """Relocations in the order in which they have to run, and their gain."""

    moves: tuple[Relocation, ...]
    #: Nodes on which nothing runs: before, and after.
    whole_before: int
    whole_after: int
    #: Cards that are fragments: before, and after.
    fragments_before: float
    fragments_after: float
    #: Card-seconds that the relocations throw away, and that the freed capacity is worth.
    cost: float
    gain: float
    #: The expected effect, or why nothing is relocated, as a message with numbers.
    reason: str
    #: The freed capacity: the cards of the claim, or whole nodes with every card that can be used.
    room: tuple[ReplicaPlacement, ...] = ()


def plan_defragmentation(
    snapshot: SchedulingSnapshot,
    goal: DefragmentationGoal,
    *,
    at: datetime,
    bounds: DefragmentationLimits | None = None,
) -> DefragmentationPlan:
    """Return the relocations that reach the goal at the least cost found; none where nothing is worth it.

    After moves for a claim, "after" is the fleet with that claim in its place.
    """
    search = _PlanSearch(snapshot, at=at, bounds=bounds or DefragmentationLimits())
    match goal:
        case EmptyNodesGoal():
            return search.whole_nodes(goal)
        case FitClaimGoal():
            return search.plan_room_for_claim(goal)
        case ReduceFragmentsGoal():
            return search.fewer_fragments()


class _PlanSearch:
    """A node table on which relocations are tried."""

    def __init__(
        self, snapshot: SchedulingSnapshot, *, at: datetime, bounds: DefragmentationLimits
    ) -> None:
        typical = typical_requests(snapshot)
        self._fleet = NodeTable(snapshot)
        self._placer = PlacementFinder(self._fleet, typical)
        self._fragmentation = FragmentationCalculator(self._fleet, typical)
        self._mover = Relocator(self._placer, snapshot.running, at=at, restart=bounds.restart)
        self._bounds = bounds
        self._worth = bounds.worth.total_seconds()
        self._names = {node.uid: node.name for node in snapshot.nodes}
        (self._nodes,) = self._fleet.topology.between(NODE, NODE)
        #: [nodes]: usable cards, allocated or not; 0 if the node accepts no workloads.
        self._usable = self._nodes.totals(
            np.array(
                [
                    sum(card.state is CardState.USABLE for card in row.cards)
                    if row.node.accepts_workloads
                    else 0
                    for row in self._fleet.rows
                ],
                dtype=np.int64,
            )
        )
        self._whole_before = int(self._empty_nodes().sum())
        self._fragments_before = self._fragmentation_amount()

    # -- Whole nodes --

    def whole_nodes(self, goal: EmptyNodesGoal) -> DefragmentationPlan:
        gain = 0.0
        freed: list[str] = []
        while len(freed) < goal.nodes and (node := self._free_one_node(goal.chip)) is not None:
            gain += float(self._usable[node]) * self._worth
            freed.append(self._nodes.names[node])
        if not freed:
            return self._plan_result(
                "defragmentation.nodes.not_worthwhile",
                "no node can be freed at a cost below its value",
            )
        names = ", ".join(self._names[node] for node in freed)
        room = tuple(map(self._usable_cards_on, freed))
        return self._plan_result(
            "defragmentation.nodes.freed",
            "nodes that would become entirely free: {nodes}",
            nodes=names,
            gain=gain,
            room=room,
        )

    def _usable_cards_on(self, node: str) -> ReplicaPlacement:
        """All cards of the node that can be used."""
        cards = tuple(
            card.uid
            for row in self._fleet.rows
            if row.node.uid == node
            for card in row.cards
            if card.state is CardState.USABLE
        )
        return ReplicaPlacement(role="", index=0, node=node, cards=cards, count=len(cards))

    def _free_one_node(self, chip: str) -> int | None:
        """The node that was emptied for the best net gain; None if none is worth it."""
        evacuable = self._empty_nodes()
        options: list[tuple[float, int, tuple[RunningClaim, ...]]] = []
        for node in np.flatnonzero((self._usable > 0) & ~evacuable).tolist():
            rows = np.flatnonzero(self._nodes.rows(node))
            if chip and chip not in {self._fleet.rows[row].chip for row in rows}:
                continue
            leaving = self._mover.relocatable_on_node(self._nodes.names[node])
            net = self._usable[node] * self._worth - self._mover.cost(leaving)
            if net > 0 and self._is_node_empty_without(leaving, node):
                options.append((-net, node, leaving))
        for _, node, leaving in sorted(options, key=lambda option: option[:2])[
            : self._bounds.tries
        ]:
            avoid = evacuable[self._nodes.domain] | self._nodes.rows(node)
            if self._is_within_move_limit(leaving) and self._mover.move(leaving, avoid=avoid):
                return node
        return None

    def _empty_nodes(self) -> Mask:
        """[nodes]: nothing runs there, and all cards that are not faulty are available."""
        empty = np.array(
            [not self._mover.replicas_on_node[uid] for uid in self._nodes.names], dtype=bool
        )
        whole: Mask = empty & (self._usable > 0) & (self._free_cards_per_node() == self._usable)
        return whole

    def _is_node_empty_without(self, leaving: tuple[RunningClaim, ...], node: int) -> bool:
        uid = self._nodes.names[node]
        left = self._mover.replicas_on_node[uid] - sum(
            replica.node == uid for each in leaving for replica in each.replicas
        )
        return (
            not left
            and self._mover.without(leaving, self._free_cards_per_node)[node] == self._usable[node]
        )

    def _free_cards_per_node(self) -> NDArray[np.int64]:
        """[nodes]: cards that are entirely free."""
        return self._nodes.totals(self._fleet.free_whole_cards())

    # -- Room for a claim --

    def plan_room_for_claim(self, goal: FitClaimGoal) -> DefragmentationPlan:
        mark = self._fleet.mark()
        if self._placer.place(goal.claim, goal.chip) is not None:
            self._fleet.undo(mark)
            return self._plan_result(
                "defragmentation.claim.already_fits",
                "the free capacity is already sufficient for the claim",
            )
        worth = self._worth * goal.claim.shape.fewest_cards
        planner = CapacityPlanner(self._mover, moves=self._bounds.moves, tries=self._bounds.tries)
        seats = planner.make(goal.claim, goal.chip, worth=worth)
        if seats is None:
            return self._plan_result(
                "defragmentation.claim.not_worthwhile",
                "no relocations free the required capacity at a cost below its value",
            )
        asked = goal.claim.shape.describe()
        return self._plan_result(
            "defragmentation.claim.fits",
            "there would be enough free capacity for {shape}",
            shape=asked,
            gain=worth,
            room=seats,
        )

    # -- Fewer fragments --

    def fewer_fragments(self) -> DefragmentationPlan:
        fragments = self._fragments_before
        for each in self._mover.relocatable()[: self._bounds.tries]:
            mark = self._fleet.mark()
            if not (self._is_within_move_limit((each,)) and self._mover.move((each,))):
                continue
            left = self._fragmentation_amount()
            if (fragments - left) * self._worth > self._mover.cost((each,)):
                fragments = left
            else:
                self._mover.undo(mark)
        if not self._mover.moves:
            return self._plan_result(
                "defragmentation.fragments.not_worthwhile",
                "no relocation reduces fragmentation by more than its cost",
            )
        saved = self._fragments_before - fragments
        return self._plan_result(
            "defragmentation.fragments.reduced",
            "the number of fragmented cards would decrease by {cards}",
            cards=f"{saved:.1f}",
            gain=saved * self._worth,
        )

    def _fragmentation_amount(self) -> float:
        accepting = np.array(
            [row.node.accepts_workloads for row in self._fleet.rows], dtype=np.bool_
        )
        return float(self._fragmentation.by_row()[accepting].sum()) / WHOLE_CARD

    # -- What comes of it --

    def _is_within_move_limit(self, leaving: tuple[RunningClaim, ...]) -> bool:
        return len(self._mover.moves) + len(leaving) <= self._bounds.moves

    def _plan_result(
        self,
        code: str,
        template: str,
        /,
        *,
        gain: float = 0.0,
        room: tuple[ReplicaPlacement, ...] = (),
        **params: Parameter,
    ) -> DefragmentationPlan:
        moves = self._mover.moves
        return DefragmentationPlan(
            moves=moves,
            whole_before=self._whole_before,
            whole_after=int(self._empty_nodes().sum()),
            fragments_before=self._fragments_before,
            fragments_after=self._fragmentation_amount(),
            cost=sum(move.cost for move in moves),
            gain=gain,
            reason=Reason(code, template, **params),
            room=room,
        )


class _EvacuationOption(NamedTuple):
    """Claims that would leave a row."""

    #: What that costs for each replica that could sit there then.
    price: float
    row: int
    leaving: tuple[RunningClaim, ...]
    #: Replicas of the claim for which there would be room.
    seats: int


class CapacityPlanner:
    """Frees capacity for a claim with the relocations of a relocator."""

    def __init__(self, mover: Relocator, *, moves: int, tries: int) -> None:
        """:param moves: most relocations in total.
        :param tries: most places that are tried for each step.
        """
        self._mover = mover
        self._placer = mover.placer
        self._fleet = mover.placer.fleet
        self._moves = moves
        self._tries = tries
        #: Seats of the claim, each with the mark of the fleet before it.
        self._steps_by_section: list[tuple[int, ReplicaPlacement]] = []

    def make(
        self, claim: ClaimSnapshot, chip: str, *, worth: float
    ) -> tuple[ReplicaPlacement, ...] | None:
        """Place the claim after the cheapest relocations that free capacity for it; return its replicas.

        None, and nothing is relocated, if there are none that cost less than the placement is worth, in
        card-seconds.
        """
        mark = self._fleet.mark()
        best: tuple[float, Mask] | None = None
        for outside in self._excluded_rows(claim):
            if self._place_gang(claim, chip, outside):
                cost = sum(move.cost for move in self._mover.moves)
                if cost < (worth if best is None else best[0]):
                    best = cost, outside
            self._undo_to_mark(mark)
        if best is None:
            return None
        self._place_gang(claim, chip, best[1])
        return tuple(seat for _, seat in self._steps_by_section)

    def _undo_to_mark(self, mark: int) -> None:
        self._mover.undo(mark)
        self._steps_by_section = [seat for seat in self._steps_by_section if seat[0] < mark]

    def _excluded_rows(self, claim: ClaimSnapshot) -> Iterator[Mask]:
        """For each domain that may hold the whole claim, the rows outside of it."""
        widest = claim.within or CLUSTER
        for level in self._fleet.topology.between(widest, widest):
            for domain in range(min(len(level), self._tries)):
                yield ~level.rows(domain)

    def _place_gang(self, claim: ClaimSnapshot, chip: str, outside: Mask) -> bool:
        """A seat for each replica; where too few are free, the cheapest claims are relocated."""
        for role in sorted(claim.shape.roles, key=lambda role: (-role.cards, -role.share)):
            one = replace(role, replicas=1, least=0)
            replica_claim = replace(claim, shape=GangShape(roles=(one,)), within="", near="")
            placed = 0
            while placed < role.fewest and self._place_replica(replica_claim, chip, outside):
                placed += 1
            if placed < role.fewest:
                demand = ReplicaDemand.of(one, replica_claim, chip)
                if not self._evacuate_node_rows(
                    replica_claim, demand, outside, role.fewest - placed
                ):
                    return False
        return True

    def _place_replica(self, replica_claim: ClaimSnapshot, chip: str, outside: Mask) -> bool:
        mark = self._fleet.mark()
        seats = self._placer.place(replica_claim, chip, avoid=outside)
        self._steps_by_section += [(mark, seat) for seat in seats or ()]
        return seats is not None

    def _evacuate_node_rows(
        self, replica_claim: ClaimSnapshot, demand: ReplicaDemand, outside: Mask, missing: int
    ) -> bool:
        """Whether the rows could be cleared for the placed replicas.

        Relocations to free slots first, which are cheaper than those that displace others.
        """
        options = sorted(
            self._evacuation_options(demand, outside), key=lambda option: (option.price, option.row)
        )
        for swap in (False, True):
            for taken in _sufficient_options(options, missing):
                mark = self._fleet.mark()
                if self._relocate_all(taken, swap=swap) and all(
                    self._place_replica(replica_claim, demand.chip, outside) for _ in range(missing)
                ):
                    return True
                self._undo_to_mark(mark)
        return False

    def _relocate_all(self, options: list[_EvacuationOption], *, swap: bool) -> bool:
        """Whether all of them can be relocated outside of the evacuated nodes."""
        leaving = tuple({each.uid: each for option in options for each in option.leaving}.values())
        cleared = self._fleet.mask([self._fleet.rows[option.row].node.uid for option in options])
        allowed = self._moves - len(self._mover.moves)
        if not swap:
            return len(leaving) <= allowed and self._mover.move(leaving, avoid=cleared)
        return (
            len(leaving) == 1
            and allowed > 1
            and self._mover.relocate_by_swap(leaving[0], avoid=cleared, tries=self._tries)
        )

    def _evacuation_options(self, demand: ReplicaDemand, outside: Mask) -> list[_EvacuationOption]:
        """Rows that could be evacuated, those with the cheapest claims first."""
        rows = [
            (self._mover.cost(relocatable_on_row[:1]), row)
            for row in np.flatnonzero(self._fleet.eligible(demand) & ~outside).tolist()
            if (relocatable_on_row := self._mover.relocatable_on_row(row))
        ]
        options: list[_EvacuationOption] = []
        for _, row in sorted(rows):
            leaving = self._mover.blocking_workloads(
                row, partial(self._replicas_with_room, demand, row)
            )
            if leaving:
                seats = self._mover.without(leaving, partial(self._replicas_with_room, demand, row))
                price = self._mover.cost(leaving) / seats
                options.append(_EvacuationOption(price, row, leaving, seats))
            if len(options) >= self._tries:
                break
        return options

    def _replicas_with_room(self, demand: ReplicaDemand, row: int) -> int:
        """Replicas that the row has room for now."""
        return int(self._fleet.replica_counts(demand)[row])


def _sufficient_options(
    options: list[_EvacuationOption], missing: int
) -> Iterator[list[_EvacuationOption]]:
    """From each option on, as many as are needed to place the missing replicas."""
    for first in range(len(options)):
        taken, seats = [], 0
        for option in options[first:]:
            taken.append(option)
            seats += option.seats
            if seats >= missing:
                yield taken
                break
        else:
            return
