"""Victims: the running claims that are cheapest to evict, in order, and the cost of evacuating each node.

A *bundle* are the claims to evict on one node so that one more replica fits there by the number of its cards.
Bundles of a part of the network are ordered by cost; parts by the total cost of the cheapest sufficient bundles.
Whether the claim really fits (rings, memory, a node that two gangs share) is decided by simulation
(``preemption``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from operator import attrgetter, itemgetter
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from controlplane.domain.quotas.claims import WHOLE_CARD
from controlplane.domain.scheduling.network_topology import CLUSTER, OUTSIDE
from controlplane.domain.scheduling.node_table import Mask, NodeTable
from controlplane.domain.scheduling.plans import cards_of_replicas
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, ReplicaDemand, RunningClaim

Rank = tuple[int, float, float, str]

_RANK = attrgetter("rank")
#: Among the bundles of a region: the smallest loss first, then the first row.
_PLACE = itemgetter(0, 1, 2)


class Victim(NamedTuple):
    """A running claim that may be evicted, with the cost of evicting it."""

    view: RunningClaim
    queue: str
    priority: int
    rank: Rank
    cards: int
    #: Work since its checkpoint.
    card_seconds: float
    #: Cards that it has on each row.
    held: tuple[tuple[int, int], ...]
    #: It was placed by this very plan, which may place another instead.
    starting: bool = False

    @classmethod
    def of(
        cls, view: RunningClaim, fleet: NodeTable, at: datetime, *, starting: bool = False
    ) -> Victim:
        cards = cards_of_replicas(view.replicas)
        held = tuple(
            (row, count)
            for node, count in _cards_by_node(view).items()
            if (row := fleet.row_of(node, view.chip)) is not None
        )
        lost = view.lost_at(at).total_seconds()
        ranked = victim_rank(at, view)
        return cls(view, view.queue, view.priority, ranked, cards, lost * cards, held, starting)


class EvictionCost(NamedTuple):
    """The cost of evicting some claims; the smaller goes first."""

    #: One of them may be within its guarantee.
    own_queue: bool
    highest_priority: int
    #: Work since their checkpoints.
    card_seconds: float


class VictimBundle(NamedTuple):
    """Victims on one node that make room for one more replica."""

    loss: EvictionCost
    row: int
    #: Its place among those of the row, each of which counts on the ones before it.
    place: int
    victims: tuple[Victim, ...]


class NetworkRegion(NamedTuple):
    """A part of the network in which all of the claim may run."""

    #: Rows outside it, and those that are reserved for other claims.
    avoid: Mask
    #: What could be cleared in it, the least loss first.
    bundles: list[VictimBundle]
    #: Replicas that lack a place, counted in the largest.
    lacking: int


def victim_rank(at: datetime, view: RunningClaim) -> Rank:
    """Lowest priority, least lost, youngest."""
    lost = view.lost_at(at).total_seconds()
    return view.priority, lost, -view.admitted_at.timestamp(), view.uid


def victim_sort_key(claim: ClaimSnapshot, victim: Victim) -> tuple[bool, Rank]:
    """Those of the claim's own queue may be within their guarantee, so borrowers go before them."""
    return victim.view.queue == claim.queue, victim.rank


