"""What is done about faults: a pure function of what stands, what the policy allows and the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from controlplane.domain.accelerators import CardState
from controlplane.domain.faults import FaultLevel


class Action(StrEnum):
    """From little to much. The first is all that is done on L1."""

    NOTE = "note"
    RESTART_REQUEST = "restart_request"
    RESTART_JOB = "restart_job"
    #: Takes no new work; is reset and tested when what runs there has ended.
    RESET_WHEN_IDLE = "reset_when_idle"
    #: What runs there stops now, then it is reset and tested.
    RESET_NOW = "reset_now"
    ISOLATE_CARD = "isolate_card"
    ISOLATE_NODE = "isolate_node"
    #: Give it back: what was wrong is over and it has proved itself.
    RELEASE = "release"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """What may be decided without a person, and how soon."""

    #: At most this share of a pool's cards, in thousandths, may be out of use by our own decision.
    pool_share: int = 100
    #: And at most so many nodes may be touched within the window.
    nodes_per_window: int = 10
    window: timedelta = timedelta(minutes=10)
    #: Silent together, they are not what is wrong: share of a cluster's nodes, in thousandths.
    stall_share: int = 300
    #: A node is silent when nothing has been heard of it for so long.
    silent_after: timedelta = timedelta(seconds=15)
    #: The same fault so often within the time is worth isolation, whatever its level.
    repeats: int = 3
    repeats_within: timedelta = timedelta(hours=24)
    #: A fault that has ended must stay away for so long before it counts as over.
    settle: timedelta = timedelta(minutes=5)


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
    told_at: datetime
    ended_at: datetime | None = None
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CardView:
    uid: str
    state: CardState
    #: Uid of the claim that holds it; empty: none.
    claim: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeView:
    uid: str
    cluster: str
    #: What the blast-radius guard counts over: cards of one chip in one cluster.
    pool: str
    cards: tuple[CardView, ...]
    heard_at: datetime | None = None
    #: Somebody else (MindCluster, NVSentinel) acts on its faults; empty: nobody.
    keeper: str = ""
    #: A device plug-in chooses the device: one bad card withholds the node.
    binds_by_node: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """All that a decision may depend on."""

    nodes: Mapping[str, NodeView]
    faults: tuple[FaultView, ...]
    #: Faults about which this was decided already: uid → the strongest action.
    decided: Mapping[str, Action] = field(default_factory=dict)
    #: When nodes were taken out, cards of them included, by rules: (node, at).
    recent: tuple[tuple[str, datetime], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """One decision: of the whole node where ``card`` is empty."""

    node: str
    card: str
    fault: str
    action: Action
    reason: str
    #: The guard or keeper that holds it back, in words; empty: it is to be done.
    held_back: str = ""
