"""All tests of one card, in a process of its own: a card that crashes or hangs takes nobody with it."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

from ninefold_runtime.burnin import collectives, matrices, memories
from ninefold_runtime.burnin.cards import Card
from ninefold_runtime.burnin.outcomes import Outcome, broken
from ninefold_runtime.burnin.specs import BurninSpec

#: Parts of the time. The cards begin together, so what needs all of them comes first; products have what is left.
_COLLECTIVE = 0.2
_MEMORY = 0.5


def run(spec: BurninSpec, *, index: int, meeting: Path, out: Path) -> None:
    """Write what each test found to ``out`` as soon as it is known.

    :raises BadInput: if torch does not find the card.
    """
    card = Card.of(spec.device, index=index)
    outcomes: list[Outcome] = []

    def test(name: str, body: Callable[[], Outcome]) -> None:
        try:
            outcome = body()
        except Exception as error:  # noqa: BLE001 - whatever a card makes torch raise is what was found
            line = (str(error).strip().splitlines() or ["without a word"])[0]
            outcome = broken(test=name, card=index, words=f"{type(error).__name__}: {line:.400}")
        outcomes.append(outcome)
        _write(outcomes, out)
        card.give_back()

    # Each test has its time from when it begins: nobody is short of it because another card came late.
    seconds = spec.seconds * _COLLECTIVE
    test(
        "collective",
        lambda: collectives.run(
            spec.collective, card=card, cards=spec.cards, meeting=meeting, seconds=seconds
        ),
    )
    began = time.monotonic()
    until = began + spec.seconds * _MEMORY
    test("memory", lambda: memories.run(spec.memory, card=card, deadline=until))
    end = began + spec.seconds * (1.0 if spec.cards == 1 else 1.0 - _COLLECTIVE)
    test("matrix", lambda: matrices.run(spec.matrix, card=card, deadline=end))


def _write(outcomes: list[Outcome], out: Path) -> None:
    draft = out.with_suffix(".draft")
    draft.write_text(json.dumps([asdict(outcome) for outcome in outcomes]), encoding="utf-8")
    draft.replace(out)
