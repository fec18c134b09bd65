"""The three loads with which Kueue measures its scheduler, as data.

Every queue has one producer for each set of its work: it asks for one piece after the other at fixed intervals,
all producers of all queues at the same time. A piece runs for its runtime once it was admitted; one that is
evicted goes back to its queue at once and starts anew. (Parameters: kubernetes-sigs/kueue,
test/performance/scheduler.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import NamedTuple


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkSet:
    """Equal pieces of work that one producer asks for."""

    name: str
    count: int
    every: timedelta
    runtime: timedelta
    priority: int
    replicas: int = 1
    #: Of each replica.
    cards: int
    #: Level of the network under one domain of which all of it must be, and the same as a wish.
    within: str = ""
    near: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fleet:
    """Equal nodes, rack by rack; without racks they hang together anyhow."""

    nodes: int
    cards: int
    racks: int = 0


class Piece(NamedTuple):
    """One piece of work, and when it is asked for after the beginning."""

    due: timedelta
    #: Its number; those of a cohort follow each other.
    queue: int
    work: WorkSet


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """Cohorts of equal queues, what each is asked for, and what was published of it."""

    name: str
    cohorts: int
    #: Of each cohort.
    queues: int
    guaranteed: int
    #: Most that a queue holds at once.
    cap: int
    sets: tuple[WorkSet, ...]
    fleet: Fleet
    #: Seconds that Kueue takes for it.
    published: float
    #: Goals, if it has one: seconds at most, or admissions a second at least.
    most_seconds: float | None = None
    least_rate: float | None = None

    @property
    def pieces(self) -> int:
        return self.cohorts * self.queues * sum(work.count for work in self.sets)

    @property
    def shortest(self) -> float:
        """Seconds that the work alone takes, if no guaranteed card is ever idle."""
        held = sum(
            work.count * work.replicas * work.cards * work.runtime.total_seconds()
            for work in self.sets
        )
        return held / self.guaranteed

    def timetable(self) -> Iterator[Piece]:
        """Every piece of work, in the order in which they are asked for."""
        pieces = (
            Piece(due=(number + 1) * work.every, queue=queue, work=work)
            for queue in range(self.cohorts * self.queues)
            for work in self.sets
            for number in range(work.count)
        )
        yield from sorted(pieces, key=lambda piece: (piece.due, piece.queue))

    def shortened(self, *, one_in: int) -> Load:
        """The same queues and intervals, with one of so many pieces each and for so much less long."""
        sets = tuple(replace(work, count=max(1, work.count // one_in)) for work in self.sets)
        return replace(self, sets=sets)

    def hurried(self, *, times: int) -> Load:
        """The same pieces, asked for so many times as fast and so many times as short."""
        sets = tuple(
            replace(work, every=work.every / times, runtime=work.runtime / times)
            for work in self.sets
        )
        return replace(self, sets=sets)

    def thinned(self, *, cohorts: int, queues: int, one_in: int, fleet: Fleet) -> Load:
        """The same with fewer queues, each with one of so many pieces, in a tenth of the time."""
        less = self.shortened(one_in=one_in).hurried(times=10)
        return replace(less, cohorts=cohorts, queues=queues, fleet=fleet)


def _ms(milliseconds: int) -> timedelta:
    return timedelta(milliseconds=milliseconds)


#: Name, priority and cards of one replica.
_CLASSES = (("small", 50, 1), ("medium", 100, 5), ("large", 200, 20))


def _classes(
    counts: Sequence[int], every: Sequence[int], runtimes: Sequence[int]
) -> tuple[WorkSet, ...]:
    """Small, medium and large; intervals and runtimes in milliseconds."""
    return tuple(
        WorkSet(
            name=name,
            count=count,
            every=_ms(gap),
            runtime=_ms(runtime),
            priority=priority,
            cards=cards,
        )
        for (name, priority, cards), count, gap, runtime in zip(
            _CLASSES, counts, every, runtimes, strict=True
        )
    )


#: A card is a quarter of a core there; required is ``within``, preferred and balanced are ``near``.
_GANGS = tuple(
    WorkSet(
        name=name,
        count=count,
        every=_ms(gap),
        runtime=_ms(runs),
        priority=priority,
        replicas=replicas,
        cards=cards,
        within="rack" if demanded else "",
        near="" if demanded else "rack",
    )
    for name, priority, replicas, cards, counts, gap, runs in (
        ("small", 50, 2, 2, (120, 120, 110), 100, 200),
        ("medium", 100, 4, 5, (34, 33, 33), 500, 500),
        ("large", 200, 8, 10, (17, 17, 16), 1200, 1000),
    )
    for count, demanded in zip(counts, (True, False, False), strict=True)
)

#: Where quota alone decides, there are a quarter more cards than quota: on a node of 100 that is not full there is
#: room for the largest piece whenever its queue may have it.
BASELINE = Load(
    name="baseline",
    cohorts=5,
    queues=6,
    guaranteed=20,
    cap=120,
    sets=_classes((350, 100, 50), (100, 500, 1200), (200, 500, 1000)),
    fleet=Fleet(nodes=8, cards=100),
    published=351.1,
    most_seconds=83,
)
LARGE = Load(
    name="large",
    cohorts=10,
    queues=100,
    guaranteed=20,
    cap=120,
    sets=_classes((35, 11, 4), (60, 300, 700), (150, 350, 700)),
    fleet=Fleet(nodes=250, cards=100),
    published=1179,
    least_rate=430,
)
#: The nodes are a sixth of theirs: of 10,240 cards the quotas allow 2,400 at once.
TOPOLOGY = Load(
    name="topology",
    cohorts=5,
    queues=6,
    guaranteed=80,
    cap=480,
    sets=_GANGS,
    fleet=Fleet(nodes=640, cards=16, racks=10),
    published=401,
)
#: No scheduler can be seen to do more than 227 a second of pieces that take 66 s themselves; these take 6.6.
HURRIED = replace(TOPOLOGY.hurried(times=10), name="topology-hurried", least_rate=374)
LOADS = {load.name: load for load in (BASELINE, LARGE, TOPOLOGY, HURRIED)}
