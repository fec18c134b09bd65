"""Faults of cards: six levels that all chips share, and how a vendor's codes map to them.

::

    L1 note ─ L2 restart the request ─ L3 restart the job ─ L4 reset when idle ─ L5 reset now ─ L6 isolate

An unknown code has level 1 if its vendor calls it minor, and isolates the card otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import IntEnum, StrEnum

#: Ends the beginning that a family of codes has in common.
FAMILY = "*"


class FaultLevel(IntEnum):
    """Severity: the action that a fault requires, in ascending order."""

    NOTE = 1
    RESTART_REQUEST = 2
    RESTART_JOB = 3
    RESET_WHEN_IDLE = 4
    RESET_NOW = 5
    ISOLATE = 6


#: Remedy of codes of which only the level is known.
REMEDIES: Mapping[FaultLevel, str] = {
    FaultLevel.NOTE: "No action required. If the fault recurs often, test the hardware.",
    FaultLevel.RESTART_REQUEST: (
        "Send the request again. If the fault recurs on the same hardware, test it."
    ),
    FaultLevel.RESTART_JOB: "Restart the job. If the fault recurs on the same hardware, test it.",
    FaultLevel.RESET_WHEN_IDLE: (
        "Wait until the running workloads end, then reset or repair the hardware and run a burn-in."
    ),
    FaultLevel.RESET_NOW: (
        "Evict the workloads, reset the card and run a burn-in. If the fault recurs, replace the card."
    ),
    FaultLevel.ISOLATE: "Keep the hardware isolated, and test or replace it.",
}


class CardFitness(StrEnum):
    """What a card with that fault is still good for."""

    FIT = "fit"
    #: It works, slower than it should.
    DEGRADED = "degraded"
    #: Running workloads continue; no new ones are placed there.
    NO_NEW_WORK = "no_new_work"
    OUT = "out"


_FITNESS: Mapping[FaultLevel, CardFitness] = {
    FaultLevel.NOTE: CardFitness.FIT,
    FaultLevel.RESTART_REQUEST: CardFitness.FIT,
    FaultLevel.RESTART_JOB: CardFitness.FIT,
    FaultLevel.RESET_WHEN_IDLE: CardFitness.NO_NEW_WORK,
    FaultLevel.RESET_NOW: CardFitness.OUT,
    FaultLevel.ISOLATE: CardFitness.OUT,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatRule:
    """So often within the time, the fault is worth isolation; ``times`` 0: however often, it never is."""

    times: int
    within: timedelta


#: For errors of programs: their repetition is no evidence against the card.
NEVER = RepeatRule(times=0, within=timedelta(0))


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationEscalation:
    """After this time the fault has that level."""

    after: timedelta
    level: FaultLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultMeaning:
    """Meaning of a code, for display and for decisions."""

    #: English text with the vendor's own name of the fault; empty if the vendor publishes nothing about the code.
    cause: str
    remedy: str
    level: FaultLevel
    state: CardFitness
    #: The vendor's own rule; None: that of the policy.
    repeat_rule: RepeatRule | None = None
    lasting: DurationEscalation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultTexts:
    """Cause and remedy of a fault code or of a family of codes."""

    cause: str
    #: Empty: that of the family of the code, or else of its level.
    remedy: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultMap:
    """One vendor's fault codes."""

    #: Code, as the vendor's tools print it → level.
    levels: Mapping[str, FaultLevel] = field(default_factory=dict)
    #: Code, or the prefix of a family of codes and a star → cause and remedy. The longest prefix wins; without a
    #: remedy, it has that of the next one.
    texts: Mapping[str, FaultTexts] = field(default_factory=dict)
    #: Where a code leaves the card in another state than its level does.
    states: Mapping[str, CardFitness] = field(default_factory=dict)
    repeat_rules: Mapping[str, RepeatRule] = field(default_factory=dict)
    lasting: Mapping[str, DurationEscalation] = field(default_factory=dict)
    #: Where the codes and their meaning were read.
    sources: tuple[str, ...] = ()

    def level(self, code: str, *, minor: bool = False) -> FaultLevel:
        """Level of a code; ``minor`` is the vendor's classification, for codes in no table."""
        known = self.levels.get(code)
        if known is not None:
            return known
        return FaultLevel.NOTE if minor else FaultLevel.ISOLATE

    def meaning(self, code: str, *, minor: bool = False) -> FaultMeaning:
        """Meaning of a code; for a code in no table, its level with empty cause and remedy."""
        level = self.level(code, minor=minor)
        texts = self._code_texts(code)
        remedies = (each.remedy for each in texts if each.remedy)
        return FaultMeaning(
            cause=texts[0].cause if texts else "",
            remedy=next(remedies, REMEDIES[level]) if texts else "",
            level=level,
            state=self.states.get(code, _FITNESS[level]),
            repeat_rule=self.repeat_rules.get(code),
            lasting=self.lasting.get(code),
        )

    def _code_texts(self, code: str) -> tuple[FaultTexts, ...]:
        """Texts of the code and of its families, the most specific first."""
        if code not in self.levels:
            return ()
        families = (f"{code[:length]}{FAMILY}" for length in range(len(code), 0, -1))
        return tuple(self.texts[each] for each in (code, *families) if each in self.texts)


class SignalOrigin(StrEnum):
    """The source of a signal."""

    #: Metrics or fault codes of an exporter, or pushed text.
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
    #: A health rule (``rules``).
    RULE = "rule"
    #: No metrics within the heartbeat timeout.
    SILENCE = "silence"
    USER = "person"


@dataclass(frozen=True, slots=True, kw_only=True)
class FaultSignal:
    """A signal. Those of one origin, card or node, and code belong to the same fault, active or ended."""

    origin: SignalOrigin
    #: Uid of the cluster, and the node's name there.
    cluster: str
    node: str
    #: The card's place in its node; None for the node itself.
    index: int | None
    #: As the origin writes it: a code of the vendor's fault map, a condition's type, a rule's name.
    code: str
    level: FaultLevel
    at: datetime
    #: False if the origin reports the end.
    active: bool = True
    #: Text of the origin, for display.
    message: str = ""
    #: Vendor of the code; empty for general codes.
    vendor: str = ""
