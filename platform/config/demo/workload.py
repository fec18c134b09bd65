"""Generate the jobs that the sample teams submit; seeded, so that every demo has the same day.

Arrivals follow an hourly rate that is higher during working hours. Job sizes follow published cluster
traces: most jobs are small, and the few large ones use most of the cards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from controlplane.domain.jobs.lifecycle import JobKind
from controlplane.domain.simulation.run_profiles import seeded_random

#: Jobs an hour by the hour of the day in UTC, for all teams together.
_A_QUIET_HOUR, _A_BUSY_HOUR = 12, 26
_BUSY = range(6, 18)
#: Cards of a training → how often.
_SIZES = {1: 20, 2: 16, 4: 12, 8: 30, 16: 13, 32: 8, 64: 4}
#: Chips → how often; a preference with a second choice now and then.
_CHIPS: dict[tuple[str, ...], int] = {
    ("nvidia-h800",): 22,
    ("nvidia-h800", "nvidia-a800-80gb"): 8,
    ("nvidia-a800-80gb",): 14,
    ("nvidia-h20",): 14,
    ("ascend-910b3",): 22,
    ("ascend-910c",): 20,
}
#: Cards of the second generation come in pairs.
_PAIRED = "ascend-910c"
_KINDS = {JobKind.FINETUNE: 84, JobKind.EVALUATE: 8, JobKind.SCRIPT: 8}


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoJobRequest:
    """One job to submit."""

    at: datetime
    #: Index of the team in the company.
    team: int
    topic: int
    kind: JobKind
    cards: int
    chips: tuple[str, ...]
    engine: str
    learning_rate: float


def demo_job_requests(
    *, since: datetime, until: datetime, shares: tuple[int, ...]
) -> Iterator[DemoJobRequest]:
    """Yield the jobs submitted after ``since`` and not after ``until``, in order, by shares of the teams."""
    hour = since.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    while hour <= until:
        yield from (one for one in _random_jobs_of_hour(hour, shares) if since < one.at <= until)
        hour += timedelta(hours=1)


def _random_jobs_of_hour(hour: datetime, shares: tuple[int, ...]) -> list[DemoJobRequest]:
    rng = seeded_random("demo", hour.isoformat())
    count = _A_BUSY_HOUR if hour.hour in _BUSY else _A_QUIET_HOUR
    minutes = sorted(rng.uniform(0, 60) for _ in range(count))
    return [_random_job_request(hour + timedelta(minutes=minute), shares) for minute in minutes]


def _random_job_request(at: datetime, shares: tuple[int, ...]) -> DemoJobRequest:
    rng = seeded_random("demo", at.isoformat())
    (kind,) = rng.choices(list(_KINDS), weights=list(_KINDS.values()))
    (chips,) = rng.choices(list(_CHIPS), weights=list(_CHIPS.values()))
    (cards,) = rng.choices(list(_SIZES), weights=list(_SIZES.values()))
    (team,) = rng.choices(range(len(shares)), weights=shares)
    gpu = chips[0].startswith("nvidia")
    if kind is JobKind.EVALUATE and not gpu:
        # What evaluates runs on GPUs.
        chips, gpu = ("nvidia-a800-80gb",), True
    if kind is not JobKind.FINETUNE:
        cards = 1
    elif chips == (_PAIRED,) and cards > 1 and cards < 16:
        cards = max(2, cards)
    engine = "transformers" if kind is not JobKind.FINETUNE else rng.choice(_TRAINERS[gpu])
    return DemoJobRequest(
        at=at,
        team=team,
        topic=rng.randrange(4),
        kind=kind,
        cards=cards,
        chips=chips,
        engine=engine,
        learning_rate=rng.choice((1e-5, 2e-5, 5e-5, 1e-4, 2e-4)),
    )


#: On GPUs, and not.
_TRAINERS = {True: ("llamafactory", "ms_swift"), False: ("ms_swift", "llamafactory")}
