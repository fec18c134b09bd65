"""All-reduce among the cards of this Launch: whether the sums are right, and how fast they come."""

from __future__ import annotations

import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from ninefold_runtime.burnin.cards import Card
from ninefold_runtime.burnin.outcomes import Outcome, Verdict, broken, judged
from ninefold_runtime.burnin.specs import CollectiveSpec

_TEST = "collective"
_WORDS = 16 * 1024 * 1024
_BATCH = 4
#: How long the slowest card may take to come.
_MEET_WITHIN = timedelta(minutes=2)


def run(spec: CollectiveSpec, *, card: Card, cards: int, meeting: Path, seconds: float) -> Outcome:
    """Sums over all cards for so long, once all have met; the bus bandwidth in GB/s.

    Bus bandwidth is what each link carries: 2 (n - 1) / n of the bytes, a sum (nccl-tests).
    """
    if cards == 1:
        return Outcome(
            test=_TEST,
            card=card.index,
            verdict=Verdict.SKIPPED,
            measured=None,
            expected=None,
            unit="GB/s",
            words="one card has nobody to add up with",
        )
    distributed.init_process_group(
        spec.backend,
        init_method=meeting.absolute().as_uri(),
        rank=card.index,
        world_size=cards,
        timeout=_MEET_WITHIN,
    )
    try:
        deadline = time.monotonic() + seconds
        return _reduce(spec, card=card, cards=cards, deadline=deadline)
    finally:
        distributed.destroy_process_group()


def _reduce(spec: CollectiveSpec, *, card: Card, cards: int, deadline: float) -> Outcome:
    words = torch.empty(_WORDS, dtype=torch.float32, device=card.device)
    total = cards * (cards + 1) / 2
    count, busy, wrong = 0, 0.0, 0
    reduced(words, part=card.index + 1, card=card)
    while True:
        for _ in range(_BATCH):
            busy += reduced(words, part=card.index + 1, card=card)
            wrong += int((words != total).sum())
        count += _BATCH
        # All stop in the same round: who went on alone would wait for the others in vain.
        if not _all_go_on(wanted=not wrong and time.monotonic() < deadline, card=card):
            break
    size = _WORDS * words.element_size()
    if wrong:
        text = f"{wrong} of {_WORDS * count} sums are wrong; {total:g} was right"
        return broken(test=_TEST, card=card.index, words=text)
    return judged(
        test=_TEST,
        card=card.index,
        measured=round(2 * (cards - 1) / cards * size * count / busy / 1e9, 6),
        expected=spec.expected_gb_s,
        floor=spec.floor,
        unit="GB/s",
        words=f"{count} sums of {size >> 20} MiB over {cards} cards by {spec.backend}, all right",
    )


def reduced(words: Any, *, part: int, card: Card) -> float:
    """Add up what each card has; the seconds that took."""
    words.fill_(float(part))
    card.synchronize()
    began = time.perf_counter()
    distributed.all_reduce(words)
    card.synchronize()
    return time.perf_counter() - began


def _all_go_on(*, wanted: bool, card: Card) -> bool:
    vote = torch.tensor([float(wanted)], device=card.device)
    distributed.all_reduce(vote, op=distributed.ReduceOp.MIN)
    return bool(vote.item())
