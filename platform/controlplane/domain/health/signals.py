"""A sign that something is wrong with a card or a node, whoever saw it, in one form."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from controlplane.domain.faults import FaultLevel


class Origin(StrEnum):
    """Who says so."""

    #: The figures or fault codes of an exporter, or a push of its text.
    EXPORTER = "exporter"
    #: The product's own agent on the node.
    AGENT = "agent"
    #: A condition of a Kubernetes node.
    CONDITION = "condition"
    #: An event of Kubernetes.
    EVENT = "event"
    MINDCLUSTER = "mindcluster"
    NVSENTINEL = "nvsentinel"
    #: What a job left behind when it crashed.
    JOB = "job"
    #: A rule over figures (``rules``).
    RULE = "rule"
    #: Nothing has been heard of it for too long.
    SILENCE = "silence"
    PERSON = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One sign. Those of the same ``key`` tell of the same fault, again or no longer."""

    origin: Origin
    #: Uid of the cluster, and the node's name there.
    cluster: str
    node: str
    #: The card's place in its node; None for the node itself.
    index: int | None
    #: As the origin writes it: a code of the vendor's fault map, a condition's type, a rule's name.
    code: str
    level: FaultLevel
    at: datetime
    #: False where the origin says that it is over.
    active: bool = True
    #: In the origin's words, for people.
    message: str = ""
    #: Whose code it is; empty where it is nobody's in particular.
    vendor: str = ""

    @property
    def key(self) -> tuple[str, str, int | None, str, str]:
        return (self.cluster, self.node, self.index, self.origin, self.code)
