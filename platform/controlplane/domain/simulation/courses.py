"""What the processes of a Launch will do if nobody and nothing disturbs them.

Drawn from the seed of the Launch, so that the same one always goes the same way; labels of the Launch say it
outright where somebody wants to know beforehand::

    simulated.ninefold.io/prepare-seconds   simulated.ninefold.io/exit-code   simulated.ninefold.io/obeys
    simulated.ninefold.io/run-seconds       simulated.ninefold.io/output

Every duration is in seconds of the simulation. The run times of jobs are log-normal, which is what clusters
that publish theirs see: many short ones, and few that last for days.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from controlplane.domain.simulation.chances import chance

PREFIX = "simulated.ninefold.io/"


class CourseRefused(ValueError):
    """A label that says no course."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """An undisturbed run."""

    #: Until the software and the inputs are there.
    prepares: float = 0.0
    #: From the start of the process until it can serve, where it is probed.
    starts: float = 0.0
    #: Work until it ends by itself; None for one that serves until it is stopped.
    runs: float | None = None
    exit_code: int = 0
    #: What it dies of; empty if it does not.
    error: str = ""
    #: It ends when it is asked to, after it has saved for so long.
    obeys: bool = True
    saves: float = 0.0
    #: Steps of training, and the work that all of them are; 0 for what trains nothing.
    steps: int = 0
    whole: float = 0.0
    tokens_per_second: float = 0.0
    #: Exactly what it prints; None prints what such a program would.
    output: str | None = None
    seed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mix:
    """What is usual in a cluster."""

    #: Share of training runs that fail.
    failing: float = 0.06
    #: Median hours of a training run on one card; more cards take on longer ones.
    hours: float = 1.6
    #: Of the logarithm of run times.
    spread: float = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What is known of a Launch that matters to its course."""

    name: str
    #: The role of its processes, which tells the task.
    role: str
    cards: int
    #: Tokens a second that all its cards could train if they were always busy.
    peak_tokens: float
    #: Somebody hears what it reports, so it has something to save.
    reports: bool
    labels: Mapping[str, str]


#: Why trainings fail, with the exit code, as they say it themselves.
_ERRORS = (
    (1, "the loss is not a number; lower the learning rate"),
    (1, "RuntimeError: the collective timed out after 600 s: rank 3 did not answer"),
    (28, "OSError: [Errno 28] No space left on device"),
    (12, "out of memory: tried to allocate 2.31 GiB, and 1.07 GiB are free"),
)
_STEP_SECONDS = (1.5, 6.0)
#: Shares of the peak that training reaches.
_UTILIZATION = (0.28, 0.46)


def course_of(asked: Asked, *, seed: int, mix: Mix) -> Course:
    """The course of that Launch. The same seed gives the same one.

    :raises CourseRefused: if a label cannot be read.
    """
    draws = chance(seed, asked.name)
    drawn = _drawn(asked, draws, mix)
    said = {
        key.removeprefix(PREFIX): value
        for key, value in asked.labels.items()
        if key.startswith(PREFIX)
    }
    if not said:
        return drawn
    runs = _number(said, "run-seconds", usual=drawn.runs)
    code = _number(said, "exit-code", usual=0.0 if "run-seconds" in said else drawn.exit_code)
    return Course(
        prepares=_number(said, "prepare-seconds", usual=0.0) or 0.0,
        runs=runs,
        exit_code=int(code or 0),
        error=drawn.error,
        obeys=said.get("obeys", "yes") != "no",
        saves=drawn.saves,
        steps=drawn.steps,
        whole=runs if runs and "run-seconds" in said else drawn.whole,
        tokens_per_second=drawn.tokens_per_second,
        output=said.get("output"),
        seed=drawn.seed,
    )


def _drawn(asked: Asked, draws: Random, mix: Mix) -> Course:
    seed = f"{draws.getrandbits(64):016x}"
    prepares = draws.uniform(20, 90)
    match asked.role:
        case "server":
            return Course(prepares=prepares, starts=draws.uniform(60, 240), seed=seed)
        case "trainer" | "quantizer":
            return _training(asked, draws, mix, prepares=prepares, seed=seed)
        case _:
            hours = _log_normal(draws, median=mix.hours / 6, spread=mix.spread)
            return Course(prepares=prepares, runs=hours * 3600, seed=seed)


def _training(asked: Asked, draws: Random, mix: Mix, *, prepares: float, seed: str) -> Course:
    larger = 1 + 0.25 * math.log2(max(1, asked.cards))
    runs = 3600 * _log_normal(draws, median=mix.hours * larger, spread=mix.spread)
    steps = max(20, round(runs / draws.uniform(*_STEP_SECONDS)))
    rate = asked.peak_tokens * draws.uniform(*_UTILIZATION)
    fails = draws.random() < mix.failing
    code, error = draws.choice(_ERRORS) if fails else (0, "")
    return Course(
        prepares=prepares,
        # What fails does so on its way.
        runs=runs * (draws.uniform(0.02, 0.8) if fails else 1.0),
        exit_code=code,
        error=error,
        saves=draws.uniform(5, 20) if asked.reports else 0.0,
        steps=steps,
        whole=runs,
        tokens_per_second=round(rate, 1),
        seed=seed,
    )


def _log_normal(draws: Random, *, median: float, spread: float) -> float:
    return min(72.0, max(0.02, median * math.exp(draws.gauss(0.0, spread))))


def _number(said: Mapping[str, str], key: str, *, usual: float | None) -> float | None:
    if key not in said:
        return usual
    try:
        value = float(said[key])
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise CourseRefused(f"{PREFIX}{key} is a number from 0, got {said[key]!r}")
    return value
