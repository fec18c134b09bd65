"""Moving running work: where it would go, and what that costs.

A move is a checkpoint, a stop and a start elsewhere. It throws away what was done since the last checkpoint and
keeps all cards of the claim idle while it restarts; that, in card-seconds, is its cost, and it does not depend on
where the claim goes. So whoever looks for moves can put them in order first and try places afterwards. Work that
cannot be stopped, or that never saved anything, stays where it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from controlplane.domain.claims import WHOLE_CARD, GangShape
from controlplane.domain.scheduling.fleet import Mask
from controlplane.domain.scheduling.placement import Placer
from controlplane.domain.scheduling.plans import ReplicaPlacement
from controlplane.domain.scheduling.residents import Residents, demand_of
from controlplane.domain.scheduling.snapshots import ClaimView, RunningView

Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """A running claim that goes elsewhere, all of it."""

    claim: str
    chip: str
    source: tuple[ReplicaPlacement, ...]
    #: Free once the moves before this one are done, in the order of the plan.
    target: tuple[ReplicaPlacement, ...]
    #: Work since its last checkpoint, which is done again.
    lost: timedelta
    #: Card-seconds: that work and the restart, on all of its cards.
    cost: float


class Mover:
    """Moves claims about in a fleet, each at most once, and can take it back."""

    def __init__(
        self,
        placer: Placer,
        running: Iterable[RunningView],
        *,
        at: datetime,
        restart: timedelta,
    ) -> None:
        """:param restart: from the stop of a claim until it goes on elsewhere."""
        self.placer = placer
        self._fleet = placer.fleet
        self._at = at
        self._restart = restart
        at_work = tuple(running)
        ranked = sorted((self._costs(each), each.uid, each) for each in at_work if can_move(each))
        self._cost = {uid: cost for cost, uid, _ in ranked}
        #: The cheapest first, as is every list below.
        self._all = tuple(each for _, _, each in ranked)
        #: Replicas on each node, by uid, whether they can be moved or not.
        self.standing = Counter(replica.node for each in at_work for replica in each.replicas)
        self._on: dict[str, list[RunningView]] = {}
        for each in self._all:
            for node in dict.fromkeys(replica.node for replica in each.replicas):
                self._on.setdefault(node, []).append(each)
        #: Worked out when somebody has to give way.
        self._residents: Residents | None = None
        #: Each with the mark of the fleet before it.
        self._moves: list[tuple[int, Move]] = []
        self._moved: set[str] = set()

    @property
    def moves(self) -> tuple[Move, ...]:
        return tuple(move for _, move in self._moves)

    def candidates(self) -> tuple[RunningView, ...]:
        """What may still be moved."""
        return tuple(each for each in self._all if each.uid not in self._moved)

    def movable_on(self, node: str) -> tuple[RunningView, ...]:
        """What may still be moved from the node of that uid."""
        return tuple(each for each in self._on.get(node, ()) if each.uid not in self._moved)

    def residents(self, row: int) -> tuple[RunningView, ...]:
        """What may still be moved from that row of the fleet."""
        node, chip = self._fleet.rows[row].node, self._fleet.rows[row].chip
        return tuple(each for each in self.movable_on(node.uid) if each.chip in ("", chip))

    def cost(self, running: Iterable[RunningView]) -> float:
        """Card-seconds that moving them would cost."""
        return sum(self._cost[each.uid] for each in running)

    def without(self, gone: Iterable[RunningView], answer: Callable[[], Answer]) -> Answer:
        """What the answer would be if they had ended."""
        mark = self._fleet.mark()
        for each in gone:
            self._fleet.free(each)
        found = answer()
        self._fleet.undo(mark)
        return found

    def in_the_way(self, row: int, room: Callable[[], int]) -> tuple[RunningView, ...]:
        """The cheapest on that row without which there is any of that room; none if there would never be.

        One alone where one will do; otherwise the cheapest together, less those that turn out not to matter.
        """
        here = self.residents(row)
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

    def move(self, running: Sequence[RunningView], *, avoid: Mask | None = None) -> bool:
        """Each of them to another place, one after the other; False, and nothing is moved, if one has none."""
        before = self._fleet.mark()
        for each in running:
            mark = self._fleet.mark()
            self._fleet.free(each)
            target = self.placer.place(_as_it_stands(each), each.chip, avoid=avoid)
            if target is None:
                self.undo(before)
                return False
            move = Move(
                claim=each.uid,
                chip=each.chip,
                source=each.replicas,
                target=target,
                lost=each.lost_at(self._at),
                cost=self._cost[each.uid],
            )
            self._moves.append((mark, move))
            self._moved.add(each.uid)
            self._stand(move.target, instead_of=move.source)
        return True

    def move_in_turn(self, running: RunningView, *, avoid: Mask, tries: int) -> bool:
        """It takes the place of another one, which goes elsewhere first; False, and nothing is moved, if none can.

        :param avoid: rows where neither of them goes; its own have to be among them.
        :param tries: most others that are tried, the cheapest first.
        """
        demand = demand_of(running)
        if demand is None:
            return False
        if self._residents is None:
            self._residents = Residents(self._fleet, self._all)
        mark = self._fleet.mark()
        others = self._residents.in_whose_place(demand, avoid=avoid, staying=self._moved)
        for row, other in islice(others, tries):
            there = self._fleet.mask([self._fleet.rows[row].node.uid])
            if self.move((other,), avoid=avoid | there) and self.move((running,), avoid=~there):
                return True
            self.undo(mark)
        return False

    def undo(self, mark: int) -> None:
        """Back to that mark of the fleet; moves since then have not been made."""
        self._fleet.undo(mark)
        while self._moves and self._moves[-1][0] >= mark:
            _, move = self._moves.pop()
            self._moved.remove(move.claim)
            self._stand(move.source, instead_of=move.target)

    def _stand(
        self, here: Iterable[ReplicaPlacement], *, instead_of: Iterable[ReplicaPlacement]
    ) -> None:
        self.standing.update(replica.node for replica in here)
        self.standing.subtract(replica.node for replica in instead_of)

    def _costs(self, running: RunningView) -> float:
        return _amount_of(running) * (running.lost_at(self._at) + self._restart).total_seconds()


def can_move(running: RunningView) -> bool:
    """Whether it can stop, has something to go on from, and was not told to stop already."""
    return (
        running.preemptible
        and running.checkpointed_at is not None
        and not running.revoking
        and bool(running.replicas)
    )


def _amount_of(running: RunningView) -> float:
    """Cards that it holds; a share counts as that part of a card."""
    shares = {role.name: role.share for role in running.shape.roles}
    return sum(
        max(replica.count, len(replica.cards)) * shares[replica.role] / WHOLE_CARD
        for replica in running.replicas
    )


def _as_it_stands(running: RunningView) -> ClaimView:
    """A claim to exactly what it holds now: an elastic gang neither grows nor shrinks when it moves."""
    held = {role.name: 0 for role in running.shape.roles}
    for replica in running.replicas:
        held[replica.role] += 1
    roles = tuple(
        replace(role, replicas=held[role.name], least=0)
        for role in running.shape.roles
        if held[role.name]
    )
    return ClaimView(
        uid=running.uid,
        queue=running.queue,
        shape=GangShape(roles=roles),
        chips=(running.chip,),
        priority=running.priority,
        created_at=running.admitted_at,
        selector=running.selector,
        tolerations=running.tolerations,
        within=running.within,
        near=running.near,
        person=running.person,
    )
