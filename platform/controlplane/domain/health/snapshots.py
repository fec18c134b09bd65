"""The health snapshot that decisions depend on, the policy, and the decisions themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Self

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.faults import DurationEscalation, FaultLevel, RepeatRule


class HealthAction(StrEnum):
    """From little to much. The first is all that is done on L1."""

    NOTE = "note"
    RESTART_REQUEST = "restart_request"
    RESTART_JOB = "restart_job"
    #: Accepts no new workloads; after the running ones have ended, it waits for a reset by an operator and a
    #: burn-in run.
    RESET_WHEN_IDLE = "reset_when_idle"
    #: Running workloads are evicted; then it waits for a reset by an operator and a burn-in run.
    RESET_NOW = "reset_now"
    ISOLATE_CARD = "isolate_card"
    ISOLATE_NODE = "isolate_node"
    #: Release: the causes have ended and it has passed its burn-in run.
    RELEASE = "release"

    @property
    def rank(self) -> int:
        """How much it does; the enumeration runs from little to much."""
        return _RANKS[self]

    @property
    def removes_capacity(self) -> bool:
        """Whether capacity is lost by it: these are what the guards count."""
        return HealthAction.RESET_WHEN_IDLE.rank <= self.rank <= HealthAction.ISOLATE_NODE.rank

    @property
    def stops(self) -> bool:
        """Whether it evicts running workloads and isolates the target."""
        return HealthAction.RESET_NOW.rank <= self.rank <= HealthAction.ISOLATE_NODE.rank


_RANKS: Mapping[HealthAction, int] = {action: rank for rank, action in enumerate(HealthAction)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionPolicy:
    """Limits and intervals of automatic decisions."""

    #: Maximum share of a pool's cards, in thousandths, that rules may have isolated. The first card or node of
    #: a pool is allowed whatever its share, unless this is 0.
    pool_share: int = 100
    #: And at most so many nodes may be touched within the window.
    nodes_per_window: int = 10
    window: timedelta = timedelta(minutes=10)
    #: Jobs may be restarted on at most so many nodes within the window.
    restarts_per_window: int = 50
    #: So many cards of one node that have to be isolated within the window are a matter of the node.
    cards_per_node: int = 3
    #: If at least this share of a cluster's nodes, in thousandths, is stale, monitoring is the likely cause.
    stall_share: int = 300
    #: A node is stale when nothing has reported it for so long.
    heartbeat_timeout: timedelta = timedelta(seconds=15)
    #: The same fault so often within the time justifies isolation, for levels from L2 on. Level 1 counts only
    #: if the vendor publishes a number for the code.
    min_occurrences: int = 3
    occurrences_within: timedelta = timedelta(hours=24)
    #: A fault that has ended must stay away for so long before it counts as over.
    settle: timedelta = timedelta(minutes=5)
    #: Score from which crashed jobs make a target suspicious (``suspicions``), in jobs that failed only there.
    suspicion: float = 2.0
    suspicion_within: timedelta = timedelta(hours=24)

    def as_settings(self) -> dict[str, float]:
        """Each setting as a number: durations in seconds."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {
            name: value.total_seconds() if isinstance(value, timedelta) else value
            for name, value in values.items()
        }

    @classmethod
    def from_settings(cls, settings: Mapping[str, float]) -> Self:
        """The inverse of ``as_settings``; missing settings have their default, unknown ones are ignored."""
        given = {_RENAMED_SETTINGS.get(name, name): value for name, value in settings.items()}
        changes: dict[str, Any] = {
            field.name: timedelta(seconds=given[field.name])
            if isinstance(field.default, timedelta)
            else given[field.name]
            for field in fields(cls)
            if field.name in given
        }
        return cls(**changes)


#: Settings of version 0.1.0 that are stored → their present names.
_RENAMED_SETTINGS: Mapping[str, str] = {
    "repeats": "min_occurrences",
    "repeats_within": "occurrences_within",
    "silent_after": "heartbeat_timeout",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultView:
    uid: str
    #: Uids; ``card`` is empty for a fault of the node itself.
    node: str
    card: str
    origin: str
    code: str
    level: FaultLevel
    began_at: datetime
    reported_at: datetime
    ended_at: datetime | None = None
    count: int = 1
    #: The vendor's own numbers for the code (``Meaning.repeat_rule``, ``Meaning.lasting``); None: the policy's,
    #: none.
    repeat_rule: RepeatRule | None = None
    lasting: DurationEscalation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    uid: str
    state: CardState
    #: Uid of the claim that holds it; empty: none.
    claim: str = ""
    #: A user isolated it, which does not count for the guards.
    by_user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    uid: str
    cluster: str
    #: What the blast-radius guard counts over: cards of one chip in one cluster.
    pool: str
    cards: tuple[CardView, ...]
    last_seen_at: datetime | None = None
    #: Another system (MindCluster, NVSentinel) handles its faults; empty: none.
    keeper: str = ""
    #: A device plug-in chooses the device: one bad card withholds the node.
    binds_by_node: bool = False


class CrashOrigin(StrEnum):
    """The likely cause of a job's crash, from its log."""

    HARDWARE = "hardware"
    UNCLEAR = "unclear"
    #: Its own program's: never held against a card.
    PROGRAM = "program"


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRunView:
    """One attempt of a job that has ended, where it ran and how it went."""

    #: Uid of the job: its attempts run the same program.
    job: str
    #: Owner of the program: uid of the team or user; a broken program counts once.
    owner: str
    #: Node uid → uids of the cards that it held there.
    places: Mapping[str, tuple[str, ...]]
    ended_at: datetime
    #: None: it succeeded. Cancelled and preempted attempts are no evidence and are not included.
    failed: CrashOrigin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationView:
    """An open isolation by a rule."""

    node: str
    #: Empty: the whole node.
    card: str
    #: When a burn-in passed; None: not yet.
    proved_at: datetime | None = None
    #: A user isolated it: only a user releases it.
    by_user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSnapshot:
    """All that a decision may depend on."""

    nodes: Mapping[str, NodeView]
    #: Open faults, and those that ended within the longest time range of repetitions: the policy's, or a
    #: vendor's for its code.
    faults: tuple[FaultView, ...]
    #: Handled faults: uid → the strongest action. A suppressed action is not handled: it is decided in each run
    #: while it is suppressed.
    decided: Mapping[str, HealthAction] = field(default_factory=dict)
    #: When rules isolated nodes, including their cards: (node, at).
    recent: tuple[tuple[str, datetime], ...] = ()
    #: When jobs were restarted on nodes by rules: (node, at).
    restarted: tuple[tuple[str, datetime], ...] = ()
    #: Last release of cards and nodes, by uid: earlier evidence no longer counts.
    released: Mapping[str, datetime] = field(default_factory=dict)
    #: Attempts that ended within ``DecisionPolicy.suspicion_within``.
    runs: tuple[AttemptRunView, ...] = ()
    isolations: tuple[IsolationView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthDecision:
    """One decision: of the whole node where ``card`` is empty."""

    node: str
    card: str
    #: Empty without a fault: a release, or a suspicion without a fault.
    fault: str
    action: HealthAction
    reason: str
    #: The guard or other system that suppresses it; empty: it is to be executed.
    held_back: str = ""
    #: Suppressed because another system handles it: no user has to decide.
    followed: bool = False
