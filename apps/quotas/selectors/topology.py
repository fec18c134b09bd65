"""The topology of the fleet: network domains as a tree, with allocated and free cards in each.

``topology_document`` is the compact form for the map: columns and numbers in place of repeated names.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple, Self, TypeVar

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.quotas.models import Claim, Queue
from apps.quotas.selectors.claim_snapshots import ALLOCATED_STATES
from apps.quotas.selectors.free_capacity import CardUse, NodeOccupancy, fleet_node_occupancies
from apps.quotas.selectors.queues import QueueVisibility, queue_visibility_of
from controlplane.domain.common.reasons import ReasonedError
from controlplane.domain.common.topology import Geometry

FLEET = "fleet"
CLUSTER = "cluster"
NODE = "node"


class AllocatedClaim(NamedTuple):
    """A claim with allocated cards; ``queue`` and ``team`` are primary keys."""

    pk: int
    queue: int
    team: int
    cards: int
    since: datetime | None
    work_kind: str
    work_uid: str
    work_name: str


class TopologyDomainNotFound(ReasonedError, LookupError):
    """No domain has that key."""


@dataclass(slots=True, kw_only=True)
class NetworkDomain:
    """The fleet, a cluster, a domain of its network or a node."""

    #: ``fleet``, ``cluster``, a level such as ``spine``, or ``node``.
    kind: str
    name: str
    #: Identifies it in URLs: ``spine:alpha/s1``; empty for the fleet.
    key: str
    parent: Self | None = None
    below: list[Self] = field(default_factory=list)
    #: Cards by their use.
    uses: Counter[str] = field(default_factory=Counter)

    @property
    def cards(self) -> int:
        return self.uses.total()

    @property
    def trail(self) -> list[Self]:
        """From the fleet down to it."""
        return [*(self.parent.trail if self.parent else ()), self]

    def walk(self) -> Iterator[Self]:
        """The domain and all below, in depth-first order."""
        yield self
        for domain in self.below:
            yield from domain.walk()

    def compute_totals(self) -> None:
        """Compute the totals of the domain and those below."""
        for domain in self.below:
            domain.compute_totals()
            self.uses.update(domain.uses)
            self.add_totals(domain)

    def add_totals(self, domain: Self) -> None:
        """Add the other totals of a domain below."""


D = TypeVar("D", bound=NetworkDomain)


def add_node(tree: dict[str, D], *, cluster: str, domains: Mapping[str, str], name: str) -> D:
    """The node in the tree of domains by key, with the domains above it added where they are missing.

    :param tree: has the fleet, under the empty key.
    :param domains: of its network, by level, from the outermost.
    """
    levels = [
        (CLUSTER, cluster, f"{CLUSTER}:{cluster}"),
        *((level, one, f"{level}:{cluster}/{one}") for level, one in domains.items()),
        (NODE, name, f"{NODE}:{cluster}/{name}"),
    ]
    domain = tree[""]
    for kind, own_name, key in levels:
        if key not in tree:
            tree[key] = type(domain)(kind=kind, name=own_name, key=key, parent=domain)
            domain.below.append(tree[key])
        domain = tree[key]
    return domain


@dataclass(slots=True, kw_only=True)
class TopologyDomain(NetworkDomain):
    """A domain with its allocated and free cards by ``CardUse``."""

    #: Only of a node.
    occupancy: NodeOccupancy | None = None
    nodes: int = 0
    #: Idle nodes.
    whole: int = 0
    #: Fragmented cards, averaged over typical requests.
    fragments: float = 0.0
    #: The most free cards of one node.
    largest: int = 0

    @property
    def allocated(self) -> int:
        return self.uses[CardUse.HELD]

    @property
    def free(self) -> int:
        """Free cards that are not reserved, including fragments."""
        return self.uses[CardUse.FREE] + self.uses[CardUse.FRAGMENT]

    @property
    def idle(self) -> int:
        """Unallocated cards that are not free: reserved, unhealthy or cordoned."""
        return (
            self.uses[CardUse.RESERVED] + self.uses[CardUse.BROKEN] + self.uses[CardUse.NO_NEW_WORK]
        )

    @property
    def fragment_percent(self) -> int:
        """Fragments in percent of the free cards."""
        return round(100 * self.fragments / self.free) if self.free else 0

    def add_totals(self, domain: Self) -> None:
        self.nodes += domain.nodes
        self.whole += domain.whole
        self.fragments += domain.fragments
        self.largest = max(self.largest, domain.largest)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardCell:
    """A card, and the claim that uses it."""

    index: int
    chip: str
    use: CardUse
    claim: AllocatedClaim | None = None
    #: Whether the reader may see the name of the workload.
    named: bool = False
    team: str = ""
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetTopology:
    """The topology as one user sees it."""

    root: TopologyDomain
    by_key: Mapping[str, TopologyDomain]
    visibility: QueueVisibility
    #: Names by primary key.
    teams: Mapping[int, str]
    queues: Mapping[int, str]

    def at(self, key: str) -> TopologyDomain:
        """The domain of that key. The cluster may be left out if the name is unique.

        :raises TopologyDomainNotFound: if there is none.
        """
        if found := self.by_key.get(key):
            return found
        kind, _, name = key.partition(":")
        matches = [one for one in self.by_key.values() if (one.kind, one.name) == (kind, name)]
        if len(matches) != 1:
            raise TopologyDomainNotFound(
                "topology.domain.not_found",
                "the fleet has no topology domain {domain}",
                domain=repr(key),
            )
        return matches[0]

    def can_name(self, claim: AllocatedClaim) -> bool:
        """Whether the user may see the name of that workload."""
        visibility = self.visibility
        return (
            visibility.everything
            or claim.team in visibility.teams
            or claim.queue in visibility.managed
        )

    def cells(self, occupancy: NodeOccupancy) -> Sequence[CardCell]:
        claims = allocated_claims(set(occupancy.claims))
        cards = zip(
            occupancy.indices, occupancy.chips, occupancy.uses, occupancy.claims, strict=True
        )
        return [
            self._card_cell(index, chip, CardUse(use), claims.get(allocated))
            for index, chip, use, allocated in cards
        ]

    def _card_cell(
        self, index: int, chip: str, use: CardUse, claim: AllocatedClaim | None
    ) -> CardCell:
        if claim is None:
            return CardCell(index=index, chip=chip, use=use)
        return CardCell(
            index=index,
            chip=chip,
            use=use,
            claim=claim,
            named=self.can_name(claim),
            team=self.teams[claim.team],
            queue=self.queues[claim.queue],
        )


def fleet_topology(user: accounts.RequestUser) -> FleetTopology:
    """The topology of the whole fleet, as that user sees it."""
    queues = list(Queue.objects.order_by("name"))
    root, by_key = _domain_tree(fleet_node_occupancies())
    return FleetTopology(
        root=root,
        by_key=by_key,
        visibility=queue_visibility_of(user, queues),
        teams=dict(Team.objects.values_list("pk", "name")),
        queues={queue.pk: queue.name for queue in queues},
    )


def allocated_claims(keys: Iterable[int] | None = None) -> Mapping[int, AllocatedClaim]:
    """Claims by primary key; without keys, all with allocated cards."""
    rows = Claim.objects.order_by()
    rows = rows.filter(pk__in=keys) if keys is not None else rows.filter(state__in=ALLOCATED_STATES)
    columns = ("pk", "queue_id", "team_id", "card_count", "admitted_at")
    work = ("work_kind", "work_uid", "work_name")
    return {row[0]: AllocatedClaim(*row) for row in rows.values_list(*columns, *work)}


def _domain_tree(
    occupancies: Iterable[NodeOccupancy],
) -> tuple[TopologyDomain, dict[str, TopologyDomain]]:
    root = TopologyDomain(kind=FLEET, name="", key="")
    by_key = {"": root}
    for occupancy in occupancies:
        node = add_node(
            by_key, cluster=occupancy.cluster, domains=occupancy.domains, name=occupancy.name
        )
        node.occupancy = occupancy
        node.nodes = 1
        node.whole = int(occupancy.opening.whole)
        node.uses = Counter(occupancy.uses)
        node.fragments = occupancy.opening.fragments
        node.largest = occupancy.opening.free
    root.compute_totals()
    return root, by_key


class _ValueNumbering:
    """Numbers values in order of first use."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}

    def of(self, thing: Any) -> int:
        return self._known.setdefault(thing, len(self._known))

    def __iter__(self) -> Any:
        return iter(self._known)


