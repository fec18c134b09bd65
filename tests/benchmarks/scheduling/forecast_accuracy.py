"""How far off forecasts of a start are, against taking the queue's median wait so far.

Now and then during a replay the product is asked when each claim that waits will start, knowing only the past:
what jobs took that have ended, and that tomorrow as much will be submitted as in the last day. When all have
started, both errors are taken over the same claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import numpy as np

from controlplane.domain.scheduling.forecast import ForecastAssumptions, forecast_starts
from controlplane.domain.scheduling.runtime_estimates import RuntimeHistory
from controlplane.domain.scheduling.snapshots import ClaimSnapshot, SchedulingSnapshot
from tests.benchmarks.scheduling.philly import Job, Seconds
from tests.benchmarks.scheduling.replays import DAY, POLICY, START, claim_of, number_of

HORIZON = timedelta(days=2)
GRAIN = timedelta(minutes=10)
MOST_CYCLES = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastSample:
    job: int
    #: Seconds since the first arrival.
    asked: float
    starts: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Errors:
    """Mean absolute errors over the same claims, in seconds."""

    claims: int
    forecast: float
    median_wait: float


@dataclass(slots=True)
class Foretelling:
    """Watches a replay and asks."""

    jobs: Sequence[Job]
    #: Seconds between questions.
    every: float
    samples: list[ForecastSample] = field(default_factory=list)
    _asked: float = 0.0

    def __call__(self, snapshot: SchedulingSnapshot, now: float, history: RuntimeHistory) -> None:
        if now - self._asked < self.every:
            return
        self._asked = now
        at = START + timedelta(seconds=now)
        assumptions = ForecastAssumptions(
            horizon=HORIZON,
            resolution=GRAIN,
            cycles=MOST_CYCLES,
            runtimes=history,
            arrivals=self._to_come(now, history),
        )
        forecasts = forecast_starts(snapshot, POLICY, at=at, assumptions=assumptions)
        for claim in snapshot.claims:
            starts = forecasts[claim.uid].starts_at or at + HORIZON
            self.samples.append(
                ForecastSample(
                    job=number_of(claim.uid),
                    asked=now,
                    starts=now + (starts - at).total_seconds(),
                )
            )

    def _to_come(self, now: float, history: RuntimeHistory) -> tuple[ClaimSnapshot, ...]:
        """What arrived in the last day, once more, a day later."""
        return tuple(
            replace(
                claim_of(job, history=history),
                uid=f"tomorrow-{job.number}",
                created_at=START + timedelta(seconds=job.arrives + DAY),
            )
            for job in self.jobs
            if now - DAY < job.arrives <= now
        )

    def errors(self, waiting_times: Seconds) -> Errors:
        """Against when the jobs did start.

        :raises ValueError: if nothing was foretold of a queue with a past.
        """
        arrives = np.array([job.arrives for job in self.jobs])
        queues = np.array([job.queue for job in self.jobs])
        starts = arrives + waiting_times
        by_forecast, by_median = [], []
        for each in self.samples:
            past = waiting_times[(queues == queues[each.job]) & (starts < each.asked)]
            if len(past):
                simple = max(each.asked, arrives[each.job] + float(np.median(past)))
                by_forecast.append(abs(each.starts - starts[each.job]))
                by_median.append(abs(simple - starts[each.job]))
        if not by_forecast:
            raise ValueError("nothing was foretold of a queue in which something had started")
        return Errors(
            claims=len(by_forecast),
            forecast=float(np.mean(by_forecast)),
            median_wait=float(np.mean(by_median)),
        )
