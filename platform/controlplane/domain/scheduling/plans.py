"""What the scheduler decided: placements, revocations, reservations, and a reason for each claim that waits."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, overload

if TYPE_CHECKING:
    from controlplane.domain.scheduling.lines import SearchKey
    from controlplane.domain.scheduling.snapshots import ClaimView, Kind, Place


class RefusalCode(StrEnum):
    #: No node has enough free cards now.
    NO_FREE_CARDS = "no_free_cards"
    #: Enough are free on a node, but not such as hang together.
    NOT_TOGETHER = "not_together"
    #: Enough are free, but not under one domain of the network.
    NO_DOMAIN = "no_domain"
    #: No node could ever hold one replica of it.
    NEVER_FITS = "never_fits"
    NO_SUCH_CHIP = "no_such_chip"
    #: No node bears the labels, or all that do are tainted.
    NO_SUCH_NODE = "no_such_node"
    #: The level of the network that it asks for is not one of the fleet's.
    NO_SUCH_LEVEL = "no_such_level"
    NO_MEMORY = "no_memory"
    NO_CPU = "no_cpu"
    QUEUE_CAP = "queue_cap"
    QUEUE_CLOSED = "queue_closed"
    #: Its person runs as many claims as the queue lets one person run.
    PERSON_LIMIT = "person_limit"
    #: Beyond its guarantee, and nothing may be borrowed.
    NO_BORROWING = "no_borrowing"
    #: Room there is, but it is kept for a claim that waits longer.
    RESERVED = "reserved"
    #: Others were told to stop for it; their cards are on their way.
    AWAITS_CARDS = "awaits_cards"
    #: There is room on a slower chip, but it ends sooner if it waits for a faster one.
    AWAITS_FASTER = "awaits_faster"
    #: The cycle had decided enough before it came to it.
    NOT_LOOKED_AT = "not_looked_at"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaPlacement:
    role: str
    index: int
    node: str
    #: Card uids in index order; empty for a replica without cards, and where the node's plug-in chooses.
    cards: tuple[str, ...]
    #: How many cards of the node it has, whoever chooses them.
    count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """All replicas of a gang; there is no such thing as part of one."""

    claim: str
    chip: str
    replicas: tuple[ReplicaPlacement, ...]
    #: Why here, in words.
    reason: str
    #: The numbers of the reason, for programs.
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reason:
    """Why a claim waits; the same for all that ask for the same."""

    code: RefusalCode
    #: Why not now, in words with numbers.
    reason: str
    #: The numbers of the reason, for programs.
    numbers: Mapping[str, float] = field(default_factory=dict)

    def refuse(self, claim: str) -> Refusal:
        return Refusal(claim=claim, code=self.code, reason=self.reason, numbers=self.numbers)


class Refused(NamedTuple):
    """Claims that wait for one reason."""

    reason: Reason
    #: In the order in which they were refused.
    claims: Sequence[ClaimView]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    claim: str
    code: RefusalCode
    #: Why not now, in words with numbers.
    reason: str
    #: The numbers of the reason, for programs.
    numbers: Mapping[str, float] = field(default_factory=dict)


class Refusals(Sequence[Refusal]):
    """Each claim that waits with its reason, in the order in which they were refused.

    Thousands wait for few reasons: a refusal is made when it is looked at.
    """

    __slots__ = ("_ends", "groups")

    def __init__(self, groups: Sequence[Refused] = ()) -> None:
        self.groups = tuple(groups)
        self._ends = tuple(accumulate(len(group.claims) for group in self.groups))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[Refusal]:
        for group in self.groups:
            for claim in group.claims:
                yield group.reason.refuse(claim.uid)

    @overload
    def __getitem__(self, index: int) -> Refusal: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Refusal]: ...

    def __getitem__(self, index: int | slice) -> Refusal | Sequence[Refusal]:
        if isinstance(index, slice):
            return tuple(self)[index]
        place = range(len(self))[index]
        number = bisect(self._ends, place)
        group = self.groups[number]
        return group.reason.refuse(group.claims[place - self._ends[number]].uid)

    def around(self, place: int) -> Iterator[tuple[Reason, ClaimView]]:
        """The reason and the claim of each, from that place on and at last of those before it."""
        if not self:
            return
        place %= len(self)
        number = bisect(self._ends, place)
        reason, claims = self.groups[number]
        cut = len(claims) - (self._ends[number] - place)
        circle = Refused(reason, claims[cut:]), *self.groups[number + 1 :], *self.groups[:number]
        for why, those in (*circle, Refused(reason, claims[:cut])):
            for claim in those:
                yield why, claim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Refusals | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self._ends)

    def __repr__(self) -> str:
        return f"Refusals({list(self)!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Revocation:
    """A claim that has to save and stop, so that another gets its cards."""

    claim: str
    #: The waiting claim that gets them.
    beneficiary: str
    #: Why this one, in words with numbers.
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Room that is kept for a claim which waits, so that smaller ones do not pass it for ever."""

    claim: str
    nodes: tuple[str, ...]
    #: When what runs there is expected to have ended; None when nobody knows.
    starts_at: datetime | None


class Verdict(NamedTuple):
    """Why all claims of a kind wait that are behind a place in their line."""

    reason: Reason
    behind: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerState:
    """What one cycle passes on to the next; without it, a new round begins."""

    #: A round searches for every pending claim once and may take several cycles: those that are left of it.
    #: Claims that came since it began wait for the next round, unless they are among the first by priority.
    untried: frozenset[SearchKey] = frozenset()
    #: Uids of claims that did not start as the next cycle would have evicted them. It decides last for these, and
    #: cards that are nominated for them are released.
    deferred: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    placements: tuple[Placement, ...] = ()
    refusals: Refusals = field(default_factory=Refusals)
    revocations: tuple[Revocation, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    #: What holds for others of a kind too, were there more of them.
    verdicts: Mapping[Kind, Verdict] = field(default_factory=dict, repr=False)
    #: For the next cycle.
    state: SchedulerState = field(default_factory=SchedulerState, repr=False)

    @property
    def unfinished(self) -> bool:
        """Whether another cycle should follow at once, as this one could not search for all that may find room."""
        moved = bool(self.placements or self.revocations)
        if self.state.untried or (moved and self.state.deferred):
            return True
        return bool(self.placements) and self.left_out_any

    @property
    def left_out_any(self) -> bool:
        groups = self.refusals.groups
        return any(group.reason.code is RefusalCode.NOT_LOOKED_AT for group in groups)
