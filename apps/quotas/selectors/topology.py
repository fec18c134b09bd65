"""Who sits where: the network as a tree of domains, with what is free in each, down to the card."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import NamedTuple

from apps.accounts import selectors as accounts
from apps.accounts.models import Team
from apps.quotas.models import Claim, Queue
from apps.quotas.selectors.openings import Stand, Use, fleet_now
from apps.quotas.selectors.sights import Sight, sight_of
from apps.quotas.selectors.snapshots import HOLDING

FLEET = "fleet"
CLUSTER = "cluster"
NODE = "node"


class ClaimRow(NamedTuple):
    """A claim that holds cards; primary keys of queue and team."""

    pk: int
    queue: int
    team: int
    cards: int
    since: datetime | None
    work_kind: str
    work_uid: str
    work_name: str


class NoSuchDomain(LookupError):
    """The address names no part of the fleet."""


@dataclass(slots=True, kw_only=True)
class Domain:
    """The fleet, a cluster, a domain of its network or a node, with what is in it."""

    #: ``fleet``, ``cluster``, a level such as ``spine``, or ``node``.
    kind: str
    name: str
    #: Names it in an address: ``spine:alpha/s1``; empty for the fleet.
    key: str
    parent: Domain | None = None
    below: list[Domain] = field(default_factory=list)
    #: Of a node.
    stand: Stand | None = None
    nodes: int = 0
    #: Nodes on which nothing runs.
    whole: int = 0
    #: Cards by ``Use``.
    uses: Counter[str] = field(default_factory=Counter)
    #: Cards that are fragments, averaged over what people ask for.
    fragments: float = 0.0
    #: The most cards of one node that are free.
    largest: int = 0

    @property
    def cards(self) -> int:
        return self.uses.total()

    @property
    def held(self) -> int:
        return self.uses[Use.HELD]

    @property
    def free(self) -> int:
        """Cards that anybody could be given, fragments among them."""
        return self.uses[Use.FREE] + self.uses[Use.FRAGMENT]

    @property
    def idle(self) -> int:
        """Cards that nobody holds, and not everybody can have: kept, broken, or to get no new work."""
        return self.uses[Use.KEPT] + self.uses[Use.BROKEN] + self.uses[Use.NO_NEW_WORK]

    @property
    def fragment_percent(self) -> int:
        """Of the free cards."""
        return round(100 * self.fragments / self.free) if self.free else 0

    @property
    def trail(self) -> list[Domain]:
        """From the fleet down to it."""
        return [*(self.parent.trail if self.parent else ()), self]

    def every(self) -> Iterator[Domain]:
        """It and all below, each before those below it."""
        yield self
        for domain in self.below:
            yield from domain.every()

    def add_up(self) -> None:
        """Let it and those below know what is in them."""
        for domain in self.below:
            domain.add_up()
            self.nodes += domain.nodes
            self.whole += domain.whole
            self.uses.update(domain.uses)
            self.fragments += domain.fragments
            self.largest = max(self.largest, domain.largest)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A card, and who is on it."""

    index: int
    chip: str
    use: Use
    claim: ClaimRow | None = None
    #: The reader may know what the work is called.
    named: bool = False
    team: str = ""
    queue: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Topology:
    """The fleet as one person sees it."""

    root: Domain
    by_key: Mapping[str, Domain]
    sight: Sight
    #: Names by primary key.
    teams: Mapping[int, str]
    queues: Mapping[int, str]

    def at(self, key: str) -> Domain:
        """The domain of that key. Where only one cluster has such a name, the cluster may be left out.

        :raises NoSuchDomain: if there is none.
        """
        if found := self.by_key.get(key):
            return found
        kind, _, name = key.partition(":")
        alike = [one for one in self.by_key.values() if (one.kind, one.name) == (kind, name)]
        if len(alike) != 1:
            raise NoSuchDomain(f"the fleet has no {key!r}")
        return alike[0]

    def names(self, claim: ClaimRow) -> bool:
        """Whether they may know what that work is called."""
        sight = self.sight
        return sight.company or claim.team in sight.teams or claim.queue in sight.managed

    def cells(self, stand: Stand) -> Sequence[Cell]:
        """The cards of a node."""
        claims = claims_on_cards(set(stand.claims))
        cards = zip(stand.indices, stand.chips, stand.uses, stand.claims, strict=True)
        return [
            self._cell(index, chip, Use(use), claims.get(held)) for index, chip, use, held in cards
        ]

    def _cell(self, index: int, chip: str, use: Use, claim: ClaimRow | None) -> Cell:
        if claim is None:
            return Cell(index=index, chip=chip, use=use)
        return Cell(
            index=index,
            chip=chip,
            use=use,
            claim=claim,
            named=self.names(claim),
            team=self.teams[claim.team],
            queue=self.queues[claim.queue],
        )


def topology_of(user: accounts.Person) -> Topology:
    """The whole fleet, as that person sees it."""
    queues = list(Queue.objects.order_by("name"))
    root, by_key = _tree(fleet_now())
    return Topology(
        root=root,
        by_key=by_key,
        sight=sight_of(user, queues),
        teams=dict(Team.objects.values_list("pk", "name")),
        queues={queue.pk: queue.name for queue in queues},
    )


def claims_on_cards(keys: Iterable[int] | None = None) -> Mapping[int, ClaimRow]:
    """The claims of those primary keys, by them; without keys, all that hold cards."""
    rows = Claim.objects.order_by()
    rows = rows.filter(pk__in=keys) if keys is not None else rows.filter(state__in=HOLDING)
    columns = ("pk", "queue_id", "team_id", "card_count", "admitted_at")
    work = ("work_kind", "work_uid", "work_name")
    return {row[0]: ClaimRow(*row) for row in rows.values_list(*columns, *work)}


def _tree(stands: Iterable[Stand]) -> tuple[Domain, dict[str, Domain]]:
    root = Domain(kind=FLEET, name="", key="")
    by_key = {"": root}

    def below(parent: Domain, kind: str, name: str, key: str) -> Domain:
        found = by_key.get(key)
        if found is None:
            found = by_key[key] = Domain(kind=kind, name=name, key=key, parent=parent)
            parent.below.append(found)
        return found

    for stand in stands:
        cluster = stand.cluster
        domain = below(root, CLUSTER, cluster, f"{CLUSTER}:{cluster}")
        for level, name in stand.domains.items():
            domain = below(domain, level, name, f"{level}:{cluster}/{name}")
        node = below(domain, NODE, stand.name, f"{NODE}:{cluster}/{stand.name}")
        node.stand = stand
        node.nodes = 1
        node.whole = int(stand.opening.whole)
        node.uses = Counter(stand.uses)
        node.fragments = stand.opening.fragments
        node.largest = stand.opening.free
    root.add_up()
    return root, by_key
