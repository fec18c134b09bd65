"""The health snapshot that decisions depend on, the policy, and the decisions themselves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from controlplane.domain.common.accelerators import CardState
from controlplane.domain.health.faults import DurationEscalation, FaultLevel, RepeatRule


class HealthAction(StrEnum):
    """From little to much. The first is all that is done on L1."""

    NOTE = "note"
    RESTART_REQUEST = "restart_request"
    RESTART_JOB = "restart_job"
    #: Takes no new work; waits for a reset by an operator and a burn-in when what runs there has ended.
    RESET_WHEN_IDLE = "reset_when_idle"
    #: What runs there stops now; then it waits for a reset by an operator and a burn-in.
    RESET_NOW = "reset_now"
    ISOLATE_CARD = "isolate_card"
    ISOLATE_NODE = "isolate_node"
    #: Give it back: what was wrong is over and it has proved itself.
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
        """Whether what runs there is ended by it, and the place taken out of use."""
        return HealthAction.RESET_NOW.rank <= self.rank <= HealthAction.ISOLATE_NODE.rank


_RANKS: Mapping[HealthAction, int] = {action: rank for rank, action in enumerate(HealthAction)}


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionPolicy:
    """What may be decided without a person, and how soon."""

    #: At most this share of a pool's cards, in thousandths, may be out of use by our own decision. The first card
    #: or node of a pool is allowed whatever its share, unless this is 0.
    pool_share: int = 100
    #: And at most so many nodes may be touched within the window.
    nodes_per_window: int = 10
    window: timedelta = timedelta(minutes=10)
    #: Jobs may be restarted on at most so many nodes within the window.
    restarts_per_window: int = 50
    #: So many cards of one node that have to be isolated within the window are a matter of the node.
    cards_per_node: int = 3
    #: Silent together, they are not what is wrong: share of a cluster's nodes, in thousandths.
    stall_share: int = 300
    #: A node is stale when nothing has reported it for so long.
    heartbeat_timeout: timedelta = timedelta(seconds=15)
    #: The same fault so often within the time is worth isolation, whatever its level from L2 on. Notes count
    #: only where the maker gives a number for the code.
    min_occurrences: int = 3
    occurrences_within: timedelta = timedelta(hours=24)
    #: A fault that has ended must stay away for so long before it counts as over.
    settle: timedelta = timedelta(minutes=5)
    #: Score from which crashed jobs make a place suspect (``suspicions``), in jobs that only failed there.
    suspicion: float = 2.0
    suspicion_within: timedelta = timedelta(hours=24)


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
    #: A person took it out of use: that does not count against the guards.
    by_user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    uid: str
    cluster: str
    #: What the blast-radius guard counts over: cards of one chip in one cluster.
    pool: str
    cards: tuple[CardView, ...]
    last_seen_at: datetime | None = None
    #: Somebody else (MindCluster, NVSentinel) acts on its faults; empty: nobody.
    keeper: str = ""
    #: A device plug-in chooses the device: one bad card withholds the node.
    binds_by_node: bool = False


class CrashOrigin(StrEnum):
    """Whose doing the crash of a job looks like, by what it left behind."""

    HARDWARE = "hardware"
    UNCLEAR = "unclear"
    #: Its own program's: never held against a card.
    PROGRAM = "program"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """One attempt of a job that has ended, where it ran and how it went."""

    #: Uid of the job: attempts of one job say "the same program".
    job: str
    #: Who wrote the program: uid of the team or person; a broken script of one weighs once.
    owner: str
    #: Node uid → uids of the cards that it held there.
    places: Mapping[str, tuple[str, ...]]
    ended_at: datetime
    #: None: it succeeded. Cancelled and preempted attempts say nothing and do not belong here.
    failed: CrashOrigin | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IsolationView:
    """What rules took out of use and has not come back."""

    node: str
    #: Empty: the whole node.
    card: str
    #: When a burn-in passed; None: not yet.
    proved_at: datetime | None = None
    #: A person took it out: only a person gives it back.
    by_user: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthSnapshot:
    """All that a decision may depend on."""

    nodes: Mapping[str, NodeView]
    #: Those that stand, and those that ended within the longest time that repeats are counted over: the policy's,
    #: or a maker's for its code.
    faults: tuple[FaultView, ...]
    #: Faults about which this was done already: uid → the strongest action. What was held back is not done: it is
    #: told again in each turn for as long as it is held back.
    decided: Mapping[str, HealthAction] = field(default_factory=dict)
    #: When nodes were taken out, cards of them included, by rules: (node, at).
    recent: tuple[tuple[str, datetime], ...] = ()
    #: When jobs were restarted on nodes by rules: (node, at).
    restarted: tuple[tuple[str, datetime], ...] = ()
    #: When cards or nodes were given back last, by uid: what was known then is not held against them again.
    released: Mapping[str, datetime] = field(default_factory=dict)
    #: Attempts that ended within ``DecisionPolicy.suspicion_within``.
    runs: tuple[RunView, ...] = ()
    isolations: tuple[IsolationView, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthDecision:
    """One decision: of the whole node where ``card`` is empty."""

    node: str
    card: str
    #: Empty where no fault is behind it: a release, or a suspicion that no fault tells of.
    fault: str
    action: HealthAction
    reason: str
    #: The guard or keeper that holds it back, in words; empty: it is to be done.
    held_back: str = ""
    #: Held back since somebody else acts there: no person has to look.
    followed: bool = False
