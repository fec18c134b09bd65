"""What the processes of a Launch report and print: made up, and the same for whoever asks.

A training's loss falls as ``floor + (start − floor) · exp(−k · share)`` with the noise of real batches; its steps
take as long as its course says, so that what is reported by an instant follows from the work done by then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from controlplane.domain.simulation.chances import chance
from controlplane.domain.simulation.lives import Life
from controlplane.domain.simulation.paces import Pace
from controlplane.domain.simulation.troubles import Trouble

#: Points that a whole training reports; more than a chart has pixels would be drawn over each other.
_POINTS = 120
_VALIDATIONS = 12
_CHECKPOINTS = 8
_EPOCHS = 3.0
_WARM_UP = 0.03
_SAYS_SO = "[ninefold] simulated cluster: no program runs, and every figure below is made up"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """The curve of one training, drawn from its seed."""

    start: float
    floor: float
    #: How fast it falls.
    fall: float
    #: Standard deviation of the noise, as a share.
    noise: float
    rate: float

    @classmethod
    def of(cls, seed: str) -> _Shape:
        draws = chance(seed)
        floor = draws.uniform(0.25, 1.1)
        return cls(
            start=floor + draws.uniform(0.9, 2.2),
            floor=floor,
            fall=draws.uniform(3.0, 6.5),
            noise=draws.uniform(0.015, 0.05),
            rate=draws.choice((1e-5, 2e-5, 5e-5, 1e-4, 2e-4)),
        )

    def loss(self, share: float) -> float:
        return self.floor + (self.start - self.floor) * math.exp(-self.fall * share)


def step_of(life: Life, *, work: float | None = None) -> int:
    """The last step that was done by that much work, by default by all that was."""
    course = life.record.course
    if not course.steps or not course.whole:
        return 0
    done = life.work if work is None else work
    # The last step ends with the work: rounding must not keep it back.
    return min(course.steps, math.floor(done / course.whole * course.steps + 1e-9))


def points(life: Life, *, after: int, troubles: Sequence[Trouble] = ()) -> list[dict[str, Any]]:
    """What it has reported after that step, as ``POST …/progress`` takes it."""
    return list(_points(life, after=after, troubles=troubles))


def checkpointed(life: Life) -> float:
    """The work that its newest checkpoint holds, in seconds of the simulation."""
    course = life.record.course
    if not course.steps:
        return 0.0
    if life.ending is not None and life.ending.cause == "stopped" and course.saves:
        # It was asked to end, and saved before it did.
        return life.work
    saved = step_of(life) // _every(course.steps, _CHECKPOINTS) * _every(course.steps, _CHECKPOINTS)
    return max(life.record.begun, saved / course.steps * course.whole)


def metrics(life: Life) -> dict[str, float]:
    """What a good end says of what was made."""
    course = life.record.course
    shape, draws = _Shape.of(course.seed), chance(course.seed, "end")
    if course.steps:
        loss = shape.loss(1.0)
        return {"loss": round(loss, 4), "eval_loss": round(loss * draws.uniform(1.02, 1.12), 4)}
    return {"exact_match": round(draws.uniform(0.35, 0.93), 4), "rows": 400}


def text(life: Life, *, role: str, index: int, troubles: Sequence[Trouble] = ()) -> bytes:
    """All that one replica has printed by then."""
    course = life.record.course
    if course.output is not None:
        return course.output.encode() if life.started_at is not None else b""
    if life.started_at is None:
        return b""
    return "".join(f"{line}\n" for line in _lines(life, role, index, troubles)).encode()


def _lines(life: Life, role: str, index: int, troubles: Sequence[Trouble]) -> Iterator[str]:
    record = life.record
    where = next(place for place in record.places if (place.role, place.index) == (role, index))
    cards = ", ".join(map(str, where.cards)) or "none"
    yield _SAYS_SO
    yield f"{role} {index + 1} of {len(record.places)} on {where.node}, cards {cards}"
    if record.begun:
        yield f"going on from a checkpoint, {record.begun:.0f} s of work into the run"
    if record.course.steps:
        for point in _points(life, after=step_of(life, work=record.begun), troubles=troubles):
            yield _in_words(point)
    elif record.probed and life.at >= record.up_at:
        yield "ready to serve"
    if life.finishing or (life.ending and life.ending.cause == "finished"):
        yield "done; handing over what was made" if record.reports else "done"
    if life.ending and life.ending.cause != "finished":
        yield life.ending.message


def _points(life: Life, *, after: int, troubles: Sequence[Trouble]) -> Iterator[dict[str, Any]]:
    course = life.record.course
    if not course.steps:
        return
    shape, pace = _Shape.of(course.seed), life.record.pace(troubles)
    every = _every(course.steps, _POINTS)
    validates, saves = _every(course.steps, _VALIDATIONS), _every(course.steps, _CHECKPOINTS)
    last = step_of(life)
    steps = [*range(after // every * every + every, last + 1, every)]
    if last == course.steps > after and last % every:
        steps.append(last)
    for step in steps:
        share = step / course.steps
        draws = chance(course.seed, step)
        loss = shape.loss(share) * draws.gauss(1.0, shape.noise)
        point = {
            "step": step,
            "total_steps": course.steps,
            "epoch": round(_EPOCHS * share, 3),
            "loss": round(loss, 4),
            "learning_rate": float(f"{shape.rate * _schedule(share):.4g}"),
            "grad_norm": round(draws.uniform(0.4, 1.6), 3),
            "tokens_per_second": round(_speed(life, pace, share, draws), 1),
            "eta_seconds": round((1 - share) * course.whole / life.record.speed, 1),
        }
        if step % validates < every:
            point["eval_loss"] = round(shape.loss(share) * 1.05 * draws.gauss(1.0, 0.01), 4)
        yield point
        if step % saves < every:
            yield {"checkpoint": {"step": step}}


def _speed(life: Life, pace: Pace, share: float, draws: Random) -> float:
    rate = life.record.course.tokens_per_second * draws.uniform(0.96, 1.03)
    if not pace.slow:
        return rate
    return rate / pace.slowness(pace.reached(share * life.record.course.whole))


def _every(steps: int, wanted: int) -> int:
    return max(1, round(steps / wanted))


def _schedule(share: float) -> float:
    """A short warm-up, then a cosine."""
    if share < _WARM_UP:
        return share / _WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (share - _WARM_UP) / (1 - _WARM_UP)))


def _in_words(point: dict[str, Any]) -> str:
    if "checkpoint" in point:
        return f"checkpoint saved at step {point['checkpoint']['step']}"
    words = [
        f"step {point['step']}/{point['total_steps']}",
        f"epoch {point['epoch']:.4g}",
        f"loss {point['loss']:.4g}",
        f"learning rate {point['learning_rate']:.4g}",
        f"{point['tokens_per_second']:.0f} tokens/s",
        f"{point['eta_seconds']:.0f} s left",
    ]
    if "eval_loss" in point:
        words.append(f"eval loss {point['eval_loss']:.4g}")
    return " · ".join(words)