def topology_document(topology: FleetTopology) -> dict[str, Any]:
    """The topology as compact JSON for the map.

    - ``domains``: ``[kind, name, key, number of the one above]``, the fleet first, nodes left out;
    - ``nodes``: ``[name, number of its domain, chips, uses, claims, gaps, fragments]``: a ``CardUse`` for each
      card, then ``number, cards`` for neighbours of one claim (-1: of none), positions before which a ring or
      group begins, tenths of cards that are fragments;
      chips are written as claims are;
    - ``claims``: ``[queue, team, cards, second since, kind of work, its uid, its name]``; the last two are empty
      where the reader may not know them.
    """
    domains = [one for one in topology.root.walk() if one.kind != NODE]
    places = number_domains(topology.root)
    claims = allocated_claims()
    chips, numbers = _ValueNumbering(), _ValueNumbering()
    nodes = [
        _encode_node(one.occupancy, places[domain.key], claims, chips, numbers)
        for domain in domains
        for one in domain.below
        if one.occupancy is not None
    ]
    queues, teams = _ValueNumbering(), _ValueNumbering()
    written = [_encode_claim(topology, claims[pk], queues, teams) for pk in numbers]
    return {
        "domains": encode_domains(topology.root, places),
        "nodes": nodes,
        "claims": written,
        "chips": list(chips),
        "queues": [topology.queues[pk] for pk in queues],
        "teams": [topology.teams[pk] for pk in teams],
    }