def victim_regions(
    fleet: NodeTable,
    claim: ClaimSnapshot,
    chip: str,
    candidates: Sequence[Victim],
    *,
    avoid: Mask | None,
) -> list[NetworkRegion]:
    """The parts of the network that could hold the claim, those with the least to lose first.

    :param candidates: those that may be stopped for it.
    :param avoid: rows that are reserved for other claims.
    """
    largest = max(claim.shape.roles, key=lambda role: (role.cards, role.share))
    demand = ReplicaDemand.of(largest, claim, chip)
    eligible = fleet.eligible(demand) if avoid is None else fleet.eligible(demand) & ~avoid
    held = _victims_by_row(eligible, _sort_victims(candidates, claim))
    now = np.where(eligible, fleet.replica_counts(demand), 0)
    # By role: with all of them gone each has room by itself, or there is no point in trying.
    most = [
        (
            role.replicas,
            _replicas_after_eviction(fleet, ReplicaDemand.of(role, claim, chip), eligible, held),
        )
        for role in claim.shape.roles
        if role.cards
    ]
    replicas = -(-claim.shape.cards // largest.cards)
    outer = claim.within or CLUSTER
    found = []
    for level in fleet.topology.between(outer, outer):
        has = level.totals(now)
        enough = np.all([level.totals(rows) >= wanted for wanted, rows in most], axis=0)
        inside: dict[int, list[VictimBundle]] = {}
        for row, holders in held.items():
            domain = int(level.domain[row])
            if domain != OUTSIDE and enough[domain]:
                _append_bundles(
                    inside.setdefault(domain, []), fleet, row, holders, claim.queue, largest.cards
                )
        for domain, bundles in inside.items():
            outside = ~level.rows(domain)
            bundles.sort(key=_PLACE)
            found.append(
                NetworkRegion(
                    outside if avoid is None else outside | avoid,
                    bundles,
                    max(1, replicas - int(has[domain])),
                )
            )
    found.sort(key=lambda region: _total_eviction_cost(region.bundles[: region.lacking]))
    return found


def _sort_victims(candidates: Sequence[Victim], claim: ClaimSnapshot) -> list[Victim]:
    """Sorted by ``order``. The claims of each queue are sorted already, which the sort exploits."""
    own = [victim for victim in candidates if victim.queue == claim.queue]
    others = [victim for victim in candidates if victim.queue != claim.queue]
    return sorted(others, key=_RANK) + sorted(own, key=_RANK)


def _victims_by_row(
    eligible: Mask, ordered: Sequence[Victim]
) -> dict[int, list[tuple[Victim, int]]]:
    """Who holds how many cards on each row, in their order."""
    held: dict[int, list[tuple[Victim, int]]] = {}
    for victim in ordered:
        for row, cards in victim.held:
            if eligible[row]:
                held.setdefault(row, []).append((victim, cards))
    return held


def _replicas_after_eviction(
    fleet: NodeTable,
    demand: ReplicaDemand,
    eligible: Mask,
    held: Mapping[int, Sequence[tuple[Victim, int]]],
) -> NDArray[np.int64]:
    """[rows]: maximum number of replicas if all of those were evicted, by the number of cards."""
    most, shape = np.where(eligible, fleet.replica_counts(demand), 0), demand.shape
    if shape.shares:
        for row in held:
            most[row] = len(fleet.rows[row].cards) * WHOLE_CARD
    elif held:
        rows = np.fromiter(held, dtype=np.int64, count=len(held))
        given = [sum([count for _, count in holders]) for holders in held.values()]
        most[rows] = (fleet.free_whole_cards()[rows] + given) // shape.cards
    return most


def _append_bundles(
    bundles: list[VictimBundle],
    fleet: NodeTable,
    row: int,
    holders: Sequence[tuple[Victim, int]],
    queue: str,
    cards: int,
) -> None:
    """Append those of a row, one after the other; the last is what is left, even if it is too little.

    :param queue: of the claim; its own may be within their guarantee.
    """
    spare, place, last = fleet.whole_cards_on(row) % cards, 0, len(holders) - 1
    victims: list[Victim] = []
    own, highest, lost = False, holders[0][0].priority, 0.0
    for number, (victim, held) in enumerate(holders):
        if not victims:
            own, highest, lost = victim.queue == queue, victim.priority, victim.card_seconds
        else:
            own = own or victim.queue == queue
            highest = max(highest, victim.priority)
            lost += victim.card_seconds
        victims.append(victim)
        spare += held
        if spare >= cards or number == last:
            bundles.append(
                VictimBundle(EvictionCost(own, highest, lost), row, place, tuple(victims))
            )
            spare, place, victims = spare % cards, place + 1, []


def _total_eviction_cost(bundles: Sequence[VictimBundle]) -> EvictionCost:
    losses = [bundle.loss for bundle in bundles]
    return EvictionCost(
        any(loss.own_queue for loss in losses),
        max(loss.highest_priority for loss in losses),
        sum(loss.card_seconds for loss in losses),
    )


def _cards_by_node(view: RunningClaim) -> Counter[str]:
    held: Counter[str] = Counter()
    for replica in view.replicas:
        held[replica.node] += cards_of_replicas((replica,))
    return held
