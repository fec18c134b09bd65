"""Scheduling plans: placements, evictions, reservations, a reason for each pending claim; and the policy."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple, Self, overload

from controlplane.domain.common.reasons import Parameter, Reason
from controlplane.domain.scheduling.snapshots import (
    ClaimSnapshot,
    EquivalenceClass,
    QueuePosition,
    ReplicaPlacement,
    SchedulingSnapshot,
)

if TYPE_CHECKING:
    from controlplane.domain.scheduling.pending_queues import SearchKey


class PendingReasonCode(StrEnum):
    #: No node has enough free cards now.
    NO_FREE_CARDS = "no_free_cards"
    #: Enough are free on a node, but not such as hang together.
    NOT_TOGETHER = "not_together"
    #: Enough are free, but not under one domain of the network.
    NO_DOMAIN = "no_domain"
    #: No node could ever hold one replica of it.
    NEVER_FITS = "never_fits"
    NO_SUCH_CHIP = "no_such_chip"
    #: No node bears the labels.
    NO_SUCH_NODE = "no_such_node"
    #: The fleet has no such topology level.
    NO_SUCH_LEVEL = "no_such_level"
    NO_MEMORY = "no_memory"
    NO_CPU = "no_cpu"
    QUEUE_CAP = "queue_cap"
    QUEUE_CLOSED = "queue_closed"
    #: Its user runs as many claims as the queue allows per user.
    USER_LIMIT = "person_limit"
    #: Beyond its guarantee, and nothing may be borrowed.
    NO_BORROWING = "no_borrowing"
    #: There is room, but it is reserved for a claim that has been pending for longer.
    RESERVED = "reserved"
    #: Others are being evicted for it; it will get their cards.
    AWAITING_EVICTIONS = "awaits_cards"
    #: There is room on a slower chip, but the claim ends sooner if it waits for a faster one.
    AWAITING_FASTER_CHIP = "awaits_faster"
    #: The cycle reached its limits before the claim was evaluated.
    NOT_EVALUATED = "not_looked_at"


def cards_of_replicas(replicas: Iterable[ReplicaPlacement]) -> int:
    return sum(len(replica.cards) or replica.count for replica in replicas)


def nodes_of_replicas(replicas: Iterable[ReplicaPlacement]) -> tuple[str, ...]:
    """Each node once, in the order of the replicas."""
    return tuple(dict.fromkeys(replica.node for replica in replicas))


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimPlacement:
    """All replicas of a gang; a gang is never placed in part."""

    claim: str
    chip: str
    replicas: tuple[ReplicaPlacement, ...]
    #: Why it was placed there.
    reason: str
    #: The numbers of the reason, for programs.
    numbers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingReason:
    """Why a claim is pending; the same for all claims of an equivalence class."""

    code: PendingReasonCode
    #: Why it is pending.
    reason: str
    #: The numbers of the reason, for programs.
    numbers: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        pending_code: PendingReasonCode,
        code: str,
        template: str,
        /,
        *,
        numbers: Mapping[str, float] | None = None,
        **params: Parameter,
    ) -> Self:
        """With the ``Reason`` of that code and template."""
        reason = Reason(code, template, **params)
        return cls(code=pending_code, reason=reason, numbers=numbers or {})

    def refuse(self, claim: str) -> PendingClaim:
        return PendingClaim(claim=claim, code=self.code, reason=self.reason, numbers=self.numbers)


class PendingGroup(NamedTuple):
    """Claims that are pending for one reason."""

    reason: PendingReason
    #: In the order in which they were refused.
    claims: Sequence[ClaimSnapshot]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingClaim:
    claim: str
    code: PendingReasonCode
    #: Why it is pending.
    reason: str
    #: The numbers of the reason, for programs.
    numbers: Mapping[str, float] = field(default_factory=dict)


class PendingClaims(Sequence[PendingClaim]):
    """Each pending claim with its reason, in the order in which they were decided.

    Thousands are pending for few reasons, so the value of a claim is created when it is read.
    """

    __slots__ = ("_ends", "groups")

    def __init__(self, groups: Sequence[PendingGroup] = ()) -> None:
        self.groups = tuple(groups)
        self._ends = tuple(accumulate(len(group.claims) for group in self.groups))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __iter__(self) -> Iterator[PendingClaim]:
        for group in self.groups:
            for claim in group.claims:
                yield group.reason.refuse(claim.uid)

    @overload
    def __getitem__(self, index: int) -> PendingClaim: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[PendingClaim]: ...

    def __getitem__(self, index: int | slice) -> PendingClaim | Sequence[PendingClaim]:
        if isinstance(index, slice):
            return tuple(self)[index]
        place = range(len(self))[index]
        number = bisect(self._ends, place)
        group = self.groups[number]
        return group.reason.refuse(group.claims[place - self._ends[number]].uid)

    def around(self, place: int) -> Iterator[tuple[PendingReason, ClaimSnapshot]]:
        """Yield reason and claim of each, from that position to the end and then from the start up to it."""
        if not self:
            return
        place %= len(self)
        number = bisect(self._ends, place)
        reason, claims = self.groups[number]
        cut = len(claims) - (self._ends[number] - place)
        circle = (
            PendingGroup(reason, claims[cut:]),
            *self.groups[number + 1 :],
            *self.groups[:number],
        )
        for cause, those in (*circle, PendingGroup(reason, claims[:cut])):
            for claim in those:
                yield cause, claim

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PendingClaims | tuple) and tuple(self) == tuple(other)

    def __hash__(self) -> int:
        return hash(self._ends)

    def __repr__(self) -> str:
        return f"Refusals({list(self)!r})"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimEviction:
    """An eviction: a claim that has to save and stop so that another gets its cards."""

    claim: str
    #: The pending claim that gets them.
    beneficiary: str
    #: Why this claim is evicted.
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """Nodes that are reserved for a pending claim, so that smaller claims do not overtake it for ever."""

    claim: str
    nodes: tuple[str, ...]
    #: When what runs there is expected to have ended; None if unknown.
    starts_at: datetime | None


class EquivalenceClassReason(NamedTuple):
    """Why all claims of an equivalence class behind a position in their queue are pending."""

    reason: PendingReason
    behind: QueuePosition


class NoOpPlan(NamedTuple):
    """A plan that changed nothing, and its inputs; the snapshot includes claims that arrived since."""

    snapshot: SchedulingSnapshot
    policy: SchedulingPolicy
    at: datetime
    class_reasons: Mapping[EquivalenceClass, EquivalenceClassReason]


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulerState:
    """What one cycle passes on to the next; without it, a new round begins."""

    #: A round searches for every pending claim once and may take several cycles: those that are left of it.
    #: Claims that arrived since it began wait for the next round, unless they are among the first by priority.
    untried: frozenset[SearchKey] = frozenset()
    #: Uids of claims that did not start as the next cycle would have evicted them. It decides last for these, and
    #: cards that are nominated for them are released.
    deferred: frozenset[str] = frozenset()
    #: The last plan, if it changed nothing: what did not change since need not be planned again (``cycle.plan``).
    no_op: NoOpPlan | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingPlan:
    """The decisions of one cycle."""

    placements: tuple[ClaimPlacement, ...] = ()
    pending: PendingClaims = field(default_factory=PendingClaims)
    revocations: tuple[ClaimEviction, ...] = ()
    reservations: tuple[Reservation, ...] = ()
    #: What holds for others of a kind too, were there more of them.
    class_reasons: Mapping[EquivalenceClass, EquivalenceClassReason] = field(
        default_factory=dict, repr=False
    )
    #: For the next cycle.
    state: SchedulerState = field(default_factory=SchedulerState, repr=False)

    @property
    def unfinished(self) -> bool:
        """Whether another cycle should follow at once, as this one did not search for all claims that may fit."""
        moved = bool(self.placements or self.revocations)
        if self.state.untried or (moved and self.state.deferred):
            return True
        return bool(self.placements) and self.has_unevaluated_claims

    @property
    def has_unevaluated_claims(self) -> bool:
        groups = self.pending.groups
        return any(group.reason.code is PendingReasonCode.NOT_EVALUATED for group in groups)


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulingPolicy:
    """Bounds and choices of one cycle."""

    #: Most claims to place in one cycle; keeps a commit short.
    placements_per_cycle: int = 200
    #: Where others were not evaluated for it, the next cycle may place more, within this duration; None: never.
    cycle: timedelta | None = None
    #: Maximum number of searches in one cycle, except those for reservations; a claim decided without a search
    #: counts as one. Claims that were not evaluated are evaluated in one of the next cycles (``cycle``).
    attempts_per_cycle: int = 2000
    #: Evict claims for others that are entitled to their cards.
    preemption: bool = True
    #: Most claims for which others are evicted in one cycle.
    reclaims_per_cycle: int = 32
    #: Let claims use reserved nodes if they end before the reservation starts. Nodes without a reservation are
    #: available in any case.
    backfill: bool = True
    #: Claims that may keep room for themselves at the same time.
    reservations: int = 8
    #: How long evicted claims have to save their work.
    grace: timedelta = timedelta(seconds=120)
