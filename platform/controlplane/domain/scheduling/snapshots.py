"""What the scheduler sees: plain values, made by whoever asks it."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from math import inf
from operator import attrgetter
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from weakref import WeakValueDictionary

from controlplane.domain.accelerators import CardState
from controlplane.domain.claims import WHOLE_CARD, GangShape
from controlplane.domain.geometry import Geometry, choose
from controlplane.domain.quotas import Entitlement
from controlplane.domain.resources import Resources
from controlplane.domain.scheduling.plans import ReplicaPlacement

if TYPE_CHECKING:
    from controlplane.domain.scheduling.searches import Search


class Binding(StrEnum):
    """Who chooses the cards of a node."""

    #: The scheduler: an allocation names each card.
    CARD = "card"
    #: The node's device plug-in: an allocation names the node and how many.
    NODE = "node"


#: States that a card gets from us: its device plug-in still counts it. An unknown one the node itself took out.
_STILL_COUNTED = frozenset({CardState.NO_NEW_WORK, CardState.ISOLATED})


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    uid: str
    index: int
    chip: str
    state: CardState
    #: The claim that holds it; None when it is free.
    held_by: str | None = None
    #: The waiting claim for which it was freed; nobody else gets it.
    nominated_for: str = ""
    #: Thousandths that holders of shares have of it.
    shared: int = 0

    @property
    def free(self) -> bool:
        return self.held_by is None and self.state is CardState.USABLE


class Layout(NamedTuple):
    """Cards of one chip on one node: their indices, and how they hang together."""

    indices: tuple[int, ...]
    geometry: Geometry


class Part(NamedTuple):
    """The cards of one chip on one node, as every plan looks at them."""

    chip: str
    #: In index order.
    cards: tuple[CardView, ...]
    #: The same object for all that are laid out alike.
    layout: Layout
    #: Thousandths of each card that anybody may have now.
    left: tuple[int, ...]
    #: Whole cards that nobody holds, those that were freed for somebody among them.
    free: int
    #: Positions of cards that were freed for somebody.
    freed: tuple[int, ...]
    #: Positions by uid.
    positions: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    uid: str
    name: str
    cluster: str
    cards: tuple[CardView, ...]
    capacity: Resources
    #: CPU and memory promised to admitted claims.
    promised: Resources = Resources()
    #: Ready, and not cordoned.
    schedulable: bool = True
    #: How its cards hang together, by chip; absent means that any are as good as any others.
    geometries: Mapping[str, Geometry] = field(default_factory=dict)
    #: Where it stands in the network, outermost level first: ``{"spine": "s1", "leaf": "s1-l3"}``. Names are
    #: unique in their cluster and level.
    domains: Mapping[str, str] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    #: Only claims that tolerate all of them come here.
    taints: frozenset[str] = frozenset()
    binding: Binding = Binding.CARD
    #: CPU is owned like memory and can refuse; otherwise it is shared among what runs there.
    owns_cpu: bool = False
    _parts: tuple[Part, ...] | None = field(default=None, init=False, repr=False, compare=False)

    @property
    def parts(self) -> tuple[Part, ...]:
        """Its cards by chip, in the order of the first of each; a part without any where it has none.

        Nodes outlive plans, so it is looked for once.
        """
        parts = self._parts
        if parts is None:
            chips = dict.fromkeys(card.chip for card in self.cards) or ("",)
            parts = tuple(_part(self, chip) for chip in chips)
            object.__setattr__(self, "_parts", parts)
        return parts

    @property
    def takes_work(self) -> bool:
        """Ready, not cordoned, and sure to give away no card that is out of use.

        A plug-in that chooses the cards chooses among all that it still counts.
        """
        return self.schedulable and not (
            self.binding is Binding.NODE
            and any(card.state in _STILL_COUNTED for card in self.cards)
        )

    def pick(
        self, cards: Sequence[CardView], *, chip: str, count: int
    ) -> tuple[CardView, ...] | None:
        """So many of those cards of it, in index order; None if they cannot be had together."""
        matching = [card for card in cards if card.chip == chip]
        geometry = self.geometries.get(chip)
        if geometry is None:
            return tuple(matching[:count]) if len(matching) >= count else None
        chosen = choose([card.index for card in matching], count, geometry)
        if chosen is None:
            return None
        return tuple(card for card in matching if card.index in chosen)


def _part(node: NodeView, chip: str) -> Part:
    theirs = (card for card in node.cards if card.chip == chip)
    cards = tuple(sorted(theirs, key=attrgetter("index")))
    indices = tuple(card.index for card in cards)
    return Part(
        chip=chip,
        cards=cards,
        layout=_layout(indices, node.geometries.get(chip, _ANYHOW)),
        left=tuple(
            WHOLE_CARD - card.shared if card.free and not card.nominated_for else 0
            for card in cards
        ),
        free=sum(card.free and not card.shared for card in cards),
        freed=tuple(
            position for position, card in enumerate(cards) if card.nominated_for and card.free
        ),
        positions={card.uid: position for position, card in enumerate(cards)},
    )


#: Any cards are as good as any others.
_ANYHOW = Geometry()


@lru_cache(maxsize=1024)
def _layout(indices: tuple[int, ...], geometry: Geometry) -> Layout:
    return Layout(indices, geometry)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueView:
    uid: str
    name: str
    #: The queue above; None at the top.
    parent: str | None = None
    #: By chip; absent means nothing of its own and no limit.
    entitlements: Mapping[str, Entitlement] = field(default_factory=dict)
    #: Over all chips together.
    total: Entitlement = field(default_factory=Entitlement)
    #: Share of what is idle, against the queues beside it.
    weight: float = 1.0
    #: Whole cards that its own claims hold now, by chip; those of the queues below are not among them.
    used: Mapping[str, int] = field(default_factory=dict)
    #: Thousandths that its own claims hold of cards which they share, by chip.
    shared: Mapping[str, int] = field(default_factory=dict)
    #: A closed queue admits nothing.
    open: bool = True
    #: May hold more than its guarantee while others leave theirs idle.
    borrows: bool = True
    #: Others may use its idle guarantee (never what is reserved).
    lends: bool = True
    #: May take its guarantee back from borrowers.
    reclaims: bool = True
    #: Its urgent claims may take the place of its own less urgent ones.
    preempts: bool = True
    #: Most claims of one person that run at once, in it and the queues below; None means no limit.
    running_per_person: int | None = None


#: In a line: priority, larger first, then age and uid.
Place: TypeAlias = tuple[int, datetime, str]


class Kind:
    """What claims of one queue are that ask for the same: where one is refused, those behind it are too.

    Kinds are told apart by what they are, not by what they say: ``kind is other``.
    """

    __slots__ = ("__weakref__", "chips", "fewest", "most", "queue", "searches", "shape")

    def __init__(self, claim: ClaimView) -> None:
        self.queue = claim.queue
        self.shape = claim.shape
        self.chips = claim.chips
        #: Thousandths of cards.
        self.fewest = claim.shape.fewest_amount
        self.most = claim.shape.amount
        #: By chip, as far as somebody has looked for room.
        self.searches: dict[str, Search] = {}


#: Of all claims that somebody keeps.
_KINDS: WeakValueDictionary[Hashable, Kind] = WeakValueDictionary()
#: Threads that look for the same kind find the same object.
_ONE_AT_A_TIME = Lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimView:
    uid: str
    queue: str
    shape: GangShape
    #: Acceptable chips, the preferred first.
    chips: tuple[str, ...]
    #: Number of the first chips that are equally good: of those with room it gets the one where it fits best.
    equal_chips: int = 1
    #: Larger goes first.
    priority: int
    created_at: datetime
    #: How fast it runs on each chip against the first; absent means 1.
    speeds: Mapping[str, float] = field(default_factory=dict)
    #: Labels that a node must bear.
    selector: Mapping[str, str] = field(default_factory=dict)
    #: Taints of nodes that it puts up with.
    tolerations: frozenset[str] = frozenset()
    #: Level of the network under one domain of which all of it must be, such as ``leaf``; empty means anywhere.
    within: str = ""
    #: The same as a wish.
    near: str = ""
    #: How long it is expected to run on the first chip; None when nobody knows.
    runtime: timedelta | None = None
    #: Whose it is; empty where nobody knows.
    person: str = ""
    #: Among the claims of its queue the smaller goes first: the more urgent, then the older.
    place: Place = field(init=False, repr=False, compare=False)
    _kind: Kind | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "place", (-self.priority, self.created_at, self.uid))
        for chip, speed in self.speeds.items():
            if not 0 < speed < inf:
                raise ValueError(f"claim {self.uid}: a speed is more than 0, got {speed} on {chip}")
        if self.runtime is not None and self.runtime < timedelta(0):
            raise ValueError(f"claim {self.uid}: a runtime is not negative, got {self.runtime}")

    @property
    def kind(self) -> Kind:
        """The same object for all claims of a kind. Claims outlive plans, so it is looked for once."""
        kind = self._kind
        if kind is None:
            asked = (
                self.queue,
                self.shape,
                self.chips,
                self.equal_chips,
                self.within,
                self.near,
                self.runtime,
                self.tolerations,
                tuple(sorted(self.selector.items())),
                tuple(sorted(self.speeds.items())),
            )
            with _ONE_AT_A_TIME:
                kind = _KINDS.get(asked) or _KINDS.setdefault(asked, Kind(self))
            object.__setattr__(self, "_kind", kind)
        return kind


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningView:
    """A claim that holds cards."""

    uid: str
    queue: str
    shape: GangShape
    chip: str
    priority: int
    admitted_at: datetime
    replicas: tuple[ReplicaPlacement, ...]
    #: Its owner can save, stop and go on later.
    preemptible: bool = True
    #: When it last saved its progress; None if it never did.
    checkpointed_at: datetime | None = None
    #: When it is expected to end; None when nobody knows.
    ends_at: datetime | None = None
    #: It was told to stop already; its cards are on their way back.
    revoking: bool = False
    #: The waiting claim for which it was told to stop.
    revoked_for: str = ""
    #: What it asked of its nodes, as a claim has it; wherever it is moved, that still holds.
    selector: Mapping[str, str] = field(default_factory=dict)
    tolerations: frozenset[str] = frozenset()
    within: str = ""
    near: str = ""
    #: The chips that it takes if it has to start again, as a claim has them; empty means the one that it has.
    chips: tuple[str, ...] = ()
    speeds: Mapping[str, float] = field(default_factory=dict)
    #: Whose it is; empty where nobody knows.
    person: str = ""

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
class Snapshot:
    nodes: tuple[NodeView, ...]
    claims: tuple[ClaimView, ...]
    queues: Mapping[str, QueueView]
    running: tuple[RunningView, ...] = ()
