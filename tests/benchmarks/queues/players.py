"""Plays one load against a scheduler in a process of its own; the figures come as JSON.

As a program: ``tests.benchmarks.queues.players LOAD ONE_IN``, with one of so many pieces.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace

from django.db.models import Sum
from django.utils import timezone

from apps.quotas.models import Allocation, Claim, UsageRecord
from controlplane.domain.quotas.claims import ClaimState
from controlplane.outbox import messages
from tests.benchmarks.queues.bells import Bell
from tests.benchmarks.queues.companies import company
from tests.benchmarks.queues.databases import ROOT, program
from tests.benchmarks.queues.loads import LOADS, Load
from tests.benchmarks.queues.owners import TOPICS, Owners
from tests.benchmarks.queues.processors import Spent, spent
from tests.benchmarks.queues.rows import record

#: Seconds that a load may take.
PATIENCE = 540.0
#: And that the scheduler may take to start.
START = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """A load from its first request to its last end."""

    load: str
    pieces: int
    seconds: float
    evictions: int
    #: Of the guaranteed cards, the part that was held on average.
    held: float
    #: Seconds from the first request to the first admission on average, by the name of the set.
    waiting_times: Mapping[str, float]
    #: Seconds that the owners spent asking, giving back and listening.
    spent: Mapping[str, float]
    #: The same in seconds of processors.
    processors: Spent

    @property
    def rate(self) -> float:
        """Pieces a second."""
        return self.pieces / self.seconds


def prepared(load: Load) -> Owners:
    """The owners of the load, in an empty database; whatever it is about, they hear it."""
    messages.set_subscribed_topics(TOPICS)
    return Owners(load=load, team=record(company(load), at=timezone.now()), changes=Bell.hung())


def measurements_of(owners: Owners, *, seconds: float, processors: Spent) -> Played:
    """What came of it.

    :raises RuntimeError: if anything is held still, or the ledger is not what was held.
    """
    if left := Claim.objects.exclude(state=ClaimState.RELEASED).count():
        raise RuntimeError(f"{left} claims have not been released")
    if held := Allocation.objects.filter(released_at=None).count():
        raise RuntimeError(f"{held} cards are held by nobody's claim")
    load = owners.load
    waiting_times: dict[str, list[float]] = {}
    for work in owners.finished:
        waiting_times.setdefault(work.piece.work.name, []).append(work.waited)
    guaranteed = load.cohorts * load.queues * load.guaranteed
    return Played(
        load=load.name,
        pieces=len(owners.finished),
        seconds=seconds,
        evictions=owners.evictions,
        held=_card_seconds() / guaranteed / seconds,
        waiting_times={name: statistics.fmean(each) for name, each in waiting_times.items()},
        spent=dict(owners.spent),
        processors=processors,
    )


def _card_seconds() -> float:
    total = UsageRecord.objects.aggregate(total=Sum("card_microseconds"))["total"]
    return (total or 0) / 1e6


def main() -> int:
    name, one_in = sys.argv[1], int(sys.argv[2])
    owners, work = prepared(LOADS[name].shortened(one_in=one_in)), Bell.hung()
    pipes = (work.reading, owners.changes.rung)
    scheduler = subprocess.Popen(
        program("tests.benchmarks.queues.schedulers", *map(str, pipes)),
        cwd=ROOT,
        env=dict(os.environ),
        stdout=subprocess.PIPE,
        pass_fds=pipes,
        text=True,
    )
    # Its own ends are the other's now: should it die, the next to hear is told that nobody rings.
    for pipe in pipes:
        os.close(pipe)
    messages.set_after_publish_callbacks(work.ring)
    try:
        # A company's scheduler runs before anybody asks for anything.
        if not owners.changes.wait(seconds=START):
            raise TimeoutError(f"the scheduler did not start within {START} s")
        before = spent()
        seconds = owners.run(within=PATIENCE)
    finally:
        messages.set_after_publish_callbacks()
        os.close(work.rung)
        cycles, _ = scheduler.communicate(timeout=60)
    used = spent().since(before)
    used = replace(used, database=used.database + owners.database)
    played = measurements_of(owners, seconds=seconds, processors=used)
    print(json.dumps({**asdict(played), "cycles": json.loads(cycles)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
