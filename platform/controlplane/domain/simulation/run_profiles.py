"""Run profiles: what the processes of a Launch do without faults and stops.

A profile is drawn from a seed and the name of the Launch, so that it is reproducible; labels of the Launch
override its values::

    simulated.ninefold.io/prepare-seconds   simulated.ninefold.io/exit-code   simulated.ninefold.io/obeys
    simulated.ninefold.io/run-seconds       simulated.ninefold.io/output

All durations are in seconds of simulated time. Run times of jobs are log-normal, as in published cluster traces:
many short ones, and few that last for days.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

PREFIX = "simulated.ninefold.io/"


class RunProfileRefused(ValueError):
    """A label has an invalid value."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProfile:
    """A run without faults and stops; durations in seconds of simulated time."""

    #: Time to prepare software and inputs.
    prepares: float = 0.0
    #: Time from the start of the process until it is ready, where it is probed.
    starts: float = 0.0
    #: Work until it exits by itself; None for a server, which runs until it is stopped.
    runs: float | None = None
    exit_code: int = 0
    #: Error message of a failure; empty if it succeeds.
    error: str = ""
    #: Whether it exits when it is stopped, after saving for ``saves`` seconds.
    obeys: bool = True
    saves: float = 0.0
    #: Training steps, and the work of all of them; 0 if it does not train.
    steps: int = 0
    whole: float = 0.0
    tokens_per_second: float = 0.0
    #: Its exact log; None for a generated one.
    output: str | None = None
    seed: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadDistribution:
    """Parameters of the distribution of runs in a cluster."""

    #: Share of training runs that fail.
    failing: float = 0.06
    #: Median hours of a training run on one card; runs on more cards are longer.
    hours: float = 1.6
    #: Standard deviation of the logarithm of run times.
    spread: float = 0.9


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchTraits:
    """Properties of a Launch that determine its run profile."""

    name: str
    #: The role of its processes, which depends on the task.
    role: str
    cards: int
    #: Training tokens per second of all its cards at full utilization.
    peak_tokens: float
    #: Whether it reports to the control plane, and so saves checkpoints.
    reports: bool
    labels: Mapping[str, str]


#: Exit codes and error messages of failed trainings.
_ERRORS = (
    (1, "the loss is not a number; lower the learning rate"),
    (1, "RuntimeError: the collective timed out after 600 s: rank 3 did not answer"),
    (28, "OSError: [Errno 28] No space left on device"),
    (12, "out of memory: tried to allocate 2.31 GiB, and 1.07 GiB are free"),
)
_STEP_SECONDS = (1.5, 6.0)
#: Range of the utilization of training.
_UTILIZATION = (0.28, 0.46)


def draw_run_profile(traits: LaunchTraits, *, seed: int, mix: WorkloadDistribution) -> RunProfile:
    """Draw the run profile of a Launch; the same seed gives the same one.

    :raises RunProfileRefused: if a label has an invalid value.
    """
    rng = seeded_random(seed, traits.name)
    drawn = _draw_profile(traits, rng, mix)
    overrides = {
        key.removeprefix(PREFIX): value
        for key, value in traits.labels.items()
        if key.startswith(PREFIX)
    }
    if not overrides:
        return drawn
    runs = _draw_duration(overrides, "run-seconds", default=drawn.runs)
    code = _draw_duration(
        overrides, "exit-code", default=0.0 if "run-seconds" in overrides else drawn.exit_code
    )
    return RunProfile(
        prepares=_draw_duration(overrides, "prepare-seconds", default=0.0) or 0.0,
        runs=runs,
        exit_code=int(code or 0),
        error=drawn.error,
        obeys=overrides.get("obeys", "yes") != "no",
        saves=drawn.saves,
        steps=drawn.steps,
        whole=runs if runs and "run-seconds" in overrides else drawn.whole,
        tokens_per_second=drawn.tokens_per_second,
        output=overrides.get("output"),
        seed=drawn.seed,
    )


def _draw_profile(traits: LaunchTraits, rng: Random, mix: WorkloadDistribution) -> RunProfile:
    seed = f"{rng.getrandbits(64):016x}"
    prepares = rng.uniform(20, 90)
    match traits.role:
        case "server":
            return RunProfile(prepares=prepares, starts=rng.uniform(60, 240), seed=seed)
        case "trainer" | "quantizer":
            return _draw_training_profile(traits, rng, mix, prepares=prepares, seed=seed)
        case _:
            hours = _log_normal(rng, median=mix.hours / 6, spread=mix.spread)
            return RunProfile(prepares=prepares, runs=hours * 3600, seed=seed)


def _draw_training_profile(
    traits: LaunchTraits, rng: Random, mix: WorkloadDistribution, *, prepares: float, seed: str
) -> RunProfile:
    larger = 1 + 0.25 * math.log2(max(1, traits.cards))
    runs = 3600 * _log_normal(rng, median=mix.hours * larger, spread=mix.spread)
    steps = max(20, round(runs / rng.uniform(*_STEP_SECONDS)))
    rate = traits.peak_tokens * rng.uniform(*_UTILIZATION)
    fails = rng.random() < mix.failing
    code, error = rng.choice(_ERRORS) if fails else (0, "")
    return RunProfile(
        prepares=prepares,
        # A failing run fails before its work is done.
        runs=runs * (rng.uniform(0.02, 0.8) if fails else 1.0),
        exit_code=code,
        error=error,
        saves=rng.uniform(5, 20) if traits.reports else 0.0,
        steps=steps,
        whole=runs,
        tokens_per_second=round(rate, 1),
        seed=seed,
    )


def _log_normal(rng: Random, *, median: float, spread: float) -> float:
    return min(72.0, max(0.02, median * math.exp(rng.gauss(0.0, spread))))


def _draw_duration(
    overrides: Mapping[str, str], key: str, *, default: float | None
) -> float | None:
    if key not in overrides:
        return default
    try:
        value = float(overrides[key])
    except ValueError:
        value = -1.0
    if not 0 <= value < math.inf:
        raise RunProfileRefused(f"{PREFIX}{key} is a number from 0, got {overrides[key]!r}")
    return value


def seeded_random(*seed: object) -> Random:
    """A random generator that depends on the seed only."""
    return Random(":".join(map(str, seed)))  # noqa: S311 - nothing secret is drawn