def number_domains(root: NetworkDomain) -> dict[str, int]:
    """The number of each domain above nodes in the document, by key."""
    domains = (one for one in root.walk() if one.kind != NODE)
    return {one.key: number for number, one in enumerate(domains)}


def encode_domains(root: NetworkDomain, places: Mapping[str, int]) -> list[list[Any]]:
    return [
        [one.kind, one.name, one.key, places[one.parent.key] if one.parent else -1]
        for one in root.walk()
        if one.key in places
    ]


def _encode_node(
    occupancy: NodeOccupancy,
    place: int,
    claims: Mapping[int, AllocatedClaim],
    chips: _ValueNumbering,
    numbers: _ValueNumbering,
) -> list[Any]:
    # Claims that were created after the cards were read are left out.
    return [
        occupancy.name,
        place,
        encode_run_lengths(map(chips.of, occupancy.chips)),
        occupancy.uses,
        encode_run_lengths(numbers.of(pk) if pk in claims else -1 for pk in occupancy.claims),
        list(card_group_starts(occupancy.indices, occupancy.geometries)),
        round(10 * occupancy.opening.fragments),
    ]


def encode_run_lengths(numbers: Iterable[int]) -> list[int]:
    """Run-length encoding: ``[7, 4, 9, 4]`` is four times 7, then four times 9."""
    lengths: list[int] = []
    for number in numbers:
        if lengths and lengths[-2] == number:
            lengths[-1] += 1
        else:
            lengths += (number, 1)
    return lengths


@lru_cache(maxsize=256)
def card_group_starts(
    indices: tuple[int, ...], geometries: tuple[Geometry, ...]
) -> tuple[int, ...]:
    """Positions of cards with which another ring or NUMA node begins."""
    groups = [group for geometry in geometries for group in (geometry.rings or geometry.numa)]
    ring = {index: number for number, group in enumerate(groups) for index in group}
    return tuple(
        place
        for place in range(1, len(indices))
        if ring.get(indices[place]) != ring.get(indices[place - 1])
    )


def _encode_claim(
    topology: FleetTopology, claim: AllocatedClaim, queues: _ValueNumbering, teams: _ValueNumbering
) -> list[Any]:
    named = topology.can_name(claim)
    return [
        queues.of(claim.queue),
        teams.of(claim.team),
        claim.cards,
        int(claim.since.timestamp()) if claim.since else 0,
        claim.work_kind,
        claim.work_uid if named else "",
        claim.work_name if named else "",
    ]
