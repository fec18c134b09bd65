"""What a cluster itself says is wrong with its nodes and cards, in no vendor's words, and our mark on nodes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol, runtime_checkable

from controlplane.domain.faults import FaultLevel
from controlplane.domain.health.signals import Origin

#: The code of a sign of silence: nobody has heard of the node for too long.
SILENT: Final = "node-silent"
#: The label of a node that says who acts on its faults, so that we only watch. Adapters set it where somebody
#: does, and leave what an administrator of the cluster set. Without it, or with ``OURS``, we act.
KEEPER: Final = "ninefold.io/keeper"
OURS: Final = "ninefold"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """One thing that the cluster says of a node, or of a card of it."""

    node: str
    #: The card's place in its node, as the inventory counts; None for the node itself.
    index: int | None = None
    origin: Origin
    #: A code of the vendor's fault map, a condition's type, an event's reason.
    code: str
    #: What has to be done; None where the fault map of ``vendor`` knows.
    level: FaultLevel | None = None
    #: Whose code it is; empty where it is nobody's in particular.
    vendor: str = ""
    #: Whoever says so calls it minor, should no fault map know the code.
    minor: bool = False
    #: In the words of whoever says so.
    message: str = ""
    #: When it happened, or began, as the cluster says; None where it does not.
    since: datetime | None = None
    #: False where it is said to be over, which is more than not being told of any more.
    active: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Unread:
    """Something that could not be read: what was said there before may still hold."""

    origin: Origin
    #: Empty where it is about every node.
    node: str = ""
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """All that a cluster says at one moment. What lasts, was said before and is not said here, is over."""

    signs: tuple[Sign, ...] = ()
    unread: tuple[Unread, ...] = ()


@runtime_checkable
class Diagnosed(Protocol):
    """A cluster that says itself what is wrong with its nodes and cards."""

    def diagnose(self) -> Diagnosis:
        """What it says now, in few calls whatever its size; what is malformed or kept from us is ``unread``.

        :raises ClusterUnavailable: if it does not answer: then nothing is said of any card.
        """
        ...


@runtime_checkable
class Markable(Protocol):
    """A cluster whose own scheduler can be kept away from a node that we took out of use."""

    def mark(self, node: str, reason: str) -> bool:
        """Keep new work of everybody away from it; what runs there goes on.

        Repeating it changes nothing, or the reason. Cordons and marks of others are left as they are.

        :return: whether a mark of ours is there now; not if the node is gone, or bears another installation's.
        :raises ClusterError: if it does not answer or refuses.
        """
        ...

    def unmark(self, node: str) -> None:
        """Take our mark away; where none is, or no such node, nothing happens.

        :raises ClusterError: if it does not answer or refuses.
        """
        ...
