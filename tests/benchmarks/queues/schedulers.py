"""The scheduler as the worker runs it: a cycle whenever it is woken, one after the other.

As a program, ``tests.benchmarks.queues.schedulers HEARD RUNG``, it rings the second pipe when it is there and
whenever it has committed news, and is woken by the first until that ends; then it prints its figures as JSON.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass

from django.utils import timezone

from apps.quotas import reconcilers
from apps.quotas.selectors.scheduling_cycles import CYCLE_BUDGET
from controlplane.domain.scheduling.plans import SchedulingPolicy
from controlplane.outbox import messages
from tests.benchmarks.queues.bells import Bell
from tests.benchmarks.queues.processors import Spent, spent

#: Seconds after which it looks without being woken.
BEAT = 1.0
POLICY = SchedulingPolicy(cycle=CYCLE_BUDGET)


@dataclass(slots=True)
class Measurements:
    """What the cycles did, and the seconds that they took."""

    cycles: int = 0
    admitted: int = 0
    seconds: float = 0.0
    longest: float = 0.0
    #: Seconds of processors.
    spent: Spent | None = None


def schedule(work: Bell) -> Measurements:
    """Run cycles until nobody can ring the bell any more."""
    measurements, again, before = Measurements(), False, spent()
    while True:
        try:
            work.wait(seconds=0 if again else BEAT)
        except EOFError:
            break
        begin = time.monotonic()
        admitted = reconcilers.cycle_run(policy=POLICY, at=timezone.now())
        took = time.monotonic() - begin
        again = admitted >= POLICY.placements_per_cycle
        measurements.cycles += 1
        measurements.admitted += admitted
        measurements.seconds += took
        measurements.longest = max(measurements.longest, took)
    measurements.spent = spent().since(before)
    return measurements


def main() -> int:
    reading, rung = map(int, sys.argv[1:])
    changes = Bell(rung, rung)
    messages.set_after_publish_callbacks(changes.ring)
    reconcilers.cycle_run(policy=POLICY, at=timezone.now())
    changes.ring()
    print(json.dumps(asdict(schedule(Bell(reading, reading)))))
    return 0


if __name__ == "__main__":
    sys.exit(main())
