"""Scheduling snapshots: the nodes, claims, queues and running workloads that a plan is computed from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime, timedelta
from enum import StrEnum
from math import inf
from operator import attrgetter
from typing import Any, Final, NamedTuple, Self, TypeAlias

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.common.reasons import ReasonedValueError
from controlplane.domain.common.resources import Resources
from controlplane.domain.common.topology import Geometry, choose_cards
from controlplane.domain.quotas.claims import WHOLE_CARD, GangShape, RoleShape
from controlplane.domain.quotas.queues import QueueSnapshot


class CardSelection(StrEnum):
    """Who chooses the cards of a node."""

    #: The scheduler: an allocation names each card.
    CARD = "card"
    #: The node's device plug-in: an allocation names the node and how many.
    NODE = "node"


#: States that Ninefold sets: the device plug-in still counts such a card. An unknown card was removed by the
#: node itself.
_STILL_COUNTED = frozenset({CardState.NO_NEW_WORK, CardState.ISOLATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSnapshot:
    uid: str
    index: int
    chip: str
    state: CardState
    #: The claim that holds it; None when it is free.
    held_by: str | None = None
    #: The pending claim for which it is nominated; no other claim gets it.
    nominated_for: str = ""
    #: Thousandths that holders of shares have of it.
    shared: int = 0

    @property
    def free(self) -> bool:
        return self.held_by is None and self.state is CardState.USABLE


class CardLayout(NamedTuple):
    """Cards of one chip on one node: their indices, and their geometry."""

    indices: tuple[int, ...]
    geometry: Geometry


class NodeChipCards(NamedTuple):
    """The cards of one chip on one node, in the form that every plan needs."""

    chip: str
    #: In index order.
    cards: tuple[CardSnapshot, ...]
    layout: CardLayout
    #: Thousandths of each card that any claim may have now.
    left: tuple[int, ...]
    #: Whole cards that no claim holds, nominated ones included.
    free: int
    #: Positions of cards that are nominated for a claim.
    nominated: tuple[int, ...]
    #: Positions by uid.
    positions: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSnapshot:
    uid: str
    name: str
    cluster: str
    cards: tuple[CardSnapshot, ...]
    capacity: Resources
    #: CPU and memory allocated to admitted claims.
    allocated: Resources = Resources()
    #: Ready, and not cordoned.
    schedulable: bool = True
    #: How its cards hang together, by chip; absent means that any are as good as any others.
    geometries: Mapping[str, Geometry] = field(default_factory=dict)
    #: Its network domains, outermost level first: ``{"spine": "s1", "leaf": "s1-l3"}``. Names are unique in
    #: their cluster and level.
    domains: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    binding: CardSelection = CardSelection.CARD
    #: CPU is owned like memory and can refuse; otherwise it is shared among what runs there.
    owns_cpu: bool = False
    #: Its cards by chip, in the order of the first card of each; one empty group where it has no cards.
    parts: tuple[NodeChipCards, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        chips = dict.fromkeys(card.chip for card in self.cards) or ("",)
        object.__setattr__(self, "parts", tuple(_chip_cards_of_node(self, chip) for chip in chips))

    @property
    def accepts_workloads(self) -> bool:
        """Whether it is ready, not cordoned, and certain not to allocate a card that is out of service.

        A device plug-in that chooses the cards chooses among all that it still counts.
        """
        return self.schedulable and not (
            self.binding is CardSelection.NODE
            and any(card.state in _STILL_COUNTED for card in self.cards)
        )

    def pick(
        self, cards: Sequence[CardSnapshot], *, chip: str, count: int
    ) -> tuple[CardSnapshot, ...] | None:
        """Return that many of these cards, in index order; None if they cannot be allocated together."""
        matching = [card for card in cards if card.chip == chip]
        geometry = self.geometries.get(chip)
        if geometry is None:
            return tuple(matching[:count]) if len(matching) >= count else None
        chosen = choose_cards([card.index for card in matching], count, geometry)
        if chosen is None:
            return None
        return tuple(card for card in matching if card.index in chosen)


def _chip_cards_of_node(node: NodeSnapshot, chip: str) -> NodeChipCards:
    theirs = (card for card in node.cards if card.chip == chip)
    cards = tuple(sorted(theirs, key=attrgetter("index")))
    indices = tuple(card.index for card in cards)
    return NodeChipCards(
        chip=chip,
        cards=cards,
        layout=CardLayout(indices, node.geometries.get(chip, _ANYHOW)),
        left=tuple(
            WHOLE_CARD - card.shared if card.free and not card.nominated_for else 0
            for card in cards
        ),
        free=sum(card.free and not card.shared for card in cards),
        nominated=tuple(
            position for position, card in enumerate(cards) if card.nominated_for and card.free
        ),
        positions={card.uid: position for position, card in enumerate(cards)},
    )


#: Any cards are as good as any others.
_ANYHOW = Geometry()


#: In a queue: priority, larger first, then age and uid.
QueuePosition: TypeAlias = tuple[int, datetime, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlacement:
    role: str
    index: int
    node: str
    #: Card uids in index order; empty for a replica without cards, and where the node's plug-in chooses.
    cards: tuple[str, ...]
    #: How many cards of the node it has, whether or not the scheduler chose them.
    count: int = 0


class ReplicaShape(NamedTuple):
    """Cards, CPU and memory of one replica."""

    cards: int
    #: Thousandths of its card, where it shares a single one; otherwise 1000.
    share: int
    #: Thousandths of a core; 0 requests none.
    cpu: int
    #: Bytes; 0 requests none.
    memory: int

    @classmethod
    def of(cls, role: RoleShape) -> ReplicaShape:
        return cls(role.cards, role.share, role.limits.cpu, role.limits.memory)

    @property
    def amount(self) -> int:
        """Thousandths of cards, over all of its cards."""
        return self.cards * self.share

    @property
    def shares(self) -> bool:
        return self.cards == 1 and self.share < WHOLE_CARD


class ReplicaDemand(NamedTuple):
    """A replica shape with the nodes that it may run on."""

    shape: ReplicaShape
    chip: str
    selector: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, role: RoleShape, claim: ClaimSnapshot, chip: str) -> ReplicaDemand:
        # A replica without cards may be placed next to any chip.
        return cls(
            ReplicaShape.of(role),
            chip if role.cards else "",
            tuple(sorted(claim.selector.items())),
        )


class RoleDemand(NamedTuple):
    """A role of a gang, as placement sees it."""

    role: str
    demand: ReplicaDemand
    wanted: int
    fewest: int


class EquivalenceClass:
    """Claims of one queue with equal requests: where one cannot be placed, those behind it cannot either.

    Classes of equal requests are equal. Plans look them up all the time, so their hash is computed once.
    """

    __slots__ = ("_hash", "_request", "chips", "fewest", "most", "queue", "shape")

    def __init__(self, claim: ClaimSnapshot) -> None:
        self.queue = claim.queue
        self.shape = claim.shape
        self.chips = claim.chips
        #: Thousandths of cards.
        self.fewest = claim.shape.min_card_thousandths
        self.most = claim.shape.amount
        self._request = (
            claim.queue,
            claim.shape,
            claim.chips,
            claim.equal_chips,
            claim.within,
            claim.near,
            claim.runtime,
            tuple(sorted(claim.selector.items())),
            tuple(sorted(claim.speeds.items())),
        )
        self._hash = hash(self._request)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, EquivalenceClass)
            and self._hash == other._hash
            and self._request == other._request
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimTraits:
    """What a claim requests wherever it runs, and keeps while it runs."""

    uid: str
    queue: str
    shape: GangShape
    #: Larger goes first.
    priority: int
    #: How fast it runs on each chip against the first; absent means 1.
    speeds: Mapping[str, float] = field(default_factory=dict)
    #: Labels that a node must bear.
    selector: Mapping[str, str] = field(default_factory=dict)
    #: Level of the network under one domain of which all of it must be, such as ``leaf``; empty means anywhere.
    within: str = ""
    #: The same as a wish.
    near: str = ""
    #: Its user; empty if unknown.
    user: str = ""

    def traits(self) -> dict[str, Any]:
        """Its traits by name, for another view of the claim."""
        return {name: getattr(self, name) for name in _TRAITS}


_TRAITS: Final = tuple(each.name for each in fields(ClaimTraits))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimSnapshot(ClaimTraits):
    #: Acceptable chips, the preferred first.
    chips: tuple[str, ...]
    #: Number of the first chips that are equally good: of those with room the one where it fits best is chosen.
    equal_chips: int = 1
    created_at: datetime
    #: How long it is expected to run on the first chip; None if unknown.
    runtime: timedelta | None = None
    #: Among the claims of its queue the smaller goes first: the more urgent, then the older.
    position: QueuePosition = field(init=False, repr=False, compare=False)
    equivalence_class: EquivalenceClass = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "position", (-self.priority, self.created_at, self.uid))
        for chip, speed in self.speeds.items():
            if not 0 < speed < inf:
                raise ReasonedValueError(
                    "claim.speed.not_positive",
                    "claim {claim}: speed must be more than 0, got {speed} on {chip}",
                    claim=self.uid,
                    speed=speed,
                    chip=chip,
                )
        if self.runtime is not None and self.runtime < timedelta(0):
            raise ReasonedValueError(
                "claim.runtime.negative",
                "claim {claim}: runtime must not be negative, got {runtime}",
                claim=self.uid,
                runtime=str(self.runtime),
            )
        object.__setattr__(self, "equivalence_class", EquivalenceClass(self))


#: Claims of each class, the first in the queue first.
ClaimsByClass = Mapping[EquivalenceClass, Sequence[ClaimSnapshot]]


class GroupedClaims(tuple[ClaimSnapshot, ...]):
    """Claims together with their grouping by equivalence class."""

    by_kind: ClaimsByClass

    @classmethod
    def of(cls, claims: Iterable[ClaimSnapshot], by_kind: ClaimsByClass) -> Self:
        """:param by_kind: the same claims."""
        waiting = cls(claims)
        waiting.by_kind = by_kind
        return waiting


def claims_by_class(claims: Sequence[ClaimSnapshot]) -> ClaimsByClass:
    """Group the claims by equivalence class, each in queue order."""
    if isinstance(claims, GroupedClaims):
        return claims.by_kind
    found: dict[EquivalenceClass, list[ClaimSnapshot]] = {}
    for claim in claims:
        found.setdefault(claim.equivalence_class, []).append(claim)
    for members in found.values():
        members.sort(key=attrgetter("position"))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningClaim(ClaimTraits):
    """A claim that holds cards. Its requests of nodes hold wherever it is relocated."""

    chip: str
    admitted_at: datetime
    replicas: tuple[ReplicaPlacement, ...]
    #: It can save and stop.
    preemptible: bool = True
    #: When it last saved its progress; None if it never did.
    checkpointed_at: datetime | None = None
    #: When it is expected to end; None if unknown.
    ends_at: datetime | None = None
    #: It is being evicted already; its cards will be released.
    revoking: bool = False
    #: The pending claim for which it is being evicted.
    revoked_for: str = ""
    #: Chips that it accepts when it is started again; empty means its current one.
    chips: tuple[str, ...] = ()

    @property
    def amount(self) -> int:
        """Thousandths of cards that it holds."""
        shares = {role.name: role.share for role in self.shape.roles}
        return sum(
            (len(replica.cards) or replica.count) * shares[replica.role]
            for replica in self.replicas
        )

    def lost_at(self, at: datetime) -> timedelta:
        """Work that stopping it now would throw away."""
        return at - max(self.checkpointed_at or self.admitted_at, self.admitted_at)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingSnapshot:
    nodes: tuple[NodeSnapshot, ...]
    #: Pending ones; grouped by class once, for all plans of the snapshot.
    claims: tuple[ClaimSnapshot, ...]
    queues: Mapping[str, QueueSnapshot]
    running: tuple[RunningClaim, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.claims, GroupedClaims):
            claims = GroupedClaims.of(self.claims, claims_by_class(self.claims))
            object.__setattr__(self, "claims", claims)


def shrink_claim_to_minimum(claim: ClaimSnapshot) -> ClaimSnapshot:
    """Return the claim with no more replicas than it needs to start."""
    return shrink_claim_to_amount(claim, claim.shape.min_card_thousandths)


def shrink_claim_to_amount(claim: ClaimSnapshot, amount: int) -> ClaimSnapshot:
    """Return the claim with no more replicas than fit into the amount, but at least those that it needs to start.

    :param amount: thousandths of cards.
    """
    fewest = claim.shape.min_card_thousandths
    if claim.shape.amount <= max(amount, fewest):
        return claim
    return replace(
        claim, shape=GangShape(roles=tuple(_shrink_elastic_roles(claim, amount - fewest)))
    )


def _shrink_elastic_roles(claim: ClaimSnapshot, spare: int) -> Iterator[RoleShape]:
    for role in claim.shape.roles:
        more = role.replicas - role.fewest
        if role.amount:
            more = min(more, max(0, spare) // role.amount)
        spare -= more * role.amount
        yield replace(role, replicas=role.fewest + more, least=role.fewest if more else 0)
