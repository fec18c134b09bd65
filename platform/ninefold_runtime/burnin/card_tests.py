"""All tests of one card in one process (a card that hangs affects no other), and the all-reduce test."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

import torch
from torch import distributed

from ninefold_runtime.burnin import matrix_test, memory_test
from ninefold_runtime.burnin.card import BurninCard
from ninefold_runtime.burnin.outcomes import (
    BurninOutcome,
    BurninVerdict,
    failed_outcome,
    rate_outcome,
)
from ninefold_runtime.burnin.specs import BurninSpec, CollectiveSpec

#: Parts of the time. The cards begin together, so what needs all of them comes first; products have what is left.
_COLLECTIVE_SHARE = 0.2
_MEMORY_SHARE = 0.5


def run_card_tests(spec: BurninSpec, *, index: int, meeting: Path, out: Path) -> None:
    """Write what each test found to ``out`` as soon as it is known.

    :raises InvalidTaskInput: if torch does not find the card.
    """
    card = BurninCard.of(spec.device, index=index)
    outcomes: list[BurninOutcome] = []

    def test(name: str, body: Callable[[], BurninOutcome]) -> None:
        try:
            outcome = body()
        except Exception as error:  # noqa: BLE001 - whatever a card makes torch raise is what was found
            line = (str(error).strip().splitlines() or ["without a word"])[0]
            outcome = failed_outcome(
                test=name, card=index, message=f"{type(error).__name__}: {line:.400}"
            )
        outcomes.append(outcome)
        _write_outcomes(outcomes, out)
        card.release_memory()

    # Each test's time starts when it begins, so that a late card does not shorten it.
    seconds = spec.seconds * _COLLECTIVE_SHARE
    test(
        "collective",
        lambda: run_collective_test(
            spec.collective, card=card, cards=spec.cards, meeting=meeting, seconds=seconds
        ),
    )
    began = time.monotonic()
    until = began + spec.seconds * _MEMORY_SHARE
    test("memory", lambda: memory_test.run_memory_test(spec.memory, card=card, deadline=until))
    end = began + spec.seconds * (1.0 if spec.cards == 1 else 1.0 - _COLLECTIVE_SHARE)
    test("matrix", lambda: matrix_test.run_matrix_test(spec.matrix, card=card, deadline=end))


def _write_outcomes(outcomes: list[BurninOutcome], out: Path) -> None:
    draft = out.with_suffix(".draft")
    draft.write_text(json.dumps([asdict(outcome) for outcome in outcomes]), encoding="utf-8")
    draft.replace(out)


_TEST = "collective"
_ELEMENTS = 16 * 1024 * 1024
_BATCH = 4
#: How long the slowest card may take to come.
_MEET_WITHIN = timedelta(minutes=2)


def run_collective_test(
    spec: CollectiveSpec, *, card: BurninCard, cards: int, meeting: Path, seconds: float
) -> BurninOutcome:
    """Sums over all cards for so long, once all have met; the bus bandwidth in GB/s.

    Bus bandwidth is what each link carries: 2 (n - 1) / n of the bytes, a sum (nccl-tests).
    """
    if cards == 1:
        return BurninOutcome(
            test=_TEST,
            card=card.index,
            verdict=BurninVerdict.SKIPPED,
            measured=None,
            expected=None,
            unit="GB/s",
            message="one card has nobody to add up with",
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
        return _test_all_reduce(spec, card=card, cards=cards, deadline=deadline)
    finally:
        distributed.destroy_process_group()


def _test_all_reduce(
    spec: CollectiveSpec, *, card: BurninCard, cards: int, deadline: float
) -> BurninOutcome:
    tensor = torch.empty(_ELEMENTS, dtype=torch.float32, device=card.device)
    total = cards * (cards + 1) / 2
    count, busy, wrong = 0, 0.0, 0
    time_all_reduce(tensor, part=card.index + 1, card=card)
    while True:
        for _ in range(_BATCH):
            busy += time_all_reduce(tensor, part=card.index + 1, card=card)
            wrong += int((tensor != total).sum())
        count += _BATCH
        # All stop in the same round: who went on alone would wait for the others in vain.
        if not _agree_to_continue(wanted=not wrong and time.monotonic() < deadline, card=card):
            break
    size = _ELEMENTS * tensor.element_size()
    if wrong:
        text = f"{wrong} of {_ELEMENTS * count} sums are wrong; {total:g} was right"
        return failed_outcome(test=_TEST, card=card.index, message=text)
    return rate_outcome(
        test=_TEST,
        card=card.index,
        measured=round(2 * (cards - 1) / cards * size * count / busy / 1e9, 6),
        expected=spec.expected_gb_s,
        floor=spec.floor,
        unit="GB/s",
        message=f"{count} sums of {size >> 20} MiB over {cards} cards by {spec.backend}, all right",
    )


def time_all_reduce(tensor: Any, *, part: int, card: BurninCard) -> float:
    """All-reduce over the cards; returns the seconds that took."""
    tensor.fill_(float(part))
    card.synchronize()
    began = time.perf_counter()
    distributed.all_reduce(tensor)
    card.synchronize()
    return time.perf_counter() - began


def _agree_to_continue(*, wanted: bool, card: BurninCard) -> bool:
    vote = torch.tensor([float(wanted)], device=card.device)
    distributed.all_reduce(vote, op=distributed.ReduceOp.MIN)
    return bool(vote.item())
