"""What breaks in a fleet, how often, and how each vendor's exporter tells of it.

The mix and the rate are those of a published training run: 419 unexpected interruptions in 54 days on 16,384
cards, of which these six kinds concern cards and nodes (Llama Team, "The Llama 3 Herd of Models", table 5). The
codes are the drill's own mapping. A broken cable or switch has no code of its own on most fleets: it is told of as
the link's or port's error of the card behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from random import Random


class Kind(StrEnum):
    GPU = "card"
    HBM = "memory"
    NETWORK = "network"
    SRAM = "on-chip memory"
    PROCESSOR = "card's processor"
    CPU = "processor of the node"


#: Interruptions of each kind.
PUBLISHED: Mapping[Kind, int] = {
    Kind.GPU: 148,
    Kind.HBM: 72,
    Kind.NETWORK: 35,
    Kind.SRAM: 19,
    Kind.PROCESSOR: 17,
    Kind.CPU: 2,
}
_CARDS, _HOURS = 16_384, 54 * 24
#: Faults of a card in an hour.
BASE_RATE = sum(PUBLISHED.values()) / (_CARDS * _HOURS)


class Expected(StrEnum):
    """What has to come of it."""

    OUT = "out of use"
    RESTART = "the job is run again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sign:
    """How a fault shows: as an exporter's code, or as a condition of the node."""

    code: str = ""
    condition: str = ""
    expected: Expected = Expected.OUT


def _codes(*codes: str) -> tuple[Sign, ...]:
    return tuple(Sign(code=code) for code in codes)


def _restarts(*codes: str) -> tuple[Sign, ...]:
    return tuple(Sign(code=code, expected=Expected.RESTART) for code in codes)


_MACHINE_CHECK = (Sign(condition="CperHardwareErrorFatal"),)
CONDITIONS: Mapping[str, Mapping[Kind, tuple[Sign, ...]]] = {
    "nvidia": {
        # Fallen off the bus; its controller stopped.
        Kind.GPU: _codes("79", "62"),
        # Uncontained error, failed remapping, contained error: the last costs the job, not the card.
        Kind.HBM: (*_codes("95", "64"), *_restarts("94")),
        Kind.NETWORK: _codes("74"),
        Kind.SRAM: _codes("48"),
        Kind.PROCESSOR: _codes("119", "120"),
        Kind.CPU: _MACHINE_CHECK,
    },
    "ascend": {
        # A core for matrices; a failed stress test.
        Kind.GPU: _codes("80C98001", "80818C05"),
        Kind.HBM: (*_codes("80E18005", "A8028801"), *_restarts("80E01801")),
        Kind.NETWORK: _codes("80BD8008"),
        Kind.SRAM: _codes("80CD8008"),
        Kind.PROCESSOR: _codes("80A18008"),
        Kind.CPU: _MACHINE_CHECK,
    },
}
#: What healthy cards say too: mistakes of programs and notes. None of it takes a card out of use.
HARMLESS: Mapping[str, tuple[str, ...]] = {
    "nvidia": ("13", "31", "43", "45", "63", "92"),
    "ascend": ("80E01809", "80818C06", "8C1F860B", "A4028801"),
}
#: Of nodes: they keep new pods away by themselves or concern people only.
HARMLESS_CONDITIONS = ("MemoryPressure", "FrequentKubeletRestart", "NTPProblem")
#: A card's code that is worth a restart of the job, and how often it may come until it is worth isolation: the
#: policy's number, and the maker's own.
FLAPPING: Mapping[str, tuple[str, int]] = {"nvidia": ("94", 3), "ascend": ("80E01801", 2)}
#: Codes worth isolation at once.
WORST: Mapping[str, str] = {"nvidia": "79", "ascend": "80818C05"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    name: str
    vendor: str
    cards: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Onset:
    """One fault begins."""

    at: datetime
    kind: Kind
    node: Node
    #: None: the node itself.
    index: int | None
    sign: Sign


def onsets(
    nodes: Sequence[Node], *, began_at: datetime, hours: float, rate: float, draws: Random
) -> Iterator[Onset]:
    """Faults in the order of their times: a Poisson process of ``rate`` times the published rate."""
    cards = sum(node.cards for node in nodes)
    an_hour = BASE_RATE * cards * rate
    at, until = began_at, began_at + timedelta(hours=hours)
    while (at := at + timedelta(hours=draws.expovariate(an_hour))) < until:
        (kind,) = draws.choices(tuple(PUBLISHED), tuple(PUBLISHED.values()))
        node = draws.choice(nodes)
        sign = draws.choice(CONDITIONS[node.vendor][kind])
        index = None if sign.condition else draws.randrange(node.cards)
        yield Onset(at=at, kind=kind, node=node, index=index, sign=sign)
