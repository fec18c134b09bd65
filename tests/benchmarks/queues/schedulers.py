"""The scheduler as the worker runs it: a cycle whenever a claim came or went, one after the other.

As a program, ``tests.benchmarks.queues.schedulers``, it runs until its standard input ends, then prints its
figures as JSON.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import asdict, dataclass

from django.utils import timezone

from apps.quotas import reconcilers
from apps.quotas.selectors.policies import CYCLE
from controlplane.domain.scheduling.policies import Policy
from controlplane.outbox.models import OutboxMessage
from tests.benchmarks.queues.processors import Spent, spent

#: Seconds between two looks when there is no news.
PAUSE = 0.002
POLICY = Policy(cycle=CYCLE)


@dataclass(slots=True)
class Figures:
    """What the cycles did, and the seconds that they took."""

    cycles: int = 0
    admitted: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    #: Seconds of processors.
    spent: Spent | None = None


def schedule(stop: threading.Event) -> Figures:
    """Run cycles until it is told to stop."""
    figures, heard, again, before = Figures(), 0, False, spent()
    while not stop.is_set():
        newest = _newest()
        if newest == heard and not again:
            time.sleep(PAUSE)
            continue
        heard, begin = newest, time.monotonic()
        admitted = reconcilers.cycle_run(policy=POLICY, at=timezone.now())
        took = time.monotonic() - begin
        again = admitted >= POLICY.placements_per_cycle
        figures.cycles += 1
        figures.admitted += admitted
        figures.seconds += took
        figures.longest = max(figures.longest, took)
    figures.spent = spent().since(before)
    return figures


def _newest() -> int:
    """The number of the newest news that a claim came or went."""
    news = OutboxMessage.objects.filter(topic__in=("claim.requested", "claim.released"))
    return news.order_by("-id").values_list("id", flat=True).first() or 0


def main() -> int:
    stop = threading.Event()

    def listen() -> None:
        sys.stdin.read()
        stop.set()

    threading.Thread(target=listen, daemon=True).start()
    print(json.dumps(asdict(schedule(stop))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
